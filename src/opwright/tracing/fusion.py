"""A call of a function that stands for a fused operator (`experimental_implements`), inside another trace.

Lives here: `fused_call`, which inlines it between two nodes that mark its borders.
Not here: those nodes (ops/fusion.py), what a converter makes of them (lite/convert/fused.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dtypes import resource, variant
from ..eager.variable import Variable
from ..ops.fusion import FusionInputs, FusionResults

_HANDLES = (resource, variant)


def fused_call(implements: str, inputs: Sequence[Any], call: Callable[[Sequence[Any]], Sequence[Any]]) -> list[Any]:
    """The results of a call, marked. inputs: the arguments, then what was captured; call: inlines it.

    Handles go in beside the borders. A variable that was captured is an input by its value when the call begins.
    """
    inside = list(inputs)
    places = [i for i, x in enumerate(inside) if not isinstance(x, Variable) and x.dtype not in _HANDLES]
    values = [x.read_value() for x in inside if isinstance(x, Variable)]
    outside = [*(inside[i] for i in places), *values]
    given: Any = FusionInputs(outside, implements=implements) if outside else []
    for place, tensor in zip(places, given):
        inside[place] = tensor
    results = list(call(inside))
    marked = [i for i, y in enumerate(results) if y.dtype not in _HANDLES]
    fused: Any = FusionResults([results[i] for i in marked], list(given), implements=implements)
    for place, tensor in zip(marked, fused):
        results[place] = tensor
    return results
