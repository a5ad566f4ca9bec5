"""Quantised operators whose tensors have scales of any sizes: both engines give the same integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from engine_kit import answer, engine, plain, plan_of
from lite_kit import Build

from opwright import lite
from opwright.core import flags
from opwright.core.errors import InvalidArgumentError
from opwright.lite.format import objects

SCALES = ((0.5, 0.5), (1e-9, 1e-9), (0.5, 1e-6), (0.5, 1e-5), (100.0, 0.5), (1e9, 1e-9), (1e-5, 0.5))
AXIS = np.array([1], np.int32)


def parameters(scale: float, zero: int = 0) -> objects.QuantizationParameters:
    return objects.QuantizationParameters(scale=np.array([scale], np.float32), zero_point=np.array([zero]))


def quantized(build: Build, name: str, shape: tuple[int, ...], kind: str, scale: float, zero: int = 0) -> None:
    build.tensor(name, shape, kind, quantization=parameters(scale, zero))


def model(op: str, kind: str, to: str, scales: tuple[float, float]) -> bytes:
    build, zero = Build(), 0 if kind in ("INT16", "INT32") else 3
    quantized(build, "x", (4, 70), kind, scales[0], zero)
    quantized(build, "y", (4,) if op in ("SUM", "MEAN") else (4, 70), to, scales[1], 0 if to == "INT16" else -5)
    if op in ("SUM", "MEAN"):
        return build.tensor("axis", data=AXIS, type="INT32").op(op, "x axis", "y").done()
    return build.op(op, "x" if op == "QUANTIZE" else "x x", "y").done()


def integers(run: Callable[..., np.ndarray], model: object, x: np.ndarray) -> np.ndarray:
    """Return what a run gives; numbers beyond the type's range where the operator refuses the scales."""
    try:
        return run(model, x).astype(np.int64)
    except InvalidArgumentError as error:
        if "too small a scale" not in str(error):
            raise
        return np.array(1 << 40)


@pytest.mark.parametrize(
    ("op", "kind", "to"),
    [
        ("ADD", "INT8", "INT8"),
        ("SUB", "INT8", "INT8"),
        ("MUL", "INT8", "INT8"),
        ("SQUARED_DIFFERENCE", "INT8", "INT8"),
        ("SUM", "INT8", "INT8"),
        ("MEAN", "INT8", "INT8"),
        ("QUANTIZE", "INT8", "INT8"),
        ("QUANTIZE", "INT16", "INT8"),
        ("QUANTIZE", "INT32", "INT8"),
        ("QUANTIZE", "INT16", "INT16"),
    ],
)
def test_engines_agree(op: str, kind: str, to: str) -> None:
    """Within a step, as compiled kernels round; beyond 2^16 steps a number the operator wraps, and keeps its node."""
    rng = np.random.default_rng(7)
    limits = np.iinfo(kind.lower())
    x = rng.integers(limits.min, limits.max, (4, 70), limits.dtype, endpoint=True)
    x.flat[:3] = limits.min, limits.max, 3
    for scales in SCALES:
        content = model(op, kind, to, scales)
        with engine(verify=True):
            result = integers(answer, lite.Interpreter(model_content=content), x)
        gap = np.abs(result - integers(plain, content, x)).max()
        assert gap <= 1, (scales, int(gap))


def test_attention_masked_by_the_least_float32_is_machine_code() -> None:
    """As Keras's layer of attention is converted: MUL, SELECT_V2 and SOFTMAX of a scale of 9.3e35, as by the official
    reference kernels."""
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    rng, shape, least = np.random.default_rng(5), (2, 37, 64), 9.30459185e35
    build = Build().tensor("seen", data=rng.random(shape) < 0.6, type="BOOL")
    quantized(build, "x", shape, "INT8", 0.0316, -7)
    build.tensor("factor", data=np.array(127, np.int8), type="INT8", quantization=parameters(0.002264, -128))
    build.tensor("hidden", data=np.array(-128, np.int8), type="INT8", quantization=parameters(least, 127))
    quantized(build, "scaled", shape, "INT8", least, 127)
    quantized(build, "scores", shape, "INT8", least, 127)
    quantized(build, "y", shape, "INT8", 1 / 256, -128)
    build.op("MUL", "x factor", "scaled").op("SELECT_V2", "seen scaled hidden", "scores")
    content = build.op("SOFTMAX", "scores", "y", beta=1.0).done()
    official = peer.Interpreter(model_content=content, experimental_op_resolver_type=peer.OpResolverType.BUILTIN_REF)
    x = rng.integers(-128, 128, shape, np.int8)
    with engine(verify=True):
        interpreter = lite.Interpreter(model_content=content)
        result = answer(interpreter, x)
        assert interpreter._engine.delegate.refused == {}
    np.testing.assert_array_equal(result, answer(official, x))


@pytest.mark.parametrize(("kind", "zero"), [("INT8", 0), ("UINT8", 128)])
def test_l2_normalization_does_not_depend_on_the_scale(kind: str, zero: int) -> None:
    """Expected: 128 q / sqrt(sum q^2) in float64, within a step; the scale cancels."""
    limits = np.iinfo(kind.lower())
    x = np.random.default_rng(3).integers(limits.min, limits.max, (4, 70), limits.dtype, endpoint=True)
    centred = x.astype(np.float64) - 3
    expected = 128 * centred / np.sqrt(np.square(centred).sum(-1, keepdims=True)) + zero
    for scale in (1e-9, 0.5, 1e9):
        build = Build()
        quantized(build, "x", (4, 70), kind, scale, 3)
        quantized(build, "y", (4, 70), kind, 1 / 128, zero)
        with engine(verify=True):
            actual = answer(lite.Interpreter(model_content=build.op("L2_NORMALIZATION", "x", "y").done()), x)
        assert np.abs(actual - expected.clip(limits.min, limits.max)).max() <= 1, scale


def test_scales_by_channel_of_a_tensor_that_the_file_gives_another_rank() -> None:
    """They go along the dimension of the input, in both engines: q = round(x / s_c)."""
    build = Build().tensor("x", (2, 3, 3, 5))
    scales = np.array([0.5, 0.25, 2.0], np.float32)
    parameters = objects.QuantizationParameters(scale=scales, zero_point=np.zeros(3, np.int64), quantized_dimension=1)
    build.tensor("y", (2, 3), "INT8", quantization=parameters)
    content = build.op("QUANTIZE", "x", "y").done()
    x = np.random.default_rng(3).uniform(-30, 30, (2, 3, 3, 5)).astype(np.float32)
    expected = np.clip(np.round(x.astype(np.float64) / scales[:, None, None]), -128, 127)
    with engine(verify=True):
        assert np.array_equal(answer(lite.Interpreter(model_content=content), x), expected)
    assert np.array_equal(plain(content, x), expected)


def with_bias(op: str, weights: np.ndarray, bias: np.ndarray) -> bytes:
    """An operator of int8 with weights along 3 features and a bias of int32."""
    build = Build()
    quantized(build, "x", (1, 4, 5, 2) if op != "FULLY_CONNECTED" else (4, 2), "INT8", 0.5, 7)
    features = 3 if op == "DEPTHWISE_CONV_2D" else 0
    scales = objects.QuantizationParameters(
        scale=np.array([0.25, 1e-9, 0.5], np.float32), zero_point=np.zeros(3, np.int64), quantized_dimension=features
    )
    build.tensor("w", data=weights, type="INT8", quantization=scales)
    build.tensor("b", data=bias, type="INT32")
    quantized(build, "y", (1, 4, 5, 3) if op != "FULLY_CONNECTED" else (4, 3), "INT8", 1.0, -3)
    options = {} if op == "FULLY_CONNECTED" else {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    if op == "DEPTHWISE_CONV_2D":
        quantized(build, "x", (1, 4, 5, 3), "INT8", 0.5, 7)
    return build.op(op, "x w b", "y", **options).done()


@pytest.mark.parametrize(
    ("op", "shape", "axis"),
    [("CONV_2D", (3, 3, 3, 2), 0), ("DEPTHWISE_CONV_2D", (1, 3, 3, 3), 3), ("FULLY_CONNECTED", (3, 2), 0)],
)
def test_channels_without_weights_have_biases_of_any_size(
    op: str, shape: tuple[int, ...], axis: int, tmp_path: Path
) -> None:
    """They are compiled, with the official integers; a bias with which sums leave int32 leaves the node as it is, for a
    reason that a stored plan does not have."""
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    rng = np.random.default_rng(2)
    weights = rng.integers(-127, 128, shape, np.int8)
    np.moveaxis(weights, axis, 0)[1] = 0
    bias = np.array([500, (1 << 31) - 1, -700], np.int32)
    content = with_bias(op, weights, bias)
    official = peer.Interpreter(model_content=content, experimental_op_resolver_type=peer.OpResolverType.BUILTIN_REF)
    x = rng.integers(-128, 128, official.get_input_details()[0]["shape"], np.int8)
    with engine(verify=True), flags.override(cache_dir=str(tmp_path)):
        interpreter = lite.Interpreter(model_content=content)
        result = answer(interpreter, x)
        assert interpreter._engine.delegate.refused == {}
        np.testing.assert_array_equal(result, answer(official, x))
        np.moveaxis(weights, axis, 0)[1].flat[0] = 1
        interpreter = lite.Interpreter(model_content=with_bias(op, weights, bias))
        answer(interpreter, x)
        assert "may overflow" in str(interpreter._engine.delegate.refused)


@pytest.mark.parametrize("zero", [256, -1, 2**31 - 1])
def test_zero_points_outside_of_the_type_are_refused_compiled_or_not(zero: int) -> None:
    build = Build().tensor("x", (2, 4))
    parameters = objects.QuantizationParameters(scale=np.array([0.5], np.float32), zero_point=np.array([zero]))
    build.tensor("w", data=np.ones((3, 4), np.uint8), type="UINT8", quantization=parameters).tensor("y", (2, 3))
    content = build.op("FULLY_CONNECTED", "x w _", "y").done()
    for compiled in (False, True):
        with flags.override(compiled=compiled, background=False), pytest.raises(InvalidArgumentError, match="zero p"):
            lite.Interpreter(model_content=content).allocate_tensors()


@pytest.mark.parametrize(("kind", "to"), [("UINT8", "UINT8"), ("UINT8", "INT16"), ("INT8", "INT16")])
def test_softmax_returns_its_own_steps_whatever_its_output_says(kind: str, to: str) -> None:
    """1/256 of uint8, 1/65536 of int16, from the least integer on."""
    build = Build()
    quantized(build, "x", (3, 20), kind, 0.05, 7)
    quantized(build, "y", (3, 20), to, 0.02, 200 if to == "UINT8" else 0)
    content = build.op("SOFTMAX", "x", "y", beta=1.0).done()
    limits = np.iinfo(kind.lower())
    x = np.random.default_rng(4).integers(limits.min, limits.max, (3, 20), limits.dtype, endpoint=True)
    powers = np.exp(0.05 * x.astype(np.float64))
    steps, least = (256, 0) if to == "UINT8" else (65536, -32768)
    expected = powers / powers.sum(-1, keepdims=True) * steps + least
    with engine(verify=True):
        interpreter = lite.Interpreter(model_content=content)
        actual = answer(interpreter, x)
        assert interpreter._engine.delegate.refused == {}
    np.testing.assert_allclose(actual, expected, atol=1.0)


def test_basic_lstm_whose_sums_overflow_stays_with_the_operator() -> None:
    """A gate's sum beyond int32 is saturated by the operator, and wraps in machine code."""
    rng, (n, cells) = np.random.default_rng(6), (8, 8)
    bias = rng.integers(-3000, 3000, 4 * cells).astype(np.int32)
    for overflows in (False, True):
        bias[17] = 2**31 - 1 if overflows else 0
        build = Build()
        quantized(build, "x", (1, n), "UINT8", 1 / 128, 128)
        parameters = objects.QuantizationParameters(scale=np.float32([1 / 128]), zero_point=np.array([128]))
        build.tensor("h", (1, cells), "UINT8", quantization=parameters, is_variable=True)
        weights = rng.integers(0, 256, (4 * cells, n + cells)).astype(np.uint8)
        of_weights = objects.QuantizationParameters(scale=np.float32([0.01]), zero_point=np.array([128]))
        build.tensor("w", data=weights, type="UINT8", quantization=of_weights).tensor("b", data=bias, type="INT32")
        of_cells = objects.QuantizationParameters(scale=np.float32([2.0**-11]), zero_point=np.array([0]))
        build.tensor("c", (1, cells), "INT16", quantization=of_cells, is_variable=True)
        quantized(build, "y", (1, cells), "UINT8", 1 / 128, 128)
        quantized(build, "state", (1, cells), "INT16", 2.0**-11)
        quantized(build, "joined", (1, n + cells), "UINT8", 1 / 128, 128)
        quantized(build, "gates", (1, 4 * cells), "INT16", 2.0**-12)
        build.op("LSTM", "x h w b c", "y state joined gates", fused_activation_function="TANH", kernel_type="BASIC")
        content = build.done("x", "gates y")
        x = rng.integers(0, 256, (1, n)).astype(np.uint8)
        with engine(verify=True):
            interpreter = lite.Interpreter(model_content=content)
            result = answer(interpreter, x)
        assert ("may overflow" in str(interpreter._engine.delegate.refused)) == overflows
        np.testing.assert_array_equal(result, plain(content, x))


@pytest.mark.parametrize("kind", ["INT8", "INT16"])
def test_reversed_integers_keep_their_values_whatever_the_scales(kind: str) -> None:
    """TensorFlow's quantizer gives the result of REVERSE_V2 a scale of its own; the official kernel moves integers."""
    build = Build()
    quantized(build, "x", (3, 40), kind, 0.5)
    quantized(build, "y", (3, 40), kind, 0.3)
    content = build.tensor("axes", data=AXIS, type="INT32").op("REVERSE_V2", "x axes", "y").done()
    x = np.arange(120, dtype=kind.lower()).reshape(3, 40)
    peer = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    peer.allocate_tensors()
    peer.set_tensor(peer.get_input_details()[0]["index"], x)
    peer.invoke()
    with engine():
        interpreter = lite.Interpreter(model_content=content)
        np.testing.assert_array_equal(answer(interpreter, x), peer.get_tensor(peer.get_output_details()[0]["index"]))
        assert plan_of(interpreter) == ["Opwright"]
