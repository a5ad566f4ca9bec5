"""Rules for convolutions and pools over volumes.

Lives here: Conv3D and its adjoint, AvgPool3D, MaxPool3D.  Not here: images (convolution.py).

Pools are two pools over images: of height and width, with the depth in the batch; then of the depth alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import float32
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .convolution import transposed
from .emission import only, padded, reshaped, size_along, sliced

TO_LAST, FROM_LAST = (0, 2, 3, 4, 1), (0, 4, 1, 2, 3)  # NCDHW <-> NDHWC


class Volume:
    """One sliding-window operator seen channels-last: its input brought there, and its attributes in that order."""

    def __init__(self, node: Node, rewriter: LiteRewriter, x: Value) -> None:
        only(x, float32)
        attrs = node.attrs
        self.rewriter, self.last = rewriter, attrs["data_format"] == "NDHWC"
        self.x = x if self.last else transposed(rewriter, x, TO_LAST)
        self.strides, self.dilations = self.inner(attrs["strides"]), self.inner(attrs.get("dilations", (1,) * 5))
        self.padding = attrs["padding"]
        pads = np.array(attrs.get("explicit_paddings") or (0,) * 10).reshape(5, 2)
        self.pads = [(int(a), int(b)) for a, b in (pads if self.last else pads[list(TO_LAST)])]
        dims = node.outputs[0].spec.shape.dims
        self.out = dims if dims is None or self.last else tuple(dims[i] for i in TO_LAST)

    def inner(self, values: Sequence[int]) -> list[int]:
        """Return the entries for depth, height and width."""
        return list(values[1:4] if self.last else values[2:5])

    def pad(self, value: float | None = None) -> str:
        """Emit explicit padding, and return the padding for the operator itself."""
        if self.padding != "EXPLICIT":
            return str(self.padding)
        self.x = padded(self.rewriter, self.x, self.pads, value)
        return "VALID"

    def steps(self) -> dict[str, Any]:
        (d, h, w), (dd, dh, dw) = self.strides, self.dilations
        return {
            "stride_d": d,
            "stride_h": h,
            "stride_w": w,
            "dilation_d_factor": dd,
            "dilation_h_factor": dh,
            "dilation_w_factor": dw,
        }

    def back(self, y: Value) -> Value:
        return y if self.last else transposed(self.rewriter, y, FROM_LAST)


def _conv3d(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, filters = node.operands
    volume = Volume(node, rewriter, x)
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
    volume = Volume(node, rewriter, x)
    kernel, out = filters.spec.shape.dims, volume.out
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
    batch = size_along(rewriter, volume.x, 0)
    if batch.constant is not None:
        shape = rewriter.int32([int(batch.constant), *sizes])
    else:
        shape = rewriter.emit(
            "CONCATENATION", (rewriter.emit("RESHAPE", batch, rewriter.int32([1])), rewriter.int32(sizes)), axis=0
        )
    y = rewriter.emit("CONV_3D_TRANSPOSE", shape, filters, volume.x, None, padding=padding, **volume.steps())
    if begin != [0, 0, 0] or volume.padding == "EXPLICIT":
        y = sliced(rewriter, y, [0, *begin, 0], [-1, *(int(d or 0) for d in out[1:4]), -1])
    return volume.back(y)


def _pool(lite: str, outside: float) -> Any:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (x,) = node.operands
        volume = Volume(node, rewriter, x)
        kernel = list(node.attrs["ksize"])
        if any(v[i] != 1 for v in (kernel, list(node.attrs["strides"])) for i in (0, 4 if volume.last else 1)):
            return NoMatch(f"{lite} does not pool over batch or channels")
        kd, kh, kw = volume.inner(kernel)
        sd, sh, sw = volume.strides
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
    RewriteRule("average_pool_twice", "AvgPool3D", _pool("AVERAGE_POOL_2D", 0.0), _TWICE),
    RewriteRule("max_pool_twice", "MaxPool3D", _pool("MAX_POOL_2D", float("-inf")), _TWICE),
)
