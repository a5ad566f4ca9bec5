"""The short path of element-wise calls: one function of machine code for each operator that is called often.

Lives here: the calls that take it, and when their function is built.
Not here: the function (compiler/native/ufunc_calls.py), all other calls (execute.py).

An operator takes it if its computation is a ufunc, and no kernel is registered for it. The function applies the loop of
that ufunc to small dense tensors and declines everything else. Its bits are those of the reference, so that they do not
depend on the call at which it takes over.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dtypes import bool as bool_
from ..core.dtypes import float32, numeric
from ..core.errors import SignatureError
from ..core.lazy_imports import later
from ..ops.call import Call
from ..ops.definition import Operator
from .tensor import EagerTensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..compiler.native import ufunc_calls
else:  # most programs make few eager calls
    ufunc_calls = later("..compiler.native.ufunc_calls", __package__)

FIRST, AGAIN = 200, 2000
"""Number of calls before the first function is built, and before the next attempt while the code is being compiled."""

_calls = 0
_due = FIRST


def count_call(op: Operator, bound: Call) -> None:
    """Count an element-wise call; build its function, `bound._short`, once there were enough of all operators.

    bound._short: False if the operator has none.
    """
    global _calls, _due
    _calls += 1
    if _calls < _due:
        return
    if not op.catalogue or type(bound.reference) is not np.ufunc:
        bound._short = False
        return
    address = ufunc_calls.ufunc_calls()
    if address is None:
        _due = _calls + AGAIN
        return
    bound._short = _build(op, bound.reference, address) or False


def _build(op: Operator, ufunc: np.ufunc, address: int) -> Callable[..., Any] | None:
    probe = EagerTensor(np.zeros(1, np.float32), float32)
    probe._identity = object()
    layout = ufunc_calls.tensor_layout(probe)
    if layout is None:
        return None
    rows = []
    for dtype in (*numeric, bool_):  # strings are objects, whose loops call Python
        with contextlib.suppress(SignatureError):  # a dtype that the operator does not take
            (result,) = op.accept((dtype,) * len(op.inputs))
            if result is not None:
                rows.append(ufunc_calls.UfuncRow(dtype, result))
    return ufunc_calls.ufunc_call(address, ufunc, rows, layout)
