"""Rules for convolutions and pools over images.

Lives here: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, AVERAGE_POOL_2D, MAX_POOL_2D, with layouts and paddings.
Not here: bias, scale and activation, which merge afterwards (../passes.py).

The lite operators take channels-last images and the paddings SAME and VALID alone: NCHW is transposed before and after,
explicit paddings become a PAD before, or a slice after, and constant filters are transposed during conversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import float32, int32
from ....core.specs import TensorSpec
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table

TO_LAST, FROM_LAST = (0, 2, 3, 1), (0, 3, 1, 2)  # NCHW <-> NHWC


def transposed(rewriter: LiteRewriter, x: Value, order: Sequence[int]) -> Value:
    """Return `x` transposed; a constant is transposed during conversion."""
    if x.constant is not None:
        return rewriter.constant(np.ascontiguousarray(np.transpose(x.constant, order)), x.dtype)
    shape = None if x.spec.shape.dims is None else [x.spec.shape.dims[i] for i in order]
    return rewriter.emit("TRANSPOSE", x, rewriter.int32(order), like=x.spec.with_shape(shape))


class ImageLayout:
    """One sliding-window operator seen channels-last: its input brought there, and its attributes in that order."""

    def __init__(self, node: Node, rewriter: LiteRewriter, x: Value) -> None:
        attrs = node.attrs
        self.rewriter, self.x = rewriter, x
        self.order = FROM_LAST if attrs["data_format"] == "NCHW" else None
        self.stride_h, self.stride_w = self._spatial(attrs["strides"])
        self.dilation_h, self.dilation_w = self._spatial(attrs.get("dilations", (1, 1, 1, 1)))
        self.padding = attrs["padding"]
        pads = np.array(attrs.get("explicit_paddings") or (0,) * 8).reshape(4, 2)
        self.pads = pads[list(TO_LAST)] if self.order else pads  # before and after of n, h, w, c
        spec = node.outputs[0].spec
        if self.order:
            self.x = transposed(rewriter, x, TO_LAST)
            spec = spec.with_shape(None if spec.shape.dims is None else [spec.shape.dims[i] for i in TO_LAST])
        self.out: TensorSpec = spec

    def _spatial(self, values: Sequence[int]) -> tuple[int, int]:
        return (values[2], values[3]) if self.order else (values[1], values[2])

    def pad(self, value: float = 0.0) -> str:
        """Emit explicit padding, and return the padding for the operator itself."""
        if self.padding != "EXPLICIT":
            return str(self.padding)
        if self.pads.any():
            pads = self.rewriter.int32(self.pads.tolist())
            if value == 0.0:
                self.x = self.rewriter.emit("PAD", self.x, pads)
            else:
                self.x = self.rewriter.emit("PADV2", self.x, pads, self.rewriter.constant(value, self.x.dtype))
        return "VALID"

    def back(self, y: Value) -> Value:
        """Return the result in the layout of the node."""
        return transposed(self.rewriter, y, self.order) if self.order else y


def _conv2d(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, filters = node.operands
    dims = filters.spec.shape.dims
    if x.dtype is not float32:
        return NoMatch(f"CONV_2D takes float32, found {x.dtype.name}")
    image = ImageLayout(node, rewriter, x)
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
        stride_h=image.stride_h,
        stride_w=image.stride_w,
        dilation_h_factor=image.dilation_h,
        dilation_w_factor=image.dilation_w,
    )
    return image.back(y)


def _depthwise(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, filter = node.operands
    if x.dtype is not float32:
        return NoMatch(f"DEPTHWISE_CONV_2D takes float32, found {x.dtype.name}")
    if not filter.spec.shape.is_fully_defined():
        return NoMatch("the shape of the filter is not known")
    h, w, channels, multiplier = (int(d) for d in filter.spec.shape.dims or () if d is not None)
    image = ImageLayout(node, rewriter, x)
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
        stride_h=image.stride_h,
        stride_w=image.stride_w,
        dilation_h_factor=image.dilation_h,
        dilation_w_factor=image.dilation_w,
    )
    return image.back(y)


def _conv2d_transpose(node: Node, rewriter: LiteRewriter) -> RuleResult:
    sizes, filters, x = node.operands
    if x.dtype is not float32:
        return NoMatch(f"TRANSPOSE_CONV takes float32, found {x.dtype.name}")
    image = ImageLayout(node, rewriter, x)
    if (image.dilation_h, image.dilation_w) != (1, 1):
        return NoMatch("TRANSPOSE_CONV has no dilation")
    kernel, depth = filters.spec.shape.dims, None if image.x.spec.shape.dims is None else image.x.spec.shape.dims[3]
    if kernel is None or None in kernel:
        return NoMatch("the shape of the filter is not known")
    out = image.out.shape.dims or (None, None, None, kernel[2])
    if kernel[3] != depth or kernel[2] != out[3]:
        return NoMatch("TRANSPOSE_CONV has no groups")
    padding, begin, more = image.padding, [0, 0, 0, 0], [0, 0, 0, 0]
    if padding == "EXPLICIT":  # the padded image whole, then the window of it that is not padding
        (top, bottom), (left, right) = image.pads[1:3].tolist()
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
        stride_h=image.stride_h,
        stride_w=image.stride_w,
    )
    if any(more):
        target = [-1, *out[1:3], -1] if None not in out[1:] else _image_sizes(rewriter, image, sizes, out, (0,) * 4)
        y = rewriter.emit("SLICE", y, rewriter.int32(begin), rewriter.int32(target), like=image.out)
    return image.back(y)


def _image_sizes(
    rewriter: LiteRewriter, image: ImageLayout, sizes: Value, dims: Sequence[int | None], more: Sequence[int]
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
    if image.order:
        last = rewriter.emit("GATHER", last, rewriter.int32(TO_LAST), axis=0)
    return rewriter.emit("ADD", last, rewriter.int32(more)) if any(more) else last


def _pool(op_name: str, outside: float) -> Any:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (x,) = node.operands
        if x.dtype is not float32:
            return NoMatch(f"{op_name} takes float32, found {x.dtype.name}")
        image = ImageLayout(node, rewriter, x)
        ksize, strides = node.attrs["ksize"], node.attrs["strides"]
        batch, channel = 0, 1 if image.order else 3
        if any(v[i] != 1 for v in (ksize, strides) for i in (batch, channel)):
            return NoMatch(f"{op_name} does not pool over batch or channels")
        padding = image.pad(outside)
        height, width = image._spatial(ksize)
        y = rewriter.emit(
            op_name,
            image.x,
            like=image.out,
            padding=padding,
            filter_height=height,
            filter_width=width,
            stride_h=image.stride_h,
            stride_w=image.stride_w,
        )
        return image.back(y)

    return lower


CONVOLUTION = rule_table(
    RewriteRule("conv_2d", "Conv2D", _conv2d),
    RewriteRule("depthwise_conv_2d", "DepthwiseConv2dNative", _depthwise),
    RewriteRule("transpose_conv", "Conv2DBackpropInput", _conv2d_transpose),
    RewriteRule("average_pool_2d", "AvgPool", _pool("AVERAGE_POOL_2D", 0.0)),
    RewriteRule("max_pool_2d", "MaxPool", _pool("MAX_POOL_2D", float("-inf")), "padding is -inf, which no maximum is"),
)
