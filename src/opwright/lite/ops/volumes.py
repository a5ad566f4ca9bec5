"""Convolutions over volumes [n, d, h, w, c]: CONV_3D, CONV_3D_TRANSPOSE.

Lives here: the two operators.  Not here: images (convolution.py), the arithmetic on arrays (ops/conv_arrays.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import float32, int32
from ...core.specs import TensorSpec
from ...ops import conv_arrays
from ...ops.slots import Input, Output
from ...ops.windows import Window
from .definition import lite_operator
from .fusing import fuse
from .shapes import bounded, ints, product, refuse, same, spec, text
from .windows import out_size, window

_F = (float32,)
_STEPS = ("stride_d", "stride_h", "stride_w", "dilation_d_factor", "dilation_h_factor", "dilation_w_factor")


def _steps(op: Any) -> list[tuple[int, int]]:
    """(stride, dilation) of each dimension, checked."""
    for name in _STEPS:
        if getattr(op, name) < 1:
            raise refuse(f"{name} must be positive", found=getattr(op, name), wanted="at least 1")
    return [
        (op.stride_d, op.dilation_d_factor),
        (op.stride_h, op.dilation_h_factor),
        (op.stride_w, op.dilation_w_factor),
    ]


def _windows(op: Any, volume: Any, kernel: Any) -> list[Window]:
    return [window(size, k, s, d, op.padding) for size, k, (s, d) in zip(volume, kernel, _steps(op))]


def _bounded(op: Any, n: Any, windows: list[Window], depth: Any) -> None:
    bounded((n, *(w.before + w.size + w.after for w in windows), depth), float32, "the padded volume")


def _check_bias(op: Any, depth: Any) -> None:
    if op.bias is not None and not same(product(op.bias.spec.shape.dims or (None,)), depth):
        raise refuse("the bias does not fit the filter", found=text(op.bias.spec.shape), wanted=f"[{depth}]")


@lite_operator("CONV_3D")
class Conv3D:
    """A convolution of volumes.

    .. math:: y_{npqro} = act(b_o + \\sum_{ijkc} x_{n, p s + i d, q s + j d, r s + k d, c} f_{ijkco})

    x: [n, d, h, w, c]; filter: [kd, kh, kw, c, o]; bias: [o]
    """

    x = Input(_F, rank=5)
    filter = Input(_F, rank=5)
    bias = Input(_F, optional=True)
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        x, f = op.x.spec.shape, op.filter.spec.shape
        *kernel, c, o = f.dims or (None,) * 5
        n, *volume, channels = x.dims or (None,) * 5
        if not same(channels, c):
            raise refuse(
                "channels of x and filter differ",
                found={"x": text(x), "filter": text(f)},
                wanted="x.shape[4] == filter.shape[3]",
            )
        _check_bias(op, o)
        out = [out_size(size, k, s, d, op.padding) for size, k, (s, d) in zip(volume, kernel, _steps(op))]
        if None not in (n, *volume, channels, *kernel):
            _bounded(op, n, _windows(op, volume, kernel), channels)
        return spec((n, *out, o), float32)

    def compute(op: Any, x: Any, filter: Any, bias: Any) -> Any:
        y = conv_arrays.convolve(op, x, filter, _windows(op, x.shape[1:4], filter.shape[:3]))
        return _finish(op, y, bias)


def _finish(op: Any, y: Any, bias: Any) -> Any:
    if bias is not None:
        y = y + bias.reshape(-1)
    return fuse(op, y)


@lite_operator("CONV_3D_TRANSPOSE")
class Conv3DTranspose:
    """The adjoint of a convolution of volumes by its input: each element of x spreads over a window of y.

    .. math:: y_{n, p s + i, q s + j, r s + k, o} \\mathrel{+}= x_{npqrc} f_{ijkoc}

    output_shape: int32 [5]; filter: [kd, kh, kw, o, c]; x: [n, p, q, r, c]; bias: [o]
    """

    output_shape = Input((int32,), rank=1)
    filter = Input(_F, rank=5)
    x = Input(_F, rank=5)
    bias = Input(_F, optional=True)
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        f, x, sizes = op.filter.spec.shape, op.x.spec.shape, ints(op.output_shape)
        *kernel, o, c = f.dims or (None,) * 5
        _steps(op)
        if not same(op.output_shape.spec.shape[0], 5):
            raise refuse("output_shape has not five sizes", found=text(op.output_shape.spec.shape), wanted="[5]")
        if x.rank and not same(x[4], c):
            raise refuse(
                "channels of filter and x differ", found={"filter": text(f), "x": text(x)}, wanted="equal last sizes"
            )
        _check_bias(op, o)
        if sizes is None:
            return spec((x[0] if x.rank else None, None, None, None, o), float32)
        if min(sizes) < 0:
            raise refuse("output_shape has a negative size", found=sizes, wanted="sizes of at least 0")
        if None not in (*(x.dims or (None,)), o, *kernel):
            windows = _windows(op, sizes[1:4], kernel)
            if [w.out for w in windows] != list(x.dims[1:4]) or sizes[0] != x[0] or sizes[4] != o:
                raise refuse(
                    "output_shape does not fit x and filter",
                    found={"output_shape": sizes, "x": text(x), "filter": text(f)},
                    wanted="a shape that the convolution takes to that of x",
                )
            _bounded(op, x[0], windows, o)
        return spec(sizes, float32)

    def compute(op: Any, output_shape: Any, filter: Any, x: Any, bias: Any) -> Any:
        shape = [int(s) for s in output_shape]
        windows = _windows(op, shape[1:4], filter.shape[:3])
        return _finish(op, conv_arrays.by_input(x, filter, shape, windows), bias)
