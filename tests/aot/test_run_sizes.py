"""Sizes that a run decides: values of inputs that shapes follow from, rows that operators count, branches and
iterations."""

import json

import numpy as np
import pytest
from test_c_source import compiled, has_gcc, outputs_of
from test_web import needs_node, node

import opwright as ow
from opwright import aot
from opwright.core.errors import InvalidArgumentError, OpError, UnimplementedError

DIMS = {"dims[0]": (1, 6), "dims[1]": (1, 6)}
WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def converted(function):
    return ow.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], function).convert()


@pytest.fixture(scope="module")
def reshaping():
    """A model whose shapes are the values of an input."""

    @ow.function(input_signature=[ow.TensorSpec([12], ow.float32, name="x"), ow.TensorSpec([2], ow.int32, name="dims")])
    def model(x, dims):
        y = ow.reshape(x, dims)
        return {"a": y * 2, "b": ow.reduce_sum(y, 1), "c": ow.fill(dims, 3.5)}

    return converted(model)


@pytest.fixture(scope="module")
def selecting():
    """A model that reads as many rows as two operators count, the second of what follows the first."""

    @ow.function(input_signature=[ow.TensorSpec([4, 4], ow.float32, name="x")])
    def model(x):
        keep = ow.where(ow.reduce_sum(x, 1) > 0)
        y = ow.tanh(ow.gather_nd(x, keep) @ WEIGHTS)
        again = ow.gather(y, ow.reshape(ow.where(y[:, 0] > 0), [-1]))
        return {"a": y, "b": again, "c": ow.reduce_sum(y), "d": keep}

    return converted(model)


def reshaped(x, dims):
    y = x.reshape(dims).astype(np.float64)
    return [y * 2, y.sum(1), np.full(dims, 3.5)]


def selected(x):
    keep = np.argwhere(x.sum(1, dtype=np.float64) > 0)
    y = np.tanh(x[keep[:, 0]].astype(np.float64) @ WEIGHTS)
    return [y, y[y[:, 0] > 0], y.sum(), keep]


def images():
    """Inputs of which none to all rows are kept."""
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(4, 4)) + shift).astype(np.float32) for shift in (-5, 0, 0, 0.4, -0.4, 5)]


def check(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_values_of_inputs_are_sizes(reshaping, tmp_path):
    aot.build(reshaping, out=tmp_path, name="m", bounds=DIMS)
    run, x = aot.load(tmp_path), np.arange(12, dtype=np.float32)
    for dims in ((2, 6), (6, 2), (3, 4)):
        check(run(x=x, dims=np.array(dims, np.int32)).values(), reshaped(x, dims))
    for dims in ((12, 1), (5, 5), (0, 4), (-1, 4)):
        with pytest.raises(InvalidArgumentError, match="outside of its bounds, or none that the model can have"):
            run(x=x, dims=np.array(dims, np.int32))


def test_counted_rows_are_sizes(selecting, tmp_path):
    library = aot.build(selecting, out=tmp_path, name="m")
    run = aot.load(tmp_path)
    counts = set()
    for x in images():
        outputs = [*run(x).values()]
        check(outputs, selected(x))
        counts.add((len(outputs[0]), len(outputs[1])))
    assert (0, 0) in counts
    assert len(counts) >= 4
    assert "/* Where:0: 0 to 4 */" in (library.folder / "m.h").read_text()


def test_rows_that_no_node_reads_need_no_bounds(tmp_path):
    @ow.function(input_signature=[ow.TensorSpec([2, 100], ow.int32, name="x")])
    def places(x):
        return {"places": ow.where(x > 90), "values": ow.unique(x[0])[0]}

    run = aot.load(aot.build(places, out=tmp_path, name="m").folder)
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, 100, (2, 100), np.int32)
        outputs = run(x)
        np.testing.assert_array_equal(outputs["places"], np.argwhere(x > 90))
        np.testing.assert_array_equal(np.sort(outputs["values"]), np.unique(x[0]))


@has_gcc
def test_sizes_of_a_run_in_c_source(reshaping, selecting, tmp_path):
    aot.build(reshaping, out=tmp_path / "r", name="m", format="c", bounds=DIMS)
    x = np.arange(12, dtype=np.float32)
    library = compiled(tmp_path / "r", flags=("-O0",))
    for dims in ((2, 6), (3, 4)):
        check(outputs_of(tmp_path / "r", library, [x, np.array(dims, np.int32)]), reshaped(x, dims))
    outputs_of(tmp_path / "r", library, [x, np.array((5, 5), np.int32)], status=6)
    aot.build(selecting, out=tmp_path / "s", name="m", format="c", bounds={"Where:0": (0, 3)})
    library = compiled(tmp_path / "s", flags=("-O0",))
    statuses = set()
    for x in images():
        expected = selected(x)
        status = 6 if len(expected[0]) > 3 else 0
        outputs = outputs_of(tmp_path / "s", library, [x], status=status)
        if not status:
            check(outputs, expected)
        statuses.add(status)
    assert statuses == {0, 6}


@pytest.mark.slow
@needs_node
def test_sizes_of_a_run_in_web_pages(reshaping, selecting, tmp_path):
    @ow.function(input_signature=[ow.TensorSpec([None, 4], ow.float32, name="x")])
    def layer(x):
        return {"y": ow.tanh(x @ WEIGHTS)}

    aot.build(reshaping, "wasm32-simd128", tmp_path, name="m", bounds=DIMS)
    aot.build(selecting, "wasm32-simd128", tmp_path, name="s")
    aot.build(layer, "wasm32-simd128", tmp_path, name="layer", bounds={"batch": (1, 3)})
    np.concatenate([x.reshape(-1) for x in images()]).tofile(tmp_path / "x.bin")
    printed = node(
        """
        import { readFileSync } from "node:fs";
        import * as m from "./m.mjs";
        import * as s from "./s.mjs";
        import * as layer from "./layer.mjs";
        const facts = (results) => Object.values(results).map((x) => [x.shape ?? [], Array.from(x, Number)]);
        const words = (call) => { try { call(); return "none"; } catch (error) { return String(error); } };
        const reshape = await m.load(), x = Float32Array.from({ length: 12 }, (_, i) => i);
        const shapes = [[2, 6], [3, 4]].map((dims) => facts(reshape.run({ x, dims: Int32Array.from(dims) })));
        const select = await s.load(), images = new Float32Array(new Uint8Array(readFileSync("x.bin")).buffer);
        const rows = [0, 1, 2, 3, 4, 5].map((i) => facts(select.run({ x: images.slice(16 * i, 16 * i + 16) })));
        const sized = await layer.load();
        const batch = facts(sized.run({ x: images.slice(0, 8) }, undefined, { batch: 2 }));
        const errors = [
          words(() => reshape.run({ x, dims: Int32Array.of(5, 5) })),
          words(() => sized.run({ x: images.slice(0, 8) })),
          words(() => sized.run({ x: images.slice(0, 16) }, undefined, { batch: 4 })),
          words(() => sized.run({ x: images.slice(0, 8) }, undefined, { rows: 2 })),
        ];
        console.log(JSON.stringify({ shapes, rows, batch, errors }));
        """,
        tmp_path,
    )
    facts = json.loads(printed)

    def arrays(results):
        return [np.array(values).reshape(shape) for shape, values in results]

    for dims, results in zip(((2, 6), (3, 4)), facts["shapes"], strict=True):
        check(arrays(results), reshaped(np.arange(12, dtype=np.float32), dims))
    for x, results in zip(images(), facts["rows"], strict=True):
        check(arrays(results), selected(x))
    (y,) = arrays(facts["batch"])
    check([y], [np.tanh(images()[0][:2].astype(np.float64) @ WEIGHTS)])
    words = ("outside of its bounds", "Float32Array(12)", "batch is 4; wanted 1 to 3", "no size rows")
    for word, error in zip(words, facts["errors"], strict=True):
        assert word in error
    assert "batch?: number" in (tmp_path / "layer.d.ts").read_text()
    assert "a: Float32Array & { shape: number[] };" in (tmp_path / "s.d.ts").read_text()


@pytest.mark.parametrize(
    ("bounds", "error", "words"),
    [
        ({}, UnimplementedError, r"INPUT\[0\]=1..8"),
        ({"dims[0]": (1, 3)}, InvalidArgumentError, r"dims\[0\], dims\[1\]"),
        ({"dims[0]": (1, 9), "dims[1]": (1, 9)}, InvalidArgumentError, "at most 64"),
        ({"dims[0]": (3, 1), "dims[1]": (1, 9)}, InvalidArgumentError, "least <= most"),
        ({"dims[0]": (5, 5), "dims[1]": (5, 5)}, OpError, "25"),
        (DIMS | {"x[0]": (0, 1)}, InvalidArgumentError, r"x\[0\]"),
    ],
)
def test_bounds_of_values_that_do_not_hold_are_named(bounds, error, words, reshaping, tmp_path):
    with pytest.raises(error, match=words):
        aot.build(reshaping, out=tmp_path, name="m", bounds=bounds)


def test_many_counted_rows_need_bounds(tmp_path):
    @ow.function(input_signature=[ow.TensorSpec([100], ow.float32, name="x")])
    def model(x):
        return ow.gather_nd(x, ow.where(x > 0)) * 2

    with pytest.raises(UnimplementedError, match=r"Where:0': \(0, 16\)"):
        aot.build(model, out=tmp_path, name="m")
    run = aot.load(aot.build(model, out=tmp_path, name="m", bounds={"Where:0": (3, 5)}).folder)
    for count in (3, 5):
        np.testing.assert_array_equal(run(np.where(np.arange(100) < count, 1.5, -1).astype(np.float32))["output_0"], 3)
    with pytest.raises(InvalidArgumentError, match="outside of its bounds"):
        run(np.full(100, -1, np.float32))


@pytest.fixture(scope="module")
def branching():
    """A model whose branches have results of other shapes, and errors of their own."""

    @ow.function(input_signature=[ow.TensorSpec([2, 4], ow.float32, name="x"), ow.TensorSpec([], ow.int32, name="row")])
    def model(x, row):
        y = ow.cond(row < 2, lambda: ow.gather(x, [row, row, row]), lambda: ow.concat([x, x + 1, x - 1], 0)[1:])
        return {"a": ow.tanh(y @ WEIGHTS), "b": ow.shape(y), "c": y}

    return converted(model)


def branched(x, row):
    y = x[[row] * 3] if row < 2 else np.concatenate([x, x + 1, x - 1])[1:]
    return [np.tanh(y.astype(np.float64) @ WEIGHTS), np.array(y.shape), y]


@pytest.fixture(scope="module")
def growing():
    """A model whose loop adds a row in each iteration."""

    @ow.function(input_signature=[ow.TensorSpec([1, 4], ow.float32, name="x"), ow.TensorSpec([], ow.int32, name="n")])
    def model(x, n):
        def body(i, y):
            return i + 1, ow.concat(
                [y, ow.reduce_sum(y, 0, keepdims=True) / ow.cast(ow.shape(y)[0] + 1, ow.float32)], 0
            )

        shapes = [ow.TensorShape([]), ow.TensorShape([None, 4])]
        i, y = ow.while_loop(lambda i, y: i < n, body, [ow.constant(0), x], shape_invariants=shapes)
        return {"a": ow.tanh(y @ WEIGHTS), "i": i}

    return converted(model)


ITERATIONS = {"while.1:0": (0, 5)}


def grown(x, n):
    y = x.astype(np.float64)
    for _ in range(n):
        y = np.concatenate([y, y.sum(0, keepdims=True) / (len(y) + 1)])
    return [np.tanh(y @ WEIGHTS), np.array(max(n, 0))]


ROWS, ROW = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4), np.linspace(-1, 2, 4, dtype=np.float32)[None]


def test_branches_have_results_of_other_shapes(branching, tmp_path):
    """The error of a branch is that of runs that take it: the other one gathers a row that there is not."""
    run = aot.load(aot.build(branching, out=tmp_path, name="m").folder)
    for row in (0, 2, 1, 7):
        check(run(x=ROWS, row=np.int32(row)).values(), branched(ROWS, row))
    with pytest.raises(InvalidArgumentError, match="points outside"):
        run(x=ROWS, row=np.int32(-1))


def test_branches_in_branches_have_shapes_of_their_own(tmp_path):
    @ow.function(input_signature=[ow.TensorSpec([4], ow.float32, name="x"), ow.TensorSpec([], ow.int32, name="k")])
    def model(x, k):
        y = ow.switch_case(k, [lambda n=n: x[:n] * 2 for n in (1, 3, 2)])
        return {"a": y, "b": ow.reduce_sum(ow.cond(k > 1, lambda: y, lambda: ow.concat([y, y], 0)))}

    run = aot.load(aot.build(converted(model), out=tmp_path, name="m").folder)
    for k, n in ((0, 1), (1, 3), (2, 2), (-1, 2), (9, 2)):
        y = ROW[0, :n] * 2
        check(run(x=ROW[0], k=np.int32(k)).values(), [y, y.sum() * (1 if k > 1 else 2)])


def test_iterations_change_the_shapes_of_variables(growing, tmp_path):
    with pytest.raises(UnimplementedError, match=r"while.1:0': \(0, 16\)"):
        aot.build(growing, out=tmp_path, name="m")
    run = aot.load(aot.build(growing, out=tmp_path, name="m", bounds=ITERATIONS).folder)
    for n in (3, 0, 5, -1, 1):
        check(run(x=ROW, n=np.int32(n)).values(), grown(ROW, n))
    with pytest.raises(InvalidArgumentError, match="outside of its bounds"):
        run(x=ROW, n=np.int32(6))


def test_ranges_of_floats_have_bounds(tmp_path):
    @ow.function(input_signature=[ow.TensorSpec([3], ow.float32, name="x")])
    def model(x):
        numbers = ow.range(x[0], x[1], x[2])
        return {"a": ow.reduce_sum(numbers), "b": numbers + 1}

    content = converted(model)
    with pytest.raises(UnimplementedError, match=r"range:0': \(0, 16\)"):
        aot.build(content, out=tmp_path, name="m")
    run = aot.load(aot.build(content, out=tmp_path, name="m", bounds={"range:0": (0, 40)}).folder)
    for start, limit, delta in ((0, 40, 1), (1, 2, 0.25), (3, 3, 1), (2, -2, -0.5)):
        expected = np.arange(start, limit, delta)
        check(run(np.array([start, limit, delta], np.float32)).values(), [expected.sum(), expected + 1])
    with pytest.raises(InvalidArgumentError, match="more numbers than its bound"):
        run(np.array([0, 41, 1], np.float32))


@pytest.mark.slow
@has_gcc
def test_branches_and_iterations_in_c_source(branching, growing, tmp_path):
    aot.build(branching, out=tmp_path / "b", name="m", format="c")
    library = compiled(tmp_path / "b", flags=("-O0",))
    for row in (0, 7):
        check(outputs_of(tmp_path / "b", library, [ROWS, np.array(row, np.int32)]), branched(ROWS, row))
    outputs_of(tmp_path / "b", library, [ROWS, np.array(-1, np.int32)], status=1)
    aot.build(growing, out=tmp_path / "g", name="m", format="c", bounds=ITERATIONS)
    library = compiled(tmp_path / "g", flags=("-O0",))
    for n in (0, 4):
        check(outputs_of(tmp_path / "g", library, [ROW, np.array(n, np.int32)]), grown(ROW, n))
    outputs_of(tmp_path / "g", library, [ROW, np.array(6, np.int32)], status=6)


class Selection(ow.Module):
    """Counts its runs, and adds up how many elements it has selected."""

    def __init__(self):
        self.runs, self.total = ow.Variable(0), ow.Variable(0.0)

    @ow.function(input_signature=[ow.TensorSpec([6], ow.float32, name="x")])
    def select(self, x):
        y = ow.gather_nd(x, ow.where(x > 0))
        y = ow.cond(ow.reduce_sum(y) > 3, lambda: ow.concat([y, y], 0), lambda: y + 1)
        self.runs.assign_add(1)
        self.total.assign_add(ow.cast(ow.size(y), ow.float32))
        return {"a": y, "b": self.runs.read_value(), "c": self.total.read_value()}


def test_variables_change_once_a_run(tmp_path):
    """Plans for other numbers stop before they store any."""
    selection = Selection()
    run = aot.load(aot.build({"select": selection.select}, out=tmp_path, name="m").folder)
    total = 0
    for n, (low, high) in enumerate(((-1, 2), (0.5, 3), (-3, -1), (-1, 4)), 1):
        x = np.linspace(low, high, 6, dtype=np.float32)
        y = x[x > 0]
        y = np.concatenate([y, y]) if y.sum() > 3 else y + 1
        total += y.size
        check(run(x).values(), [y, np.array(n), np.array(total)])
    run.reset()
    check([run(x)["b"]], [np.array(1)])
