"""Constants of a file: tensors as a verified model declares them, their elements, and sparse constants made dense.

Lives here: `tensor_from_file`, `link_block_scales`; `dense_of`.
Not here: whether buffers and index arrays are valid, checked by the verifier (format/constants.py).

A file stores the elements of a sparse tensor in the order of the levels in `traversal_order`: the tensor's dimensions
(counted in blocks where blocked), then the dimensions of the blocks. A dense level visits all its indices, a compressed
one (CSR) those that it lists for each position of the level above.
"""

from __future__ import annotations

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


def link_block_scales(tensors: Sequence[Tensor]) -> None:
    """Let tensors of a verified subgraph that are quantised by block know the tensors of their scales."""
    for t in tensors:
        details: Any = getattr(t.quantization, "details", None)
        if getattr(details, "table_name", "") == "BlockwiseQuantization":
            t.blocks = BlockScales(tensors[details.scales], int(details.block_size))


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


def _unpack_once(data: Any, kind: str, unpack: Callable[[], np.ndarray]) -> np.ndarray:
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
        array = _unpack_once(data, "strings", lambda: unpack_strings(data)).reshape(shape)
    elif dtype.kind == "O":
        raise UnimplementedError(what=f"constant {tensor.name!r} has type {tensor.type.name}")
    elif tensor.type.name in PACKED:
        bits = PACKED[tensor.type.name]
        whole = _unpack_once(data, tensor.type.name, lambda: unpacked(data, bits, tensor.dtype, len(data) * 8 // bits))
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


def dense_of(sparsity: Any, stored: np.ndarray, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """The tensor of `shape` whose stored elements are these, 0 elsewhere.

    raises ResourceExhaustedError above the flag max_activation_bytes
    """
    bounded(shape, dtype, "a sparse constant with its zeros")
    dense = np.zeros(shape, dtype.np)
    if dense.size:
        places, positions = _stored_indices(sparsity, len(shape))
        dense[places] = stored[:positions] if shape else stored[0]
    return dense


def stored_elements(sparsity: Any, dense: np.ndarray) -> np.ndarray:
    """Return the elements that a file stores of a tensor, in its order: the inverse of `dense_of`."""
    return dense[_stored_indices(sparsity, dense.ndim)[0]].reshape(-1) if dense.size else dense.reshape(-1)


def _stored_indices(sparsity: Any, rank: int) -> tuple[tuple[np.ndarray, ...], int]:
    """Return where along each dimension the stored elements are, and their number."""
    order, blocks = np.asarray(sparsity.traversal_order).tolist(), np.asarray(sparsity.block_map).tolist()
    places: dict[int, np.ndarray] = {}  # by level of the tensor and its blocks, where each position is along it
    positions = 1
    for level, metadata in zip(order, sparsity.dim_metadata):
        if metadata.format == 0:
            above = np.repeat(np.arange(positions), metadata.dense_size)
            here = np.tile(np.arange(metadata.dense_size), positions)
        else:
            counts: Any = np.diff(np.asarray(metadata.array_segments.values).astype(np.int64))
            above = np.repeat(np.arange(positions), counts)
            here = np.asarray(metadata.array_indices.values if len(above) else ()).astype(np.int64)
        places = {known: place[above] for known, place in places.items()} | {level: here}
        positions = len(here)
    sizes = {blocks[level - rank]: m.dense_size for level, m in zip(order, sparsity.dim_metadata) if level >= rank}
    for number, d in enumerate(blocks):
        places[d] = places[d] * sizes[d] + places[rank + number]
    return tuple(places[d] for d in range(rank)), positions
