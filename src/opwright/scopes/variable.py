"""`ScopeVariable`: a named variable of a scope, and the tensors that it contains.

Lives here: the four kinds of contents, reading and setting them; `DeviceTensor`, `ScopeTensor`, moving arrays between
places. Not here: scopes (scope.py), a device's copies (devices/). `ow.Variable`, the trainable kind, is one of the
objects that it may hold.

Reserved names of variables:

    @EMPTY@     no variable: an absent input, an unused output
    @TEMP@      a temporary of the operator; becomes `<type>@<unique number>` when the instance is created
    v@GRAD      the gradient of v
    v@ZERO      zeros in place of a missing gradient
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, of_numpy
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..core.places import CPUPlace, Place, place_of
from ..core.shapes import SCALAR, TensorShape, of_known
from ..core.specs import TensorSpec
from ..devices import DeviceContextPool
from ..eager.tensor import EagerTensor, make
from ..eager.variable import Variable
from ..ops.indexed_slices import IndexedSlices
from ..ops.kernel_operands import on_devices
from ..ops.lod_tensor import LoDTensor
from ..ops.tensor import Tensor, TensorLike
from ..ops.tensor_list import TensorList

if TYPE_CHECKING:
    from ..core.dtypes import DType
    from ..core.shapes import TensorShape
    from ..devices.context import DeviceContext

CPU = CPUPlace()


def context_of(place: Place) -> DeviceContext:
    """Return the device context of a place. Raises as `DeviceContextPool.get`."""
    return DeviceContextPool.instance().get(place)


def moved(array: Any, source: Place, destination: Place) -> Any:
    """Return the array at another place. Copies between devices go through the host, and wait for the device."""
    if source == destination:
        return array
    host = array if source.kind == "cpu" else context_of(source).to_host(array)
    return host if destination.kind == "cpu" else context_of(destination).to_device(np.asarray(host))


class DeviceTensor(Tensor):
    """A tensor whose array is on a device. `numpy()` and eager operators, which run on the CPU, copy it."""

    __slots__ = ("_array", "_dtype", "place")

    def __init__(self, array: Any, dtype: DType, place: Place) -> None:
        self._array, self._dtype, self.place = array, dtype, place

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """Shape, fully known."""
        return of_known(tuple(self._array.shape))

    @property
    def spec(self) -> TensorSpec:
        """dtype and shape."""
        return TensorSpec(self.shape, self._dtype)

    @property
    def constant(self) -> np.ndarray:
        """The value on the host; waits for the device."""
        value: np.ndarray = moved(self._array, self.place, CPU)
        return value

    def numpy(self) -> np.ndarray:
        """Return a copy on the host; waits for the device."""
        value = np.array(self.constant)
        return value[()] if value.ndim == 0 else value

    def tolist(self) -> Any:
        """Return the value as nested lists; waits for the device."""
        return self.constant.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._as_tensor().__array__(dtype, copy)

    def _as_tensor(self) -> EagerTensor:
        return EagerTensor(self.constant, self._dtype)

    def __repr__(self) -> str:
        return f"<DeviceTensor: shape={self.shape}, dtype={self._dtype.name}, place={self.place!r}>"


def tensor_of(array: Any, dtype: DType, place: Place) -> EagerTensor | DeviceTensor:
    """Return an array at a place as a tensor."""
    return EagerTensor(array, dtype) if place.kind == "cpu" else DeviceTensor(array, dtype, place)


def place_of_tensor(tensor: Any) -> Place:
    """Return the place of a tensor's array."""
    return tensor.place if isinstance(tensor, DeviceTensor) else CPU


def owner_of(array: Any, near: Place) -> Place | None:
    """Return the place that owns an array: the CPU for NumPy's, else the device's, looking at `near` first."""
    if isinstance(array, (np.ndarray, np.generic)):
        return CPU
    for context in (context_of(near), *DeviceContextPool.instance()):
        if context.place.kind != "cpu" and context.owns(array):
            result: Place | None = context.place
            return result
    return None


class ScopeTensor(LoDTensor):
    """The dense tensor of a variable: on any place, with or without a LoD, filled by `set`.

    It is a LoDTensor and can be used as one. layout: "any", "NCHW" or "NHWC".

    >>> x = ow.global_scope().var("x").get_tensor()
    >>> x.set([[1.0], [2.0]], ow.CPUPlace())
    >>> x.set_lod([[0, 1, 2]])
    """

    __slots__ = ()

    @property
    def place(self) -> Place:
        """The place of the rows. Raises FailedPreconditionError before they are set."""
        return place_of_tensor(self.values)

    def set(self, values: Any, place: Any = None) -> None:
        """Replace the rows; a LoD that does not fit the new rows is dropped.

        values: an array of the host or of a device, a tensor, a number, a nesting. Copied, unless it is a tensor.
        place: the destination; by default the place of the values, the CPU for Python numbers. raises
        InvalidArgumentError for text with a device as its destination, and as `DeviceContextPool.get`
        """
        destination = None if place is None else place_of(place)
        if isinstance(values, Variable):
            values = values.value()
        elif isinstance(values, LoDTensor):
            values = values.values
        if not isinstance(values, (EagerTensor, DeviceTensor)):
            owner = (
                owner_of(values, destination or CPU) if hasattr(values, "dtype") and hasattr(values, "shape") else CPU
            )
            if owner is None or owner.kind == "cpu" or isinstance(values, Tensor):
                values = make(values)
            else:
                values = DeviceTensor(values, of_numpy(np.dtype(values.dtype)), owner)
        source = place_of_tensor(values)
        if destination is not None and destination != source:
            if not on_devices(values.dtype):
                raise InvalidArgumentError(
                    op="ScopeTensor.set",
                    what="devices have no tensors of this dtype",
                    wanted="numbers",
                    found=values.dtype.name,
                    do="leave it on the CPU",
                )
            values = tensor_of(moved(values._array, source, destination), values.dtype, destination)
        levels = self.levels
        self._values, self.levels = values, ()
        if levels:
            self.levels = levels
            if not self.has_valid_recursive_sequence_lengths():
                self.levels = ()

    def take(self, values: Any, levels: Any = (), layout: str = "any") -> ScopeTensor:
        """Store a tensor without checks or copies."""
        self._values, self.levels, self.layout = values, tuple(levels), layout
        return self

    def __repr__(self) -> str:
        text = super().__repr__()
        return text if self.layout == "any" else f"{text[:-1]}, layout={self.layout}>"

    __str__ = __repr__


EMPTY = "@EMPTY@"
TEMP = "@TEMP@"
GRAD = "@GRAD"
ZERO = "@ZERO"

_numbers = itertools.count()  # next() is one bytecode: no two threads get the same


def unique(op: str) -> str:
    """Return a unique name for a temporary of an operator."""
    return f"{op}@{next(_numbers)}"


def grad_name(name: str) -> str:
    """Return the name of a variable's gradient."""
    return name + GRAD


KINDS = ("dense", "rows", "list", "object")


class ScopeVariable:
    """A variable of a scope: empty at first, then of one of these kinds

        dense    a tensor, with a LoD or none                   get_tensor()
        rows     rows of a larger tensor: IndexedSlices
        list     tensors in order; or a TensorList
        object   any other object: a `Variable`, a generator

    name: in its scope. kind: one of these words, None while it is empty.
    """

    __slots__ = ("__weakref__", "_contents", "kind", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind: str | None = None
        self._contents: Any = None

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value; a tensor counts once its rows are set."""
        return self.kind is not None and (self.kind != "dense" or self._contents.is_initialized)

    def get_tensor(self) -> ScopeTensor:
        """Return the tensor to read or fill; created empty if the variable has no value.

        raises InvalidArgumentError if the variable is of another kind: there is no implicit conversion
        """
        if self.kind is None:
            self.kind, self._contents = "dense", ScopeTensor()
        if self.kind != "dense":
            raise InvalidArgumentError(
                op="ScopeVariable.get_tensor",
                what=f"variable {self.name!r} holds no dense tensor",
                found=f"{self.kind}: {type(self._contents).__name__}",
                wanted="dense",
                do="var.value; .to_dense() converts rows",
            )
        result: ScopeTensor = self._contents
        return result

    @property
    def value(self) -> Any:
        """The value: a tensor (a LoDTensor if it has a LoD), IndexedSlices, a list, or the object.

        raises FailedPreconditionError if there is none
        """
        if not self.is_initialized:
            raise FailedPreconditionError(
                op="ScopeVariable.value",
                what=f"variable {self.name!r} is not initialized",
                found="nothing",
                wanted="a value",
                do="var.set(...)",
            )
        if self.kind != "dense":
            return list(self._contents) if self.kind == "list" and isinstance(self._contents, tuple) else self._contents
        tensor = self._contents.values
        plain = tensor if isinstance(tensor, EagerTensor) else tensor._as_tensor()
        return LoDTensor.of(plain, self._contents.levels) if self._contents.levels else plain

    def set(self, value: Any, place: Any = None) -> None:
        """Replace the value and its kind: arrays, tensors, numbers and nestings of numbers are dense, lists of tensors
        or arrays are lists, a `Variable` and any other object is an object.

        place: the place of a dense tensor.
        """
        if isinstance(value, ScopeVariable):
            self.share(value)
        elif isinstance(value, IndexedSlices):
            self.kind, self._contents = "rows", value
        elif isinstance(value, Variable):
            self.kind, self._contents = "object", value
        elif isinstance(value, EagerTensor) and value.dtype.is_handle:
            self.take(value._array)
        elif isinstance(value, TensorList):
            self.kind, self._contents = "list", value
        elif isinstance(value, (list, tuple)) and all(isinstance(v, (TensorLike, np.ndarray)) for v in value):
            self.kind, self._contents = "list", tuple(v if isinstance(v, Tensor) else _tensor_from(v) for v in value)
        elif value is not None and _is_numbers(value):
            tensor = ScopeTensor()  # converted first: an error leaves the variable unchanged
            tensor.set(value, place)
            if isinstance(value, LoDTensor):
                tensor.take(tensor._values, value.levels, value.layout)
            if self.kind == "dense":
                self._contents.take(tensor._values, tensor.levels, tensor.layout)
            else:
                self.kind, self._contents = "dense", tensor
        else:
            self.kind, self._contents = "object", value

    def take(self, value: Any, levels: Any = (), layout: str = "any") -> None:
        """Store a run's result without copying: a tensor of any place, rows, or the object of a handle."""
        if isinstance(value, LoDTensor):
            value, levels, layout = value._values, value.levels, value.layout
        if isinstance(value, IndexedSlices):
            self.kind, self._contents = "rows", value
        elif isinstance(value, TensorList):
            self.kind, self._contents = "list", value
        elif not isinstance(value, Tensor):
            self.kind, self._contents = "object", value
        elif self.kind == "dense":
            self._contents.take(value, levels, layout)
        else:
            self.kind, self._contents = "dense", ScopeTensor().take(value, levels, layout)

    def share(self, other: ScopeVariable) -> None:
        """Share the value of another variable; assigning to either one does not affect the other."""
        if other.kind == "dense":
            self.kind, contents = "dense", other._contents
            self._contents = ScopeTensor().take(contents._values, contents.levels, contents.layout)
        else:
            self.kind, self._contents = other.kind, other._contents

    def clear(self) -> None:
        """Remove the value."""
        self.kind, self._contents = None, None

    # ---- for kernel selection ---------------------------------------------------------------------------------------

    @property
    def spec(self) -> TensorSpec:
        """dtype and shape of a dense tensor, of the table that rows belong to, or of a handle. Raises like `value`."""
        if self.kind == "dense" and self.is_initialized:
            result: TensorSpec = self._contents.spec
            return result
        if self.kind == "rows":
            return TensorSpec(self._contents.shape, self._contents.dtype)
        contents = self._contents if self.kind else self.value
        return TensorSpec(SCALAR, dtypes.variant if isinstance(contents, (TensorList, tuple)) else dtypes.resource)

    @property
    def place(self) -> Place:
        """The place of a dense tensor; the CPU for all other kinds."""
        return self._contents.place if self.kind == "dense" and self.is_initialized else CPUPlace()

    @property
    def layout(self) -> str:
        """The layout of a dense tensor."""
        return self._contents.layout if self.kind == "dense" else "any"

    @property
    def dtype(self) -> DType:
        """Element type. Raises like `value`."""
        return self.spec.dtype

    @property
    def shape(self) -> TensorShape:
        """Shape; for rows, the table's. Raises like `value`."""
        return self.spec.shape

    def __repr__(self) -> str:
        if not self.is_initialized:
            return f"<ScopeVariable {self.name!r}: not initialized>"
        if self.kind != "dense":
            return f"<ScopeVariable {self.name!r}: {self.kind}, {type(self._contents).__name__}>"
        place = "" if self.place.kind == "cpu" else f" at {self.place}"
        return f"<ScopeVariable {self.name!r}: {self.spec.short()}{place}>"


def _tensor_from(array: np.ndarray) -> object:
    tensor = ScopeTensor()
    tensor.set(array)
    return tensor.values


def _is_numbers(value: Any) -> bool:
    """Return whether a value converts to a tensor: an array, a tensor, a number, text, or a nesting of these."""
    if isinstance(value, (bool, int, float, complex, str, bytes, TensorLike)):
        return True
    if isinstance(value, (list, tuple, range)):
        return all(map(_is_numbers, value))
    has_elements = hasattr(value, "__array__") or hasattr(
        value, "__array_ufunc__"
    )  # an array of the host or of a device
    return has_elements and hasattr(value, "dtype") and hasattr(value, "shape")
