"""Rules for convolutions and pools over images and volumes.

Lives here: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, AVERAGE_POOL_2D, MAX_POOL_2D, with layouts and paddings; Conv3D
and its adjoint, AvgPool3D, MaxPool3D.
Not here: bias, scale and activation, which merge afterwards (../passes.py).

The lite operators take channels-last images and the paddings SAME and VALID alone: NCHW is transposed before and after,
explicit paddings become a PAD before, or a slice after, and constant filters are transposed during conversion.

Pools over volumes are two pools over images: of height and width, with the depth in the batch; then of the depth alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import float32, int32
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import (
    LiteRewriter,
    NoMatch,
    Rewrite,
    RuleResult,
    only,
    padded,
    reshaped,
    rule_table,
    shape_of_batch,
    sliced,
)

TO_LAST, FROM_LAST = (0, 2, 3, 1), (0, 3, 1, 2)  # NCHW <-> NHWC


def transposed(rewriter: LiteRewriter, x: Value, order: Sequence[int]) -> Value:
    """Return `x` transposed; a constant is a view, whose elements the file has in that order."""
    if x.constant is not None:
        return rewriter.constant(np.transpose(x.constant, order), x.dtype)
    shape = None if x.spec.shape.dims is None else [x.spec.shape.dims[i] for i in order]
    return rewriter.emit("TRANSPOSE", x, rewriter.int32(order), like=x.spec.with_shape(shape))


class WindowLayout:
    """A sliding-window operator seen channels-last: its input transposed, and its attributes in that order.

    to_last, from_last: the permutations between the layouts, None if the operator is channels-last. pads: before and
    after each dimension. out: the type of the result.
    """

    def __init__(self, node: Node, rewriter: LiteRewriter, x: Value) -> None:
        attrs, rank, spec = node.attrs, len(node.attrs["strides"]), node.outputs[0].spec
        self.rewriter, self.x, self.out, self.padding = rewriter, x, spec, attrs["padding"]
        self.to_last: tuple[int, ...] | None = None
        self.from_last: tuple[int, ...] | None = None
        pads = np.array(attrs.get("explicit_paddings") or (0,) * 2 * rank).reshape(rank, 2).tolist()
        if attrs["data_format"].startswith("NC"):
            self.to_last, self.from_last = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
            pads = [pads[i] for i in self.to_last]
            self.x = transposed(rewriter, x, self.to_last)
            dims = spec.shape.dims
            self.out = spec.with_shape(None if dims is None else [dims[i] for i in self.to_last])
        self.pads: list[tuple[int, int]] = [(before, after) for before, after in pads]
        self.strides = self.spatial(attrs["strides"])
        self.dilations = self.spatial(attrs.get("dilations", (1,) * rank))

    def spatial(self, values: Sequence[int]) -> list[int]:
        """Return the entries for (depth,) height and width."""
        return list(values[2:] if self.to_last else values[1:-1])

    def pad(self, value: float | None = None) -> str:
        """Emit explicit padding, and return the padding for the operator itself."""
        if self.padding != "EXPLICIT":
            return str(self.padding)
        self.x = padded(self.rewriter, self.x, self.pads, value)
        return "VALID"

    def steps(self) -> dict[str, Any]:
        """Return the options for strides and dilations."""
        return step_options(self.strides, self.dilations)

    def back(self, y: Value) -> Value:
        """Return the result in the layout of the node."""
        return transposed(self.rewriter, y, self.from_last) if self.from_last else y


def step_options(strides: Sequence[int], dilations: Sequence[int]) -> dict[str, Any]:
    """Return the options for strides and dilations of height and width, after those of depth if there are three."""
    axes = "dhw"[-len(strides) :]
    options = {f"stride_{axis}": n for axis, n in zip(axes, strides)}
    return options | {f"dilation_{axis}_factor": n for axis, n in zip(axes, dilations)}


def _conv2d(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, filters = node.operands
    dims = filters.spec.shape.dims
    if x.dtype is not float32:
        return NoMatch(f"CONV_2D takes float32, found {x.dtype.name}")
    image = WindowLayout(node, rewriter, x)
    channels = None if image.x.spec.shape.dims is None else image.x.spec.shape.dims[3]
    if dims is None or None in dims[2:] or channels is None:
        return NoMatch("the numbers of channels are not known")
    padding = image.pad()
    bias = rewriter.constant(np.zeros(dims[3] or 0), float32)
    y = rewriter.emit(
        "CONV_2D",
        image.x,
        transposed(rewriter, filters, (3, 0, 1, 2)),
        bias,
        like=image.out,
        padding=padding,
        **image.steps(),
    )
    return image.back(y)


def _depthwise(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, filter = node.operands
    if x.dtype is not float32:
        return NoMatch(f"DEPTHWISE_CONV_2D takes float32, found {x.dtype.name}")
    if not filter.spec.shape.is_fully_defined():
        return NoMatch("the shape of the filter is not known")
    h, w, channels, multiplier = (int(d) for d in filter.spec.shape.dims or () if d is not None)
    image = WindowLayout(node, rewriter, x)
    if image.x.spec.shape.dims is None or image.x.spec.shape.dims[3] is None:
        return NoMatch("the number of channels is not known")
    padding = image.pad()
    shape = (1, h, w, channels * multiplier)  # input channel by input channel, as DEPTHWISE_CONV_2D counts them too
    if filter.constant is not None:
        flat = rewriter.constant(filter.constant.reshape(shape), float32)
    else:
        flat = rewriter.emit("RESHAPE", filter, rewriter.int32(shape), like=filter.spec.with_shape(shape))
    y = rewriter.emit(
        "DEPTHWISE_CONV_2D",
        image.x,
        flat,
        rewriter.constant(np.zeros(channels * multiplier), float32),
        like=image.out,
        padding=padding,
        depth_multiplier=multiplier,
        **image.steps(),
    )
    return image.back(y)


def _conv2d_transpose(node: Node, rewriter: LiteRewriter) -> RuleResult:
    sizes, filters, x = node.operands
    if x.dtype is not float32:
        return NoMatch(f"TRANSPOSE_CONV takes float32, found {x.dtype.name}")
    image = WindowLayout(node, rewriter, x)
    if image.dilations != [1, 1]:
        return NoMatch("TRANSPOSE_CONV has no dilation")
    kernel, depth = filters.spec.shape.dims, None if image.x.spec.shape.dims is None else image.x.spec.shape.dims[3]
    if kernel is None or None in kernel:
        return NoMatch("the shape of the filter is not known")
    out = image.out.shape.dims or (None, None, None, kernel[2])
    if kernel[3] != depth or kernel[2] != out[3]:
        return NoMatch("TRANSPOSE_CONV has no groups")
    padding, begin, more = image.padding, [0, 0, 0, 0], [0, 0, 0, 0]
    if padding == "EXPLICIT":  # the padded image whole, then the window of it that is not padding
        (top, bottom), (left, right) = image.pads[1:3]
        padding, begin, more = "VALID", [0, top, left, 0], [0, top + bottom, left + right, 0]
    whole = [None if d is None else d + m for d, m in zip(out, more)]
    y = rewriter.emit(
        "TRANSPOSE_CONV",
        _image_sizes(rewriter, image, sizes, whole, more),
        transposed(rewriter, filters, (2, 0, 1, 3)),
        image.x,
        None,
        like=image.out.with_shape(whole),
        padding=padding,
        stride_h=image.strides[0],
        stride_w=image.strides[1],
    )
    if any(more):
        target = [-1, *out[1:3], -1] if None not in out[1:] else _image_sizes(rewriter, image, sizes, out, (0,) * 4)
        y = rewriter.emit("SLICE", y, rewriter.int32(begin), rewriter.int32(target), like=image.out)
    return image.back(y)


def _image_sizes(
    rewriter: LiteRewriter, image: WindowLayout, sizes: Value, dims: Sequence[int | None], more: Sequence[int]
) -> Value:
    """Return the sizes `dims` of a channels-last image; unknown ones are `more` than the operator's operand."""
    if None not in dims:
        return rewriter.int32(dims)
    if None not in dims[1:]:
        batch = rewriter.emit(
            "STRIDED_SLICE",
            rewriter.emit("SHAPE", image.x, out_type="INT32"),
            rewriter.int32([0]),
            rewriter.int32([1]),
            rewriter.int32([1]),
        )
        return rewriter.emit("CONCATENATION", (batch, rewriter.int32(dims[1:])), axis=0)
    last = rewriter.cast(sizes, int32)
    if image.to_last:
        last = rewriter.emit("GATHER", last, rewriter.int32(image.to_last), axis=0)
    return rewriter.emit("ADD", last, rewriter.int32(more)) if any(more) else last


def _pools_over_batch_or_channels(node: Node, layout: WindowLayout) -> bool:
    ends = (0, 1 if layout.to_last else -1)
    return any(node.attrs[name][i] != 1 for name in ("ksize", "strides") for i in ends)


def _pool(op_name: str, outside: float | None = None) -> Rewrite:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (x,) = node.operands
        if x.dtype is not float32:
            return NoMatch(f"{op_name} takes float32, found {x.dtype.name}")
        image = WindowLayout(node, rewriter, x)
        if _pools_over_batch_or_channels(node, image):
            return NoMatch(f"{op_name} does not pool over batch or channels")
        padding = image.pad(outside)
        (height, width), (stride_h, stride_w) = image.spatial(node.attrs["ksize"]), image.strides
        y = rewriter.emit(
            op_name,
            image.x,
            like=image.out,
            padding=padding,
            filter_height=height,
            filter_width=width,
            stride_h=stride_h,
            stride_w=stride_w,
        )
        return image.back(y)

    return lower


CONVOLUTION = rule_table(
    RewriteRule("conv_2d", "Conv2D", _conv2d),
    RewriteRule("depthwise_conv_2d", "DepthwiseConv2dNative", _depthwise),
    RewriteRule("transpose_conv", "Conv2DBackpropInput", _conv2d_transpose),
    RewriteRule("average_pool_2d", "AvgPool", _pool("AVERAGE_POOL_2D")),
    RewriteRule("max_pool_2d", "MaxPool", _pool("MAX_POOL_2D", float("-inf")), "padding is -inf, which no maximum is"),
)


def _conv3d(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, filters = node.operands
    only(x, float32)
    volume = WindowLayout(node, rewriter, x)
    channels, filter_channels = (
        (volume.x.spec.shape.dims or (None,) * 5)[4],
        (filters.spec.shape.dims or (None,) * 5)[3],
    )
    if channels is None or channels != filter_channels:
        return NoMatch("CONV_3D has no groups")
    padding = volume.pad()
    return volume.back(rewriter.emit("CONV_3D", volume.x, filters, None, padding=padding, **volume.steps()))


def _conv3d_transpose(node: Node, rewriter: LiteRewriter) -> RuleResult:
    _, filters, x = node.operands
    only(x, float32)
    volume = WindowLayout(node, rewriter, x)
    kernel, out = filters.spec.shape.dims, volume.out.shape.dims
    depth = (volume.x.spec.shape.dims or (None,) * 5)[4]
    if kernel is None or None in kernel or out is None or None in out[1:]:
        return NoMatch("the shape of the result or of the filter is not known")
    if kernel[4] != depth or kernel[3] != out[4]:
        return NoMatch("CONV_3D_TRANSPOSE has no groups")
    if volume.dilations != [1, 1, 1]:
        return NoMatch("the official kernel of CONV_3D_TRANSPOSE has no dilation")
    sizes, padding, begin = [int(d) for d in out[1:] if d is not None], volume.padding, [0, 0, 0]
    if padding == "EXPLICIT":  # the padded volume whole, then the window of it that is not padding
        pads = volume.pads[1:4]
        sizes = [s + a + b for s, (a, b) in zip(sizes, pads)] + sizes[3:]
        padding, begin = "VALID", [a for a, _ in pads]
    shape = shape_of_batch(rewriter, volume.x, sizes)
    y = rewriter.emit("CONV_3D_TRANSPOSE", shape, filters, volume.x, None, padding=padding, **volume.steps())
    if begin != [0, 0, 0] or volume.padding == "EXPLICIT":
        y = sliced(rewriter, y, [0, *begin, 0], [-1, *(int(d or 0) for d in out[1:4]), -1])
    return volume.back(y)


def _volume_pool(lite: str, outside: float) -> Rewrite:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (x,) = node.operands
        only(x, float32)
        volume = WindowLayout(node, rewriter, x)
        if _pools_over_batch_or_channels(node, volume):
            return NoMatch(f"{lite} does not pool over batch or channels")
        (kd, kh, kw), (sd, sh, sw) = volume.spatial(node.attrs["ksize"]), volume.strides
        padding = volume.pad(outside)
        n, d, h, w, c = volume.x.spec.shape.dims or (None,) * 5
        flat = reshaped(rewriter, volume.x, [None if n is None or d is None else n * d, h, w, c])
        y = rewriter.emit(lite, flat, padding=padding, filter_height=kh, filter_width=kw, stride_h=sh, stride_w=sw)
        _, p, q, _ = y.spec.shape.dims or (None,) * 4
        if p is None or q is None or d is None:
            return NoMatch("depth, height and width are not known")
        deep = reshaped(rewriter, y, [n, d, p * q, c])
        y = rewriter.emit(lite, deep, padding=padding, filter_height=kd, filter_width=1, stride_h=sd, stride_w=1)
        return volume.back(reshaped(rewriter, y, [n, (y.spec.shape.dims or (None,) * 2)[1], p, q, c]))

    return lower


_TWICE = "a pool over height and width, then one over the depth; each mean is of as many"

VOLUMES = rule_table(
    RewriteRule("conv_3d", "Conv3D", _conv3d),
    RewriteRule("conv_3d_transpose", "Conv3DBackpropInput", _conv3d_transpose),
    RewriteRule("average_pool_twice", "AvgPool3D", _volume_pool("AVERAGE_POOL_2D", 0.0), _TWICE),
    RewriteRule("max_pool_twice", "MaxPool3D", _volume_pool("MAX_POOL_2D", float("-inf")), _TWICE),
)
