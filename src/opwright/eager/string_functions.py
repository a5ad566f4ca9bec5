"""Functions of sequences and bytes that run in Python: `ow.edit_distance` and `ow.fingerprint`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..ops.sparse.sparse_tensor import SparseTensor
from ..ops.strings.fingerprints import fingerprint64
from ..ops.tensor import Tensor
from .python_functions import call_on_arrays, check_size


def levenshtein(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return the least number of insertions, deletions and substitutions that turn one sequence into the other."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first):
        last, row[0] = row[0], i + 1
        for j, b in enumerate(second):
            last, row[j + 1] = row[j + 1], min(row[j] + 1, row[j + 1] + 1, last + (a != b))
    return row[-1]


def _sequences(indices: np.ndarray, values: np.ndarray) -> dict[tuple[int, ...], list[Any]]:
    sequences: dict[tuple[int, ...], list[Any]] = {}
    for position, value in zip(map(tuple, indices[:, :-1].tolist()), values.tolist()):
        sequences.setdefault(position, []).append(value)
    return sequences


def edit_distance(
    hypothesis: SparseTensor, truth: SparseTensor, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """Return the Levenshtein distance of each pair of sequences: float32, without the last dimension.

    hypothesis, truth: SparseTensors of one rank and dtype, in row-major order; a sequence is a row of the last
    dimension. normalize: divide by the length of the true sequence; infinite where that is empty and the other is not.
    raises TypeError for other tensors, InvalidArgumentError for different ranks or dtypes

    >>> a, b = ow.sparse.from_dense([["a", "b", "c"]]), ow.sparse.from_dense([["a", "c"]])
    >>> ow.edit_distance(a, b, normalize=False).numpy().tolist()
    [1.0]
    """
    for x, what in ((hypothesis, "Hypothesis"), (truth, "Truth")):
        if not isinstance(x, SparseTensor):
            raise TypeError(f"{what} must be a SparseTensor.")
    if hypothesis.dtype is not truth.dtype or hypothesis.shape.rank != truth.shape.rank:
        raise InvalidArgumentError(
            op="edit_distance",
            what="the sequences differ in dtype or rank",
            found={"hypothesis": (hypothesis.dtype.name, hypothesis.shape), "truth": (truth.dtype.name, truth.shape)},
        )

    def run(*arrays: Any) -> np.ndarray:
        mine, true = _sequences(*arrays[:2]), _sequences(*arrays[3:5])
        shape = np.maximum(arrays[2][:-1], arrays[5][:-1])
        if any((np.array(p) < 0).any() or (p >= shape).any() for p in (*mine, *true)):
            raise InvalidArgumentError(op="edit_distance", what="Index out of range", found=shape.tolist())
        check_size(4 * math.prod(shape.tolist()), "edit_distance")
        result = np.zeros(shape, np.float32)
        for position in {*mine, *true}:
            expected = true.get(position, [])
            distance = levenshtein(mine.get(position, []), expected)
            if normalize:
                result[position] = distance / len(expected) if expected else np.inf
            else:
                result[position] = distance
        return result

    parts = [part for x in (hypothesis, truth) for part in (x.indices, x.values, x.dense_shape)]
    rank = truth.shape.rank
    spec = TensorSpec(TensorShape(None if rank is None else [None] * (rank - 1)), dtypes.float32)
    result: Tensor = call_on_arrays(run, parts, spec, name)
    return result


def fingerprint(data: Any, method: str = "farmhash64", name: str | None = None) -> Tensor:
    """Return FarmHash's 64-bit fingerprint of each row of a tensor: uint8[rows, 8], little-endian.

    data: of rank 1 or more; strings of rank 2 or more are fingerprinted one by one, then those of a row together.
    raises InvalidArgumentError for scalars, ValueError for another method
    """
    if method != "farmhash64":
        raise ValueError(f"fingerprint: method is 'farmhash64', found {method!r}")
    tensor = dispatch.to_tensor(data)
    if tensor.shape.rank == 0:
        raise InvalidArgumentError(op="fingerprint", what="the operand must have rank 1 or more", found="a scalar")

    def run(values: np.ndarray) -> np.ndarray:
        rows = values.reshape(len(values), math.prod(values.shape[1:]))
        if values.dtype == object:
            words = np.array([[fingerprint64(s) for s in row] for row in rows.tolist()], "<u8").reshape(rows.shape)
            if values.ndim == 1:
                return words.view(np.uint8)
            rows = words
        hashes = [fingerprint64(row.tobytes()) for row in np.ascontiguousarray(rows)]
        return np.array(hashes, "<u8").reshape(-1, 1).view(np.uint8)

    result: Tensor = call_on_arrays(run, [tensor], TensorSpec([tensor.shape[0], 8], dtypes.uint8), name)
    return result
