"""Invocation of a compiled model: tensor buffers, exclusive access, validation of arguments.

Lives here: `TensorBuffer`, memory for inputs and outputs of the official run time; `ExclusiveRun`, `BufferBinding`, the
checks of values and arguments.
Not here: the run itself (model.py).
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...compiler.native.executor import aligned
from ...core.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from ..ops import types
from ..runtime.tensor import Tensor
from .library import HANDLE, MOST_AXES, RankedTensorType, check, element_type, library
from .loaded_model import OP, LiteRtModel, ModelSignature, SignatureTensor

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


class ExclusiveRun:
    """Context manager for exclusive use of a model by one thread; an operator must not use the model that runs it.

    finalizer: of the model, dead once it is closed
    """

    def __init__(self, finalizer: Any, loaded: LiteRtModel) -> None:
        self._lock, self._runner = threading.Lock(), 0
        self._torn = False  # a fork interrupted its run in another thread
        self._finalizer, self._loaded = finalizer, loaded
        finalizer.atexit = False  # which would ignore a running thread
        _all.add(self)
        atexit.unregister(_at_exit)
        atexit.register(_at_exit)  # before the handler that frees operators in C (native/callbacks.py)

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._runner == me:
            raise FailedPreconditionError(op=OP, what="an operator of the model uses the model while it runs")
        self._lock.acquire()
        if not self._finalizer.alive:
            self._lock.release()
            torn = "the model was running in another thread when the process forked"
            raise FailedPreconditionError(op=OP, what=torn if self._torn else "the model is closed")
        self._runner = me
        self._loaded.errors.clear()

    def __exit__(self, *_: object) -> None:
        self._runner = 0
        self._lock.release()

    def end(self, patience: float) -> None:
        """Close the model once no thread runs it, and block later runs until the process exits.

        patience: seconds to wait; if they do not suffice, the model is left open
        """
        if self._lock.acquire(timeout=patience):
            self._finalizer()
        else:
            for node in self._loaded.nodes:
                node.keep_alive()

    def after_fork(self) -> None:
        """Disable in the child process a model that another thread was running."""
        if self._lock.locked() and self._runner != threading.get_ident():
            self._lock, self._runner, self._torn = threading.Lock(), 0, True
            self._finalizer.detach()
            for node in self._loaded.nodes:
                node.keep_alive()


_all: weakref.WeakSet[ExclusiveRun] = weakref.WeakSet()
_PATIENCE = 2.0  # seconds, of all models together


def _at_exit() -> None:
    """Close models; daemon threads may still be running them, so their memory must not be freed before."""
    until = time.monotonic() + _PATIENCE
    for alone in list(_all):
        alone.end(max(until - time.monotonic(), 0.0))


def _after_fork() -> None:
    for alone in list(_all):
        alone.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class BufferBinding:
    """Buffers of a run. arguments: as the run time's function takes them."""

    def __init__(self, inputs: Sequence[TensorBuffer], outputs: Sequence[TensorBuffer]) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        ins, outs = ((HANDLE * len(buffers))(*[b.handle for b in buffers]) for buffers in (self.inputs, self.outputs))
        self.arguments = (len(ins), ins, len(outs), outs)


def is_named(inputs: Any) -> bool:
    """Return whether values are passed by name."""
    return not isinstance(inputs, list | tuple | np.ndarray) and isinstance(inputs, Mapping)  # the last test is slow


def ordered_values(signature: ModelSignature, inputs: Any) -> list[Any]:
    """Return values passed by name, in a list, or singly, in the signature's order. Raises InvalidArgumentError."""
    if is_named(inputs):
        check_names(signature.inputs, inputs, "inputs")
        return [inputs[p.name] for p in signature.inputs]
    if isinstance(inputs, str | bytes) or not hasattr(inputs, "__iter__"):
        raise TypeError(f"run takes inputs by name or in a list, found {type(inputs).__name__}")
    values = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
    if len(values) != len(signature.inputs):
        raise InvalidArgumentError(
            op=OP,
            what="another number of inputs",
            found=len(values),
            wanted=", ".join(p.name for p in signature.inputs) or "none",
        )
    return values


def checked_array(p: SignatureTensor, value: Any) -> np.ndarray:
    """Return a value as an array of an input's dtype and of a valid shape. Raises InvalidArgumentError."""
    array, dtype = np.asarray(value), np.dtype(p.tensor.dtype.np)
    if array.dtype != dtype:
        raise InvalidArgumentError(
            op=OP,
            what=f"{p.what} has another dtype",
            found=str(array.dtype),
            wanted=dtype.name,
            do=f"value.astype({dtype.name!r})",
        )
    if array.shape != p.shape and not p.takes(array.shape):
        raise InvalidArgumentError(
            op=OP,
            what=f"{p.what} has another shape",
            found=list(array.shape),
            wanted=list(p.signature),
            do="resize_input_tensor(..., strict=False)",
        )
    return array


def check_names(places: Sequence[SignatureTensor], values: Mapping[str, Any], what: str) -> None:
    """Raise InvalidArgumentError unless the names are exactly those of the tensors."""
    names = [p.name for p in places]
    if set(names) != set(values):
        raise InvalidArgumentError(
            op=OP,
            what=f"the {what} are others",
            found=", ".join(map(repr, values)) or "none",
            wanted=", ".join(map(repr, names)) or "none",
        )


def check_buffers(places: Sequence[SignatureTensor], buffers: Sequence[Any]) -> None:
    """Raise InvalidArgumentError for buffers of other tensors, TypeError for other objects."""
    if len(buffers) != len(places):
        raise InvalidArgumentError(
            op=OP,
            what="another number of buffers",
            found=len(buffers),
            wanted=", ".join(p.what for p in places) or "none",
        )
    for p, buffer in zip(places, buffers):
        if not isinstance(buffer, TensorBuffer):
            raise TypeError(f"{p.what} is a TensorBuffer of lite.litert, found {type(buffer).__name__}")
        dtype = np.dtype(p.tensor.dtype.np)
        if buffer.shape != p.shape or buffer.dtype != dtype:
            raise InvalidArgumentError(
                op=OP,
                what=f"the buffer of {p.what} is for another tensor",
                found=repr(buffer),
                wanted=f"{dtype.name}{list(p.shape)}",
            )
