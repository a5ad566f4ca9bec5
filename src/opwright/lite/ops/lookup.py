"""Rows of tables looked up: EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE, HASHTABLE_LOOKUP, LSH_PROJECTION.

Lives here: operators that find by key or id, and the hash of LSH_PROJECTION.
Not here: GATHER (slices.py), hash tables that are resources (state.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, int32, string, uint8
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ...ops.strings.fingerprints import prefixed_fingerprints64
from ..format import pack_strings
from . import types
from .definition import LiteDefinition, lite_operator
from .shapes import fixed, ints, product, refuse, same, spec, text, unknown


def _rows_of(op: Any) -> tuple[Any, ...] | None:
    """Return the sizes of a table of at least two dimensions, None if unknown."""
    dims = op.value.spec.shape.dims
    if dims is not None and len(dims) < 2:
        raise refuse("the table is not a list of rows", found=text(dims), wanted="two dimensions or more")
    result: tuple[Any, ...] | None = dims
    return result


def _check_ids(ids: Any, rows: int) -> None:
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < rows:
        raise refuse("index out of bounds", found=f"{int(ids.min())} to {int(ids.max())}", wanted=f"0 to {rows - 1}")


@lite_operator("EMBEDDING_LOOKUP")
class EmbeddingLookupOp(LiteDefinition):
    """Rows of a table by number; of a quantized table as integers, or as the real numbers that they represent.

    .. math:: y_i = value_{lookup_i}
    """

    lookup = Input((int32,), rank=1)
    value = Input(types.FIXED)
    y = Output(like="value")
    hybrid = "hybrid.embedding_lookup"
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims, ids = _rows_of(op), fixed(op.lookup)
        if dims is None:
            return TensorSpec(UNKNOWN, op.value.spec.dtype)
        if ids is not None and dims[0] is not None:
            _check_ids(ids, dims[0])
        return spec((op.lookup.spec.shape[0], *dims[1:]), op.value.spec.dtype)

    def compute(op: Any, lookup: np.ndarray, value: np.ndarray) -> np.ndarray:
        _check_ids(lookup, len(value))
        result: np.ndarray = value[lookup]
        return result


@lite_operator("EMBEDDING_LOOKUP_SPARSE")
class EmbeddingLookupSparseOp(LiteDefinition):
    """Weighted sums of rows of a table: for each place of a sparse tensor of ids without its last dimension.

    .. math:: y_{p} = \\sum_{i: indices_i = (p, *)} weights_i\\, value_{ids_i}

    MEAN divides by the sum of the weights, SQRTN by the root of the sum of their squares.
    ids: int32 [n]; indices: int32 [n, rank], equal places one after the other; dense_shape: int32 [rank];
    weights: float32 [n]; value: [rows, ...]
    """

    ids = Input((int32,), rank=1)
    indices = Input((int32,), rank=2)
    dense_shape = Input((int32,), rank=1)
    weights = Input((float32,), rank=1)
    value = Input((float32,))
    y = Output(dtype=float32)

    def infer(op: Any) -> TensorSpec:
        dims, sizes = _rows_of(op), ints(op.dense_shape)
        n, rank = op.indices.spec.shape[0], op.indices.spec.shape[1]
        if not same(n, op.ids.spec.shape[0], op.weights.spec.shape[0]):
            raise refuse(
                "ids, indices and weights differ in number",
                found=[i.spec.short() for i in (op.ids, op.indices, op.weights)],
                wanted="one weight and one row of indices for each id",
            )
        if not same(rank, op.dense_shape.spec.shape[0]) or rank == 0:
            raise refuse(
                "the indices do not fit dense_shape",
                found=[op.indices.spec.short(), op.dense_shape.spec.short()],
                wanted="indices [ids, rank] and a dense_shape of rank numbers",
            )
        if sizes is not None and min(sizes) < 0:
            raise refuse("dense_shape has a negative size", found=sizes, wanted="sizes of at least 0")
        rank = rank if rank is not None else op.dense_shape.spec.shape[0]
        if dims is None or rank is None:
            return TensorSpec(UNKNOWN, float32)
        return spec((*(sizes[:-1] if sizes is not None else unknown(rank - 1)), *dims[1:]), float32)

    def compute(
        op: Any, ids: np.ndarray, indices: np.ndarray, dense_shape: np.ndarray, weights: np.ndarray, value: np.ndarray
    ) -> np.ndarray:
        sizes = [int(d) for d in dense_shape[:-1]]
        _check_ids(ids, len(value))
        rows = indices[:, :-1]
        if np.any(rows < 0) or np.any(rows >= np.array(sizes, np.int32)):
            raise refuse("an index is out of range", found=rows.max(), wanted=f"within {sizes}")
        y = np.zeros((int(np.prod(sizes, dtype=np.int64)), *value.shape[1:]), np.float32)
        if not len(ids):
            return y.reshape(*sizes, *value.shape[1:])
        bucket = np.ravel_multi_index(tuple(rows.T), sizes) if sizes else np.zeros(len(ids), np.int64)
        column = (-1,) + (1,) * (value.ndim - 1)
        np.add.at(y, bucket, value[ids] * weights.reshape(column))
        if op.combiner != "SUM":
            total = np.zeros(len(y), np.float32)
            np.add.at(total, bucket, weights if op.combiner == "MEAN" else np.square(weights))
            used = np.zeros(len(y), bool)
            used[bucket] = True
            y[used] /= (total if op.combiner == "MEAN" else np.sqrt(total))[used].reshape(column)
        return y.reshape(*sizes, *value.shape[1:])


@lite_operator("HASHTABLE_LOOKUP")
class HashtableLookupOp(LiteDefinition):
    """The value of each key of a table, and whether it is present; zeros for missing keys.

    lookup: int32 [n]; key: int32 [rows], sorted; value: [rows, ...]; hits: uint8 [n]
    """

    lookup = Input((int32,), rank=1)
    key = Input((int32,), rank=1)
    value = Input(types.ANY)
    y = Output(like="value")
    hits = Output(dtype=uint8)
    moves = True

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
        dims, n = op.value.spec.shape.dims, op.lookup.spec.shape[0]
        if dims is None:
            return TensorSpec(UNKNOWN, op.value.spec.dtype), spec((n,), uint8)
        if not dims or not same(dims[0], op.key.spec.shape[0]):
            raise refuse(
                "there is not one value for each key",
                found={"key": op.key.spec.short(), "value": op.value.spec.short()},
                wanted="key [keys], and value.shape[0] == keys",
            )
        if op.value.spec.dtype is string and len(dims) != 1:
            raise refuse("strings are looked up one at a time", found=op.value.spec.short(), wanted="rank 1")
        return spec((n, *dims[1:]), op.value.spec.dtype), spec((n,), uint8)

    def compute(op: Any, lookup: np.ndarray, key: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        empty = np.full((len(lookup), *value.shape[1:]), b"" if value.dtype.kind == "O" else 0, value.dtype)
        if not len(key):
            return empty, np.zeros(len(lookup), np.uint8)
        indices = np.minimum(np.searchsorted(key, lookup), len(key) - 1)
        hit = key[indices] == lookup
        empty[hit] = value[indices[hit]]
        return empty, hit.astype(np.uint8)


@lite_operator("LSH_PROJECTION")
class LshProjectionOp(LiteDefinition):
    """Bits of a tensor's rows by locality-sensitive hashing: each the sign of a sum of random numbers.

    .. math:: bit_{ij} = [\\sum_r weight_r \\operatorname{fingerprint}(hash_{ij}, x_r) > 0]

    hash: float32 [functions, bits], bits at most 32; x: [rows, ...]; weight: float32 [rows]. DENSE gives the bits,
    int32 [functions * bits]; SPARSE a number of them for each function i, plus i 2^bits, int32 [functions].
    """

    hash = Input((float32,), rank=2)
    x = Input(types.ANY)
    weight = Input((float32,), optional=True)
    y = Output(dtype=int32)

    def infer(op: Any) -> TensorSpec:
        functions, bits = op.hash.spec.shape.dims or (None, None)
        if op.type not in ("SPARSE", "DENSE"):
            raise refuse("the type of projection is not known", found=op.type, wanted="SPARSE or DENSE")
        if bits is not None and bits > 32:
            raise refuse("a hash function gives more than 32 bits", found=bits, wanted="at most 32")
        dims = op.x.spec.shape.dims
        if dims is not None and not dims:
            raise refuse("the input is a scalar", wanted="at least one dimension")
        if op.weight is not None and (
            op.weight.spec.shape.rank not in (None, 1)
            or (dims is not None and not same(dims[0], product(op.weight.spec.shape.dims or (None,))))
        ):
            raise refuse(
                "there is not one weight for each row",
                found={"x": op.x.spec.short(), "weight": op.weight.spec.short()},
                wanted="weight [x.shape[0]]",
            )
        return spec((functions if op.type == "SPARSE" else product((functions, bits)),), int32)

    def compute(op: Any, hash: np.ndarray, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        bits = _signs(hash.reshape(-1), _bytes_of_rows(x), weight).reshape(hash.shape)
        if op.type == "DENSE":
            return bits.reshape(-1).astype(np.int32)
        powers = np.left_shift(np.int64(1), np.arange(hash.shape[1])[::-1])
        numbers = (bits * powers).sum(1) + np.arange(len(hash)) * (1 << hash.shape[1])
        result: np.ndarray = (numbers & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
        return result


_HASHES = 1 << 14
"""Hashes that are computed at once: the temporary arrays stay in the processor's cache."""


def _bytes_of_rows(x: np.ndarray) -> np.ndarray:
    """Return the bytes of each row, uint8[rows, bytes]; strings as the official kernel sees them: packed as in a file,
    and cut into equal parts."""
    if x.dtype == object:
        packed = pack_strings(x.reshape(-1).tolist())
        size = len(packed) // max(len(x), 1)
        return np.frombuffer(packed, np.uint8, len(x) * size).reshape(len(x), size)
    return np.frombuffer(np.ascontiguousarray(x).tobytes(), np.uint8).reshape(len(x), x[:1].nbytes)


def _signs(seeds: np.ndarray, rows: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return for each seed whether the weighted sum of the rows' hashes, as signed numbers, is positive: int64.

    Sums are accumulated in the order of rows, as by the official kernel.
    """
    totals = np.zeros((len(seeds), 1))
    prefixes = np.ascontiguousarray(seeds, np.float32).view(np.uint8).reshape(-1, 4)
    for start in range(0, len(rows), _HASHES):
        part = rows[start : start + _HASHES]
        step = max(_HASHES // len(part), 1)
        for first in range(0, len(seeds), step):
            block = slice(first, first + step)
            signed = prefixed_fingerprints64(prefixes[block], part).view(np.int64).astype(np.float64)
            if weight is not None:
                signed *= weight[start : start + _HASHES].astype(np.float64)
            totals[block] = np.cumsum(np.concatenate([totals[block], signed], 1), 1)[:, -1:]
    return (totals[:, 0] > 0).astype(np.int64)
