"""The check that every row gets with a LoD on one of its inputs after another.

Lives here: what must hold of any operator called with LoDTensors.
Not here: operators on sequences (test_sequence_*.py), the type (test_lod_tensor.py).
"""

from __future__ import annotations

from typing import Any

import checks
import harness
import numpy as np
from checks import is_random, works
from harness import Case, operator_of

from opwright.core import nest
from opwright.core.errors import InvalidArgumentError
from opwright.ops.lod_tensor import LoDTensor

# Functions that put sequences after sequences: crelu is the concatenation of two results.
JOINS = {"nn.crelu"}
# Rows depend on the rows before them, or on all: as many rows come out, so sequences stay, as elsewhere in the field.
ALONG_ROWS = (
    "Cum",
    "math.cum",
    "ShiftByOne",
    "LinearRecurrence",
    "FusedBatchNorm",
    "nn.batch_norm",
    "nn.fused_batch",
    "clip_by_norm",
    "math.clip_by_average_norm",
    "math.l2_normalize",
    "sequence_mask",
    "image.per_image_standardization",
    "image.stateless_random_flip_up_down",
    "linalg.tridiagonal_matmul",
    "SegmentMax",
    "UnsortedSegmentMax",
)  # of these rows that ask for a gradient
# Rows that are broadcast away, and concatenation with what has no sequences, are refused in these words.
REFUSED = ("has not the rows", "differ in their LoD levels")


def _offsets(rows: int) -> list[list[int]]:
    """Return two levels over the given rows: empty sequences first, in the middle and last."""
    half = rows // 2
    return [[0, 1, 3, 5], [0, 0, half, half, rows, rows]]


def _is_rows(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.ndim >= 1 and x.dtype != object


def _reads_offsets(row: Case) -> bool:
    """Whether the operator is one on sequences: what it makes of a LoD its own tests say."""
    op = operator_of(row.key)
    return op is not None and "sequence" in op.__module__.split(".")


@checks.check(
    lambda row: (
        checks.in_pairs(row)
        and works(row)
        and not is_random(row)
        and any(map(_is_rows, row.inputs))
        and not _reads_offsets(row)
    )
)
def takes_lod(row: Case) -> None:
    """With a LoD on one input the numbers are the same, and a result that has it has the rows it speaks of."""
    plain = [np.asarray(y.numpy()) for y in _tensors(row.run())]
    for i, x in enumerate(row.inputs):
        if not _is_rows(x):
            continue
        inputs = harness.as_tensors(row.inputs)
        lod = _offsets(len(x))
        inputs[i] = LoDTensor(inputs[i], lod)
        try:
            result = row.function()(*inputs, **row.attrs)
        except InvalidArgumentError as error:
            assert any(words in str(error) for words in REFUSED), f"input {i}: {error}"  # noqa: PT017
            continue
        actual = _tensors(result)
        for y in actual:
            if isinstance(y, LoDTensor):
                assert y.lod() == lod or row.key in JOINS, f"input {i}"
                assert y.has_valid_recursive_sequence_lengths(), f"input {i}: {y.shape} under {lod}"
        if len(actual) == len(plain):
            for y, expected in zip(actual, plain):
                np.testing.assert_array_equal(np.asarray(y.numpy()), expected)


def _tensors(result: Any) -> list[Any]:
    return [y for y in nest.flatten(result) if hasattr(y, "numpy") and not getattr(y, "dtype", None).is_handle]


@checks.check(
    lambda row: (
        checks.in_pairs(row)
        and works(row)
        and not is_random(row)
        and any(map(_has_own_rows, row.inputs))
        and not _reads_offsets(row)
    )
)
def rows_under_a_lod_are_by_position(row: Case) -> None:
    """Where the LoD stays, another first row of the input changes no other row of the result."""
    if row.key.startswith(ALONG_ROWS) or row.key in JOINS:
        return
    for i, x in enumerate(row.inputs):
        if not _has_own_rows(x):
            continue
        changed = x.copy()
        changed[0] = changed[-1]
        result = []
        for rows in (x, changed):
            inputs = harness.as_tensors(row.inputs)
            inputs[i] = LoDTensor(harness.as_tensors([rows])[0], _offsets(len(rows)))
            try:
                result.append(_tensors(row.function()(*inputs, **row.attrs)))
            except InvalidArgumentError:
                break  # refused with a LoD, or the changed row is no input it takes
        if len(result) < 2:
            continue
        for y, other in zip(*result):
            if isinstance(y, LoDTensor):
                np.testing.assert_array_equal(
                    np.asarray(y.numpy())[1:], np.asarray(other.numpy())[1:], err_msg=f"input {i}"
                )


def _has_own_rows(x: Any) -> bool:
    return _is_rows(x) and len(x) > 1 and bool((x[0] != x[-1]).any())
