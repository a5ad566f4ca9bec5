"""Types of the lite dialect's values: properties of a tensor in a file besides its element type and shape.

Lives here: `LiteTensorSpec`, `Quantization`, `BlockwiseScales`, `Sparsity`, the text of each (`detailed`); their tables
in files, in both directions (`tensor_of`, `spec_of`); bytes of constants (`contents_of`).
Not here: which tensor a value is (lite/importer.py, lite/convert/export.py), elements of constants (runtime/),
quantized arithmetic (quantized/).

    conv: i8[1,8,8,4]{scale=0.5, zero_point=-3} = CONV_2D(x, w, b, ...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.errors import UnimplementedError
from ...core.specs import TensorSpec
from ...graph.ir import Value, same_attr
from ..format import objects, pack_strings, schema
from ..format.constants import PACKED, pack_elements
from . import types


class BlockwiseScales(NamedTuple):
    """Scales of blocks of elements, which files keep in tensors of their own.

    scales: float16 or float32; zero_points: or None for zeros. size: elements of a block along the last dimension.
    axes: the quantized dimensions where they are several, else empty. names: of the two tensors.
    """

    scales: np.ndarray
    zero_points: np.ndarray | None
    size: int
    axes: tuple[int, ...] = ()
    names: tuple[str, str] = ("", "")


class Quantization:
    """The mapping from integers to real numbers: real = scale * (q - zero_point), by slices of `axis` or as a whole.

    scale: float32, one or one a slice; none where `blocks` has them. zero_point: int64. low, high: the range that a
    trainer recorded, often empty. custom: parameters whose meaning another program knows, or None. Immutable.
    """

    __slots__ = ("axis", "blocks", "custom", "high", "low", "scale", "zero_point")

    def __init__(
        self,
        scale: Any = (),
        zero_point: Any = (),
        axis: int = 0,
        low: Any = (),
        high: Any = (),
        blocks: BlockwiseScales | None = None,
        custom: bytes | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "scale", np.atleast_1d(np.asarray(scale, np.float32)))
        put(self, "zero_point", np.atleast_1d(np.asarray(zero_point, np.int64)))
        put(self, "axis", axis)
        put(self, "low", np.atleast_1d(np.asarray(low, np.float32)))
        put(self, "high", np.atleast_1d(np.asarray(high, np.float32)))
        put(self, "blocks", blocks)
        put(self, "custom", custom)

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int
    low: np.ndarray
    high: np.ndarray
    blocks: BlockwiseScales | None
    custom: bytes | None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Quantization is immutable; cannot set {name}")

    @property
    def quantized_dimension(self) -> int:
        """The axis under the name that tables of files have."""
        return self.axis

    @property
    def has_scales(self) -> bool:
        """Whether elements represent real numbers; a range alone is not sufficient."""
        return len(self.scale) > 0 or self.blocks is not None

    @property
    def details(self) -> dict[str, Any]:
        """The parameters as attributes of graph text, defaults left out."""
        details: dict[str, Any] = {}
        for name in ("scale", "zero_point", "low", "high"):
            values = getattr(self, name)
            if len(values):
                details[name] = values.item() if len(values) == 1 and np.isfinite(values[0]) else values
        if self.axis:
            details["axis"] = self.axis
        if self.blocks is not None:
            details["blocks"] = tuple(self.blocks)
        if self.custom is not None:
            details["custom"] = self.custom
        return details

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantization) and same_attr(self.details, other.details)

    def __hash__(self) -> int:
        return hash((self.scale.tobytes(), self.zero_point.tobytes(), self.axis))

    def __repr__(self) -> str:
        return f"Quantization({', '.join(f'{k}={v!r}' for k, v in self.details.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Quantization, (self.scale, self.zero_point, self.axis, self.low, self.high, self.blocks, self.custom)


class Sparsity(NamedTuple):
    """The positions of the elements that a file stores of a sparse constant.

    traversal_order: of the dimensions and of their blocks, which count on from the rank. block_map: the dimensions in
    blocks. levels: for each of the order a size, or (segments, indices) of a compressed one.
    """

    traversal_order: tuple[int, ...]
    block_map: tuple[int, ...]
    levels: tuple[int | tuple[np.ndarray, np.ndarray], ...]


class LiteTensorSpec(TensorSpec):
    """A tensor's type in the lite dialect.

    name: of the tensor in the file, where it is not that of the value. quantization: or None. is_variable: the tensor
    keeps its elements from run to run. sparsity: how a constant is stored, or None for densely. sizes: of the
    dimensions that the shape leaves open, before inputs are resized; None for 1 each.
    """

    __slots__ = ("is_variable", "quantization", "sizes", "sparsity")
    quantization: Quantization | None
    is_variable: bool
    sparsity: Sparsity | None
    sizes: tuple[int, ...] | None

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        name: str | None = None,
        quantization: Quantization | None = None,
        is_variable: bool = False,
        sparsity: Sparsity | None = None,
        sizes: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(shape, dtype, name)
        put = object.__setattr__
        put(self, "quantization", quantization)
        put(self, "is_variable", is_variable)
        put(self, "sparsity", sparsity)
        put(self, "sizes", sizes)

    @property
    def details(self) -> dict[str, Any]:
        """Return the differences from a plain type, as attributes of graph text."""
        details = {} if self.quantization is None else self.quantization.details
        if self.is_variable:
            details["variable"] = True
        if self.sparsity is not None:
            details["sparsity"] = tuple(self.sparsity)
        if self.sizes is not None:
            details["sizes"] = self.sizes
        if self.name is not None:
            details["name"] = self.name
        return details

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and self.dtype is other.dtype
            and self.shape == other.shape
            and same_attr(self.details, other.details)
        )

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        return f"LiteTensorSpec({self.short()}, {', '.join(f'{k}={v!r}' for k, v in self.details.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.shape, self.dtype, self.name, self.quantization, self.is_variable, self.sparsity, self.sizes
        return type(self), parts


def with_changes(spec: TensorSpec, **changes: Any) -> TensorSpec:
    """Return the type with some fields of a `LiteTensorSpec` changed; a plain type where nothing is left to add."""
    fields = {name: getattr(spec, name, None) for name in ("shape", "dtype", "quantization", "sparsity", "sizes")}
    fields["name"] = spec.name if isinstance(spec, LiteTensorSpec) else None
    fields["is_variable"] = getattr(spec, "is_variable", False)
    changed = LiteTensorSpec(**{**fields, **changes})
    return changed if changed.details else TensorSpec(changed.shape, changed.dtype)


def name_of(value: Value) -> str:
    """Return the name of a value's tensor in a file."""
    spec = value.spec
    return spec.name if isinstance(spec, LiteTensorSpec) and spec.name is not None else value.name


_PARAMETERS = ("scale", "zero_point", "axis", "low", "high", "custom")


def detailed(spec: TensorSpec, details: Mapping[str, Any]) -> LiteTensorSpec:
    """Return a type with the attributes that graph text adds to it. Raises ValueError for one that is not known."""
    left = dict(details)
    parameters = {name: left.pop(name) for name in _PARAMETERS if name in left}
    if "blocks" in left:
        parameters["blocks"] = BlockwiseScales(*left.pop("blocks"))
    sparsity, sizes = left.pop("sparsity", None), left.pop("sizes", None)
    name, is_variable = left.pop("name", None), left.pop("variable", False)
    if left:
        raise ValueError(f"types of the lite dialect have no {', '.join(left)}")
    return LiteTensorSpec(
        spec.shape,
        spec.dtype,
        name,
        quantization=Quantization(**parameters) if parameters else None,
        is_variable=bool(is_variable),
        sparsity=None if sparsity is None else Sparsity(*sparsity),
        sizes=sizes,
    )


BY_BLOCK = ("BlockwiseQuantization", "MultiAxisQuantization")

Stored = Callable[[int], tuple[np.ndarray, str]]
"""Returns the elements and the name of a constant tensor, by its number."""


def spec_of(table: Any, constant: bool, stored: Stored, name: str | None = None) -> TensorSpec:
    """Return the type of a tensor. constant: whether it has elements. stored: of the tensors of its scales.

    name: of the value that it becomes, None for none.
    raises UnimplementedError for element types and quantization that are not known here
    """
    shape, signature = ints(table.shape), ints(table.shape_signature)
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
        types.dtype_of(table.type.name, file_name),
        file_name if file_name != name else None,
        _quantization(table, stored),
        bool(table.is_variable),
        _sparsity(table.sparsity),
        sizes,
    )
    return spec if spec.details else TensorSpec(spec.shape, spec.dtype)


def tensor_of(spec: TensorSpec) -> objects.TableObject:
    """Return the table of a tensor of this type, without its name and the tensors of scales by block.

    raises InvalidArgumentError for an element type that files do not have
    """
    dims = spec.shape.dims
    tensor = objects.Tensor(type=schema.enum("TensorType")[types.name_of(spec.dtype)], has_rank=dims is not None)
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


def contents_of(array: np.ndarray, spec: TensorSpec) -> np.ndarray:
    """Return a constant's bytes as files have them: little-endian, types below a byte packed, strings packed.

    returns uint8[bytes]; of an array whose elements are not in order, such as a transposed one, a view uint8[..., bytes
    of an element], which `format.objects.in_order` copies when it is written
    """
    if spec.dtype is dtypes.string:
        return np.frombuffer(pack_strings(list(array.reshape(-1))), np.uint8)
    if (bits := PACKED.get(types.name_of(spec.dtype))) is not None:
        return pack_elements(array, bits)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if not array.flags.c_contiguous:
        return array[..., None].view(np.uint8)
    return array.reshape(-1).view(np.uint8)


def tensors_of_scales(table: Any) -> list[int]:
    """Return the numbers of the tensors that hold a tensor's scales and zero points by block."""
    details = None if table.quantization is None else table.quantization.details
    if details is None or details.table_name not in BY_BLOCK:
        return []
    return [int(i) for i in (details.scales, details.zero_points) if i >= 0]


def blocks_table(blocks: BlockwiseScales, scales: int, zero_points: int) -> objects.TableObject:
    """Return the table of scales by block, which names the tensors that hold them; -1 for none."""
    if not blocks.axes:
        return objects.BlockwiseQuantization(scales=scales, zero_points=zero_points, block_size=blocks.size)
    return objects.MultiAxisQuantization(
        scales=scales,
        zero_points=zero_points,
        block_size=blocks.size,
        quantized_dimensions=np.array(blocks.axes, np.int32),
    )


def ints(vector: Any) -> list[int]:
    """Return the numbers of a vector of a file."""
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
        axes = tuple(ints(getattr(details, "quantized_dimensions", ())))
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
    return Sparsity(tuple(ints(table.traversal_order)), tuple(ints(table.block_map)), tuple(levels))


def _sparsity_table(sparsity: Sparsity) -> objects.TableObject:
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
