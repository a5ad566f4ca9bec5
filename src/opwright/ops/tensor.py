"""Tensors: the operands and results of operators under every interpreter, and their shape-only forms.

Lives here: `TensorLike` (all objects with Python's operators), `Tensor` (the base of eager and symbolic tensors),
`is_tensor` and `get_static_value`; `ShapeOnlyTensor`, `ShapeOnlyArray` (dtype and shape of a tensor whose elements are
not needed), the error for reading either, and `tensor_identity`, by which tapes refer to tensors.
Not here: storage (eager/), recording (tracing/), the operators (the families), the dependencies of gradients
(gradient_makers.py). overloads.py installs Python's operators from the families, so that this module does not import
them.

Tapes follow tensors by identity. The identity of an eager tensor is its shape-only tensor, created when a tape first
records it: a record that holds it recognizes the tensor and reads its shape, while the buffer may be freed. Variables
and symbolic tensors have no buffer to free and are their own identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from ..core import forks
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape, of_known
from ..core.specs import TensorSpec, install_tensor_class
from .indexed_slices import IndexedSlices

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class TensorLike:
    """Base class of operands with Python's operators: tensors and variables."""

    __slots__ = ()
    __array_priority__ = 100  # NumPy arrays leave `array + tensor` to the tensor; `np.sin(tensor)` is theirs

    @property
    def _identity(self) -> TensorLike:
        """Its identity for tapes (tensor.py)."""
        return self

    if TYPE_CHECKING:  # each kind implements these its own way; overloads.py installs Python's operators

        @property
        def dtype(self) -> DType: ...
        @property
        def shape(self) -> TensorShape: ...
        @property
        def spec(self) -> TensorSpec: ...
        @property
        def constant(self) -> np.ndarray | None: ...
        @property
        def name(self) -> str: ...
        @property
        def device(self) -> str: ...
        def __bytes__(self) -> bytes: ...
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __dlpack_device__(self) -> tuple[int, int]: ...
        def numpy(self) -> Any: ...
        def set_shape(self, shape: Any) -> None: ...
        def ref(self) -> TensorReference: ...
        def get_shape(self) -> TensorShape: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __getitem__(self, key: Any) -> Tensor: ...
        def __add__(self, other: TensorValue) -> Tensor: ...
        def __radd__(self, other: TensorValue) -> Tensor: ...
        def __sub__(self, other: TensorValue) -> Tensor: ...
        def __rsub__(self, other: TensorValue) -> Tensor: ...
        def __mul__(self, other: TensorValue) -> Tensor: ...
        def __rmul__(self, other: TensorValue) -> Tensor: ...
        def __truediv__(self, other: TensorValue) -> Tensor: ...
        def __rtruediv__(self, other: TensorValue) -> Tensor: ...
        def __floordiv__(self, other: TensorValue) -> Tensor: ...
        def __rfloordiv__(self, other: TensorValue) -> Tensor: ...
        def __mod__(self, other: TensorValue) -> Tensor: ...
        def __rmod__(self, other: TensorValue) -> Tensor: ...
        def __pow__(self, other: TensorValue) -> Tensor: ...
        def __rpow__(self, other: TensorValue) -> Tensor: ...
        def __matmul__(self, other: TensorValue) -> Tensor: ...
        def __rmatmul__(self, other: TensorValue) -> Tensor: ...
        def __and__(self, other: TensorValue) -> Tensor: ...
        def __rand__(self, other: TensorValue) -> Tensor: ...
        def __or__(self, other: TensorValue) -> Tensor: ...
        def __ror__(self, other: TensorValue) -> Tensor: ...
        def __xor__(self, other: TensorValue) -> Tensor: ...
        def __rxor__(self, other: TensorValue) -> Tensor: ...
        def __lt__(self, other: TensorValue) -> Tensor: ...
        def __le__(self, other: TensorValue) -> Tensor: ...
        def __gt__(self, other: TensorValue) -> Tensor: ...
        def __ge__(self, other: TensorValue) -> Tensor: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]  # element-wise, unlike object's
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...


class Tensor(TensorLike):
    """A value with a dtype and a shape: computed already (eager) or to be computed (inside `function`)."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """Element type."""
        raise AttributeError("dtype")

    @property
    def shape(self) -> TensorShape:
        """Shape, perhaps partly unknown while tracing."""
        raise AttributeError("shape")

    @property
    def spec(self) -> TensorSpec:
        """dtype and shape."""
        return TensorSpec(self.shape, self.dtype)

    @property
    def constant(self) -> np.ndarray | None:
        """The value as a read-only array where it is known without running, else None."""
        return None

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None if unknown."""
        return self.shape.rank

    @property
    def ndim(self) -> int | None:
        """Same as `rank`."""
        return self.shape.rank

    def get_shape(self) -> TensorShape:
        """Return `shape`."""
        return self.shape

    # A tensor is compared element by element (overloads.py), so it cannot be a dictionary key; `ref()` can.
    __hash__ = None  # type: ignore[assignment]

    def ref(self) -> TensorReference:
        """Return a hashable reference that compares by identity."""
        return TensorReference(self)


install_tensor_class(Tensor)

TensorValue: TypeAlias = "TensorLike | IndexedSlices | npt.ArrayLike"
"""Operands: tensors, variables, sparse rows, and everything that NumPy converts to an array."""


class Overriding(Tensor):
    """A tensor that overrides calls of operators on it: of a Keras model under construction, or a LoDTensor.

    Such a call is neither run nor recorded; `record` returns its result.
    """

    __slots__ = ()

    def _as_tensor(self) -> Overriding:
        return self

    def record(self, op: Any, inputs: Any, bound: Any, name: str | None) -> Any:
        """Return the result of the call of an operator. inputs: one entry per declared input, as tensors."""
        raise TypeError(f"{op.name} cannot be called on {self!r}")


def overriding(inputs: Any) -> Overriding | None:
    """Return the first tensor among the inputs of a call that overrides it, or None."""
    for x in inputs:
        for y in x if type(x) is tuple else (x,):
            if isinstance(y, Overriding):
                return y
    return None


class TensorReference:
    """A hashable reference to a tensor or variable; equal for the same object."""

    __slots__ = ("__weakref__", "_target")

    def __init__(self, target: TensorLike) -> None:
        self._target = target

    def __lt__(self, other: Any) -> bool:
        """Return an arbitrary order, so that keys of a dict can be sorted."""
        return id(self._target) < id(other._target) if isinstance(other, TensorReference) else NotImplemented

    def deref(self) -> TensorLike:
        """Return the tensor."""
        return self._target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorReference) and self._target is other._target

    def __hash__(self) -> int:
        return id(self._target) >> 4

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._target!r}>"


def is_tensor(x: Any) -> bool:
    """Return whether x is a tensor: eager or symbolic, a variable, ragged or sparse. Arrays and numbers are not.

    >>> ow.is_tensor(ow.constant(1.0)), ow.is_tensor(1.0)
    (True, False)
    """
    return isinstance(x, (TensorLike, IndexedSlices)) or getattr(type(x), "is_tensor_like", False) is True


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the value of a tensor as an array if it is known without running the program, else None.

    None for variables and for values computed inside `function`; other objects are returned as they are.
    partial: accepted for TensorFlow's signature; a partially known value is None.

    >>> ow.get_static_value(ow.constant([1, 2]))
    array([1, 2], dtype=int32)
    """
    if not isinstance(tensor, TensorLike):
        return tensor
    value = tensor.constant
    return value if value is None or value.ndim else value[()]


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
        self.dtype = dtype  # pyright: ignore[reportIncompatibleMethodOverride]
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
    def _identity(self) -> TensorLike:
        identity: TensorLike = self if self.source is None or self.dtype.is_handle else self.source
        return identity

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


_new = object.__new__


def shape_only_of(x: Any) -> ShapeOnlyTensor:
    """Return a new shape-only tensor of an eager tensor, in half the time of the class."""
    tensor = _new(ShapeOnlyTensor)
    tensor.dtype = dtype = x._dtype
    array = x._array
    tensor._shape = array.shape
    tensor.source = array if dtype.is_handle else None
    return tensor


def tensor_identity(x: Any) -> TensorLike:
    """Return the identity of a tensor or variable, whose `id` is its key in tapes: itself, or a shape-only tensor."""
    identity: TensorLike | None = x._identity
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


_conversions: list[tuple[int, type[Any] | tuple[type[Any], ...], Any]] = []


def register_tensor_conversion_function(base_type: Any, conversion_func: Any, priority: int = 100) -> None:
    """Convert values of a class to tensors by a function, wherever a tensor is wanted.

    base_type: a class, or several. conversion_func(value, dtype=None, name=None, as_ref=False) returns a tensor, or
    NotImplemented for the next function. priority: lower ones are asked first. A method `__tf_tensor__` of the value
    has precedence.
    raises TypeError for arguments of other kinds, and for classes that are converted in any case
    """
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if any(not isinstance(t, type) for t in types):
        raise TypeError("Argument `base_type` must be a type or a tuple of types.")
    if any(issubclass(t, (int, float, list, tuple, str, bytes, np.ndarray, np.generic)) for t in types):
        raise TypeError(
            f"Cannot register conversions for Python numeric types and NumPy scalars and arrays. Got {base_type}"
        )
    if not callable(conversion_func):
        raise TypeError("Argument `conversion_func` must be callable.")
    _conversions.append((priority, types, conversion_func))
    _conversions.sort(key=lambda row: row[0])  # stable: earlier ones come first


def conversion_of(value: Any) -> Any:
    """Return the function of dtype and name by which a value converts itself to a tensor, None without one."""
    own = getattr(value, "__tf_tensor__", None)
    if own is not None or not _conversions:
        return own
    functions = [function for _, types, function in _conversions if isinstance(value, types)]
    if not functions:
        return None

    def convert(dtype: Any, name: str | None) -> Any:
        for function in functions:
            result = function(value, dtype=dtype, name=name, as_ref=False)
            if result is not NotImplemented:
                return result
        raise TypeError(f"No conversion function of {type(value).__name__} takes {value!r} as {dtype}")

    return convert
