"""Sizes that a run decides: values of inputs that shapes follow from, and rows that operators count."""

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
