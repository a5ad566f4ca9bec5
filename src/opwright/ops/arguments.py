"""Conversion of the arguments of a call to tensors: the dtype of Python values, and errors that name the argument.

Lives here: `tensors`, used by both interpreters.  Not here: the creation of a tensor (each interpreter's own).

The rule is TensorFlow's, without promotion: among inputs that must have one dtype (`like=`), the first tensor
determines it, and Python numbers and lists take it if their kind is preserved (an int becomes a float, a float never an
int). A NumPy array after that tensor is cast to it, whatever its kind; an array before it only if no value changes.
Without a tensor their own types determine the dtype: int -> int32, float -> float32; integers for a parameter that
takes floats alone are floats (`adjust_contrast(images, 2)`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError, SignatureError
from ..core.shapes import TensorShape
from .indexed_slices import IndexedSlices
from .tensor import Overriding, ShapeOnlyTensor, Tensor, TensorLike, withheld_error

if TYPE_CHECKING:
    from .definition import Operator

ToTensor = Callable[[Any, Any, Any], Any]


def tensors(op: Operator, inputs: Sequence[Any], to_tensor: ToTensor, name: str | None = None) -> list[Any]:
    """Return one entry per input of `op`: a tensor, None if absent, a tuple of tensors if repeated.

    raises SignatureError naming operator and input for what has no such dtype or is missing
    """
    leader: dict[str, DType] = {}
    before: list[tuple[Any, Any]] = []  # NumPy arrays before the tensor that decides
    for declared, value in zip(op.inputs, inputs):
        if declared.mixed:
            continue
        group = declared.like or declared.name
        if group not in leader:
            if isinstance(value, (np.ndarray, np.generic)):
                before.append((declared, value))
            for one in value if declared.repeated and isinstance(value, (list, tuple)) else (value,):
                if isinstance(one, (TensorLike, IndexedSlices)):
                    leader[group] = one.dtype
                    break
    for declared, value in before:
        _check_lossless(op, declared, value, leader.get(declared.like or declared.name), name)
    for declared, value in zip(op.inputs, inputs):
        group = declared.like or declared.name
        if group not in leader and value is not None and not declared.mixed:
            if declared.like or any(other.like == declared.name for other in op.inputs):
                members = [v for d, v in zip(op.inputs, inputs) if (d.like or d.name) == group and v is not None]
            else:
                members = [value]
            natural = _natural(members, declared.repeated, declared.dtypes)
            if dtypes.float32 in declared.dtypes and _is_parameter(op, group) and _are_integers(members):
                natural = dtypes.float32
            if natural is not None:
                leader[group] = natural
    result: list[Any] = []
    for declared, value in zip(op.inputs, inputs):
        dtype = leader.get(declared.like or declared.name)
        if value is None:
            if declared.lod_of is not None:  # offsets come with the LoDTensor that they belong to
                _check_has_lod(op, declared, inputs, name)
            elif not declared.optional:
                raise SignatureError(
                    op=op.name,
                    node=name,
                    what=f"input {declared.name!r} is missing",
                    wanted=f"a tensor; the call is {op.signature()}",
                )
            result.append(None)
            continue
        if declared.dtypes == (dtypes.resource,):
            if _is_handle(value):
                result.append(value)
                continue
            if declared.repeated and isinstance(value, (list, tuple)):
                result.append(tuple([v if _is_handle(v) else to_tensor(v, dtype, None) for v in value]))
                continue
        try:
            if type(value) is ShapeOnlyTensor:
                result.append(_by_shape(op, declared, value))
            elif declared.repeated:
                if isinstance(value, TensorLike) or not isinstance(value, (list, tuple)):
                    value = list(value)
                result.append(
                    tuple(
                        [
                            _by_shape(op, declared, v) if type(v) is ShapeOnlyTensor else to_tensor(v, dtype, None)
                            for v in value
                        ]
                    )
                )
            else:
                result.append(to_tensor(value, dtype, None))
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InvalidArgumentError) and error.op is not None:
                raise
            raise SignatureError(op=op.name, node=name, what=f"input {declared.name!r}: {error}") from error
    return result


def widens(source: DType, target: DType) -> bool:
    """Return whether values of dtype `source` may become `target` without an explicit cast: kinds only widen."""
    if source is target or (target.is_integer and (source.is_integer or source.is_bool)):
        return True
    if target.is_floating:
        return source.is_floating or source.is_integer or source.is_bool
    return target.is_complex and (source.is_complex or source.is_floating or source.is_integer)


def _check_lossless(op: Operator, declared: Any, value: Any, target: DType | None, name: str | None) -> None:
    """Raise SignatureError if an array loses information in the dtype of a tensor after it."""
    if target is None or value.dtype == target.np or target.is_handle or value.dtype.kind in "OSU":
        return
    source = dtypes.of_numpy(value.dtype)
    if not widens(source, target) or (target.is_integer and (value.astype(target.np) != value).any()):
        raise SignatureError(
            op=op.name,
            node=name,
            what=f"input {declared.name!r}: Cannot convert an array of dtype "
            f"{source.name} to the dtype of the tensor after it, {target.name}",
            do=f"ow.cast(..., ow.{target.name})",
        )


def _by_shape(op: Operator, declared: Any, value: ShapeOnlyTensor) -> ShapeOnlyTensor:
    if declared.name in op.shape_only or value.dtype.is_handle:
        return value
    raise withheld_error(value, op.name, declared.name)


def _is_handle(value: Any) -> bool:
    """Return whether operators on state take the value itself: a variable, not its content."""
    return isinstance(value, TensorLike) and not isinstance(value, Tensor)


def _check_has_lod(op: Operator, offsets: Any, inputs: Sequence[Any], name: str | None) -> None:
    source = dict(zip(op.input_names, inputs))[offsets.lod_of]
    members = source if isinstance(source, (list, tuple)) else (source,)
    if offsets.optional or any(isinstance(one, Overriding) for one in members):
        return
    raise SignatureError(
        op=op.name,
        node=name,
        what=f"input {offsets.lod_of!r} has no LoD",
        found="no value" if source is None else _shown(source),
        wanted=f"a LoDTensor, or its offsets as {offsets.name!r}",
        do="make it with ow.create_lod_tensor or ow.sequence.unpad",
    )


def _shown(source: Any) -> str:
    if isinstance(source, (list, tuple)):
        return f"{len(source)} ordinary tensors"
    return f"an ordinary tensor, {source.spec.short()}" if isinstance(source, Tensor) else repr(source)[:60]


def _natural(members: Sequence[Any], repeated: bool, allowed: Sequence[DType]) -> DType | None:
    """Return the dtype that Python values agree on; None to determine it per value."""
    flat: list[Any] = []
    for member in members:
        flat.extend(member) if repeated and isinstance(member, (list, tuple)) else flat.append(member)
    if len(flat) < 2:
        return _of_empty(flat, allowed)
    try:
        kinds = [natural_dtype(v) for v in flat]
    except (TypeError, ValueError):
        return None
    for kind in kinds:
        if kind.is_floating or kind.is_complex:
            return kind
    return kinds[0]


def _is_parameter(op: Operator, group: str) -> bool:
    """Return whether inputs of one dtype are not the first, whose dtype says what is computed, and no integers."""
    first = op.inputs[0]
    members = [i for i in op.inputs if i.name == group]
    return group != (first.like or first.name) and not any(d.is_integer or d.is_bool for i in members for d in i.dtypes)


def _are_integers(members: Sequence[Any]) -> bool:
    """Return whether Python values are integers alone."""
    try:
        return all(
            isinstance(v, (int, list, tuple, range)) and natural_dtype(v) in (dtypes.int32, dtypes.int64)
            for v in members
        )
    except (TypeError, ValueError):
        return False


def _of_empty(flat: Sequence[Any], allowed: Sequence[DType]) -> DType | None:
    """Return the dtype of an empty list: int32 if the input takes only indices, else None."""
    if flat and isinstance(flat[0], (list, tuple)) and not flat[0] and dtypes.float32 not in allowed:
        return allowed[0] if dtypes.int32 not in allowed else dtypes.int32
    return None


def natural_dtype(value: Any) -> DType:
    """Return the dtype of `constant(value)`: an array's own; bool, int32, float32, complex128 or string for Python
    values.

    raises ValueError for a list of text and numbers and for what is not a number, text or nesting of these
    """
    if isinstance(value, TensorLike):
        return value.dtype
    if isinstance(value, (np.ndarray, np.generic)):  # before float, which np.float64 is
        return dtypes.of_numpy(value.dtype)
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, int):
        return dtypes.int32 if -(2**31) <= value < 2**31 else dtypes.int64
    if isinstance(value, float):
        return dtypes.float32
    if isinstance(value, (list, tuple, range)):
        return _common(value)
    if isinstance(value, complex):
        return dtypes.complex128
    if isinstance(value, (str, bytes)):
        return dtypes.string
    if isinstance(value, TensorShape):
        if not value.is_fully_defined():
            raise ValueError(f"Cannot convert a partially known TensorShape {value} to a Tensor.")
        return dtypes.int64 if any(size > dtypes.int32.max for size in value.as_list()) else dtypes.int32
    array = np.asarray(value)
    if array.dtype == object:
        raise ValueError(f"Attempt to convert a value ({value!r}) with an unsupported type {type(value)} to a Tensor.")
    return dtypes.of_numpy(array.dtype)


def _common(value: Sequence[Any]) -> DType:
    """Return the dtype of nested values: of the first complex number, else the first float, else the first integer."""
    kinds: dict[DType, None] = {}
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (list, tuple, range)):
            stack.extend(reversed(item))
        else:
            kinds[natural_dtype(item)] = None
    if not kinds:
        return dtypes.float32
    first = next(iter(kinds))
    if len(kinds) > 1 and (dtypes.string in kinds or first is dtypes.bool):
        raise ValueError(
            f"Can't convert Python sequence with mixed types to Tensor: {', '.join(d.name for d in kinds)}"
        )
    for kind in ("is_complex", "is_floating"):
        for dtype in kinds:
            if getattr(dtype, kind):
                return dtype
    integers = [d for d in kinds if d.is_integer and d is not dtypes.int32]
    return integers[0] if integers else first
