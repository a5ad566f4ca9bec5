"""Convolutions, pools, normalization and resizing as ONNX nodes, which are channels-first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....graph import Node, Value
from ....ops.windows import same_padding
from .writer import GraphWriter, NoForm, operand, rank_of, rule, static


def _first(w: GraphWriter, name: str, rank: int, channels_last: bool) -> str:
    return w.transpose(name, [0, rank - 1, *range(1, rank - 1)]) if channels_last else name


def _last(w: GraphWriter, name: str, rank: int, channels_last: bool) -> str:
    return w.transpose(name, [0, *range(2, rank), 1]) if channels_last else name


class _Windows:
    """The spatial attributes of a node. sizes: of its image, None where unknown."""

    def __init__(self, node: Node, image: Value, kernel: Sequence[int] | None = None) -> None:
        self.rank = rank_of(image)
        self.last = not node.attrs["data_format"].startswith("NC")
        self.spatial = slice(1, -1) if self.last else slice(2, None)
        self.kernel = list(kernel) if kernel is not None else self.of(node.attrs["ksize"])
        self.strides = self.of(node.attrs["strides"])
        self.dilations = self.of(node.attrs["dilations"]) if "dilations" in node.attrs else [1] * len(self.strides)
        self.padding = node.attrs["padding"]
        self.explicit = list(node.attrs.get("explicit_paddings") or ())
        self.sizes = list(image.shape)[self.spatial]

    def of(self, vector: Any) -> list[int]:
        """Return the spatial members of an attribute of all dimensions."""
        return [int(v) for v in list(vector)[self.spatial]]

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of an ONNX node."""
        result: dict[str, Any] = {"kernel_shape": self.kernel, "strides": self.strides}
        if max(self.dilations) > 1:
            result["dilations"] = self.dilations
        pads = self._pads()
        return result | ({"auto_pad": "SAME_UPPER"} if pads is None else {"pads": pads})

    def _pads(self) -> list[int] | None:
        if self.padding == "VALID":
            return [0] * 2 * len(self.kernel)
        if self.padding == "EXPLICIT":
            pairs = np.reshape(self.explicit, (-1, 2))[self.spatial]
            return [int(v) for v in pairs.T.reshape(-1)]
        before, after = [], []
        for size, k, s, d in zip(self.sizes, self.kernel, self.strides, self.dilations):
            if size is None and s > 1:
                return None
            first, last = same_padding(s if size is None else size, k, s, d)
            before.append(first)
            after.append(last)
        return before + after


@rule("Conv2D", "Conv3D")
def _conv(w: GraphWriter, node: Node) -> str:
    x, filters = node.operands
    dims = static(filters, "the filter")
    windows = _Windows(node, x, dims[:-2])
    channels = x.shape[-1 if windows.last else 1]
    if channels is None:
        raise NoForm("the number of channels is not known")
    n = len(dims) - 2
    kernel = w.weights(filters, [n + 1, n, *range(n)], 0)
    y = w.op("Conv", _first(w, w[x], n + 2, windows.last), kernel, group=channels // dims[-2], **windows.attributes())
    w.convolutions[node.outputs[0]] = w.nodes[-1]
    return _last(w, y, n + 2, windows.last)


@rule("Add", "BiasAdd")
def _add(w: GraphWriter, node: Node) -> str:
    """Emit a sum, or make a vector the bias of the convolution before."""
    x, y = node.operands
    names_format = node.attrs["data_format"] if node.op.name == "BiasAdd" else "NHWC"
    for image, bias in ((x, y), (y, x)):
        convolution = w.convolutions.get(image)
        vector = bias.constant is not None and bias.shape.rank == 1 and bias.shape[0] == image.shape[-1]
        if convolution is None or not vector or names_format != "NHWC" or w.uses[image] != 1:
            continue
        if len(convolution.input) == 2 and w[image] in w.transposed:  # channels are last
            convolution.input.append(w[bias])
            return w[image]
    if node.op.name == "BiasAdd" and names_format.startswith("NC") and rank_of(x) > 2:
        shape = w.ints([-1, *[1] * (rank_of(x) - 2)])
        return w.op("Add", w[x], w.op("Reshape", w[y], shape))
    return w.op("Add", w[x], w[y])


@rule("DepthwiseConv2dNative")
def _depthwise(w: GraphWriter, node: Node) -> str:
    x, filters = node.operands
    h, v, channels, multiplier = static(filters, "the filter")
    windows = _Windows(node, x, (h, v))
    if len(node.attrs["dilations"]) == 2:
        windows.dilations = [int(d) for d in node.attrs["dilations"]]
    kernel = w.weights(filters, [2, 3, 0, 1], 0) if multiplier == 1 else w.transpose(w[filters], [2, 3, 0, 1])
    if multiplier > 1:
        kernel = w.op("Reshape", kernel, w.ints([channels * multiplier, 1, h, v]))
    y = w.op("Conv", _first(w, w[x], 4, windows.last), kernel, group=channels, **windows.attributes())
    w.convolutions[node.outputs[0]] = w.nodes[-1]
    return _last(w, y, 4, windows.last)


@rule("Conv2DBackpropInput", "Conv3DBackpropInput")
def _conv_transpose(w: GraphWriter, node: Node) -> str:
    _, filters, y = node.operands
    dims, out = static(filters, "the filter"), node.outputs[0]
    windows, whole = _Windows(node, y, dims[:-2]), _Windows(node, out, dims[:-2])
    n = len(dims) - 2
    if None in windows.sizes or None in whole.sizes:
        raise NoForm("a transposed convolution needs all sizes")
    pads = _Windows(node, out, dims[:-2])._pads()
    assert pads is not None
    extra = []
    for i, (size, before) in enumerate(zip(windows.sizes, whole.sizes)):
        assert size is not None
        assert before is not None
        reach = (size - 1) * windows.strides[i] + (windows.kernel[i] - 1) * windows.dilations[i] + 1
        rest = before - (reach - pads[i] - pads[n + i])
        if rest < 0:
            pads[n + i] -= rest
            rest = 0
        extra.append(rest)
    channels = out.shape[-1 if windows.last else 1]
    groups = 1 if channels is None else channels // dims[-2]
    attributes = {"strides": windows.strides, "kernel_shape": windows.kernel, "pads": pads, "group": groups}
    if any(extra):
        if any(e >= max(s, d) for e, s, d in zip(extra, windows.strides, windows.dilations)):
            raise NoForm("the result is longer than a step beyond the last window")
        attributes["output_padding"] = extra
    kernel = w.transpose(w[filters], [n + 1, n, *range(n)])
    name = w.op(
        "ConvTranspose", _first(w, w[y], n + 2, windows.last), kernel, dilations=windows.dilations, **attributes
    )
    return _last(w, name, n + 2, windows.last)


@rule("MaxPool", "MaxPool3D", "AvgPool", "AvgPool3D")
def _pool(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    windows = _Windows(node, x)
    rank = rank_of(x)
    outer = [v for name in ("ksize", "strides") for v in node.attrs[name]]
    if any(outer[i * rank] != 1 or outer[i * rank + (rank - 1 if windows.last else 1)] != 1 for i in range(2)):
        raise NoForm("windows reach over images or channels")
    kind = "MaxPool" if node.op.name.startswith("Max") else "AveragePool"
    y = w.op(kind, _first(w, w[x], rank, windows.last), **windows.attributes())
    return _last(w, y, rank, windows.last)


@rule("LRN")
def _lrn(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    size = 2 * int(node.attrs["depth_radius"]) + 1
    numbers = {name: float(node.attrs[name]) for name in ("bias", "beta")}
    y = w.op("LRN", _first(w, w[x], 4, True), size=size, alpha=float(node.attrs["alpha"]) * size, **numbers)
    return _last(w, y, 4, True)


@rule("FusedBatchNorm")
def _batch_norm(w: GraphWriter, node: Node) -> list[str]:
    if node.attrs["is_training"]:
        raise NoForm("statistics of a batch are those of training")
    x, scale, offset, mean, variance = (operand(node, i) for i in range(5))
    names = [w[v] for v in (scale, offset, mean, variance)]
    if node.attrs["data_format"].startswith("NC"):
        y = w.op("BatchNormalization", w[x], *names, epsilon=float(node.attrs["epsilon"]))
    else:
        root = w.op("Sqrt", w.op("Add", names[3], w.number(node.attrs["epsilon"], variance)))
        factor = w.op("Div", names[0], root)
        y = w.op("Add", w.op("Mul", w.op("Sub", w[x], names[2]), factor), names[1])
    return [y, w.op("Identity", names[2]), w.op("Identity", names[3])]


@rule("ResizeBilinear", "ResizeNearestNeighbor")
def _resize(w: GraphWriter, node: Node) -> str:
    x, size = node.operands
    nearest = node.op.name == "ResizeNearestNeighbor"
    corners, half = node.attrs["align_corners"], node.attrs["half_pixel_centers"]
    attributes: dict[str, Any] = {
        "mode": "nearest" if nearest else "linear",
        "coordinate_transformation_mode": "align_corners" if corners else "half_pixel" if half else "asymmetric",
    }
    if nearest:
        attributes["nearest_mode"] = "round_prefer_ceil" if corners or half else "floor"
    batch = w.op("Shape", w[x], start=0, end=1)
    channels = w.op("Shape", w[x], start=3, end=4)
    sizes = w.op("Concat", batch, channels, w.int64(size), axis=0)
    dtype = node.outputs[0].dtype
    images = w[x] if dtype is x.dtype else w.cast(w[x], dtype)  # means of integers are fractions, which Resize rounds
    return _last(w, w.op("Resize", _first(w, images, 4, True), "", "", sizes, **attributes), 4, True)
