"""Example messages as tensors: `parse_example`, `parse_single_example`, `parse_sequence_example`.

Not here: configurations and columns of features (example_columns.py), messages as Python objects (messages.py), fields
and their bytes (core/protobuf_wire.py).

A message is read once, into arrays by name; then each requested feature becomes a tensor. Features with any number of
values per example become padded, sparse or ragged tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.protobuf_wire import BYTES, fields
from ..core.specs import TensorSpec
from ..eager.python_functions import call_on_arrays
from .example_columns import (
    Column,
    FixedLenFeature,
    PackedColumn,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    damaged,
    entries,
    location,
    message_fields,
    read_feature,
)
from .host_calls import scalar, string_operand


def _read_example(data: bytes) -> dict[bytes, bytes]:
    """Return the serialized features of an Example by name."""
    return entries(message_fields(data).get(1, b""))


# ---- functions -------------------------------------------------------------------------------------------------------


def _columns(op: str, features: Any) -> list[Column]:
    packed = (VarLenFeature, SparseFeature, RaggedFeature)
    return [
        (PackedColumn if isinstance(features[name], packed) else Column)(op, name, features[name])
        for name in sorted(features)
    ]


def _values(columns: Sequence[Column], tensors: Iterator[Any], single: bool) -> dict[str, Any]:
    """Return the values of columns by name, of their tensors in order."""
    return {c.name: c.value([next(tensors) for _ in c.specs(*() if single else (None,))], single) for c in columns}


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Return the features of one Example as tensors by name.

    serialized: the message's bytes, a string of shape (). features: by name
    returns for FixedLenFeature a tensor of its shape, for FixedLenSequenceFeature one of [rows, *shape], for
    VarLenFeature and SparseFeature a SparseTensor, for RaggedFeature a vector
    raises InvalidArgumentError for damaged bytes, features that are missing, of another dtype or size; ValueError for
    no features

    >>> example = ow.train.Example()
    >>> example.features.feature["age"].int64_list.value.append(37)
    >>> ow.io.parse_single_example(example.SerializeToString(), {"age": ow.io.FixedLenFeature([], ow.int64)})
    {'age': <tf.Tensor: shape=(), dtype=int64, numpy=37>}
    """
    op = "io.parse_single_example"
    if not features:
        raise ValueError("Invalid argument: features cannot be None or empty.")
    columns = _columns(op, features)
    operand = string_operand(serialized, op, 0)

    def read(array: np.ndarray) -> list[np.ndarray]:
        record = _read_example(scalar(array, op))
        return [part for column in columns for part in column.arrays([record], [""], True)]

    specs = [spec for column in columns for spec in column.specs()]
    return _values(columns, iter(call_on_arrays(read, [operand], specs, name)), True)


def parse_example(
    serialized: Any, features: Mapping[str, Any], example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Return the features of Examples as tensors by name, each with the batch as first dimension.

    serialized: strings[batch], or one string of shape () for `parse_single_example`. features: by name;
    rows of FixedLenSequenceFeature are padded to the longest example, VarLenFeature and SparseFeature are
    SparseTensors, RaggedFeature is a RaggedTensor. example_names: names for errors.
    raises InvalidArgumentError for damaged bytes, features that are missing, of another dtype or size; ValueError for
    no features
    """
    op = "io.parse_example"
    if not features:
        raise ValueError("Missing: features was None or empty.")
    operand = string_operand(serialized, op)
    if operand.shape.rank == 0:
        return parse_single_example(operand, features, example_names, name)
    columns = _columns(op, features)

    def read(array: np.ndarray) -> list[np.ndarray]:
        if array.ndim != 1:
            raise InvalidArgumentError(op=op, what="serialized must have rank 0 or 1", found=f"shape {array.shape}")
        records = [_read_example(data) for data in array.tolist()]
        where = [location(example_names, i) for i in range(len(records))]
        return [part for column in columns for part in column.arrays(records, where, False)]

    size = operand.shape[0] if operand.shape.rank == 1 else None
    specs = [spec for column in columns for spec in column.specs(size)]
    return _values(columns, iter(call_on_arrays(read, [operand], specs, name)), False)


class _Step(Column):
    """One requested feature list: rows are the features of steps."""

    def rows(self, record: Mapping[bytes, Any], where: str) -> np.ndarray:
        """Return [steps, *shape] of one message. Raises InvalidArgumentError for a step of another size or dtype."""
        entry = record.get(self.key)
        if entry is None:
            if self.required:
                what = f"{where}Feature list '{self.name}' is required but could not be found."
                raise InvalidArgumentError(op=self.op, what=what, do="allow_missing=True")
            return np.zeros((0, *self.shape), self.dtype.np)
        steps: list[np.ndarray] = []
        for number, wire, value in fields(entry, damaged):
            if number != 1 or wire != BYTES:
                continue
            kind, values = read_feature(value)
            if kind is not self.dtype:
                raise self.mismatch(where, kind) if kind is not None else damaged(f"{self.name!r} has an empty step")
            if len(values) != self.size:
                what = (
                    f"{where}Feature list: {self.name}, Index: {len(steps)}.  Number of {self.dtype.name} values != "
                    f"expected.  values size: {len(values)} but output shape: {list(self.shape)}"
                )
                raise InvalidArgumentError(op=self.op, what=what)
            steps.append(values.reshape(self.shape))
        return np.stack(steps) if steps else np.zeros((0, *self.shape), self.dtype.np)


def _steps(op: str, features: Any) -> list[_Step]:
    for name, feature in features.items():
        if type(feature) is FixedLenFeature:
            raise ValueError(f"{op}: feature list {name!r} is a FixedLenFeature; use FixedLenSequenceFeature")
    return [_Step(op, name, features[name], True) for name in sorted(features)]


def _read_sequence(data: bytes) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """Return the serialized context features and feature lists of a SequenceExample by name."""
    parts = message_fields(data)
    return entries(parts.get(1, b"")), entries(parts.get(2, b""))


def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the context and the sequences of one SequenceExample, as tensors by name.

    serialized: the message's bytes, a string of shape (). context_features: as of `parse_single_example`.
    sequence_features: FixedLenSequenceFeature by name: tensors of [steps, *shape]
    raises InvalidArgumentError for damaged bytes and features that do not match, ValueError for no features
    """
    op = "io.parse_single_sequence_example"
    context, steps = _columns(op, context_features or {}), _steps(op, sequence_features or {})
    if not context and not steps:
        raise ValueError("Missing features.")

    def read(array: np.ndarray) -> list[np.ndarray]:
        record, lists = _read_sequence(scalar(array, op))
        rows = [part for column in context for part in column.arrays([record], [""], True)]
        return rows + [step.rows(lists, "") for step in steps]

    specs = [spec for column in (*context, *steps) for spec in column.specs()]
    tensors = iter(call_on_arrays(read, [string_operand(serialized, op, 0)], specs, name))
    return _values(context, tensors, True), {s.name: next(tensors) for s in steps}


def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the context, the sequences and their lengths of SequenceExamples, as tensors by name.

    serialized: strings[batch]. context_features: as of `parse_example`. sequence_features: FixedLenSequenceFeature by
    name: tensors of [batch, steps, *shape], padded to the longest; lengths are int64[batch]
    raises InvalidArgumentError for damaged bytes and features that do not match, ValueError for no features
    """
    op = "io.parse_sequence_example"
    context, steps = _columns(op, context_features or {}), _steps(op, sequence_features or {})
    if not context and not steps:
        raise ValueError("Missing features.")
    operand = string_operand(serialized, op, 1)

    def read(array: np.ndarray) -> list[np.ndarray]:
        if array.ndim != 1:
            raise InvalidArgumentError(op=op, what="serialized must have rank 1", found=f"shape {array.shape}")
        records = [_read_sequence(data) for data in array.tolist()]
        where = [location(example_names, i) for i in range(len(records))]
        contexts = [record for record, _ in records]
        result = [part for column in context for part in column.arrays(contexts, where, False)]
        lengths = []
        for step in steps:
            rows = [step.rows(lists, w) for (_, lists), w in zip(records, where)]
            result.append(step.batch(rows))
            lengths.append(np.array([len(row) for row in rows], np.int64))
        return result + lengths

    size = operand.shape[0] if operand.shape.rank == 1 else None
    specs = [spec for column in (*context, *steps) for spec in column.specs(size)]
    specs += [TensorSpec([size], dtypes.int64) for _ in steps]
    tensors = iter(call_on_arrays(read, [operand], specs, name))
    return (
        _values(context, tensors, False),
        {s.name: next(tensors) for s in steps},
        {s.name: next(tensors) for s in steps},
    )
