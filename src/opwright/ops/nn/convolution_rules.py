"""Shape rules and sums of convolutions, for any number of spatial dimensions and either order of channels.

Lives here: checks of depths and data formats, the functions that infer and compute convolutions and their gradients,
which those of full filters and those of one filter a channel share. Not here: operators (convolution.py, depthwise.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ..shape_inference import shape_from
from ..windows import FORMATS, channel_axis, check_sliding, out_size, pairs, spatial_axes, spatial_windows

if TYPE_CHECKING:
    pass

Dims = Sequence["int | None"]


def dims_of_rank(shape: TensorShape, rank: int) -> Dims:
    """Return the sizes of a shape, None if unknown. Raises InvalidArgumentError for another rank."""
    if shape.dims is None:
        return (None,) * rank
    if len(shape.dims) != rank:
        raise InvalidArgumentError(what="a shape of the wrong rank", found=str(shape), wanted=f"rank {rank}")
    return shape.dims


def check_depths(image: int | None, depth: int | None, filters: int | None) -> None:
    """Check that the channels of the image are a multiple of the filter's. Raises InvalidArgumentError."""
    if image is None or depth is None:
        return
    if depth == 0 or image % depth:
        raise InvalidArgumentError(
            what=f"input depth must be evenly divisible by filter depth: {image} vs {depth}",
            found={"input channels": image, "filter input channels": depth},
            wanted="equal numbers, or with groups a multiple",
        )
    groups = image // depth
    if filters is not None and groups and filters % groups:
        raise InvalidArgumentError(
            what=f"output depth must be evenly divisible by number of groups: {filters} vs {groups}",
            found={"filters": filters, "groups": groups},
        )


def output_shape_of(op: Any, n: int, image: Dims, kernel: Dims, channels: int | None) -> TensorShape:
    """Infer the output shape of a convolution. Raises InvalidArgumentError if the kernel exceeds the padded image."""
    check_sliding(op, n)
    out: list[int | None] = [image[0]] * (n + 2)
    out[channel_axis(op.data_format)] = channels
    pads = pairs(op.explicit_paddings, n + 2)
    for axis, k in zip(spatial_axes(op.data_format), kernel):
        out[axis] = out_size(image[axis], k, op.strides[axis], op.dilations[axis], op.padding, pads[axis])
    return TensorShape(out)


def check_backprop(op: Any, shape: TensorShape, computed: TensorShape) -> None:
    """Check that out_backprop has the shape of the forward result. Raises InvalidArgumentError."""
    if not shape.is_compatible_with(computed):
        raise InvalidArgumentError(
            what="Size of out_backprop doesn't match computed",
            found=f"out_backprop {shape}",
            wanted=str(computed),
            do="check output_shape, strides and padding against the formula of the convolution",
        )


class Filters(NamedTuple):
    """A kind of filter: the properties and sums of convolutions by it.

    channels: the channels of the output by those of the image and the sizes of the filter; it raises
    InvalidArgumentError if these do not agree. forward, by_input, by_filter: the sums (ops/array_convolution.py).
    """

    channels: Callable[[int | None, Dims], int | None]
    forward: Callable[..., np.ndarray]
    by_input: Callable[..., np.ndarray]
    by_filter: Callable[..., np.ndarray]


def infer_forward(op: Any, n: int, filters: Any, kind: Filters) -> TensorSpec:
    """Infer the output of a convolution over n spatial dimensions. Raises InvalidArgumentError."""
    image, kernel = dims_of_rank(op.input.spec.shape, n + 2), dims_of_rank(filters.spec.shape, n + 2)
    result: TensorSpec = op.input.spec.with_shape(_output_shape(op, n, image, kernel, kind))
    return result


def infer_by_input(op: Any, n: int, filters: Any, kind: Filters) -> TensorSpec:
    """Infer the gradient by the input. Raises InvalidArgumentError."""
    image, kernel = dims_of_rank(shape_from(op.input_sizes), n + 2), dims_of_rank(filters.spec.shape, n + 2)
    dy_shape = op.out_backprop.spec.shape
    check_backprop(op, dy_shape, _output_shape(op, n, image, kernel, kind))
    if image[0] is None and dy_shape.dims is not None:
        image = [dy_shape[0], *image[1:]]
    result: TensorSpec = filters.spec.with_shape(image)
    return result


def infer_by_filter(op: Any, n: int, kind: Filters) -> TensorSpec:
    """Infer the gradient by the filter. Raises InvalidArgumentError."""
    kernel, image = dims_of_rank(shape_from(op.filter_sizes), n + 2), dims_of_rank(op.input.spec.shape, n + 2)
    check_backprop(op, op.out_backprop.spec.shape, _output_shape(op, n, image, kernel, kind))
    result: TensorSpec = op.input.spec.with_shape(kernel)
    return result


def _output_shape(op: Any, n: int, image: Dims, kernel: Dims, kind: Filters) -> TensorShape:
    return output_shape_of(op, n, image, kernel, kind.channels(image[channel_axis(op.data_format)], kernel))


def to_last(x: np.ndarray, data_format: str) -> np.ndarray:
    """Move the channels to the last dimension."""
    return np.moveaxis(x, channel_axis(data_format), -1)


def from_last(x: np.ndarray, data_format: str) -> np.ndarray:
    """Move the channels from the last dimension to their position in `data_format`."""
    return np.moveaxis(x, -1, channel_axis(data_format))


def last_shape(sizes: np.ndarray, data_format: str) -> tuple[int, ...]:
    """Return the sizes of an image with the channels last."""
    channel = channel_axis(data_format)
    dims = sizes.tolist()
    return (*dims[:channel], *dims[channel + 1 :], dims[channel])


def compute_forward(op: Any, input: np.ndarray, filters: np.ndarray, kind: Filters) -> np.ndarray:
    """Compute a convolution. Raises InvalidArgumentError if the channels do not agree."""
    x = to_last(input, op.data_format)
    kind.channels(x.shape[-1], filters.shape)
    windows = spatial_windows(op, x.shape[1:-1], filters.shape)
    return from_last(kind.forward(op, x, filters, windows), op.data_format)


def compute_by_input(op: Any, sizes: np.ndarray, filters: np.ndarray, dy: np.ndarray, kind: Filters) -> np.ndarray:
    """Compute the gradient by the input. Raises InvalidArgumentError if dy is not of the output's shape."""
    dy, shape = to_last(dy, op.data_format), last_shape(sizes, op.data_format)
    shape = (dy.shape[0] if shape[0] == -1 else shape[0], *shape[1:])
    channels = kind.channels(shape[-1], filters.shape)
    windows = spatial_windows(op, shape[1:-1], filters.shape)
    check_backprop(op, TensorShape(dy.shape), TensorShape([shape[0], *(w.out for w in windows), channels]))
    return from_last(kind.by_input(dy, filters, shape, windows), op.data_format)


def compute_by_filter(op: Any, x: np.ndarray, sizes: np.ndarray, dy: np.ndarray, kind: Filters) -> np.ndarray:
    """Compute the gradient by the filter. Raises InvalidArgumentError if dy is not of the output's shape."""
    x, dy, kernel = to_last(x, op.data_format), to_last(dy, op.data_format), sizes.tolist()
    channels = kind.channels(x.shape[-1], kernel)
    windows = spatial_windows(op, x.shape[1:-1], kernel[:-2])
    check_backprop(op, TensorShape(dy.shape), TensorShape([x.shape[0], *(w.out for w in windows), channels]))
    return kind.by_filter(x, dy, kernel, windows)


def check_data_format(op: str, data_format: str | None, n: int) -> str:
    """Return a data format of n spatial dimensions, by default channels last. Raises InvalidArgumentError."""
    if data_format is None:
        return FORMATS[n][0]
    if data_format not in FORMATS[n]:
        raise InvalidArgumentError(
            op=op, what="unknown data_format", found=repr(data_format), wanted=" or ".join(map(repr, FORMATS[n]))
        )
    return data_format
