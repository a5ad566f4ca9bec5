"""What follows from constants alone is computed once: plans have no steps that convert weights, and the answers are the
official ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine_kit import engine, plan_of
from foreign import HERE
from lite_kit import Build, run

from opwright import lite
from opwright.compiler.loops.ops import Contract
from opwright.core import flags
from opwright.lite.format import objects
from opwright.lite.interpreter import OpResolverType
from thorough import some

peer = pytest.importorskip("ai_edge_litert.interpreter")
RNG = np.random.default_rng(3)


def halves(b: Build, name: str, *shape: int) -> str:
    """A constant of float16, converted."""
    b.tensor(f"{name}.f16", type="FLOAT16", data=RNG.normal(0, 0.1, shape).astype(np.float16)).tensor(name, shape)
    b.op("DEQUANTIZE", f"{name}.f16", name)
    return name


def bytes_(b: Build, name: str, *shape: int, axis: int | None = None) -> str:
    """A constant of int8 with a scale, or one for each channel, converted."""
    count = 1 if axis is None else shape[axis]
    scales = RNG.uniform(0.001, 0.01, count).astype(np.float32)
    q = objects.QuantizationParameters(
        scale=scales, quantized_dimension=axis or 0, zero_point=[3] if axis is None else [0] * count
    )
    b.tensor(f"{name}.i8", type="INT8", data=RNG.integers(-128, 128, shape).astype(np.int8), quantization=q)
    b.tensor(name, shape).op("DEQUANTIZE", f"{name}.i8", name)
    return name


def ints(b: Build, name: str, *values: int) -> str:
    b.tensor(name, type="INT32", data=np.int32(values))
    return name


def _models():
    def model(shape, y, write):
        b = Build().tensor("x", shape).tensor("y", y)
        write(b)
        return b.done("x", "y"), shape

    strides = {"stride_h": 1, "stride_w": 1}

    def dense(b, w):
        b.op("FULLY_CONNECTED", f"x {w} {halves(b, 'b', 29)}", "y")

    def conv(b, w):
        b.op("CONV_2D", f"x {w} {halves(b, 'b', 40)}", "y", **strides)

    def depthwise(b):
        weights = f"{halves(b, 'w', 1, 3, 3, 24)} {halves(b, 'b', 24)}"
        b.op("DEPTHWISE_CONV_2D", f"x {weights}", "y", depth_multiplier=1, **strides)

    def transposed(b, n, f):
        sizes, weights = ints(b, "s", 1, 2 * n, 2 * n, f), halves(b, "w", f, 3, 3, 6)
        b.op("TRANSPOSE_CONV", f"{sizes} {weights} x {halves(b, 'b', f)}", "y", stride_h=2, stride_w=2, version=3)

    for rows in (1, 2, 3, 17):
        yield f"dense {rows}", *model((rows, 37), (rows, 29), lambda b: dense(b, halves(b, "w", 29, 37)))
    yield "dense of int8", *model((3, 37), (3, 29), lambda b: dense(b, bytes_(b, "w", 29, 37)))
    for k, c in ((1, 5), (3, 5), (3, 48)):
        image = (1, 9, 9, c)
        yield f"conv {k} {c}", *model(image, (1, 9, 9, 40), lambda b, k=k, c=c: conv(b, halves(b, "w", 40, k, k, c)))
    yield "conv of int8", *model((1, 9, 9, 5), (1, 9, 9, 40), lambda b: conv(b, bytes_(b, "w", 40, 3, 3, 5, axis=0)))
    yield "depthwise", *model((1, 9, 9, 24), (1, 9, 9, 24), depthwise)
    for n, f in ((4, 12), (4, 3), (1, 12)):
        image, result = (1, n, n, 6), (1, 2 * n, 2 * n, f)
        yield f"transposed {n} {f}", *model(image, result, lambda b, n=n, f=f: transposed(b, n, f))
    yield "product", *model((2, 5, 7), (2, 5, 11), lambda b: b.op("BATCH_MATMUL", f"x {halves(b, 'w', 2, 7, 11)}", "y"))
    yield "sum", *model((3, 40), (3, 40), lambda b: b.op("ADD", f"x {halves(b, 'w', 40)}", "y"))
    yield "slope", *model((1, 4, 4, 9), (1, 4, 4, 9), lambda b: b.op("PRELU", f"x {halves(b, 'w', 1, 1, 9)}", "y"))

    def turned(b):
        halves(b, "w", 37, 29)
        b.tensor("v", (29, 37)).op("TRANSPOSE", f"w {ints(b, 'p', 1, 0)}", "v").op("FULLY_CONNECTED", "x v _", "y")

    def reshaped(b):
        halves(b, "w", 29, 1, 37)
        b.tensor("v", (29, 37)).op("RESHAPE", f"w {ints(b, 'p', 29, 37)}", "v").op("FULLY_CONNECTED", "x v _", "y")

    yield "transposed weights", *model((5, 37), (5, 29), turned)
    yield "reshaped weights", *model((5, 37), (5, 29), reshaped)


MODELS = {name: rest for name, *rest in _models()}


def official(content, x):
    kernels = peer.OpResolverType.BUILTIN_REF
    return run(peer.Interpreter(model_content=content, experimental_op_resolver_type=kernels), x)


@pytest.mark.parametrize("target", HERE)
def test_conversions_of_weights_are_no_steps(target):
    names = MODELS if target == HERE[0] else some([*MODELS])
    for name, (content, shape) in ((name, MODELS[name]) for name in names):
        x = RNG.normal(size=shape).astype(np.float32)
        with engine(verify=True, target=target):
            interpreter = lite.Interpreter(model_content=content)
            (actual,) = run(interpreter, [x])
        assert plan_of(interpreter) == ["Opwright"], name
        steps = interpreter._subgraphs[0].execution_plan[0].registration.plan.steps
        origins = {step.op.origin[0].split()[0] for step in steps}
        assert not origins & {"DEQUANTIZE", "TRANSPOSE", "RESHAPE"}, (name, origins)
        (expected,) = official(content, [x])
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5, err_msg=name)


def test_a_convolution_in_groups_of_one_channel_is_one_step():
    """Products of each group would take a step for each of the 24 channels."""
    b = Build().tensor("x", (1, 9, 8, 24)).tensor("y", (1, 9, 8, 48))
    content = b.op(
        "CONV_2D", f"x {halves(b, 'w', 48, 3, 3, 1)} {halves(b, 'b', 48)}", "y", stride_h=1, stride_w=1
    ).done("x", "y")
    x = RNG.normal(size=(1, 9, 8, 24)).astype(np.float32)
    with engine(verify=True):
        interpreter = lite.Interpreter(model_content=content)
        (actual,) = run(interpreter, [x])
    (step,) = interpreter._subgraphs[0].execution_plan[0].registration.plan.steps
    assert "grouped" in (step.name if hasattr(step, "name") else step.code.name)
    (expected,) = official(content, [x])
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


def test_a_converted_constant_that_is_a_result_too_is_written():
    b = Build().tensor("x", (3, 37)).tensor("y", (3, 29))
    halves(b, "w", 29, 37)
    content = b.op("FULLY_CONNECTED", "x w _", "y").done("x", "y w")
    x = RNG.normal(size=(3, 37)).astype(np.float32)
    with engine(verify=True):
        actual = run(lite.Interpreter(model_content=content), [x])
    for a, expected in zip(actual, official(content, [x]), strict=True):
        np.testing.assert_allclose(a, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("rows", [2, 50])
def test_rows_of_a_converted_table(rows):
    """Few rows are converted when they are read; of many the table is."""
    b = Build().tensor("i", (rows,), "INT32").tensor("y", (rows, 6))
    halves(b, "w", 20, 6)
    content = b.op("GATHER", "w i", "y").done("i")
    i = RNG.integers(0, 20, rows).astype(np.int32)
    with engine(verify=True):
        interpreter = lite.Interpreter(model_content=content)
        (result,) = run(interpreter, [i])
    assert plan_of(interpreter) == ["Opwright"]
    np.testing.assert_array_equal(result, official(content, [i])[0])


def test_infinite_weights_stay_infinite():
    b = Build().tensor("x", (1, 4)).tensor("y", (1, 3))
    weights = np.float16([[1, 2, np.inf, 3], [1, 1, 1, 1], [np.nan, 0, 0, 0]])
    b.tensor("h", type="FLOAT16", data=weights).tensor("w", (3, 4)).op("DEQUANTIZE", "h", "w")
    content = b.op("FULLY_CONNECTED", "x w _", "y").done()
    with engine(verify=True):
        (result,) = run(lite.Interpreter(model_content=content), [np.ones((1, 4), np.float32)])
    np.testing.assert_array_equal(result, np.float32([[np.inf, 4, np.nan]]))


DATA = Path(__file__).parents[2] / "data" / "tflite"


def test_sparse_weights_are_made_dense_once():
    content = (DATA / "sparse_random.tflite").read_bytes()
    reference = peer.Interpreter(model_content=content)
    x = RNG.normal(size=reference.get_input_details()[0]["shape"]).astype(np.float32)
    with engine(verify=True):
        interpreter = lite.Interpreter(model_content=content)
        (result,) = run(interpreter, [x])
    assert plan_of(interpreter) == ["Opwright"]
    np.testing.assert_allclose(result, run(reference, [x])[0], rtol=1e-5, atol=1e-5)


def test_short_floats_that_are_made_dense_stay_short(tmp_path):
    weights, x = RNG.normal(size=(29, 37)).astype(np.float16), RNG.normal(size=(1, 37)).astype(np.float32)
    b = Build().tensor("x", x.shape).tensor("s", type="FLOAT16", data=weights).tensor("h", weights.shape, "FLOAT16")
    b.tensor("w", weights.shape).tensor("y", (1, 29)).op("DENSIFY", "s", "h").op("DEQUANTIZE", "h", "w")
    content = b.op("FULLY_CONNECTED", "x w _", "y").done()
    with engine(verify=True, cache_dir=tmp_path):
        interpreter = lite.Interpreter(model_content=content)
        (result,) = run(interpreter, [x])
    forms = interpreter._subgraphs[0].execution_plan[0].registration.plan.ops
    assert [form.filter.dtype.name for form in forms if isinstance(form, Contract)] == ["float16"]
    np.testing.assert_allclose(result, x.astype(np.float64) @ weights.T.astype(np.float64), rtol=1e-4, atol=1e-5)


def products_of_integers(*shapes: tuple[int, int]) -> tuple[bytes, np.ndarray, np.ndarray]:
    """A file of products by weights of int8 that DEQUANTIZE makes floats, an input, and its result in float64."""
    x = RNG.normal(size=(1, shapes[0][1])).astype(np.float32)
    b, expected = Build().tensor("t0", x.shape), x.astype(np.float64)
    for i, shape in enumerate(shapes):
        weights = RNG.integers(-127, 128, shape).astype(np.int8)
        q = objects.QuantizationParameters(scale=np.float32([0.01]), zero_point=[0])
        b.tensor(f"q{i}", type="INT8", data=weights, quantization=q).tensor(f"w{i}", shape)
        b.tensor(f"t{i + 1}", (1, shape[0])).op("DEQUANTIZE", f"q{i}", f"w{i}")
        b.op("FULLY_CONNECTED", f"t{i} w{i} _", f"t{i + 1}")
        expected = expected @ (weights.T * 0.01)
    return b.done("t0", f"t{len(shapes)}"), x, expected


def test_weights_as_floats_count_as_the_model_and_only_where_they_are_read():
    content, x, expected = products_of_integers((64, 48), (48, 64))
    floats = 2 * 64 * 48 * 4
    reference = {"experimental_op_resolver_type": OpResolverType.BUILTIN_REF}
    with flags.override(max_activation_bytes=floats - 1000):
        for options in ({}, reference):
            with engine(verify=True):
                interpreter = lite.Interpreter(model_content=content, **options)
                (result,) = run(interpreter, [x])
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
            assert interpreter._subgraphs[0].memory_usage.own == (floats if options else 0)
        with flags.override(max_model_bytes=floats - 1), pytest.raises(RuntimeError, match="max_model_bytes"):
            run(lite.Interpreter(model_content=content, **reference), [x])


def test_weights_as_floats_are_released_when_compiled_code_takes_over(tmp_path):
    content, x, expected = products_of_integers((32, 52))
    with engine(background=True, cache_dir=tmp_path):
        interpreter = lite.Interpreter(model_content=content)
        run(interpreter, [x])
        interpreter._engine.wait()
        (result,) = run(interpreter, [x])
        assert plan_of(interpreter) == ["Opwright"]
    assert interpreter._subgraphs[0].memory_usage.own == 0
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
