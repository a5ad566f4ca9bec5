"""Windows over tensors, updates and slices at coordinates as machine code. The oracle is the official interpreter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from engine_kit import engine, plan_of
from foreign import on_here
from lite_kit import Build, run

from opwright import lite
from thorough import THOROUGH

peer = pytest.importorskip("ai_edge_litert.interpreter")
RNG = np.random.default_rng(19)
KINDS = {"FLOAT32": np.float32, "INT8": np.int8, "INT32": np.int32, "BOOL": np.bool_}


def drawn(kind, shape):
    if kind == "FLOAT32":
        return RNG.normal(size=shape).astype(np.float32)
    return RNG.integers(0, 2, shape).astype(bool) if kind == "BOOL" else RNG.integers(-9, 9, shape).astype(KINDS[kind])


def agrees(content, inputs, target="host"):
    kernels = peer.OpResolverType.BUILTIN_REF
    expected = run(peer.Interpreter(model_content=content, experimental_op_resolver_type=kernels), inputs)
    with engine(verify=True, target=target):
        interpreter = lite.Interpreter(model_content=content)
        actual = run(interpreter, inputs)
    assert plan_of(interpreter)[-1:] == ["Opwright"], interpreter._engine.delegate.refused
    for a, b in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(a, b)


WINDOWS = [
    ((40,), (3,), (1,), (1,)),
    ((41,), (4,), (2,), (3,)),
    ((5, 33), (2, 1), (1, 1), (2, 1)),
    ((4, 6, 17), (3, 2, 1), (1, 2, 1), (1, 2, 1)),
    ((6, 19), (2, 3), (2, 2), (1, 1)),
]
"""Shape, windows, strides, dilations: along the last axis, along others, both."""


@pytest.mark.parametrize(("function", "target"), on_here(["ADD", "MUL", "MINIMUM", "MAXIMUM", "ALL", "ANY"]))
def test_windows(function, target):
    for number, (shape, *lists) in enumerate(WINDOWS):
        kind = list(KINDS)[number % len(KINDS)]
        out = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(shape, *lists)]
        b = Build().tensor("x", shape, kind).tensor("i", (), kind).tensor("y", out, kind)
        for name, numbers in zip("wsd", lists):
            b.tensor(name, type="INT64", data=np.int64(numbers))
        content = b.node(
            "REDUCE_WINDOW",
            "x i w s d",
            "y",
            reduce_function=["ADD", "MUL", "MINIMUM", "MAXIMUM", "ALL", "ANY"].index(function) + 1,
        )
        agrees(content.done("x i"), [drawn(kind, shape), drawn(kind, ())], target)


@pytest.mark.parametrize("function", ["ADD", "MAXIMUM"])
def test_windows_of_stablehlo(function):
    """Over a tensor that is spread and padded first, or cut."""
    cases = [((4, 9), (2, 3), (1, 2), (2, 1), (1, 2), (1, 0, 2, 3)), ((12,), (3,), (1,), (1,), (1,), (-2, 1))]
    for shape, window, strides, base, dilations, padding in cases:
        wide = [(n - 1) * k + 1 + a + b for n, k, a, b in zip(shape, base, padding[::2], padding[1::2])]
        out = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(wide, window, strides, dilations)]
        b = Build().tensor("x", shape).tensor("i", ()).tensor("y", out)
        b.node(
            "STABLEHLO_REDUCE_WINDOW",
            "x i",
            "y",
            window_dimensions=window,
            window_strides=strides,
            base_dilations=base,
            window_dilations=dilations,
            padding=padding,
            body_subgraph_index=1,
        )
        b.ends("x i", "y").subgraph("join").tensor("a", ()).tensor("b", ()).tensor("c", ())
        content = b.op(f"STABLEHLO_{function}", "a b", "c").done("a b", "c")
        agrees(content, [drawn("FLOAT32", shape), drawn("FLOAT32", ())])


def scattered(kind, x, indices, updates, function):
    b = Build().tensor("x", x, kind).tensor("i", indices, "INT32").tensor("u", updates, kind).tensor("y", x, kind)
    depth = indices[-1]
    window = list(range(len(updates) - len(x) + depth, len(updates)))
    b.node(
        "STABLEHLO_SCATTER",
        "x i u",
        "y",
        update_window_dims=window,
        inserted_window_dims=list(range(depth)),
        scatter_dims_to_operand_dims=list(range(depth)),
        index_vector_dim=len(indices) - 1,
        update_computation_subgraph_index=1,
    )
    b.ends("x i u", "y")
    b.subgraph("join").tensor("a", (), kind).tensor("b", (), kind)
    if function is None:
        return b.done("a b", "b")
    return b.tensor("c", (), kind).op(f"STABLEHLO_{function}", "a b", "c").done("a b", "c")


@pytest.mark.parametrize("function", ["ADD", "MULTIPLY", "MAXIMUM", "MINIMUM", None])
def test_updates_of_slices(function):
    """Places outside are left out; of several at one place each counts, or the last."""
    sizes = [((7, 5), (4, 1), (5,)), ((6, 3, 20), (2, 3, 2), (20,)), ((9,), (30, 1), ())]
    every = list(itertools.product(("FLOAT32", "INT32"), sizes))
    for kind, (x, indices, rest) in every[:: 1 if THOROUGH else 2]:
        updates = (*indices[:-1], *rest)
        places = RNG.integers(-1, 8, indices).astype(np.int32)
        agrees(scattered(kind, x, indices, updates, function), [drawn(kind, x), places, drawn(kind, updates)])


def test_slices_at_coordinates():
    """Slices along the leading axes and along one axis; start indices out of bounds are clamped."""
    for x, indices, along, offsets in (
        ((7, 5), (4, 1), [0], [1]),
        ((6, 3, 20), (2, 4, 2), [0, 1], [2]),
        ((6, 9, 4), (5, 1), [1], [0, 2]),
        ((8,), (3, 2, 1), [0], []),
    ):
        sizes = [1 if d in along else n for d, n in enumerate(x)]
        rest = [n for d, n in enumerate(x) if d not in along]
        kept, others = iter(rest), iter(indices[:-1])
        y = [next(kept) if d in offsets else next(others) for d in range(len(rest) + len(indices) - 1)]
        b = Build().tensor("x", x).tensor("i", indices, "INT32").tensor("y", y)
        b.node(
            "STABLEHLO_GATHER",
            "x i",
            "y",
            offset_dims=offsets,
            collapsed_slice_dims=along,
            start_index_map=along,
            index_vector_dim=len(indices) - 1,
            slice_sizes=sizes,
        )
        agrees(b.done("x i"), [drawn("FLOAT32", x), RNG.integers(-2, 10, indices).astype(np.int32)])


@pytest.mark.parametrize("computed", [False, True])
def test_sparse_to_dense(computed):
    for sizes, count, one in (((6, 5), 4, False), ((40,), 7, False), ((3, 4, 5), 6, True)):
        places = np.stack([RNG.integers(0, n, count) for n in sizes], 1).astype(np.int32)
        b = Build().tensor("i", places.shape, "INT32").tensor("n", type="INT32", data=np.int32(sizes))
        b.tensor("y", sizes).tensor("v", () if one else (count,))
        b.tensor("d", (), data=None if computed else np.float32(-3))
        content = b.op("SPARSE_TO_DENSE", "i n v d", "y").done("i v d" if computed else "i v")
        values = drawn("FLOAT32", () if one else (count,))
        agrees(content, [places, values, *([np.float32(7)] if computed else [])])


def test_an_index_outside_of_the_dense_tensor_is_an_error():
    b = Build().tensor("i", (2, 1), "INT32").tensor("n", type="INT32", data=np.int32([4])).tensor("v", (2,))
    content = b.tensor("d", data=np.float32(0)).tensor("y", (4,)).op("SPARSE_TO_DENSE", "i n v d", "y").done("i v")
    with engine(verify=True), pytest.raises(RuntimeError, match="an index is out of range"):
        run(lite.Interpreter(model_content=content), [np.int32([[1], [4]]), np.ones(2, np.float32)])
