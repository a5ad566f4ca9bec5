"""The short path of calls of small tensors: one function of machine code for each operator that is called often.

Lives here: the calls that take it, and when their function is built; the same for their records, and for the signatures
of tapes.
Not here: the functions (compiler/native/ufunc_calls.py, tape_calls.py), all other calls and records (execute.py).

An operator takes it if its computation is a ufunc or it stands in `BUILDERS`, and no kernel is registered for it. The
function applies NumPy's loop to small dense tensors and declines everything else. Its bits are those of the reference,
so that they do not depend on the call at which it takes over. Records by machine code are those of `OpRecord.light`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import SignatureError
from ..core.forks import once
from ..core.lazy_imports import later
from ..ops import registry
from ..ops.autodiff import OpRecord
from ..ops.call import Call
from ..ops.definition import Operator
from ..ops.dispatch import state
from ..ops.tensor import ShapeOnlyTensor
from .tensor import EagerTensor, tensor_of

if TYPE_CHECKING:
    from ..compiler.native import tape_calls, ufunc_calls
else:  # most programs make few eager calls
    ufunc_calls = later("..compiler.native.ufunc_calls", __package__)
    tape_calls = later("..compiler.native.tape_calls", __package__)

FIRST, AGAIN = 200, 2000
"""Number of calls before the first function is built, and before the next attempt while the code is being compiled."""
RECORDED = 16
"""Number of records with the same attributes before a function is built that makes them."""
MOST_INPUTS = 32
"""Maximum number of inputs of such calls."""
MOST_INDICES = 16
"""Maximum number of elements of an input of integers that become a part of the signature of a tape."""

SAME_AS: dict[str, tuple[np.ufunc, float | None]] = {
    "Equal": (np.equal, None),
    "NotEqual": (np.not_equal, None),
    "Relu": (np.maximum, 0.0),
}
"""Ufuncs that are the computation of numbers by other operators, and the constant second operand."""

_calls = 0
_due = FIRST


def count_call(op: Operator, bound: Call) -> None:
    """Count a call that the short path may take; build its function, `bound._short`, once there were enough of all.

    bound._short: False if there is none for these attributes.
    """
    global _calls, _due
    _calls += 1
    if _calls < _due:
        return
    if not op.catalogue or not (type(bound.reference) is np.ufunc or op.name in BUILDERS or op.name in SAME_AS):
        bound._short = False
        return
    calls = ufunc_calls.ufunc_calls()
    if calls is None:
        _due = _calls + AGAIN
        return
    bound._short = _build(op, bound, calls) or False


@once
def _layout() -> ufunc_calls.EagerTensorLayout | None:
    probe = EagerTensor(np.zeros(1, np.float32), dtypes.float32)
    probe._identity = object()
    return ufunc_calls.tensor_layout(probe)


def _build(op: Operator, bound: Any, calls: ufunc_calls.UfuncCalls) -> Callable[..., Any] | None:
    layout = _layout()
    if layout is None:
        return None
    if op.name in BUILDERS:
        return BUILDERS[op.name](bound, calls, layout)
    ufunc, constant = SAME_AS.get(op.name) or (bound.reference, None)
    function = calls.of_elements(ufunc, [ufunc_calls.UfuncRow(d, r) for d, r in _dtypes(op)], layout)
    return function if constant is None or function is None else _with_constant(function, constant)


Builder = Callable[[Any, "ufunc_calls.UfuncCalls", "ufunc_calls.EagerTensorLayout"], "Callable[..., Any] | None"]
FLOATS = (dtypes.float32, dtypes.float64)


def _matmul(bound: Any, calls: ufunc_calls.UfuncCalls, layout: Any) -> Callable[..., Any] | None:
    if bound.output_type is not None:
        return None
    rows = [ufunc_calls.UfuncRow(d, d) for d in FLOATS]  # real: an adjoint is a transpose
    return calls.of_matrices(rows, layout, bound.transpose_a or bound.adjoint_a, bound.transpose_b or bound.adjoint_b)


def _softmax(bound: Any, calls: ufunc_calls.UfuncCalls, layout: Any) -> Callable[..., Any] | None:
    return calls.of_softmax(FLOATS, layout) if bound.axis == -1 else None


def _extreme(least: bool) -> Builder:
    def build(bound: Any, calls: ufunc_calls.UfuncCalls, layout: Any) -> Callable[..., Any] | None:
        if bound.output_type.size < 4:
            return None
        rows = [ufunc_calls.UfuncRow(d, bound.output_type) for d in FLOATS]
        return calls.of_extreme(rows, layout, bound.axis, least)

    return build


def _reshape(bound: Any, calls: ufunc_calls.UfuncCalls, layout: Any) -> Callable[..., Any]:
    """Return a function in Python, as NumPy's own is short. It declines what may be an error, and tapes of lists."""

    def short(x: Any, shape: Any) -> Any:
        if type(x) is not EagerTensor:
            return None
        if type(shape) is EagerTensor:
            shape = shape._array.tolist()
        elif state.tapes:  # they record tensors
            return None
        array = x._array
        if type(array) is not np.ndarray or not array.size or min(shape, default=0) < -1:  # NumPy takes -2 for -1
            return None
        try:
            return tensor_of(array.reshape(shape), x._dtype)
        except ValueError:
            return None

    return short


BUILDERS: dict[str, Builder] = {
    "MatMul": _matmul,
    "Softmax": _softmax,
    "ArgMax": _extreme(least=False),
    "ArgMin": _extreme(least=True),
    "Reshape": _reshape,
}
"""Functions that build the short path of operators that are not ufuncs."""


def _with_constant(function: Callable[..., Any], constant: float) -> Callable[..., Any]:
    """Return a function of one tensor: a function of two with a number as the second."""
    constants = {d: EagerTensor(np.array(constant, d.np), d) for d in dtypes.numeric if d.is_floating}

    def short(x: Any) -> Any:
        second = constants.get(x._dtype) if type(x) is EagerTensor else None
        return None if second is None else function(x, second)

    return short


def _dtypes(op: Operator) -> Iterator[tuple[DType, DType]]:
    """Yield the dtypes of inputs that NumPy has loops for, each with that of the result."""
    for dtype in (*dtypes.numeric, dtypes.bool):
        if dtype is dtypes.bfloat16:  # of another package
            continue
        with contextlib.suppress(SignatureError):  # a dtype that the operator does not take
            (result,) = op.accept((dtype,) * len(op.inputs))
            if result is not None:
                yield dtype, result


def count_record(op: Operator, bound: Any) -> None:
    """Count a record; build the function that makes them, `bound._recorder`, once there were enough of them.

    bound._recorder: False if there is none for this operator.
    """
    if bound._recorder is False:
        return
    profile = op.profile
    if not (op.catalogue and profile.simple and profile.single and 0 < len(op.inputs) <= MOST_INPUTS):
        bound._recorder = False
        return
    bound._recorder += 1
    if bound._recorder < RECORDED:
        return
    calls, layout = tape_calls.tape_calls(), _tape_layout()
    if calls is None or layout is None:
        bound._recorder = -AGAIN if layout else False
        return
    needs = op.gradient_needs
    bound._recorder = calls.recorder(layout, bound, len(op.inputs), needs.kept_inputs, needs.kept_outputs is None)


def signature_function() -> Callable[[list[Any], list[int]], bytes | None] | None:
    """Return the function `signature` of compiler/native/tape_calls.py; None if unavailable, or not compiled yet."""
    layout, calls = _tape_layout(), tape_calls.tape_calls()
    return None if layout is None or calls is None else calls.signature_of(layout)


@once
def _tape_layout() -> tape_calls.TapeLayout | None:
    tensor = EagerTensor(np.zeros(1, np.float32), dtypes.float32)
    tensor._identity = object()
    identity = ShapeOnlyTensor(dtypes.float32, (1,), object())
    record = OpRecord.__new__(OpRecord)
    for slot in OpRecord.__slots__:
        setattr(record, slot, object())
    flowing = [d for d in dtypes.numeric if d.has_gradient]
    integers = [d for d in dtypes.numeric if d.is_integer]
    reading = registry.get("ReadVariable")
    return tape_calls.tape_layout(tensor, identity, record, reading, MOST_INDICES, flowing, integers)
