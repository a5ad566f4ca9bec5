"""Assertions on ranks, shapes and dtypes: mostly known ahead, so mostly checked while tracing.

Lives here: assert_rank and its kin, assert_scalar, assert_shapes, the assertions on dtypes.
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
    """A rank given as a number or a tensor; None where it is not known yet. Raises ValueError, TypeError."""
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
    """holds(rank of x, rank given), for any (or all) of the ranks; works on numbers and on tensors."""
    x = dispatch.to_tensor(x)
    known = [_static_rank(r) for r in ranks]
    found = x.shape.rank
    shown: Any = tuple(known) if combine == "any" else known[0]
    if found is not None and None not in known:
        if not any(holds(found, r) for r in known):
            raise ValueError(
                f"{_start(message)}Tensor {_name(x)} must have rank {words}{shown}.  Received rank {found}, "
                f"shape {x.shape}"
            )
        return
    actual = array.rank(x)
    given = [array.cast(dispatch.to_tensor(r), "int32") for r in ranks]
    condition = holds(actual, given[0])
    for other in given[1:]:
        condition = math.logical_or(condition, holds(actual, other))
    data = [
        _start(message),
        f"Tensor {_name(x)} must have rank {words}".rstrip(),
        *given,
        "Received shape: ",
        array.shape(x),
    ]
    Assert(condition, data, name=name)


def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless x has `rank` dimensions.

    raises ValueError where the rank is known and wrong, InvalidArgumentError when run where it is not
    """
    _check_rank(x, [rank], "", lambda a, b: _equal(a, b), "one", message, name or "assert_rank")


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless x has `rank` dimensions or more. See `assert_rank`."""
    _check_rank(x, [rank], "at least ", lambda a, b: a >= b, "one", message, name or "assert_rank_at_least")


def assert_rank_in(x: Any, ranks: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless the number of dimensions of x is among `ranks`. See `assert_rank`."""
    _check_rank(x, list(ranks), "in ", lambda a, b: _equal(a, b), "any", message, name or "assert_rank_in")


def _equal(a: Any, b: Any) -> bool | Tensor:
    return a == b if isinstance(a, int) and isinstance(b, int) else math.equal(a, b)


def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless the tensor's shape is ().

    raises ValueError for another shape, InvalidArgumentError when run where the rank is not known before
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
    wanted = as_dtype(tf_type)
    tensor = dispatch.to_tensor(tensor)
    if tensor.dtype is not wanted:
        raise TypeError(f"{_start(message)}tensor must be of type {wanted!r}; got {tensor.dtype!r}")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Fail unless the tensor has an integer dtype. raises TypeError otherwise"""
    x = dispatch.to_tensor(x)
    if not x.dtype.is_integer:
        which = _name(x) or "tensor"
        raise TypeError(f'{_start(message)}Expected "x" to be integer type.  Found: {which} of dtype {x.dtype!r}')


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers: not of strings or bool, and no Python number or variable."""
    if not isinstance(tensor, (Tensor, IndexedSlices)):
        return False
    dtype: DType = tensor.dtype
    return dtype.is_integer or dtype.is_floating or dtype.is_complex


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: Any = None) -> DType:
    """The one floating dtype that all tensors have: `dtype` if it is given, float32 where nothing says.

    raises ValueError where they differ or the dtype is not floating
    """
    wanted = None if dtype is None else as_dtype(dtype)
    first: Any = None
    for tensor in tensors or ():
        if tensor is None:
            continue
        if wanted is None:
            wanted, first = tensor.dtype, tensor
        elif tensor.dtype is not wanted:
            as_what = "" if first is None else f" as {first}"
            raise ValueError(f"{tensor}, type={tensor.dtype!r}, must be of the same type ({wanted!r}){as_what}.")
    wanted = as_dtype("float32") if wanted is None else wanted
    if not wanted.is_floating:
        raise ValueError(f"Expected floating point type, got {wanted!r}.")
    return wanted


def assert_proper_iterable(values: Any) -> None:
    """Fail unless `values` is iterable and neither text nor a tensor. raises TypeError otherwise"""
    if isinstance(values, (TensorLike, IndexedSlices, np.ndarray, bytes, str)):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not isinstance(values, Iterable):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


# ---- shapes by symbols ----------------------------------------------------------------------------------------------

_ANY_NUMBER = ("*", ...)


def _symbols(shape: Any) -> tuple[Any, ...]:
    """A shape as written: sizes, letters, None or "." for any size; "*" or ... first, for any number of them."""
    if isinstance(shape, (str, list, tuple)):
        return tuple(shape)
    return tuple(shape) if isinstance(shape, Iterable) else (shape,)


def assert_shapes(
    shapes: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Fail unless tensors have these shapes, in which equal letters stand for equal sizes.

    shapes: pairs of a tensor and its shape, in a list or a dict: sizes, letters, None or "." for any size; "*" or ...
    as the first entry for any number of dimensions. data: shown in the error.

    >>> ow.debugging.assert_shapes([(x, ("N", "Q")), (y, ("N", 3)), (q, ("Q",))])

    raises ValueError where known shapes are wrong, InvalidArgumentError when run where they are not known before
    """
    pairs = shapes.items() if isinstance(shapes, Mapping) else shapes
    known: dict[Any, tuple[Any, str]] = {}
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
    for x, symbols, ends in checks:
        if len(symbols) > 1:  # a scalar and a vector of one element are not told apart
            if ends:
                assert_rank_at_least(x, len(symbols) - 1, message, f"{name}/assert_rank")
            else:
                assert_rank(x, len(symbols), message, f"{name}/assert_rank")
        elif not ends:
            assert_rank_in(x, [0, 1], message, f"{name}/assert_rank")
    for x, symbols, ends in checks:
        for i, symbol in enumerate(symbols):
            if symbol in (None, ".") or symbol in _ANY_NUMBER:
                continue
            axis = i - len(symbols) if ends else i
            size = _size(x, axis)
            explicit = isinstance(symbol, int)
            wanted, origin = (symbol, "Specified explicitly") if explicit else known.get(symbol, (None, ""))
            if wanted is None:
                known[symbol] = (size, f"Specified by tensor {_described(x)} dimension {axis}")
                continue
            if isinstance(wanted, int) and isinstance(size, int):
                if wanted != size:
                    raise ValueError(
                        f"{start}{origin}.  Tensor {_described(x)} dimension {axis} must have size {wanted}.  "
                        f"Received size {size}, shape {x.shape}"
                    )
                continue
            words = [
                start,
                origin,
                f"Tensor {_described(x)} dimension",
                axis,
                "must have size",
                wanted,
                "Received shape: ",
                array.shape(x),
            ]
            Assert(
                _equal(dispatch.to_tensor(size), dispatch.to_tensor(wanted)),
                [*words, *(data or ())],
                summarize,
                f"{name}/Assert",
            )


def _described(x: Any) -> str:
    return _name(x) or f"shape={x.shape} dtype={x.dtype.name}"


def _size(x: Any, axis: int) -> int | Tensor:
    """The size of one axis: a number where it is known, else a tensor. A scalar counts as a vector of one."""
    shape = x.shape
    if shape.rank == 0:
        return 1
    if shape.rank is not None and shape[axis] is not None:
        return int(shape[axis])
    return array.shape(x)[axis]
