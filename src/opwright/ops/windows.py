"""Sliding windows: positions of a kernel on an image, paddings and output sizes.

Lives here: data formats, strides, dilations and paddings as arguments, output sizes, `AxisWindow`, shared by
convolutions and pools.
Not here: convolutions of arrays (array_convolution.py), reductions of windows (nn/pooling.py), operators and checks of
their shapes (nn/convolution.py, nn/depthwise.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.named_tuples import NamedTuple
from . import like_device

FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}
PADDINGS = ("SAME", "VALID", "EXPLICIT")


class AxisWindow(NamedTuple):
    """A sliding window along one dimension. size: of the image; before, after: padding; out: number of positions."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    out: int

    def tap(self, i: int) -> slice:
        """Return the slice of the padded dimension that kernel element `i` reads at all positions."""
        return (
            slice(i * self.dilation, i * self.dilation + (self.out - 1) * self.stride + 1, self.stride)
            if self.out
            else slice(0)
        )

    @property
    def extent(self) -> int:
        """Size of the kernel with its holes."""
        return (self.kernel - 1) * self.dilation + 1


def channel_axis(data_format: str) -> int:
    """Return the axis of channels."""
    return data_format.index("C")


def spatial_axes(data_format: str) -> tuple[int, ...]:
    """Return the axes of space."""
    return tuple(i for i, letter in enumerate(data_format) if letter not in "NC")


def out_size(
    size: int | None,
    kernel: int | None,
    stride: int,
    dilation: int,
    padding: str,
    pads: Sequence[int] = (0, 0),
    truncates: bool = False,
) -> int | None:
    """Return the number of positions of a kernel along a dimension; None if it is not known.

    truncates: whether (size - extent + stride) / stride rounds toward 0, as in the official run time of files, so that
    a kernel larger than the image by less than two strides has no position
    raises InvalidArgumentError where the kernel is empty or, unless padding is SAME, larger than the padded image
    """
    if kernel is not None and kernel < 1:
        raise InvalidArgumentError(what="the window is empty", found=f"size {kernel}", wanted="a size of at least 1")
    if padding == "SAME":
        return None if size is None else -(-size // stride)
    if size is None or kernel is None:
        return None
    extent, room = (kernel - 1) * dilation + 1, size + pads[0] + pads[1]
    if truncates and 0 < extent - room < 2 * stride:
        return 0
    if extent > max(room, 1):  # a window of 1 over an empty image has no position
        raise InvalidArgumentError(
            what=f"Negative dimension size caused by subtracting {extent} from {room}: "
            "the window is larger than the image",
            found={"window": extent, "image with its padding": room},
            wanted="a window no larger than the padded image",
            do='padding="SAME"',
        )
    return (room - extent) // stride + 1


def same_padding(size: int, kernel: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """Return the padding SAME of one dimension, (before, after): even on both sides, an odd one goes after."""
    out = -(-size // stride)
    total = max((out - 1) * stride + (kernel - 1) * dilation + 1 - size, 0) if out else 0
    return total // 2, total - total // 2


def is_same_padding(
    sizes: Iterable[int | None],
    pads: Iterable[tuple[int, int]],
    kernel: Iterable[int],
    strides: Iterable[int],
    dilations: Iterable[int],
) -> bool:
    """Return whether explicit paddings are those of SAME. A size that is unknown: whether they are for every size."""
    return all(
        explicit == same_padding(stride if size is None else size, k, stride, dilation)
        and (size is not None or stride == 1)
        for size, explicit, k, stride, dilation in zip(sizes, pads, kernel, strides, dilations)
    )


def window(
    size: int,
    kernel: int,
    stride: int,
    dilation: int,
    padding: str,
    pads: Sequence[int] = (0, 0),
    truncates: bool = False,
) -> AxisWindow:
    """Return the window of one dimension. Raises as out_size."""
    out = out_size(size, kernel, stride, dilation, padding, pads, truncates) or 0
    before, after = same_padding(size, kernel, stride, dilation) if padding == "SAME" else pads
    return AxisWindow(size, kernel, stride, dilation, before, after, out)


def pairs(explicit: Sequence[int], rank: int) -> list[tuple[int, int]]:
    """Return flat explicit paddings as (before, after) by dimension; zeros without any."""
    return list(zip(explicit[::2], explicit[1::2])) if explicit else [(0, 0)] * rank


def spatial_windows(op: Any, sizes: Sequence[int], kernel: Sequence[int]) -> list[AxisWindow]:
    """Return the windows over the spatial dimensions. sizes: of the image, in the order of op.data_format's spatial
    letters.
    """
    pads = pairs(op.explicit_paddings, len(op.strides))
    return [
        window(size, k, op.strides[axis], op.dilations[axis], op.padding, pads[axis])
        for axis, size, k in zip(spatial_axes(op.data_format), sizes, kernel)
    ]


def pad(x: np.ndarray, windows: Sequence[AxisWindow], value: Any = 0, first: int = 1) -> np.ndarray:
    """Return `x` with the padding of each window around dimensions `first`, `first` + 1, ... (np.pad costs 30 us, this
    3).
    """
    if not any(w.before or w.after for w in windows):
        return x
    shape, inside = list(x.shape), [slice(None)] * x.ndim
    for axis, w in enumerate(windows, first):
        shape[axis] = w.before + w.size + w.after
        inside[axis] = slice(w.before, w.before + w.size)
    padded = like_device.empty(x, shape, x.dtype)
    for axis, w in enumerate(windows, first):  # not the inside, which is written once
        around = inside[:axis]
        padded[(*around, slice(w.before))] = value
        padded[(*around, slice(w.before + w.size, None))] = value
    padded[tuple(inside)] = x
    return padded


def unpadded(windows: Sequence[AxisWindow]) -> tuple[slice, ...]:
    """Return the slices that extract the image from the padded image."""
    return tuple(slice(w.before, w.before + w.size) for w in windows)


def taps(windows: Sequence[AxisWindow]) -> Iterable[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield each element of the kernel in row-major order, with the slices that it reads of the padded image."""
    for index in np.ndindex(*(w.kernel for w in windows)):
        yield index, tuple(w.tap(i) for w, i in zip(windows, index))


# ---- arguments -------------------------------------------------------------------------------------------------------


def sequence(value: Any, n: int, data_format: str, what: str) -> tuple[int, ...]:
    """Return sizes, strides or dilations for every dimension, from one number, one per spatial dimension, or all of
    them.

    raises ValueError for any other length
    """
    values = (1,) if value is None else tuple(np.asarray(getattr(value, "constant", value)).reshape(-1).tolist())
    if len(values) == 1:
        values *= n
    if len(values) == n:
        return (1, 1, *values) if channel_axis(data_format) == 1 else (1, *values, 1)
    if len(values) != n + 2:
        raise ValueError(f"{what} should be of length 1, {n} or {n + 2} but was {len(values)}: {value!r}")
    return values


def padding_of(padding: Any) -> tuple[str, tuple[int, ...]]:
    """Return the attributes `padding` and `explicit_paddings` for "SAME", "VALID", or a list of (before, after) by
    dimension.
    """
    if isinstance(padding, str):
        if padding == "EXPLICIT":
            raise ValueError(
                '"EXPLICIT" is not a valid value for `padding`; pass the list of (before, after) pairs itself'
            )
        return padding, ()
    flat: list[int] = []
    for pair in padding:
        if isinstance(pair, int) or len(pair) != 2:
            raise ValueError(f"explicit padding is a list of (before, after) pairs, one a dimension; found {padding!r}")
        flat.extend(int(p) for p in pair)
    return "EXPLICIT", tuple(flat)


def check_positive(op: Any, name: str, rank: int) -> tuple[int, ...]:
    """Return an attribute that has a positive number per dimension. Raises InvalidArgumentError."""
    values: tuple[int, ...] = getattr(op, name)
    if len(values) != rank:
        raise InvalidArgumentError(
            what=f"{name} has {len(values)} entries", found=list(values), wanted=f"{rank}, one a dimension"
        )
    if min(values) < 1:
        raise InvalidArgumentError(what=f"{name} must be positive", found=list(values), wanted="integers of at least 1")
    return values


def check_explicit(op: Any, rank: int) -> tuple[int, ...]:
    """Return explicit paddings, two per dimension if any. Raises InvalidArgumentError."""
    explicit: tuple[int, ...] = getattr(op, "explicit_paddings", ())
    if op.padding != "EXPLICIT" and explicit:
        raise InvalidArgumentError(
            what="explicit_paddings is given", found=list(explicit), wanted=f"none with padding {op.padding}"
        )
    if op.padding == "EXPLICIT" and len(explicit) != 2 * rank:
        raise InvalidArgumentError(
            what=f"explicit_paddings has {len(explicit)} entries",
            found=list(explicit),
            wanted=f"{2 * rank}, before and after each dimension",
        )
    return explicit


def check_sliding(op: Any, n: int) -> None:
    """Check the attributes that say how windows slide over n spatial dimensions. Raises InvalidArgumentError."""
    rank, channel = n + 2, channel_axis(op.data_format)
    for name in ("strides", "dilations"):
        values = check_positive(op, name, rank)
        if values[0] != 1 or values[channel] != 1:
            raise InvalidArgumentError(
                what=f"{name} in the batch and depth dimensions are not supported",
                found=list(values),
                wanted=f"1 at N and C of {op.data_format}",
            )
    explicit = check_explicit(op, rank)
    if explicit and min(explicit) < 0:
        raise InvalidArgumentError(what="explicit paddings must be nonnegative", found=list(explicit))
    if any(explicit[:2]) or any(explicit[2 * channel : 2 * channel + 2]):
        raise InvalidArgumentError(
            what="explicit padding in the batch or depth dimension is not supported",
            found=list(explicit),
            wanted=f"0 at N and C of {op.data_format}",
        )
