"""Tensors as scopes hold them: on any place, to be filled and refilled.

Lives here: `DeviceTensor`, `HeldTensor`, moving arrays between places.
Not here: variables (variable.py), copies of a device (devices/).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dtypes import DType, of_numpy
from ..core.errors import InvalidArgumentError
from ..core.places import CPUPlace, Place, place_of
from ..core.shapes import TensorShape, of_known
from ..core.specs import TensorSpec
from ..devices import DeviceContextPool
from ..eager.tensor import EagerTensor, make
from ..eager.variable import Variable
from ..ops.lod_tensor import LoDTensor
from ..ops.operands import on_devices
from ..ops.tensor import Tensor

CPU = CPUPlace()


def context_of(place: Place) -> Any:
    """The device context of a place. Raises as `DeviceContextPool.get`."""
    return DeviceContextPool.instance().get(place)


def moved(array: Any, found: Place, wanted: Place) -> Any:
    """The array at another place. Between devices it goes through the host; a host copy waits for the device."""
    if found == wanted:
        return array
    host = array if found.kind == "cpu" else context_of(found).to_host(array)
    return host if wanted.kind == "cpu" else context_of(wanted).to_device(np.asarray(host))


class DeviceTensor(Tensor):
    """A tensor whose array lives on a device. `numpy()` and eager operators, which are the CPU's, take a copy of it."""

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
        """The value on the host: waits for the device."""
        return moved(self._array, self.place, CPU)

    def numpy(self) -> Any:
        """A copy on the host: waits for the device."""
        value = np.array(self.constant)
        return value[()] if value.ndim == 0 else value

    def tolist(self) -> Any:
        """The value as nested lists: waits for the device."""
        return self.constant.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._as_tensor().__array__(dtype, copy)

    def _as_tensor(self) -> EagerTensor:
        return EagerTensor(self.constant, self._dtype)

    def __repr__(self) -> str:
        return f"<DeviceTensor: shape={self.shape}, dtype={self._dtype.name}, place={self.place!r}>"


def tensor_of(array: Any, dtype: DType, place: Place) -> Any:
    """An array at a place as a tensor."""
    return EagerTensor(array, dtype) if place.kind == "cpu" else DeviceTensor(array, dtype, place)


def place_of_tensor(tensor: Any) -> Place:
    """Where a tensor's array lives."""
    return tensor.place if isinstance(tensor, DeviceTensor) else CPU


def owner_of(array: Any, near: Place) -> Place | None:
    """The place of an array that is none of NumPy's: that of the device, first the one at hand, that owns it."""
    if isinstance(array, (np.ndarray, np.generic)):
        return CPU
    for context in (context_of(near), *DeviceContextPool.instance()):
        if context.place.kind != "cpu" and context.owns(array):
            return context.place
    return None


class HeldTensor(LoDTensor):
    """The dense tensor of a variable: on any place, with or without a LoD, filled by `set`.

    It is a LoDTensor, and may be used where one may. layout: "any", "NCHW" or "NHWC".

    >>> x = ow.global_scope().var("x").get_tensor()
    >>> x.set([[1.0], [2.0]], ow.CPUPlace())
    >>> x.set_lod([[0, 1, 2]])
    """

    __slots__ = ()

    @property
    def place(self) -> Place:
        """Where the rows live. Raises FailedPreconditionError before they are set."""
        return place_of_tensor(self.values)

    def set(self, values: Any, place: Any = None) -> None:
        """Give it other rows; a LoD that does not fit them is dropped, since it was that of the rows before.

        values: an array of the host or of a device, a tensor, a number, a nesting. Copied, unless it is a tensor.
        place: where they shall live; by default where they are, and the CPU for what is nowhere yet.
        raises InvalidArgumentError for text that is to live on a device, and as `DeviceContextPool.get`
        """
        wanted = None if place is None else place_of(place)
        if isinstance(values, Variable):
            values = values.value()
        elif isinstance(values, LoDTensor):
            values = values.values
        if not isinstance(values, (EagerTensor, DeviceTensor)):
            owner = owner_of(values, wanted or CPU) if hasattr(values, "dtype") and hasattr(values, "shape") else CPU
            if owner is None or owner.kind == "cpu" or isinstance(values, Tensor):
                values = make(values)
            else:
                values = DeviceTensor(values, of_numpy(np.dtype(values.dtype)), owner)
        found = place_of_tensor(values)
        if wanted is not None and wanted != found:
            if not on_devices(values.dtype):
                raise InvalidArgumentError(
                    op="HeldTensor.set",
                    what="devices have no such tensors",
                    wanted="numbers",
                    found=values.dtype.name,
                    do="keep it on the CPU",
                )
            values = tensor_of(moved(values._array, found, wanted), values.dtype, wanted)
        levels = self.levels
        self._values, self.levels = values, ()
        if levels:
            self.levels = levels
            if not self.has_valid_recursive_sequence_lengths():
                self.levels = ()

    def take(self, values: Any, levels: Any = (), layout: str = "any") -> HeldTensor:
        """Hold a tensor as it is; nothing is checked or copied."""
        self._values, self.levels, self.layout = values, tuple(levels), layout
        return self

    def __repr__(self) -> str:
        text = super().__repr__()
        return text if self.layout == "any" else f"{text[:-1]}, layout={self.layout}>"

    __str__ = __repr__
