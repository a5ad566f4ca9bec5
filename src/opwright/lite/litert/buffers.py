"""Tensor buffers: memory for inputs and outputs of the official run time.

Lives here: `TensorBuffer` and the validation of values.  Not here: the buffers of a signature (model.py).
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from ...compiler.native.executor import aligned
from ...core.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from ..ops import types
from ..runtime.tensor import Tensor
from .library import HANDLE, MOST_AXES, RankedTensorType, check, element_type, library

_BEHIND = 128  # bytes that its kernels may read past the last element


class TensorBuffer:
    """Memory for one tensor of a model: `array` is a NumPy view for reading and writing in place.

    Created by `CompiledModel.create_input_buffers` and its siblings, for the model's current shapes.
    """

    def __init__(self, tensor: Tensor, shape: tuple[int, ...], what: str, over: TensorBuffer | None = None) -> None:
        """Initialize. what: a description of the tensor. over: a buffer of the same tensor whose memory to share.

        raises UnimplementedError for types and shapes that the run time's buffers do not support,
        ResourceExhaustedError without memory
        """
        kind = element_type(tensor.dtype)
        if kind is None:
            name = types.name_of(tensor.dtype)
            raise UnimplementedError(
                op="lite.litert",
                what=f"{what} is of type {name}: the official run time has no buffers for it",
                do="lite.Interpreter runs the model",
            )
        if 0 in shape or len(shape) > MOST_AXES:
            raise UnimplementedError(
                op="lite.litert",
                what=f"{what} has a shape that the official run time has no buffers for",
                found=list(shape),
                wanted=f"at most {MOST_AXES} axes, of at least one element",
            )
        self._what = what
        dtype = np.dtype(tensor.dtype.np)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._memory: np.ndarray = aligned(size + _BEHIND) if over is None else over._memory
        self.array: np.ndarray = self._memory[:size].view(dtype).reshape(shape)
        described = RankedTensorType(kind)
        described.layout.shape = shape
        handle = HANDLE()
        address = self._memory.__array_interface__["data"][0]
        check(
            library().CreateTensorBufferFromHostMemory(
                ctypes.byref(described), address, size, None, ctypes.byref(handle)
            ),
            f"a buffer for {what}",
        )
        self._handle: int | None = handle.value
        self._finalizer = weakref.finalize(self, library().DestroyTensorBuffer, handle.value)
        self._finalizer.atexit = False  # a daemon thread may be running a model on it

    @property
    def handle(self) -> int:
        """The run time's handle. Raises FailedPreconditionError after destroy."""
        if self._handle is None:
            raise FailedPreconditionError(op="lite.litert", what=f"the buffer for {self._what} is destroyed")
        return self._handle

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.array.dtype

    def write(self, value: Any) -> None:
        """Copy a value of exactly this dtype and shape into the buffer. Raises InvalidArgumentError."""
        array = np.asarray(value)
        if array.dtype != self.array.dtype:
            raise InvalidArgumentError(
                op="lite.litert",
                what=f"{self._what} has another dtype",
                found=array.dtype.name,
                wanted=self.array.dtype.name,
                do=f"value.astype({self.array.dtype.name!r})",
            )
        if array.shape != self.array.shape:
            raise InvalidArgumentError(
                op="lite.litert",
                what=f"{self._what} has another shape",
                found=list(array.shape),
                wanted=list(self.array.shape),
            )
        np.copyto(self.array, array)

    def read(self, num_elements: int | None = None, output_dtype: Any = None) -> np.ndarray:
        """Return a copy of the elements, in their shape; with a number, of that many, flat, as the wheel's own class
        does.

        raises InvalidArgumentError for more elements than there are, or another dtype
        """
        if output_dtype is not None and np.dtype(output_dtype) != self.array.dtype:
            raise InvalidArgumentError(
                op="lite.litert",
                what=f"{self._what} has another dtype",
                found=np.dtype(output_dtype).name,
                wanted=self.array.dtype.name,
            )
        if num_elements is None:
            return self.array.copy()
        if not 0 <= num_elements <= self.array.size:
            raise InvalidArgumentError(
                op="lite.litert",
                what=f"{self._what} has fewer elements",
                found=num_elements,
                wanted=f"at most {self.array.size}",
            )
        return self.array.reshape(-1)[:num_elements].copy()

    def get_tensor_details(self) -> dict[str, Any]:
        """Return the dtype, as a name, and the shape, as a list."""
        return {"dtype": self.array.dtype.name, "shape": list(self.array.shape)}

    def destroy(self) -> None:
        """Return the buffer to the run time now instead of when it is garbage collected. `array` stays valid."""
        self._handle = None
        self._finalizer()

    def __repr__(self) -> str:
        return f"<TensorBuffer of {self._what}: {self.array.dtype.name}{list(self.array.shape)}>"
