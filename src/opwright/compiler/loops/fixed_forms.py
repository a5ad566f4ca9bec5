"""Forms of fixed-point arithmetic that is rescaled step by step, which no expression of one element says.

Lives here: `FixedProduct`.  Not here: other forms (forms.py), kernels (../kernels/fixed_point.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .forms import Buffer, Form


@dataclass(frozen=True, eq=False)
class FixedProduct(Form):
    """The product of each column of the input, [n, m] of int8 or int16, as integers of the same type.

        p_1 = x_1 - zero    p_k = rescale(p_(k - 1) (x_k - zero))    y = clamp(rescale(p_n) + output_zero)
    factor: (m, e); rescale(a) = a m 2^(e - 31), m cut to 16 bits, halves up. p is int32 and wraps.
    """

    input: Buffer
    zero: int
    factor: tuple[int, int]
    output_zero: int
