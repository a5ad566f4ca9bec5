"""Features of Example messages as columns: their configuration, checks and values.

Lives here: the configuration classes of features; columns of any values, and of packed numbers. Not here: parsing of
messages to tensors (examples.py), fields and their bytes (core/protobuf_wire.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, as_dtype
from ..core.errors import InvalidArgumentError, UnimplementedError
from ..core.protobuf_wire import BYTES, FIXED32, VARINT, fields, packed_varints, signed
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..ops.ragged import RaggedTensor
from ..ops.sparse.sparse_tensor import SparseTensor


class FixedLenFeature(NamedTuple):
    """A feature of a fixed number of values. shape: of its tensor in one example. dtype: float32, int64 or string.

    default_value: the tensor of examples without the feature; without one, they are errors.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of rows of a fixed shape; rows are padded to the longest example of a batch.

    shape: of one row. dtype: float32, int64 or string. allow_missing: whether examples may lack it; `parse_example`
    requires it. default_value: the scalar of padding, 0 or "" by default.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of any number of values, as a sparse tensor: parsing it raises UnimplementedError."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A SparseTensor in features of positions, of each axis, and of values. size: of each axis."""

    index_key: Any
    value_key: Any
    dtype: Any
    size: Any
    already_sorted: bool = False


class RaggedFeature(NamedTuple):
    """Any number of values: a vector of one example, a RaggedTensor of a batch. value_key: the feature's name."""

    dtype: Any
    value_key: Any = None
    partitions: Any = ()
    row_splits_dtype: Any = dtypes.int32
    validate: bool = False


def _unsupported(op: str, name: str, feature: Any) -> NoReturn:
    kind = type(feature).__name__
    if kind not in ("VarLenFeature", "SparseFeature", "RaggedFeature"):
        raise InvalidArgumentError(op=op, what=f"Unsupported {kind} {feature!r} for feature {name!r}")
    raise UnimplementedError(
        op=op,
        what=f"feature {name!r} of a sequence is {kind}, whose steps would have different lengths",
        do=f"FixedLenSequenceFeature([], {getattr(feature.dtype, 'name', feature.dtype)}, allow_missing=True), "
        "a padded tensor",
    )


class Column:
    """One requested feature, checked: its row shape, dtype and values for what is absent."""

    def __init__(self, op: str, name: str, feature: Any, is_list: bool = False) -> None:
        if type(feature) not in (FixedLenFeature, FixedLenSequenceFeature):
            _unsupported(op, name, feature)
        self.op, self.name, self.sequence = op, name, type(feature) is FixedLenSequenceFeature
        self.key = name.encode()
        self.dtype = as_dtype(feature.dtype)
        if self.dtype not in _KINDS:
            wanted = ", ".join(d.name for d in _KINDS)
            raise InvalidArgumentError(
                op=op, what=f"feature {name!r} has a dtype that no Example holds", found=self.dtype.name, wanted=wanted
            )
        shape = TensorShape(feature.shape)
        if not shape.is_fully_defined():
            raise ValueError(
                f"{op}: the shape of feature {name!r} is not fully defined: {feature.shape!r}. Use "
                "FixedLenSequenceFeature for any number of rows"
            )
        self.shape: tuple[int, ...] = tuple(size or 0 for size in shape.as_list())
        self.size = math.prod(self.shape)
        self.required = not feature.allow_missing if self.sequence else feature.default_value is None
        if self.sequence and not is_list and not feature.allow_missing:
            raise ValueError(f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True ({name!r}).")
        default = b"" if self.dtype is dtypes.string else 0
        if feature.default_value is not None:
            default = feature.default_value
        self.default = self._default_array(default)

    def _default_array(self, value: Any) -> np.ndarray:
        if isinstance(value, str):
            value = value.encode()
        array = np.array(value, object if self.dtype is dtypes.string else self.dtype.np)
        if self.dtype is dtypes.string:
            encode = np.frompyfunc(lambda v: v.encode() if isinstance(v, str) else v, 1, 1)
            array = np.asarray(encode(array), object)
        if self.sequence or self.required:
            if array.ndim:
                raise ValueError(f"{self.op}: default_value of feature {self.name!r} must be a scalar")
            return array
        if array.ndim and array.shape != self.shape:
            raise ValueError(
                f"{self.op}: default_value of feature {self.name!r} has shape {array.shape}, not {self.shape}"
            )
        return np.broadcast_to(array, self.shape)

    def values(self, record: Mapping[bytes, Any], where: str) -> np.ndarray | None:
        """Return the flat values in one example, None if absent. Raises InvalidArgumentError for another dtype."""
        entry = record.get(self.key)
        kind, values = (None, None) if entry is None else read_feature(entry)
        if kind is None:
            if self.required:
                what = f"{where}Feature: {self.name} (data type: {self.dtype.name}) is required but could not be found."
                raise InvalidArgumentError(op=self.op, what=what)
            return None
        if kind is not self.dtype:
            raise self.mismatch(where, kind)
        flat: np.ndarray = np.asarray(values)
        return flat

    def mismatch(self, where: str, kind: DType) -> InvalidArgumentError:
        """Return the error of values of another dtype."""
        return InvalidArgumentError(
            op=self.op,
            what=f"{where}Key: {self.name}.  Data types don't match. Data type: {kind.name} but expected type: "
            f"{self.dtype.name}",
        )

    def row(self, values: np.ndarray | None, where: str) -> np.ndarray:
        """Return the tensor of one example. Raises InvalidArgumentError for another number of values."""
        if self.sequence:
            if values is None:
                return np.zeros((0, *self.shape), self.dtype.np)
            if len(values) % max(self.size, 1) or (not self.size and len(values)):
                raise InvalidArgumentError(
                    op=self.op,
                    what=f"{where}Key: {self.name}.  Number of {self.dtype.name} values is not a multiple of stride "
                    f"length. Saw {len(values)} values but output shape is: {[None, *self.shape]}",
                )
            return values.reshape(len(values) // max(self.size, 1), *self.shape)
        if values is None:
            return self.default
        if len(values) != self.size:
            raise InvalidArgumentError(
                op=self.op,
                what=f"{where}Key: {self.name}.  Number of {self.dtype.name} values != expected.  Values size: "
                f"{len(values)} but output shape: {list(self.shape)}",
            )
        return values.reshape(self.shape)

    def batch(self, rows: list[np.ndarray]) -> np.ndarray:
        """Return the tensor of a batch, padded to its longest example."""
        if not self.sequence:
            return np.stack(rows) if rows else np.zeros((0, *self.shape), self.dtype.np)
        longest = max(map(len, rows), default=0)
        result = np.full((len(rows), longest, *self.shape), self.default[()], self.dtype.np)
        for i, row in enumerate(rows):
            result[i, : len(row)] = row
        return result

    def spec(self, *batch: int | None) -> TensorSpec:
        """Return the type of its tensor. batch: the sizes before it."""
        inner = (None, *self.shape) if self.sequence else self.shape
        return TensorSpec([*batch, *inner], self.dtype)

    # Columns of one and of several tensors share the types of the arrays of an example or batch, the arrays of
    # its records, and the value that its tensors make.

    def specs(self, *batch: int | None) -> list[TensorSpec]:
        """Return the types of its tensors."""
        return [self.spec(*batch)]

    def arrays(self, records: Sequence[Mapping[bytes, Any]], where: Sequence[str], single: bool) -> list[np.ndarray]:
        """Return its tensors of a batch of records, or of a single one."""
        rows = [self.row(self.values(record, place), place) for record, place in zip(records, where)]
        return rows if single else [self.batch(rows)]

    def value(self, tensors: list[Any], single: bool) -> Any:
        """Return the value of its tensors."""
        return tensors[0]


class PackedColumn(Column):
    """One requested feature with any number of values in each example: VarLenFeature, SparseFeature, RaggedFeature."""

    def __init__(self, op: str, name: str, feature: Any) -> None:
        key = getattr(feature, "value_key", None) or name
        super().__init__(op, key, FixedLenSequenceFeature([], feature.dtype, allow_missing=True))
        self.name, self.feature = name, feature
        self.is_ragged, self.is_sparse = isinstance(feature, RaggedFeature), isinstance(feature, SparseFeature)
        if self.is_ragged and feature.partitions:
            raise UnimplementedError(op=op, what=f"feature {name!r} has partitions", wanted="partitions=()")
        self.axes: list[Column] = []
        self.sizes: list[int] = []
        if self.is_sparse:
            several = isinstance(feature.index_key, (list, tuple))
            keys = list(feature.index_key) if several else [feature.index_key]
            self.sizes = [int(n) for n in (feature.size if several else [feature.size])]
            index = FixedLenSequenceFeature([], dtypes.int64, allow_missing=True)
            self.axes = [Column(op, axis, index) for axis in keys]

    def specs(self, *batch: int | None) -> list[TensorSpec]:
        """Return the types of values, and of row splits or of positions and dense shape."""
        values = TensorSpec([None], self.dtype)
        if self.is_ragged:
            return [values] if not batch else [values, TensorSpec([None], dtypes.int64)]
        rank = len(batch) + max(len(self.sizes), 1)
        return [values, TensorSpec([None, rank], dtypes.int64), TensorSpec([rank], dtypes.int64)]

    def arrays(self, records: Sequence[Mapping[bytes, Any]], where: Sequence[str], single: bool) -> list[np.ndarray]:
        """Return values, and row splits or positions and dense shape."""
        rows, places = [], []
        for i, (record, place) in enumerate(zip(records, where)):
            row = self.row(self.values(record, place), place)
            positions = self._positions(record, place, row)
            if self.is_sparse and not self.feature.already_sorted:
                order = np.lexsort(positions.T[::-1])
                row, positions = row[order], positions[order]
            rows.append(row)
            places.append(positions if single else np.insert(positions, 0, i, axis=1))
        values = np.concatenate(rows) if rows else np.zeros(0, self.dtype.np)
        lengths = np.array([len(row) for row in rows], np.int64)
        if self.is_ragged:
            return [values] if single else [values, np.append(0, np.cumsum(lengths)).astype(np.int64)]
        shape = [*([] if single else [len(rows)]), *(self.sizes or [int(lengths.max(initial=0))])]
        rank = len(shape)
        return [values, np.concatenate([np.zeros((0, rank), np.int64), *places]), np.array(shape, np.int64)]

    def _positions(self, record: Mapping[bytes, Any], where: str, row: np.ndarray) -> np.ndarray:
        """Return the positions of the values of one example, int64 [n, rank]. Raises InvalidArgumentError."""
        if not self.is_sparse:
            return np.arange(len(row), dtype=np.int64).reshape(-1, 1)
        axes = [axis.row(axis.values(record, where), where) for axis in self.axes]
        for axis, size, positions in zip(self.axes, self.sizes, axes):
            if len(positions) != len(row):
                what = f"{where}Feature {self.name!r} has {len(row)} values and {len(positions)} of {axis.name!r}"
                raise InvalidArgumentError(op=self.op, what=what)
            if len(positions) and not 0 <= positions.min() <= positions.max() < size:
                what = f"{where}Feature {axis.name!r} has a position outside of [0, {size})"
                raise InvalidArgumentError(op=self.op, what=what)
        return np.stack(axes, 1)

    def value(self, tensors: list[Any], single: bool) -> Any:
        """Return the sparse or ragged tensor."""
        if self.is_ragged:
            return tensors[0] if single else RaggedTensor.of(tensors[0], tensors[1:])
        values, indices, shape = tensors
        inner: list[int | None] = [*self.sizes] or [None]
        known = inner if single else [None, *inner]
        return SparseTensor.of(indices, values, shape, TensorShape(known))


# ---- messages --------------------------------------------------------------------------------------------------------
_KINDS = {dtypes.float32: 2, dtypes.int64: 3, dtypes.string: 1}

_DTYPES = {number: dtype for dtype, number in _KINDS.items()}


def damaged(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(op="io.parse_example", what=f"Could not parse example input: {what}")


def entries(data: bytes) -> dict[bytes, bytes]:
    """Return the entries of a map of messages; of equal keys the last."""
    result = {}
    for number, wire, value in fields(data, damaged):
        if number == 1 and wire == BYTES:
            name = item = b""
            for inner, inner_wire, part in fields(value, damaged):
                if inner_wire == BYTES:
                    if inner == 1:
                        name = part
                    elif inner == 2:
                        item = part
            result[name] = item
    return result


def message_fields(data: bytes) -> dict[int, bytes]:
    """Return the bytes of the message fields; occurrences of one field are one message, as bytes joined."""
    result: dict[int, bytes] = {}
    for number, wire, value in fields(data, damaged):
        if wire == BYTES:
            result[number] = result[number] + value if number in result else value
    return result


def read_feature(data: bytes) -> tuple[DType | None, Any]:
    """Return dtype and flat values of a Feature; None if no kind is set."""
    number, content = 0, b""
    for field, wire, value in fields(data, damaged):
        if field in _DTYPES and wire == BYTES:
            number, content = field, content + value if field == number else value
    if not number:
        return None, None
    dtype, parts = _DTYPES[number], []
    for field, wire, value in fields(content, damaged):
        if field != 1:
            continue
        if dtype is dtypes.string and wire == BYTES:
            parts.append(value)
        elif dtype is dtypes.int64 and wire in (BYTES, VARINT):
            parts.append(packed_varints(value, damaged) if wire == BYTES else np.array([signed(value)], np.int64))
        elif dtype is dtypes.float32 and wire in (BYTES, FIXED32) and not len(value) % 4:
            parts.append(np.frombuffer(value, "<f4"))
        else:
            raise damaged(f"a list of {dtype.name} has a value of wire type {wire}")
    if dtype is dtypes.string:
        return dtype, np.fromiter(parts, object, len(parts))
    if len(parts) == 1:
        return dtype, parts[0]
    return dtype, np.concatenate(parts) if parts else np.zeros(0, dtype.np)


def location(names: Any, i: int) -> str:
    return f"Name: {names[i] if names is not None else '<unknown>'}, Index: {i}. "
