"""Outline: what is left of a tensor whose elements nobody needs, its dtype and shape.

Lives here: `Outline`, `Hollow` (the same as an array), the error for reading either, and `linked`, by which tapes know
tensors.  Not here: which inputs a gradient reads (reading.py), the records that hold outlines (autodiff.py).

Tapes follow tensors by identity. An eager tensor's identity is its outline, made when a tape first meets it: a record
that holds the outline knows the tensor again, and asks for its shape, while the buffer is free to go. Variables and
symbolic tensors have no buffer to free and are their own identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..core import forks
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape, of_known
from .tensor import Tensor


class WithheldError(InvalidArgumentError):
    """The elements of a tensor were read of which only the shape is there."""

    outline: Any = None


def withheld(outline: Any, op: str | None = None, input: str | None = None) -> WithheldError:
    """The error for reading an outline; op, input: the operator and the input of it that reads."""
    error = WithheldError(
        op=op,
        what=("its elements" if input is None else f"input {input!r}")
        + " would be read of a tensor that is kept by its shape alone",
        found=f"an outline, {outline.spec.short()}",
        wanted="its shape, size, rank or dtype, or what follows from them: zeros_like, ones_like",
    )
    error.outline = outline
    return error


class Outline(Tensor):
    """A tensor's dtype and shape without its elements. Operators take it where they read a shape alone.

    source: inside a trace, the tensor that it is the outline of. Handles have no buffer: theirs is the handle itself.
    raises WithheldError (an InvalidArgumentError) where elements are asked for
    """

    __slots__ = ("__weakref__", "_shape", "dtype", "source")
    dtype: DType  # a slot in place of the property

    def __init__(self, dtype: DType, shape: Any, source: Any = None) -> None:
        self.dtype = dtype
        self._shape = shape
        self.source = source

    @property
    def shape(self) -> TensorShape:
        """Shape; inside a trace as far as it is known."""
        return of_known(self._shape) if type(self._shape) is tuple else self._shape

    @property
    def _dtype(self) -> DType:
        return self.dtype

    @property
    def _outline(self) -> Any:
        return self if self.source is None or self.dtype.is_handle else self.source

    @property
    def _array(self) -> Any:
        return self.source if self.dtype.is_handle else Hollow(self)

    def _as_tensor(self) -> Outline:
        return self

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise withheld(self)

    numpy = tolist = __array__ = __bool__ = __int__ = __float__ = __complex__ = __index__ = __iter__ = _refuse
    __dlpack__ = __reduce__ = _refuse

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"<outline of a tensor, {self.spec.short()}>"

    __str__ = __repr__


class Hollow:
    """An outline as a kernel sees it: an array's shape and dtype, no elements."""

    __slots__ = ("_outline", "dtype", "shape")
    nbytes = 0
    __array_ufunc__ = None

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self.dtype = outline.dtype.np
        self.shape: tuple[int, ...] = tuple(outline.shape)  # type: ignore[arg-type]  # whole: eager

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements that it would have."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise withheld(self._outline)

    __iter__ = __getitem__ = __bool__ = __float__ = __int__ = __array__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols: NumPy asks for several
            raise AttributeError(name)
        raise withheld(self._outline)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        answer = _BY_SHAPE.get(function)
        if answer is None or not args or args[0] is not self:
            raise withheld(self._outline)
        return answer(self, *args[1:], **kwargs)

    def __repr__(self) -> str:
        return f"<hollow array, {self.dtype} {list(self.shape)}>"


def _like(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(x: Hollow, *args: Any, dtype: Any = None, shape: Any = None, **kwargs: Any) -> Any:
        kwargs.pop("subok", None)
        return make(x.shape if shape is None else shape, *args, dtype=x.dtype if dtype is None else dtype, **kwargs)

    return made


# What NumPy can say of a hollow array.
_BY_SHAPE: dict[Any, Callable[..., Any]] = {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: len(x.shape),
    np.size: lambda x, axis=None: x.size if axis is None else x.shape[axis],
    np.zeros_like: _like(np.zeros),
    np.ones_like: _like(np.ones),
    np.empty_like: _like(np.empty),
    np.full_like: _like(np.full),
}

_LINKING = forks.lock()  # two threads that meet a tensor at once must agree on its identity


def outline_of(x: Any) -> Outline:
    """A new outline of an eager tensor."""
    dtype, array = x._dtype, x._array
    return Outline(dtype, array.shape, array if dtype.is_handle else None)


def linked(x: Any) -> Any:
    """The identity of a tensor or variable, by whose `id` tapes know it: itself, or an eager tensor's outline."""
    known = x._outline
    if known is not None:
        return known
    with _LINKING:
        known = x._outline
        if known is None:
            known = x._outline = outline_of(x)
    return known


def identity_of(x: Any) -> int:
    """The key of a tensor in tapes and gradients. 0 for one that no tape has met."""
    known = x._outline
    return 0 if known is None else id(known)


def outline_in_trace(x: Any) -> Any:
    """The outline of a symbolic tensor, which reads as nothing but its shape; variables and handles stay as they are.

    For rules run in a trace: what an input declared `no_need_buffer` has there.
    """
    if type(x) in (tuple, list):
        return type(x)(map(outline_in_trace, x))
    if x is None or not isinstance(x, Tensor) or x.dtype.is_handle or x._outline is not x:
        return x
    return Outline(x.dtype, x.shape, x)
