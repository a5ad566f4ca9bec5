"""EagerTensor: a tensor with a value, in an immutable NumPy array.

Lives here: the type, its text form, the protocols of NumPy and DLPack, and its construction by `to_array`/`constant`.
Not here: execution of operators (execute.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, as_dtype, of_numpy
from ..core.errors import InvalidArgumentError, ResourceExhaustedError
from ..core.notebook_reprs import shown_as
from ..core.shapes import TensorShape, of_known
from ..core.specs import TensorSpec
from ..ops import (
    array,
    dispatch,
    overloads,  # noqa: F401  defines Python's operators on tensors
)
from ..ops.arguments import natural_dtype, widens
from ..ops.indexed_slices import IndexedSlices
from ..ops.tensor import Tensor, TensorLike, conversion_of


class EagerTensor(Tensor):
    """A computed tensor. Immutable: `numpy()` returns a copy, `__array__` a read-only view.

    Strings are arrays of Python `bytes`.
    """

    # _identity: its identity for tapes, created on demand; assign: only for slices of variables
    __slots__ = ("__weakref__", "_array", "_dtype", "_identity", "assign")

    def __init__(self, array: Any, dtype: DType) -> None:
        self._array = array if type(array) is np.ndarray else _as_array(array, dtype)
        self._dtype = dtype
        self._identity: Any = None

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """Shape, fully known."""
        return of_known(self._array.shape)

    @property
    def spec(self) -> TensorSpec:
        """dtype and shape."""
        return TensorSpec(of_known(self._array.shape), self._dtype)

    @property
    def constant(self) -> np.ndarray:
        """The value, not to be modified."""
        array: np.ndarray = self._array
        return array

    @property
    def device(self) -> str:
        """The device of the value."""
        return "/job:localhost/replica:0/task:0/device:CPU:0"

    def numpy(self) -> np.ndarray:
        """Return the value as a copied NumPy array, or as a NumPy scalar for shape ()."""
        if type(self._array) is not np.ndarray:
            raise self._no_array()
        return self._array[()] if self._array.ndim == 0 else self._array.copy()

    def tolist(self) -> Any:
        """Return the value as nested Python lists, or as a Python number for shape ()."""
        return self._array.tolist()

    def _no_array(self) -> InvalidArgumentError:
        return InvalidArgumentError(what=f"Cannot convert a Tensor of dtype {self._dtype.name} to a NumPy array.")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if type(self._array) is not np.ndarray:
            raise self._no_array()
        if dtype is not None and np.dtype(dtype) != self._array.dtype:
            if copy is False:
                raise ValueError(f"a {self._dtype.name} tensor as {np.dtype(dtype)} needs a copy")
            return self._array.astype(dtype)
        if copy:
            return self._array.copy()
        view = self._array.view()
        view.flags.writeable = False
        return view

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> object:
        return self._array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        result: tuple[int, int] = self._array.__dlpack_device__()
        return result

    def _scalar(self, what: str) -> np.ndarray:
        if self._array.size != 1 or (self._array.ndim > 0 and what != "a truth value"):
            raise TypeError(f"only a tensor with one element has {what}; this one has shape {self.shape}")
        array: np.ndarray = self._array.reshape(())[()]
        return array

    def __bool__(self) -> bool:
        if self._array.size > 1:
            raise ValueError(
                f"The truth value of a tensor with {self._array.size} elements (shape {self.shape}) is ambiguous; "
                "use ow.reduce_any or ow.reduce_all"
            )
        return bool(self._array.size and self._array.reshape(())[()])

    def __int__(self) -> int:
        return int(self._scalar("an integer value"))

    def __float__(self) -> float:
        array = self._array
        if type(array) is np.ndarray and not array.ndim:
            return float(array[()])
        return float(self._scalar("a float value"))

    def __complex__(self) -> complex:
        return complex(self._scalar("a complex value"))

    def __index__(self) -> int:
        if not self._dtype.is_integer:
            raise TypeError(f"only an integer tensor can be an index; this one is {self._dtype.name}")
        return int(self._scalar("an index value"))

    def __bytes__(self) -> bytes:
        if self._dtype.np.kind not in "biufcV" or type(self._array) is not np.ndarray:
            raise TypeError(f"a {self._dtype.name} tensor has no bytes of its own")
        return self._array.tobytes()

    def __buffer__(self, flags: int) -> memoryview:
        """Return a read-only view of the elements for `memoryview` (Python 3.12 and later)."""
        return self.__array__().data

    def set_shape(self, shape: Any) -> None:
        """Check that `shape` is compatible; the shape of a value is known. Raises ValueError if it is not."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {TensorShape(shape)}.")

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self._array)

    def __iter__(self) -> Iterator[Tensor]:
        if self._array.ndim == 0:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[i] for i in range(len(self._array)))

    def __getitem__(self, key: Any) -> Tensor:
        state = dispatch.state
        if not state.tapes and state.trace is None:
            kind = type(key)
            if kind in _BASIC or (kind is tuple and all(type(k) in _BASIC for k in key)):
                try:  # NumPy's basic indexing is equivalent, at a tenth of the cost
                    return EagerTensor(self._array[key], self._dtype)
                except (IndexError, TypeError, ValueError):
                    pass  # the operator reports the error
        part: Tensor = array.getitem(self, key)
        return part

    def __format__(self, spec: str) -> str:
        return format(self._array[()] if self._array.ndim == 0 else self._array, spec)

    def __copy__(self) -> EagerTensor:
        return self

    def __deepcopy__(self, memo: Any) -> EagerTensor:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return EagerTensor, (self._array, self._dtype)

    def __str__(self) -> str:
        if self._dtype.is_handle:
            return f"tf.Tensor({self._array!r}, shape={self.shape}, dtype={self._dtype.name})"
        return f"tf.Tensor({_numpy_text(self._array, str)}, shape={self.shape}, dtype={self._dtype.name})"

    _repr_html_ = shown_as("tensor")

    def __repr__(self) -> str:
        if self._dtype.is_handle:
            return f"<tf.Tensor: shape={self.shape}, dtype={self._dtype.name}, value={self._array!r}>"
        return f"<tf.Tensor: shape={self.shape}, dtype={self._dtype.name}, numpy={_numpy_text(self._array, repr)}>"


_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})
_new = object.__new__


def tensor_of(array: Any, dtype: DType) -> EagerTensor:
    """Return `EagerTensor(array, dtype)` in half its time: for results of kernels."""
    tensor = _new(EagerTensor)
    tensor._array = array if type(array) is np.ndarray else _as_array(array, dtype)
    tensor._dtype = dtype
    tensor._identity = None
    return tensor


def _numpy_text(array: np.ndarray, show: Any) -> str:
    if array.ndim == 0:
        value = array[()]
        return repr(array.tolist()) if show is repr or isinstance(value, bytes) else str(value)
    text = show(array)
    result: str = "\n" + text if "\n" in text else text
    return result


def _as_array(value: Any, dtype: DType) -> np.ndarray:
    """Return a kernel's scalar result as an array of shape ()."""
    if dtype.is_handle:
        result: np.ndarray = value  # the object itself, which has a `shape` of ()
        return result
    return np.asarray(value, dtype.np)


def is_frozen(value: Any, dtype: DType | None) -> bool:
    """Return whether a constant may share an array's memory, since it is read-only with all that it is a view on.

    dtype: of the constant; None for the array's own
    """
    if type(value) is not np.ndarray or value.dtype.kind in "OUSMmT" or not value.flags.aligned:
        return False
    if not value.dtype.isnative or (dtype is not None and value.dtype != dtype.np):
        return False
    while isinstance(value, np.ndarray):
        if value.flags.writeable:
            return False
        value = value.base
    return value is None or isinstance(value, bytes) or memoryview(value).readonly


def to_array(value: Any, dtype: DType | None) -> tuple[np.ndarray, DType]:
    """Return a new array of `value`, and its dtype.

    NumPy arrays and scalars, and tensors in lists, are cast to `dtype` by NumPy's rules; Python numbers only if their
    kind permits it: an int is converted to a float, a float never to an int.

    raises TypeError if `dtype` cannot represent the kind of the value, ValueError for ragged nesting
    """
    kind = type(value)
    if dtype is not None and (kind is float or kind is int):  # the common case: a number as the operand of a tensor
        if (kind is int and (dtype.is_integer or dtype.is_floating)) or dtype.is_floating:
            try:
                return np.array(value, dtype.np), dtype
            except OverflowError:
                raise TypeError(
                    f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}: out of range"
                ) from None
        if not dtype.is_complex:
            raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}")
    if kind is list and (dtype is None or dtype is dtypes.int32) and _are_short_ints(value):
        return np.array(value, np.int32), dtypes.int32
    if dtype is not None:
        if isinstance(value, (np.ndarray, np.generic)) and _casts(value, dtype):
            return _cast(value, dtype), dtype
        if isinstance(value, (list, tuple)):
            value = _tensors_cast(value, dtype)
    if value is None:
        raise ValueError("Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor.")
    if isinstance(value, IndexedSlices):
        value = value.to_dense()
    if isinstance(value, (list, tuple)) and value:
        if dtype is None:
            dtype = _dtype_inside(value)
        value = _without_tensors(value)
    if isinstance(value, TensorLike):
        value = value.numpy()
    try:
        natural = natural_dtype(value)
    except TypeError as error:
        raise TypeError(f"Attempt to convert a value of type {type(value).__name__} to a Tensor: {error}") from None
    if dtype is None:
        dtype = natural
    elif not widens(natural, dtype) and not (isinstance(value, (list, tuple, np.ndarray)) and np.size(value) == 0):
        description = repr(value) if len(repr(value)) < 60 else type(value).__name__
        raise TypeError(f"Cannot convert {description} of dtype {natural.name} to EagerTensor of dtype {dtype.name}")
    if dtype is dtypes.string:
        return _string_array(value), dtype
    try:
        array = np.array(value, dtype.np)
    except ValueError:
        raise ValueError(f"Can't convert non-rectangular Python sequence to Tensor: {_shown(value)}") from None
    except OverflowError as error:
        raise TypeError(f"Cannot convert {_shown(value)} to EagerTensor of dtype {dtype.name}: {error}") from None
    return array, dtype


_INTS = {int}


def _are_short_ints(values: list[Any]) -> bool:
    """Return whether a list has nothing but ints, of 32 bits: sizes, axes, indices."""
    return {*map(type, values)} == _INTS and min(values) >= -(1 << 31) and max(values) < 1 << 31


def _casts(array: Any, dtype: DType) -> bool:
    """Return whether both an array's dtype and `dtype` are numeric or bool."""
    return array.dtype.kind not in "OSUMmT" and not dtype.is_handle and dtype is not dtypes.string


def _cast(array: Any, dtype: DType) -> np.ndarray:
    """Cast a copy: fractions are truncated, integers wrap, imaginary parts are discarded, without a warning."""
    if array.dtype is dtype.np:
        return np.array(array)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.array(array, dtype.np)


def _tensors_cast(value: Any, dtype: DType) -> object:
    """Convert the tensors of another dtype in a nesting to arrays of `dtype`."""
    if isinstance(value, (list, tuple)):
        return [_tensors_cast(v, dtype) for v in value]
    if isinstance(value, TensorLike) and value.dtype is not dtype:
        array = np.asarray(value.numpy())
        return _cast(array, dtype) if _casts(array, dtype) else value
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def _without_tensors(value: Any) -> object:
    """Convert the tensors in a nesting to arrays."""
    if isinstance(value, TensorLike):
        array = np.asarray(value.numpy(), object if value.dtype is dtypes.string else None)
        return array.tolist() if value.dtype is dtypes.string else array
    if isinstance(value, (list, tuple)):
        return [_without_tensors(v) for v in value]
    return value


def _string_array(value: Any) -> np.ndarray:
    array = np.array(value, dtype=object)
    flat = array.reshape(-1)
    result = np.empty(flat.shape, object)
    for i, item in enumerate(flat):
        if isinstance(item, str):
            item = item.encode()
        elif isinstance(item, (np.bytes_, bytearray)):
            item = bytes(item)
        if type(item) is not bytes:
            raise TypeError(f"Cannot convert {item!r} to EagerTensor of dtype string")
        result[i] = item
    return result.reshape(array.shape)


_numbers: dict[Any, EagerTensor] = {}  # at most 256; tensors are immutable, so they can be shared


def number(value: float, dtype: DType) -> EagerTensor:
    """Return a Python number as a scalar of a floating dtype. Frequent ones are cached: 1.0 - x, 0.5 * x.

    raises TypeError for integers that the dtype cannot represent
    """
    key = (value, type(value), dtype)
    tensor = _numbers.get(key)
    if tensor is None:
        tensor = EagerTensor(*to_array(value, dtype))
        if value and value == value and len(_numbers) < 256:  # 0.0 and -0.0 are equal keys; a NaN equals no key
            _numbers[key] = tensor
    return tensor


def make(value: Any, dtype: DType | None = None, name: str | None = None) -> Tensor:
    """Convert `value` to an eager tensor; a tensor of any dtype is returned unchanged."""
    if type(value) is EagerTensor:
        return value
    if isinstance(value, TensorLike):
        convert = getattr(value, "_as_tensor", None)
        if convert is None:
            raise TypeError(f"{value!r} is not a tensor that has a value here")
        tensor: Tensor = convert()
        return tensor
    convert = conversion_of(value)
    if convert is not None:
        return make(convert(dtype, name))
    if isinstance(value, IndexedSlices):
        return value.to_dense()
    if dispatch.state.tapes and isinstance(value, (list, tuple)):  # gradients flow into the tensors of a nesting
        inner = _dtype_inside(value)
        if inner is not None:
            return array.stack([make(v, dtype or inner) for v in value])
    try:
        return EagerTensor(*to_array(value, dtype))
    except MemoryError as error:
        raise ResourceExhaustedError(what="no memory for a tensor", found=str(error)) from None


def _dtype_inside(value: Any) -> DType | None:
    """Return the dtype of the first tensor in a nesting; None without one."""
    for item in value:
        if isinstance(item, TensorLike):
            return item.dtype
        if isinstance(item, (list, tuple)):
            dtype = _dtype_inside(item)
            if dtype is not None:
                return dtype
    return None


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """Create a tensor from a Python value, a nesting of them, or an array, which is copied.

    dtype: by default the dtype of the value (float -> float32, int -> int32, an array's own). shape: the values are
    reshaped to it, or a single value is repeated.
    raises TypeError for values of another kind than `dtype`, ValueError for ragged nesting or a shape that does not
    match
    """
    requested = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor) and not isinstance(value, EagerTensor):
        raise TypeError(f"constant() requires a value; {value!r} has none while tracing. Use the tensor itself")
    if isinstance(value, Tensor) and requested is not None and value.dtype is not requested:
        raise TypeError(f"Expected a tensor of dtype {requested.name}, found {value.spec.short()}: see ow.cast")
    array_, value_dtype = to_array(value, requested)
    if shape is not None:
        dims: Any = tuple(TensorShape(shape).as_list())
        if array_.size == 1:
            array_ = np.full(dims, array_.reshape(())[()], array_.dtype)
        elif array_.size != np.prod(dims):
            raise TypeError(
                f"Eager execution of tf.constant with unsupported shape. Tensor {list(array_.shape)} "
                f"(converted from {_shown(value)}) has {array_.size} elements, but got `shape` {dims} "
                f"with {int(np.prod(dims))} elements)"
            )
        else:
            array_ = array_.reshape(dims)
    if dispatch.state.trace is not None:
        array_.setflags(write=False)
        return array.Const(value=array_, name=name)
    return EagerTensor(array_, value_dtype)


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Tensor:
    """Convert `value` to a tensor: tensors are returned unchanged, variables read, all other values converted by
    `constant`.

    dtype: required; an error if it is impossible. dtype_hint: used if possible.
    raises ValueError for a tensor of another dtype, TypeError for values of another kind
    """
    requested = None if dtype is None else as_dtype(dtype)
    if requested is None and dtype_hint is not None and not isinstance(value, TensorLike):
        try:
            return dispatch.to_tensor(value, as_dtype(dtype_hint), name)
        except (TypeError, ValueError):
            pass
    tensor = dispatch.to_tensor(value, requested, name)
    if requested is not None and tensor.dtype is not requested:
        raise ValueError(
            f"Tensor conversion requested dtype {requested.name} for Tensor with dtype {tensor.dtype.name}: {value!r}"
        )
    return tensor


def from_dlpack(value: Any) -> EagerTensor:
    """Create a tensor from any object with the DLPack protocol, without a copy if its memory is on the host.

    raises InvalidArgumentError for unsupported dtypes or devices
    """
    try:
        array = np.from_dlpack(value)
        return EagerTensor(array, of_numpy(array.dtype))
    except (AttributeError, BufferError, TypeError, RuntimeError) as error:
        raise InvalidArgumentError(
            what=f"cannot take the DLPack tensor: {error}",
            found=type(value).__name__,
            wanted="a contiguous tensor in host memory with a supported dtype",
        ) from error
