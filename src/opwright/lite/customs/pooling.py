"""Pools that say where the greatest was, and their inverse: MaxPoolingWithArgmax2D and MaxUnpooling2D as MediaPipe's
models have them, MaxPoolWithArgmax as TensorFlow's converter writes it.

Lives here: these operators, checks of options that spatial.py and spatial.py share.
Not here: pools over volumes (spatial.py), the builtin pools (lite/ops/convolution.py).

MediaPipe's two are a pair: an index is the place within the window, y * kernel width + x, kept as a float32. Files for
TensorFlow's MaxUnpooling2D have int32 places within the whole image. Which of the two it is, the indices' type says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.constants import FUSED_CLAMPS
from ...core.dtypes import float32, int32, int64
from ...core.specs import TensorSpec
from ...ops.attributes import Attr, one_of
from ...ops.slots import Input, Output
from ...ops.windows import Window, out_size, window
from ..ops import types
from ..ops.definition import EnumAttr, LiteDefinition
from ..ops.parts import fuse
from ..ops.shapes import bounded, refuse, spec, text
from ..ops.windows import check_positive, valid_positions
from .definition import custom_operator

_F = (float32,)
POOL = ("padding", "stride_w", "stride_h", "filter_width", "filter_height", "fused_activation_function")
"""The C structure that holds the options of MediaPipe's pools."""
PADDINGS = {1: "SAME", 2: "VALID"}
LOWEST = np.finfo(np.float32).min


def padding_of(op: Any) -> str:
    """Return SAME or VALID for a numeric attribute. Raises InvalidArgumentError for other numbers."""
    padding = PADDINGS.get(op.padding)
    if padding is None:
        raise refuse("padding is neither SAME nor VALID", found=op.padding, wanted="1 (SAME) or 2 (VALID)")
    return padding


def _greatest(x: np.ndarray, rows: Window, columns: Window) -> tuple[np.ndarray, np.ndarray]:
    """Return the maximum of each window and the index of its first tap; NaN is never the maximum."""
    shape = (x.shape[0], rows.out, columns.out, x.shape[3])
    y, taps = np.full(shape, LOWEST, np.float32), np.zeros(shape, np.int32)
    for i in range(rows.kernel):
        for j in range(columns.kernel):
            vertical, horizontal = valid_positions(rows, i), valid_positions(columns, j)
            if vertical is None or horizontal is None:
                continue
            target = (slice(None), vertical[0], horizontal[0])
            seen = x[:, vertical[1], horizontal[1]]
            is_greater = seen > y[target]
            np.copyto(y[target], seen, where=is_greater)
            taps[target][is_greater] = i * columns.kernel + j
    return y, taps


def _pooled(op: Any, x: Any, kernel: Any, strides: Any, padding: str) -> Any:
    n, h, w, c = x.dims or (None,) * 4
    out = [out_size(size, k, s, 1, padding) for size, k, s in zip((h, w), kernel, strides)]
    if None not in (n, *out, c):
        bounded((n, *out, c, 2), float32, "the pooled image")
    return (n, *out, c)


def _windows(x: Any, kernel: Any, strides: Any, padding: str) -> list[Window]:
    return [window(size, k, s, 1, padding) for size, k, s in zip(x.shape[1:3], kernel, strides)]


@custom_operator("MaxPoolingWithArgmax2D")
class MaxPoolingWithArgmax2D(LiteDefinition):
    """The greatest of each window, and where in the window it is: y * filter_width + x, with 0.1 added.

    .. math:: y_{npqc} = act(\\max_{ij} x_{n, p s + i, q s + j, c})

    x: [n, h, w, c]; y, index: float32 [n, p, q, c]. The first of equal elements counts.
    """

    x = Input(_F, rank=4)
    y = Output(dtype=float32)
    index = Output(dtype=float32)
    layout = POOL
    padding = Attr(int, default=0)
    stride_w = Attr(int, default=0)
    stride_h = Attr(int, default=0)
    filter_width = Attr(int, default=0)
    filter_height = Attr(int, default=0)
    fused_activation_function = EnumAttr("ActivationFunctionType", 0, one_of("NONE", *FUSED_CLAMPS))
    padding_name = padding_of

    def place_offset(op: Any) -> float:
        """Return what is added to a place within a window, which is kept as a float: its whole part is the place."""
        return 0.1

    def infer(op: Any) -> Any:
        check_positive(op, *POOL[1:5])
        kernel, strides = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
        pooled = spec(_pooled(op, op.x.spec.shape, kernel, strides, padding_of(op)), float32)
        return pooled, pooled

    def compute(op: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kernel, strides = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
        y, taps = _greatest(x, *_windows(x, kernel, strides, padding_of(op)))
        return fuse(op, y), taps.astype(np.float32) + np.float32(op.place_offset())


@custom_operator("MaxPoolWithArgmax", typed_by="Targmax")
class MaxPoolWithArgmax(LiteDefinition):
    """The greatest of each window, and where in the image it is: (row * w + column) * c + channel.

    .. math:: y_{npqc} = \\max_{ij} x_{n, p s + i, q s + j, c}

    x: [n, h, w, c]; ksize, strides: [1, h, w, 1]; padding: SAME or VALID; index: int32 or int64. The first of equal
    elements counts. include_batch_in_index: h * w * c * n is added.
    """

    x = Input(_F, rank=4)
    y = Output(dtype=float32)
    index = Output()
    ksize = Attr([int], default=())
    strides = Attr([int], default=())
    padding = Attr(str, default="")
    include_batch_in_index = Attr(bool, default=False)
    Targmax = EnumAttr("TensorType", 4)
    typed_output = 1

    def infer(op: Any) -> Any:
        check_pool(op, 4)
        dtype = types.dtype_of(op.Targmax)
        if dtype not in (int32, int64):
            raise refuse("the indices have no index type", found=op.Targmax, wanted="INT32 or INT64")
        dims = _pooled(op, op.x.spec.shape, op.ksize[1:3], op.strides[1:3], op.padding)
        return spec(dims, float32), spec(dims, dtype)

    def compute(op: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows, columns = _windows(x, op.ksize[1:3], op.strides[1:3], op.padding)
        y, taps = _greatest(x, rows, columns)
        i, j = np.divmod(taps.astype(np.int64), columns.kernel)
        i += (np.arange(rows.out) * rows.stride - rows.before)[:, None, None]
        j += (np.arange(columns.out) * columns.stride - columns.before)[:, None]
        n, h, w, c = x.shape
        # where nothing is greater than the least float, all of the window is NaN or -inf: the index is 0, as official
        index = np.where(y > LOWEST, i * w + j, 0) * c + np.arange(c)
        if op.include_batch_in_index:
            index += (np.arange(n) * (h * w * c)).reshape(-1, 1, 1, 1)
        return y, index.astype(types.dtype_of(op.Targmax).np)


def check_pool(op: Any, rank: int) -> None:
    """Raise InvalidArgumentError for `ksize` or `strides` other than [1, positive ..., 1], or an unknown `padding`."""
    for name in ("ksize", "strides"):
        sizes = getattr(op, name)
        if len(sizes) != rank or min(sizes) < 1 or sizes[0] != 1 or sizes[-1] != 1:
            raise refuse(
                f"{name} does not fit a pool of rank {rank}",
                found=list(sizes),
                wanted=f"{rank} sizes, positive, the first and the last 1",
            )
    if op.padding not in PADDINGS.values():
        raise refuse("padding is neither SAME nor VALID", found=repr(op.padding), wanted="SAME or VALID")


def image_size(op: Any, dims: Any, within_windows: bool) -> list[Any]:
    """Height and width of the image; None where that of x is not known."""
    out: list[Any] = []
    for size, stride, kernel in zip(dims[1:3], (op.stride_h, op.stride_w), (op.filter_height, op.filter_width)):
        if size is None:
            out.append(None)
        elif within_windows:
            out.append(size * kernel)
        else:
            out.append(size * stride if padding_of(op) == "SAME" else max(0, (size - 1) * stride + kernel))
    return out


def margins(op: Any, counts: Any, sizes: Any) -> list[int]:
    """Return the pixels before the first of an image that windows reach, by rows and columns."""
    kernel, strides = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    return [max(0, ((n - 1) * s + k - size) // 2) for n, s, k, size in zip(counts, strides, kernel, sizes)]


def _scatter_in_windows(op: Any, x: np.ndarray, index: np.ndarray, y: np.ndarray) -> None:
    """Put each element of x at its place in the window over y that it stands for."""
    _, h, w, _ = x.shape
    strides = (op.stride_h, op.stride_w)
    pads = margins(op, (h, w), y.shape[1:3])
    with np.errstate(invalid="ignore"):
        i, j = np.divmod(index.astype(np.int64), op.filter_width)
    i += (np.arange(h) * strides[0] - pads[0])[:, None, None]
    j += (np.arange(w) * strides[1] - pads[1])[:, None]
    inside = (index > -1) & (i >= 0) & (i < y.shape[1]) & (j >= 0) & (j < y.shape[2])
    n, _, _, c = np.nonzero(inside)
    y[n, i[inside], j[inside], c] = x[inside]


@custom_operator("MaxUnpooling2D")
class MaxUnpooling2D(LiteDefinition):
    """The inverse of a pool that said where its elements were: each goes there, all else is 0.

    .. math:: y_{n, place(npqc), c} = x_{npqc}

    x: [n, p, q, c]; index: its shape; float32: places within windows, y is [n, p * filter_height, q * filter_width, c]
    and places outside it are left out; int32: places within the image, (row * w + column) * c + channel; y is
    [n, p * stride_h, q * stride_w, c] for SAME padding, [n, (p - 1) * stride_h + filter_height, ..., c] for VALID.
    The last of several elements for one position counts.
    """

    x = Input(_F, rank=4)
    index = Input((float32, int32), rank=4)
    y = Output(dtype=float32)
    layout = POOL
    padding = Attr(int, default=0)
    stride_w = Attr(int, default=0)
    stride_h = Attr(int, default=0)
    filter_width = Attr(int, default=0)
    filter_height = Attr(int, default=0)
    fused_activation_function = EnumAttr("ActivationFunctionType", 0)
    image_size, margins = image_size, margins

    def infer(op: Any) -> TensorSpec:
        check_positive(op, *POOL[1:5])
        padding_of(op)
        x, index = op.x.spec.shape, op.index.spec.shape
        if not x.is_compatible_with(index):
            raise refuse("x and index differ in shape", found={"x": text(x), "index": text(index)}, wanted="one shape")
        n, c = (x[0], x[3]) if x.rank else (None, None)
        out = image_size(op, x.dims or (None,) * 4, op.index.spec.dtype is float32)
        if None not in (n, *out, c):
            bounded((n, *out, c), float32, "the image")
        return spec((n, *out, c), float32)

    def compute(op: Any, x: np.ndarray, index: np.ndarray) -> np.ndarray:
        n, c = x.shape[0], x.shape[3]
        sizes = (n, *image_size(op, x.shape, index.dtype == np.float32), c)
        y = np.zeros(sizes, np.float32)
        if index.dtype == np.float32:
            _scatter_in_windows(op, x, index, y)
        else:
            if index.size and (index.min() < 0 or index.max() >= sizes[1] * sizes[2] * c):
                raise refuse(
                    "an index is out of range",
                    found=f"{index.min()} to {index.max()}",
                    wanted=f"0 to {sizes[1] * sizes[2] * c - 1}",
                )
            for image, values, positions in zip(y.reshape(n, -1), x, index):
                image[positions.reshape(-1)] = values.reshape(-1)
        return y
