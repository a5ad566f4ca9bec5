"""Gradients of the functions of one number, against mpmath's derivative of the formula, over the usual magnitudes.

Absolute error: TensorFlow's formulas, y (1 - y) and 1 - y^2 among them, lose what a saturated function has lost.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from function_table import UNARY, Row

import opwright as ow

SMOOTH = [r for r in UNARY if r.digits is not None and r.name not in ("abs", "sign", "floor", "ceil", "round", "rint")]
FORMULAS = {
    "gelu_tanh": lambda x: x / (1 + mp.exp(-2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))),
    "mish": lambda x: x * mp.tanh(mp.log1p(mp.exp(x))),
    "squareplus": lambda x: (x + mp.sqrt(x * x + 4)) / 2,
    "selu": lambda x: mp.mpf("1.0507009873554805") * (x if x > 0 else mp.mpf("1.6732632423543772") * mp.expm1(x)),
}
SIZES = (1e-4, 0.01, 0.3, 0.7, 1.3, 3, 5.5, 6, 11, 20.5, 60, 88)
POINTS = np.float32([*(-v for v in SIZES), *SIZES[:-1]])


@pytest.mark.parametrize("name", [*(r.name for r in SMOOTH), *FORMULAS])
@pytest.mark.parametrize("traced", [False, True])
def test_gradient_is_the_derivative(name: str, traced: bool) -> None:
    row: Row = next(r for r in UNARY if r.name == name)
    formula = FORMULAS.get(name, row.digits)

    def gradient(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = row.function(x)
        return tape.gradient(y, x)

    x = POINTS
    result = (ow.function(gradient, autograph=False) if traced else gradient)(ow.constant(x)).numpy()
    with mp.workdps(60):
        for point, slope in zip(x, result):
            value = formula(mp.mpf(float(point)))
            if getattr(value, "imag", 0) != 0:
                continue  # outside of its domain
            exact = mp.diff(formula, mp.mpf(float(point)), h=mp.mpf("1e-20"))
            exact = float(exact.real)
            assert abs(slope - exact) <= 3e-6 * abs(exact) + 3e-7, (name, point, slope, exact)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ow.nn.gelu(x),
        lambda x: ow.nn.gelu(x, True),
        ow.nn.silu,
        ow.sigmoid,
        ow.nn.selu,
        ow.nn.elu,
        ow.math.softplus,
        ow.nn.activations.squareplus,
    ],
)
def test_gradients_of_large_numbers_are_finite(function) -> None:
    x = ow.constant(np.float32([-3e38, -1e20, -200.0, 200.0, 1e18]))
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    slope = tape.gradient(y, x).numpy()
    assert np.isfinite(slope).all(), slope
    np.testing.assert_allclose(slope[:2], 0.0, atol=1e-6)
