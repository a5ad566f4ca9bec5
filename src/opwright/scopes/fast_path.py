"""The fast path of a run: an operator on CPU tensors of dtypes and shapes that it has run on before.

Lives here: the cache of such runs, and running by it. Not here: the general path, which fills the cache and reports
every mistake (execution.py).

For given attributes, a run follows from the dtypes and shapes of its inputs: the requested key, the kernel, and, unless
the operator looks at values, the shapes of the results. The cache belongs to the operator's bound attributes, not to
the instance, and an entry is valid while the operator has the same kernels for that key. The general path takes all
others: other places, layouts, LoDs, rows, lists and handles, switches that inspect runs, and first runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core import flags
from ..core.places import CPUPlace
from ..eager.execute import OperandUseTracker
from ..eager.tensor import EagerTensor
from ..graph.ir import map_operands
from ..ops import autotuner, dispatch
from ..ops.kernel_operands import on_devices
from ..ops.kernel_selection import Explanation
from .bindings import as_tensor, store_results
from .scope import Scope
from .variable import EMPTY, context_of

if TYPE_CHECKING:
    from .instance import OpInstance

_CPU = CPUPlace()
_MAX_CACHED = 64  # runs cached for one set of attributes; cleared when full

Plain = tuple[list[Any], tuple[Any, ...]]
"""The arrays of a run's inputs, and all their dtypes and shapes."""


class CachedRun(NamedTuple):
    """A cached run for one set of attributes and inputs of these dtypes and shapes.

    kernel: fn(*arrays). results: for each result its dtype as NumPy's, its shape, None if unknown, and its spec.
    serving: the operator's kernels for the key at the time; others now mean that some were registered or removed.
    """

    kernel: Any
    results: tuple[tuple[np.dtype, tuple[int, ...] | None, Any], ...]
    serving: Any
    explanation: Explanation


def plain_inputs(instance: OpInstance, scope: Scope) -> Plain | None:
    """Return the inputs of an instance if all are plain CPU tensors and no switch inspects runs; else None."""
    if flags.checked or flags.benchmark or flags.check_unused_inputs or flags.log_transforms or autotuner.active:
        return None
    slots = instance.inputs
    arrays: list[Any] = []
    signature: list[Any] = []
    for declared in instance.type.inputs:
        names = slots.get(declared.name)
        if names is None:
            if not declared.optional:
                return None
            arrays.append(None)
            signature.append(None)
            continue
        members: list[Any] = []
        for name in names:
            variable = scope.find_var(name)
            if variable is None or variable.kind != "dense" or name == EMPTY:
                return None
            contents = variable._contents
            tensor = contents._values
            if type(tensor) is not EagerTensor or contents.levels or contents.layout != "any":
                return None
            array = tensor._array
            members.append(array)
            signature.append((tensor._dtype, array.shape))
        if declared.repeated:
            arrays.append(members)
            signature.append(len(members))
        else:
            arrays.append(members[0])
    return arrays, tuple(signature)


def run_cached(instance: OpInstance, call: Any, scope: Scope, plain: Plain) -> Explanation | None:
    """Run on the CPU by a cached entry; None if there is none, in which case nothing has been written."""
    op = instance.type
    arrays, signature = plain
    cached = call.remembered.get(signature)
    if cached is None or op.kernel_cache.get(cached.explanation.requested) is not cached.serving:
        return None
    with context_of(_CPU):
        result = dispatch.quietly(cached.kernel, *arrays)
    if result is NotImplemented:
        return None
    flat = op.flat_outputs(result)
    if len(flat) != len(cached.results):
        return None
    tensors = [
        EagerTensor(r, spec.dtype)
        if type(r) is np.ndarray
        and r.base is None
        and r.dtype == dtype
        and r.shape == shape
        and not _is_input(r, arrays)
        else as_tensor(op, r, spec, _CPU, arrays)
        for r, (dtype, shape, spec) in zip(flat, cached.results)
    ]
    store_results(instance, scope, op.pack_all(tensors), "any")
    value: Explanation | None = cached.explanation
    return value


def _is_input(result: np.ndarray, arrays: Sequence[Any]) -> bool:
    """Return whether a result that owns its memory is one of the inputs, or the base of one."""
    for a in arrays:
        if a is result or (a is not None and (_is_input(result, a) if type(a) is list else a.base is result)):
            return True
    return False


def cache_run(op: Any, call: Any, kernel: Any, tensors: Sequence[Any], plain: Plain, explanation: Explanation) -> None:
    """Cache a run on the CPU by its first candidate, if the next run on such inputs must do the same.

    tensors: the inputs as inference sees them, before the run.
    """
    if any(part.lod_of for part in (*op.inputs, *op.outputs)):
        return
    operands = map_operands(OperandUseTracker, tensors)
    specs: list[Any] = []
    for spec in op.infer(call, operands):
        specs.extend(spec) if isinstance(spec, list) else specs.append(spec)
    asked = any(o.value_read for x in operands if x is not None for o in (x if isinstance(x, tuple) else (x,)))
    if asked or not all(on_devices(s.dtype) for s in specs):
        return
    results = tuple((s.dtype.np, tuple(s.shape.as_list()) if s.shape.is_fully_defined() else None, s) for s in specs)
    if len(call.remembered) >= _MAX_CACHED:
        call.remembered.clear()
    serving = op.kernel_cache.get(explanation.requested)
    call.remembered[plain[1]] = CachedRun(kernel, results, serving, explanation)
