"""Steps by the sign of the momentum.

Lives here: Lion.  Not here: optimizers whose steps have a size (sgd.py, adam.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..core.dtypes import DType
from ..eager.variable import Variable
from .base import Common, Optimizer
from .scalars import scalar


class Lion(Optimizer):
    """Evolved sign momentum (Chen et al., 2023).

    .. math::

        w \\leftarrow w - \\eta \\, \\mathrm{sign}(\\beta_1 m + (1 - \\beta_1) g), \\quad
        m \\leftarrow \\beta_2 m + (1 - \\beta_2) g

    raises ValueError for beta_1 outside (0, 1]
    """

    hyperparameters = ("beta_1", "beta_2")

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99,
                 **common: Unpack[Common]) -> None:  # fmt: skip
        super().__init__(learning_rate, **common)
        if not 0 < beta_1 <= 1:
            raise ValueError("Argument `beta_1` must be in the ]0, 1] range. Otherwise, the optimizer degenerates to "
                             f"SignSGD. Received: beta_1={beta_1}.")  # fmt: skip
        self.beta_1, self.beta_2 = beta_1, beta_2
        self._momentums: list[Variable] = []

    def build(self, variables: Sequence[Variable]) -> None:
        """Create m."""
        if self.built:
            return
        super().build(variables)
        self._momentums = self.add_optimizer_variables(variables, "momentum")

    def _terms(self, dtype: DType, learning_rate: Any) -> tuple[Any, ...]:
        beta_1, beta_2 = scalar(self.beta_1, dtype), scalar(self.beta_2, dtype)
        return scalar(learning_rate, dtype), beta_1, 1.0 - beta_1, beta_2, 1.0 - beta_2

    def takes_slices(self) -> bool:
        """Rows without gradient move on by their momentum."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """See the class."""
        slot = self._momentums[self._get_variable_index(variable)]
        self.update_by("lion", gradient, variable, (slot,), self._once(variable.dtype, self._terms, learning_rate))
