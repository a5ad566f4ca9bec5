"""Optimizers without a first and second moment together: by the gradient, its sign, its mean or summed square.

Lives here: SGD, with momentum and Nesterov's; Lion, by the sign of the momentum; RMSprop and Adadelta, by a running
mean of squares; Adagrad and Ftrl, by their sum.
Not here: optimizers by both moments (adam.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..core.dtypes import DType
from ..eager.variable import Variable
from .base import CommonArguments, Optimizer
from .gradients import scalar


class SGD(Optimizer):
    """Gradient descent, with momentum where `momentum` is not 0.

    .. math::

        w \\leftarrow w - \\eta g \\qquad
        u \\leftarrow \\mu u - \\eta g, \\; w \\leftarrow w + u \\qquad
        \\text{nesterov: } w \\leftarrow w + \\mu u - \\eta g

    momentum: mu, 0 to 1. raises ValueError for another momentum
    """

    hyperparameters = ("momentum", "nesterov")

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        **common: Unpack[CommonArguments],
    ) -> None:
        super().__init__(learning_rate, **common)
        if not isinstance(momentum, float) or not 0 <= momentum <= 1:
            raise ValueError(f"`momentum` must be a float between [0, 1]. Received: momentum={momentum!r}")
        self.momentum, self.nesterov = momentum, nesterov
        self.momentums: list[Variable] = []

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create the velocities, if there is momentum."""
        if self.momentum:
            self.momentums = self.add_optimizer_variables(variables, "momentum")

    def takes_slices(self) -> bool:
        """Return True: rows are updated individually; with momentum, rows without gradient still move by theirs."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        rate = scalar(learning_rate, variable.dtype)
        if not self.momentum:
            self.update_by("descent", gradient, variable, (), (rate,))
            return
        slot = self.momentums[self._get_variable_index(variable)]
        rule = "nesterov" if self.nesterov else "momentum"
        self.update_by(rule, gradient, variable, (slot,), (rate, self.momentum))


class Lion(Optimizer):
    """Evolved sign momentum (Chen et al., 2023).

    .. math::

        w \\leftarrow w - \\eta \\, \\mathrm{sign}(\\beta_1 m + (1 - \\beta_1) g), \\quad
        m \\leftarrow \\beta_2 m + (1 - \\beta_2) g

    raises ValueError for beta_1 outside (0, 1]
    """

    hyperparameters = ("beta_1", "beta_2")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, **common: Unpack[CommonArguments]
    ) -> None:
        super().__init__(learning_rate, **common)
        if not 0 < beta_1 <= 1:
            raise ValueError(
                "Argument `beta_1` must be in the ]0, 1] range. Otherwise, the optimizer degenerates to "
                f"SignSGD. Received: beta_1={beta_1}."
            )
        self.beta_1, self.beta_2 = beta_1, beta_2
        self._momentums: list[Variable] = []

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create m."""
        self._momentums = self.add_optimizer_variables(variables, "momentum")

    def _terms(self, dtype: DType, learning_rate: Any) -> tuple[Any, ...]:
        beta_1, beta_2 = scalar(self.beta_1, dtype), scalar(self.beta_2, dtype)
        return scalar(learning_rate, dtype), beta_1, 1.0 - beta_1, beta_2, 1.0 - beta_2

    def takes_slices(self) -> bool:
        """Return True: rows without gradient still move by their momentum."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        slot = self._momentums[self._get_variable_index(variable)]
        self.update_by("lion", gradient, variable, (slot,), self._per_dtype(variable.dtype, self._terms, learning_rate))


class RMSprop(Optimizer):
    """Root mean square propagation (Hinton, 2012), with plain momentum.

    .. math::

        v \\leftarrow \\rho v + (1 - \\rho) g^2, \\quad
        u \\leftarrow \\mu u + \\frac{\\eta g}{\\sqrt{v + \\epsilon}}, \\quad w \\leftarrow w - u

    centered: subtract the squared running mean of g from v, which estimates the variance.
    """

    hyperparameters = ("rho", "momentum", "epsilon", "centered")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **common: Unpack[CommonArguments],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.rho, self.momentum, self.epsilon, self.centered = rho, momentum, epsilon, centered
        self._velocities: list[Variable] = []
        self._momentums: list[Variable] = []
        self._average_gradients: list[Variable] = []

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create v, and the momenta and means of g that are asked for."""
        self._velocities = self.add_optimizer_variables(variables, "velocity")
        if self.momentum > 0:
            self._momentums = self.add_optimizer_variables(variables, "momentum")
        if self.centered:
            self._average_gradients = self.add_optimizer_variables(variables, "average_gradient")

    def takes_slices(self) -> bool:
        """Return True: the means of rows without gradient decay; only momentum moves such rows."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
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

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7, **common: Unpack[CommonArguments]
    ) -> None:
        super().__init__(learning_rate, **common)
        self.rho, self.epsilon = rho, epsilon
        self._accumulated_grads: list[Variable] = []
        self._accumulated_delta_vars: list[Variable] = []

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create the means of squared gradients and squared steps."""
        self._accumulated_grads, self._accumulated_delta_vars = self.add_optimizer_variables(
            variables, ["accumulated_grad", "accumulated_delta_var"]
        )

    def takes_slices(self) -> bool:
        """Return True: the means of rows without gradient decay; only momentum moves such rows."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        i = self._get_variable_index(variable)
        self.update_by(
            "adadelta",
            gradient,
            variable,
            (self._accumulated_grads[i], self._accumulated_delta_vars[i]),
            (scalar(learning_rate, variable.dtype), self.rho, 1 - self.rho, self.epsilon),
        )


class Adagrad(Optimizer):
    """Adaptive gradients (Duchi et al., 2011).

    .. math:: a \\leftarrow a + g^2, \\quad w \\leftarrow w - \\frac{\\eta g}{\\sqrt{a + \\epsilon}}

    initial_accumulator_value: what a starts from. Rows without gradient are not touched.
    """

    hyperparameters = ("initial_accumulator_value", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **common: Unpack[CommonArguments],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon
        self._accumulators: list[Variable] = []

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create the sums of squares."""
        self._accumulators = self.add_optimizer_variables(variables, "accumulator", self.initial_accumulator_value)

    def takes_slices(self) -> bool:
        """Return True: a row without gradient is unchanged, and so is its sum."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
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

    hyperparameters = (
        "learning_rate_power",
        "initial_accumulator_value",
        "l1_regularization_strength",
        "l2_regularization_strength",
        "l2_shrinkage_regularization_strength",
        "beta",
    )

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **common: Unpack[CommonArguments],
    ) -> None:
        super().__init__(learning_rate, **common)
        if learning_rate_power > 0:
            raise ValueError(
                "`learning_rate_power` needs to be negative or zero. Received: "
                f"learning_rate_power={learning_rate_power}."
            )
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

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create n and z."""
        self._accumulators, self._linears = self.add_optimizer_variables(
            variables, ["accumulator", "linear"], [self.initial_accumulator_value, "zeros"]
        )

    def takes_slices(self) -> bool:
        """Return True: rows without gradient are recomputed from their z and n, as by the dense gradient."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        i = self._get_variable_index(variable)
        rate = scalar(learning_rate, variable.dtype)
        l2 = self.l2_regularization_strength + self.beta / (2.0 * rate)
        self.update_by(
            "ftrl",
            gradient,
            variable,
            (self._accumulators[i], self._linears[i]),
            (
                rate,
                -self.learning_rate_power,
                self.l1_regularization_strength,
                l2,
                2 * self.l2_shrinkage_regularization_strength,
            ),
        )
