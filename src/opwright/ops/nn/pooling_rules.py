"""Shape rules of pooling operators: checks of windows, output shapes, positions along each dimension.

Not here: operators (pooling.py, average_pool.py), the positions of windows (../windows.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ..windows import AxisWindow, check_explicit, check_positive, out_size, pairs, window
from .convolution_rules import dims_of_rank


def _check(op: Any, rank: int) -> None:
    """Check ksize, strides and paddings. Raises InvalidArgumentError."""
    for name in ("ksize", "strides"):
        values = check_positive(op, name, rank)
        if values[0] != 1:
            raise InvalidArgumentError(
                what="Pooling is not supported on the batch dimension", found=f"{name} {list(values)}"
            )
    explicit = check_explicit(op, rank)
    for k, (before, after) in zip(op.ksize, pairs(explicit, rank)):
        if min(before, after) < 0 or max(before, after) >= k > 1 or (k == 1 and before + after):
            raise InvalidArgumentError(
                what=f"padding ({before}, {after}) needs to be smaller than the window size {k}", found=list(explicit)
            )


def pooled_shape(op: Any, image: TensorShape, rank: int) -> TensorShape:
    _check(op, rank)
    pads = pairs(getattr(op, "explicit_paddings", ()), rank)
    dims = dims_of_rank(image, rank)
    return TensorShape([out_size(d, op.ksize[i], op.strides[i], 1, op.padding, pads[i]) for i, d in enumerate(dims)])


def windows_of(op: Any, shape: Sequence[int]) -> list[AxisWindow]:
    pads = pairs(getattr(op, "explicit_paddings", ()), len(shape))
    return [window(d, op.ksize[i], op.strides[i], 1, op.padding, pads[i]) for i, d in enumerate(shape)]


def check_gradient(op: Any, shape: TensorShape) -> None:
    if not op.grad.spec.shape.is_compatible_with(shape):
        raise InvalidArgumentError(
            what=f"Expected grad shape to be {shape}, but got {op.grad.spec.shape}",
            found=f"grad {op.grad.spec.short()}",
        )
