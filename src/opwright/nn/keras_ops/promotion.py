"""Type promotion of `keras.ops`: the dtype that operands of different dtypes share.

Lives here: `result_type`, `promote` and other conversions of arguments.
Not here: TensorFlow's rules, which promote nothing (ops/overloads.py).

Python numbers are weak: they take the dtype of the other operands unless that is of a lower kind (bool, integer,
floating, complex). Two dtypes of one kind promote as in NumPy, except that uint64 with a signed integer is floating
(`backend.floatx`) and float16 with bfloat16 is float32. A dtype of a higher kind is kept as it is: int64 with float16
is float16. Source: the promotion lattice of JAX, which Keras 3 uses with every backend.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, as_dtype
from ...ops import array, dispatch
from .. import backend

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

_KINDS = (bool, int, float, complex)  # Python's numbers, by kind
_SUMS = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}


def _is_weak(dtype: Any) -> bool:
    return any(dtype is kind for kind in _KINDS)  # a DType equals Python's type of its kind


def _kind(dtype: Any) -> int:
    """Return the index in `_KINDS` of a Python type or dtype. Raises ValueError if its values are not numbers."""
    if _is_weak(dtype):
        return _KINDS.index(dtype)
    d = as_dtype(dtype)
    if d.name == "bool":
        return 0
    if d.is_integer:
        return 1
    if d.is_floating or d.is_complex:
        return 2 if d.is_floating else 3
    raise ValueError(f"Elements of dtype {d.name} are not numbers and promote to none; convert them first")


def _default(kind: int) -> str:
    return ("bool", "int32", backend.floatx(), "complex64")[kind]


def _promote_pair(a: DType, b: DType) -> DType:
    if a == b:
        return a
    if _kind(a) != _kind(b):
        low, high = (a, b) if _kind(a) < _kind(b) else (b, a)
        return as_dtype("complex128") if (low.name, high.name) == ("float64", "complex64") else high
    if {a.name, b.name} == {"float16", "bfloat16"}:
        return as_dtype("float32")
    if _kind(a) == 2:
        return a if a.size > b.size else b
    common = np.promote_types(a.as_numpy_dtype, b.as_numpy_dtype)
    return as_dtype(common if common.kind != "f" else backend.floatx())  # f: of uint64 and a signed integer


def result_type(*dtypes: Any) -> str:
    """Return the name of the dtype to which dtypes promote; Python's types bool, int, float, complex are weak.

    No dtypes, and None among them, mean `backend.floatx`. Raises ValueError for dtypes of no numbers
    """
    given = [backend.floatx() if d is None else d for d in dtypes] or [backend.floatx()]
    strong = [as_dtype(d) for d in given if not _is_weak(d)]
    highest = max(map(_kind, given))
    if not strong:
        return _default(highest)
    result = strong[0]
    for d in strong[1:]:
        result = _promote_pair(result, d)
    return result.name if _kind(result) >= highest else _default(highest)


def _type_of(x: Any) -> Any:
    return type(x) if isinstance(x, _KINDS) else dispatch.to_tensor(x).dtype


def as_tensor(x: Any) -> Tensor:
    """Return a tensor as it is, or an array or Python's numbers as one."""
    result: Tensor = dispatch.to_tensor(x)
    return result


def rank_of(x: Tensor) -> int:
    """Return the number of axes. Raises ValueError if it is known only at run time."""
    rank = x.shape.rank
    if rank is None:
        raise ValueError(f"The number of axes must be known. Received: shape={x.shape}")
    return int(rank)


def convert(x: Any, dtype: Any) -> Tensor:
    """Return a tensor of a dtype, from a tensor, an array or Python numbers."""
    if isinstance(x, _KINDS):
        return dispatch.to_tensor(bool(x) if dtype == "bool" else x, as_dtype(dtype))
    tensor = dispatch.to_tensor(x)
    return tensor if tensor.dtype == as_dtype(dtype) else array.cast(tensor, dtype)


def promote(*values: Any, floating: bool = False) -> tuple[Tensor, ...]:
    """Return values as tensors of their common dtype; floating: at least a floating one."""
    common = result_type(*map(_type_of, values), *([float] if floating else []))
    return tuple(convert(v, common) for v in values)


def as_floating(x: Any) -> Tensor:
    """Return a tensor, whose elements become `backend.floatx` if they are integers or Booleans."""
    return promote(x, floating=True)[0]


def as_double(x: Any) -> Any:
    """Return a tensor of int64 as float64, which a few functions of Keras compute it in; other values as they are."""
    return x if isinstance(x, _KINDS) or (y := as_tensor(x)).dtype.name != "int64" else convert(y, "float64")


def as_number(x: Any) -> Any:
    """Return a tensor of Booleans as int32, other values as they are."""
    return convert(x, "int32") if not isinstance(x, _KINDS) and as_tensor(x).dtype.name == "bool" else x


def as_boolean(x: Any) -> Tensor:
    """Return a tensor of Booleans: whether each element differs from 0."""
    return convert(x, "bool")


def sum_dtype(dtype: Any) -> str:
    """Return the dtype in which a sum or a product of elements is computed: at least 32 bits of integers."""
    name = as_dtype(dtype).name
    return _SUMS.get(name, name)


def of_one(
    function: Callable[..., Any],
    floating: bool = False,
    boolean: bool = False,
    first: Callable[[Any], Any] = lambda x: x,
) -> Callable[[Any], Any]:
    """Return a function of one tensor under Keras's conversion of its argument.

    floating: integers become floating; boolean: numbers become Booleans; first: a conversion before these
    """
    prepare = as_floating if floating else as_boolean if boolean else dispatch.to_tensor

    @wraps(function)
    def converted(x: Any) -> Any:
        return function(prepare(first(x)))

    return _as_own(converted)


def of_two(
    function: Callable[..., Any],
    floating: bool = False,
    boolean: bool = False,
    first: Callable[[Any], Any] = lambda x: x,
) -> Callable[[Any, Any], Any]:
    """Return a function of two tensors under promotion. Arguments: see `of_one`."""

    @wraps(function)
    def promoted(x1: Any, x2: Any) -> Any:
        if boolean:
            return function(as_boolean(x1), as_boolean(x2))
        return function(*promote(first(x1), first(x2), floating=floating))

    return _as_own(promoted)


def _as_own(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper with its own parameters instead of the wrapped function's."""
    del function.__wrapped__  # type: ignore[attr-defined]
    return function
