"""Windows of convolutions and pooling, from the attributes of both dialects.

Lives here: `window_of`, `check_channels_last`.  Not here: the arithmetic of padding (ops/windows.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.errors import InvalidArgumentError
from ...ops.windows import pairs, window
from ..loops.buffers import Window
from .context import LoweringContext, NoLowering
from .registry import CATALOGUE


def check_channels_last(ctx: LoweringContext) -> None:
    """Raise NoLowering for images with channels first, which files do not have."""
    if ctx.node.dialect == CATALOGUE and ctx.attr("data_format") != "NHWC":
        raise NoLowering(f"images in {ctx.attr('data_format')}")


class SlidingWindow(NamedTuple):
    """Strides, dilations and padding of windows over the axes of an image.

    pads: of "EXPLICIT" padding, before and after each axis. truncates: the rounding of `ops.windows.out_size`.
    """

    padding: str
    strides: Sequence[int]
    dilations: Sequence[int] = (1, 1)
    pads: Sequence[tuple[int, int]] = ((0, 0), (0, 0))
    truncates: bool = False

    def over(self, image: Sequence[int], size: Sequence[int]) -> tuple[Window, tuple[int, int]]:
        """Return the window of this size and the output sizes. Raises NoLowering if it does not fit."""
        if min(*self.strides, *self.dilations, *size) < 1:
            raise NoLowering(f"a window of {size} with strides {self.strides}, dilations {self.dilations}")
        try:
            axes = zip(image, size, self.strides, self.dilations, self.pads)
            y, x = (window(n, k, s, d, self.padding, pads, self.truncates) for n, k, s, d, pads in axes)
        except InvalidArgumentError as error:
            raise NoLowering(error.message) from None
        margins = (y.before, y.after, x.before, x.after)
        return Window((y.kernel, x.kernel), (y.stride, x.stride), (y.dilation, x.dilation), margins), (y.out, x.out)


def sliding_of(ctx: LoweringContext) -> SlidingWindow:
    """Read strides, dilations and padding from the attributes. Raises NoLowering for windows over other axes."""
    if ctx.node.dialect != CATALOGUE:
        factors = ctx.attr("dilation_h_factor") or 1, ctx.attr("dilation_w_factor") or 1
        strides = ctx.attr("stride_h"), ctx.attr("stride_w")
        return SlidingWindow(ctx.attr("padding") or "SAME", strides, factors, truncates=True)
    check_channels_last(ctx)
    strides = ctx.attr("strides")
    dilations: Sequence[int] = ctx.attr("dilations") or (1, 1, 1, 1)
    if {strides[0], strides[3], dilations[0], dilations[3]} != {1}:
        raise NoLowering(f"strides {list(strides)}, dilations {list(dilations)}")
    pads: Any = pairs(ctx.attr("explicit_paddings") or (), 4)
    return SlidingWindow(ctx.attr("padding"), strides[1:3], dilations[1:3], pads[1:3])


def window_of(ctx: LoweringContext, image: Sequence[int], size: Sequence[int]) -> tuple[Window, tuple[int, int]]:
    """Return the window of a node over images [n, height, width, c], and the output sizes."""
    return sliding_of(ctx).over(image[1:3], size)
