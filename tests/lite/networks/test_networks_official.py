"""Networks by other producers (TensorFlow's converter, litert-torch with ai-edge-quantizer) give the official answers.

The answers are those of the reference kernels, and of the optimised ones for the files in paths.json. By our reference
kernels integers are equal, floats within rounding. Networks that quantise rows of floats while they run meet halves,
which a last bit decides; in a compiled network of integers each operator may be a step away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import official
import pytest
from lite_kit import one_step

from opwright.core import flags
from opwright.lite import Interpreter
from thorough import sampled

CASES = {case.name: case for case in official.cases(official.NETWORKS) if case.calls}
ROUNDING = ("dynamic", "dynamic8", "dynamic4", "blocks4")
"""Kinds of files that quantise rows of floats while they run."""
INTEGERS = ("int8", "uint8", "int16x8")
STEPS = 4
"""How many steps of the output the compiled engine's answer of a network of integers may be away."""


def agree(actual: Any, expected: np.ndarray, kind: str) -> None:
    """Raises AssertionError where an output is not the official one."""
    got = np.asarray(actual)
    assert got.shape == expected.shape
    if expected.dtype.kind == "S":
        assert got.astype("S").tolist() == expected.tolist()
        return
    assert got.dtype == expected.dtype
    if flags.compiled and kind in INTEGERS and expected.dtype.kind in "fiu":
        assert np.abs(got.astype(np.float64) - expected).max(initial=0) <= 1.01 * STEPS * one_step(expected)
        return
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected)
        return
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1e-3)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=(5e-3 if kind in ROUNDING else 1e-5) * largest)


def marked(name: str) -> Any:
    """The case, slow for 16-bit activations of a network whose 8-bit ones are tried, too."""
    network, _, kind = name.rpartition("_")
    again = kind == "int16x8" and f"{network}_int8" in CASES
    return pytest.param(name, marks=pytest.mark.slow if again else ())


@pytest.mark.parametrize(
    "name", sampled([marked(name) for name in CASES], len(CASES), by=lambda name: name.rpartition("_")[2])
)
def test_a_network_returns_the_official_answers(name: str) -> None:
    case = CASES[name]
    interpreter = Interpreter(model_path=str(case.path))
    for call in case.calls:
        actual = interpreter.get_signature_runner(call.signature)(**call.inputs)
        assert set(actual) == set(call.outputs)
        for output, expected in call.outputs.items():
            agree(actual[output], expected, name.rpartition("_")[2])


def test_every_file_has_answers() -> None:
    assert {case.name for case in official.cases(official.NETWORKS)} == set(CASES)
