"""Random graphs of many operators: tensors read often or never, twice by one node, inputs that are outputs.

Lives here: drawing them.  Not here: the checks (test_random_graphs.py).
What one operator does is tested elsewhere; here it is what the run time does with many: places in the arena, results in
place, aliases, shapes known only while the model runs, resizes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opwright.lite.format import Model, objects, schema, versions
from opwright.lite.ops import get

KINDS = {"FLOAT32": np.float32, "INT32": np.int32, "INT64": np.int64, "BOOL": np.bool_}


def as_model(graph: Any) -> Model:
    """The model of one subgraph, from a graph's tensors, inputs, outputs, nodes, codes and buffers."""
    main = objects.SubGraph(tensors=graph.tensors, inputs=graph.inputs, outputs=graph.outputs, operators=graph.nodes)
    codes = [versions.operator_code(name) for name in graph.codes]
    model = Model(operator_codes=codes, subgraphs=[main], buffers=graph.buffers)
    versions.stamp_model(model)
    return model


class Graph:
    """A subgraph that grows by one random operator at a time. dynamic: some shapes depend on elements."""

    def __init__(self, seed: int, operators: int, dynamic: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.buffers, self.tensors = [objects.Buffer()], []
        self.codes: dict[str, int] = {}
        self.nodes: list[Any] = []
        self.known: list[tuple[int, tuple[int, ...], str]] = []  # what an operator may read: index, shape, kind
        self.inputs = [self._tensor(self._shape(), "FLOAT32") for _ in range(self._int(1, 3))]
        self.inputs.append(self._tensor(self._shape(), "INT32"))
        for _ in range(operators):
            steps = [*STEPS, *(DYNAMIC if dynamic else ())]
            steps[self._int(0, len(steps) - 1)](self)
        used = {i for node in self.nodes for i in node.inputs}
        last = [i for i, _, _ in self.known[-3:]]
        self.outputs = sorted({*(i for i, _, _ in self.known if i not in used and i not in self.inputs), *last})
        if self._int(0, 3) == 0:
            self.outputs.append(self.inputs[0])

    def model(self) -> Model:
        return as_model(self)

    def feeds(self) -> list[np.ndarray]:
        return [self._values(tuple(t.shape), t.type.name) for t in (self.tensors[i] for i in self.inputs)]

    # ---- drawing -----------------------------------------------------------------------------------------------

    def _int(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def _shape(self) -> tuple[int, ...]:
        return tuple(self._int(1, 4) for _ in range(self._int(1, 3)))

    def _values(self, shape: tuple[int, ...], kind: str) -> np.ndarray:
        if kind == "FLOAT32":
            return self.rng.normal(size=shape).astype(np.float32)
        return self.rng.integers(-5, 6, shape).astype(KINDS[kind])

    def _tensor(self, shape: tuple[int, ...], kind: str, values: Any = None) -> int:
        if values is not None:
            self.buffers.append(objects.Buffer(data=np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)))
        place = 0 if values is None else len(self.buffers) - 1
        self.tensors.append(
            objects.Tensor(shape=list(shape), type=schema.TensorType[kind], buffer=place, name=f"t{len(self.tensors)}")
        )
        self.known.append((len(self.tensors) - 1, shape, kind))
        return len(self.tensors) - 1

    def const(self, values: Any, kind: str = "INT32") -> int:
        array = np.asarray(values, KINDS[kind])
        index = self._tensor(array.shape, kind, array)
        self.known.pop()
        return index

    def pick(self, kinds: tuple[str, ...] = ("FLOAT32", "INT32"), rank: int = 0) -> tuple[int, tuple[int, ...], str]:
        """A tensor of one of the kinds and at least that rank: of late ones sooner than of old ones."""
        fits = [t for t in self.known if t[2] in kinds and len(t[1]) >= rank and 0 not in t[1]]
        if not fits:
            shape = (2,) * max(rank, 1)
            self._tensor(shape, kinds[0], self._values(shape, kinds[0]))
            return self.known[-1]
        return fits[-min(len(fits), 1 + int(self.rng.exponential(3)))]

    def add(self, name: str, inputs: list[int], shapes: list[tuple[int, ...]], kind: str, **options: Any) -> None:
        outputs = [self._tensor(shape, kind) for shape in shapes]
        code = self.codes.setdefault(name, len(self.codes))
        self.nodes.append(
            objects.Operator(
                opcode_index=code, inputs=inputs, outputs=outputs, builtin_options=get(name).to_options(options)
            )
        )


def _unary(g: Graph) -> None:
    name = ("RELU", "ABS", "NEG", "SQUARE", "SIN", "TANH", "RELU6")[g._int(0, 6)]
    i, shape, kind = g.pick(("FLOAT32",))
    g.add(name, [i], [shape], kind)


def _binary(g: Graph) -> None:
    i, shape, kind = g.pick()
    choice = g._int(0, 3)
    same = [t for t in g.known if t[1] == shape and t[2] == kind]
    if choice == 0:
        other, wide = i, shape
    elif choice == 1:
        other, wide = same[g._int(0, len(same) - 1)][0], shape
    elif choice == 2:
        other, wide = g.const(g._values((), kind), kind), shape
    else:
        extra = tuple(1 if g._int(0, 1) else n for n in shape)
        other, wide = g.const(g._values(extra, kind), kind), shape
    name = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")[g._int(0, 4)]
    pair = [i, other] if g._int(0, 1) else [other, i]
    g.add(name, pair, [wide], kind)


def _compare(g: Graph) -> None:
    i, shape, _ = g.pick()
    g.add(("LESS", "GREATER_EQUAL", "EQUAL")[g._int(0, 2)], [i, i], [shape], "BOOL")
    chosen = [t for t in g.known if t[1] == shape and t[2] == "FLOAT32"]
    if chosen:
        g.add("SELECT_V2", [g.known[-1][0], chosen[0][0], chosen[-1][0]], [shape], "FLOAT32")


def _reshape(g: Graph) -> None:
    i, shape, kind = g.pick(rank=1)
    new = [(math.prod(shape),), (math.prod(shape) // shape[-1], shape[-1])][g._int(0, 1)]
    if g._int(0, 2) == 0 and len(new) == 1:
        g.add("RESHAPE", [i, g.const([-1])], [new], kind)
    else:
        g.add("RESHAPE", [i, g.const(new)], [new], kind)


def _axes(g: Graph) -> None:
    i, shape, kind = g.pick()
    at = g._int(0, len(shape))
    g.add("EXPAND_DIMS", [i, g.const(at)], [(*shape[:at], 1, *shape[at:])], kind)
    if g._int(0, 1):
        g.add("SQUEEZE", [g.known[-1][0]], [shape], kind, squeeze_dims=[at])


def _transpose(g: Graph) -> None:
    i, shape, kind = g.pick(rank=1)
    order = g.rng.permutation(len(shape))
    g.add("TRANSPOSE", [i, g.const(order)], [tuple(shape[k] for k in order)], kind)


def _join(g: Graph) -> None:
    i, shape, kind = g.pick(rank=1)
    axis = g._int(0, len(shape) - 1)
    same = [t[0] for t in g.known if t[1] == shape and t[2] == kind]
    parts = [i, *(same[g._int(0, len(same) - 1)] for _ in range(g._int(0, 2)))]
    new = (*shape[:axis], shape[axis] * len(parts), *shape[axis + 1 :])
    if new[axis] <= 12:
        g.add("CONCATENATION", parts, [new], kind, axis=axis)


def _split(g: Graph) -> None:
    i, shape, kind = g.pick(rank=1)
    axis = g._int(0, len(shape) - 1)
    if shape[axis] % 2 == 0:
        half = (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])
        g.add("SPLIT", [g.const(axis), i], [half, half], kind, num_splits=2)


def _stack(g: Graph) -> None:
    i, shape, kind = g.pick()
    if len(shape) > 3:
        return
    axis = g._int(0, len(shape))
    g.add("PACK", [i, i], [(*shape[:axis], 2, *shape[axis:])], kind, values_count=2, axis=axis)
    if g._int(0, 1):
        g.add("UNPACK", [g.known[-1][0]], [shape, shape], kind, num=2, axis=axis)


def _slice(g: Graph) -> None:
    i, shape, kind = g.pick(rank=1)
    begin = [g._int(0, n - 1) for n in shape]
    size = [g._int(1, n - b) for n, b in zip(shape, begin)]
    g.add("SLICE", [i, g.const(begin), g.const(size)], [tuple(size)], kind)


def _pad(g: Graph) -> None:
    i, shape, kind = g.pick(("FLOAT32",), rank=1)
    pads = g.rng.integers(0, 2, (len(shape), 2))
    if len(shape) <= 4:
        g.add("PAD", [i, g.const(pads)], [tuple(int(n + p.sum()) for n, p in zip(shape, pads))], kind)


def _gather(g: Graph) -> None:
    i, shape, kind = g.pick(rank=1)
    axis, n = g._int(0, len(shape) - 1), g._int(1, 3)
    indices = g.const(g.rng.integers(0, shape[axis], n))
    g.add("GATHER", [i, indices], [(*shape[:axis], n, *shape[axis + 1 :])], kind, axis=axis)


def _reduce(g: Graph) -> None:
    i, shape, kind = g.pick(("FLOAT32",), rank=1)
    axis, keep = g._int(0, len(shape) - 1), bool(g._int(0, 1))
    new = (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])
    name = ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN")[g._int(0, 3)]
    g.add(name, [i, g.const([axis])], [new], kind, keep_dims=keep)


def _dense(g: Graph) -> None:
    i, shape, kind = g.pick(("FLOAT32",), rank=2)
    n = g._int(1, 4)
    weights = g.const(g._values((n, shape[-1]), kind), kind)
    g.add("FULLY_CONNECTED", [i, weights, -1], [(*shape[:-1], n)], kind, keep_num_dims=True)


def _softmax(g: Graph) -> None:
    i, shape, kind = g.pick(("FLOAT32",), rank=1)
    g.add("SOFTMAX", [i], [shape], kind, beta=1.0)


def _cast(g: Graph) -> None:
    i, shape, _ = g.pick(("INT32", "BOOL"))
    g.add("CAST", [i], [shape], "FLOAT32")


STEPS = (
    _unary,
    _unary,
    _binary,
    _binary,
    _binary,
    _compare,
    _reshape,
    _axes,
    _transpose,
    _join,
    _split,
    _stack,
    _slice,
    _pad,
    _gather,
    _reduce,
    _dense,
    _softmax,
    _cast,
)


def _by_its_shape(g: Graph) -> None:
    """A RESHAPE to a shape that is computed: its result is known to be like another tensor, but only when it runs."""
    i, shape, kind = g.pick(rank=1)
    g.add("SHAPE", [i], [(len(shape),)], "INT32", out_type="INT32")
    sizes = g.known.pop()[0]
    g.add("NEG", [i], [shape], kind)
    g.add("RESHAPE", [g.known[-1][0], sizes], [shape], kind)


def _kept(g: Graph) -> None:
    """The elements above zero: how many is known when it runs. They end in a sum and a count."""
    i, shape, _ = g.pick(("FLOAT32",), rank=1)
    g.add("RESHAPE", [i, g.const([-1])], [(math.prod(shape),)], "FLOAT32")
    flat = g.known[-1][0]
    g.add("GREATER", [flat, g.const(0, "FLOAT32")], [(math.prod(shape),)], "BOOL")
    mask = g.known.pop()[0]
    g.add("WHERE", [mask], [(1, 1)], "INT64")
    where = g.known.pop()[0]
    g.add("GATHER_ND", [flat, where], [(1,)], "FLOAT32")
    result = g.known.pop()[0]
    g.add("ABS", [result], [(1,)], "FLOAT32")
    absolute = g.known.pop()[0]
    g.add("ADD", [absolute, result], [(1,)], "FLOAT32")
    doubled = g.known.pop()[0]
    g.add("SUM", [doubled, g.const([0])], [()], "FLOAT32", keep_dims=False)


DYNAMIC = (_by_its_shape, _kept, _kept)
