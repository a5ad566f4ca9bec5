"""Moving averages of variables.

Lives here: `ExponentialMovingAverage`.  Not here: averages that an optimizer keeps (base.py, `use_ema`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..eager.variable import Variable
from ..ops import array, math

__all__ = ["ExponentialMovingAverage"]


class ExponentialMovingAverage:
    """Averages of variables over steps, later steps more.

    .. math:: average \\leftarrow average - (1 - decay)\\,(average - variable)

    num_updates: a count of steps, a number or variable; decay is then at most (1 + n) / (10 + n). zero_debias: averages
    begin at 0, and `average` divides by the weights' sum.
    raises ValueError for variables that are not floating
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        self._decay, self._num_updates, self._zero_debias, self._name = decay, num_updates, zero_debias, name
        self._averages: dict[int, tuple[Variable, Variable, Variable | None]] = {}

    @property
    def name(self) -> str:
        """The name of averages, after their variable's."""
        return self._name

    def apply(self, var_list: Iterable[Variable]) -> None:
        """Update the averages of variables; the first call creates them, with the variables' values."""
        decay = array.cast(self._decay, "float32")
        if self._num_updates is not None:
            n = array.cast(self._num_updates, "float32")
            decay = math.minimum(decay, (1.0 + n) / (10.0 + n))
        for variable in var_list:
            if not variable.dtype.is_floating:
                raise ValueError(f"The variables must be floating. Received: {variable.name} of {variable.dtype.name}")
            _, average, weight = self._average_of(variable)
            rate = array.cast(1.0 - decay, variable.dtype)
            average.assign_sub((average - variable) * rate)
            if weight is not None:
                weight.assign_sub((weight - array.ones([], variable.dtype)) * rate)

    def _average_of(self, variable: Variable) -> tuple[Variable, Variable, Variable | None]:
        if id(variable) not in self._averages:
            value, weight = variable.read_value(), None
            if self._zero_debias:
                value, weight = array.zeros_like(value), Variable(array.zeros([], variable.dtype), trainable=False)
            average = Variable(value, trainable=False, name=self.average_name(variable))
            self._averages[id(variable)] = variable, average, weight
        return self._averages[id(variable)]

    def average(self, var: Variable) -> Any:
        """Return the variable of an average, with zero_debias its quotient; None for a variable that has none."""
        if id(var) not in self._averages:
            return None
        _, average, weight = self._averages[id(var)]
        return average if weight is None else math.divide_no_nan(average.read_value(), weight.read_value())

    def average_name(self, var: Variable) -> str:
        """Return the name of a variable's average."""
        return f"{var.name.split(':')[0]}/{self._name}"
