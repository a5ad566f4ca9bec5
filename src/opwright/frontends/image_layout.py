"""Images among the inputs and results of an imported function, channels-last instead of channels-first.

Lives here: what `input_layout="nhwc"` and `output_layout="nhwc"` of the importers mean.
Not here: layouts inside of a graph (graph/passes/layout.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import InvalidArgumentError
from ..ops import array
from ..ops.tensor import TensorLike


def are_channels_last(op: str, **layouts: str | None) -> tuple[bool, ...]:
    """Return whether images are channels-last in each layout, an argument of op. Raises InvalidArgumentError."""
    for name, layout in layouts.items():
        if layout not in (None, "nchw", "nhwc"):
            raise InvalidArgumentError(op=op, what=f"unknown {name}", found=layout, wanted="nhwc or nchw")
    return tuple(layout == "nhwc" for layout in layouts.values())


def channels_last(dims: Sequence[int | None]) -> Sequence[int | None]:
    """Return the sizes of channels-first images, of rank 4, channels-last; other sizes as they are."""
    return [dims[i] for i in (0, 2, 3, 1)] if len(dims) == 4 else dims


def channels_first(value: Any) -> Any:
    """Return channels-last images, of rank 4, channels-first; other values as they are."""
    return array.transpose(value, [0, 3, 1, 2]) if value.shape.rank == 4 else value


def images_last(value: Any) -> Any:
    """Return channels-first images, of rank 4, channels-last; other values as they are."""
    return array.transpose(value, [0, 2, 3, 1]) if isinstance(value, TensorLike) and value.shape.rank == 4 else value
