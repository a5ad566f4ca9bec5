"""Isotonic regression: the nearest sequence that does not increase.

Lives here: IsotonicRegression, `isotonic_regression`.
Source: the pool adjacent violators algorithm (Barlow et al., Statistical Inference under Order Restrictions, 1972).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.specs import TensorSpec
from .. import array, dispatch, math
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor


@operator
class IsotonicRegression(OperatorDefinition):
    """Find the non-increasing rows with the least sum of squared differences from the rows of a matrix.

    .. math:: output = argmin_{y_1 \\ge y_2 \\ge \\ldots} \\sum_i (y_i - input_i)^2

    segments: the number of the run of equal elements that each element belongs to; its value is the mean of the run.
    """

    input = Input(dtypes.floating, rank=2)
    output = Output(like="input")
    segments = Output(dtype=dtypes.int32)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        return op.input.spec, op.input.spec.with_dtype(dtypes.int32)

    def compute(op, input: Any) -> tuple[np.ndarray, np.ndarray]:
        output, segments = np.empty_like(input), np.empty(input.shape, np.int32)
        for row, y, runs in zip(np.asarray(input, np.float64).tolist(), output, segments):
            sums: list[float] = []
            counts: list[int] = []
            for value in row:
                total, count = value, 1
                while sums and sums[-1] * count <= total * counts[-1]:  # its mean is not greater
                    total, count = total + sums.pop(), count + counts.pop()
                sums.append(total)
                counts.append(count)
            y[:] = np.repeat(np.divide(sums, counts), counts)
            runs[:] = np.repeat(np.arange(len(counts)), counts)
        return output, segments

    def gradient(op, doutput: Any, dsegments: Any) -> Tensor:
        shape = array.shape(op.segments, dtypes.int64)
        first = array.expand_dims(array.range(shape[0]) * shape[1], 1)
        ids = array.reshape(array.cast(op.segments, dtypes.int64) + first, [-1])
        means = math.unsorted_segment_mean(array.reshape(doutput, [-1]), ids, shape[0] * shape[1])
        return array.reshape(array.gather(means, ids), shape)


def isotonic_regression(inputs: Any, decreasing: bool = True, axis: int = -1) -> tuple[Tensor, Tensor]:
    """Return the nearest values along an axis that do not increase, and the number of the run of each.

    inputs: numbers; integers of more than 16 bits become float64, others float32. decreasing=False:
    values that do not decrease.

    >>> ow.nn.isotonic_regression([3.0, 1.0, 2.0])[0].numpy().tolist()
    [3.0, 1.5, 1.5]
    """
    x: Any = dispatch.to_tensor(inputs)
    if not x.dtype.is_floating:
        x = array.cast(x, dtypes.float64 if x.dtype.size > 2 else dtypes.float32)
    rank = x.shape.rank
    order = [i for i in range(rank) if i != axis % rank] + [axis % rank]
    moved: Any = array.transpose(x, order)
    shape = array.shape(moved)
    matrix = array.reshape(moved if decreasing else -moved, array.stack([-1, shape[-1]]))
    output, segments = IsotonicRegression(matrix)
    back = list(np.argsort(order))
    results = [array.transpose(array.reshape(y, shape), back) for y in (output if decreasing else -output, segments)]
    return results[0], results[1]
