"""Networks quantised after training: near the floats, the same here and in the official interpreter, and smaller."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import OpResolverType
from networks_all import NETWORKS, inputs_of
from networks_harness import DEEP, INT16, SIZES, content_of, eager, lite, official, own, real, run, scales, snr

import opwright as ow
from opwright.core import flags, nest
from opwright.lite.format import Model
from thorough import crossed, sampled

Found = list[tuple[np.ndarray, float]]
REFERENCE = OpResolverType.BUILTIN_REF
LEAST = {"float16": 45, "dynamic": 25, "int8": 18, "integers": 18, "int16x8": 25}  # dB of the worst output
# Operators that no integer kernel has, where integers alone are allowed.
NO_INTEGERS = {"wide_deep": "ELU", "dict_io": "ELU", "activations": "ELU", "volumes": "CONV_3D", "norms": "SQUARE"}
SUMS_WRONG = ("norms",)  # the official reference kernel's SUM of int8 is off by hundreds of steps
FAST = ("int8",)
ALL_KINDS = ("mobilenet_v3", "lstm_text", "transformer_masked", "wide_deep")


def cases() -> list[Any]:
    every = [(name, kind) for kind in LEAST for name in NETWORKS]
    usual = [case for case in every if case[1] in FAST or case[0] in ALL_KINDS]
    rest = [pytest.param(*case, marks=pytest.mark.slow) for case in every if case not in usual]
    return [*sampled(usual, len(usual), by=lambda name, kind: kind), *rest]


@pytest.mark.parametrize(("name", "kind"), cases())
def test_quantised(name: str, kind: str) -> None:
    if kind == "integers" and name in NO_INTEGERS:
        with pytest.raises(ValueError, match=f"'{NO_INTEGERS[name]}'"):
            content_of(name, kind)
        return
    content, inputs = content_of(name, kind), inputs_of(name)
    Model.read(content).verify()
    assert len(content) <= SIZES.get(name, {}).get(kind, len(content))
    interpreter = own(content)
    result = run(interpreter, inputs)
    _near_official(content, name, result)
    if kind != "dynamic":  # whose products the official default kernels compute with rounding of their own
        _near(result, run(official(content), inputs), scales(content), DEEP)
    assert snr(eager(name), real(interpreter, result)) >= LEAST[kind]


def _near_official(content: bytes, name: str, actual: Found) -> None:
    """Within a step of the official reference kernels, or near the others where those lack an operator. The compiled
    engine may be a step away after each operator."""
    try:
        expected, most = run(official(content, REFERENCE), inputs_of(name)), DEEP if flags.compiled else 1.0
    except ValueError:
        expected, most = [], DEEP
    if not expected or name in SUMS_WRONG:
        expected = run(official(content, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES), inputs_of(name))
    _near(actual, expected, scales(content), most)


def _near(actual: Found, expected: Found, steps: list[float], most: float) -> None:
    for (a, _), (b, _), step in zip(actual, expected, steps, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind in "iu":
            assert np.abs(a.astype(np.int64) - b).max(initial=0) <= most
        else:
            largest = float(np.abs(b).max(initial=0))
            step = step or (largest / 100 if most > 1 else 0.0)  # integers somewhere inside
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=max(1.001 * most * step, 1e-5 * largest))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mobilenet_v2", "int8"),
        ("transformer", "dynamic"),
        *(pytest.param(name, "dynamic", marks=pytest.mark.slow) for name in ("mobilenet_v2", "mobilenet_v3", "unet")),
        *(pytest.param(name, "int8", marks=pytest.mark.slow) for name in ("mobilenet_v3", "transformer", "unet")),
    ],
)
def test_older_run_times(name: str, kind: str) -> None:
    """A file for run time 2.8 returns the same results."""
    content, inputs = content_of(name, kind, "2.8"), inputs_of(name)
    interpreter = own(content)
    result = run(interpreter, inputs)
    _near_official(content, name, result)
    assert snr(eager(name), real(interpreter, result)) >= LEAST[kind]


LOWER = np.tril(np.ones((6, 6), bool))
PENALTY = np.where(LOWER, 0.0, -1e9).astype(np.float32)


def _attention(masked: Any, layers: int) -> Any:
    def call(x: Any) -> Any:
        for _ in range(layers):
            x = ow.matmul(ow.nn.softmax(masked(ow.matmul(x, x, transpose_b=True))), x)
        return x

    return call


MASKS = {
    "added": _attention(lambda scores: scores + PENALTY, 1),
    "added_twice": _attention(lambda scores: PENALTY + scores, 2),
    "selected": _attention(lambda scores: ow.where(LOWER, scores, -1e9), 2),
    "selected_otherwise": _attention(lambda scores: ow.where(~LOWER, -1e9, scores), 1),
    "moved": _attention(lambda scores: ow.reshape(scores + PENALTY, [-1, 6, 6]), 1),
}


@pytest.mark.parametrize(("kind", "name"), crossed(["int8", "int16x8"], MASKS))
def test_masks_leave_scores_their_range(name: str, kind: str) -> None:
    """-1e9 before SOFTMAX is as good as a little below all scores."""
    content, expected, samples = _calibrated(MASKS[name], kind)
    interpreter = own(content)
    actual = run(interpreter, samples)
    assert snr(expected, real(interpreter, actual)) > 25
    _near(
        actual, run(official(content), samples), [s or 0.01 for s in scales(content)], DEEP if flags.compiled else 1.0
    )


@pytest.mark.parametrize("kind", ["int8", "int16x8"])
def test_masks_that_are_seen_stay(kind: str) -> None:
    """What is given as a result, or is a mask of something else too, holds -1e9."""
    content, _, samples = _calibrated(lambda x: (x + PENALTY, ow.nn.softmax(x + PENALTY), x * PENALTY), kind)
    result = run(own(content), samples)
    assert result[0][0].min() < -9e8
    assert np.abs(result[2][0]).max() > 9e8


def _calibrated(call: Any, kind: str) -> tuple[bytes, list[np.ndarray], list[np.ndarray]]:
    """A file of a function of [2, 6, 6], what the function gives for a sample, and that."""
    samples = [np.random.RandomState(seed).randn(2, 6, 6).astype(np.float32) for seed in range(5)]
    function = ow.function(call)
    converter = lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function(ow.TensorSpec([2, 6, 6]))])
    converter.optimizations, converter.representative_dataset = (
        [lite.Optimize.DEFAULT],
        lambda: iter([[x] for x in samples]),
    )
    if kind == "int16x8":
        converter.target_spec.supported_ops = [INT16, lite.OpsSet.TFLITE_BUILTINS]
    expected = [np.asarray(y) for y in nest.flatten(function(ow.constant(samples[0])))]
    return converter.convert(), expected, samples[:1]
