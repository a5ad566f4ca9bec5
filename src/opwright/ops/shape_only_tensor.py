"""Shape-only tensors: dtype and shape of a tensor whose elements are not needed.

Lives here: `ShapeOnlyTensor`, `ShapeOnlyArray` (the same as an array), the error for reading either, and `identity`, by
which tapes refer to tensors.
Not here: the dependencies of gradients (gradient_dependencies.py), the records that hold such tensors (autodiff.py).

Tapes follow tensors by identity. The identity of an eager tensor is its shape-only tensor, created when a tape first
records it: a record that holds it recognizes the tensor and reads its shape, while the buffer may be freed. Variables
and symbolic tensors have no buffer to free and are their own identity.
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
    """Raised for reading the elements of a shape-only tensor. identity: the tensor."""

    identity: Any = None


def withheld_error(tensor: Any, op: str | None = None, input: str | None = None) -> WithheldError:
    """Return the error for reading a shape-only tensor. op, input: the operator and its input that read it."""
    error = WithheldError(
        op=op,
        what=("its elements" if input is None else f"input {input!r}")
        + " would be read of a tensor that is kept by its shape alone",
        found=f"a shape-only tensor, {tensor.spec.short()}",
        wanted="its shape, size, rank or dtype, or what follows from them: zeros_like, ones_like",
    )
    error.identity = tensor
    return error


class ShapeOnlyTensor(Tensor):
    """The dtype and shape of a tensor, without elements; an operand where operators read only the shape.

    source: inside a trace, the tensor that it represents; of a handle, which has no buffer, the handle itself.
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
    def _identity(self) -> Any:
        return self if self.source is None or self.dtype.is_handle else self.source

    @property
    def _array(self) -> Any:
        return self.source if self.dtype.is_handle else ShapeOnlyArray(self)

    def _as_tensor(self) -> ShapeOnlyTensor:
        return self

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise withheld_error(self)

    numpy = tolist = __array__ = __bool__ = __int__ = __float__ = __complex__ = __index__ = __iter__ = _refuse
    __dlpack__ = __reduce__ = _refuse

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"<shape-only tensor, {self.spec.short()}>"

    __str__ = __repr__


class ShapeOnlyArray:
    """A shape-only tensor as a kernel receives it: an array's shape and dtype, no elements."""

    __slots__ = ("_tensor", "dtype", "shape")
    nbytes = 0
    __array_ufunc__ = None

    def __init__(self, tensor: ShapeOnlyTensor) -> None:
        self._tensor = tensor
        self.dtype = tensor.dtype.np
        self.shape: tuple[int, ...] = tuple(tensor.shape)  # type: ignore[arg-type]  # whole: eager

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements of the represented tensor."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise withheld_error(self._tensor)

    __iter__ = __getitem__ = __bool__ = __float__ = __int__ = __array__

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # protocols: NumPy asks for several
            raise AttributeError(name)
        raise withheld_error(self._tensor)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> object:
        answer = _BY_SHAPE.get(function)
        if answer is None or not args or args[0] is not self:
            raise withheld_error(self._tensor)
        return answer(self, *args[1:], **kwargs)

    def __repr__(self) -> str:
        return f"<shape-only array, {self.dtype} {list(self.shape)}>"


def _like(make: Callable[..., Any]) -> Callable[..., Any]:
    def create(x: ShapeOnlyArray, *args: Any, dtype: Any = None, shape: Any = None, **kwargs: Any) -> object:
        kwargs.pop("subok", None)
        return make(x.shape if shape is None else shape, *args, dtype=x.dtype if dtype is None else dtype, **kwargs)

    return create


# NumPy functions that read only a shape.
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


def shape_only_of(x: Any) -> ShapeOnlyTensor:
    """Return a new shape-only tensor of an eager tensor."""
    dtype, array = x._dtype, x._array
    return ShapeOnlyTensor(dtype, array.shape, array if dtype.is_handle else None)


def tensor_identity(x: Any) -> Any:
    """Return the identity of a tensor or variable, whose `id` is its key in tapes: itself, or a shape-only tensor."""
    identity = x._identity
    if identity is not None:
        return identity
    with _LINKING:
        identity = x._identity
        if identity is None:
            identity = x._identity = shape_only_of(x)
    return identity


def identity_key(x: Any) -> int:
    """Return the key of a tensor in tapes and gradients; 0 for one that no tape has recorded."""
    identity = x._identity
    return 0 if identity is None else id(identity)


def shape_only_in_trace(x: Any) -> object:
    """Return a symbolic tensor as a shape-only tensor; variables and handles stay as they are.

    For rules run in a trace: what an input declared `no_need_buffer` has there.
    """
    if type(x) in (tuple, list):
        return type(x)(map(shape_only_in_trace, x))
    if x is None or not isinstance(x, Tensor) or x.dtype.is_handle or x._identity is not x:
        return x
    return ShapeOnlyTensor(x.dtype, x.shape, x)
