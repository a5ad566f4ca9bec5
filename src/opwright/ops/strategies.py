"""Shape-dependent algorithms as data: for each operator, the shapes for which an algorithm is faster, and the evidence.

Lives here: `Strategy`, `Strategies`, the table of all of them.
Not here: the algorithms (next to their operators), timing (autotuner.py), the benchmark that justifies each row
(benchmarks/strategies.py, which measures on both sides of every threshold).

The order is the heuristic: the first row that pays is selected, otherwise the plain algorithm, which is the reference
of the others and supports arrays of devices. With the flag `tune`, the applicable ones are timed on the real shapes
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags
from ..core.lazy_imports import later
from ..core.named_tuples import NamedTuple

if TYPE_CHECKING:
    from . import autotuner
else:  # the flag `tune` imports it
    autotuner = later(".autotuner", __package__)

TABLE: dict[str, Strategies] = {}
"""The strategies by operator, registered when its module is imported."""


def _always(*args: Any) -> bool:
    return True


class Strategy(NamedTuple):
    """One algorithm. run, pays, fits: functions of (call, *arrays).

    pays: the heuristic, of shapes, attributes and counts. fits: whether the algorithm applies at all; called after
    `pays`, and alone if strategies are timed. why: `pays` as text. row: its row in benchmarks/results/strategies.json.
    tolerance: the greatest difference from the plain result, in eps of its largest element; 0: the same bits.
    """

    name: str
    run: Callable[..., Any]
    pays: Callable[..., bool]
    why: str
    row: str
    fits: Callable[..., bool] = _always
    tolerance: float = 0.0


class Strategies:
    """The algorithms of one operator; called as its `compute` is, it chooses and computes."""

    def __init__(
        self,
        operator: str,
        plain: Callable[..., Any],
        *others: Strategy,
        prepare: Callable[..., Sequence[Any]] | None = None,
    ) -> None:
        """Register the algorithms. prepare: fn(call, *inputs) -> their arguments, if these are not the inputs."""
        self.operator, self.plain, self.others, self.prepare = operator, plain, others, prepare
        TABLE[operator] = self

    def __call__(self, call: Any, *arrays: Any) -> Any:
        if not _on_host(arrays[0]):
            return self.plain(call, *arrays)
        if _tunes():
            return self._tuned(call, arrays)
        for one in self.others:
            if one.pays(call, *arrays) and one.fits(call, *arrays):
                return one.run(call, *arrays)
        return self.plain(call, *arrays)

    def chosen(self, call: Any, *arrays: Any) -> Strategy | None:
        """Return the row that the heuristic selects for these arrays, None for the plain algorithm."""
        return next((s for s in self.others if s.pays(call, *arrays) and s.fits(call, *arrays)), None)

    def fitting(self, call: Any, *arrays: Any) -> list[Strategy]:
        """Return the rows that apply to these arrays, fast or not."""
        return [s for s in self.others if s.fits(call, *arrays)]

    def _tuned(self, call: Any, arrays: tuple[Any, ...]) -> object:
        heuristic = self.chosen(call, *arrays)
        ways = [
            autotuner.TimedAlgorithm("plain", self.plain),
            *(autotuner.TimedAlgorithm(s.name, s.run, s.tolerance) for s in self.fitting(call, *arrays)),
        ]
        default = "plain" if heuristic is None else heuristic.name
        if len(ways) == 1:
            return self.plain(call, *arrays)
        key = autotuner.key_of(f"{self.operator}#algorithms", call, None, autotuner.shape_class(arrays))
        chosen_name = autotuner.choose(key, ways, (call, *arrays), default)
        run = next((way.run for way in ways if way.name == chosen_name), self.plain)
        return run(call, *arrays)


def _tunes() -> bool:
    """Return whether algorithms are timed. Imports the autotuner, which follows the flag from then on, if they are."""
    return flags.tune and autotuner.active


flags.on_change("tune", _tunes)  # type: ignore[arg-type]


def _on_host(x: Any) -> bool:
    first = x[0] if isinstance(x, (list, tuple)) and x else x
    return type(first) is np.ndarray or isinstance(first, np.generic)


def explained(call: Any, operands: Sequence[Any], values: Sequence[Any] | None = None) -> tuple[str, str] | None:
    """Return the algorithm that the reference of a call selects, and why; None for operators with only one.

    operands: a KernelOperand, None or a tuple per input; values: their values, if known. Unknown sizes or counts are
    reported as such.
    """
    strategies = TABLE.get(call.operator.name)
    if strategies is None:
        return None
    arrays: list[Any] = []
    for value, operand_value in zip(operands, values or [None] * len(operands)):
        if (scalar := _scalar(operand_value)) is not None:
            arrays.append(scalar)
            continue
        if getattr(value, "spec", None) is not None and value.spec.shape.rank == 0 and value.spec.dtype.is_integer:
            return "open", f"it follows from {value.slot}, which is known when it runs"
        one = [_stand_in(x) for x in value] if isinstance(value, tuple) else None if value is None else _stand_in(value)
        if one is None or (isinstance(one, list) and any(x is None for x in one)):
            return "open", "it follows from sizes that are known when it runs"
        arrays.append(one)
    try:
        arrays = arrays if strategies.prepare is None else list(strategies.prepare(call, *arrays))
        key = autotuner.key_of(f"{strategies.operator}#algorithms", call, None, autotuner.shape_class(arrays))
        remembered = autotuner.remembered(key) if _tunes() else None
        if remembered is not None:
            return remembered.chosen, f"measured: {remembered}"
        chosen = strategies.chosen(call, *arrays)
    except Exception as error:  # a condition on a value, of which only the shape is known
        return "open", f"it follows from values that are known when it runs ({type(error).__name__})"
    return ("plain", "nothing else pays") if chosen is None else (chosen.name, f"{chosen.why} (benchmark {chosen.row})")


def _scalar(value: Any) -> np.ndarray | None:
    """Return the number that a value contains: a count that strategies depend on."""
    number = value if isinstance(value, (int, np.ndarray, np.generic)) else getattr(value, "constant", None)
    return np.asarray(number) if number is not None and np.ndim(number) == 0 else None


def _stand_in(operand: Any) -> np.ndarray | None:
    """Return an array of the operand's shape and dtype without memory."""
    spec = getattr(operand, "spec", None)
    if spec is None or spec.shape.dims is None or None in spec.shape.dims:
        return None
    return np.broadcast_to(np.zeros((), spec.dtype.np), tuple(spec.shape.dims))
