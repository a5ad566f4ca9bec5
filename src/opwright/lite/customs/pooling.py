"""Pools and transposed convolution: MaxPoolingWithArgmax2D, MaxUnpooling2D, Convolution2DTransposeBias as MediaPipe's
models have them, MaxPoolWithArgmax, AvgPool3D and MaxPool3D as TensorFlow's converter writes them.

Lives here: these operators.
Not here: the builtin pools (lite/ops/pooling.py), TRANSPOSE_CONV (lite/ops/convolution.py).

MediaPipe's MaxPoolingWithArgmax2D and MaxUnpooling2D are a pair: an index is the position within the window, y * kernel
width + x, stored as a float32. Files for TensorFlow's MaxUnpooling2D have int32 positions within the whole image. The
type of the indices distinguishes the two. Volumes are [n, d, h, w, c].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import float32, int32, int64
from ...core.specs import TensorSpec
from ...ops.attributes import Attr, one_of
from ...ops.slots import Input, Output
from ...ops.windows import AxisWindow, out_size, window
from ...scalar.formulas import FUSED_CLAMPS
from ..ops import types
from ..ops.definition import EnumAttr, LiteDefinition
from ..ops.quantized.fixed_point import rounded_quotient
from ..ops.quantized.operand import Operand, check_same, check_scaled, check_symmetric, check_types
from ..ops.shapes import bounded, refuse, same, spec, text
from ..ops.tiling import check_positive, combine_along, counts, fuse, valid_positions
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


def _greatest(x: np.ndarray, rows: AxisWindow, columns: AxisWindow) -> tuple[np.ndarray, np.ndarray]:
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


def _pooled(op: Any, x: Any, kernel: Any, strides: Any, padding: str) -> tuple[int | None, ...]:
    n, h, w, c = x.dims or (None,) * 4
    out = [out_size(size, k, s, 1, padding) for size, k, s in zip((h, w), kernel, strides)]
    if None not in (n, *out, c):
        bounded((n, *out, c, 2), float32, "the pooled image")
    return (n, *out, c)


def _windows(x: Any, kernel: Any, strides: Any, padding: str) -> list[AxisWindow]:
    return [window(size, k, s, 1, padding) for size, k, s in zip(x.shape[1:3], kernel, strides)]


@custom_operator("MaxPoolingWithArgmax2D")
class MaxPoolingWithArgmax2DOp(LiteDefinition):
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
        """Return the offset of a position in a window, stored as a float: its integer part is the position."""
        return 0.1

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
        check_positive(op, *POOL[1:5])
        kernel, strides = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
        pooled = spec(_pooled(op, op.x.spec.shape, kernel, strides, padding_of(op)), float32)
        return pooled, pooled

    def compute(op: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kernel, strides = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
        y, taps = _greatest(x, *_windows(x, kernel, strides, padding_of(op)))
        return fuse(op, y), taps.astype(np.float32) + np.float32(op.place_offset())


@custom_operator("MaxPoolWithArgmax", typed_by="Targmax")
class MaxPoolWithArgmaxOp(LiteDefinition):
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

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
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
    """Return height and width of the image; None for a size that is unknown in x."""
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
    """Store each element of x at its position in its window over y."""
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
class MaxUnpooling2DOp(LiteDefinition):
    """The inverse of a pool that returns the positions of its elements: each is stored there, all others are 0.

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


@custom_operator("Convolution2DTransposeBias")
class Convolution2DTransposeBiasOp(LiteDefinition):
    """The adjoint of a convolution by its input, with a bias: each pixel of x spreads over a window of y.

    .. math:: y_{n, p s + i - a, q s + j - b, o} = b_o + \\sum_{ijc} x_{npqc} f_{oijc}

    x: [n, h, w, c]; filter: [o, kh, kw, c]; bias: [o]; y: [n, h', w', o], h' = s (h - 1) + kh for VALID padding; for
    SAME max(0, kh - (h - 1) mod s - 1) less, half of which (cut) is a, left out at the top; w' and b alike.
    """

    x = Input(_F, rank=4)
    filter = Input(_F, rank=4)
    bias = Input(_F, rank=1)
    y = Output(dtype=float32)
    layout = ("padding", "stride_w", "stride_h")
    padding = Attr(int, default=0)
    stride_w = Attr(int, default=0)
    stride_h = Attr(int, default=0)

    def result_size(op: Any, size: Any, kernel: Any, stride: int) -> tuple[Any, int]:
        """Return one size of y, and how much is left out before it."""
        if size is None or kernel is None:
            return None, 0
        spare = max(0, kernel - (size - 1) % stride - 1) if padding_of(op) == "SAME" else 0
        return stride * (size - 1) + kernel - spare, spare // 2

    def infer(op: Any) -> TensorSpec:
        check_positive(op, "stride_w", "stride_h")
        x, f = op.x.spec.shape, op.filter.spec.shape
        n, h, w, c = x.dims or (None,) * 4
        o, kh, kw, depth = f.dims or (None,) * 4
        if not same(c, depth):
            raise refuse(
                "channels of filter and x differ", found={"filter": text(f), "x": text(x)}, wanted="equal last sizes"
            )
        if not same(op.bias.spec.shape[0], o):
            raise refuse("the bias does not fit the filter", found=text(op.bias.spec.shape), wanted=f"[{o}]")
        if h == 0 or w == 0:
            raise refuse("x is an image without pixels", found=text(x), wanted="sizes of at least 1")
        out = [op.result_size(size, k, s)[0] for size, k, s in ((h, kh, op.stride_h), (w, kw, op.stride_w))]
        if None not in (n, *out, o):
            bounded((n, *(a + (k or 0) for a, k in zip(out, (kh, kw))), o), float32, "the image")
        return spec((n, *out, o), float32)

    def compute(op: Any, x: np.ndarray, filter: np.ndarray, bias: np.ndarray) -> np.ndarray:
        (n, h, w, _), (o, kh, kw, _) = x.shape, filter.shape
        high, top = op.result_size(h, kh, op.stride_h)
        wide, left = op.result_size(w, kw, op.stride_w)
        full = np.zeros((n, op.stride_h * (h - 1) + kh, op.stride_w * (w - 1) + kw, o), np.float32)
        for i in range(kh):
            rows = slice(i, i + op.stride_h * (h - 1) + 1, op.stride_h)
            for j in range(kw):
                full[:, rows, j : j + op.stride_w * (w - 1) + 1 : op.stride_w] += x @ filter[:, i, j].T
        result: np.ndarray = full[:, top : top + high, left : left + wide] + bias
        return result


TYPES = ("INT8 INT8", "INT16 INT16")


def _infer(op: Any) -> TensorSpec:
    check_pool(op, 5)
    if op.data_format != "NDHWC":
        raise refuse("data_format is not NDHWC", found=repr(op.data_format), wanted="NDHWC")
    dims = op.x.spec.shape.dims or (None,) * 5
    out = [out_size(size, k, s, 1, op.padding) for size, k, s in zip(dims[1:4], op.ksize[1:4], op.strides[1:4])]
    if None not in (*dims, *out):
        sizes: Any = zip(dims[1:4], out)
        bounded((dims[0], *(max(pair) for pair in sizes), dims[4]), float32, "the pooled volume")
    return spec((dims[0], *out, dims[4]), op.x.spec.dtype)


def _volume_windows(op: Any, x: Any) -> list[AxisWindow]:
    return [window(size, k, s, 1, op.padding) for size, k, s in zip(x.shape[1:4], op.ksize[1:4], op.strides[1:4])]


def _combined(op: Any, x: np.ndarray, combine: np.ufunc, initial: float) -> np.ndarray:
    for axis, w in enumerate(_volume_windows(op, x), 1):
        x = combine_along(x, w, axis, combine, initial)
    return x


def _seen(op: Any, x: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the number of elements of the volume in each window, [d, h, w, 1]."""
    d, h, w = (counts(one, dtype) for one in _volume_windows(op, x))
    result: np.ndarray = np.multiply.outer(np.multiply.outer(d, h), w)[..., None]
    return result


def _checked(op: Any, x: Operand, y: Operand) -> None:
    check_types(op, TYPES, x, y)
    check_scaled(x, y)
    check_same(x, y)
    if x.type == "INT16":
        check_symmetric(x, y)


def _average(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    """Compute means of integers, rounded half away from zero."""
    _checked(op, x, y)

    def run(q: np.ndarray) -> np.ndarray:
        total, n = _combined(op, q.astype(np.int32), np.add, 0), _seen(op, q, np.int32)
        return rounded_quotient(total, n)

    return run


def _maximum(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    _checked(op, x, y)
    return lambda q: _combined(op, q, np.maximum, x.low)


@custom_operator("AvgPool3D", "AveragePool3D")
class AvgPool3DOp(LiteDefinition):
    """The mean over each window; padding does not count.

    .. math:: y_{ntpqc} = \\operatorname{mean}_{ijk} x_{n, t s + i, p s + j, q s + k, c}

    x: [n, d, h, w, c], float32, or int8 and int16 with scales, which y shares; ksize, strides: [1, d, h, w, 1];
    padding: SAME or VALID; data_format: NDHWC
    """

    x = Input((float32,), rank=5)
    y = Output(like="x")
    ksize = Attr([int], default=())
    strides = Attr([int], default=())
    padding = Attr(str, default="")
    data_format = Attr(str, default="NDHWC")
    quantized = _average
    infer = _infer

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        result: np.ndarray = _combined(op, x, np.add, 0.0) / _seen(op, x, np.float32)
        return result


@custom_operator("MaxPool3D")
class MaxPool3DOp(LiteDefinition):
    """The greatest of each window.

    .. math:: y_{ntpqc} = \\max_{ijk} x_{n, t s + i, p s + j, q s + k, c}

    Tensors and attributes as for AvgPool3D.
    """

    x = Input((float32,), rank=5)
    y = Output(like="x")
    ksize = Attr([int], default=())
    strides = Attr([int], default=())
    padding = Attr(str, default="")
    data_format = Attr(str, default="NDHWC")
    quantized = _maximum
    infer = _infer

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return _combined(op, x, np.maximum, -np.inf)
