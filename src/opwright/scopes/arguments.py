"""Inputs and results of an operator instance: read from a scope, written to a scope.

Lives here: inputs as tensors, and as the choice of a kernel sees them; results as tensors with memory of their own,
their LoDs and layouts, writing them.
Not here: computing them (running.py, shortcut.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.places import CPUPlace, Place
from ..core.shapes import UNKNOWN
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..ops import kinds, lod_calls
from ..ops.indexed_slices import IndexedSlices
from ..ops.lod_tensor import LoDTensor
from ..ops.operands import Operand, on_devices
from ..ops.rule_errors import contract_violation, mismatch
from ..ops.tensor import Tensor
from ..ops.tensor_list import TensorList
from .held import moved, place_of_tensor, tensor_of
from .scope import Scope
from .variable import EMPTY, ScopeVariable

if TYPE_CHECKING:
    from .instance import OpInstance


class Feed(NamedTuple):
    """The inputs of one run, one entry for each the operator declares: one thing, None, or a tuple for a repeated one.

    given: tensors and LoDTensors as variables hold them. tensors: without LoDs, offsets in their own inputs.
    operands: what the choice of a kernel sees. carriers: the LoDTensors, by input. rows: whether some are sparse rows.
    """

    given: list[Any]
    tensors: list[Any]
    operands: list[Any]
    carriers: dict[str, LoDTensor]
    rows: bool = False


def feed_of(instance: OpInstance, call: Any, scope: Scope) -> Feed:
    """The inputs of an instance on a scope.

    raises InvalidArgumentError for rows, lists and objects where a tensor is wanted, and for LoDs that the operator
    does not take; what is not initialised only the choice of a kernel knows to be an error: until then its operand
    stands for it
    """
    op = instance.type
    given: list[Any] = []
    operands: list[Any] = []
    for declared in op.inputs:
        names = instance.inputs.get(declared.name)
        if names is None:
            given.append(None)
            operands.append(None)
            continue
        members = [m for name in names for m in _members(op, declared, name, scope)]
        if declared.repeated:
            given.append(tuple(t for t, _ in members))
            operands.append(tuple(o for _, o in members))
        else:
            tensor, operand = members[0] if members else (None, None)
            given.append(tensor)
            operands.append(None if tensor is None and declared.optional else operand)  # as if it were absent
    return _without_lods(op, given, operands)


def _members(op: Any, declared: Any, name: str, scope: Scope) -> list[tuple[Any, Operand]]:
    """What a name stands for in one input: a tensor (None if there is none) and its operand; of a list several."""
    by_shape = declared.name in op.shape_only
    variable = None if name == EMPTY else scope.find_var(name)
    if variable is None and declared.optional:
        return []
    if variable is None or not variable.is_initialized:
        return [(None, Operand(op.name, declared.name, name, None, by_shape=by_shape, absent=variable is None))]
    taken = kinds.accepted(declared) if variable.kind in ("rows", "list") else ()
    if variable.kind == "rows" and "rows" in taken:
        return [(variable._held, _operand(op, declared, name, variable._held, "any"))]
    if variable.kind == "rows":
        raise InvalidArgumentError(
            op=op.name,
            what=f"input {declared.name!r} takes a dense tensor",
            found=f"variable {name!r} with rows: {variable.spec.short()}",
            wanted="dense",
            do="its values and indices, or to_dense()",
        )
    held = variable._held
    if variable.kind == "object" and not any(d.is_handle for d in declared.dtypes):
        advice = f"scope.var({name!r}).set(variable.value())" if isinstance(held, Variable) else None
        found = f"variable {name!r} with an object: {type(held).__name__}"
        raise InvalidArgumentError(
            op=op.name, what=f"input {declared.name!r} takes a tensor", found=found, wanted="dense", do=advice
        )
    if variable.kind == "list" and isinstance(held, tuple) and declared.repeated and "list" not in taken:
        named = [(f"{name}[{i}]", t) for i, t in enumerate(held)]
    elif variable.kind == "list" and not any(d.is_handle for d in declared.dtypes):
        raise InvalidArgumentError(
            op=op.name,
            what=f"input {declared.name!r} takes one tensor",
            wanted="dense",
            found=f"variable {name!r} with a list of {len(held)}",
            do="a variable for each",
        )
    else:
        named = [(name, _tensor(variable))]
    return [(t, _operand(op, declared, n, t, variable.layout)) for n, t in named]


def _tensor(variable: ScopeVariable) -> Any:
    """A variable's contents as a tensor: of a handle a tensor that holds the object."""
    held = variable._held
    if variable.kind == "dense":
        return LoDTensor.of(held._values, held.levels) if held.levels else held._values
    if variable.kind == "list" and isinstance(held, tuple):
        dtype = held[0].dtype if held else dtypes.float32
        held = TensorList(len(held), dtype, UNKNOWN, {i: t.constant for i, t in enumerate(held)})
    return EagerTensor(held, dtypes.variant if isinstance(held, TensorList) else dtypes.resource)


def _operand(op: Any, declared: Any, name: str, tensor: Any, layout: str) -> Operand:
    rows = tensor.values if isinstance(tensor, LoDTensor) else tensor
    by_shape = declared.name in op.shape_only
    spec = TensorSpec(tensor.shape, tensor.dtype)
    return Operand(op.name, declared.name, name, spec, place_of_tensor(rows), layout, by_shape)


def _without_lods(op: Any, given: list[Any], operands: list[Any]) -> Feed:
    """LoDTensors taken apart, offsets put into the inputs that ask for them; members without a value left out."""
    present = [tuple(t for t in x if t is not None) if isinstance(x, tuple) else x for x in given]
    if any(isinstance(t, IndexedSlices) for x in present for t in (x if isinstance(x, tuple) else (x,))):
        return Feed(present, present, operands, {}, True)
    carriers = lod_calls.carriers_of(op, present)
    if not carriers and not any(d.lod_of for d in op.inputs):
        return Feed(present, present, operands, carriers)
    tensors = lod_calls.take_apart(op, present, carriers)
    for i, (declared, tensor) in enumerate(zip(op.inputs, tensors)):
        if operands[i] is None and tensor is not None:  # offsets, from the LoD of another input
            name = f"the LoD of {declared.lod_of}"
            levels = tensor if isinstance(tensor, tuple) else (tensor,)
            found = [_operand(op, declared, name, t, "any") for t in levels]
            operands[i] = tuple(found) if isinstance(tensor, tuple) else found[0]
    return Feed(present, tensors, operands, carriers)


def settled(feed: Feed) -> Feed:
    """The feed when the key is chosen: what has no value now is an optional input, or one that the key rule passed over
    in a list. Raises InvalidArgumentError for anything else."""
    operands: list[Any] = []
    for operand, tensor in zip(feed.operands, feed.tensors):
        if isinstance(operand, tuple):
            operand = tuple(o for o in operand if o.is_initialized)
        elif operand is not None and tensor is None:
            operand.checked()
        operands.append(operand)
    return feed._replace(operands=operands)


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
    raise contract_violation(
        op,
        rule,
        "gave no result" if result is None else "gave no array",
        found=f"{result!r} ({type(result).__name__})"[:80],
        wanted=spec.short(),
        do="return an array",
    )


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
                raise InvalidArgumentError(
                    op=instance.type.name,
                    found=f"{len(names)} names: {', '.join(names)}",
                    what=f"output {declared.name!r} gives {len(result)} tensors",
                    wanted=f"{len(result)} names",
                )
            planned += [(n, v) for n, v in zip(names, result) if n != EMPTY]
    for name, value in planned:
        variable = scope.find_var(name) or scope.var(name)
        if value.dtype.is_handle:
            variable.take(value._array)
        else:
            variable.take(value, layout=layout if layout == "any" or value.shape.rank == 4 else "any")
