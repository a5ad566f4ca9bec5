"""The logistic function and its kin, which turn any number into a weight or a positive number.

Lives here: Sigmoid, Softplus, Softsign, log_sigmoid.
Not here: tanh (trigonometry.py), relu and others (ops/nn/activation.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import floating, floating_or_complex
from ...scalar.table import FUNCTIONS
from ..definition import Input, Output, operator
from .arithmetic import negative
from .complexes import abs as abs_
from .complexes import conj


@operator
class Sigmoid:
    """Logistic function.

    .. math:: y = 1 / (1 + e^{-x})
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}

    def compute(op, x, *, out=None) -> Any:
        return FUNCTIONS["sigmoid"].numpy(x, out)

    def gradient(op, dy) -> Any:
        y = conj(op.y)
        return dy * y * (1 - y)


sigmoid = Sigmoid.as_function("sigmoid")


@operator
class Softplus:
    """A smooth positive part, without overflow for large numbers.

    .. math:: activations = \\ln(1 + e^{features})
    """

    features = Input(floating)
    activations = Output(like="features")
    elementwise = True

    def compute(op, features) -> Any:
        return FUNCTIONS["softplus"].numpy(features)

    def gradient(op, dactivations) -> Any:
        return dactivations * Sigmoid(op.features)


softplus = Softplus.as_function("softplus")


def log_sigmoid(x: Any, name: str | None = None) -> Any:
    """Logarithm of the logistic function: -softplus(-x). See Softplus."""
    return negative(softplus(negative(x)), name=name)


@operator
class Softsign:
    """A bend from -1 to 1 with slow tails.

    .. math:: activations = features / (1 + |features|)
    """

    features = Input(floating)
    activations = Output(like="features")
    elementwise = True

    def compute(op, features) -> Any:
        return FUNCTIONS["softsign"].numpy(features)

    def gradient(op, dactivations) -> Any:
        scale = 1 + abs_(op.features)
        return dactivations / (scale * scale)


softsign = Softsign.as_function("softsign")
