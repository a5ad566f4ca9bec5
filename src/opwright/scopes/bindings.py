"""Bind an operator instance's inputs and outputs to the variables of a scope.

Lives here: inputs as tensors and as kernel selection sees them; their transforms, which copy an input to the layout,
dtype and place that its kernel requires; results as tensors that own their memory, with LoDs and layouts, stored in
variables.
Not here: computing them (execution.py, fast_path.py), which transforms a call needs (ops/kernel_selection.py), copies
between devices (devices/).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..core import dtypes, flags
from ..core.errors import InvalidArgumentError
from ..core.places import CPUPlace, Place
from ..core.shapes import UNKNOWN
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..ops import lod_propagation, var_types
from ..ops.call import contract_violation, mismatch
from ..ops.indexed_slices import IndexedSlices
from ..ops.kernel_operands import InputTransform, KernelOperand, on_devices
from ..ops.lod_tensor import LoDTensor
from ..ops.tensor import Tensor
from ..ops.tensor_list import TensorList
from .scope import Scope
from .variable import EMPTY, DeviceTensor, ScopeVariable, moved, place_of_tensor, tensor_of, unique

if TYPE_CHECKING:
    from .instance import OpInstance

T = TypeVar("T")

_PERMUTE = {("NHWC", "NCHW"): (0, 3, 1, 2), ("NCHW", "NHWC"): (0, 2, 3, 1)}


class TemporaryScope:
    """The scope of a run's temporaries, created for the first one and dropped at the end of the `with`."""

    __slots__ = ("_outer", "scope")

    def __init__(self, outer: Scope) -> None:
        self._outer = outer
        self.scope: Scope | None = None

    def put(self, name: str, tensor: T, layout: str) -> T:
        """Store a tensor under a unique name until the end of the run; return it."""
        if self.scope is None:
            self.scope = self._outer.new_scope()
        self.scope.var(unique(name)).take(tensor, layout=layout)
        return tensor

    def __enter__(self) -> TemporaryScope:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.scope is not None:
            self.scope.drop()


def transformed(
    tensor: EagerTensor | DeviceTensor,
    operand: KernelOperand,
    steps: Sequence[InputTransform],
    temporaries: TemporaryScope,
) -> EagerTensor | DeviceTensor:
    """Return the tensor after these transforms; the original and its variable are unchanged."""
    if not steps:
        return tensor
    array, dtype, place, layout = tensor._array, tensor.dtype, place_of_tensor(tensor), operand.layout
    for step in steps:
        if step.what == "layout":
            array = np.transpose(array, _PERMUTE[step.found, step.wanted])
            array = np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array
            layout = step.wanted
        elif step.what == "dtype":
            array, dtype = array.astype(step.wanted.np), step.wanted
        else:
            array, place = moved(array, place, step.wanted), step.wanted
    return temporaries.put(operand.name, tensor_of(array, dtype, place), layout)


def report(op: str, line: str | None, place: Place, steps: Sequence[InputTransform]) -> None:
    """Print a line to stderr for each transform, if the switch `log_transforms` is on."""
    if flags.log_transforms:
        for step in steps:
            print(f"{op}{f' ({line})' if line else ''} at {place}: {step}", file=sys.stderr)


class BoundInputs(NamedTuple):
    """The inputs of one run, one entry for each that the operator declares: a tensor, None, or a tuple for a repeated
    one.

    stored: tensors and LoDTensors as in the variables. tensors: without LoDs, whose offsets are separate inputs.
    operands: the inputs as kernel selection sees them. carriers: the LoDTensors, by input. rows: whether some are
    sparse rows.
    """

    stored: list[Any]
    tensors: list[Any]
    operands: list[Any]
    carriers: dict[str, LoDTensor]
    rows: bool = False


def bind_inputs(instance: OpInstance, call: Any, scope: Scope) -> BoundInputs:
    """Return the inputs of an instance on a scope.

    raises InvalidArgumentError for rows, lists and objects where a tensor is required, and for LoDs that the operator
    does not take. Only kernel selection can tell whether an uninitialized variable is an error: its operand represents
    it.
    """
    op = instance.type
    stored: list[Any] = []
    operands: list[Any] = []
    for declared in op.inputs:
        names = instance.inputs.get(declared.name)
        if names is None:
            stored.append(None)
            operands.append(None)
            continue
        members = [m for name in names for m in _members(op, declared, name, scope)]
        if declared.repeated:
            stored.append(tuple(t for t, _ in members))
            operands.append(tuple(o for _, o in members))
        else:
            tensor, operand = members[0] if members else (None, None)
            stored.append(tensor)
            operands.append(None if tensor is None and declared.optional else operand)  # an optional input is absent
    return _without_lods(op, stored, operands)


def _members(op: Any, declared: Any, name: str, scope: Scope) -> list[tuple[Any, KernelOperand]]:
    """Return the (tensor or None, operand) pairs that a name contributes to one input; several for a list."""
    by_shape = declared.name in op.shape_only
    variable = None if name == EMPTY else scope.find_var(name)
    if variable is None and declared.optional:
        return []
    if variable is None or not variable.is_initialized:
        return [(None, KernelOperand(op.name, declared.name, name, None, by_shape=by_shape, absent=variable is None))]
    accepted_kinds = var_types.accepted(declared) if variable.kind in ("rows", "list") else ()
    if variable.kind == "rows" and "rows" in accepted_kinds:
        return [(variable._contents, _operand(op, declared, name, variable._contents, "any"))]
    if variable.kind == "rows":
        raise InvalidArgumentError(
            op=op.name,
            what=f"input {declared.name!r} takes a dense tensor",
            found=f"variable {name!r} with rows: {variable.spec.short()}",
            wanted="dense",
            do="its values and indices, or to_dense()",
        )
    contents = variable._contents
    if variable.kind == "object" and not any(d.is_handle for d in declared.dtypes):
        advice = f"scope.var({name!r}).set(variable.value())" if isinstance(contents, Variable) else None
        found = f"variable {name!r} with an object: {type(contents).__name__}"
        raise InvalidArgumentError(
            op=op.name, what=f"input {declared.name!r} takes a tensor", found=found, wanted="dense", do=advice
        )
    if variable.kind == "list" and isinstance(contents, tuple) and declared.repeated and "list" not in accepted_kinds:
        named = [(f"{name}[{i}]", t) for i, t in enumerate(contents)]
    elif variable.kind == "list" and not any(d.is_handle for d in declared.dtypes):
        raise InvalidArgumentError(
            op=op.name,
            what=f"input {declared.name!r} takes one tensor",
            wanted="dense",
            found=f"variable {name!r} with a list of {len(contents)}",
            do="a variable for each",
        )
    else:
        named = [(name, _tensor_in(variable))]
    return [(t, _operand(op, declared, n, t, variable.layout)) for n, t in named]


def _tensor_in(variable: ScopeVariable) -> object:
    """Return a variable's contents as a tensor: for a handle, a tensor with the object as its element."""
    contents = variable._contents
    if variable.kind == "dense":
        return LoDTensor.of(contents._values, contents.levels) if contents.levels else contents._values
    if variable.kind == "list" and isinstance(contents, tuple):
        dtype = contents[0].dtype if contents else dtypes.float32
        contents = TensorList(len(contents), dtype, UNKNOWN, {i: t.constant for i, t in enumerate(contents)})
    return EagerTensor(contents, dtypes.variant if isinstance(contents, TensorList) else dtypes.resource)


def _operand(op: Any, declared: Any, name: str, tensor: Any, layout: str) -> KernelOperand:
    rows = tensor.values if isinstance(tensor, LoDTensor) else tensor
    by_shape = declared.name in op.shape_only
    spec = TensorSpec(tensor.shape, tensor.dtype)
    return KernelOperand(op.name, declared.name, name, spec, place_of_tensor(rows), layout, by_shape)


def _without_lods(op: Any, stored: list[Any], operands: list[Any]) -> BoundInputs:
    """Return the inputs with LoDTensors split, offsets in the inputs that ask for them, empty members removed."""
    present = [tuple(t for t in x if t is not None) if isinstance(x, tuple) else x for x in stored]
    if any(isinstance(t, IndexedSlices) for x in present for t in (x if isinstance(x, tuple) else (x,))):
        return BoundInputs(present, present, operands, {}, True)
    carriers = lod_propagation.carriers_of(op, present)
    if not carriers and not any(d.lod_of for d in op.inputs):
        return BoundInputs(present, present, operands, carriers)
    tensors = lod_propagation.take_apart(op, present, carriers)
    for i, (declared, tensor) in enumerate(zip(op.inputs, tensors)):
        if operands[i] is None and tensor is not None:  # offsets, from the LoD of another input
            name = f"the LoD of {declared.lod_of}"
            levels = tensor if isinstance(tensor, tuple) else (tensor,)
            offsets = [_operand(op, declared, name, t, "any") for t in levels]
            operands[i] = tuple(offsets) if isinstance(tensor, tuple) else offsets[0]
    return BoundInputs(present, tensors, operands, carriers)


def check_initialized(feed: BoundInputs) -> BoundInputs:
    """Check that every input without a value is optional or was skipped by the key rule; return the inputs without
    those.

    raises InvalidArgumentError for an uninitialized input
    """
    operands: list[Any] = []
    for operand, tensor in zip(feed.operands, feed.tensors):
        if isinstance(operand, tuple):
            operand = tuple(o for o in operand if o.is_initialized)
        elif operand is not None and tensor is None:
            operand.checked()
        operands.append(operand)
    return feed._replace(operands=operands)


_NOT_IMAGES = frozenset({"Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"})  # rank 4, but a filter


def ran_on_host(flat: Sequence[Any], arrays: Sequence[Any]) -> bool:
    """Return whether results on the host were computed from arrays of a device, by an implicit copy."""
    inputs = [a for x in arrays if x is not None for a in (x if isinstance(x, list) else (x,))]
    return bool(inputs) and any(isinstance(r, (np.ndarray, np.generic)) for r in flat)


def as_tensor(
    op: Any, result: Any, spec: Any, place: Place, arrays: Sequence[Any], rule: str = "compute"
) -> EagerTensor | DeviceTensor:
    """Return a result as a tensor at `place` that owns its memory. rule: the rule that computed it, for errors.

    raises DefinitionError if the result is not as inferred (InternalError for an operator of this package)
    """
    if not on_devices(spec.dtype):
        return tensor_of(result, spec.dtype, CPUPlace())
    result = getattr(result, "_array", result) if isinstance(result, Tensor) else result
    if not hasattr(result, "dtype"):
        result = _array_of_numbers(op, result, spec, rule)
    wrong = mismatch((result,), (spec,))
    if wrong is not None:
        raise contract_violation(op, rule, **wrong)
    if isinstance(result, (np.ndarray, np.generic)):
        if isinstance(result, np.ndarray) and _overlaps(result, arrays):
            result = result.copy()  # a view or the input itself: variables must not share memory
        if place.kind != "cpu":
            result = moved(np.asarray(result), CPUPlace(), place)
    return tensor_of(result, spec.dtype, place)


def _array_of_numbers(op: Any, result: Any, spec: Any, rule: str) -> np.ndarray:
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


def pack_results(op: Any, call: Any, feed: BoundInputs, flat: Sequence[Any]) -> list[Any]:
    """Return an entry for each declared output: a tensor or LoDTensor, a list for a repeated one, None for offsets that
    became part of another output's LoD.
    """
    packed = list(op.pack_all(flat))
    if not feed.carriers and not any(o.lod_of for o in op.outputs):
        return packed
    lod_rule = lod_propagation.lod_word(op, call, feed.tensors)
    carriers = feed.carriers
    if lod_rule == "joined" and carriers:
        carriers = {"": lod_propagation.joined(op, feed.stored)}
    shown = [o for o in op.outputs if not o.intermediate]
    results = [p for p, o in zip(packed, op.outputs) if not o.intermediate]
    offsets = {id(o) for o in shown if o.lod_of is not None} if lod_rule == "changed" else set()
    host = [on_host(r) if id(o) in offsets else r for r, o in zip(results, shown)]
    assembled = iter(lod_propagation.put_together(op, lod_rule, carriers, host, shown))
    return [p if o.intermediate or id(o) in offsets else next(assembled) for p, o in zip(packed, op.outputs)]


def on_host(tensor: Any) -> object:
    """Return tensors on the CPU, copied if they are elsewhere; other contents are returned unchanged."""
    if isinstance(tensor, (list, tuple)):
        return [on_host(t) for t in tensor]
    if tensor is None or isinstance(tensor, IndexedSlices):
        return tensor
    if isinstance(tensor, LoDTensor):
        return LoDTensor.of(on_host(tensor.values), tensor.levels)
    return tensor if place_of_tensor(tensor).kind == "cpu" else tensor._as_tensor()


def layout_of(op: Any, key: Any, feed: BoundInputs) -> str:
    """Return the layout of rank-4 results: the key's, if any of the inputs has a layout."""
    if key.layout == "any" or op.name in _NOT_IMAGES:
        return "any"
    members = [o for x in feed.operands if x is not None for o in (x if isinstance(x, tuple) else (x,))]
    return key.layout if any(o.layout != "any" for o in members) else "any"


def store_results(instance: OpInstance, scope: Scope, outputs: Sequence[Any], layout: str) -> None:
    """Store the results in the variables. Raises InvalidArgumentError if a list's length is not the slot's."""
    assignments = []
    for declared, result in zip(instance.type.outputs, outputs):
        names = instance.outputs.get(declared.name, ())
        if not declared.repeated:
            if names and names[0] != EMPTY and result is not None:
                assignments.append((names[0], result))
        elif names != (EMPTY,) and (names or declared.lod_of is None):  # unnamed offsets are part of another output
            if len(result) != len(names):
                raise InvalidArgumentError(
                    op=instance.type.name,
                    found=f"{len(names)} names: {', '.join(names)}",
                    what=f"output {declared.name!r} gives {len(result)} tensors",
                    wanted=f"{len(result)} names",
                )
            assignments += [(n, v) for n, v in zip(names, result) if n != EMPTY]
    for name, value in assignments:
        variable = scope.find_var(name) or scope.var(name)
        if value.dtype.is_handle:
            variable.take(value._array)
        else:
            variable.take(value, layout=layout if layout == "any" or value.shape.rank == 4 else "any")
