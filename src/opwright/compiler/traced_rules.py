"""Rules of optimizers on values that record what is computed: expressions of an element, or values of a graph.

Lives here: `traced_rule`.
Not here: the formulas (ops/optimizer_rules.py); updates in place (lowering/updates.py), updates inside of control flow
(functional_control_flow.py).

A rule is a function on NumPy arrays. Called with arrays that only record what is computed, it returns the results, so
that each formula exists once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ..ops.optimizer_rules import RULES
from ..scalar.table import FUNCTIONS

V = TypeVar("V")


class UntracedRule(Exception):
    """A rule calls what is not a function of the scalar table."""


class _TracedArray(np.lib.mixins.NDArrayOperatorsMixin, Generic[V]):
    """An array of a rule, as the value that it has; a write in place replaces the value.

    apply: computes a function of the scalar table, by name, of values
    """

    __slots__ = ("_apply", "value")

    def __init__(self, value: V, apply: Callable[..., V]) -> None:
        self.value, self._apply = value, apply

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> _TracedArray[V]:
        out = options.pop("out", None)
        name = _functions().get(ufunc)
        if method != "__call__" or options or name is None or not all(isinstance(x, _TracedArray) for x in inputs):
            raise UntracedRule(f"a rule calls {ufunc.__name__} on {len(inputs)} arrays")
        value = self._apply(name, *(x.value for x in inputs))
        if out is None:
            return _TracedArray(value, self._apply)
        (target,) = out
        target.value = value
        result: _TracedArray[V] = target
        return result


@functools.cache
def _functions() -> dict[np.ufunc, str]:
    """Return the names of scalar functions by the ufunc that computes them on arrays."""
    names: dict[np.ufunc, str] = {}
    for row in FUNCTIONS.values():
        ufunc = row.ufunc or row.numpy
        if isinstance(ufunc, np.ufunc):
            names.setdefault(ufunc, row.name)
    return names


def traced_rule(name: str, values: Sequence[V], apply: Callable[..., V]) -> tuple[V, ...]:
    """Return the new variable and its state, in order, by a rule.

    values: the variable, its state, the gradient and the scalars; apply: see `_TracedArray`. raises UntracedRule
    """
    rule = RULES[name]
    w, *others = [_TracedArray(v, apply) for v in values]
    states = len(rule.state)
    state, g, c = others[:states], others[states], others[states + 1 :]
    rule.update(g, w, state, c)
    return tuple(x.value for x in (w, *state))
