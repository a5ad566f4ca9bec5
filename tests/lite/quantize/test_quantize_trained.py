"""Training for quantisation: FAKE_QUANT in float files, and its ranges instead of data in quantised ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from quantize_harness import answers, convert, converter_of, litert, operators, run, snr, tensor_types

import opwright as ow
from opwright.lite.format import Model

FAKE = ow.quantization
RANDOM = np.random.RandomState(8)
A, B, C = (RANDOM.uniform(-0.7, 0.7, s).astype(np.float32) for s in ((16, 8), (8,), (8, 8)))
X = np.random.RandomState(2).uniform(-3, 3, (2, 16)).astype(np.float32)
FLOATS = {
    "whole": (lambda x: FAKE.fake_quant_with_min_max_args(x, -1.0, 1.0), ["FAKE_QUANT"]),
    "few bits": (lambda x: FAKE.fake_quant_with_min_max_vars(x, -0.2, 1.7, num_bits=4), ["FAKE_QUANT"]),
    "narrow": (lambda x: FAKE.fake_quant_with_min_max_vars(x, -0.2, 1.7, narrow_range=True), None),
    "without zero": (lambda x: FAKE.fake_quant_with_min_max_args(x, 0.5, 2.0), None),
    "by channel": (lambda x: FAKE.fake_quant_with_min_max_vars_per_channel(x, [-1.0] * 16, [2.0] * 16), None),
}


@pytest.mark.parametrize("name", FLOATS)
def test_float_files_have_the_steps(name: str) -> None:
    call, result = FLOATS[name]
    content = convert(call, (2, 16), kind="float")
    assert result is None or operators(content) == result
    for interpreter in (litert(content), litert(content, reference=True)):
        np.testing.assert_allclose(run(interpreter, [X])[0], answers(ow.function(call), [X])[0], atol=1e-6)


def network(x: Any) -> Any:
    """The official corpus's `quantization_aware`."""
    x = FAKE.fake_quant_with_min_max_args(x, -3.0, 3.0)
    weights = FAKE.fake_quant_with_min_max_vars(A, -0.7, 0.7, narrow_range=True)
    return FAKE.fake_quant_with_min_max_args(ow.matmul(x, weights) + B, -4.0, 4.0)


def deeper(x: Any) -> Any:
    y = network(x)
    y = ow.reshape(y, [1, 2, 8])  # moves numbers, so it has the range before it
    return ow.nn.softmax(FAKE.fake_quant_with_min_max_args(ow.matmul(ow.reshape(y, [2, 8]), C), -6.0, 6.0))


@pytest.mark.parametrize("kind", ["dynamic", "integers"])
@pytest.mark.parametrize("call", [network, deeper])
def test_learned_ranges_need_no_data(call: Any, kind: str) -> None:
    function = ow.function(call)
    content = converter_of(function, [(2, 16)], None, kind, representative_dataset=None).convert()
    assert operators(content)[0] == "QUANTIZE"
    assert operators(content)[-1] == "DEQUANTIZE"
    assert operators(content).count("FULLY_CONNECTED") == 1 + (call is deeper)
    assert "FAKE_QUANT" not in operators(content)
    assert "INT8" in tensor_types(content)
    assert snr([(answers(function, [X]), run(litert(content), [X]))]) > 25
    scales = [
        (t.quantization.scale.tolist()[0], int(t.quantization.zero_point[0]))
        for t in Model.read(content).subgraphs[0].tensors
        if t.type.name == "INT8"
    ]
    assert any(s == pytest.approx(6 / 255) and z == 0 for s, z in scales), "as the official file has them"
    assert any(s == pytest.approx(8 / 255) and z == 0 for s, z in scales)


def test_learned_ranges_go_before_those_of_the_data() -> None:
    samples = [[np.full((2, 16), v, np.float32)] for v in (-0.01, 0.01)]
    content = convert(network, (2, 16), samples=samples)
    scales = [t.quantization.scale[0] for t in Model.read(content).subgraphs[0].tensors if t.type.name == "INT8"]
    assert any(s == pytest.approx(6 / 255) for s in scales)
    assert snr([(answers(ow.function(network), [X]), run(litert(content), [X]))]) > 25


def test_what_has_no_learned_range_stays_float_or_is_named() -> None:
    call = lambda x: ow.matmul(network(x), C) * 2.0  # noqa: E731
    content = convert(call, (2, 16), kind="dynamic", representative_dataset=None)
    assert operators(content).count("FULLY_CONNECTED") == 2
    assert snr([(answers(ow.function(call), [X]), run(litert(content), [X]))]) > 25
    with pytest.raises(ValueError, match="no range was seen of tensor"):
        convert(call, (2, 16), kind="integers", representative_dataset=None)


def test_one_between_input_and_output_stays() -> None:
    content = convert(FLOATS["whole"][0], (2, 16), kind="dynamic", representative_dataset=None)
    np.testing.assert_allclose(run(litert(content), [X])[0], FLOATS["whole"][0](X).numpy(), atol=1e-6)


def test_errors_name_the_lines_of_operators_behind_learned_ranges() -> None:
    def call(x: Any) -> Any:
        y = network(x)
        return ow.sin(y)  # the line

    with pytest.raises(ValueError, match=r"'SIN' .*\.py:\d+") as caught:
        convert(call, (2, 16), kind="integers", representative_dataset=None)
    assert f"test_quantize_trained.py:{call.__code__.co_firstlineno + 2}" in str(caught.value)


def test_learned_ranges_inside_of_called_functions_are_found() -> None:
    inner = ow.function(network)
    content = convert(lambda x: inner(x), (2, 16), kind="integers", representative_dataset=None)
    assert operators(content) == ["QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE"]
