"""Operators of C libraries in the official run time, which itself loads none: their own functions, without Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_kit import Build
from litert_kit import drawn, needs_wheel

from opwright import lite
from opwright.core.errors import OpError, UnavailableError
from opwright.lite.native import toolchain

EXAMPLES = Path(__file__).parents[1] / "native" / "examples"


def compiles():
    try:
        toolchain.find_compiler("c")
    except UnavailableError:
        return False
    return True


pytestmark = [needs_wheel, pytest.mark.skipif(not compiles(), reason="no C compiler")]


@pytest.fixture(scope="module")
def atan():
    return lite.build_custom_ops([EXAMPLES / "atan_opaque.c"], {"Atan": "AtanOpRegistration"})


def two(signature=(-1,)):
    b = Build()
    for name in ("x", "h", "y"):
        b.tensor(name, (1,), shape_signature=list(signature))
    return b.custom("Atan", "x", "h").custom("Atan", "h", "y").done()


def test_it_runs_without_python_in_any_shape(atan):
    with lite.litert.CompiledModel(two(), atan) as model:
        for n in (5, 1, 1000, 5):
            x = drawn(n, seed=n)
            np.testing.assert_allclose(model.run([x])[0], np.arctan(np.arctan(x.astype(np.float64))), rtol=1e-6)
            assert set(model.native_nodes.values()) == {True}


def test_one_with_a_state_and_a_temporary_tensor():
    """y = x / sum |x|; |x| lies in a temporary, in our memory."""
    ops = lite.build_custom_ops([EXAMPLES / "normalize_opaque.c"], {"Normalize": "NormalizeOperator"})
    b = Build().tensor("x", (2, 4)).tensor("y", (2, 4))
    with lite.litert.CompiledModel(b.custom("Normalize", "x", "y").done(), ops) as model:
        for seed in (1, 2):
            x = drawn(2, 4, seed=seed)
            np.testing.assert_allclose(model.run([x])[0], x / np.abs(x.astype(np.float64)).sum(), rtol=1e-5)
        assert set(model.native_nodes.values()) == {True}


def test_what_it_reports_is_raised_and_the_next_run_goes_on():
    """It fails in invoke for a value: its own words, and the node; then it runs without Python as before."""
    ops = lite.build_custom_ops([EXAMPLES / "refuses.c"], {"Root": "Register_ROOT", "Trace": "TraceOperator"})
    b = Build().tensor("x", (3,)).tensor("y", (3,))
    with lite.litert.CompiledModel(b.custom("Root", "x", "y").done(), ops) as model:
        for _ in range(2):
            with pytest.raises(OpError, match="element 1 is -4, below 0") as caught:
                model.run([np.float32([1, -4, 9])])
            assert "Node number 0 (Root) failed to invoke" in str(caught.value)
            np.testing.assert_array_equal(model.run([np.float32([1, 4, 9])])[0], [1, 2, 3])
            assert set(model.native_nodes.values()) == {True}
    square = Build().tensor("x", (2, 3)).tensor("y", ()).custom("Trace", "x", "y").done()
    with pytest.raises(OpError, match="a trace is of a square matrix, found 2 x 3"):
        lite.litert.CompiledModel(square, ops)
