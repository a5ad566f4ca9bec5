"""A running subgraph as C sees it: a TfLiteContext with its tensors, synchronized with the run time's.

Lives here: `NativeContext`, which writes tensors to C; conversion of elements whose encoding in C differs.
Not here: layouts (records.py), reading changes by C (callbacks.py), nodes and calls of their methods (registration.py),
the bytes of a string tensor (format/constants.py).

Tensors that C adds keep their index and live as long as the subgraph, as operators store indices. Memory belongs to the
run time; a tensor's field `allocation` repeats its address, so that the provider never frees it. Memory that C itself
allocates for a dynamic tensor is copied and freed when the method returns.

In Python a string tensor is an array of bytes objects, and an int4 takes a byte. In C a string tensor is one buffer
with offsets, and two int4 share a byte, the first in the lower half.
"""

from __future__ import annotations

import ctypes as C
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from ...core.lazy_imports import finalizer
from ..format.constants import PACKED, pack_elements, pack_strings, unpack_strings
from ..runtime.constants import unpacked
from ..runtime.tensor import ARENA, CONSTANT, DYNAMIC, OUTSIDE, OWN, Tensor
from . import records
from .records import Arrays, CContext, CHost, CTensor

if TYPE_CHECKING:
    from ..runtime.subgraph import Subgraph
    from .registration import NativeNode


def is_converted(t: Tensor) -> bool:
    """Return whether the elements are copied to and from another encoding."""
    name = getattr(t.type, "name", "")
    return name == "STRING" or name in PACKED


def to_c(t: Tensor) -> np.ndarray:
    """Return a new buffer with the elements in C's encoding."""
    array = t.array
    assert array is not None
    if array.dtype.kind == "O":
        return np.frombuffer(bytearray(pack_strings(array.reshape(-1).tolist())), np.uint8)
    return pack_elements(array, PACKED[t.type.name])


def from_c(t: Tensor, content: np.ndarray) -> np.ndarray:
    """Return the elements in a buffer of C's encoding.

    raises DataLossError or InvalidArgumentError for an invalid buffer, or another number of strings than the tensor has
    """
    if t.is_object:
        return unpack_strings(content, t.shape)
    return unpacked(content, PACKED[t.type.name], t.dtype, int(np.prod(t.shape))).reshape(t.shape)


def bytes_in_c(t: Tensor) -> int:
    """Return the bytes in C of a tensor with elements of fixed size."""
    name = getattr(t.type, "name", "")
    if name in PACKED:
        return -(-int(np.prod(t.shape, dtype=np.int64)) * PACKED[name] // 8)
    return t.nbytes


ROOM = 16
"""Number of tensors that one call may add without moving the array, as the official run time guarantees."""
MOST_ADDED = 1 << 16
MOST_DIMENSIONS = 64
REPORT_BYTES = 1 << 14
OLDER_SIZES = 80, 96, 104
"""Bytes of a TfLiteTensor in the headers of TensorFlow 1 to 2.1. A library does not record which it was compiled
with."""
OLD_HEADERS = (
    "compile it against the headers of TensorFlow 2.2 or later, or of lite.include_dir(): before 2.2 "
    "tensors were smaller, and it finds others than it means"
)
_SIZE = C.sizeof(CTensor)


class NativeContext:
    """A subgraph as operators in C see it.

    context, host: the structs passed to C. tensors: the run time's tensors, by C's index. failure: the error of a
    callback, to be raised when the method that caused it returns.
    """

    def __init__(self, subgraph: Subgraph, provider: Any) -> None:
        self.subgraph, self.provider, self.arrays = subgraph, provider, Arrays(provider)
        self.tensors: list[Tensor] = subgraph.tensors[: subgraph.file_tensors]
        self.nodes: dict[int, NativeNode] = {}  # by address of the record
        self.initializing: NativeNode | None = None  # the node whose init runs
        self.failure: BaseException | None = None
        self.context, self.host = CContext(), CHost()
        self._report = C.create_string_buffer(REPORT_BYTES)
        self._moved: list[Any] = []  # earlier, smaller arrays of tensors: C may still point to them
        self._keepalive: list[Any] = []  # texts and lists referenced from C
        self.sized_tensors: set[int] = set()  # indices of added tensors with a shape
        self._buffers: dict[int, Any] = {}  # by index: buffers behind `data` that are not arrays of the run time
        self.array: Any = (CTensor * 0)()
        self.address = C.addressof(self.context)
        self.grow(len(self.tensors) + 2 * ROOM)
        for i in range(len(self.tensors)):
            self._describe(i)
        self._describe_subgraph()
        provider.ow_context_init(self.address, C.addressof(self.host))
        self.context.tensors_size = len(self.tensors)
        self.context.recommended_num_threads = subgraph.context.recommended_num_threads

    # ---- the array of tensors ---------------------------------------------------------------------------------------

    def grow(self, capacity: int) -> None:
        """Provide room for this many tensors. The array may move; the old one stays valid for pointers to it."""
        if capacity > len(self.array):
            bigger = (CTensor * capacity)()
            C.memmove(bigger, self.array, C.sizeof(self.array))
            self._moved.append(self.array)
            self.array = bigger
            self.context.tensors = C.addressof(bigger)
            self.host.tensors_capacity = capacity

    def reserve(self) -> None:
        """Provide room for the tensors that one call may add without moving the others."""
        if len(self.tensors) + ROOM > len(self.array):
            self.grow(2 * len(self.tensors) + 2 * ROOM)

    def index_of(self, address: int | None) -> int:
        """Return the index of a tensor by its address. Raises InvalidArgumentError for an invalid pointer."""
        for array in (self.array, *self._moved):
            offset = (address or 0) - C.addressof(array)
            if 0 <= offset < min(len(array), len(self.tensors)) * _SIZE and offset % _SIZE == 0:
                return offset // _SIZE
        raise InvalidArgumentError(
            what="a pointer to no tensor of this subgraph",
            found=self._place(address or 0),
            wanted="a tensor of this context, got in this call",
            do=OLD_HEADERS,
        )

    def _place(self, address: int) -> str:
        """Describe an invalid pointer, with the tensor it would mean for the struct sizes of older headers."""
        offset = address - C.addressof(self.array)
        if 0 <= offset < len(self.tensors) * _SIZE:
            for size in OLDER_SIZES:
                if offset % size == 0:
                    return f"{address:#x}, tensor {offset // size} if a TfLiteTensor had {size} bytes and not {_SIZE}"
        return hex(address)

    def add(self, count: int) -> int:
        """Add tensors without type and shape; return the index of the first."""
        if count < 0:
            raise InvalidArgumentError(
                what="AddTensors was called with a negative number of tensors", found=count, wanted="0 or more"
            )
        if count > MOST_ADDED or len(self.tensors) + count > self.subgraph.file_tensors + MOST_ADDED:
            raise ResourceExhaustedError(
                what="tensors are added without end",
                found=f"{count} more than {len(self.tensors)}",
                wanted="at most 65536 in a subgraph",
                do="add a node's tensors once, in init or the first prepare",
            )
        first, subgraph = len(self.tensors), self.subgraph
        self.grow(first + count)
        for i in range(first, first + count):
            tensor = Tensor(len(subgraph.tensors), "", None, (), ARENA)
            subgraph.tensors.append(tensor)
            self.tensors.append(tensor)
            c = self.array[i]
            c.allocation_type, c.buffer_handle, c.dims = records.ARENA_RW, -1, self.arrays.ints(())
        self.context.tensors_size = len(self.tensors)
        return first

    # ---- from the run time to C -------------------------------------------------------------------------------------

    def _describe_subgraph(self) -> None:
        s, host = self.subgraph, self.host
        host.report, host.report_size = C.addressof(self._report), REPORT_BYTES
        host.name, host.nodes_size = self.text(s.name.encode()), len(s.nodes)
        variables = [t.index for t in self.tensors if t.is_variable]
        for field, indices in (("inputs", s.inputs), ("outputs", s.outputs), ("variables", variables)):
            listed = (C.c_int32 * len(indices))(*indices)
            self._keepalive.append(listed)
            setattr(host, field, C.addressof(listed))
            setattr(host, f"{field}_size", len(indices))

    def text(self, content: bytes) -> int:
        """Return the address of a zero-terminated copy of bytes that lives as long as this object."""
        buffer = C.create_string_buffer(content)
        self._keepalive.append(buffer)
        return C.addressof(buffer)

    def _describe(self, i: int) -> None:
        """Fill in a tensor of the file: its constant fields, and its present state."""
        t, c = self.tensors[i], self.array[i]
        c.name, c.buffer_handle, c.is_variable = self.text(t.name.encode()), -1, t.is_variable
        c.dims = self.arrays.ints(t.shape)
        c.dims_signature = None if t.kind == CONSTANT else self.arrays.ints(t.signature or ())
        self._describe_quantization(t, c)
        self.push(i, elements=not is_converted(t))  # large string constants are converted only for nodes that read them

    def _describe_quantization(self, t: Tensor, c: CTensor) -> None:
        q = t.quantization
        if q is None:
            return
        if t.blocks is not None:
            details = q.details
            record: Any = records.CBlockwiseQuantization(
                int(details.scales), int(getattr(details, "zero_points", -1)), int(details.block_size), len(t.shape) - 1
            )
            c.quantization.type = records.BLOCKWISE
        else:
            scales = np.asarray(q.scale, np.float32).reshape(-1).tolist()
            zeros = np.asarray(q.zero_point, np.int64).reshape(-1).astype(np.int32).tolist() if scales else []
            if not scales:
                return
            zeros = zeros if len(zeros) == len(scales) else (zeros or [0]) * len(scales)
            if len(scales) == 1:
                c.params.scale, c.params.zero_point = scales[0], zeros[0]
            record = records.CAffineQuantization(
                self.arrays.floats(scales), self.arrays.ints(zeros[: len(scales)]), int(q.quantized_dimension)
            )
            c.quantization.type = records.AFFINE
        self._keepalive.append(record)
        c.quantization.params = C.addressof(record)

    def push(self, i: int, *kinds: str, elements: bool = True) -> None:
        """Write type, shape and kind of memory of a tensor to C, and its elements if they are constant or its kind is
        among `kinds`."""
        t, c = self.tensors[i], self.array[i]
        added = i >= self.subgraph.file_tensors
        self.discard(i)
        if not added:
            c.type = records.TYPES.get(getattr(t.type, "name", ""), 0)
            c.allocation_type = self._memory(t, c)
        self.push_shape(i)
        here = t.array is not None and (t.constant is not None or t.kind in kinds)
        if here and elements and not (added and i not in self.sized_tensors):
            self._point(i, t, c)
        else:
            c.data = c.allocation = None
            if t._dtype is not None and t._dtype.np.kind == "O":
                c.bytes = 0

    def _memory(self, t: Tensor, c: CTensor) -> int:
        if t.constant is not None:
            return records.MMAP_RO if t.kind == CONSTANT else records.PERSISTENT_RO
        if t.kind == OWN:
            if c.allocation_type == records.PERSISTENT_RO:
                return records.PERSISTENT_RO
            return records.MEM_DYNAMIC if t.is_object else records.ARENA_RW_PERSISTENT
        return records.MEM_DYNAMIC if self.is_dynamic(t) else records.ARENA_RW

    def is_dynamic(self, t: Tensor) -> bool:
        """Return whether a prepare declared the tensor dynamic. Tensors that only depend on dynamic ones have their
        shape before their node runs."""
        return t.kind == DYNAMIC and t.index in self.subgraph._dynamic

    def push_shape(self, i: int) -> None:
        """Write a tensor's sizes and bytes to C."""
        t, c = self.tensors[i], self.array[i]
        rank = len(t.shape)
        address = c.dims
        if address and C.c_int32.from_address(address).value == rank:
            (C.c_int32 * rank).from_address(address + 4)[:] = [*t.shape]
        else:
            self.arrays.free(address)
            c.dims = self.arrays.ints(t.shape)
        has_shape = t._dtype is not None and not (i >= self.subgraph.file_tensors and i not in self.sized_tensors)
        c.bytes = bytes_in_c(t) if has_shape and not t.is_object else 0

    def has_shape(self, shape: int) -> bool:
        """Return whether a TfLiteIntArray is the `dims` of some tensor."""
        return any(c.dims == shape for c in self.array[: len(self.tensors)])

    def adopt_shape(self, i: int, shape: int) -> None:
        """Set a tensor's `dims` to a TfLiteIntArray from C."""
        c = self.array[i]
        if c.dims != shape:
            self.arrays.free(c.dims)
            c.dims = shape

    def _point(self, i: int, t: Tensor, c: CTensor) -> None:
        """Write the address of the elements to C."""
        array: Any = t.array
        if is_converted(t):
            if t.constant is None or i not in self._buffers:
                self._buffers[i] = to_c(t)
            array = self._buffers[i]
            c.bytes = array.nbytes
        elif t.is_object:
            raise UnimplementedError(
                what=f"tensor {t.name!r} has type {t.type.name}, which no operator in C gets",
                wanted="numbers or strings",
            )
        c.data = c.allocation = array.__array_interface__["data"][0] if array.nbytes else None

    # ---- memory that C allocated -------------------------------------------------------------------------------------

    def is_elsewhere(self, i: int) -> bool:
        """Return whether C has put a tensor's elements into memory of its own."""
        c = self.array[i]
        return c.data not in (None, c.allocation) and c.allocation_type in (records.MEM_DYNAMIC, records.PERSISTENT_RO)

    def discard(self, i: int) -> None:
        """Free memory that C allocated for a tensor's elements."""
        if self.is_elsewhere(i):
            self.provider.TfLiteTensorDataFree(C.addressof(self.array[i]))
            self.array[i].bytes = bytes_in_c(self.tensors[i]) if not self.tensors[i].is_object else 0

    @property
    def current(self) -> NativeNode | None:
        """The node whose method runs; None for free."""
        return self.initializing if self.host.step == records.INIT else self.nodes.get(self.host.node or 0)

    def metadata(self, name: bytes) -> tuple[int, int] | None:
        """Return address and size of a metadata entry of the model."""
        model = self.subgraph.model
        for entry in model.metadata:
            if entry.name is not None and entry.name.encode() == name:
                data = model.buffers[entry.buffer].data
                content = b"" if data is None else bytes(data)
                return self.text(content), len(content)
        return None

    # ---- words, and the end -----------------------------------------------------------------------------------------

    def reported(self) -> list[str]:
        """Return the lines that the method reported."""
        text = self._report.raw[: min(self.host.report_used, REPORT_BYTES)]
        return [line for line in text.decode(errors="replace").rstrip("\0").splitlines() if line]

    def release(self) -> None:
        """Free C's copies of shapes and scales; nothing may run afterwards."""
        for i in range(len(self.tensors)):
            self.discard(i)
            c = self.array[i]
            self.arrays.free(c.dims)
            self.arrays.free(c.dims_signature)
            if c.quantization.params and c.quantization.type == records.AFFINE:
                record = records.CAffineQuantization.from_address(c.quantization.params)
                self.arrays.free_floats(record.scale)
                self.arrays.free(record.zero_point)
        self.provider.ow_context_end(self.address)
        self.tensors = []
        self.context.tensors_size = 0
        self._buffers.clear()

    @finalizer
    def __del__(self) -> None:
        if self.__dict__.get("tensors"):
            self.release()


READABLE = (CONSTANT, OWN)
"""Kinds of tensors that may have their elements before memory is planned."""
EVERY = (*READABLE, ARENA, OUTSIDE, DYNAMIC)
