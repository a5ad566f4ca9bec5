"""Constants of a model: tensors as a verified model declares them, their elements, expansion of sparse tensors.

Lives here: `tensor_from_file`, `SubByteConstant`, `link_block_scales`; `dense_of`.
Not here: validation of buffers and index arrays (format/constants.py).

A file stores the elements of a sparse tensor in the order of the levels in `traversal_order`: the tensor's dimensions
(counted in blocks where blocked), then the dimensions of the blocks. A dense level visits all its indices, a compressed
one (CSR) the indices that it lists for each position of the level above.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, string
from ...core.errors import UnimplementedError
from ..format import unpack_strings
from ..format.constants import PACKED
from ..ops.shapes import bounded
from .tensor import ARENA, CONSTANT, OWN, BlockScales, Tensor


def tensor_from_file(index: int, source: Any, buffer: Any) -> Tensor:
    """Return the tensor for an `objects.Tensor` of a verified model and its buffer."""
    data = buffer.data if source.buffer != 0 else None
    constant = data is not None and not source.is_variable
    of_class = SubByteConstant if constant and _is_unpacked_later(source, data) else Tensor
    tensor = of_class(index, source.name or "", source.type, tuple(np.asarray(source.shape).tolist()), ARENA)
    tensor.signature = tuple(np.asarray(source.shape_signature).tolist()) or None
    tensor.quantization, tensor.sparsity = source.quantization, source.sparsity
    tensor.is_variable = bool(source.is_variable)
    tensor.has_rank = bool(source.has_rank)  # without it an empty shape means a scalar or an unknown rank
    if constant:
        tensor.kind = CONSTANT
        if isinstance(tensor, SubByteConstant):
            tensor.unpack_later(functools.partial(read_constant, tensor, data))
        elif tensor._dtype is not None:
            tensor.bind(read_constant(tensor, data))
    elif tensor.is_variable or (tensor._dtype is not None and tensor.is_object):
        tensor.kind = OWN
    return tensor


class SubByteConstant(Tensor):
    """A constant whose elements, packed in the file, are unpacked when something first asks for them.

    A plan of an earlier process has its own form of weights: a language model of 250 M weights of four bits would have
    them as 250 MB in addition.
    """

    __slots__ = ("_elements", "_unpack")

    _elements: np.ndarray | None
    _unpack: Callable[[], np.ndarray] | None

    def unpack_later(self, unpack: Callable[[], np.ndarray]) -> None:
        """Set what returns the elements."""
        self._unpack = unpack

    @property
    def is_held(self) -> bool:
        """Whether the elements are unpacked."""
        return self._elements is not None

    @property
    def array(self) -> np.ndarray | None:
        """The elements."""
        if self._elements is None and self._unpack is not None:
            self._elements = self._unpack()
        return self._elements

    @array.setter
    def array(self, array: np.ndarray | None) -> None:
        self._elements, self._unpack = array, None


def _is_unpacked_later(source: Any, data: Any) -> bool:
    """Return whether a constant is packed, not sparse, and in read-only memory."""
    packed = getattr(source.type, "name", "") in PACKED and source.sparsity is None
    return packed and not np.frombuffer(data, np.uint8).flags.writeable


def link_block_scales(tensors: Sequence[Tensor]) -> None:
    """Set the scales of blockwise quantized tensors of a verified subgraph."""
    for t in tensors:
        details: Any = getattr(t.quantization, "details", None)
        if getattr(details, "table_name", "") == "BlockwiseQuantization":
            t.blocks = BlockScales(tensors[details.scales], int(details.block_size))


UNPACKED_TOGETHER = 1 << 16
"""Bytes that are unpacked together: NumPy has their indices as 64-bit integers meanwhile."""


def unpacked(data: Any, bits: int, dtype: DType, count: int) -> np.ndarray:
    """Return the first `count` elements of packed bytes, one byte each."""
    packed = np.frombuffer(data, np.uint8)
    table = _elements_of_bytes(bits, dtype)
    values = np.empty(len(packed) * (8 // bits), dtype.np)
    groups = values.view(table.dtype)
    for start in range(0, len(packed), UNPACKED_TOGETHER):
        end = start + UNPACKED_TOGETHER
        groups[start:end] = table[packed[start:end]]
    return values if count == len(values) else values[:count]


@functools.cache
def _elements_of_bytes(bits: int, dtype: DType) -> np.ndarray:
    """Return a table [256] of the elements in a byte, one byte each, as one number."""
    parts = np.arange(256, dtype=np.int16)[:, None] >> np.arange(0, 8, bits, dtype=np.int16) & ((1 << bits) - 1)
    if not dtype.is_unsigned:
        parts[parts >= 1 << (bits - 1)] -= 1 << bits
    return parts.astype(np.int8).astype(dtype.np).view(f"u{8 // bits}").reshape(-1)


_unpacked: dict[tuple[int, int, str], tuple[weakref.ref[np.ndarray], Any]] = {}
"""By address, size and kind of packed bytes: a weak reference to the unpacked array; the bytes, to keep them alive."""


def _unpack_once(data: Any, kind: str, unpack: Callable[[], np.ndarray]) -> np.ndarray:
    """Return `unpack()` of a buffer, shared by all tensors of all interpreters that use the buffer.

    Signatures of a file may share a buffer, and a malicious file could request any number of copies. Writable buffers
    are unpacked each time.
    """
    raw = np.frombuffer(data, np.uint8)
    if raw.flags.writeable:
        return unpack()
    key = (raw.__array_interface__["data"][0], raw.nbytes, kind)
    entry = _unpacked.get(key)
    array = entry[0]() if entry is not None else None
    if array is None:
        array = unpack()
        array = array if array.base is None else array.copy()  # the weak reference must be to the base of all views
        array.flags.writeable = False
        _unpacked[key] = (weakref.ref(array, lambda dead: _forget(key, dead)), raw)
    return array


def _forget(key: tuple[int, int, str], dead: Any) -> None:
    if key in _unpacked and _unpacked[key][0] is dead:
        del _unpacked[key]


def read_constant(tensor: Tensor, data: Any) -> np.ndarray:
    """Return the elements of a constant.

    They are a view of the file's bytes, except strings, packed types and sparse tensors, which are expanded.
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
        array = _unpack_once(data, "strings", lambda: unpack_strings(data)).reshape(shape)
    elif dtype.kind == "O":
        raise UnimplementedError(what=f"constant {tensor.name!r} has type {tensor.type.name}")
    elif tensor.type.name in PACKED:
        bits = PACKED[tensor.type.name]
        elements = _unpack_once(
            data, tensor.type.name, lambda: unpacked(data, bits, tensor.dtype, len(data) * 8 // bits)
        )
        array = elements[: math.prod(shape)].reshape(shape)
    else:
        count = math.prod(shape)
        array = np.frombuffer(data, np.uint8, count * dtype.itemsize).view(dtype).reshape(shape)
        if not array.flags.aligned:
            array = array.copy()
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def dense_of(sparsity: Any, stored: np.ndarray, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Return the dense tensor of `shape` with these stored elements, and 0 elsewhere.

    raises ResourceExhaustedError above the flag max_activation_bytes
    """
    bounded(shape, dtype, "a sparse constant with its zeros")
    dense = np.zeros(shape, dtype.np)
    if dense.size:
        indices, count = _stored_indices(sparsity, len(shape))
        dense[indices] = stored[:count] if shape else stored[0]
    return dense


def stored_elements(sparsity: Any, dense: np.ndarray) -> np.ndarray:
    """Return the elements that a file stores of a sparse tensor, in its order: the inverse of `dense_of`."""
    return dense[_stored_indices(sparsity, dense.ndim)[0]].reshape(-1) if dense.size else dense.reshape(-1)


def _stored_indices(sparsity: Any, rank: int) -> tuple[tuple[np.ndarray, ...], int]:
    """Return the index along each dimension of the stored elements, and their number."""
    order, blocks = np.asarray(sparsity.traversal_order).tolist(), np.asarray(sparsity.block_map).tolist()
    indices: dict[int, np.ndarray] = {}  # by level: the index of each position along it
    positions = 1
    for level, metadata in zip(order, sparsity.dim_metadata):
        if metadata.format == 0:
            above = np.repeat(np.arange(positions), metadata.dense_size)
            here = np.tile(np.arange(metadata.dense_size), positions)
        else:
            counts: Any = np.diff(np.asarray(metadata.array_segments.values).astype(np.int64))
            above = np.repeat(np.arange(positions), counts)
            here = np.asarray(metadata.array_indices.values if len(above) else ()).astype(np.int64)
        indices = {other: index[above] for other, index in indices.items()} | {level: here}
        positions = len(here)
    sizes = {blocks[level - rank]: m.dense_size for level, m in zip(order, sparsity.dim_metadata) if level >= rank}
    for number, d in enumerate(blocks):
        indices[d] = indices[d] * sizes[d] + indices[rank + number]
    return tuple(indices[d] for d in range(rank)), positions
