"""Gradient descent.

Lives here: SGD, with momentum and Nesterov's.  Not here: adaptive rates (adam.py, rmsprop.py, adagrad.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..eager.variable import Variable
from .base import Common, Optimizer
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
        """Rows are updated by rows; with momentum, those without gradient move on by theirs."""
        return True

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """See the class."""
        rate = scalar(learning_rate, variable.dtype)
        if not self.momentum:
            self.update_by("descent", gradient, variable, (), (rate,))
            return
        slot = self.momentums[self._get_variable_index(variable)]
        rule = "nesterov" if self.nesterov else "momentum"
        self.update_by(rule, gradient, variable, (slot,), (rate, self.momentum))
