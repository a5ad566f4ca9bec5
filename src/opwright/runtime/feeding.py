"""What an operator instance finds in a scope: its inputs as tensors, and as the choice of a kernel sees them.

Lives here: `feed_of`, `settled`.  Not here: what then runs (running.py), what becomes of LoDs (ops/lod_calls.py).

A name that stands for no variable is "no variable": an error only where the input is required. Rows are not read as a
dense tensor: that is an error, never a conversion; operators that take rows have a rule for them (ops/kinds.py).
A list fills a repeated input with its members, unless the input takes lists themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.shapes import UNKNOWN
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..ops import kinds, lod_calls
from ..ops.indexed_slices import IndexedSlices
from ..ops.lod_tensor import LoDTensor
from ..ops.operands import Operand
from ..ops.tensor_list import TensorList
from .held import place_of_tensor
from .names import EMPTY
from .scope import Scope
from .variable import ScopeVariable

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
        raise InvalidArgumentError(op=op.name, what=f"input {declared.name!r} takes a tensor", found=found,
                                   wanted="dense", do=advice)  # fmt: skip
    if variable.kind == "list" and isinstance(held, tuple) and declared.repeated and "list" not in taken:
        named = [(f"{name}[{i}]", t) for i, t in enumerate(held)]
    elif variable.kind == "list" and not any(d.is_handle for d in declared.dtypes):
        raise InvalidArgumentError(op=op.name, what=f"input {declared.name!r} takes one tensor", wanted="dense",
                                   found=f"variable {name!r} with a list of {len(held)}",
                                   do="a variable for each")  # fmt: skip
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
