"""Rows of the StableHLO operators that have official kernels, and of the builtins over windows of any rank.

Lives here: rows.  Not here: STABLEHLO_CASE and STABLEHLO_COMPOSITE (drawn_rows_programs.py).

Official kernels write types below a byte an element a byte into memory for half as much; the rows leave them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from drawn import Draw, Drawn, Row, T, const, plain, set_options

from opwright.lite.format import Model, objects, schema, versions
from opwright.lite.ops import get

INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
FLOATS = ("FLOAT16", "FLOAT32", "FLOAT64")
ELEMENTS = (*INTEGERS, *FLOATS, "BFLOAT16", "BOOL", "COMPLEX64", "COMPLEX128")
REDUCED = ("INT8", "UINT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64", "BOOL")
WORDS = ("INT32", "UINT32", "INT64", "UINT64")


def sizes(d: Draw, rank: int, low: int = 1, high: int = 4) -> tuple[int, ...]:
    """A shape; one in six has a size of 0 where `low` is 0."""
    shape = [d.size(max(low, 1), high) for _ in range(rank)]
    if low == 0 and rank and d.size(1, 6) == 1:
        shape[d.size(0, rank - 1)] = 0
    return tuple(shape)


def every(d: Draw, rank: int, low: int, high: int) -> list[int]:
    return [d.size(low, high) for _ in range(rank)]


# ---- element by element, and moving ----------------------------------------------------------------------------------


def two(d: Draw) -> Drawn:
    shape = sizes(d, d.size(0, 6), 0)
    return Drawn([d.t(*shape, low=-150, high=300), d.t(*shape, low=-150, high=300)], [plain(d.kind)])


def shifted(d: Draw) -> Drawn:
    shape, bits = sizes(d, d.size(0, 6), 0), int(d.kind[3:])
    by = d.t(*shape, low=0, high=min(bits + 3, 31))  # what is negative, 32 or more is undefined in the official kernel
    return Drawn([d.t(*shape, low=-(1 << bits - 1), high=1 << bits - 1), by], [plain(d.kind)])


def pad(d: Draw) -> Drawn:
    rank = d.size(1, 5)
    options = {
        "edge_padding_low": every(d, rank, -1, 3),
        "edge_padding_high": every(d, rank, -1, 3),
        "interior_padding": every(d, rank, 0, 2),
    }
    return Drawn([d.t(*sizes(d, rank, 0)), d.t(*d.one((), (1,)))], [plain(d.kind)], options)


def dilate(d: Draw) -> Drawn:
    rank = d.size(1, 6)
    return Drawn([d.t(*sizes(d, rank, 1, 3)), const(*every(d, rank, 1, 3)), d.t(*d.one((), (1,)))], [plain(d.kind)])


def scaled(draw: Callable[[Draw], Drawn]) -> Callable[[Draw], Drawn]:
    """The same with a scale on all tensors of the row's type: they are their integers."""

    def made(d: Draw) -> Drawn:
        result = draw(d)
        for t in (*result.inputs, *result.outputs):
            if t is not None and t.type == d.kind and not t.constant:
                t.scale, t.zero = 0.5, 0 if d.kind == "INT16" else 3
        return result

    return made


def windows(function: str) -> Callable[[Draw], Drawn]:
    def made(d: Draw) -> Drawn:
        rank = d.size(1, 6)
        lists = [const(*every(d, rank, 1, most), kind=np.int64) for most in (3, 2, 2)]
        return Drawn(
            [d.t(*sizes(d, rank, 0), low=-2, high=2), d.t(low=0, high=2), *lists],
            [plain(d.kind)],
            {"reduce_function": function},
        )

    return made


def gather(d: Draw) -> Drawn:
    rank, index_rank = d.size(1, 4), d.size(1, 3)
    shape, at = sizes(d, rank), d.size(0, index_rank - 1)  # the official kernel hangs where `at` is index_rank
    depth = d.size(1, rank)
    indices = list(sizes(d, index_rank, 1, 3))
    indices[at] = depth
    slices = [d.size(1, s) for s in shape]
    collapsed = [i for i, s in enumerate(slices) if s == 1 and d.one(True, False)]
    kept, batch = [s for i, s in enumerate(slices) if i not in collapsed], [s for i, s in enumerate(indices) if i != at]
    offsets = sorted(int(i) for i in d.rng.permutation(len(kept) + len(batch))[: len(kept)])
    to = [int(i) for i in d.rng.permutation(rank)[:depth]]
    options = {
        "offset_dims": offsets,
        "collapsed_slice_dims": collapsed,
        "slice_sizes": slices,
        "start_index_map": to,
        "index_vector_dim": at,
    }
    taken, others = iter(kept), iter(batch)
    y = tuple(next(taken) if i in offsets else next(others) for i in range(len(kept) + len(batch)))
    starts = d.t(*indices, kind=d.one("INT32", "INT64"), low=-2, high=5)  # some outside: slices are moved inside
    return Drawn([d.t(*shape), starts], [T(d.kind, y)], options)


# ---- with a subgraph of two numbers -------------------------------------------------------------------------------


def with_body(name: str, inputs: Sequence[T], body: str, y: T, options: dict[str, Any]) -> Drawn:
    """body: the operator in the subgraph; "" where it gives its second input."""

    def tensor(t: T) -> Any:
        return objects.Tensor(shape=list(t.shape), type=schema.TensorType[t.type], name="t")

    result = objects.table_class(get(name).options)(**options)
    places = list(range(len(inputs)))
    node = objects.Operator(inputs=places, outputs=[len(inputs)], builtin_options_2=result)
    main = objects.SubGraph(
        tensors=[*map(tensor, inputs), tensor(y)], inputs=places, outputs=[len(inputs)], operators=[node], name="main"
    )
    inner = objects.SubGraph(
        tensors=[tensor(plain(y.type)) for _ in range(3)], inputs=[0, 1], outputs=[1], operators=[], name="body"
    )
    codes = [versions.operator_code(name)]
    if body:
        inner.operators, inner.outputs = [objects.Operator(opcode_index=1, inputs=[0, 1], outputs=[2])], [2]
        set_options(inner.operators[0], get(body).to_options({}))
        codes.append(versions.operator_code(body))
    model = Model(operator_codes=codes, subgraphs=[main, inner], buffers=[objects.Buffer()])
    return Drawn(list(inputs), [y], model=model)


def reduce_window(body: str) -> Callable[[Draw], Drawn]:
    def made(d: Draw) -> Drawn:
        rank = d.size(1, 5)
        x, initial = d.t(*sizes(d, rank, 1, 4), low=-2, high=2), d.t(low=0, high=2)
        options = {
            "window_dimensions": every(d, rank, 1, 3),
            "window_strides": every(d, rank, 1, 2),
            "base_dilations": every(d, rank, 1, 2),
            "window_dilations": every(d, rank, 1, 2),
            "padding": every(d, 2 * rank, 0, 2),
            "body_subgraph_index": 1,
        }
        if min(x.shape) > 2:
            options["padding"] = every(d, 2 * rank, -1, 2)  # what would leave nothing is an error
        return with_body("STABLEHLO_REDUCE_WINDOW", [x, initial], body, T(d.kind, x.shape), options)

    return made


def scatter(body: str) -> Callable[[Draw], Drawn]:
    def made(d: Draw) -> Drawn:
        rank, index_rank = d.size(1, 4), d.size(1, 3)
        shape, at = sizes(d, rank), d.size(0, index_rank - 1)  # the official kernel crashes where `at` is index_rank
        inserted = [i for i in range(rank) if d.one(True, False, False)]
        kept = [i for i in range(rank) if i not in inserted]
        to = [int(i) for i in d.rng.permutation(rank)[: d.size(1, rank)]]
        indices = list(sizes(d, index_rank, 1, 3))
        indices[at] = len(to)
        window, batch = [d.size(1, shape[i]) for i in kept], [s for i, s in enumerate(indices) if i != at]
        rank_of_updates = len(window) + len(batch)
        dims = sorted(int(i) for i in d.rng.permutation(rank_of_updates)[: len(window)])
        taken, others = iter(window), iter(batch)
        updates = [next(taken) if i in dims else next(others) for i in range(rank_of_updates)]
        starts = d.t(*indices, kind=d.one("INT32", "INT64"), low=-1, high=3)  # what lies outside is left out
        options = {
            "update_window_dims": dims,
            "inserted_window_dims": inserted,
            "scatter_dims_to_operand_dims": to,
            "index_vector_dim": at,
            "update_computation_subgraph_index": 1,
        }
        x, new = d.t(*shape, low=-3, high=3), d.t(*updates, low=-3, high=3)
        return with_body("STABLEHLO_SCATTER", [x, starts, new], body, T(d.kind, shape), options)

    return made


# ---- random bits ----------------------------------------------------------------------------------------------------


def bits(algorithm: str) -> Callable[[Draw], Drawn]:
    def made(d: Draw) -> Drawn:
        size = 2 if algorithm == "THREEFRY" else d.size(2, 3)
        state = d.rng.integers(0, 1 << 64, size, np.uint64)
        state[1] = d.one(state[1], *np.uint64([7, (1 << 32) - 2, (1 << 64) - 2]))  # counters that carry and wrap around
        outputs = [T("UINT64", (size,)), T(d.kind, sizes(d, d.size(0, 4), 0))]
        return Drawn([T("UINT64", (size,), values=state)], outputs, {"algorithm": algorithm}, runs=2)

    return made


ARITHMETIC = (*INTEGERS, *FLOATS, "BOOL")
COMPUTED = {
    "ADD": "STABLEHLO_ADD",
    "MUL": "STABLEHLO_MULTIPLY",
    "MAXIMUM": "STABLEHLO_MAXIMUM",
    "MINIMUM": "STABLEHLO_MINIMUM",
}

ROWS = [
    *(Row(name, ARITHMETIC, two) for name in COMPUTED.values()),
    Row("STABLEHLO_AND", (*INTEGERS, "BOOL"), two, path="OPT"),
    Row("STABLEHLO_SHIFT_LEFT", ("INT8", "INT16", "INT32"), shifted, path="OPT"),
    *(Row(name, ("INT8", "UINT8", "INT16"), scaled(two), label=f"{name} with a scale") for name in COMPUTED.values()),
    Row("STABLEHLO_PAD", ELEMENTS, pad),
    Row("STABLEHLO_PAD", ("INT8", "UINT8", "INT16"), scaled(pad), label="STABLEHLO_PAD with a scale"),
    Row("STABLEHLO_GATHER", (*ARITHMETIC, "BFLOAT16", "COMPLEX64"), gather),
    Row("STABLEHLO_GATHER", ("INT8", "UINT8", "INT16"), scaled(gather), label="STABLEHLO_GATHER with a scale"),
    *(
        Row("STABLEHLO_REDUCE_WINDOW", REDUCED, reduce_window(body), label=f"STABLEHLO_REDUCE_WINDOW of {body}")
        for body in COMPUTED.values()
    ),
    *(
        Row(
            "STABLEHLO_REDUCE_WINDOW",
            ("INT32", "FLOAT32"),
            reduce_window(body),
            label=f"STABLEHLO_REDUCE_WINDOW of {body}",
        )
        for body in (*COMPUTED, "LOGICAL_AND", "LOGICAL_OR")
    ),
    Row(
        "STABLEHLO_REDUCE_WINDOW",
        REDUCED,
        reduce_window("STABLEHLO_AND"),
        path="OPT",
        label="STABLEHLO_REDUCE_WINDOW of STABLEHLO_AND",
    ),
    *(
        Row("STABLEHLO_SCATTER", ARITHMETIC, scatter(body), label=f"STABLEHLO_SCATTER of {body or 'updates'}")
        for body in (*COMPUTED.values(), "")
    ),
    *(
        Row("STABLEHLO_RNG_BIT_GENERATOR", WORDS, bits(algorithm), label=f"STABLEHLO_RNG_BIT_GENERATOR {algorithm}")
        for algorithm in ("DEFAULT", "PHILOX", "THREEFRY")
    ),
    Row("DILATE", ELEMENTS, dilate),
    Row("DILATE", ("INT8", "UINT8", "INT16"), scaled(dilate), label="DILATE with a scale"),
    *(
        Row("REDUCE_WINDOW", REDUCED, windows(function), label=f"REDUCE_WINDOW {function}")
        for function in ("ADD", "MUL", "MINIMUM", "MAXIMUM", "ALL", "ANY")
    ),
]
