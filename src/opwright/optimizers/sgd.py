"""Gradient descent.

Lives here: SGD, with momentum and Nesterov's.  Not here: adaptive rates (adam.py, rmsprop.py, adagrad.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..eager.variable import Variable
from ..ops import array
from .base import Common, Optimizer
from .gradients import on_values
from .scalars import scalar


class SGD(Optimizer):
    """Gradient descent, with momentum where `momentum` is not 0.

    .. math::

        w \\leftarrow w - \\eta g \\qquad
        u \\leftarrow \\mu u - \\eta g, \\; w \\leftarrow w + u \\qquad
        \\text{nesterov: } w \\leftarrow w + \\mu u - \\eta g

    momentum: mu, 0 to 1. raises ValueError for another momentum
    """

    hyperparameters = ("momentum", "nesterov")

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False,
                 **common: Unpack[Common]) -> None:  # fmt: skip
        super().__init__(learning_rate, **common)
        if not isinstance(momentum, float) or not 0 <= momentum <= 1:
            raise ValueError(f"`momentum` must be a float between [0, 1]. Received: momentum={momentum!r}")
        self.momentum, self.nesterov = momentum, nesterov
        self.momentums: list[Variable] = []

    def build(self, variables: Sequence[Variable]) -> None:
        """Create the velocities, if there is momentum."""
        if self.built:
            return
        super().build(variables)
        if self.momentum:
            self.momentums = self.add_optimizer_variables(variables, "momentum")

    def takes_slices(self) -> bool:
        """Without momentum, rows without gradient do not change."""
        return not self.momentum

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """See the class."""
        dtype = variable.dtype
        rate = scalar(learning_rate, dtype)
        step = on_values(lambda g: array.cast(g, dtype) * rate, gradient)
        if not self.momentum:
            self.assign_sub(variable, step)
            return
        slot = self.momentums[self._get_variable_index(variable)]
        u = slot.value() * self.momentum - step
        slot.assign(u)
        variable.assign_add(u * self.momentum - step if self.nesterov else u)
