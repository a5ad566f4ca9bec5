"""`OptimizerState`: learning rate, step count and slot variables, the state that checkpoints have of an optimizer.

Lives here: this base of `Optimizer`, names of optimizers. Not here: steps, configuration (base.py), rates
(schedules.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..core.class_names import snake_case
from ..core.dtypes import as_dtype
from ..eager.variable import Variable
from ..tracing.trace import init_scope
from .schedules import LearningRateSchedule

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

_used_names: Counter[str] = Counter()


class OptimizerState:
    """Base of `Optimizer`: its variables.

    learning_rate: see `Optimizer`. name: of the optimizer, the first part of its variables' names; by default its class
    in snake case, numbered
    """

    gradient_accumulation_steps: int | None = None

    def __init__(self, learning_rate: Any, name: str | None) -> None:
        self.name = name or _unique_name(type(self).__name__)
        self.built = False
        self._variables: list[Variable] = []
        self._trainable_variables: list[Variable] = []
        self._index: dict[int, int] = {}  # index of a trainable variable by its id; the list above keeps the ids valid
        self._iterations = self.add_variable((), dtype="int64", name="iteration")
        self._learning_rate: Any = self._rate_variable(learning_rate)

    # ---- learning rate and step count -------------------------------------------------------------------------------

    def _rate_variable(self, learning_rate: Any) -> object:
        if isinstance(learning_rate, Variable):
            self._variables.append(learning_rate)
            return learning_rate
        if callable(learning_rate):
            return learning_rate
        if not isinstance(learning_rate, float):
            raise ValueError(
                "Argument `learning_rate` should be float, or an instance of LearningRateSchedule, or a Variable, or a "
                "callable (that takes no arguments and returns the learning rate value). "
                f"Received instead: learning_rate={learning_rate!r}"
            )
        return self.add_variable((), learning_rate, "float32", name="learning_rate")

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the current step: the variable, or the value of the schedule or function.

        Set it to a float or a schedule; setting a float raises TypeError if there is a schedule or function.
        """
        rate = self._learning_rate
        if isinstance(rate, LearningRateSchedule):
            return rate(self._iterations)
        return rate if isinstance(rate, Variable) else rate()

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        old = self._learning_rate
        if callable(learning_rate):
            self._variables = [v for v in self._variables if v is not old]
            self._learning_rate = learning_rate
        elif isinstance(old, Variable):
            old.assign(learning_rate)
        else:
            kind = "LearningRateSchedule" if isinstance(old, LearningRateSchedule) else "callable"
            raise TypeError(
                f"This optimizer was created with a `{kind}` object as its `learning_rate` constructor argument, hence "
                "its learning rate is not settable. If you need the learning rate to be settable, you should "
                "instantiate the optimizer with a float `learning_rate` argument."
            )

    @property
    def iterations(self) -> Variable | Tensor:
        """The number of updates: an int64 variable, or a tensor if gradients accumulate over several steps."""
        if self.gradient_accumulation_steps:
            return self._iterations // self.gradient_accumulation_steps
        return self._iterations

    # ---- state ------------------------------------------------------------------------------------------------------

    @property
    def variables(self) -> list[Variable]:
        """All state: step count, learning rate, then slots in order of creation."""
        return list(self._variables)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assign the state, in the order of `variables`. Raises ValueError before `build`, and for another number."""
        if not self.built:
            raise ValueError(f"You are calling `set_weights()` on optimizer {self.name!r} before `build(variables)`.")
        if len(weights) != len(self._variables):
            raise ValueError(f"Optimizer {self.name!r} has {len(self._variables)} weights. Received: {len(weights)}")
        for variable, value in zip(self._variables, weights):
            variable.assign(value)

    def add_variable(
        self, shape: Sequence[int], initializer: Any = "zeros", dtype: Any = "float32", name: str | None = None
    ) -> Variable:
        """Return a new variable of the optimizer's state.

        initializer: "zeros", "ones", a number, or a function of shape and dtype; called outside any trace. raises
        ValueError inside a function that was traced before
        """
        dtype = as_dtype(dtype)
        fill = {"zeros": 0, "ones": 1}.get(initializer, initializer) if isinstance(initializer, str) else initializer
        with init_scope():
            # a number is broadcast, not filled: the variable copies its argument, and tables are large
            value = fill(shape, dtype) if callable(fill) else np.broadcast_to(np.asarray(fill, dtype.np), tuple(shape))
        # Not in init_scope: only the first call of a trace may create variables.
        variable = Variable(value, trainable=False, dtype=dtype, name=f"{self.name}/{name or 'variable'}")
        self._variables.append(variable)
        return variable

    def add_variable_from_reference(
        self, reference_variable: Variable, name: str | None = None, initializer: Any = "zeros"
    ) -> Variable:
        """Return a new variable with the dtype and shape of a trainable one."""
        path = getattr(reference_variable, "path", None) or reference_variable.name.partition(":")[0]
        return self.add_variable(
            reference_variable.read_array().shape,
            initializer,
            reference_variable.dtype,
            f"{path.replace('/', '_')}_{name or 'var'}",
        )

    @overload
    def add_optimizer_variables(
        self, trainable_variables: Iterable[Variable], name: str, initializer: Any = "zeros"
    ) -> list[Variable]: ...
    @overload
    def add_optimizer_variables(
        self, trainable_variables: Iterable[Variable], name: list[str], initializer: Any = "zeros"
    ) -> tuple[list[Variable], ...]: ...
    def add_optimizer_variables(
        self, trainable_variables: Iterable[Variable], name: Any, initializer: Any = "zeros"
    ) -> list[Variable] | tuple[list[Variable], ...]:
        """Return a slot for each variable: a list; or a list per name, with one initializer or one each."""
        names = [name] if isinstance(name, str) else list(name)
        fills = list(initializer) if isinstance(initializer, (list, tuple)) else [initializer] * len(names)
        if len(names) != len(fills):
            raise ValueError(
                "The number of provided names must match the number of provided initializers. "
                f"Received name={name!r}, initializer={initializer!r}"
            )
        slots: tuple[list[Variable], ...] = tuple([] for _ in names)
        for variable in trainable_variables:
            for slot, each, fill in zip(slots, names, fills):
                slot.append(self.add_variable_from_reference(variable, each, fill))
        return slots[0] if isinstance(name, str) else slots

    def _get_variable_index(self, variable: Variable) -> int:
        return self._index[variable.identity()]


def _unique_name(class_name: str) -> str:
    """Return sgd, sgd_1, ...: the class's name in snake case, numbered from the second on."""
    base = snake_case(class_name)
    count = _used_names[base]
    _used_names[base] += 1
    return f"{base}_{count}" if count else base


def reset_names() -> None:
    """Begin names of optimizers without a number again."""
    _used_names.clear()
