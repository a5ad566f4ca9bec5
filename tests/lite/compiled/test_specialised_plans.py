"""Plans for sizes that nodes have only as the model runs, against the official interpreter run after run."""

from __future__ import annotations

import threading
import time
from typing import Any

import ai_edge_litert.interpreter as peer
import numpy as np
import pytest
from engine_kit import engine, names, plan_of
from lite_kit import Build

import opwright as ow
from opwright import lite
from opwright.core import errors
from opwright.lite.compiled.specialised import MOST_KEPT, SpecialisedStep

F, I = np.float32, np.int32


def outputs_for(interpreter: Any, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a run, with the shapes that details show after it."""
    for detail, x in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    result = []
    for detail in interpreter.get_output_details():
        shape, official = tuple(detail["shape"]), isinstance(interpreter, peer.Interpreter)
        # the official interpreter has an error for a tensor without elements
        y = np.zeros(shape) if official and 0 in shape else interpreter.get_tensor(detail["index"])
        assert shape == np.shape(y)
        result.append(y)
    return result


def both(content: bytes, **more: Any) -> tuple[Any, Any]:
    result = lite.Interpreter(model_content=content, **more), peer.Interpreter(model_content=content)
    for one in result:
        one.allocate_tensors()
    return result


def compare(content: bytes, *runs: list[np.ndarray], native: bool = True, **more: Any) -> Any:
    """Every run gives what the official interpreter's gives; the last one is a native call, where it is to be."""
    with engine(verify=True):
        mine, official = both(content, **more)
        for feeds in runs:
            for a, b in zip(outputs_for(mine, feeds), outputs_for(official, feeds), strict=True):
                np.testing.assert_array_equal(a, b)
        assert (set(plan_of(mine)) == {"Opwright"}) == native
    return mine


def shaped(op: str, size: str = "INT32", **options: Any) -> bytes:
    """y = op(x, sizes) + 1 of sizes that are an input."""
    b = Build().tensor("x", (2, 6)).tensor("s", (2,), size).tensor("t", ()).tensor("y", ())
    b.tensor("one", (), "FLOAT32", F(1)).op(op, "x s", "t", **options).op("ADD", "t one", "y")
    return b.done("x s")


X = np.arange(12, dtype=F).reshape(2, 6)


def test_sizes_that_stay_and_sizes_that_change() -> None:
    sizes = [[3, 4], [3, 4], [3, 4], [4, 3], [4, 3], [4, 3], [3, 4], [4, 3], [2, -1], [2, -1], [12, 1], [3, 4]]
    compare(shaped("RESHAPE"), *([X + i, np.int32(s)] for i, s in enumerate(sizes)))
    runs = [[X, np.array([[1, 0], [2, k]], I)] for k in (3, 3, 3, 0, 0, 0, 3, 1, 1, 1, 0)]
    b = Build().tensor("x", (2, 6)).tensor("s", (2, 2), "INT32").tensor("y", ()).op("PAD", "x s", "y")
    compare(b.done("x s"), *runs)


def slices(size: list[int]) -> bytes:
    b = Build().tensor("x", (50, 6)).tensor("i", (2,), "INT32").tensor("size", type="INT32", data=np.int32(size))
    return b.tensor("t", ()).op("SLICE", "x i size", "t").tensor("y", ()).op("NEG", "t", "y").done("x i")


def test_rows_of_a_slice_to_the_end_share_a_plan() -> None:
    """More starts than plans are kept, with the end of the other axis as they all have it; then with another end."""
    x = np.arange(300, dtype=F).reshape(50, 6)
    starts = [[n, 0] for n in (*range(50), 7)]
    mine = compare(slices([1, -1]), *([x, np.int32(s)] for s in starts))
    (node,) = mine._subgraphs[0].execution_plan
    assert len(node.registration._all) == 1
    starts += [[3, 2], [4, 2], [5, 2], [49, 0], [1, 4], [2, 4], [3, 4], [0, 2]]
    mine = compare(slices([1, -1]), *([x, np.int32(s)] for s in starts))
    (node,) = mine._subgraphs[0].execution_plan
    assert len(node.registration._all) == 3
    starts = [[n % 3, n % 5] for n in range(60)]
    mine = compare(slices([-1, 2]), *([x, np.int32(s)] for s in starts))


def test_a_start_beyond_the_end_is_an_error_and_the_next_run_is_right() -> None:
    x = np.arange(300, dtype=F).reshape(50, 6)
    with engine(verify=True):
        interpreter = lite.Interpreter(model_content=slices([1, -1]))
        interpreter.allocate_tensors()
        for n in range(4):
            np.testing.assert_array_equal(outputs_for(interpreter, [x, np.int32([n, 0])])[0], -x[n : n + 1])
        with pytest.raises(RuntimeError, match="SLICE"):
            outputs_for(interpreter, [x, np.int32([50, 0])])
        np.testing.assert_array_equal(outputs_for(interpreter, [x, np.int32([49, 0])])[0], -x[49:])


def test_more_sizes_than_are_kept() -> None:
    runs = [[np.ones((), F), np.int32([n % (MOST_KEPT + 4), 2])] for n in range(120)] + 3 * [[F(2), np.int32([3, 2])]]
    b = Build().tensor("v", ()).tensor("s", (2,), "INT32").tensor("y", ()).op("FILL", "s v", "y")
    mine = compare(b.done("v s"), *runs)
    (node,) = mine._subgraphs[0].execution_plan
    assert 1 < len(node.registration._all) <= MOST_KEPT


def test_sizes_computed_among_the_nodes() -> None:
    """Sizes are the sum of two inputs: what the guard compares is written by the plan itself."""
    b = Build().tensor("x", (12,)).tensor("a", (2,), "INT32").tensor("b", (2,), "INT32").tensor("s", (2,), "INT32")
    b.op("ADD", "a b", "s").tensor("t", ()).op("RESHAPE", "x s", "t").tensor("y", ()).op("RELU", "t", "y")
    b.tensor("z", ()).tensor("axis", (1,), "INT32", np.int32([0])).op("SUM", "y axis", "z")
    pairs = [([1, 2], [1, 4]), ([0, 1], [2, 5]), ([1, 4], [3, -1]), ([0, 0], [4, 3]), ([1, 1], [3, 2])]
    runs = [[np.linspace(-i, i, 12, dtype=F), np.int32(p), np.int32(q)] for i, (p, q) in enumerate(pairs * 3)]
    compare(b.done("x a b", "y z"), *runs)


def test_elements_that_are_counted() -> None:
    """WHERE, what gathers by it and what follows; as many elements as there are."""
    b = Build().tensor("x", (4, 3)).tensor("zero", (), "FLOAT32", F(0)).tensor("m", (4, 3), "BOOL")
    b.op("GREATER", "x zero", "m").tensor("at", (), "INT64").op("WHERE", "m", "at")
    b.tensor("v", ()).op("GATHER_ND", "x at", "v").tensor("y", ()).op("MUL", "v v", "y")
    rng = np.random.default_rng(1)
    draws = [rng.standard_normal((4, 3)).astype(F) for _ in range(12)]
    runs = [[x] for x in (*draws, np.zeros((4, 3), F), *draws, np.zeros((4, 3), F), draws[3], draws[3])]
    compare(b.done(outputs="at y"), *runs)


@pytest.mark.parametrize("type", ["FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64"])
def test_different_elements(type: str) -> None:
    b = Build().tensor("x", (300,), type).tensor("y", (), type).tensor("i", (300,), "INT64")
    b.op("UNIQUE", "x", "y i", idx_out_type="INT64")
    rng = np.random.default_rng(2)
    draws = [rng.integers(0, top, 300).astype(type.lower()) for top in (2, 100, 5, 127)]
    if type == "FLOAT32":
        draws += [np.where(draws[2] > 2, F(-0.0), draws[2] * 0)]
    compare(b.done(outputs="y i"), *([x] for x in draws for _ in range(4)))


def test_different_elements_without_readers() -> None:
    """Nor does who runs the model: the places alone."""
    b = Build().tensor("x", (9,)).tensor("y", ()).tensor("i", (9,), "INT32").op("UNIQUE", "x", "y i")
    compare(b.done(outputs="i"), *([np.arange(9, dtype=F) % k] for k in (3, 3, 3, 5, 2, 9, 9)))


def test_different_elements_that_meet_in_a_table() -> None:
    """Numbers whose products with one constant share their high bits: sorting finds the different ones then."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    x = (np.arange(4000, dtype=np.uint64) * np.uint64(inverse)).view(np.int64)
    b = Build().tensor("x", (4000,), "INT64").tensor("y", (), "INT64").tensor("i", (4000,), "INT32")
    content = b.op("UNIQUE", "x", "y i").done(outputs="y i")
    compare(content, *[[x]] * 3, [x // 2], [x // 2], [x // 2])


RANGES: dict[str, list[tuple[float, float, float]]] = {
    "INT32": [(0, 10, 1), (5, -7, -3), (3, 3, 1), (0, 200, 1), (0, 190, 1), (0, 190, 1), (0, 5, 1), (2, 100, 7)],
    "INT64": [(0, 10, 1), (5, -7, -3), (-(2**62), 2**62, 2**60), (7, 7, -1), (2**62, -(2**62), -(2**58)), (1, 2, 9)],
    "FLOAT32": [(0, 1, 0.1), (0.1, 1.1, 0.1), (5, -5, -0.7), (2, 2, 1), (1e6, 1e6 + 9, 0.3), (0, 300, 1), (0, 280, 1)],
}


@pytest.mark.parametrize("type", RANGES)
def test_ranges_of_any_length(type: str) -> None:
    b = Build()
    for name in ("start", "limit", "delta"):
        b.tensor(name, (), type)
    b.tensor("r", (), type).op("RANGE", "start limit delta", "r", version=2 if type == "INT64" else 1)
    content = b.tensor("y", (), type).op("ADD", "r r", "y").done("start limit delta", "r y")
    dtype = np.dtype(type.lower())
    runs = [[dtype.type(v) for v in row] for row in RANGES[type] for _ in range(3)]
    mine = compare(content, *runs)
    for wrong in ((0, 5, 0), (0, 5, -1), (5, 0, 1)):
        with pytest.raises(errors.OpError, match="delta does not lead from start to limit"):
            outputs_for(mine, [dtype.type(v) for v in wrong])
    assert outputs_for(mine, runs[0])[0].shape == (len(np.arange(*runs[0])),)


@pytest.mark.parametrize("type", ["BOOL", "FLOAT32", "INT8", "UINT8", "INT32", "UINT32", "INT64"])
@pytest.mark.parametrize("shape", [(1,), (70,), (3, 1, 35), (2, 3, 2, 5)])
def test_places_of_all_types(type: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, shape).astype(type.lower())
    dense = np.ones(shape, type.lower())
    b = Build().tensor("x", shape, type).tensor("y", (), "INT64").op("WHERE", "x", "y")
    compare(b.done(), *([v] for v in (x, x, 1 - x if type != "BOOL" else ~x, dense, dense, dense)))


@pytest.mark.parametrize("type", ["INT32", "INT64"])
def test_shapes_broadcast_together(type: str) -> None:
    dtype = type.lower()
    b = Build().tensor("a", (3,), type).tensor("b", (2,), type).tensor("s", (3,), type).op("BROADCAST_ARGS", "a b", "s")
    b.tensor("x", (1, 3)).tensor("y", ()).op("BROADCAST_TO", "x s", "y", version=2)
    pairs = [([2, 1, 3], [4, 1]), ([2, 1, 1], [4, 3]), ([5, 4, 3], [1, 3]), ([0, 1, 3], [1, 1])]
    runs = [[np.array(p, dtype), np.array(q, dtype), F([[1, 2, 3]])] for p, q in pairs for _ in range(3)]
    mine = compare(b.done("a b x", "s y"), *runs)
    with pytest.raises(errors.OpError, match=r"BROADCAST_ARGS.*\n.*"):
        outputs_for(mine, [np.array([2, 4, 3], dtype), np.array([3, 3], dtype), F([[1, 2, 3]])])
    b = Build().tensor("a", (2,), type).tensor("b", (2,), type).tensor("s", (2,), type).op("BROADCAST_ARGS", "a b", "s")
    with engine():  # without what reads the sizes
        mine = lite.Interpreter(model_content=b.done("a b", "s"))
        mine.allocate_tensors()
        assert plan_of(mine) == ["Opwright"]
        for a, c in (([-2, 3], [1, 3]), ([-2, 3], [-2, 1]), ([1, 3], [-1, 3])):
            with pytest.raises(errors.InvalidArgumentError, match="negative size"):
                outputs_for(mine, [np.array(a, dtype), np.array(c, dtype)])


def numbers(*shape: int) -> np.ndarray:
    return (np.arange(int(np.prod(shape))) % 7 - 3).astype(F).reshape(shape)


COMPUTED: list[tuple[str, int, list[Any], dict[int, list[Any]], dict[str, Any]]] = [
    ("TILE", 1, [numbers(2, 3), None], {1: [[2, 1], [1, 3]]}, {}),
    ("TRANSPOSE", 1, [numbers(2, 3, 4), None], {1: [[2, 0, 1], [1, 0, 2]]}, {}),
    ("REVERSE_V2", 1, [numbers(2, 3), None], {1: [[0], [1]]}, {}),
    ("RESIZE_BILINEAR", 1, [numbers(1, 3, 4, 2), None], {1: [[6, 8], [12, 4]]}, {}),
    ("RESIZE_NEAREST_NEIGHBOR", 1, [numbers(1, 3, 4, 2), None], {1: [[6, 8], [2, 2]]}, {}),
    ("SLICE", 1, [numbers(4, 5), None, None], {1: [[1, 0], [0, 2]], 2: [[2, 3], [4, 1]]}, {}),
    ("STRIDED_SLICE", 1, [numbers(6, 5), None, None, np.int32([1, 2])], {1: [[1, 0], [0, 2]], 2: [[3, 5], [6, 4]]}, {}),
    ("MIRROR_PAD", 1, [numbers(3, 4), None], {1: [[[1, 1], [0, 2]], [[0, 1], [2, 2]]]}, {"mode": "REFLECT"}),
    ("PADV2", 2, [numbers(3, 4), None, F(9)], {1: [[[1, 1], [0, 2]], [[0, 1], [2, 2]]]}, {}),
    ("ONE_HOT", 1, [np.int32([0, 2, 1]), None, F(5), F(-1)], {1: [3, 4]}, {"axis": -1}),
    ("TOPK_V2", 2, [numbers(3, 6), None], {1: [2, 4]}, {}),
    ("SUM", 1, [numbers(3, 4), None], {1: [[0], [1]]}, {"keep_dims": True}),
    ("EXPAND_DIMS", 1, [numbers(3, 4), None], {1: [0, 2]}, {}),
    ("SCATTER_ND", 1, [np.int32([[0], [2]]), numbers(2, 3), None], {2: [[4, 3], [5, 3]]}, {}),
    (
        "SPACE_TO_BATCH_ND",
        1,
        [numbers(1, 4, 6, 1), None, None],
        {1: [[2, 2], [1, 3]], 2: [[[0, 0], [0, 0]], [[1, 1], [0, 0]]]},
        {},
    ),
    (
        "BATCH_TO_SPACE_ND",
        1,
        [numbers(4, 2, 3, 1), None, None],
        {1: [[2, 2], [1, 4]], 2: [[[0, 0], [0, 1]], [[1, 0], [0, 0]]]},
        {},
    ),
    ("UNSORTED_SEGMENT_SUM", 1, [numbers(4, 2), np.int32([0, 2, 1, 0]), None], {2: [3, 5]}, {}),
]
"""Operators with computed sizes, axes and places: version, operands, by place the values that a run gives."""


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: row[0])
def test_computed_sizes_axes_and_paddings(row: Any) -> None:
    op, version, operands, computed, options = row
    b = Build()
    for i, x in enumerate(operands):
        given = np.int32(computed[i][0]) if x is None else x
        b.tensor(f"x{i}", given.shape, "FLOAT32" if given.dtype == F else "INT32")
    outputs = "y z" if op == "TOPK_V2" else "y"
    b.tensor("y", ())
    if op == "TOPK_V2":
        b.tensor("z", (), "INT32")
    names = [f"x{i}" for i in range(len(operands))]
    content = b.op(op, " ".join(names), outputs, version=version, **options).done(" ".join(names), outputs)
    runs = [
        [np.int32(computed[i][k]) if x is None else x for i, x in enumerate(operands)] for k in (0, 0, 0, 1, 1, 1, 0, 1)
    ]
    compare(content, *runs)


def test_rows_put_at_places_of_a_shape_that_is_computed() -> None:
    """SPARSE_TO_DENSE and EMBEDDING_LOOKUP_SPARSE."""
    b = Build().tensor("at", (3, 2), "INT32").tensor("s", (2,), "INT32").tensor("v", (3,)).tensor("y", ())
    b.tensor("none", (), "FLOAT32", F(-1)).op("SPARSE_TO_DENSE", "at s v none", "y")
    table, ids, weights = np.arange(12, dtype=F).reshape(4, 3), np.int32([1, 3, 0]), F([2, 1, 0.5])
    b.tensor("ids", type="INT32", data=ids).tensor("weights", data=weights).tensor("table", data=table)
    b.tensor("z", ()).op("EMBEDDING_LOOKUP_SPARSE", "ids at s weights table", "z", combiner="MEAN")
    at = np.int32([[0, 0], [0, 2], [1, 1]])
    sizes = [[2, 3], [2, 3], [2, 3], [4, 5], [4, 5], [4, 5], [2, 4], [2, 3]]
    compare(b.done("at s v", "y z"), *([at, np.int32(s), F([i, 2, 3])] for i, s in enumerate(sizes)))


@pytest.mark.parametrize("background", [True, False])
def test_kernels_that_are_compiled_while_the_model_runs(background: bool) -> None:
    """And sizes that change meanwhile."""
    with engine(background=background):
        ops = names(5)
        b = Build().tensor("x", (12,)).tensor("s", (2,), "INT32").tensor("t0", ()).op("RESHAPE", "x s", "t0")
        for i, op in enumerate(ops):
            b.tensor(f"t{i + 1}", ()).op(op, f"t{i}", f"t{i + 1}")
        content = b.done("x s", f"t{len(ops)}")
        mine, official = both(content)
        for turn in range(2000):
            feeds = [np.linspace(-1, 1, 12, dtype=F), np.int32([(2, 6), (3, 4), (4, 3)][turn // 5 % 3])]
            np.testing.assert_allclose(outputs_for(mine, feeds)[0], outputs_for(official, feeds)[0], 1e-5, 1e-6)
            if plan_of(mine) == ["Opwright"]:
                break
            time.sleep(0.005 if background else 0)
        else:
            pytest.fail("the nodes have not been taken")


def test_random_numbers_of_a_shape_that_is_computed_take_turns() -> None:
    """Their node stays with the interpreter: a plan that stops would have drawn."""
    b = Build().tensor("s", (2,), "INT32").tensor("r", ()).op("RANDOM_UNIFORM", "s", "r", seed=3, seed2=5)
    content = b.tensor("y", ()).op("NEG", "r", "y").done("s")
    with engine(verify=True):
        mine = lite.Interpreter(model_content=content)
        plain = lite.Interpreter(model_content=content, experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF)
        for one in (mine, plain):
            one.allocate_tensors()
        for sizes in 4 * [[2, 3]] + 4 * [[4, 3]] + 3 * [[2, 3], [4, 3]]:
            np.testing.assert_array_equal(*(outputs_for(one, [np.int32(sizes)])[0] for one in (mine, plain)))
        assert plan_of(mine) == ["RANDOM_UNIFORM", "Opwright"]


WRONG = [([5, 3], "12"), ([-1, -1], "one -1"), ([-3, -4], ""), ([2**31 - 1, 2**31 - 1], "")]


@pytest.mark.parametrize("sizes", [s for s, _ in WRONG])
def test_wrong_sizes_are_the_operators_error_and_the_next_run_is_right(sizes: list[int]) -> None:
    with engine():
        mine, official = both(shaped("RESHAPE"))
        plain = lite.Interpreter(
            model_content=shaped("RESHAPE"), experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF
        )
        plain.allocate_tensors()
        right = [X, np.int32([4, 3])]
        for _ in range(4):
            outputs_for(mine, right)
        told = []
        for one in (mine, plain):
            with pytest.raises(RuntimeError) as error:
                outputs_for(one, [X, np.int32(sizes)])
            told.append(str(error.value).partition("\n  tensors"))
        assert told[0][0] == told[1][0]
        assert "Node number 0 (RESHAPE)" in told[0][2]
        np.testing.assert_array_equal(outputs_for(mine, right)[0], outputs_for(official, right)[0])


def test_a_size_too_large_for_the_limit() -> None:
    b = Build().tensor("v", ()).tensor("s", (2,), "INT32").tensor("y", ()).op("FILL", "s v", "y")
    with engine(max_activation_bytes=1 << 20):
        mine, _ = both(b.done("v s"))
        for _ in range(3):
            outputs_for(mine, [F(1), np.int32([2, 3])])
        with pytest.raises(errors.ResourceExhaustedError, match="max_activation_bytes"):
            outputs_for(mine, [F(1), np.int32([1 << 15, 1 << 15])])
        assert outputs_for(mine, [F(3), np.int32([2, 3])])[0].tolist() == [[3] * 3] * 2


def test_a_stopped_plan_needs_no_memory_for_its_results_again() -> None:
    """Keys out of order stop the plan; the interpreter's kernel then writes to the memory that was planned."""
    b = Build().tensor("lookup", (1024,), "INT32").tensor("key", (3,), "INT32").tensor("value", (3, 64))
    b.tensor("y", (1024, 64)).tensor("hits", (1024,), "UINT8").op("HASHTABLE_LOOKUP", "lookup key value", "y hits")
    with engine(max_activation_bytes=3 << 17):  # results are 2^18 bytes
        mine, official = both(b.done("lookup key value"))
        for key in ([1, 2, 3], [3, 1, 2]):
            arrays = [np.full(1024, 7, np.int32), np.int32(key), np.ones((3, 64), F)]
            for ours, theirs in zip(outputs_for(mine, arrays), outputs_for(official, arrays), strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_inputs_resized_before_and_after() -> None:
    """A slice as long as an input says, of an input that is resized."""
    b = Build().tensor("x", (1, 6), shape_signature=[-1, 6]).tensor("n", (2,), "INT32").tensor("y", ())
    b.tensor("at", (2,), "INT32", np.int32([0, 1])).op("SLICE", "x at n", "y")
    with engine():
        mine, official = both(b.done("x n"))
        for rows in (1, 4, 2):
            x = np.arange(6 * rows, dtype=F).reshape(rows, 6)
            for one in (mine, official):
                one.resize_tensor_input(one.get_input_details()[0]["index"], x.shape)
                one.allocate_tensors()
            for n in (2, 2, 2, 5, 5, 5, 2):
                feeds = [x + n, np.int32([rows, n])]
                np.testing.assert_array_equal(outputs_for(mine, feeds)[0], outputs_for(official, feeds)[0])


def test_a_node_without_a_kernel_in_between() -> None:
    """Of strings, which the interpreter's own kernel handles: plans before it and behind it."""
    b = Build().tensor("x", (6,)).tensor("s", (2,), "INT32").tensor("t", ()).op("RESHAPE", "x s", "t")
    b.tensor("w", (), "STRING", np.array(b"w", object)).tensor("f", (), "STRING").op("FILL", "s w", "f")
    b.tensor("fs", (2,), "INT32").op("SHAPE", "f", "fs", out_type="INT32")
    b.tensor("y", ()).op("BROADCAST_TO", "t fs", "y", version=2)
    runs = [[np.arange(6, dtype=F), np.int32(s)] for s in ([2, 3], [2, 3], [2, 3], [3, 2], [3, 2], [3, 2], [2, 3])]
    compare(b.done("x s"), *runs, native=False)


def test_threads_and_interpreters() -> None:
    content, wrong = shaped("RESHAPE"), []
    with engine():

        def run(seed: int) -> None:
            mine = lite.Interpreter(model_content=content, num_threads=2)
            mine.allocate_tensors()
            for i in range(40):
                sizes = [(3, 4), (2, 6), (12, 1)][(i // 3 + seed) % 3]
                if not np.array_equal(outputs_for(mine, [X * i, np.int32(sizes)])[0], (X * i).reshape(sizes) + 1):
                    wrong.append((seed, i))

        threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_profiles_and_watched_inputs() -> None:
    with engine():
        mine, _ = both(shaped("RESHAPE"))
        for _ in range(3):
            outputs_for(mine, [X, np.int32([4, 3])])
        assert {row["operator"] for row in mine.profile(3)} == {"RESHAPE", "ADD"}
        with ow.flags(check_inputs=True):
            np.testing.assert_array_equal(outputs_for(mine, [X, np.int32([6, 2])])[0], X.reshape(6, 2) + 1)


def test_views_that_are_held() -> None:
    with engine():
        mine, _ = both(shaped("RESHAPE"))
        view = mine.tensor(mine.get_input_details()[0]["index"])()
        for n in (1, 2, 3, 4, 6):
            view[...] = X * n
            mine.set_tensor(mine.get_input_details()[1]["index"], np.int32([n, -1]))
            mine.invoke()
            np.testing.assert_array_equal(
                mine.get_tensor(mine.get_output_details()[0]["index"]), (X * n).reshape(n, -1) + 1
            )


def test_an_observer_sees_each_node_of_the_plan() -> None:
    with engine():
        mine, _ = both(shaped("RESHAPE"))
        for _ in range(3):
            outputs_for(mine, [X, np.int32([4, 3])])
        subgraph = mine._subgraphs[0]
        assert isinstance(subgraph.steps[0], SpecialisedStep)
        seen: list[Any] = []
        mine._ownership.drop()
        subgraph.observe(lambda node, before: seen.append((node.name, before)))
        outputs_for(mine, [X, np.int32([4, 3])])
        assert seen == [("Opwright", False), ("Opwright", True)]


def counted_branch() -> bytes:
    """y: where c, how many elements of x are above 0, as [count, 1]; else [0, 0]."""
    b = Build().tensor("c", (), "BOOL").tensor("x", (7,)).tensor("y", (2,), "INT32")
    b.node("IF", "c x", "y", then_subgraph_index=1, else_subgraph_index=2).ends("c x", "y")
    b.subgraph("then").tensor("x", (7,)).tensor("zero", data=F(0)).tensor("m", (7,), "BOOL")
    b.op("GREATER", "x zero", "m").tensor("at", (), "INT64").op("WHERE", "m", "at")
    b.tensor("y", (2,), "INT32").op("SHAPE", "at", "y", out_type="INT32")
    b.ends("x", "y").subgraph("else").tensor("x", (7,)).tensor("none", type="INT32", data=np.int32([0, 0]))
    b.tensor("y", (2,), "INT32").op("ADD", "none none", "y").ends("x", "y")
    return b.done(None)


def test_a_branch_that_counts() -> None:
    content, rng = counted_branch(), np.random.default_rng(4)
    with engine(verify=True):
        mine, official = both(content)
        for turn in range(24):
            feeds = [np.array(turn % 4 != 3), rng.standard_normal(7).astype(F)]
            np.testing.assert_array_equal(outputs_for(mine, feeds)[0], outputs_for(official, feeds)[0])
        assert "Opwright" in plan_of(mine, 1)


def reshaping_loop() -> bytes:
    """y: x, of which each of n turns adds 1 to what is reshaped to s and back."""
    b = Build().tensor("n", (), "INT32").tensor("s", (2,), "INT32").tensor("x", (2, 3))
    for name, shape, type in (("i", (), "INT32"), ("s2", (2,), "INT32"), ("y", (2, 3), "FLOAT32")):
        b.tensor(name, shape, type)
    b.node("WHILE", "n s x", "i s2 y", cond_subgraph_index=1, body_subgraph_index=2).ends("n s x", "y")
    for name in ("cond", "body"):
        b.subgraph(name).tensor("n", (), "INT32").tensor("s", (2,), "INT32").tensor("x", (2, 3))
        b.tensor("zero", type="INT32", data=np.int32(0)).tensor("one", type="INT32", data=np.int32(1))
        if name == "cond":
            b.tensor("more", (), "BOOL").op("GREATER", "n zero", "more").ends("n s x", "more")
    b.tensor("left", (), "INT32").op("SUB", "n one", "left").tensor("t", ()).op("RESHAPE", "x s", "t")
    b.tensor("step", data=F(1)).tensor("u", ()).op("ADD", "t step", "u")
    b.tensor("whole", type="INT32", data=np.int32([2, 3])).tensor("y", (2, 3)).op("RESHAPE", "u whole", "y")
    return b.ends("n s x", "left s y").done(None)


def test_a_loop_whose_turns_have_sizes_of_their_own() -> None:
    content = reshaping_loop()
    with engine(verify=True):
        mine, official = both(content)
        for turn in range(16):
            feeds = [np.int32(turn % 5), np.int32([(3, 2), (6, 1)][turn // 6 % 2]), np.full((2, 3), turn, F)]
            np.testing.assert_array_equal(outputs_for(mine, feeds)[0], outputs_for(official, feeds)[0])
        assert "Opwright" in plan_of(mine, 2)
