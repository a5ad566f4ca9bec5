"""Rows of a tensor joined by the segment each belongs to: SEGMENT_SUM, UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN.

Lives here: these operators.  Not here: reductions over axes (reduction.py).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ...core.dtypes import float32, int32
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from .definition import LiteOperator, lite_operator
from .shapes import check_one, ints, refuse, same, spec, text

_NUMBERS = (float32, int32)


@lite_operator("SEGMENT_SUM")
class SegmentSum:
    """Sums of the rows of each segment; a segment without rows is 0.

    .. math:: y_s = \\sum_{i: segment\\_ids_i = s} x_i

    segment_ids: int32, one a row of x, from 0 up and never falling; y has as many rows as the last of them plus 1
    """

    x = Input(_NUMBERS)
    segment_ids = Input((int32,), rank=1)
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        x, found = op.x.spec.shape, ints(op.segment_ids)
        if x.dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        if not x.dims or not same(x.dims[0], op.segment_ids.spec.shape[0]):
            raise refuse(
                "there is not one segment for each row",
                found={"x": text(x), "segment_ids": text(op.segment_ids.spec.shape)},
                wanted="segment_ids [x.shape[0]]",
            )
        if found and (found[0] < 0 or any(b < a for a, b in itertools.pairwise(found))):
            raise refuse(
                "the segment ids are not sorted, or negative",
                found=found[:32],
                wanted="numbers of at least 0 that do not fall",
            )
        return spec((None if found is None else found[-1] + 1 if found else 0, *x.dims[1:]), op.x.spec.dtype)

    def compute(op: Any, x: Any, segment_ids: Any) -> Any:
        y = np.zeros((int(segment_ids[-1]) + 1 if len(segment_ids) else 0, *x.shape[1:]), x.dtype)
        np.add.at(y, segment_ids, x)
        return y


def _unsorted(op: Any) -> TensorSpec:
    x, s, count = op.x.spec.shape.dims, op.segment_ids.spec.shape.dims, ints(op.num_segments)
    check_one(op.num_segments, "num_segments")
    found = ints(op.segment_ids)
    if count is not None:
        if count[0] < 0:
            raise refuse("num_segments is negative", found=count[0], wanted="at least 0")
        _check_range(max(found, default=-1) if found is not None else -1, count[0])
    if x is None or s is None:
        return TensorSpec(UNKNOWN, op.x.spec.dtype)
    if len(s) > len(x) or not all(map(same, x, s)):
        raise refuse(
            "the shape of segment_ids does not begin that of x",
            found={"x": text(x), "segment_ids": text(s)},
            wanted="x.shape beginning with segment_ids.shape",
        )
    return spec((None if count is None else count[0], *x[len(s) :]), op.x.spec.dtype)


def _check_range(greatest: int, count: int) -> None:
    if greatest >= count:
        raise refuse("a segment id is out of range", found=greatest, wanted=f"less than {count}")


def unsorted(name: str, ufunc: np.ufunc, formula: str, initial: Any) -> LiteOperator:
    """Define a reduction of each segment. initial: of a dtype, what a segment without elements gives."""

    def compute(op: Any, x: Any, segment_ids: Any, num_segments: Any) -> Any:
        rest = x.shape[segment_ids.ndim :]
        count = int(num_segments.reshape(-1)[0])
        y = np.full((count, *rest), initial(x.dtype), x.dtype)
        _check_range(int(segment_ids.max(initial=-1)), count)
        ids, rows = segment_ids.reshape(-1), x.reshape(segment_ids.size, *rest)
        ufunc.at(y, ids[ids >= 0], rows[ids >= 0])
        return y

    body = {
        "__doc__": f"{name} of the elements of each segment; those with a negative id are left out.\n\n"
        f".. math:: y_s = {formula}_{{i: segment\\_ids_i = s}} x_i\n\n"
        "segment_ids: int32, its shape that of the first dimensions of x; num_segments: int32, one number",
        "__module__": __name__,
        "x": Input(_NUMBERS),
        "segment_ids": Input((int32,)),
        "num_segments": Input((int32,)),
        "y": Output(like="x"),
        "infer": _unsorted,
        "compute": compute,
    }
    return lite_operator(name)(type(name, (), body))


def _limits(dtype: Any) -> Any:
    return np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)


UNSORTED = (
    ("UNSORTED_SEGMENT_SUM", np.add, r"\sum", lambda dtype: 0),
    ("UNSORTED_SEGMENT_PROD", np.multiply, r"\prod", lambda dtype: 1),
    ("UNSORTED_SEGMENT_MAX", np.fmax, r"\max", lambda dtype: _limits(dtype).min),
    ("UNSORTED_SEGMENT_MIN", np.fmin, r"\min", lambda dtype: _limits(dtype).max),
)

for row in UNSORTED:
    unsorted(*row)
