"""Convolutions under the names of TensorFlow's operators, and windows with holes by blocks of the batch.

Lives here: `conv`, `conv2d_backprop_input_v2`, `conv2d_backprop_filter_v2`, `with_space_to_batch`.
Not here: the operators (convolution.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from .. import array, dispatch
from ..array.padding import batch_to_space, required_space_to_batch_paddings, space_to_batch_nd
from ..tensor import Tensor
from .convolution import BY_FILTER, BY_INPUT, attributes_of, convolution


def _padding(padding: str, explicit_paddings: Sequence[int]) -> Any:
    """Return a padding as functions take it: EXPLICIT becomes pairs."""
    return np.reshape(list(explicit_paddings), (-1, 2)).tolist() if padding == "EXPLICIT" else padding


def conv(
    input: Any,
    filter: Any,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "CHANNELS_LAST",
    dilations: Sequence[int] = (),
    batch_dims: int = 1,
    groups: int = 1,
    name: str | None = None,
) -> Tensor:
    """Return a convolution over two or three dimensions, as `ow.nn.convolution`.

    strides, dilations: of all dimensions. padding: "VALID", "SAME" or "EXPLICIT" with explicit_paddings, a pair for
    each dimension. data_format: "CHANNELS_LAST" or "CHANNELS_FIRST". groups: as input and filter imply.
    raises InvalidArgumentError for other groups or batch_dims
    """
    x, filters = dispatch.to_tensor(input), dispatch.to_tensor(filter)
    rank = filters.shape.rank
    if rank not in (4, 5) or data_format not in ("CHANNELS_LAST", "CHANNELS_FIRST"):
        raise InvalidArgumentError(
            op="conv", what="filters of rank 4 or 5 and a known data_format are taken", found=(rank, data_format)
        )
    last = data_format == "CHANNELS_LAST"
    channels = None if x.shape.rank is None else x.shape[-1 if last else x.shape.rank - rank + 1]
    implied = None if channels is None or filters.shape[-2] is None else channels // filters.shape[-2]
    if implied not in (None, groups) or (x.shape.rank is not None and x.shape.rank != rank - 1 + batch_dims):
        raise InvalidArgumentError(
            op="conv",
            what="groups or batch_dims do not follow from input and filter",
            found={"groups": groups, "batch_dims": batch_dims, "input": x.shape, "filter": filters.shape},
        )
    layout = {(4, True): "NHWC", (4, False): "NCHW", (5, True): "NDHWC", (5, False): "NCDHW"}[rank, last]
    pads = _padding(padding, explicit_paddings)
    return convolution(x, filters, list(strides), pads, layout, list(dilations) or None, name)


def _attributes(strides: Any, padding: str, explicit_paddings: Any, data_format: str, dilations: Any) -> dict[str, Any]:
    return attributes_of(2, data_format, list(strides), _padding(padding, explicit_paddings), list(dilations))


def conv2d_backprop_input_v2(
    input: Any,
    filter: Any,
    out_backprop: Any,
    strides: Sequence[int],
    padding: str,
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Return the gradient of `conv2d` by its input, of which only the shape is used.

    out_backprop: the gradient by its output. padding, explicit_paddings, strides, dilations: see `conv`.
    """
    attributes = _attributes(strides, padding, explicit_paddings, data_format, dilations)
    result: Tensor = BY_INPUT[2](array.shape(input), filter, out_backprop, **attributes, name=name)
    return result


def conv2d_backprop_filter_v2(
    input: Any,
    filter: Any,
    out_backprop: Any,
    strides: Sequence[int],
    padding: str,
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Return the gradient of `conv2d` by its filter, of which only the shape is used. Arguments: see the other one."""
    attributes = _attributes(strides, padding, explicit_paddings, data_format, dilations)
    result: Tensor = BY_FILTER[2](input, array.shape(filter), out_backprop, **attributes, name=name)
    return result


def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: str,
    op: Callable[[Any, int, str], Any],
    filter_shape: Any = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Any:
    """Return op(input, number of spatial dimensions, padding) with holes in its windows, by blocks of the batch.

    op is called with "VALID" on an input of which each example has every dilation_rate-th element. filter_shape: the
    windows' sizes, needed for "SAME". spatial_dims: by default all those behind the batch, or behind the channels where
    data_format begins with "NC".
    raises ValueError for other arguments
    """
    rates = np.array(dispatch.to_tensor(dilation_rate).constant, np.int64).reshape(-1)
    if (rates < 1).any():
        raise ValueError(f"dilation_rate must be positive, found {rates.tolist()}")
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    dims = list(range(first, first + len(rates)) if spatial_dims is None else spatial_dims)
    if dims != sorted(set(dims)) or dims[0] < 1 or len(dims) != len(rates):
        raise ValueError(f"spatial_dims must be increasing, positive and as many as dilation_rate, found {dims}")
    if (rates == 1).all():
        return op(input, len(rates), padding)
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"padding is 'SAME' or 'VALID', found {padding!r}")
    pads = np.zeros((len(rates), 2), np.int64)
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("with_space_to_batch: filter_shape must be specified for padding SAME")
        window = np.array(dispatch.to_tensor(filter_shape).constant, np.int64)[: len(rates)]
        extra = rates * (window - 1)
        pads = np.stack([extra // 2, extra - extra // 2], 1)
    # Blocks are those of all dimensions behind the batch up to the last spatial one, where others have size 1.
    blocks, base = np.ones(dims[-1], np.int64), np.zeros((dims[-1], 2), np.int64)
    blocks[np.subtract(dims, 1)], base[np.subtract(dims, 1)] = rates, pads
    x: Any = dispatch.to_tensor(input)
    paddings, crops = required_space_to_batch_paddings(array.shape(x)[1 : dims[-1] + 1], blocks, base)
    result = op(space_to_batch_nd(x, blocks, paddings), len(rates), "VALID")
    return batch_to_space(result, blocks, crops)
