"""Tables of tensors in files, as types of the lite dialect and back.

Lives here: `tensor_of` and `spec_of`, with their quantization and sparsity; bytes of constants (`contents_of`).
Not here: which tensor a value is (lite/importer.py, lite/convert/export.py), elements of constants (runtime/).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.errors import UnimplementedError
from ...core.specs import TensorSpec
from ..format import objects, pack_strings, schema
from ..format.constants import PACKED
from .specs import BlockwiseScales, LiteTensorSpec, Quantization, Sparsity
from .types import dtype_of, name_of

BY_BLOCK = ("BlockwiseQuantization", "MultiAxisQuantization")

Stored = Callable[[int], tuple[np.ndarray, str]]
"""Returns the elements and the name of a constant tensor, by its number."""


def spec_of(table: Any, constant: bool, stored: Stored, name: str | None = None) -> TensorSpec:
    """Return the type of a tensor. constant: whether it has elements. stored: of the tensors of its scales.

    name: of the value that it becomes, None for none.
    raises UnimplementedError for element types and quantization that are not known here
    """
    shape, signature = _ints(table.shape), _ints(table.shape_signature)
    sizes: tuple[int, ...] | None = None
    dims: Sequence[int | None] | None = shape
    if not table.has_rank and not shape and not constant:
        dims = None  # a scalar, or of unknown rank
    elif -1 in signature:
        dims = [None if d < 0 else size for d, size in zip(signature, shape)]
        sizes = tuple(shape) if any(d is None and s != 1 for d, s in zip(dims, shape)) else None
    file_name = table.name or ""
    spec = LiteTensorSpec(
        dims,
        dtype_of(table.type.name, file_name),
        file_name if file_name != name else None,
        _quantization(table, stored),
        bool(table.is_variable),
        _sparsity(table.sparsity),
        sizes,
    )
    return spec if spec.details else TensorSpec(spec.shape, spec.dtype)


def tensor_of(spec: TensorSpec) -> Any:
    """Return the table of a tensor of this type, without its name and the tensors of scales by block.

    raises InvalidArgumentError for an element type that files do not have
    """
    dims = spec.shape.dims
    tensor = objects.Tensor(type=schema.enum("TensorType")[name_of(spec.dtype)], has_rank=dims is not None)
    if dims is not None:
        tensor.shape = np.array([1 if d is None else d for d in dims], np.int32)
        if None in dims:
            tensor.shape_signature = np.array([-1 if d is None else d for d in dims], np.int32)
    if not isinstance(spec, LiteTensorSpec):
        return tensor
    tensor.is_variable = spec.is_variable
    if spec.sizes is not None:
        tensor.shape = np.array(spec.sizes, np.int32)
    if (q := spec.quantization) is not None:
        custom = None if q.custom is None else objects.CustomQuantization(custom=np.frombuffer(q.custom, np.uint8))
        tensor.quantization = objects.QuantizationParameters(
            scale=q.scale,
            zero_point=q.zero_point,
            quantized_dimension=q.axis,
            min=q.low if len(q.low) else None,
            max=q.high if len(q.high) else None,
            details=custom,
        )
    if spec.sparsity is not None:
        tensor.sparsity = _sparsity_table(spec.sparsity)
    return tensor


def contents_of(array: np.ndarray, spec: TensorSpec) -> bytes:
    """Return a constant's bytes as files have them: little-endian, types below a byte packed, strings packed."""
    if spec.dtype is dtypes.string:
        return pack_strings(list(array.reshape(-1)))
    if (bits := PACKED.get(name_of(spec.dtype))) is not None:
        return packed(array, bits)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return array.tobytes()


def packed(array: np.ndarray, bits: int) -> bytes:
    """Return elements of a type below a byte packed in bytes, the first in the lowest bits."""
    low = array.reshape(-1).astype(np.int8).view(np.uint8) & (1 << bits) - 1
    low = np.concatenate([low, np.zeros(-len(low) % (8 // bits), np.uint8)]).reshape(-1, 8 // bits)
    result: bytes = np.bitwise_or.reduce(low << np.arange(0, 8, bits, dtype=np.uint8), axis=1, dtype=np.uint8).tobytes()
    return result


def tensors_of_scales(table: Any) -> list[int]:
    """Return the numbers of the tensors that hold a tensor's scales and zero points by block."""
    details = None if table.quantization is None else table.quantization.details
    if details is None or details.table_name not in BY_BLOCK:
        return []
    return [int(i) for i in (details.scales, details.zero_points) if i >= 0]


def blocks_table(blocks: BlockwiseScales, scales: int, zero_points: int) -> Any:
    """Return the table of scales by block, which names the tensors that hold them; -1 for none."""
    if not blocks.axes:
        return objects.BlockwiseQuantization(scales=scales, zero_points=zero_points, block_size=blocks.size)
    return objects.MultiAxisQuantization(
        scales=scales,
        zero_points=zero_points,
        block_size=blocks.size,
        quantized_dimensions=np.array(blocks.axes, np.int32),
    )


def _ints(vector: Any) -> list[int]:
    result: list[int] = np.asarray(vector).tolist()
    return result


def _quantization(table: Any, stored: Stored) -> Quantization | None:
    q = table.quantization
    if q is None:
        return None
    details, blocks, custom = q.details, None, None
    if details is not None and details.table_name == "CustomQuantization":
        custom = b"" if details.custom is None else bytes(details.custom)
    elif details is not None and details.table_name in BY_BLOCK:
        scales, name = stored(details.scales)
        zeros, zeros_name = (None, "") if details.zero_points < 0 else stored(details.zero_points)
        axes = tuple(_ints(getattr(details, "quantized_dimensions", ())))
        blocks = BlockwiseScales(scales, zeros, int(details.block_size), axes, (name, zeros_name))
    elif details is not None:
        raise UnimplementedError(
            what=f"tensor {table.name!r} is quantised in a way that is not known here",
            found=repr(details),
            wanted="scales by tensor, by channel or by block",
        )
    axis = int(q.quantized_dimension) if len(q.scale) else 0
    quantization = Quantization(q.scale, q.zero_point, axis, q.min, q.max, blocks, custom)
    return quantization if quantization.details else None


def _sparsity(table: Any) -> Sparsity | None:
    if table is None:
        return None
    levels: list[int | tuple[np.ndarray, np.ndarray]] = []
    for m in table.dim_metadata:
        if m.format == 0:
            levels.append(int(m.dense_size))
        else:
            levels.append((np.asarray(m.array_segments.values), np.asarray(m.array_indices.values)))
    return Sparsity(tuple(_ints(table.traversal_order)), tuple(_ints(table.block_map)), tuple(levels))


def _sparsity_table(sparsity: Sparsity) -> Any:
    dense, compressed = (schema.enum("DimensionType")[name] for name in ("DENSE", "SPARSE_CSR"))
    kinds = {1: objects.Uint8Vector, 2: objects.Uint16Vector, 4: objects.Int32Vector}
    levels = []
    for level in sparsity.levels:
        if isinstance(level, int):
            levels.append(objects.DimensionMetadata(format=dense, dense_size=level))
            continue
        segments, indices = (kinds[numbers.itemsize](values=numbers) for numbers in level)
        levels.append(objects.DimensionMetadata(format=compressed, array_segments=segments, array_indices=indices))
    return objects.SparsityParameters(
        traversal_order=np.array(sparsity.traversal_order, np.int32),
        block_map=np.array(sparsity.block_map, np.int32) if sparsity.block_map else None,
        dim_metadata=levels,
    )
