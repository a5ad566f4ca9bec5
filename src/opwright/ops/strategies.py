"""Shape-dependent algorithms as data: for an operator, in which shapes which way to compute pays, and what shows it.

Lives here: `Strategy`, `Strategies`, the table of all of them.
Not here: the algorithms, which stand beside their operators; timing (tuning.py); the benchmark that justifies each row
(benchmarks/strategies.py, which measures on both sides of every threshold).

The order is the heuristic: the first row that pays serves, else the plain one, which is the reference of the others and
serves arrays of devices. With the switch `tune` those that fit are timed on the real shapes instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import tuning

TABLE: dict[str, Strategies] = {}
"""The strategies of each operator that has any, once its module is imported."""


def _always(*args: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Strategy:
    """One algorithm. run, pays, fits: functions of (call, *arrays).

    pays: the heuristic, of shapes, attributes and counts. fits: whether it is right there at all; asked after `pays`,
    and alone where strategies are timed. why: `pays` in words. row: its row in benchmarks/results/strategies.json.
    tolerance: how far results may be from the plain one's, in units of the dtype's eps at the largest; 0: the same bits.
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

    def __init__(self, operator: str, plain: Callable[..., Any], *others: Strategy) -> None:
        self.operator, self.plain, self.others = operator, plain, others
        TABLE[operator] = self

    def __call__(self, call: Any, *arrays: Any) -> Any:
        if not _on_host(arrays[0]):
            return self.plain(call, *arrays)
        if tuning.active:
            return self._tuned(call, arrays)
        for one in self.others:
            if one.pays(call, *arrays) and one.fits(call, *arrays):
                return one.run(call, *arrays)
        return self.plain(call, *arrays)

    def chosen(self, call: Any, *arrays: Any) -> Strategy | None:
        """The row that the heuristic takes for these arrays, None for the plain algorithm."""
        return next((s for s in self.others if s.pays(call, *arrays) and s.fits(call, *arrays)), None)

    def fitting(self, call: Any, *arrays: Any) -> list[Strategy]:
        """The rows that are right for these arrays, whether they pay or not."""
        return [s for s in self.others if s.fits(call, *arrays)]

    def _tuned(self, call: Any, arrays: tuple[Any, ...]) -> Any:
        heuristic = self.chosen(call, *arrays)
        ways = [tuning.Way("plain", self.plain), *(tuning.Way(s.name, s.run, s.tolerance) for s in
                                                   self.fitting(call, *arrays))]  # fmt: skip
        default = "plain" if heuristic is None else heuristic.name
        if len(ways) == 1:
            return self.plain(call, *arrays)
        key = tuning.key_of(f"{self.operator}#algorithms", call, None, tuning.shape_class(arrays))
        found = tuning.choose(key, ways, (call, *arrays), default)
        run = next((way.run for way in ways if way.name == found), self.plain)
        return run(call, *arrays)


def _on_host(x: Any) -> bool:
    first = x[0] if isinstance(x, (list, tuple)) and x else x
    return type(first) is np.ndarray or isinstance(first, np.generic)


def explained(call: Any, operands: Any) -> tuple[str, str] | None:
    """Which algorithm the reference of a call takes, and why; None for operators that have but one.

    operands: an Operand, None or a tuple for each input; where sizes or values are not known yet, that is said.
    """
    found = TABLE.get(call.operator.name)
    if found is None:
        return None
    arrays = []
    for value in operands:
        one = [_stand_in(x) for x in value] if isinstance(value, tuple) else None if value is None else _stand_in(value)
        if one is None or (isinstance(one, list) and any(x is None for x in one)):
            return "open", "it follows from sizes that are known when it runs"
        arrays.append(one)
    remembered = tuning.remembered(tuning.key_of(f"{found.operator}#algorithms", call, None,
                                                 tuning.shape_class(arrays)))  # fmt: skip
    if tuning.active and remembered is not None:
        return remembered.chosen, f"measured: {remembered}"
    try:
        chosen = found.chosen(call, *arrays)
    except Exception as error:  # a condition on a value, of which only the shape is known
        return "open", f"it follows from values that are known when it runs ({type(error).__name__})"
    return ("plain", "nothing else pays") if chosen is None else (chosen.name, f"{chosen.why} (benchmark {chosen.row})")


def _stand_in(operand: Any) -> Any:
    """An array of the operand's shape and dtype without memory behind it; its value where that is known."""
    spec = getattr(operand, "spec", None)
    known = getattr(operand, "constant", None)
    if isinstance(known, np.ndarray):
        return known
    if spec is None or spec.shape.dims is None or None in spec.shape.dims:
        return None
    return np.broadcast_to(np.zeros((), spec.dtype.np), tuple(spec.shape.dims))
