"""Assertions on ranks, shapes and dtypes, usually checked while tracing.

Lives here: assert_rank, assert_rank_at_least, assert_rank_in, assert_scalar, assert_shapes, the assertions on dtypes.
Not here: assertions on values (assertions.py), shapes as results (array/shape_checks.py: ensure_shape).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, as_dtype
from .. import array, dispatch, math
from ..indexed_slices import IndexedSlices
from ..tensor import Tensor, TensorLike
from .assertions import Assert


def _name(x: Any) -> str:
    return x.name if dispatch.state.trace is not None else ""


def _start(message: str | None) -> str:
    return f"{message}.  " if message else ""


def _static_rank(rank: Any) -> int | None:
    """Return a rank, a number or a tensor, as an int; None if it is unknown. Raises ValueError, TypeError."""
    tensor = dispatch.to_tensor(rank)
    if not tensor.dtype.is_integer:
        raise TypeError(f"tensor must be of type tf.int32; got {tensor.dtype!r}")
    if tensor.shape.rank != 0:
        raise ValueError("Rank must be a scalar.")
    value = tensor.constant
    return None if value is None else int(value)


def _check_rank(
    x: Any, ranks: Sequence[Any], words: str, holds: Any, combine: str, message: str | None, name: str
) -> None:
    """Assert holds(rank of x, r) for any of the ranks, on numbers if they are known, else on tensors."""
    x = dispatch.to_tensor(x)
    static_ranks = [_static_rank(r) for r in ranks]
    rank = x.shape.rank
    expected: Any = tuple(static_ranks) if combine == "any" else static_ranks[0]
    if rank is not None and None not in static_ranks:
        if not any(holds(rank, r) for r in static_ranks):
            raise ValueError(
                f"{_start(message)}Tensor {_name(x)} must have rank {words}{expected}.  Received rank {rank}, "
                f"shape {x.shape}"
            )
        return
    actual = array.rank(x)
    rank_tensors = [array.cast(dispatch.to_tensor(r), "int32") for r in ranks]
    condition = holds(actual, rank_tensors[0])
    for other in rank_tensors[1:]:
        condition = math.logical_or(condition, holds(actual, other))
    data = [
        _start(message),
        f"Tensor {_name(x)} must have rank {words}".rstrip(),
        *rank_tensors,
        "Received shape: ",
        array.shape(x),
    ]
    Assert(condition, data, name=name)


def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless x has `rank` dimensions.

    raises ValueError for a wrong rank if it is known, else InvalidArgumentError at run time
    """
    _check_rank(x, [rank], "", lambda a, b: _equal(a, b), "one", message, name or "assert_rank")


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless x has at least `rank` dimensions. Errors: as in `assert_rank`."""
    _check_rank(x, [rank], "at least ", lambda a, b: a >= b, "one", message, name or "assert_rank_at_least")


def assert_rank_in(x: Any, ranks: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless the number of dimensions of x is among `ranks`. Errors: as in `assert_rank`."""
    _check_rank(x, list(ranks), "in ", lambda a, b: _equal(a, b), "any", message, name or "assert_rank_in")


def _equal(a: Any, b: Any) -> bool | Tensor:
    return a == b if isinstance(a, int) and isinstance(b, int) else math.equal(a, b)


def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless the tensor's shape is ().

    raises ValueError for another shape, InvalidArgumentError at run time if the rank is unknown before
    """
    tensor = dispatch.to_tensor(tensor)
    if tensor.shape.rank is None:
        assert_rank(tensor, 0, message, name or "assert_scalar")
    elif tensor.shape.rank:
        of = f"for {tensor.name}" if _name(tensor) else ""
        raise ValueError(f"{_start(message)}Expected scalar shape{' ' + of if of else ''}, saw shape: {tensor.shape}.")


# ---- dtypes ---------------------------------------------------------------------------------------------------------


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless the tensor has that dtype. raises TypeError otherwise"""
    dtype = as_dtype(tf_type)
    tensor = dispatch.to_tensor(tensor)
    if tensor.dtype is not dtype:
        raise TypeError(f"{_start(message)}tensor must be of type {dtype!r}; got {tensor.dtype!r}")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless the tensor has an integer dtype. raises TypeError otherwise"""
    x = dispatch.to_tensor(x)
    if not x.dtype.is_integer:
        which = _name(x) or "tensor"
        raise TypeError(f'{_start(message)}Expected "x" to be integer type.  Found: {which} of dtype {x.dtype!r}')


def is_numeric_tensor(tensor: Any) -> bool:
    """Return whether a value is a tensor of numbers: not of strings or bool, not a Python number or variable."""
    if not isinstance(tensor, (Tensor, IndexedSlices)):
        return False
    dtype: DType = tensor.dtype
    return dtype.is_integer or dtype.is_floating or dtype.is_complex


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: Any = None) -> DType:
    """Return the common floating dtype of tensors and `dtype`; float32 by default.

    raises ValueError for different dtypes, or one that is not floating
    """
    common = None if dtype is None else as_dtype(dtype)
    first: Any = None
    for tensor in tensors or ():
        if tensor is None:
            continue
        if common is None:
            common, first = as_dtype(tensor.dtype), tensor
        elif as_dtype(tensor.dtype) is not common:
            as_what = "" if first is None else f" as {first}"
            raise ValueError(f"{tensor}, type={tensor.dtype!r}, must be of the same type ({common!r}){as_what}.")
    common = as_dtype("float32") if common is None else common
    if not common.is_floating:
        raise ValueError(f"Expected floating point type, got {common!r}.")
    return common


def assert_proper_iterable(values: Any) -> None:
    """Fail unless `values` is iterable and neither text nor a tensor. raises TypeError otherwise"""
    if isinstance(values, (TensorLike, IndexedSlices, np.ndarray, bytes, str)):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not isinstance(values, Iterable):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


# ---- shapes by symbols ----------------------------------------------------------------------------------------------

_ANY_NUMBER = ("*", ...)


def _symbols(shape: Any) -> tuple[Any, ...]:
    """Return the symbols of a shape: sizes, letters, None or "." for any size; initially "*" or ... for any number."""
    if isinstance(shape, (str, list, tuple)):
        return tuple(shape)
    return tuple(shape) if isinstance(shape, Iterable) else (shape,)


def assert_shapes(
    shapes: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Fail unless tensors have the given shapes, in which equal letters denote equal sizes.

    shapes: pairs of a tensor and its shape, in a list or a dict: sizes, letters, None or "." for any size; "*" or ...
    as the first entry for any number of dimensions. data: shown in the error.

    >>> ow.debugging.assert_shapes([(x, ("N", "Q")), (y, ("N", 3)), (q, ("Q",))])

    raises ValueError for wrong shapes if they are known, else InvalidArgumentError at run time
    """
    pairs = shapes.items() if isinstance(shapes, Mapping) else shapes
    sizes: dict[Any, tuple[Any, str]] = {}
    start, name = _start(message), name or "assert_shapes"
    checks: list[tuple[Any, tuple[Any, ...], bool]] = []
    for tensor, shape in pairs:
        x, symbols = dispatch.to_tensor(tensor), _symbols(shape)
        for i, symbol in enumerate(symbols):
            if i and symbol in _ANY_NUMBER:
                raise ValueError(
                    f"{start}Tensor {_described(x)} specified shape index {i}.  Symbol `...` or `*` for a variable "
                    "number of unspecified dimensions is only allowed as the first entry"
                )
        checks.append((x, symbols, bool(symbols) and symbols[0] in _ANY_NUMBER))
    for x, symbols, has_prefix in checks:
        if len(symbols) > 1:  # scalars and vectors of one element are equivalent
            if has_prefix:
                assert_rank_at_least(x, len(symbols) - 1, message, f"{name}/assert_rank")
            else:
                assert_rank(x, len(symbols), message, f"{name}/assert_rank")
        elif not has_prefix:
            assert_rank_in(x, [0, 1], message, f"{name}/assert_rank")
    for x, symbols, has_prefix in checks:
        for i, symbol in enumerate(symbols):
            if symbol in (None, ".") or symbol in _ANY_NUMBER:
                continue
            axis = i - len(symbols) if has_prefix else i
            size = _size(x, axis)
            explicit = isinstance(symbol, int)
            expected, origin = (symbol, "Specified explicitly") if explicit else sizes.get(symbol, (None, ""))
            if expected is None:
                sizes[symbol] = (size, f"Specified by tensor {_described(x)} dimension {axis}")
                continue
            if isinstance(expected, int) and isinstance(size, int):
                if expected != size:
                    raise ValueError(
                        f"{start}{origin}.  Tensor {_described(x)} dimension {axis} must have size {expected}.  "
                        f"Received size {size}, shape {x.shape}"
                    )
                continue
            words = [
                start,
                origin,
                f"Tensor {_described(x)} dimension",
                axis,
                "must have size",
                expected,
                "Received shape: ",
                array.shape(x),
            ]
            Assert(
                _equal(dispatch.to_tensor(size), dispatch.to_tensor(expected)),
                [*words, *(data or ())],
                summarize,
                f"{name}/Assert",
            )


def _described(x: Any) -> str:
    return _name(x) or f"shape={x.shape} dtype={x.dtype.name}"


def _size(x: Any, axis: int) -> int | Tensor:
    """Return the size of an axis, a tensor if it is unknown. A scalar counts as a vector of one element."""
    shape = x.shape
    if shape.rank == 0:
        return 1
    if shape.rank is not None and shape[axis] is not None:
        return int(shape[axis])
    return array.shape(x)[axis]
