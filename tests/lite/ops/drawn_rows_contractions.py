"""Rows of the table operator x type: convolutions and pools, of any shape that the official kernels take.

Lives here: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, CONV_3D, CONV_3D_TRANSPOSE and the pools: batches of none,
windows larger than the image, groups, multipliers from 2^-16 to 8, zero points at the ends.
Not here: products of matrices, resizes, tables (drawn_rows_products.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from drawn import Draw, Drawn, Row, T, const, plain

FLOAT = ("FLOAT32",)
INTEGERS = ("INT8", "UINT8", "INT16")
SIGNED = ("INT8", "INT16")
SUMS = 1e-5  # float32 sums in another order, some of which an activation cuts off


def activations(d: Draw, *shape: int) -> T:
    """Return run-time operands; some zero points are limits of the type."""
    if d.kind == "FLOAT32":
        return d.real(*shape)
    return d.x(*shape, zero=0 if d.kind == "INT16" else d.one(d.zero(), d.low, d.high))


def weights(d: Draw, *shape: int, axis: int | None, kind: str | None = None, constant: bool = True) -> T:
    """By channel along `axis` or of one scale."""
    if d.kind == "FLOAT32" and kind is None:
        w = d.real(*shape)
        w.constant = constant
        return w
    w = d.w(*shape, axis=d.one(axis, None), kind=kind)
    w.constant = constant
    return w


def biased(d: Draw, x: T, w: T, n: int, kind: str | None = None) -> T:
    if d.kind != "FLOAT32":
        return d.bias(x, w, n, kind)
    bias = d.real(n)
    bias.constant = True
    return bias


def result(d: Draw, x: T, w: T) -> T:
    """An output with which sums are multiplied by 2^-16 to 8."""
    if d.kind == "FLOAT32":
        return plain("FLOAT32")
    factor = float(2 ** d.rng.uniform(-3, 16)) if d.kind == "INT16" else float(2 ** d.rng.uniform(-3, 10))
    scale = float(np.float32(x.scale * float(np.max(w.scale)) * factor))
    zero = 0 if d.kind == "INT16" else d.one(d.zero(), d.low, d.high)
    return T(d.kind, (), scale, zero)


def _steps(d: Draw, names: str, dilated: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"padding": d.one("SAME", "VALID"), "fused_activation_function": d.activation()}
    for name in names:
        options[f"stride_{name}"] = d.size(1, 3)
        if dilated:
            options[f"dilation_{name}_factor"] = d.one(1, 1, 2, 3)
    return options


def _image(d: Draw, options: dict[str, Any], kernel: dict[str, int]) -> list[int]:
    """Sizes over which a kernel fits, or that it passes by less than two strides."""
    sizes = []
    for name, k in kernel.items():
        size, stride = d.size(1, 8), options[f"stride_{name}"]
        extent = (k - 1) * options.get(f"dilation_{name}_factor", 1) + 1
        sizes.append(max(size, extent - 2 * stride + 1) if options["padding"] == "VALID" else size)
    return sizes


def _conv(kind: str | None = None, bias: str | None = None, constant: bool = True) -> Callable[[Draw], Drawn]:
    """kind, bias: types of weights and bias other than those that go with the activations."""

    def draw(d: Draw) -> Drawn:
        options, kernel = _steps(d, "hw", True), {"h": d.size(1, 4), "w": d.size(1, 4)}
        groups = 1 if d.kind == "FLOAT32" and kind else d.one(1, 1, 2, 3)  # no hybrid kernel of one scale has groups
        depth, out = d.size(1, 5), d.size(1, 4) * groups
        x = activations(d, d.one(0, 1, 2), *_image(d, options, kernel), depth * groups)
        w = weights(d, out, *kernel.values(), depth, axis=0, kind=kind, constant=constant)
        if d.kind == "INT16":
            options["quantized_bias_type"] = bias or d.one("FLOAT32", "INT64")
        return Drawn([x, w, biased(d, x, w, out, bias)], [result(d, x, w)], options)

    return draw


def _depthwise(kind: str | None = None, constant: bool = True, most: int = 5) -> Callable[[Draw], Drawn]:
    """depth_multiplier is right, or not there. most: channels of the input."""

    def draw(d: Draw) -> Drawn:
        options, kernel = _steps(d, "hw", True), {"h": d.size(1, 4), "w": d.size(1, 4)}
        channels, times = d.size(1, most), d.size(1, 3) if most > 1 else d.size(2, 20)
        x = activations(d, d.one(0, 1, 2), *_image(d, options, kernel), channels)
        w = weights(d, 1, *kernel.values(), channels * times, axis=3, kind=kind, constant=constant)
        options["depth_multiplier"] = d.one(times, 0)
        return Drawn([x, w, biased(d, x, w, channels * times)], [result(d, x, w)], options)

    return draw


def _adjoint(d: Draw, options: dict[str, Any], kernel: dict[str, int], sizes: dict[str, int]) -> list[int]:
    """Image sizes that a convolution takes to `sizes`."""
    actual = []
    for name, k in kernel.items():
        stride, positions = options[f"stride_{name}"], sizes[name]
        if options["padding"] == "SAME":
            actual.append(max(positions * stride - d.size(0, stride - 1), 1))
        else:
            extent = (k - 1) * options.get(f"dilation_{name}_factor", 1) + 1
            actual.append((positions - 1) * stride + extent + d.size(0, stride - 1))
    return actual


def _transpose_conv(kind: str | None = None, bias: str | None = None) -> Callable[[Draw], Drawn]:
    def draw(d: Draw) -> Drawn:
        options, kernel = _steps(d, "hw", False), {"h": d.size(1, 4), "w": d.size(1, 4)}
        sizes = {"h": d.size(1, 4), "w": d.size(1, 4)}
        n, c, out = d.one(2 if d.kind == "FLOAT32" and kind else 0, 1, 2), d.size(1, 4), d.size(1, 4)
        x, w = activations(d, n, *sizes.values(), c), weights(d, out, *kernel.values(), c, axis=0, kind=kind)
        operands = biased(d, x, w, out, bias)
        inputs = (
            [const(n, *_adjoint(d, options, kernel, sizes), out), w, x, *d.one([], [operands])]
            if not bias
            else [const(n, *_adjoint(d, options, kernel, sizes), out), w, x, operands]
        )
        if d.kind == "INT16":
            options["quantized_bias_type"] = bias or d.one("FLOAT32", "INT64")
        return Drawn(inputs, [result(d, x, w)], options)

    return draw


def _conv_3d(d: Draw, constant: bool = True) -> Drawn:
    options, kernel = _steps(d, "dhw", True), {"d": d.size(1, 3), "h": d.size(1, 3), "w": d.size(1, 3)}
    c, out = d.size(1, 3), d.size(1, 3)
    x = activations(d, d.one(0, 1, 2), *_image(d, options, kernel), c)
    w = weights(d, *kernel.values(), c, out, axis=None, constant=constant)
    return Drawn([x, w, *d.one([], [biased(d, x, w, out)])], [plain("FLOAT32")], options)


def _conv_3d_transpose(d: Draw, constant: bool = True) -> Drawn:
    options, kernel = _steps(d, "dhw", True), {"d": d.size(1, 3), "h": d.size(1, 3), "w": d.size(1, 3)}
    sizes = {"d": d.size(1, 3), "h": d.size(1, 3), "w": d.size(1, 3)}
    n, c, out = d.one(1, 2), d.size(1, 3), d.size(1, 3)
    x, w = activations(d, n, *sizes.values(), c), weights(d, *kernel.values(), out, c, axis=None, constant=constant)
    shape = const(n, *_adjoint(d, options, kernel, sizes), out)
    return Drawn([shape, w, x, *d.one([], [biased(d, x, w, out)])], [plain("FLOAT32")], options)


def _pool(d: Draw) -> Drawn:
    options, kernel = _steps(d, "hw", False), {"h": d.size(1, 4), "w": d.size(1, 4)}
    options |= {"filter_height": kernel["h"], "filter_width": kernel["w"]}
    shape = (d.one(0, 1, 2), *_image(d, options, kernel), d.size(1, 20))
    if d.kind in ("FLOAT32", "FLOAT16"):
        return Drawn([d.t(*shape)], [plain(d.kind)], options)
    x = activations(d, *shape)
    return Drawn([x], [T(x.type, (), x.scale, x.zero)], options)


def _pool_of_some(d: Draw) -> Drawn:
    """Check whether XNNPACK accepts it: images, windows of more than one pixel, strides no larger than these."""
    high, wide = d.size(2, 4), d.size(2, 4)
    options = {
        "padding": d.one("SAME", "VALID"),
        "filter_height": high,
        "filter_width": wide,
        "stride_h": d.size(1, high),
        "stride_w": d.size(1, wide),
        "fused_activation_function": d.activation(),
    }
    return Drawn([d.t(d.size(1, 2), d.size(4, 8), d.size(4, 8), d.size(1, 20))], [plain(d.kind)], options)


ROWS = [
    Row("CONV_2D", FLOAT, _conv(), SUMS, label="CONV_2D any shape"),
    Row("CONV_2D", INTEGERS, _conv(), label="CONV_2D any shape"),
    Row("CONV_2D", ("INT8", "UINT8"), _conv(), 1, "OPT", label="CONV_2D any shape"),
    Row("CONV_2D", ("INT16",), _conv(), 0, "OPT", label="CONV_2D any shape"),
    Row("CONV_2D", FLOAT, _conv(), SUMS, "OPT", label="CONV_2D any shape"),
    Row("CONV_2D", INTEGERS, _conv(constant=False), label="CONV_2D computed weights"),
    Row("CONV_2D", ("INT16",), _conv(bias="INT32"), label="CONV_2D any shape, int32 bias"),
    Row("CONV_2D", SIGNED, _conv("INT4"), label="CONV_2D any shape, int4"),
    Row("CONV_2D", SIGNED, _conv("INT4", constant=False), label="CONV_2D int4, computed weights"),
    Row("CONV_2D", FLOAT, _conv("INT8"), SUMS, label="CONV_2D hybrid, any shape"),
    Row("CONV_2D", FLOAT, _conv("INT4"), SUMS, label="CONV_2D hybrid int4"),
    Row("CONV_2D", FLOAT, _conv("INT8", constant=False), SUMS, label="CONV_2D hybrid, computed weights"),
    Row("DEPTHWISE_CONV_2D", FLOAT, _depthwise(), SUMS, label="DEPTHWISE_CONV_2D any shape"),
    Row("DEPTHWISE_CONV_2D", INTEGERS, _depthwise(), label="DEPTHWISE_CONV_2D any shape"),
    Row("DEPTHWISE_CONV_2D", ("INT8", "UINT8"), _depthwise(), 1, "OPT", label="DEPTHWISE_CONV_2D any shape"),
    Row("DEPTHWISE_CONV_2D", ("INT16",), _depthwise(), 0, "OPT", label="DEPTHWISE_CONV_2D any shape"),
    Row("DEPTHWISE_CONV_2D", FLOAT, _depthwise(), SUMS, "OPT", label="DEPTHWISE_CONV_2D any shape"),
    Row("DEPTHWISE_CONV_2D", INTEGERS, _depthwise(constant=False), label="DEPTHWISE_CONV_2D computed weights"),
    Row("DEPTHWISE_CONV_2D", FLOAT, _depthwise(most=1), SUMS, label="DEPTHWISE_CONV_2D one channel"),
    Row("DEPTHWISE_CONV_2D", INTEGERS, _depthwise(most=1), label="DEPTHWISE_CONV_2D one channel"),
    Row("DEPTHWISE_CONV_2D", ("INT8",), _depthwise("INT4"), label="DEPTHWISE_CONV_2D any shape, int4"),
    Row("TRANSPOSE_CONV", FLOAT, _transpose_conv(), SUMS, label="TRANSPOSE_CONV any shape"),
    Row("TRANSPOSE_CONV", INTEGERS, _transpose_conv(), label="TRANSPOSE_CONV any shape"),
    Row("TRANSPOSE_CONV", ("INT8", "UINT8"), _transpose_conv(), 1, "OPT", label="TRANSPOSE_CONV any shape"),
    Row("TRANSPOSE_CONV", ("INT16",), _transpose_conv(bias="INT32"), label="TRANSPOSE_CONV int32 bias"),
    Row("TRANSPOSE_CONV", FLOAT, _transpose_conv("INT8"), SUMS, label="TRANSPOSE_CONV hybrid"),
    Row("CONV_3D", FLOAT, _conv_3d, SUMS),
    Row("CONV_3D_TRANSPOSE", FLOAT, _conv_3d_transpose, SUMS),
    Row("CONV_3D", FLOAT, partial(_conv_3d, constant=False), SUMS, label="CONV_3D computed weights"),
    Row(
        "CONV_3D_TRANSPOSE",
        FLOAT,
        partial(_conv_3d_transpose, constant=False),
        SUMS,
        label="CONV_3D_TRANSPOSE computed weights",
    ),
    *(Row(name, INTEGERS, _pool, label=f"{name} any shape") for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D")),
    Row("MAX_POOL_2D", FLOAT, _pool),
    Row("AVERAGE_POOL_2D", FLOAT, _pool, 1e-6),
    Row("AVERAGE_POOL_2D", ("FLOAT16",), _pool_of_some, 1e-3, "AUTO"),
    Row("L2_POOL_2D", FLOAT, _pool, 3e-7),
]
