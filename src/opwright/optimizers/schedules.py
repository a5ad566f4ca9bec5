"""Learning rates that depend on the step.

Lives here: the schedules, and their way to and from plain dictionaries.  Not here: who asks for a rate (base.py).

A schedule is called with the step (a number, tensor or variable) and gives a scalar tensor with the dtype of its
initial learning rate. In the formulas t is the step, T `decay_steps`, eta_0 `initial_learning_rate`.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..ops import array, dispatch, math
from .gradients import scalar

if TYPE_CHECKING:
    from ..ops.tensor import Tensor, TensorValue


class LearningRateSchedule:
    """Base of all schedules: define `__call__(step)`, and list the constructor's arguments in `arguments`."""

    arguments: ClassVar[tuple[str, ...]] = ()

    def __call__(self, step: Any) -> Tensor:
        """Return the learning rate at a step."""
        raise NotImplementedError(
            f"Learning rate schedule '{type(self).__name__}' must override `__call__(self, step)`."
        )

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        if not self.arguments:
            raise NotImplementedError(
                f"Learning rate schedule '{type(self).__name__}' must override `get_config()` in "
                "order to be serializable."
            )
        return {key: getattr(self, key) for key in self.arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LearningRateSchedule:
        """Return the schedule described by `get_config`."""
        return cls(**config)

    def _start(self, step: TensorValue) -> tuple[Tensor, Tensor]:
        """Return the initial learning rate, and the step in its dtype."""
        first = dispatch.to_tensor(self.initial_learning_rate)  # type: ignore[attr-defined]
        return first, scalar(step, first.dtype)


def _positive(name: str, value: Any) -> object:
    if value <= 0:
        raise ValueError(f"Argument `{name}` must be > 0. Received: {name}={value}")
    return value


class _StairDecay(LearningRateSchedule):
    """Base of decays by a rate per `decay_steps` steps, as a staircase or continuously."""

    arguments = ("initial_learning_rate", "decay_steps", "decay_rate", "staircase", "name")

    def _init(self, initial_learning_rate: Any, decay_steps: Any, decay_rate: Any, staircase: bool, name: str) -> None:
        self.initial_learning_rate, self.decay_rate = initial_learning_rate, decay_rate
        self.decay_steps = _positive("decay_steps", decay_steps)
        self.staircase, self.name = staircase, name

    def _progress(self, step: Any) -> tuple[Tensor, Tensor]:
        """Return the initial learning rate, and how often `decay_steps` steps are over."""
        first, t = self._start(step)
        p = t / scalar(self.decay_steps, first.dtype)
        return first, math.floor(p) if self.staircase else p


class ExponentialDecay(_StairDecay):
    """Decay by a constant factor.

    .. math:: \\eta_t = \\eta_0 \\, \\text{decay\\_rate}^{t / T}

    staircase: round t / T down.
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str = "ExponentialDecay",
    ) -> None:
        self._init(initial_learning_rate, decay_steps, decay_rate, staircase, name)

    def __call__(self, step: Any) -> Tensor:
        first, p = self._progress(step)
        return first * math.pow(scalar(self.decay_rate, first.dtype), p)


class InverseTimeDecay(_StairDecay):
    """Decay by the inverse of time.

    .. math:: \\eta_t = \\frac{\\eta_0}{1 + \\text{decay\\_rate} \\; t / T}

    staircase: round t / T down.
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str = "InverseTimeDecay",
    ) -> None:
        self._init(initial_learning_rate, decay_steps, decay_rate, staircase, name)

    def __call__(self, step: Any) -> Tensor:
        first, p = self._progress(step)
        return first / (1.0 + scalar(self.decay_rate, first.dtype) * p)


class PiecewiseConstantDecay(LearningRateSchedule):
    """Constant between boundaries.

    .. math:: \\eta_t = \\text{values}_k, \\quad k = |\\{i : \\text{boundaries}_i < t\\}|

    boundaries: increasing; values: one more. raises ValueError for other lengths
    """

    arguments = ("boundaries", "values", "name")

    def __init__(self, boundaries: Sequence[Any], values: Sequence[Any], name: str = "PiecewiseConstant") -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                "The length of boundaries should be 1 less than the length of values. Received: "
                f"boundaries={boundaries} of length {len(boundaries)}, and values={values} of length {len(values)}."
            )
        self.boundaries, self.values, self.name = boundaries, values, name

    def __call__(self, step: Any) -> Tensor:
        values = dispatch.to_tensor(list(self.values))
        if not self.boundaries:
            return values[0]
        step = dispatch.to_tensor(step)
        boundaries = array.cast(dispatch.to_tensor(list(self.boundaries)), step.dtype)
        passed = math.reduce_sum(array.cast(math.less(boundaries, step), "int32"))
        return array.gather(values, passed)


class PolynomialDecay(LearningRateSchedule):
    """Decay along a polynomial to an end.

    .. math:: \\eta_t = (\\eta_0 - \\eta_T) (1 - t / T)^{\\text{power}} + \\eta_T

    t is at most T; with cycle, T is its first multiple that is not below t.
    """

    arguments = ("initial_learning_rate", "decay_steps", "end_learning_rate", "power", "cycle", "name")

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        end_learning_rate: Any = 0.0001,
        power: Any = 1.0,
        cycle: bool = False,
        name: str = "PolynomialDecay",
    ) -> None:
        self.initial_learning_rate, self.end_learning_rate = initial_learning_rate, end_learning_rate
        self.decay_steps = _positive("decay_steps", decay_steps)
        self.power, self.cycle, self.name = power, cycle, name

    def __call__(self, step: Any) -> Tensor:
        first, t = self._start(step)
        last, power = scalar(self.end_learning_rate, first.dtype), scalar(self.power, first.dtype)
        steps = scalar(self.decay_steps, first.dtype)
        if self.cycle:
            steps = steps * math.maximum(math.ceil(t / steps), 1.0)
        else:
            t = math.minimum(t, steps)
        return (first - last) * math.pow(1.0 - t / steps, power) + last


class CosineDecay(LearningRateSchedule):
    """Decay along half a cosine, after a linear warm-up where `warmup_target` is given (Loshchilov and Hutter, 2016).

    .. math:: \\eta_t = \\eta_0 \\left((1 - \\alpha) \\tfrac12 (1 + \\cos(\\pi t / T)) + \\alpha\\right)

    With a warm-up the rate goes from eta_0 to warmup_target in warmup_steps, and decays from there.
    """

    arguments = ("initial_learning_rate", "decay_steps", "alpha", "name", "warmup_target", "warmup_steps")

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        alpha: float = 0.0,
        name: str = "CosineDecay",
        warmup_target: Any = None,
        warmup_steps: Any = 0,
    ) -> None:
        self.initial_learning_rate, self.alpha, self.name = initial_learning_rate, alpha, name
        self.decay_steps = _positive("decay_steps", decay_steps)
        self.warmup_target, self.warmup_steps = warmup_target, warmup_steps

    def __call__(self, step: Any) -> Tensor:
        first, t = self._start(step)
        steps = scalar(self.decay_steps, first.dtype)
        if self.warmup_target is None:
            return self._decayed(math.minimum(t, steps), steps, first)
        target, warmup = scalar(self.warmup_target, first.dtype), scalar(self.warmup_steps, first.dtype)
        t = math.minimum(t, steps + warmup)
        return array.where(
            t < warmup, (target - first) * (t / warmup) + first, self._decayed(t - warmup, steps, target)
        )

    def _decayed(self, t: Tensor, steps: Tensor, first: Tensor) -> Tensor:
        cosine = 0.5 * (1.0 + math.cos(python_math.pi * (t / steps)))
        return first * ((1 - self.alpha) * cosine + self.alpha)


class CosineDecayRestarts(LearningRateSchedule):
    """Half cosines one after another (SGDR: Loshchilov and Hutter, 2016).

    .. math:: \\eta_t = \\eta_0 \\left((1 - \\alpha) \\tfrac12 m^i (1 + \\cos(\\pi f)) + \\alpha\\right)

    i counts restarts and f is the fraction done of the current period; the first has first_decay_steps, each next one
    t_mul times as many; m is m_mul.
    """

    arguments = ("initial_learning_rate", "first_decay_steps", "t_mul", "m_mul", "alpha", "name")

    def __init__(
        self,
        initial_learning_rate: Any,
        first_decay_steps: Any,
        t_mul: float = 2.0,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str = "SGDRDecay",
    ) -> None:
        self.initial_learning_rate, self.alpha, self.name = initial_learning_rate, alpha, name
        self.first_decay_steps = _positive("first_decay_steps", first_decay_steps)
        self.t_mul, self.m_mul = t_mul, m_mul

    def __call__(self, step: Any) -> Tensor:
        first, t = self._start(step)
        steps, alpha, growth, m = (
            scalar(x, first.dtype) for x in (self.first_decay_steps, self.alpha, self.t_mul, self.m_mul)
        )
        done = t / steps
        if self.t_mul == 1.0:
            restarts = math.floor(done)
            done = done - restarts
        else:  # the periods are a geometric series
            restarts = math.floor(math.log(1.0 - done * (1.0 - growth)) / math.log(growth))
            period = math.pow(growth, restarts)
            done = (done - (1.0 - period) / (1.0 - growth)) / period
        cosine = 0.5 * math.pow(m, restarts) * (1.0 + math.cos(python_math.pi * done))
        return first * ((1.0 - alpha) * cosine + alpha)


SCHEDULES: dict[str, type[LearningRateSchedule]] = {
    c.__name__: c
    for c in (
        ExponentialDecay,
        PiecewiseConstantDecay,
        PolynomialDecay,
        InverseTimeDecay,
        CosineDecay,
        CosineDecayRestarts,
    )
}


def serialize(learning_rate_schedule: LearningRateSchedule) -> dict[str, Any]:
    """Return a schedule as a dictionary of its class name and its configuration, ready for JSON."""
    return {"class_name": type(learning_rate_schedule).__name__, "config": learning_rate_schedule.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> LearningRateSchedule:
    """Return the schedule described by `serialize`. custom_objects: user-defined classes by name.

    raises ValueError for an unknown class
    """
    classes = {**SCHEDULES, **(custom_objects or {})}
    name = config.get("class_name")
    if name not in classes:
        raise ValueError(f"Unknown schedule {name!r}; known are {', '.join(classes)}. Pass others in `custom_objects`")
    schedule: LearningRateSchedule = classes[name].from_config(config.get("config", {}))
    return schedule
