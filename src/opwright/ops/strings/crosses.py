"""Crosses of features: every combination of one value of each feature in a row, as a string or a hash.

Lives here: `cross` and `cross_hashed` of sparse and of ragged tensors, fingerprints of features.
Not here: the layer that crosses one value of each feature (nn/layers/categories.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from .. import array, bitwise, debugging, dispatch, math
from ..ragged.ragged_tensor import RaggedTensor
from ..ragged.row_partitions import row_ids, splits_of
from ..sparse.sparse_tensor import SparseTensor
from ..tensor import Tensor
from .conversion import MURMUR_FACTOR, MURMUR_SEED, as_string, to_hash_bucket_fast
from .elementwise import join

CROSS_KEY = MURMUR_SEED
"""The hash that crosses start with by default, TensorFlow's."""
int64, uint64 = dtypes.int64, dtypes.uint64


class _Rows(NamedTuple):
    """The values of a feature by row: row i has values[splits[i] : splits[i + 1]]."""

    values: Any
    splits: Any


def fingerprints(values: Tensor) -> Tensor:
    """Return FarmHash's fingerprint of strings as uint64; integers are their own."""
    if values.dtype is not dtypes.string:
        return array.cast(array.cast(values, int64), uint64)
    low = array.cast(to_hash_bucket_fast(values, 1 << 63), uint64)
    # A remainder of 63 bits is an int64. The highest bit shows in the remainder by 3, where 2^63 counts as 2.
    remainder = array.cast(to_hash_bucket_fast(values, 3), uint64)
    top = array.where(math.equal(low % np.uint64(3), remainder), np.uint64(0), np.uint64(1 << 63))
    return low + top


def joined_fingerprint(first: Any, second: Any) -> Tensor:
    """Return the fingerprint of two, TensorFlow's FingerprintCat64 (after Murmur)."""
    factor: Any = np.uint64(MURMUR_FACTOR)

    def mixed(x: Tensor) -> Tensor:
        return bitwise.bitwise_xor(x, bitwise.right_shift(x, np.uint64(47)))

    x = bitwise.bitwise_xor(bitwise.bitwise_xor(first, factor), mixed(second * factor) * factor)
    return mixed(mixed(x * factor) * factor)


def _rows(feature: Any, number: int, op: str) -> _Rows:
    """Return the rows of a matrix, sparse, ragged or dense. Raises ValueError for another rank or dtype."""
    if not isinstance(feature, (SparseTensor, RaggedTensor)):
        feature = dispatch.to_tensor(feature)
    if feature.dtype is not dtypes.string and not feature.dtype.is_integer:
        raise ValueError(
            f"{op}: Unexpected dtype for inputs[{number}]: strings or integers, found {feature.dtype.name}"
        )
    if feature.shape.rank not in (2, None):
        raise ValueError(f"tf.{op} only supports inputs with rank=2; found shape {feature.shape}")
    if isinstance(feature, RaggedTensor):
        return _Rows(feature.values, feature.row_splits)
    if isinstance(feature, SparseTensor):
        ragged = RaggedTensor.from_value_rowids(feature.values, feature.indices[:, 0], feature.dense_shape[0])
        return _Rows(ragged.values, ragged.row_splits)
    rows, columns = array.unstack(array.shape(feature, int64))
    return _Rows(array.reshape(feature, [-1]), array.range(rows + 1, dtype=int64) * columns)


def _combinations(features: Sequence[_Rows]) -> tuple[list[Any], Any]:
    """Return the value of each feature in every combination, the last one changing fastest, and their row splits."""
    lengths = [rows.splits[1:] - rows.splits[:-1] for rows in features]
    counts = lengths[0]
    for length in lengths[1:]:
        counts = counts * length
    splits = splits_of(counts)
    row = row_ids(splits, splits[-1])
    rest = array.range(splits[-1], dtype=int64) - array.gather(splits, row)
    chosen = []
    for rows, length in zip(reversed(features), reversed(lengths)):
        size = array.gather(length, row)
        chosen.append(array.gather(rows.values, array.gather(rows.splits, row) + rest % size))
        rest = math.floordiv(rest, size)
    return chosen[::-1], splits


def _crossed(inputs: Any, op: str, combine: Any) -> Any:
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise TypeError(f"{op}: Inputs must be a list of features, found {inputs!r}")
    features = [_rows(feature, i, op) for i, feature in enumerate(inputs)]
    for other in features[1:]:
        message = f"{op}: inputs must all have the same batch dimension size"
        debugging.assert_equal(array.size(other.splits), array.size(features[0].splits), message)
    values, splits = _combinations(features)
    return RaggedTensor.from_row_splits(combine(values), splits, validate=False)


def _joined(inputs: Any, op: str, separator: str) -> Any:
    def combine(values: Sequence[Any]) -> Tensor:
        texts: list[Any] = [v if v.dtype is dtypes.string else as_string(v) for v in values]
        joined: Tensor = join(texts, separator)
        return joined

    return _crossed(inputs, op, combine)


def _hashed(inputs: Any, op: str, num_buckets: int, hash_key: int | None) -> Any:
    modulus = np.uint64(num_buckets or int64.max)

    def combine(values: Sequence[Any]) -> Tensor:
        total: Any = dispatch.to_tensor(np.uint64(CROSS_KEY if hash_key is None else hash_key))
        for value in values:
            total = joined_fingerprint(total, fingerprints(value))
        hashes: Tensor = array.cast(total % modulus, int64)
        return hashes

    return _crossed(inputs, op, combine)


def sparse_cross(inputs: Any, name: str | None = None, separator: str | None = None) -> SparseTensor:
    """Return the combinations of the features of each row, joined by a separator: strings [batch, most of a row].

    inputs: matrices, sparse or dense, of strings or integers. separator: "_X_" by default. The last feature changes
    fastest.

    >>> ow.sparse.to_dense(ow.sparse.cross([[["a", "b"]], [["c"]]])).numpy().tolist()
    [[b'a_X_c', b'b_X_c']]
    """
    sparse: SparseTensor = _joined(inputs, "sparse.cross", "_X_" if separator is None else separator).to_sparse()
    return sparse


def sparse_cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """Return hashes of the combinations of the features of each row, in [0, num_buckets), or all of int64 if it is 0.

    inputs: see `cross`. hash_key: where the hash starts. The hashes are TensorFlow's.
    """
    sparse: SparseTensor = _hashed(inputs, "sparse.cross_hashed", num_buckets, hash_key).to_sparse()
    return sparse


def ragged_cross(inputs: Any, name: str | None = None) -> RaggedTensor:
    """Return the combinations of the features of each row, joined by "_X_": a ragged matrix of strings.

    inputs: matrices, ragged, sparse or dense, of strings or integers. The last feature changes fastest.
    """
    ragged: RaggedTensor = _joined(inputs, "ragged.cross", "_X_")
    return ragged


def ragged_cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> RaggedTensor:
    """Return hashes of the combinations of the features of each row, as `sparse.cross_hashed`: a ragged matrix."""
    ragged: RaggedTensor = _hashed(inputs, "ragged.cross_hashed", num_buckets, hash_key)
    return ragged
