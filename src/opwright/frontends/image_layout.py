"""Images among the inputs of an imported function, channels-last instead of channels-first.

Lives here: what `input_layout="nhwc"` of the importers means. Not here: layouts inside of a graph
(graph/passes/layout.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import InvalidArgumentError
from ..ops import array


def takes_images_last(op: str, input_layout: str | None) -> bool:
    """Return whether images among a function's inputs come channels-last. Raises InvalidArgumentError."""
    if input_layout not in (None, "nchw", "nhwc"):
        raise InvalidArgumentError(op=op, what="unknown input_layout", found=input_layout, wanted="nhwc or nchw")
    return input_layout == "nhwc"


def channels_last(dims: Sequence[int | None]) -> Sequence[int | None]:
    """Return the sizes of channels-first images, of rank 4, channels-last; other sizes as they are."""
    return [dims[i] for i in (0, 2, 3, 1)] if len(dims) == 4 else dims


def channels_first(value: Any) -> Any:
    """Return channels-last images, of rank 4, channels-first; other values as they are."""
    return array.transpose(value, [0, 3, 1, 2]) if value.shape.rank == 4 else value
