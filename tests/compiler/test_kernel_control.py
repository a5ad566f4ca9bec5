"""Python's control flow in kernels: each element goes its own way; what cannot be staged is an error that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opwright as ow
from opwright.compiler.kernel import Kernel

X = np.linspace(-3, 3, 37, dtype=np.float32)  # two vectors and a rest
K = np.arange(37, dtype=np.int32) % 11


class Call:
    class operator:
        name = "test"


def run(function: Callable[..., Any], *arrays: Any) -> Any:
    return Kernel(function)(Call(), *arrays)


def one_by_one(function: Callable[..., Any], *arrays: Any) -> np.ndarray:
    """The same function in Python, on NumPy's scalars."""
    return np.array([function(*each) for each in zip(*arrays)])


def branches(x: Any) -> Any:
    if x > 1.0:
        y = x * 2.0
    elif x > 0.0:
        y = x + 0.5
    else:
        y = -x
    return y


def early(x: Any) -> Any:
    if x > 1.0:
        return 1.0 + x * 0.0
    if x < -1.0:
        return -1.0 + x * 0.0
    return x


def expression(x: Any) -> Any:
    return x if x > 0.0 and not (x > 2.0 or x == 1.5) else 0.25 * x


def triangle(x: Any) -> Any:
    n, total = 0.0, x * 0.0
    while n < x + 3.5:  # a Python number decides the inner loop, until the outer one makes it a scalar
        m = 0.0
        while m < n:
            total = total + x
            m += 1.0
        n += 1.0
    return total


def halved(x: Any) -> Any:
    n = x * 0.0
    while x > 0.1 or x < -0.1:
        x = x * 0.5
        n += 1.0
    return x + n


def known_range(x: Any) -> Any:
    total = x * 0.0
    for i in range(6):
        if i == 4:
            continue
        total = total + x * float(i)
    return total


def own_range(x: Any, k: Any) -> Any:
    total = x * 0.0
    for _ in range(k):
        total = total + x
        if total > 5.0:
            break
    return total


def backwards(x: Any, k: Any) -> Any:
    total = x * 0.0
    for i in range(k, 2, -2):
        total = total + x
        k = i
    return total + (0.5 if k == 4 else 0.0)


def returned_inside(x: Any, k: Any) -> Any:
    total = x * 0.0
    for _ in range(k):
        total = total + ow_abs(x)
        if total > 4.0:
            return total * 10.0
    return total


def ow_abs(x: Any) -> Any:  # a helper is converted, too
    if x < 0.0:
        return -x
    return x


def nested(x: Any, k: Any) -> Any:
    count = x * 0.0
    for i in range(k):
        j = i
        while j > 0:
            j = j - 2
            count += 1.0
    return x + count


@pytest.mark.parametrize(
    "function", [branches, triangle, early, expression, halved, known_range], ids=lambda f: f.__name__
)
def test_of_one_input(function: Any) -> None:
    np.testing.assert_allclose(run(function, X), one_by_one(function, X), rtol=1e-6)


@pytest.mark.parametrize("function", [own_range, backwards, returned_inside, nested], ids=lambda f: f.__name__)
def test_of_two_inputs(function: Any) -> None:
    np.testing.assert_allclose(run(function, X, K), one_by_one(function, X, K), rtol=1e-6)


def escape(re: Any, im: Any) -> Any:
    zr = zi = 0.0 * re
    n = 0
    while n < 40 and zr * zr + zi * zi < 4.0:
        zr, zi = zr * zr - zi * zi + re, 2.0 * zr * zi + im
        n += 1
    return n


@given(st.integers(0, 2**32 - 1))
def test_each_element_takes_its_own_turns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    re, im = rng.uniform(-2, 1, 40).astype(np.float64), rng.uniform(-1, 1, 40).astype(np.float64)
    result = run(escape, re, im)
    assert result.dtype == np.int32
    assert result.tolist() == one_by_one(escape, re, im).tolist()


def test_an_operator_with_control_flow_is_traced_and_converted_with_its_kernel() -> None:
    @ow.operator
    class Folded:
        """x folded into [0, 1].

        .. math:: y = |x - 2 round(x / 2)|
        """

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")
        elementwise = True
        gradient = None

        def compute(op, x: Any) -> Any:
            return np.abs(x - 2 * np.rint(x / 2))

        @ow.kernel
        def kernel(x: Any) -> Any:
            while x > 1.0:
                x = x - 2.0
            while x < -1.0:
                x = x + 2.0
            return -x if x < 0.0 else x

    x = np.linspace(-6.9, 6.9, 50).astype(np.float32)
    expected = np.abs(x - 2 * np.rint(x / 2))
    for call in (Folded, ow.function(lambda x: Folded(x))):
        np.testing.assert_allclose(call(ow.constant(x)).numpy(), expected, atol=2e-6)


def mixed(x: Any) -> Any:
    if x > 0.0:
        y = x
    else:
        y = ow.cast(x, ow.int32)
    return y


def unset(x: Any) -> Any:
    if x > 0.0:
        y = x
    return y


def over_text(x: Any) -> Any:
    if x > 0.0:
        y = "above"
    else:
        y = "below"
    return x if y == "above" else -x


@pytest.mark.parametrize(
    ("function", "error", "says"),
    [
        (mixed, ow.errors.SignatureError, "y has another dtype"),
        (unset, UnboundLocalError, "'y'"),
        (over_text, ow.errors.SignatureError, "y depends on a scalar's value and is not a scalar"),
    ],
)
def test_what_cannot_be_staged_is_named(function: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        run(function, X)
