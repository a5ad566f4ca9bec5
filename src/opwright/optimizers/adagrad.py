"""Gradients divided by the root of the sum of their squares.

Lives here: Adagrad, Ftrl.  Not here: running means in place of sums (rmsprop.py, adam.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..eager.variable import Variable
from .base import Common, Optimizer
from .scalars import scalar


class Adagrad(Optimizer):
    """Adaptive gradients (Duchi et al., 2011).

    .. math:: a \\leftarrow a + g^2, \\quad w \\leftarrow w - \\frac{\\eta g}{\\sqrt{a + \\epsilon}}

    initial_accumulator_value: what a starts from. Rows without gradient are not touched.
    """

    hyperparameters = ("initial_accumulator_value", "epsilon")

    def __init__(self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1, epsilon: float = 1e-7,
                 **common: Unpack[Common]) -> None:  # fmt: skip
        super().__init__(learning_rate, **common)
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon
        self._accumulators: list[Variable] = []

    def build(self, variables: Sequence[Variable]) -> None:
        """Create the sums of squares."""
        if self.built:
            return
        super().build(variables)
        self._accumulators = self.add_optimizer_variables(variables, "accumulator", self.initial_accumulator_value)

    def takes_slices(self) -> bool:
        """A row without gradient keeps its sum and its value."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """See the class."""
        slot = self._accumulators[self._get_variable_index(variable)]
        rate = scalar(learning_rate, variable.dtype)
        self.update_by("adagrad", gradient, variable, (slot,), (rate, self.epsilon))


class Ftrl(Optimizer):
    """Follow the regularized leader (McMahan et al., 2013), with shrinkage.

    .. math::

        n' &= n + g^2, \\quad p = -\\text{learning\\_rate\\_power} \\\\
        z &\\leftarrow z + g + 2 \\lambda_s w - \\frac{n'^p - n^p}{\\eta} w \\\\
        w &\\leftarrow \\frac{\\mathrm{clip}(z, -\\lambda_1, \\lambda_1) - z}
                             {n'^p / \\eta + 2 \\lambda_2 + \\beta / \\eta}

    l1_, l2_, l2_shrinkage_regularization_strength: lambda_1, lambda_2, lambda_s.
    raises ValueError for a positive learning_rate_power or a negative strength
    """

    hyperparameters = ("learning_rate_power", "initial_accumulator_value", "l1_regularization_strength",
                       "l2_regularization_strength", "l2_shrinkage_regularization_strength", "beta")  # fmt: skip

    def __init__(self, learning_rate: Any = 0.001, learning_rate_power: float = -0.5,
                 initial_accumulator_value: float = 0.1, l1_regularization_strength: float = 0.0,
                 l2_regularization_strength: float = 0.0, l2_shrinkage_regularization_strength: float = 0.0,
                 beta: float = 0.0, **common: Unpack[Common]) -> None:  # fmt: skip
        super().__init__(learning_rate, **common)
        if learning_rate_power > 0:
            raise ValueError("`learning_rate_power` needs to be negative or zero. Received: "
                             f"learning_rate_power={learning_rate_power}.")  # fmt: skip
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta
        for key in self.hyperparameters[1:5]:
            if getattr(self, key) < 0:
                raise ValueError(f"`{key}` needs to be positive or zero. Received: {key}={getattr(self, key)}.")
        self._accumulators: list[Variable] = []
        self._linears: list[Variable] = []

    def build(self, variables: Sequence[Variable]) -> None:
        """Create n and z."""
        if self.built:
            return
        super().build(variables)
        self._accumulators, self._linears = self.add_optimizer_variables(
            variables, ["accumulator", "linear"], [self.initial_accumulator_value, "zeros"])  # fmt: skip

    def takes_slices(self) -> bool:
        """Rows without gradient are set from their z and n, as the dense gradient sets them."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """See the class."""
        i = self._get_variable_index(variable)
        rate = scalar(learning_rate, variable.dtype)
        l2 = self.l2_regularization_strength + self.beta / (2.0 * rate)
        self.update_by("ftrl", gradient, variable, (self._accumulators[i], self._linears[i]),
                       (rate, -self.learning_rate_power, self.l1_regularization_strength, l2,
                        2 * self.l2_shrinkage_regularization_strength))  # fmt: skip
