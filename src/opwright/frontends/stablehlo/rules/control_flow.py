"""Rules of control flow: while, case, if. Calls are executed by the context.

Lives here: how regions become branches. Not here: their meaning (jax/rules/control_flow.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ops import array, math
from ...importing import known, tensor_of
from ...jax.operands import like
from ..execution import RULES, ModuleContext, primitive


@RULES.rule("stablehlo.while", pure=False)
def while_(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the carried values once the condition is false."""
    condition, body = context.operation.regions
    return primitive("while", context, inputs, cond_nconsts=0, body_nconsts=0, cond_jaxpr=condition, body_jaxpr=body)


@RULES.rule("stablehlo.case", pure=False)
def case(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the results of the branch of an index; the last one for an index that no branch has."""
    branches, index = context.operation.regions, inputs[0]
    last, value = len(branches) - 1, known(index)
    if value is not None:
        index = np.asarray(int(value) if 0 <= int(value) <= last else last, np.int32)
    elif last > 1 and not _is_clamped(context):
        index = tensor_of(index)
        inside = math.logical_and(math.greater_equal(index, like(0, index)), math.less_equal(index, like(last, index)))
        index = array.where(inside, index, like(last, index))
    if last == 0:
        return context.run(branches[0], [])
    return primitive("cond", context, [index], branches=branches)


def _is_clamped(context: ModuleContext) -> bool:
    owner = context.operation.operands[0].owner
    return owner is not None and owner.name == "stablehlo.clamp"


@RULES.rule("stablehlo.if", pure=False)
def if_(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the results of the first region if the predicate holds, else of the second."""
    on_true, on_false = context.operation.regions
    return primitive("cond", context, inputs, branches=[on_false, on_true])
