"""Multiplications and additions of operators with weights, by the shapes of their tensors.

Lives here: `arithmetic_operations`. Not here: times (runtime/profiler.py), the processor's peak
(compiler/kernels/peak_rates.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Shape = Sequence[int]


def _outputs_times_taps(inputs: Sequence[Shape], output: Shape) -> int:
    """Count y[..., o] = sum of x w[o, ...]: weights [outputs, taps...]."""
    return math.prod(output) * math.prod(inputs[1][1:])


def _depthwise(inputs: Sequence[Shape], output: Shape) -> int:
    """Count with weights [1, h, w, channels]."""
    return math.prod(output) * math.prod(inputs[1][1:3])


def _volumes(inputs: Sequence[Shape], output: Shape) -> int:
    """Count with weights [d, h, w, inputs, outputs]."""
    return math.prod(output) * math.prod(inputs[1][:-1])


def _transposed(inputs: Sequence[Shape], output: Shape) -> int:
    """Count with inputs (output shape, weights [outputs, h, w, inputs], x): each element of x meets h w outputs."""
    return math.prod(inputs[2]) * math.prod(inputs[1][:3])


def _batched(inputs: Sequence[Shape], output: Shape) -> int:
    """Count matrix products [..., m, k] [..., k, n], of which either may be stored transposed."""
    x = inputs[0]
    return math.prod(output) * (x[-1] if x[-2] == output[-2] else x[-2])


PRODUCTS: dict[str, Callable[[Sequence[Shape], Shape], int]] = {
    "CONV_2D": _outputs_times_taps,
    "FULLY_CONNECTED": _outputs_times_taps,
    "DEPTHWISE_CONV_2D": _depthwise,
    "CONV_3D": _volumes,
    "TRANSPOSE_CONV": _transposed,
    "BATCH_MATMUL": _batched,
}
"""Numbers of products, by builtin operator."""


def arithmetic_operations(name: str, inputs: Sequence[Shape], output: Shape) -> int:
    """Return the multiplications and additions of a node: two for each product of PRODUCTS, 0 of other operators.

    inputs, output: known shapes, as in the operator's definition
    """
    rule = PRODUCTS.get(name)
    return 0 if rule is None else 2 * rule(inputs, output)
