"""Tensors of variables: on any place, filled and refilled.

Lives here: `DeviceTensor`, `ScopeTensor`, moving arrays between places. Not here: variables (variable.py), a device's
copies (devices/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType, of_numpy
from ..core.errors import InvalidArgumentError
from ..core.places import CPUPlace, Place, place_of
from ..core.shapes import TensorShape, of_known
from ..core.specs import TensorSpec
from ..devices import DeviceContextPool
from ..eager.tensor import EagerTensor, make
from ..eager.variable import Variable
from ..ops.kernel_operands import on_devices
from ..ops.lod_tensor import LoDTensor
from ..ops.tensor import Tensor

if TYPE_CHECKING:
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
    def constant(self) -> Any:
        """The value on the host; waits for the device."""
        return moved(self._array, self.place, CPU)

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
