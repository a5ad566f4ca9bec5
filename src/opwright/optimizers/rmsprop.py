"""Gradients divided by the root of a running mean of their squares.

Lives here: RMSprop, Adadelta.  Not here: with a first moment (adam.py), with sums in place of means (adagrad.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..eager.variable import Variable
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

    def takes_slices(self) -> bool:
        """Of rows without gradient the means decay; only momentum moves them."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """See the class."""
        i = self._get_variable_index(variable)
        rule, state = "rmsprop", [self._velocities[i]]
        scalars = [scalar(learning_rate, variable.dtype), self.rho, 1 - self.rho, self.epsilon]
        if self.centered:
            rule += "_centered"
            state.append(self._average_gradients[i])
        if self.momentum > 0:
            rule += "_momentum"
            state.append(self._momentums[i])
            scalars.append(self.momentum)
        self.update_by(rule, gradient, variable, state, scalars)


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

    def takes_slices(self) -> bool:
        """Of rows without gradient the means decay; only momentum moves them."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """See the class."""
        i = self._get_variable_index(variable)
        self.update_by("adadelta", gradient, variable, (self._accumulated_grads[i], self._accumulated_delta_vars[i]),
                       (scalar(learning_rate, variable.dtype), self.rho, 1 - self.rho, self.epsilon))  # fmt: skip
