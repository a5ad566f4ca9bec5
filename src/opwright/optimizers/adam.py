"""Optimizers by moments of the gradient.

Lives here: Adam, AdamW, Adamax, Nadam.  Not here: second moments without the first (rules.py).

In all: m and v are running means of g and g^2, t counts steps from 1, eta is the learning rate. Factors that depend on
t alone are computed once per step and dtype.

lazy_mode, in all: a gradient of sparse rows (IndexedSlices) changes only its own rows, with their moments and weight
decay; otherwise rows without gradient still move by their moments, as with the dense gradient. t counts every step,
with or without rows. Dense gradients are unaffected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from ..core.dtypes import DType
from ..eager.variable import Variable
from ..ops import array, math
from .base import CommonArguments, Optimizer
from .gradients import scalar, working_dtype

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


class _Moments(Optimizer):
    """Base of optimizers by two moments: rates of the running means, epsilon, and updates by rows."""

    hyperparameters: ClassVar[tuple[str, ...]] = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        lazy_mode: bool = False,
        **common: Unpack[CommonArguments],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.lazy_mode = lazy_mode
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def takes_slices(self) -> bool:
        """Return True: rows without gradient move by their moments, or are unchanged in lazy mode."""
        return True

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments; lazy_mode only if it is on, as other classes lack that argument."""
        return {**super().get_config(), **({"lazy_mode": True} if self.lazy_mode else {})}


class Adam(_Moments):
    """Adaptive moments (Kingma and Ba, 2014, with the epsilon of the formula before section 2.1).

    .. math::

        m &\\leftarrow m + (g - m)(1 - \\beta_1), \\quad v \\leftarrow v + (g^2 - v)(1 - \\beta_2) \\\\
        w &\\leftarrow w - \\eta \\frac{\\sqrt{1 - \\beta_2^t}}{1 - \\beta_1^t} \\frac{m}{\\sqrt{v} + \\epsilon}

    amsgrad: divide by the largest v so far (Reddi et al., 2018). lazy_mode: see the module.
    """

    hyperparameters = ("beta_1", "beta_2", "epsilon", "amsgrad")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        lazy_mode: bool = False,
        **common: Unpack[CommonArguments],
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, lazy_mode, **common)
        self.amsgrad = amsgrad
        self._momentums: list[Variable] = []
        self._velocities: list[Variable] = []
        self._velocity_hats: list[Variable] = []

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create m, v and, for amsgrad, the largest v."""
        self._momentums, self._velocities = self.add_optimizer_variables(variables, ["momentum", "velocity"])
        if self.amsgrad:
            self._velocity_hats = self.add_optimizer_variables(variables, "velocity_hat")

    def _terms(self, dtype: DType, learning_rate: Any) -> tuple[Any, ...]:
        t = array.cast(self.iterations + 1, dtype)
        correction = math.sqrt(1.0 - math.pow(scalar(self.beta_2, dtype), t))
        return (scalar(learning_rate, dtype) * correction / (1.0 - math.pow(scalar(self.beta_1, dtype), t)),)

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        i = self._get_variable_index(variable)
        (rate,) = self._per_dtype(variable.dtype, self._terms, learning_rate)
        rule, state = "adam", [self._momentums[i], self._velocities[i]]
        if self.amsgrad:
            rule = "amsgrad"
            state.append(self._velocity_hats[i])
        self.update_by(rule, gradient, variable, state, (rate, 1 - self.beta_1, 1 - self.beta_2, self.epsilon))


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    .. math:: w \\leftarrow w - \\eta \\lambda w, \\text{ then Adam}

    weight_decay: lambda. raises ValueError for None
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        lazy_mode: bool = False,
        **common: Any,
    ) -> None:
        super().__init__(
            learning_rate, beta_1, beta_2, epsilon, amsgrad, lazy_mode, weight_decay=weight_decay, **common
        )
        if weight_decay is None:
            raise ValueError("Argument `weight_decay` must be a float. Received: weight_decay=None")


class Adamax(_Moments):
    """Adam by the infinity norm (Kingma and Ba, 2014, section 7.1).

    .. math::

        m \\leftarrow m + (g - m)(1 - \\beta_1), \\quad u \\leftarrow \\max(\\beta_2 u, |g|), \\quad
        w \\leftarrow w - \\frac{\\eta m}{(1 - \\beta_1^t)(u + \\epsilon)}
    """

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create m and u."""
        self._m, self._u = self.add_optimizer_variables(variables, ["momentum", "norm"])

    def _terms(self, dtype: DType, learning_rate: Any) -> tuple[Any, ...]:
        t = array.cast(self.iterations + 1, dtype)
        return scalar(learning_rate, dtype), 1.0 - math.pow(scalar(self.beta_1, dtype), t)

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        i = self._get_variable_index(variable)
        rate, correction = self._per_dtype(variable.dtype, self._terms, learning_rate)
        self.update_by(
            "adamax",
            gradient,
            variable,
            (self._m[i], self._u[i]),
            (rate, correction, 1 - self.beta_1, self.beta_2, self.epsilon),
        )


class Nadam(_Moments):
    """Adam with Nesterov's momentum (Dozat, 2015).

    .. math::

        \\mu_t &= \\beta_1 (1 - \\tfrac12 0.96^t), \\quad \\Pi_t = \\mu_1 \\cdots \\mu_t \\\\
        \\hat m &= \\frac{\\mu_{t+1} m}{1 - \\Pi_{t+1}} + \\frac{(1 - \\mu_t) g}{1 - \\Pi_t}, \\quad
        \\hat v = \\frac{v}{1 - \\beta_2^t}, \\quad w \\leftarrow w - \\frac{\\eta \\hat m}{\\sqrt{\\hat v} + \\epsilon}
    """

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create m, v and the product of the momentum schedule."""
        self._momentums, self._velocities = self.add_optimizer_variables(variables, ["momentum", "velocity"])
        dtype = working_dtype(variables[0].dtype if variables else "float32")
        self._product = self.add_variable((), "ones", dtype, name="u_product")

    def _momentum(self, t: Any, dtype: DType) -> Tensor:
        return scalar(self.beta_1, dtype) * (1.0 - 0.5 * math.pow(scalar(0.96, dtype), scalar(t, dtype)))

    def begin_update(self) -> None:
        """Update the product of momenta, once per step."""
        product = self._product.value() * self._momentum(self.iterations + 1, self._product.dtype)
        self._product.assign(product)
        if self._scalars is not None:  # a read behind the write would keep compiled gradients and updates apart
            self._scalars["product"] = product

    def _terms(self, dtype: DType, learning_rate: Any) -> tuple[Any, ...]:
        t = self.iterations + 1
        now, later = self._momentum(t, dtype), self._momentum(t + 1, dtype)
        product = array.cast((self._scalars or {}).get("product", self._product), dtype)
        beta_1, beta_2 = scalar(self.beta_1, dtype), scalar(self.beta_2, dtype)
        return (
            scalar(learning_rate, dtype),
            later,
            1.0 - product * later,
            1.0 - now,
            1.0 - product,
            1.0 - beta_1,
            1.0 - beta_2,
            1.0 - math.pow(beta_2, scalar(t, dtype)),
        )

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        i = self._get_variable_index(variable)
        terms = self._per_dtype(variable.dtype, self._terms, learning_rate)
        self.update_by("nadam", gradient, variable, (self._momentums[i], self._velocities[i]), (*terms, self.epsilon))
