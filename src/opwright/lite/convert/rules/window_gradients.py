"""Rules for training on a device: gradients of convolutions and pools, and batch normalisation in training.

Lives here: Conv2DBackpropFilter, DepthwiseConv2dNativeBackprop*, AvgPoolGrad, MaxPoolGrad, FusedBatchNorm in training.
Not here: Conv2DBackpropInput, which is TRANSPOSE_CONV (convolution.py), other gradients (nn.py).

The gradient of a convolution by its filter is a convolution with batch and channels, and stride and dilation,
exchanged. Pools work channel by channel, so their channels go into the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....core.dtypes import float32, int32
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ....ops.windows import AxisWindow, window
from ..rewriter import (
    LiteRewriter,
    NoMatch,
    RuleResult,
    UnmatchedNode,
    constant_of,
    number,
    only,
    padded,
    picked,
    reshaped,
    rule_table,
    shape_of_batch,
    sliced,
)
from .convolution import FROM_LAST, WindowLayout, step_options, transposed
from .nn import per_channel


def _inside(value: Value, *axes: int) -> list[int]:
    dims = value.spec.shape.dims
    if dims is None or any(dims[a] is None for a in axes):
        raise UnmatchedNode("the shape is not known")
    return [int(dims[a] or 0) for a in axes]


def _windows(image: WindowLayout, spatial: Sequence[int], kernel: Sequence[int]) -> list[AxisWindow]:
    """Return the windows of the kernel over height and width."""
    sizes = zip(spatial, kernel, image.strides, image.dilations, image.pads[1:3])
    return [window(n, k, s, d, image.padding, p) for n, k, s, d, p in sizes]


def _whole(rewriter: LiteRewriter, x: Value, windows: Sequence[AxisWindow]) -> Value:
    """Return the image that the windows cover, with padding and without unused borders."""
    used = [(w.out - 1) * w.stride + w.extent for w in windows]
    pads = [(w.before, max(0, n - w.before - w.size)) for w, n in zip(windows, used)]
    y = padded(rewriter, x, [(0, 0), *pads, (0, 0)])
    return sliced(
        rewriter, y, [0] * 4, [-1, *(min(n, a + w.size + b) for n, (a, b), w in zip(used, pads, windows)), -1]
    )


def _conv_filter(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, filter_sizes, dy = node.operands
    only(x, float32)
    kh, kw, depth, _ = (int(d) for d in constant_of(filter_sizes, "the shape of the filter"))
    image = WindowLayout(node, rewriter, x)
    back = transposed(rewriter, dy, image.to_last) if image.to_last else dy
    *spatial, channels = _inside(image.x, 1, 2, 3)
    if depth != channels:
        return NoMatch("the gradient by a filter of groups")
    seen = _whole(rewriter, image.x, _windows(image, spatial, (kh, kw)))
    y = rewriter.emit(
        "CONV_2D",
        transposed(rewriter, seen, (3, 1, 2, 0)),
        transposed(rewriter, back, (3, 1, 2, 0)),
        rewriter.constant(np.zeros(_inside(back, 3)), float32),
        padding="VALID",
        **step_options(image.dilations, image.strides),
    )
    return transposed(rewriter, y, (1, 2, 0, 3))


def _depthwise_filter(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, filter_sizes, dy = node.operands
    only(x, float32)
    kh, kw, channels, m = (int(d) for d in constant_of(filter_sizes, "the shape of the filter"))
    image = WindowLayout(node, rewriter, x)
    back = transposed(rewriter, dy, image.to_last) if image.to_last else dy
    n = (image.x.spec.shape.dims or (None,))[0]
    oh, ow = _inside(back, 1, 2)
    seen = _whole(rewriter, image.x, _windows(image, _inside(image.x, 1, 2), (kh, kw)))
    h, w = _inside(seen, 1, 2)
    if n is None:
        return NoMatch("the number of images is not known")
    planes = reshaped(rewriter, transposed(rewriter, seen, (1, 2, 3, 0)), [1, h, w, channels * n])
    apart = transposed(rewriter, reshaped(rewriter, back, [n, oh * ow, channels, m]), (1, 2, 0, 3))
    filters = reshaped(rewriter, apart, [1, oh, ow, channels * n * m])
    y = rewriter.emit(
        "DEPTHWISE_CONV_2D",
        planes,
        filters,
        rewriter.constant(np.zeros(channels * n * m), float32),
        padding="VALID",
        depth_multiplier=m,
        **step_options(image.dilations, image.strides),
    )
    by_image = reshaped(rewriter, y, [kh * kw, channels, n, m])
    return reshaped(rewriter, rewriter.emit("SUM", by_image, rewriter.int32([2])), [kh, kw, channels, m])


def spread(
    rewriter: LiteRewriter, x: Value, filters: Value, spatial: Sequence[int], windows: Sequence[AxisWindow]
) -> Value:
    """Add windows' values [n, p, q, c] up on an image of that height and width; filters [o, kh, kw, c]."""
    used = [max((w.out - 1) * w.stride + w.extent, w.before + w.size) for w in windows]
    out = [*used, _inside(filters, 0)[0]]
    shape = shape_of_batch(rewriter, x, out)
    y = rewriter.emit(
        "TRANSPOSE_CONV",
        shape,
        filters,
        x,
        None,
        padding="VALID",
        stride_h=windows[0].stride,
        stride_w=windows[1].stride,
        like=x.spec.with_shape([(x.spec.shape.dims or (None,))[0], *out]),
    )
    return sliced(rewriter, y, [0, windows[0].before, windows[1].before, 0], [-1, *spatial, -1])


def _depthwise_input(node: Node, rewriter: LiteRewriter) -> RuleResult:
    _, filters, dy = node.operands
    only(dy, float32)
    image = WindowLayout(node, rewriter, dy)
    if image.dilations != [1, 1]:
        return NoMatch("TRANSPOSE_CONV has no dilation")
    dims = image.out.shape.dims
    if dims is None or None in dims[1:]:
        return NoMatch("the shape of the result is not known")
    h, w, channels = (int(d) for d in dims[1:] if d is not None)
    kh, kw, _, m = _inside(filters, 0, 1, 2, 3)
    unit, apart = np.eye(channels).reshape(channels, 1, channels, 1), (1, kh * kw, channels, m)
    if filters.constant is not None:
        table_ = filters.constant.reshape(apart) * unit
        dense = rewriter.constant(table_.reshape(channels, kh, kw, channels * m), float32)
    else:
        product = rewriter.emit("MUL", reshaped(rewriter, filters, apart), rewriter.constant(unit, float32))
        dense = reshaped(rewriter, product, [channels, kh, kw, channels * m])
    return image.back(spread(rewriter, image.x, dense, (h, w), _windows(image, (h, w), (kh, kw))))


class ImagePlanes:
    """A pool's operands with each channel an image of its own: [n c, h, w, 1]."""

    def __init__(self, node: Node, rewriter: LiteRewriter, shape: Sequence[int | None]) -> None:
        attrs = node.attrs
        self.rewriter, self.first = rewriter, attrs["data_format"] == "NCHW"
        h, w, c = (shape[2], shape[3], shape[1]) if self.first else (shape[1], shape[2], shape[3])
        if h is None or w is None or c is None:
            raise UnmatchedNode("the shape of the image is not known")
        self.n, self.spatial, self.channels = shape[0], (int(h), int(w)), int(c)
        pads = np.array(attrs.get("explicit_paddings") or (0,) * 8).reshape(4, 2)
        at = slice(2, 4) if self.first else slice(1, 3)
        if any(v[0] != 1 or v[1 if self.first else 3] != 1 for v in (attrs["ksize"], attrs["strides"])):
            raise UnmatchedNode("a pool over batch or channels")
        self.windows = [
            window(n, k, s, 1, attrs["padding"], p)
            for n, k, s, p in zip(self.spatial, attrs["ksize"][at], attrs["strides"][at], pads[at].tolist())
        ]

    def channels_to_batch(self, x: Value) -> Value:
        """Reshape [n, h, w, c] to [n c, h, w, 1]."""
        first = x if self.first else transposed(self.rewriter, x, FROM_LAST)
        n, c, h, w = first.spec.shape.dims or (None,) * 4
        return reshaped(self.rewriter, first, [None if n is None or c is None else n * c, h, w, 1])

    def batch_to_channels(self, y: Value) -> Value:
        """Invert `channels_to_batch`."""
        whole = reshaped(self.rewriter, y, [self.n, self.channels, *self.spatial])
        return whole if self.first else transposed(self.rewriter, whole, (0, 2, 3, 1))


def _average_grad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    _, dy = node.operands
    only(dy, float32)
    planes = ImagePlanes(node, rewriter, node.outputs[0].spec.shape.dims or (None,) * 4)
    rows, columns = planes.windows
    shares = 1 / np.multiply.outer(_counts(rows), _counts(columns))[..., None]
    values = rewriter.emit("MUL", planes.channels_to_batch(dy), rewriter.constant(shares, float32))
    ones = rewriter.constant(np.ones((1, rows.kernel, columns.kernel, 1)), float32)
    return planes.batch_to_channels(spread(rewriter, values, ones, planes.spatial, planes.windows))


def _counts(w: AxisWindow) -> np.ndarray:
    first = np.arange(w.out) * w.stride - w.before
    return np.minimum(first + w.kernel, w.size) - np.maximum(first, 0)


def _max_grad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Find the first greatest element of each window, and put the gradient there."""
    x, _, dy = node.operands
    only(x, float32)
    planes = ImagePlanes(node, rewriter, x.spec.shape.dims or (None,) * 4)
    (h, w), (rows, columns) = planes.spatial, planes.windows
    k = rows.kernel * columns.kernel
    down, across = ((np.arange(v.out)[:, None] * v.stride + np.arange(v.kernel) - v.before) for v in (rows, columns))
    places = down[:, None, :, None] * w + across[None, :, None, :]
    outside = ((down < 0) | (down >= h))[:, None, :, None] | ((across < 0) | (across >= w))[None, :, None, :]
    places = np.where(outside, -1, places).reshape(rows.out, columns.out, k)
    flat = reshaped(rewriter, planes.channels_to_batch(x), [None, h * w])
    seen = picked(rewriter, flat, (h * w,), places, float("-inf"))
    largest = rewriter.emit("ARG_MAX", seen, rewriter.constant(3, int32), output_type="INT32")
    chosen = rewriter.emit(
        "ONE_HOT",
        largest,
        rewriter.constant(k, int32),
        rewriter.constant(1.0, float32),
        rewriter.constant(0.0, float32),
        axis=-1,
    )
    values = rewriter.emit("MUL", chosen, planes.channels_to_batch(dy))
    unit = rewriter.constant(np.eye(k).reshape(1, rows.kernel, columns.kernel, k), float32)
    return planes.batch_to_channels(spread(rewriter, values, unit, planes.spatial, planes.windows))


def _batch_norm(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Normalise by the statistics of the batch, or by operands that are not constant."""
    x, scale, offset, mean, variance = node.inputs
    assert isinstance(x, Value)
    assert isinstance(scale, Value)
    assert isinstance(offset, Value)
    only(x, float32)
    rank = x.spec.shape.rank or 4
    axis = 1 if node.attrs["data_format"].startswith("NC") else rank - 1
    statistics = [v for v in (mean, variance) if isinstance(v, Value) and v.spec.shape.dims != (0,)]
    if not node.attrs["is_training"]:
        m, v = statistics
        return _normalised(node, rewriter, x, scale, offset, m, v, rank, axis), m, v
    axes = [i for i in range(rank) if i != axis]
    m = rewriter.emit("MEAN", x, rewriter.int32(axes))
    distances = rewriter.emit("SQUARED_DIFFERENCE", x, per_channel(rewriter, m, rank, axis))
    v = rewriter.emit("MEAN", distances, rewriter.int32(axes))
    y = _normalised(node, rewriter, x, scale, offset, m, v, rank, axis)
    count = _inside(x, *axes)
    total = int(np.prod(count, dtype=np.int64))
    unbiased = rewriter.emit("MUL", v, number(rewriter, total / max(total - 1, 1), v))
    factor = float(node.attrs["exponential_avg_factor"])
    if factor == 1.0:
        return y, m, unbiased
    mixed = [
        rewriter.emit(
            "ADD",
            rewriter.emit("MUL", old, number(rewriter, 1 - factor, old)),
            rewriter.emit("MUL", new, number(rewriter, factor, new)),
        )
        for old, new in zip(statistics, (m, unbiased))
    ]
    return y, *mixed


def _normalised(
    node: Node,
    rewriter: LiteRewriter,
    x: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
    rank: int,
    axis: int,
) -> Value:
    deviation = rewriter.emit("ADD", variance, number(rewriter, node.attrs["epsilon"], variance))
    factor = rewriter.emit("MUL", scale, rewriter.emit("RSQRT", deviation))
    apart = rewriter.emit("SUB", x, per_channel(rewriter, mean, rank, axis))
    return rewriter.emit(
        "ADD",
        rewriter.emit("MUL", apart, per_channel(rewriter, factor, rank, axis)),
        per_channel(rewriter, offset, rank, axis),
        like=node.outputs[0].spec,
    )


_CHANGED = "a convolution with batch and channels, stride and dilation changed places"

TRAINING = rule_table(
    RewriteRule("conv_by_filter", "Conv2DBackpropFilter", _conv_filter, _CHANGED),
    RewriteRule("depthwise_by_filter", "DepthwiseConv2dNativeBackpropFilter", _depthwise_filter, _CHANGED),
    RewriteRule(
        "depthwise_by_input",
        "DepthwiseConv2dNativeBackpropInput",
        _depthwise_input,
        "TRANSPOSE_CONV with zeros between different channels",
    ),
    RewriteRule("average_pool_grad", "AvgPoolGrad", _average_grad, "equal shares, which TRANSPOSE_CONV spreads"),
    RewriteRule(
        "max_pool_grad", "MaxPoolGrad", _max_grad, "the place of the largest element, which TRANSPOSE_CONV spreads"
    ),
    RewriteRule("batch_norm_in_training", "FusedBatchNorm", _batch_norm, "its definition"),
)
