"""Morphology of grey images: dilation and erosion by a structuring element, composed of patches and maxima."""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidArgumentError
from .. import array, dispatch, math
from ..image.crops import extract_patches
from ..tensor import Tensor


def _strided(sizes: Any, op: str, what: str) -> tuple[int, int]:
    sizes = [int(size) for size in sizes]
    if len(sizes) != 4 or sizes[0] != 1 or sizes[3] != 1 or min(sizes) < 1:
        raise InvalidArgumentError(op=op, what=f"{what} of images are [1, rows, columns, 1]", found=sizes)
    return sizes[1], sizes[2]


def _dilated(
    op: str, input: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any, name: str | None
) -> Tensor:
    if data_format != "NHWC" or padding not in ("SAME", "VALID"):
        raise InvalidArgumentError(op=op, what="NHWC and SAME or VALID are taken", found=(data_format, padding))
    x: Any = dispatch.to_tensor(input)
    element: Any = dispatch.to_tensor(filters, x.dtype)
    steps, rates = _strided(strides, op, "strides"), _strided(dilations, op, "dilations")
    rows, columns, channels = element.shape.as_list()
    if padding == "SAME":
        edges = []
        for size, window, step, rate in zip(x.shape.as_list()[1:3], (rows, columns), steps, rates):
            if size is None:
                raise InvalidArgumentError(op=op, what="padding SAME needs a known size", found=str(x.shape))
            total = max((-(-size // step) - 1) * step + (window - 1) * rate + 1 - size, 0)
            edges.append([total // 2, total - total // 2])
        x = array.pad(x, [[0, 0], *edges, [0, 0]], constant_values=x.dtype.min)
    patches: Any = extract_patches(x, [1, rows, columns, 1], [1, *steps, 1], [1, *rates, 1], "VALID")
    shape = array.concat([array.shape(patches)[:3], [rows * columns, channels]], 0)
    sums = array.reshape(patches, shape) + array.reshape(element, [rows * columns, channels])
    return array.identity(math.reduce_max(sums, 3), name=name)


def dilation2d(
    input: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any, name: str | None = None
) -> Tensor:
    """Return the maximum of an image plus a structuring element, at each of its places.

    .. math:: y_{b, i, j, c} = \\max_{u, v} (x_{b, s i + d u, s j + d v, c} + filters_{u, v, c})

    input: [batch, height, width, channels]; filters: [rows, columns, channels]; strides, dilations: [1, r, c, 1];
    padding: "SAME" or "VALID"; data_format: "NHWC". raises InvalidArgumentError for other arguments
    """
    return _dilated("nn.dilation2d", input, filters, strides, padding, data_format, dilations, name)


def erosion2d(
    value: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any, name: str | None = None
) -> Tensor:
    """Return the minimum of an image minus a structuring element: the dilation of -value by the mirrored element.

    Arguments as of `dilation2d`.
    """
    mirrored = array.reverse(dispatch.to_tensor(filters), [0, 1])
    negative: Any = -dispatch.to_tensor(value)
    result = _dilated("nn.erosion2d", negative, mirrored, strides, padding, data_format, dilations, None)
    return math.negative(result, name=name)
