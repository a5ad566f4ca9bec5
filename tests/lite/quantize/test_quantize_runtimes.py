"""Quantising for older run times: the file says it runs there, or an error names what does not; answers stay near."""

from __future__ import annotations

import numpy as np
import pytest
from quantize_harness import INT16, answers, convert, converter_of, function_of, litert, operators, run, snr
from quantize_networks import NETWORKS, OPERATORS, samples_of

import opwright as ow
from opwright.lite.convert import ConverterError
from opwright.lite.format import Model, versions
from thorough import sampled

RUNTIMES = ("1.13", "1.14", "2.1", "2.3", "2.4", "2.8", "2.15")
SINCE = {"float16": "1.15", "dynamic": "1.14", "int8": "1.14", "integers": "1.14", "int16x8": "2.3"}
LEAST_SNR = {"float16": 50.0, "dynamic": 20.0, "int8": 15.0, "integers": 15.0, "int16x8": 22.0}
# Networks with an operator that has no integer form there, and one such operator.
LACKING = {
    ("unet", "1.14"): "TRANSPOSE_CONV",
    ("unet", "2.1"): "TRANSPOSE_CONV",
    ("attention", "1.14"): "FULLY_CONNECTED",
    ("attention", "2.1"): "FULLY_CONNECTED",
    ("two_inputs", "1.14"): "SUM",
}
W = np.random.RandomState(4).randn(64, 64).astype(np.float32) * 0.1
FILTER = np.random.RandomState(5).randn(3, 3, 16, 16).astype(np.float32) * 0.1


def target(runtime: str, *sets: ow.lite.OpsSet, **more: object) -> ow.lite.TargetSpec:
    return ow.lite.TargetSpec(supported_ops=sets or None, runtime=runtime, **more)  # type: ignore[arg-type]


SETS = {"integers": (ow.lite.OpsSet.TFLITE_BUILTINS_INT8,), "int16x8": (INT16, ow.lite.OpsSet.TFLITE_BUILTINS)}


def spec_of(kind: str, runtime: str) -> ow.lite.TargetSpec:
    return target(runtime, *SETS.get(kind, ()), supported_types=[ow.float16] if kind == "float16" else None)


def assert_runs_there(content: bytes, runtime: str) -> None:
    """By the stamps of the file, by those that its operators need, and by what the file says of itself."""
    model = Model.read(content)
    assert [code.version for code in model.operator_codes] == versions.versions_of_model(model)
    needed = versions.min_runtime_of_model(model)
    assert not versions.is_newer(needed, runtime)


@pytest.mark.parametrize("kind", LEAST_SNR)
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", sampled([name for name in NETWORKS if name not in OPERATORS], 12))
def test_networks_run_there_or_the_error_names_what_does_not(name: str, runtime: str, kind: str) -> None:
    shapes = NETWORKS[name].shapes
    converter = converter_of(
        function_of(name), shapes, samples_of(name, count=4), kind, target_spec=spec_of(kind, runtime)
    )
    if versions.is_newer(SINCE[kind], runtime):
        with pytest.raises(ConverterError, match="nothing of"):
            converter.convert()
        return
    if (name, runtime) in LACKING and kind == "integers":
        with pytest.raises(ConverterError, match=rf"op: '{LACKING[name, runtime]}'"):
            converter.convert()
        return
    content = converter.convert()
    assert_runs_there(content, runtime)
    interpreter = litert(content)
    result = snr((answers(function_of(name), s), run(interpreter, s)) for s in samples_of(name, seed=2, count=4))
    assert result > LEAST_SNR[kind]


DENSE = lambda x: ow.matmul(x, W)  # noqa: E731
CONV = lambda x: ow.nn.conv2d(x, FILTER, 1, "SAME")  # noqa: E731
DEPTHWISE = lambda x: ow.nn.depthwise_conv2d(x, np.tile(FILTER, 8)[..., :1].repeat(8, 2), 1, "SAME")  # noqa: E731
BATCHES = lambda x: ow.matmul(x, np.stack([W, -W, W.T]))  # noqa: E731


# Function, shape, and by run time the version of the operator that has the weights, and how many scales they have
# (0: they stay float).
HYBRID = {
    "FULLY_CONNECTED": (
        DENSE,
        (2, 64),
        {"2.17": (12, 64), "2.16": (9, 1), "2.3": (9, 1), "2.2": (3, 1), "1.14": (3, 1)},
    ),
    "CONV_2D": (CONV, (1, 4, 4, 16), {"2.4": (5, 16), "2.3": (2, 1), "1.14": (2, 1)}),
    "DEPTHWISE_CONV_2D": (DEPTHWISE, (1, 4, 4, 128), {"2.3": (6, 128), "2.2": (1, 0)}),
    "BATCH_MATMUL": (BATCHES, (3, 2, 64), {"2.5": (4, 1), "2.4": (1, 1), "2.3": (1, 1)}),
}


@pytest.mark.parametrize(("name", "runtime"), [(name, runtime) for name, row in HYBRID.items() for runtime in row[2]])
def test_hybrid_operators_take_the_newest_form_that_the_run_time_has(name: str, runtime: str) -> None:
    call, shape, forms = HYBRID[name]
    content = convert(call, shape, kind="dynamic", target_spec=target(runtime))
    assert_runs_there(content, runtime)
    model = Model.read(content)
    operator = model.subgraphs[0].operators[operators(content).index(name)]
    weights = model.subgraphs[0].tensors[operator.inputs[1]]
    scales = 0 if weights.quantization is None else len(weights.quantization.scale)
    assert (model.operator_codes[operator.opcode_index].version, scales) == forms[runtime]
    x = np.random.RandomState(1).uniform(-1, 1, shape).astype(np.float32)
    assert snr([(answers(ow.function(call), [x]), run(litert(content), [x]))]) > 30


@pytest.mark.parametrize(
    ("call", "shapes", "runtime", "named"),
    [
        (lambda x: ow.abs(x) * 2.0, ((2, 16),), "2.3", "'ABS' (in this form it is version 2, of run time 2.4.0)"),
        (lambda x: ow.exp(x), ((2, 16),), "2.11", "'EXP' (in this form it is version 2, of run time 2.12.0)"),
        (lambda x: ow.nn.relu(x), ((2, 16),), "2.0", "'RELU' (in this form it is version 2, of run time 2.1.0)"),
        (lambda x: x + 1.0, ((2, 16),), "1.13", "nothing of int8 quantisation runs on run time 1.13"),
    ],
)
def test_integers_alone_name_what_the_run_time_lacks(call: object, shapes: object, runtime: str, named: str) -> None:
    with pytest.raises(ConverterError) as caught:
        convert(call, *shapes, kind="integers", target_spec=target(runtime, *SETS["integers"]))  # type: ignore
    assert named in str(caught.value)


def test_what_the_run_time_lacks_stays_float_between_integers() -> None:
    call = lambda x: ow.matmul(ow.exp(ow.matmul(x, W)), W)  # noqa: E731
    older = convert(call, (2, 64), target_spec=target("2.11"))
    newer = convert(call, (2, 64), target_spec=target("2.12"))
    assert operators(older) == [
        "QUANTIZE",
        "FULLY_CONNECTED",
        "DEQUANTIZE",
        "EXP",
        "QUANTIZE",
        "FULLY_CONNECTED",
        "DEQUANTIZE",
    ]
    assert operators(newer) == ["QUANTIZE", "FULLY_CONNECTED", "EXP", "FULLY_CONNECTED", "DEQUANTIZE"]


def test_a_product_that_is_scaled_up_came_with_1_15() -> None:
    """MUL version 3: what its version is depends on the scales that it gets."""
    call = lambda x: (x + 0.5) * (x - 0.5) - x  # noqa: E731
    ranges = [[np.full((2, 16), v, np.float32)] for v in (-0.5, 0.5)]  # the product is 0 in all of these
    for runtime, integers in (("1.14", False), ("1.15", True)):
        content = convert(call, (2, 16), samples=ranges, target_spec=target(runtime))
        assert_runs_there(content, runtime)
        model = Model.read(content)
        product = model.subgraphs[0].operators[operators(content).index("MUL")]
        kind = model.subgraphs[0].tensors[product.outputs[0]].type.name
        assert kind == ("INT8" if integers else "FLOAT32") or model.operator_codes[product.opcode_index].version == 2
