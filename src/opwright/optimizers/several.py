"""Optimizers for parts of a model: another one for each variable, and one that needs no schedule.

Lives here: OptimizerMap, MultiOptimizer, ScheduleFreeAdamW.  Not here: rules by element (rules.py, adam.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any, NoReturn, Unpack

from ..core.lazy_imports import later
from ..eager.variable import Variable
from ..ops import array, math
from ..tracing.trace import init_scope
from .base import CommonArguments, Optimizer
from .gradients import scalar
from .loss_scale import LossScaleOptimizer

_optimizers: Any = later("opwright.optimizers", "opwright")


class OptimizerMap(MutableMapping[str, Optimizer]):
    """Optimizers by regular expressions, which match the whole path of a variable.

    default_optimizer: of variables that no expression matches. A map is a function of variables, as MultiOptimizer
    takes it.
    raises TypeError for a default that is not an optimizer, ValueError for a variable that several expressions match
    """

    def __init__(self, default_optimizer: Optimizer, optimizer_map: dict[str, Optimizer] | None = None) -> None:
        if not isinstance(default_optimizer, Optimizer):
            raise TypeError(f"default_optimizer must be a Keras Optimizer instance. Received: {default_optimizer}")
        if optimizer_map is not None and not isinstance(optimizer_map, dict):
            raise TypeError(f"optimizer_map must be a dictionary. Received: {optimizer_map}")
        self.default_optimizer = default_optimizer
        self._optimizers: dict[str, Optimizer] = dict(optimizer_map or {})

    def __getitem__(self, key: str) -> Optimizer:
        if key in self._optimizers:
            return self._optimizers[key]
        matching = [pattern for pattern in self._optimizers if re.fullmatch(pattern, key)]
        if len(matching) > 1:
            raise ValueError(f"Multiple optimizers assigned to variable {key}: by {', '.join(matching)}.")
        return self._optimizers[matching[0]] if matching else self.default_optimizer

    def __setitem__(self, key: str, optimizer: Optimizer) -> None:
        if key in self._optimizers:
            raise ValueError(
                f"{key!r} already exists in the OptimizerMap with value {self._optimizers[key]}. Please make sure to "
                "not use duplicated keys."
            )
        if not isinstance(key, str):
            raise ValueError(f"key must be a string. Received: {key}")
        _check_part(optimizer)
        self._optimizers[key] = optimizer

    def __delitem__(self, key: str) -> None:
        del self._optimizers[key]

    def __len__(self) -> int:
        return len(self._optimizers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._optimizers)

    def __call__(self, variable: Variable) -> Optimizer:
        return self[variable.path]

    def get_config(self) -> dict[str, Any]:
        """Return the optimizers as configurations."""
        return {
            "default_optimizer": _optimizers.serialize(self.default_optimizer),
            "optimizer_map": {key: _optimizers.serialize(each) for key, each in self._optimizers.items()},
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> OptimizerMap:
        """Return the map of a configuration."""
        parts = {k: _optimizers.deserialize(c, custom_objects) for k, c in config["optimizer_map"].items()}
        return cls(_optimizers.deserialize(config["default_optimizer"], custom_objects), parts)


def _check_part(optimizer: Any) -> None:
    """Raise ValueError for what cannot be one of several optimizers."""
    if not isinstance(optimizer, Optimizer):
        raise ValueError(f"optimizer must be a Keras Optimizer instance. Received: {optimizer}")
    if isinstance(optimizer, (LossScaleOptimizer, MultiOptimizer)):
        raise ValueError(f"optimizer cannot be {type(optimizer).__name__}: wrap the MultiOptimizer instead.")


class MultiOptimizer(Optimizer):
    """Several optimizers, each for the variables that optimizer_map gives it.

    optimizer_map: an OptimizerMap, or a function of a variable that returns an optimizer.
    raises ValueError for a MultiOptimizer or LossScaleOptimizer among them, AttributeError for its learning rate
    """

    def __init__(self, optimizer_map: Any, loss_scale_factor: float | None = None, name: str | None = None) -> None:
        super().__init__(0.0, loss_scale_factor=loss_scale_factor, name=name)
        self.optimizer_map = optimizer_map
        self.optimizers: list[Optimizer] = []
        self._parts: list[int] = []
        for optimizer in optimizer_map.values() if hasattr(optimizer_map, "values") else ():
            self._part(optimizer)
        if (default := getattr(optimizer_map, "default_optimizer", None)) is not None:
            self._part(default)

    def _part(self, optimizer: Any) -> int:
        """Return the index of an optimizer among the parts; a new one is added."""
        _check_part(optimizer)
        for i, known in enumerate(self.optimizers):
            if known is optimizer:
                return i
        optimizer.loss_scale_factor = self.loss_scale_factor
        self.optimizers.append(optimizer)
        return len(self.optimizers) - 1

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Build each part for its variables."""
        self._parts = [self._part(self.optimizer_map(v)) for v in variables]
        for optimizer, own in zip(self.optimizers, self._by_part(variables)):
            if own:
                optimizer.build(own)

    def _by_part(self, values: Sequence[Any]) -> list[list[Any]]:
        """Return values of all variables, in their order, as a list for each part."""
        lists: list[list[Any]] = [[] for _ in self.optimizers]
        for part, value in zip(self._parts, values):
            lists[part].append(value)
        return lists

    @property
    def variables(self) -> list[Variable]:
        """All state: the step count, a learning rate of 0 as Keras has, then that of the parts."""
        return [*self._variables, *(v for optimizer in self.optimizers for v in optimizer.variables)]

    def _no_rate(self, *_: Any) -> NoReturn:
        raise AttributeError(
            "a MultiOptimizer has no learning rate: read and set those of its parts, `optimizer.optimizers`."
        )

    learning_rate = property(_no_rate, _no_rate)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Variable] | None = None) -> None:
        """Run one step of each part."""
        grads = list(grads)
        if not grads:
            return
        variables = self._built_variables(len(grads)) if trainable_variables is None else list(trainable_variables)
        self.build(variables)
        if len(grads) != len(self._trainable_variables):
            raise ValueError(
                f"Gradients must match trainable variables one-to-one. Received {len(grads)} gradients and "
                f"{len(self._trainable_variables)} variables."
            )
        parts = [self._parts[self._get_variable_index(v)] for v in variables]
        for i, optimizer in enumerate(self.optimizers):
            pairs = [(g, v) for part, g, v in zip(parts, grads, variables) if part == i]
            if any(g is not None for g, _ in pairs):
                optimizer.apply([g for g, _ in pairs], [v for _, v in pairs])
        self._iterations.assign_add(1)

    def finalize_variable_values(self, var_list: Sequence[Variable]) -> None:
        """Set the variables to the averages of their optimizers, where they keep them."""
        parts = [self._parts[self._get_variable_index(v)] for v in var_list]
        for i, optimizer in enumerate(self.optimizers):
            own = [v for part, v in zip(parts, var_list) if part == i]
            if own:
                optimizer.finalize_variable_values(own)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments; a map as its configuration."""
        own = self.optimizer_map
        if isinstance(own, OptimizerMap):
            own = {"class_name": "OptimizerMap", "config": own.get_config()}
        return {"optimizer_map": own, "loss_scale_factor": self.loss_scale_factor, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> MultiOptimizer:
        """Return a new optimizer, without state."""
        config = dict(config)
        if isinstance(config["optimizer_map"], dict):
            config["optimizer_map"] = OptimizerMap.from_config(config["optimizer_map"]["config"], custom_objects)
        return cls(**config)


class ScheduleFreeAdamW(Optimizer):
    """Adam on a point between an average and the last step, which needs no schedule (Defazio et al., 2024).

    .. math::

        v &\\leftarrow v + (g^2 - v)(1 - \\beta_2), \\quad
        z' = z - \\eta \\min(1, t / \\text{warmup}) \\, g / (\\sqrt{v / (1 - \\beta_2^t)} + \\epsilon) \\\\
        x &= (w - (1 - \\beta_1) z) / \\beta_1, \\quad x' = x + (z' - x) / t, \\quad
        w \\leftarrow (1 - \\beta_1) z' + \\beta_1 x'

    warmup_steps: how many steps the rate grows linearly; 0: none.
    """

    hyperparameters = ("beta_1", "beta_2", "epsilon", "warmup_steps")

    def __init__(
        self,
        learning_rate: Any = 0.0025,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        warmup_steps: int = 0,
        **common: Unpack[CommonArguments],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.beta_1, self.beta_2, self.epsilon, self.warmup_steps = beta_1, beta_2, epsilon, warmup_steps
        self._momentums: list[Variable] = []
        self._velocities: list[Variable] = []

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create z, which begins as the variable, and v."""
        self._momentums, self._velocities = self.add_optimizer_variables(variables, ["momentum", "velocity"])
        with init_scope():  # once, and not in each step of a function that is being traced
            for z, variable in zip(self._momentums, variables):
                z.assign(variable.value())

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        i, dtype = self._get_variable_index(variable), variable.dtype
        z, v = self._momentums[i], self._velocities[i]
        g, t, rate = array.cast(gradient, dtype), array.cast(self.iterations + 1, dtype), scalar(learning_rate, dtype)
        if self.warmup_steps > 0:
            rate = rate * math.minimum(t / scalar(float(self.warmup_steps), dtype), scalar(1.0, dtype))
        last = z.value()
        v.assign_add((math.square(g) - v) * (1 - self.beta_2))
        unbiased = v / (1.0 - math.pow(scalar(self.beta_2, dtype), t))
        z.assign_sub(rate * g / (math.sqrt(unbiased) + self.epsilon))
        x = (variable.value() - last * (1 - self.beta_1)) / self.beta_1
        x = (1.0 - 1.0 / t) * x + 1.0 / t * z
        variable.assign(z * (1 - self.beta_1) + x * self.beta_1)
