"""The short way of a run: an operator on tensors of the CPU, of dtypes and shapes that it has run on before.

Lives here: what is remembered of such a run, and running by it.
Not here: the long way, which says what is remembered and has the words for every mistake (running.py).

What a run with given attributes does follows from the dtypes and shapes of its inputs: the key that is asked for, the
kernel, and, but for operators that look at values, the shapes of the results. That is kept with the operator's bound
attributes, never with the instance, and holds as long as the operator knows the same kernels for that key. Everything
else goes the long way: other places, layouts, LoDs, rows, lists and handles, the switches that look into runs, and a
first run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core import flags
from ..core.places import CPUPlace
from ..eager.execute import Asking
from ..eager.tensor import EagerTensor
from ..ops import dispatch, tuning
from ..ops.operands import on_devices
from ..ops.selection import Explanation
from .arguments import as_tensor, write
from .held import context_of
from .scope import Scope
from .variable import EMPTY

if TYPE_CHECKING:
    from .instance import OpInstance

_CPU = CPUPlace()
_MOST = 64  # runs remembered for one set of attributes; what has ever new shapes begins again

Plain = tuple[list[Any], tuple[Any, ...]]
"""The arrays of a run's inputs, and all their dtypes and shapes."""


class Known(NamedTuple):
    """What is remembered of runs with one set of attributes on inputs of these dtypes and shapes.

    kernel: fn(*arrays). promised: for each result its dtype as NumPy's, its shape, None where not known, and its spec.
    serving: the kernels that the operator had for the key: others now mean that some were registered or left out.
    """

    kernel: Any
    promised: tuple[tuple[np.dtype, tuple[int, ...] | None, Any], ...]
    serving: Any
    explanation: Explanation


def plain_inputs(instance: OpInstance, scope: Scope) -> Plain | None:
    """The inputs of an instance, if all are plain tensors of the CPU and no switch looks into runs; else None."""
    if flags.checked or flags.benchmark or flags.check_unused_inputs or flags.log_transforms or tuning.active:
        return None
    slots = instance.inputs
    arrays: list[Any] = []
    found: list[Any] = []
    for declared in instance.type.inputs:
        names = slots.get(declared.name)
        if names is None:
            if not declared.optional:
                return None
            arrays.append(None)
            found.append(None)
            continue
        several: list[Any] = []
        for name in names:
            variable = scope.find_var(name)
            if variable is None or variable.kind != "dense" or name == EMPTY:
                return None
            held = variable._held
            tensor = held._values
            if type(tensor) is not EagerTensor or held.levels or held.layout != "any":
                return None
            array = tensor._array
            several.append(array)
            found.append((tensor._dtype, array.shape))
        if declared.repeated:
            arrays.append(several)
            found.append(len(several))
        else:
            arrays.append(several[0])
    return arrays, tuple(found)


def run_known(instance: OpInstance, call: Any, scope: Scope, plain: Plain) -> Explanation | None:
    """Run on the CPU by what is remembered; None where that is nothing, and then nothing has been written."""
    op = instance.type
    arrays, found = plain
    known = call.remembered.get(found)
    if known is None or op.found_kernels.get(known.explanation.requested) is not known.serving:
        return None
    with context_of(_CPU):
        result = dispatch.quietly(known.kernel, *arrays)
    if result is NotImplemented:
        return None
    flat = op.flat_outputs(result)
    if len(flat) != len(known.promised):
        return None
    tensors = [
        EagerTensor(r, spec.dtype)
        if type(r) is np.ndarray and r.base is None and r.dtype == dtype and r.shape == shape and not _given(r, arrays)
        else as_tensor(op, r, spec, _CPU, arrays)
        for r, (dtype, shape, spec) in zip(flat, known.promised)
    ]
    write(instance, scope, op.pack_all(tensors), "any")
    return known.explanation


def _given(result: np.ndarray, arrays: Sequence[Any]) -> bool:
    """Whether a result that owns its memory is one of the inputs, or what they are views of."""
    for a in arrays:
        if a is result or (a is not None and (_given(result, a) if type(a) is list else a.base is result)):
            return True
    return False


def remember(op: Any, call: Any, kernel: Any, tensors: Sequence[Any], plain: Plain, explanation: Explanation) -> None:
    """Keep what a run on the CPU by its first candidate has shown, if the next one on such inputs must do the same.

    tensors: the inputs as inference sees them, before the run.
    """
    if any(part.lod_of for part in (*op.inputs, *op.outputs)):
        return
    operands = [None if t is None else tuple(map(Asking, t)) if isinstance(t, tuple) else Asking(t) for t in tensors]
    specs: list[Any] = []
    for spec in op.infer(call, operands):
        specs.extend(spec) if isinstance(spec, list) else specs.append(spec)
    asked = any(o.asked for x in operands if x is not None for o in (x if isinstance(x, tuple) else (x,)))
    if asked or not all(on_devices(s.dtype) for s in specs):
        return
    promised = tuple((s.dtype.np, tuple(s.shape.as_list()) if s.shape.is_fully_defined() else None, s) for s in specs)
    if len(call.remembered) >= _MOST:
        call.remembered.clear()
    serving = op.found_kernels.get(explanation.requested)
    call.remembered[plain[1]] = Known(kernel, promised, serving, explanation)
