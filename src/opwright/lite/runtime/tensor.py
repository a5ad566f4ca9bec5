"""Tensors of a running subgraph: the state (`Tensor`) and what methods of a node see of it (`TensorView`).

Lives here: shape, dtype, scales by block, where the elements are, reading constants.
Not here: planning memory (memory.py).
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, int8, string
from ...core.errors import UnimplementedError
from ...core.shapes import of_known
from ...core.specs import TensorSpec
from ..format import schema, unpack_strings
from ..format.constants import BITS
from ..ops import types
from .sparse import dense_of

CONSTANT, SETTLED, ARENA, OWN, DYNAMIC, OUTSIDE = "constant", "settled", "arena", "own", "dynamic", "outside"
"""Where a tensor's elements are: in the file; in memory of its own, computed when tensors were allocated and kept
until they are again; in the planned arena; in memory of its own that stays (variables, persistent tensors, objects); in
memory of its own that is made when its shape is known, while the model runs; in memory of the node that runs the
subgraph, for its inputs."""


class Blocks(NamedTuple):
    """Scales by block along the last dimension. scales: float16 [..., blocks]; size: elements of a block."""

    scales: Tensor
    size: int


class Tensor:
    """One tensor of a subgraph. array: its elements, None until allocated. kind: one of the six above."""

    __slots__ = ("_dtype", "_readonly", "_spec", "array", "blocks", "has_rank", "index", "is_variable", "kind", "name",
                 "quantization", "shape", "signature", "sparsity", "type")  # fmt: skip

    def __init__(self, index: int, name: str, type: Any, shape: tuple[int, ...], kind: str) -> None:
        self.index, self.name, self.type, self.shape, self.kind = index, name, type, shape, kind
        self.signature: tuple[int, ...] | None = None
        self.quantization: Any = None
        self.blocks: Blocks | None = None
        self.sparsity: Any = None
        self.is_variable = False
        self.has_rank = True
        self.array: np.ndarray | None = None
        self._dtype: DType | None = types.BY_NAME.get(getattr(type, "name", ""))
        self._readonly: np.ndarray | None = None
        self._spec: TensorSpec | None = None

    @property
    def dtype(self) -> DType:
        """The dtype. Raises UnimplementedError for the schema's types that have none here."""
        if self._dtype is None:
            return types.dtype_of(getattr(self.type, "name", str(self.type)), self.name)
        return self._dtype

    @property
    def is_object(self) -> bool:
        """Whether the elements are Python objects: strings and handles."""
        return self.dtype.np.kind == "O"

    @property
    def is_quantized(self) -> bool:
        """Whether the elements stand for real numbers by scale and zero point."""
        q = self.quantization
        return q is not None and (len(q.scale) > 0 or self.blocks is not None) and self.dtype.is_integer

    @property
    def nbytes(self) -> int:
        """Bytes of the elements; 8 for an object."""
        return math.prod(self.shape) * self.dtype.np.itemsize

    # What shape rules look at: `spec` and `constant`.

    @property
    def spec(self) -> TensorSpec:
        """The type; of unknown shape where it is known only while the model runs."""
        if self._spec is None:
            unknown = self.kind == DYNAMIC and self.array is None
            self._spec = TensorSpec(None if unknown else of_known(self.shape), self.dtype)
        return self._spec

    @property
    def constant(self) -> np.ndarray | None:
        """The elements where no run changes them."""
        return self.array if self.kind in (CONSTANT, SETTLED) else None

    def set_shape(self, shape: tuple[int, ...]) -> None:
        """Another shape, without elements yet."""
        self.shape, self._spec = shape, None
        self.bind(None)

    def set_dtype(self, dtype: DType) -> None:
        """Another type of elements, without elements yet."""
        self.type, self._dtype, self._spec = schema.TensorType[types.name_of(dtype)], dtype, None
        self.bind(None)

    def bind(self, array: np.ndarray | None) -> None:
        """Where the elements are."""
        self.array, self._readonly = array, None
        if self.kind == DYNAMIC:
            self._spec = None

    def set_kind(self, kind: str) -> None:
        """Where the elements will be."""
        if kind != self.kind:
            self.kind = kind
            self._spec = None
            self.bind(None)

    def allocate(self) -> None:
        """Memory of its own for the present shape, cleared."""
        make = np.empty if self.is_object else np.zeros
        self.bind(make(self.shape, self.dtype.np))
        if self.is_object or self.is_variable:
            self.clear()

    def clear(self) -> None:
        """Zeros, or empty strings; for a variable of int8 its zero point, as the official run time has it."""
        assert self.array is not None
        start: Any = 0
        if self.is_object:
            start = b"" if self.dtype is string else None
        elif self.is_variable and self.dtype is int8 and self.is_quantized:
            points = self.quantization.zero_point
            start = np.int64(points[0] if points is not None and len(points) else 0).astype(np.int8)
        self.array.fill(start)

    @property
    def readonly(self) -> np.ndarray | None:
        """The elements, not to be written."""
        if self._readonly is None and self.array is not None:
            self._readonly = self.array.view()
            self._readonly.flags.writeable = False
        return self._readonly

    def short(self) -> str:
        """The type as errors print it: f32[2,3]."""
        if self._dtype is None:
            return f"{getattr(self.type, 'name', self.type)}{list(self.shape)}"
        shape = "..." if self.kind == DYNAMIC and self.array is None else ",".join(map(str, self.shape))
        return f"{self._dtype.short}[{shape}]"

    def __repr__(self) -> str:
        return f"<tensor {self.index} {self.name!r} {self.short()}>"


class TensorView:
    """A tensor as methods of a node see it.

    data: the elements as a NumPy view, read-only for an input; None before there are any. shape, dims: tuple and list
    of sizes; dtype: DType; type: the file's TensorType; name; index; is_constant; is_variable; quantization: the
    file's table (scale, zero_point, quantized_dimension) or None.
    """

    __slots__ = ("lent", "tensor", "writable")

    def __init__(self, tensor: Tensor, writable: bool) -> None:
        self.lent: Any = None  # what is watched of the elements that methods are given (giving.py); None: nothing is
        self.tensor, self.writable = tensor, writable and tensor.kind != CONSTANT

    @property
    def data(self) -> np.ndarray | None:
        """The elements, in place."""
        array = self.tensor.array if self.writable else self.tensor.readonly
        return array if self.lent is None else self.lent.given(self.tensor, array)

    @data.setter
    def data(self, values: Any) -> None:
        raise AttributeError(f"tensor {self.name!r} has its memory: write into it, data[...] = values")

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return self.tensor.shape

    @property
    def dims(self) -> list[int]:
        """Sizes, as a list."""
        return list(self.tensor.shape)

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.tensor.dtype

    @property
    def type(self) -> Any:
        """Element type as the file has it, a TensorType."""
        return self.tensor.type

    @property
    def name(self) -> str:
        """The name in the file."""
        return self.tensor.name

    @property
    def index(self) -> int:
        """The place among the subgraph's tensors."""
        return self.tensor.index

    @property
    def is_constant(self) -> bool:
        """Whether the elements are the file's and never change; they are there in prepare, too."""
        return self.tensor.kind == CONSTANT

    @property
    def is_variable(self) -> bool:
        """Whether the elements stay from run to run."""
        return self.tensor.is_variable

    @property
    def is_dynamic(self) -> bool:
        """Whether the shape is known only while the model runs."""
        return self.tensor.kind == DYNAMIC

    @property
    def quantization(self) -> Any:
        """Scales and zero points, as the file's table."""
        return self.tensor.quantization

    def short(self) -> str:
        """The type as errors print it."""
        return self.tensor.short()

    def __repr__(self) -> str:
        return repr(self.tensor)


def of_file(index: int, source: Any, buffer: Any) -> Tensor:
    """The tensor for an `objects.Tensor` of a verified model and its buffer."""
    data = buffer.data if source.buffer != 0 else None
    constant = data is not None and not source.is_variable
    made = Tensor(index, source.name or "", source.type, tuple(np.asarray(source.shape).tolist()), ARENA)
    made.signature = tuple(np.asarray(source.shape_signature).tolist()) or None
    made.quantization, made.sparsity = source.quantization, source.sparsity
    made.is_variable = bool(source.is_variable)
    made.has_rank = bool(source.has_rank)  # without it no sizes may mean a scalar or an unknown rank
    if constant:
        made.kind = CONSTANT
        if made._dtype is not None:
            made.bind(read_constant(made, data))
    elif made.is_variable or (made._dtype is not None and made.is_object):
        made.kind = OWN
    return made


def link_blocks(tensors: Sequence[Tensor]) -> None:
    """Let tensors of a verified subgraph that are quantised by block know the tensors of their scales."""
    for t in tensors:
        details: Any = getattr(t.quantization, "details", None)
        if getattr(details, "table_name", "") == "BlockwiseQuantization":
            t.blocks = Blocks(tensors[details.scales], int(details.block_size))


PACKED = {name: bits for name, bits in BITS.items() if bits < 8}
"""Bits an element of the types that are packed in bytes, the first element in the lowest bits."""


def unpacked(data: Any, bits: int, dtype: DType, count: int) -> np.ndarray:
    """The first `count` elements of packed bytes, in a byte each."""
    packed = np.frombuffer(data, np.uint8)
    parts = packed[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)
    values = parts.reshape(-1)[:count].astype(np.int8)
    if not dtype.is_unsigned:
        values[values >= 1 << (bits - 1)] -= 1 << bits
    return values.astype(dtype.np)


_unpacked: dict[tuple[int, int, str], tuple[weakref.ref[np.ndarray], Any]] = {}
"""By address, size and kind of packed bytes: what they were unpacked to, and the bytes, which so stay in place."""


def _kept(data: Any, kind: str, unpack: Callable[[], np.ndarray]) -> np.ndarray:
    """What `unpack` makes of a buffer, once for all tensors of all interpreters that use it: a file may share one among
    signatures, or be made to ask for any number of copies. Bytes that may change are unpacked each time."""
    raw = np.frombuffer(data, np.uint8)
    if raw.flags.writeable:
        return unpack()
    key = (raw.__array_interface__["data"][0], raw.nbytes, kind)
    known = _unpacked.get(key)
    found = known[0]() if known is not None else None
    if found is None:
        found = unpack()
        found = found if found.base is None else found.copy()  # views on it are to keep this very array
        found.flags.writeable = False
        _unpacked[key] = (weakref.ref(found, lambda dead: _forget(key, dead)), raw)
    return found


def _forget(key: tuple[int, int, str], dead: Any) -> None:
    if key in _unpacked and _unpacked[key][0] is dead:
        del _unpacked[key]


def read_constant(tensor: Tensor, data: Any) -> np.ndarray:
    """The elements of a constant: a view on the file's bytes, but for strings, packed types and sparse tensors.

    These are unpacked, and get their zeros.
    """
    shape, dtype = tensor.shape, tensor.dtype.np
    if tensor.sparsity is not None and dtype.kind != "O":
        if tensor.type.name in PACKED:
            bits = PACKED[tensor.type.name]
            stored = unpacked(data, bits, tensor.dtype, len(data) * 8 // bits)
        else:
            raw = np.frombuffer(data, np.uint8)
            stored = raw[: len(raw) // dtype.itemsize * dtype.itemsize].copy().view(dtype)
        array = dense_of(tensor.sparsity, stored, shape, tensor.dtype)
        array.flags.writeable = False
        return array
    if tensor.dtype is string:
        array = _kept(data, "strings", lambda: unpack_strings(data)).reshape(shape)
    elif dtype.kind == "O":
        raise UnimplementedError(what=f"constant {tensor.name!r} has type {tensor.type.name}")
    elif tensor.type.name in PACKED:
        bits = PACKED[tensor.type.name]
        whole = _kept(data, tensor.type.name, lambda: unpacked(data, bits, tensor.dtype, len(data) * 8 // bits))
        array = whole[: math.prod(shape)].reshape(shape)
    else:
        count = math.prod(shape)
        array = np.frombuffer(data, np.uint8, count * dtype.itemsize).view(dtype).reshape(shape)
        if not array.flags.aligned:
            array = array.copy()
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array
