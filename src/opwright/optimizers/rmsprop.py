"""Gradients divided by the root of a running mean of their squares.

Lives here: RMSprop, Adadelta.  Not here: with a first moment (adam.py), with sums in place of means (adagrad.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..eager.variable import Variable
from ..ops import array, math
from .base import Common, Optimizer
from .scalars import scalar


class RMSprop(Optimizer):
    """Root mean square propagation (Hinton, 2012), with plain momentum.

    .. math::

        v \\leftarrow \\rho v + (1 - \\rho) g^2, \\quad
        u \\leftarrow \\mu u + \\frac{\\eta g}{\\sqrt{v + \\epsilon}}, \\quad w \\leftarrow w - u

    centered: subtract the squared running mean of g from v, which estimates the variance.
    """

    hyperparameters = ("rho", "momentum", "epsilon", "centered")

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-7,
                 centered: bool = False, **common: Unpack[Common]) -> None:  # fmt: skip
        super().__init__(learning_rate, **common)
        self.rho, self.momentum, self.epsilon, self.centered = rho, momentum, epsilon, centered
        self._velocities: list[Variable] = []
        self._momentums: list[Variable] = []
        self._average_gradients: list[Variable] = []

    def build(self, variables: Sequence[Variable]) -> None:
        """Create v, and the momenta and means of g that are asked for."""
        if self.built:
            return
        super().build(variables)
        self._velocities = self.add_optimizer_variables(variables, "velocity")
        if self.momentum > 0:
            self._momentums = self.add_optimizer_variables(variables, "momentum")
        if self.centered:
            self._average_gradients = self.add_optimizer_variables(variables, "average_gradient")

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """See the class."""
        i = self._get_variable_index(variable)
        rho = self.rho
        g = array.cast(gradient, variable.dtype)
        v = rho * self._velocities[i].value() + (1 - rho) * (g * g)
        self._velocities[i].assign(v)
        if self.centered:
            mean = rho * self._average_gradients[i].value() + (1 - rho) * g
            self._average_gradients[i].assign(mean)
            v = v - mean * mean
        step = scalar(learning_rate, variable.dtype) * g / math.sqrt(v + self.epsilon)
        if self.momentum > 0:
            step = self.momentum * self._momentums[i].value() + step
            self._momentums[i].assign(step)
        variable.assign_sub(step)


class Adadelta(Optimizer):
    """Steps with the units of the variable (Zeiler, 2012).

    .. math::

        a &\\leftarrow \\rho a + (1 - \\rho) g^2, \\quad
        \\delta = -\\frac{\\sqrt{d + \\epsilon}}{\\sqrt{a + \\epsilon}} g \\\\
        d &\\leftarrow \\rho d + (1 - \\rho) \\delta^2, \\quad w \\leftarrow w + \\eta \\delta
    """

    hyperparameters = ("rho", "epsilon")

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7,
                 **common: Unpack[Common]) -> None:  # fmt: skip
        super().__init__(learning_rate, **common)
        self.rho, self.epsilon = rho, epsilon
        self._accumulated_grads: list[Variable] = []
        self._accumulated_delta_vars: list[Variable] = []

    def build(self, variables: Sequence[Variable]) -> None:
        """Create the means of squared gradients and squared steps."""
        if self.built:
            return
        super().build(variables)
        self._accumulated_grads, self._accumulated_delta_vars = self.add_optimizer_variables(
            variables, ["accumulated_grad", "accumulated_delta_var"])  # fmt: skip

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """See the class."""
        i = self._get_variable_index(variable)
        rho = self.rho
        g = array.cast(gradient, variable.dtype)
        d = self._accumulated_delta_vars[i].value()
        a = rho * self._accumulated_grads[i].value() + (1 - rho) * (g * g)
        step = math.sqrt(d + self.epsilon) * g / math.sqrt(a + self.epsilon)  # -delta
        self._accumulated_grads[i].assign(a)
        self._accumulated_delta_vars[i].assign(rho * d + (1 - rho) * (step * step))
        variable.assign_sub(scalar(learning_rate, variable.dtype) * step)
