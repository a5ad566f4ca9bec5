"""Rules of convolutions.

Lives here: conv_general_dilated of one to three spatial dimensions, with any layout, groups, dilations and paddings.
Not here: windows without weights (windows.py).

Operands are brought to channels last. A dilated input whose strides are 1 is a transposed convolution; otherwise zeros
are put between its elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from ....core.dtypes import as_dtype
from ....ops import array, math, nn
from ....ops.windows import is_same_padding
from ...importing import tensor_of
from ..execution import RULES, JaxprContext
from ..operands import batched, cast, dims, reshape, sized, transpose
from ..sizes import is_open, open_sizes
from .arrays import padded, strided


@RULES.rule("conv_general_dilated")
def convolution(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the convolution of x and filters, in the layouts of `dimension_numbers`."""
    roles, target = params["dimension_numbers"], context.dtype
    if target.is_complex:
        return _of_complex(context, inputs, params)
    kind = target if target.is_floating else as_dtype(np.float64 if target.size > 2 else np.float32)
    x, filters = cast(inputs[0], kind), cast(inputs[1], kind)
    x = transpose(x, [roles.lhs_spec[0], *roles.lhs_spec[2:], roles.lhs_spec[1]])
    filters = transpose(filters, [*roles.rhs_spec[2:], roles.rhs_spec[1], roles.rhs_spec[0]])
    n = len(dims(x)) - 2
    if n > 3:
        raise ValueError(f"convolutions have at most three spatial dimensions, found {n}")
    row = {
        "strides": list(params["window_strides"]),
        "padding": [tuple(map(int, p)) for p in params["padding"]],
        "spread": list(params["lhs_dilation"]),
        "dilations": list(params["rhs_dilation"]),
    }
    if n == 0:  # one spatial dimension of size 1
        x, filters = reshape(x, [dims(x)[0], 1, dims(x)[1]]), reshape(filters, [1, *dims(filters)])
        row = {"strides": [1], "padding": [(0, 0)], "spread": [1], "dilations": [1]}
    batches = params["batch_group_count"]
    if batches > 1:
        parts = zip(array.split(tensor_of(x), batches, 0), array.split(tensor_of(filters), batches, -1))
        result = array.concat([_convolve(a, b, 1, **row) for a, b in parts], -1)
    else:
        result = _convolve(x, filters, params["feature_group_count"], **row)
    if n:
        result = sized(result, [context.shape[i] for i in (roles.out_spec[0], *roles.out_spec[2:], roles.out_spec[1])])
    result = cast(result if target.is_floating else math.round(result), target)
    if n == 0:
        result = reshape(result, [dims(result)[0], dims(result)[-1]])
    back = [0, n + 1, *range(1, n + 1)]  # the places of batch, features, spatial dimensions in channels last
    order = [0] * (n + 2)
    for place, axis in zip(back, roles.out_spec):
        order[axis] = place
    return transpose(result, order)


def _of_complex(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    x, filters = (tensor_of(v) for v in inputs)
    real = as_dtype(np.float32 if context.dtype.size == 8 else np.float64)
    inner = JaxprContext()
    inner.equation = _Equation(context, real)
    a, b, c, d = math.real(x), math.imag(x), math.real(filters), math.imag(filters)
    ac, bd, ad, bc = (convolution(inner, pair, params) for pair in ((a, c), (b, d), (a, d), (b, c)))
    return math.complex(math.subtract(ac, bd), math.add(ad, bc))


class _Equation:
    """The equation of a part of a complex convolution: the same shape, of real numbers."""

    def __init__(self, context: JaxprContext, dtype: Any) -> None:
        self.aval, self.outvars = self, [self]
        self.shape, self.dtype = context.shape, dtype


def _convolve(
    x: Any,
    filters: Any,
    groups: int,
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    spread: Sequence[int],
    dilations: Sequence[int],
) -> Any:
    """Return a convolution of channels-last operands: x [n, spatial..., c], filters [spatial..., c / groups, out]."""
    n = len(strides)
    if any(s > 1 for s in spread):
        transposed = _transposed(x, filters, groups, strides, padding, spread, dilations)
        if transposed is not None:
            return transposed
    config = [(0, 0, 0), *((0, 0, s - 1) for s in spread), (0, 0, 0)]
    if any(s > 1 for s in spread):
        x = padded(x, np.zeros((), tensor_of(x).dtype.as_numpy_dtype), config)
    if n == 1:  # images of height 1
        x = reshape(x, [dims(x)[0], 1, *dims(x)[1:]])
        filters = reshape(filters, [1, *dims(filters)])
        result = _convolve(x, filters, groups, [1, *strides], [(0, 0), *padding], [1, 1], [1, *dilations])
        result = batched(result, dims(x)[0])
        return reshape(result, [dims(result)[0], *dims(result)[2:]])
    extents = [(k - 1) * d + 1 for k, d in zip(dims(filters), dilations)]
    kind = _padding_kind(dims(x)[1:-1], extents, strides, padding)
    if kind is None:
        config = [(0, 0, 0), *((low, high, 0) for low, high in padding), (0, 0, 0)]
        x, kind = padded(x, np.zeros((), tensor_of(x).dtype.as_numpy_dtype), config), "VALID"
    x, filters = tensor_of(x), tensor_of(filters)
    if n == 3:
        return _of_groups(nn.conv3d, x, filters, groups, strides, kind, dilations)
    channels, uneven = dims(x)[-1], len(set(strides)) > 1 or (max(dilations) > 1 and max(strides) > 1)
    if groups == channels and groups > 1 and not uneven:
        height, width, _, features = dims(filters)
        kernel = reshape(filters, [height, width, channels, features // channels])
        return nn.depthwise_conv2d(x, kernel, [1, *strides, 1], kind, dilations=list(dilations))
    if groups > 1 and x.dtype.is_floating:
        return _of_groups(nn.conv2d, x, filters, groups, strides, kind, dilations)
    return nn.conv2d(x, filters, list(strides), kind, dilations=list(dilations))


def _of_groups(
    function: Any, x: Any, filters: Any, groups: int, strides: Any, kind: Any, dilations: Sequence[int]
) -> Any:
    if groups == 1 or function is nn.conv2d:
        return function(x, filters, [1, *strides, 1], kind, dilations=[1, *dilations, 1])
    parts = zip(array.split(x, groups, -1), array.split(filters, groups, -1))
    return array.concat([_of_groups(function, a, b, 1, strides, kind, dilations) for a, b in parts], -1)


def _padding_kind(
    sizes: Sequence[int], extents: Sequence[int], strides: Sequence[int], padding: Sequence[tuple[int, int]]
) -> str | None:
    """Return "VALID" or "SAME" if the padding is one of these, else None."""
    if not any(low or high for low, high in padding):
        return "VALID"
    pads = ((low, high) for low, high in padding)
    return "SAME" if is_same_padding(sizes, pads, extents, strides, repeat(1)) else None


def _transposed(
    x: Any,
    filters: Any,
    groups: int,
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    spread: Sequence[int],
    dilations: Sequence[int],
) -> Any:
    """Return the transposed convolution that an input dilated by its strides is, or None if no operator computes it."""
    sizes, kernel = dims(x)[1:-1], dims(filters)[:-2]
    crops = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(kernel, padding)]
    if len(kernel) > 2 or groups > 1 or max(*strides, *dilations) > 1:
        return None
    if any(low < 0 or high < k - 1 - (k - 1) - s for k, s, (low, high) in zip(kernel, spread, crops)):
        return None
    full = [max((size - 1) * s + k, size * s) for size, s, k in zip(sizes, spread, kernel)]
    outputs = [(size - 1) * s + k - low - high for size, s, k, (low, high) in zip(sizes, spread, kernel, crops)]
    if any(low + out > f for (low, _), out, f in zip(crops, outputs, full)) or min(outputs) < 1:
        return None
    flipped = (
        tensor_of(np.flip(filters, tuple(range(len(kernel)))))
        if isinstance(filters, np.ndarray)
        else (array.reverse(filters, list(range(len(kernel)))))
    )
    rank = len(kernel)
    flipped = tensor_of(transpose(flipped, [*range(rank), rank + 1, rank]))
    batch, channels = dims(x)[0], dims(filters)[-1]
    x = tensor_of(x)
    target = open_sizes().vector if is_open([batch]) else list
    if rank == 1:
        wide = reshape(x, [batch, 1, *dims(x)[1:]])
        kernel_2d = reshape(flipped, [1, *dims(flipped)])
        result = nn.conv2d_transpose(
            wide, kernel_2d, target([batch, 1, full[0], channels]), [1, 1, spread[0], 1], "VALID"
        )
        result = reshape(result, [batch, full[0], channels])
    else:
        result = nn.conv2d_transpose(x, flipped, target([batch, *full, channels]), [1, *spread, 1], "VALID")
    begin = [0, *(low for low, _ in crops), 0]
    if full == outputs and not any(begin):
        return result
    result = sized(result, [batch, *full, channels])
    return strided(result, begin, [batch, *(b + size for b, size in zip(begin[1:], outputs)), channels])
