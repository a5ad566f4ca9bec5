"""Local response normalisation over neighbouring channels.

Lives here: LRN.  Not here: normalisation by statistics of a batch or an example (normalization.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...core.dtypes import bfloat16, float16, float32, float64
from ..array import cast
from ..array import range as range_
from ..array.shaping import shape_op
from ..attributes import Attr, at_least
from ..definition import Input, Output, operator
from ..linalg import matmul
from ..math import abs as abs_
from ..math import pow as pow_
from ..windows import wide, wide_dtype


@operator
class LRN:
    """Each element divided by a power of the squares around it, over channels (Krizhevsky et al. 2012, section 3.3).

    .. math:: output_c = input_c \\Big/ \\left( bias + alpha \\sum_{|j - c| \\le depth\\_radius}
              input_j^2 \\right)^{beta}

    input: [batch, height, width, channels]. 16-bit floats are computed in float32.
    """

    input = Input((float16, bfloat16, float32, float64), rank=4)
    output = Output(like="input")
    depth_radius = Attr(int, default=5, check=at_least(0))
    bias = Attr(float, default=1.0)
    alpha = Attr(float, default=1.0)
    beta = Attr(float, default=0.5)

    def compute(op, input) -> Any:
        x = input.astype(wide(input.dtype), copy=False)
        r, kind = op.depth_radius, x.dtype.type
        squares = np.pad(x * x, [(0, 0)] * 3 + [(r, r)])
        around = sliding_window_view(squares, 2 * r + 1, axis=-1).sum(-1) if x.size else x
        return (x * (kind(op.bias) + kind(op.alpha) * around) ** kind(-op.beta)).astype(input.dtype, copy=False)

    def gradient(op, dy) -> Any:
        x = cast(op.input, wide_dtype(op.input.dtype))
        dy = cast(dy, x.dtype)
        places = range_(shape_op(x)[3])
        near = cast(
            abs_(places[:, None] - places[None, :]) <= op.depth_radius, x.dtype
        )  # [channels, channels], symmetric
        scale = op.bias + op.alpha * matmul(x * x, near)
        spread = matmul(dy * x * pow_(scale, -op.beta - 1.0), near)
        return cast(dy * pow_(scale, -op.beta) - (2.0 * op.alpha * op.beta) * x * spread, op.input.dtype)


local_response_normalization = LRN.as_function("local_response_normalization")
lrn = local_response_normalization
