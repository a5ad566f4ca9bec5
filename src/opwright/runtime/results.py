"""What a kernel gave, as the variables of a scope get it.

Lives here: results as tensors with memory of their own, their LoDs and layouts, writing them.
Not here: what computes them (running.py, shortcut.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.places import CPUPlace, Place
from ..ops import lod_calls
from ..ops.indexed_slices import IndexedSlices
from ..ops.lod_tensor import LoDTensor
from ..ops.operands import on_devices
from ..ops.rule_errors import contract_violation, mismatch
from ..ops.tensor import Tensor
from .feeding import Feed
from .held import moved, place_of_tensor, tensor_of
from .names import EMPTY
from .scope import Scope

if TYPE_CHECKING:
    from .instance import OpInstance

_NOT_IMAGES = frozenset({"Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"})  # rank 4, but a filter


def left(flat: Sequence[Any], arrays: Sequence[Any]) -> bool:
    """Whether results came back to the host that were computed from arrays of a device: somebody copied unseen."""
    given = [a for x in arrays if x is not None for a in (x if isinstance(x, list) else (x,))]
    return bool(given) and any(isinstance(r, (np.ndarray, np.generic)) for r in flat)


def as_tensor(op: Any, result: Any, spec: Any, place: Place, arrays: Sequence[Any], rule: str = "compute") -> Any:
    """Return a result as a tensor at `place`, with memory of its own. rule: what computed it, as errors name it.

    raises DefinitionError where the result is not what was inferred (InternalError for an operator of this package)
    """
    if not on_devices(spec.dtype):
        return tensor_of(result, spec.dtype, CPUPlace())
    result = getattr(result, "_array", result) if isinstance(result, Tensor) else result
    if not hasattr(result, "dtype"):
        result = _numbers(op, result, spec, rule)
    wrong = mismatch((result,), (spec,))
    if wrong is not None:
        raise contract_violation(op, rule, **wrong)
    if isinstance(result, (np.ndarray, np.generic)):
        if isinstance(result, np.ndarray) and _overlaps(result, arrays):
            result = result.copy()  # a view, or the input itself: who sets the variable of one must not set the other's
        if place.kind != "cpu":
            result = moved(np.asarray(result), CPUPlace(), place)
    return tensor_of(result, spec.dtype, place)


def _numbers(op: Any, result: Any, spec: Any, rule: str) -> np.ndarray:
    """Return Python numbers, or lists of them, as an array, as eager calls do."""
    try:
        if result is not None:
            return np.asarray(result, spec.dtype.np)
    except (TypeError, ValueError):
        pass
    raise contract_violation(op, rule, "gave no result" if result is None else "gave no array",
                             found=f"{result!r} ({type(result).__name__})"[:80], wanted=spec.short(),
                             do="return an array")  # fmt: skip


def _overlaps(result: np.ndarray, arrays: Sequence[Any]) -> bool:
    return any(
        isinstance(a, np.ndarray) and np.may_share_memory(result, a)
        for x in arrays
        for a in (x if isinstance(x, list) else (x,))
    )


def with_lods(op: Any, call: Any, feed: Feed, flat: Sequence[Any]) -> list[Any]:
    """One entry for each declared output: a tensor or LoDTensor, a list for a repeated one, None for offsets that went
    into the LoD of another."""
    packed = list(op.pack_all(flat))
    if not feed.carriers and not any(o.lod_of for o in op.outputs):
        return packed
    word = lod_calls.lod_word(op, call, feed.tensors)
    carriers = feed.carriers
    if word == "joined" and carriers:
        carriers = {"": lod_calls.joined(op, feed.given)}
    shown = [o for o in op.outputs if not o.intermediate]
    results = [p for p, o in zip(packed, op.outputs) if not o.intermediate]
    offsets = {id(o) for o in shown if o.lod_of is not None} if word == "changed" else set()
    host = [on_host(r) if id(o) in offsets else r for r, o in zip(results, shown)]
    made = iter(lod_calls.put_together(op, word, carriers, host, shown))
    return [p if o.intermediate or id(o) in offsets else next(made) for p, o in zip(packed, op.outputs)]


def on_host(tensor: Any) -> Any:
    """What a variable holds with its tensors on the CPU; a copy of what is not there."""
    if isinstance(tensor, (list, tuple)):
        return [on_host(t) for t in tensor]
    if tensor is None or isinstance(tensor, IndexedSlices):
        return tensor
    if isinstance(tensor, LoDTensor):
        return LoDTensor.of(on_host(tensor.values), tensor.levels)
    return tensor if place_of_tensor(tensor).kind == "cpu" else tensor._as_tensor()


def layout_of(op: Any, key: Any, feed: Feed) -> str:
    """The layout of results of four dimensions: that of the key, where the inputs had one to begin with."""
    if key.layout == "any" or op.name in _NOT_IMAGES:
        return "any"
    members = [o for x in feed.operands if x is not None for o in (x if isinstance(x, tuple) else (x,))]
    return key.layout if any(o.layout != "any" for o in members) else "any"


def write(instance: OpInstance, scope: Scope, outputs: Sequence[Any], layout: str) -> None:
    """Put the results into the variables. Raises InvalidArgumentError where a list has another length than the slot."""
    planned = []
    for declared, result in zip(instance.type.outputs, outputs):
        names = instance.outputs.get(declared.name, ())
        if not declared.repeated:
            if names and names[0] != EMPTY and result is not None:
                planned.append((names[0], result))
        elif names != (EMPTY,) and (names or declared.lod_of is None):  # offsets without a name are on what they are of
            if len(result) != len(names):
                raise InvalidArgumentError(op=instance.type.name, found=f"{len(names)} names: {', '.join(names)}",
                                           what=f"output {declared.name!r} gives {len(result)} tensors",
                                           wanted=f"{len(result)} names")  # fmt: skip
            planned += [(n, v) for n, v in zip(names, result) if n != EMPTY]
    for name, value in planned:
        variable = scope.find_var(name) or scope.var(name)
        if value.dtype.is_handle:
            variable.take(value._array)
        else:
            variable.take(value, layout=layout if layout == "any" or value.shape.rank == 4 else "any")
