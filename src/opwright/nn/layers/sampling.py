"""Images at other sizes, as layers have them: channels first or last, in the dtype of the images.

Lives here: `resize`, `check`.  Not here: the methods (ops/image), the layers that use it (upsampling.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ops import array
from ...ops.image import resize as resize_images


def check(method: str, allowed: Sequence[str]) -> None:
    """Raises ValueError for a method that is not among these."""
    if method not in allowed:
        raise ValueError(f"`interpolation` argument should be one of {', '.join(map(repr, allowed))}. Received: "
                         f"interpolation={method!r}")  # fmt: skip


def resize(x: Any, wanted: Sequence[Any], method: str, first: int, antialias: bool = False) -> Any:
    """Images with two dimensions, `first` and the one after, brought to other sizes. Channels are before or after."""
    rank = x.shape.rank
    channels_first = first == rank - 2
    if channels_first:  # the channels' dimension to the end, and back
        lead = list(range(first - 1))
        x = array.transpose(x, [*lead, first, first + 1, first - 1])
    y = array.cast(resize_images(x, list(wanted), method, antialias=antialias), x.dtype)
    return array.transpose(y, [*lead, rank - 1, first - 1, first]) if channels_first else y
