"""Searching, sorting and order: ARG_MAX, ARG_MIN, TOPK_V2, UNIQUE, BUCKETIZE, REVERSE_SEQUENCE, SKIP_GRAM.

Lives here: these operators.  Not here: reductions (reduction.py), reversal of whole axes (concatenation.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, float64, int8, int16, int32, int64, string, uint8
from ...core.errors import ResourceExhaustedError
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.array_functions import check_lengths, first_occurrences, reversed_sequences, sort_order
from ...ops.index_shapes import check_sequences, top_k_dims
from ...ops.shape_inference import reduced_dims
from ...ops.slots import Input, Output
from . import types
from .definition import EnumAttr, LiteDefinition, LiteOperator, lite_operator
from .shapes import axis_in, check_one, one_int, refuse, spec
from .types import INDEX


@lite_operator("REVERSE_SEQUENCE")
class ReverseSequenceOp(LiteDefinition):
    """Reverse the first seq_lengths[i] elements along seq_dim of each slice i along batch_dim.

    seq_lengths: int32 or int64, one a slice, each between 0 and the size of seq_dim
    """

    x = Input((float32, uint8, int16, int32, int64))
    seq_lengths = Input(INDEX, rank=1)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims = op.x.spec.shape.dims
        if dims is not None:
            for name in ("seq_dim", "batch_dim"):
                if not 0 <= getattr(op, name) < len(dims):
                    raise refuse(f"{name} is out of range", found=getattr(op, name), wanted=f"0 to {len(dims) - 1}")
            check_sequences(op.x.spec, op.seq_lengths.spec, op.seq_dim, op.batch_dim)
            if op.seq_lengths.constant is not None and dims[op.seq_dim] is not None:
                check_lengths(op.seq_lengths.constant, dims[op.seq_dim])
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, seq_lengths: np.ndarray) -> np.ndarray:
        check_lengths(seq_lengths, x.shape[op.seq_dim])
        return reversed_sequences(x, seq_lengths, op.seq_dim, op.batch_dim)


@lite_operator("UNIQUE")
class UniqueOp(LiteDefinition):
    """The different elements in the order of their first occurrence, and for each element which of them it is.

    .. math:: x_i = y_{idx_i}

    x: [n]; y: [m]; idx: [n], of the type idx_out_type
    """

    x = Input((float32, int8, int16, int32, int64, uint8), rank=1)
    y = Output(like="x")
    idx = Output(dtype=int32)
    moves = True

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
        if op.idx_out_type not in ("INT32", "INT64"):
            raise refuse("idx_out_type is not an index type", found=op.idx_out_type, wanted="INT32 or INT64")
        constant = op.x.constant
        return (
            spec((None if constant is None else len(first_occurrences(constant)[0]),), op.x.spec.dtype),
            spec((op.x.spec.shape[0],), types.dtype_of(op.idx_out_type)),
        )

    def compute(op: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y, idx, _ = first_occurrences(x)
        return y, idx.astype(types.dtype_of(op.idx_out_type).np)


@lite_operator("BUCKETIZE")
class BucketizeOp(LiteDefinition):
    """Count the boundaries that each element has reached.

    .. math:: y_i = |\\{j : boundaries_j \\le x_i\\}|

    boundaries: sorted
    """

    x = Input((float32, float64, int32, int64))
    y = Output(dtype=int32)

    def infer(op: Any) -> TensorSpec:
        if any(not a <= b for a, b in itertools.pairwise(op.boundaries)):
            raise refuse(
                "Expected sorted boundaries", found=list(op.boundaries)[:32], wanted="numbers that do not fall"
            )
        result: TensorSpec = op.x.spec.with_dtype(int32)
        return result

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        wide = np.float64 if x.dtype == np.float64 else np.float32
        bounds = np.asarray(op.boundaries, np.float32).astype(wide)
        return np.searchsorted(bounds, x.astype(wide), side="right").astype(np.int32)


MAX_GRAMS = 1 << 20


@lite_operator("SKIP_GRAM")
class SkipGramOp(LiteDefinition):
    """All runs of ngram_size words of a text, between two of which up to max_skip_size words are left out.

    x: one string; include_all_ngrams: runs of fewer words, too; y: [count]. A text of too few words has none.
    """

    x = Input((string,))
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        if op.ngram_size < 1 or op.max_skip_size < 0:
            raise refuse(
                "no runs of words have these sizes",
                found={"ngram_size": op.ngram_size, "max_skip_size": op.max_skip_size},
                wanted="ngram_size of at least 1, max_skip_size of at least 0",
            )
        check_one(op.x, "the input", "string")
        return spec((None if op.x.constant is None else len(_grams(op, op.x.constant)),), string)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return np.fromiter(_grams(op, x), object)


def _grams(op: Any, x: np.ndarray) -> list[bytes]:
    words = x.reshape(-1)[0].split() if x.size else []
    if len(words) < op.ngram_size:
        return []
    return [b" ".join(words[i] for i in run) for run in _runs(op, len(words))]


def _runs(op: Any, words: int) -> Iterator[tuple[int, ...]]:
    """Yield the word indices of each n-gram in post-order: longer ones before their prefixes."""
    count = 0
    stack: list[tuple[tuple[int, ...], bool]] = [((i,), False) for i in reversed(range(words))]
    while stack:
        run, entered = stack.pop()
        if entered or len(run) == op.ngram_size:
            if len(run) == op.ngram_size or op.include_all_ngrams:
                count += 1
                if count > MAX_GRAMS:
                    raise ResourceExhaustedError(what="a text gives too many runs of words", wanted=f"{MAX_GRAMS}")
                yield run
            continue
        stack.append((run, True))
        last = min(run[-1] + op.max_skip_size + 1, words - 1)
        stack.extend(((*run, i), False) for i in reversed(range(run[-1] + 1, last + 1)))


def _search_spec(op: Any) -> TensorSpec:
    shape, axis = op.x.spec.shape, one_int(op.axis, "axis")
    if op.output_type not in ("INT32", "INT64"):
        raise refuse("output_type is not an index type", found=op.output_type, wanted="INT32 or INT64")
    dtype = types.dtype_of(op.output_type)
    if shape.dims is None:
        return TensorSpec(UNKNOWN, dtype)
    if axis is None:
        return spec((None,) * max(len(shape.dims) - 1, 0), dtype)
    axis = axis_in(axis, len(shape.dims))
    if shape.dims[axis] == 0:
        raise refuse("the axis to search is empty", found=op.x.spec.short(), wanted="at least one element along it")
    return spec(reduced_dims(shape.dims, (axis,), False), dtype)


def _search(name: str, find: Any, word: str, of_two: np.ufunc) -> LiteOperator:
    """Define ARG_MAX or ARG_MIN. of_two: the ufunc of the extreme, which ignores NaN."""

    def compute(op: Any, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
        along = int(axis.reshape(-1)[0])
        if x.dtype.kind == "f" and np.isnan(x.max(initial=-np.inf)):
            x, first = x == of_two.reduce(x, along, keepdims=True), np.argmax
        else:
            first = find
        result: np.ndarray = first(x, axis=along).astype(types.dtype_of(op.output_type).np)
        return result

    body = {
        "__doc__": f"The first index of the {word} element along an axis.\n\n.. math:: y = \\arg\\{word[:3]} x",
        "__module__": __name__,
        "x": Input((float32, int32, bool_, int8, uint8)),
        "axis": Input((int32, int64)),
        "y": Output(dtype=int32),
        "infer": _search_spec,
        "compute": compute,
        "moves": True,
    }
    return lite_operator(name)(type(name, (), body))


ArgMax = _search("ARG_MAX", np.argmax, "maximal", np.fmax)


ArgMin = _search("ARG_MIN", np.argmin, "minimal", np.fmin)


MAX_INT16_INDEX = 2**15 - 1


@lite_operator("TOPK_V2", typed_by="indices_type")
class TopKOp(LiteDefinition):
    """The k greatest along the last dimension, greatest first, and their indices; of equals the first comes first.

    indices: int32, or int16 where the file has that type
    """

    x = Input((float32, int32, int64, int8, uint8, int16))
    k = Input((int32, int16))
    values = Output(like="x")
    indices = Output(dtype=int32)
    moves = True
    indices_type = EnumAttr("TensorType", default=2)
    typed_output = 1

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
        shape, k, index_dtype = op.x.spec.shape, one_int(op.k, "k"), types.dtype_of(op.indices_type)
        if index_dtype not in (int32, int16):
            raise refuse("indices of this type are not supported", found=index_dtype.name, wanted="int32 or int16")
        last = shape.dims[-1] if shape.dims else None
        if index_dtype is int16 and last is not None and last > MAX_INT16_INDEX:
            raise refuse(
                "TopK row size exceeds output index type range",
                found=last,
                wanted=f"at most {MAX_INT16_INDEX} for int16",
            )
        dims = top_k_dims(op.x.spec, k)
        return spec(dims, op.x.spec.dtype), spec(dims, index_dtype)

    def compute(op: Any, x: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape, dtype = (*x.shape[:-1], int(k.reshape(-1)[0])), types.dtype_of(op.indices_type).np
        if not math.prod(shape):  # NumPy would allocate indices of the other dimensions, however large
            return np.empty(shape, x.dtype), np.empty(shape, dtype)
        order = sort_order(x, descending=True)[..., : shape[-1]]
        return np.take_along_axis(x, order, -1), order.astype(dtype)
