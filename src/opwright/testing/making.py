"""Inputs that are made up for an operator nobody knows anything of.

Lives here: `made_up`.  Not here: the checks on such a call (checking.py).

Inputs are small arrays of a few shapes, tried until a call works. A definition for which none does has a function
among its rules that gives them: `def example(): return {"x": np.ones([2, 3]), "n": 1}`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import dtypes
from .trial import NotTried, Trial

SHAPES: tuple[tuple[int, ...], ...] = ((2, 3), (3, 3), (4,), (), (2, 3, 4), (1, 4, 4, 2), (1, 4, 4, 4, 2))
TRIES = 400  # combinations of shapes and dtypes until a call works


def numbers(shape: tuple[int, ...], dtype: dtypes.DType, seed: int) -> np.ndarray:
    """Numbers between 0.1 and 0.9, away from each other; small integers; text."""
    n = math.prod(shape)
    flat = 0.1 + 0.8 * ((np.arange(n) * 0.6180339887 + seed * 0.37) % 1.0)
    if dtype is dtypes.string:
        return np.array([b"text %d" % i for i in range(n)], object).reshape(shape)
    if dtype.is_bool:
        return (flat > 0.5).reshape(shape)
    if dtype.is_floating or dtype.is_complex:
        return flat.reshape(shape).astype(dtype.np)
    return (np.arange(n) % 3 + seed % 2).reshape(shape).astype(dtype.np)


def made_up(op: Any) -> Trial:
    """A call that works: the one its definition gives as `example`, or found. Raises NotTried with the last error."""
    if op.effect is not None or op.control:
        raise NotTried(f"it has an effect: {op.effect}" if op.effect else "control flow runs in graphs alone")
    example = vars(op._call_class).get("example")
    if example is not None:
        return Trial.of(op, example())
    required = [a for a in op.attr_defs.values() if a.required]
    needed = [i for i in op.inputs if not i.optional]
    last: Exception | None = None
    choices = itertools.product(*(list(_attribute(a)) for a in required))
    for attrs in itertools.islice(choices, 24):
        tries = itertools.product(*(_candidates(i, k) for k, i in enumerate(needed)))
        for values in itertools.islice(tries, TRIES if len(needed) < 3 else 4 * TRIES):
            given = {a.name: v for a, v in zip(required, attrs)} | {i.name: v for i, v in zip(needed, values)}
            try:
                trial = Trial.of(op, given)
                trial.call()
            except Exception as error:  # whatever a rule does with inputs that are not for it
                last = error
            else:
                return trial
    why = f"; the last try: {str(last).splitlines()[0]}" if last else ""
    raise NotTried(f"no inputs could be made up{why}. Give the class `def example(): return dict(x=..., n=...)`")


def _attribute(attr: Any) -> Iterator[Any]:
    """Values to try for a required attribute."""
    item = attr.type[0] if isinstance(attr.type, list) else attr.type
    form = attr.check.known_form if attr.check else ()
    if form and form[0] == "one_of":
        yield from form[1:]
        return
    known: dict[Any, tuple[Any, ...]] = {
        int: (1, 0, 2, -1), float: (1.0, 0.5, 0.0, 2.0), bool: (False, True), str: ("a", ""), bytes: (b"a",),
        dtypes.DType: (dtypes.float32, dtypes.int32), object: (None,),
    }  # fmt: skip
    values = known.get(item, ())
    if isinstance(attr.type, list):
        yield from ((v,) * n for v in values for n in (1, 2, 4, 5))
    else:
        yield from values


def _dtypes_for(declared: Any) -> list[dtypes.DType]:
    usable = [d for d in declared.dtypes if not d.is_handle]
    return sorted(usable, key=lambda d: (d is not dtypes.float64, d is not dtypes.float32, d is not dtypes.int32))[:2]


def _candidates(declared: Any, seed: int) -> list[Any]:
    found = []
    for shape, dtype in itertools.product(SHAPES, _dtypes_for(declared)):
        if declared.ranks is None or len(shape) in declared.ranks:
            value = numbers(shape, dtype, seed)
            found.append([value, numbers(shape, dtype, seed + 7)] if declared.repeated else value)
    return found
