"""Products of matrices, convolutions, attention.

Lives here: rules of ATen's linear operators. Not here: pools and resizing (pooling.py).

Convolutions of channels-first images are channels-last ones between two transposes, which the layout pass cancels
(graph/passes/layout.py).
"""

from __future__ import annotations

import math as scalar_math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import bool as bool_
from ....core.dtypes import float32, int32, int64
from ....core.errors import InvalidArgumentError, UnimplementedError
from ....ops import array, linalg, math, nn
from ....ops.windows import is_same_padding
from .activations import training_dropout
from .reductions import root
from .table import AtenCall, aten, dim_size, is_dynamic, rank_of, sizes, spread, tensor, to_nchw, to_nhwc, vector

# ---- products ---------------------------------------------------------------------------------------------------


@aten("linear")
def linear(op: AtenCall, x: Any, weight: Any, bias: Any = None) -> Any:
    x, weight = tensor(x), tensor(weight)
    if rank_of(weight) == 1:
        y = math.reduce_sum(x * weight, [-1])
    elif rank_of(x) == 1:
        y = array.reshape(linalg.matmul(array.expand_dims(x, 0), weight, transpose_b=True), [-1])
    else:
        y = linalg.matmul(x, weight, transpose_b=True)
    return y if bias is None else y + tensor(bias)


def matmul_values(x: Any, y: Any) -> Any:
    """Return a product of vectors, matrices, or stacks of them, by NumPy's rules."""
    if rank_of(x) == rank_of(y) == 1:
        return math.reduce_sum(x * y)
    if rank_of(x) == 1:
        return array.squeeze(linalg.matmul(array.expand_dims(x, 0), y), [-2])
    if rank_of(y) == 1:
        return array.squeeze(linalg.matmul(x, array.expand_dims(y, -1)), [-1])
    return linalg.matmul(x, y)


@aten("mm", "bmm", "matmul", "mv", "dot")
def matmul(op: AtenCall, x: Any, y: Any) -> Any:
    return matmul_values(tensor(x), tensor(y))


MOST_EXACT_TERMS = (1 << 24) // (255 * 128)
"""Products of 8 bits whose sum is a whole number that float32 holds."""


@aten("_int_mm")
def integer_matmul(op: AtenCall, x: Any, y: Any) -> Any:
    """Return the product of matrices of 8-bit integers, in int32. Files have it in float32, as far as it is exact."""
    x, y = tensor(x), tensor(y)
    terms = x.shape[-1]
    dtype = float32 if terms is not None and terms <= MOST_EXACT_TERMS else int32
    return array.cast(linalg.matmul(array.cast(x, dtype), array.cast(y, dtype)), int32)


@aten("vdot")
def vdot(op: AtenCall, x: Any, y: Any) -> Any:
    x = tensor(x)
    return matmul_values(math.conj(x) if x.dtype.is_complex else x, tensor(y))


@aten("_grouped_mm", "transformers::grouped_mm_fallback")
def grouped_matmul(op: AtenCall, x: Any, weight: Any, ends: Any = None, bias: Any = None, *rest: Any) -> Any:
    """Return the products of groups of rows [s, k], which end at `ends`, with a matrix of [groups, k, n] each.

    Each group is a product of all rows, of which those of other groups are zeros: sizes of groups are not known.
    """
    if ends is None or rank_of(x) != 2 or rank_of(weight) != 3:
        raise UnimplementedError(what="products of groups of columns, or without ends")
    x, weight, ends = tensor(x), tensor(weight), array.cast(tensor(ends), int64)
    place = array.range(tensor(dim_size(x, 0), int64))
    begins = array.concat([array.zeros([1], int64), ends[:-1]], axis=0)
    own = math.logical_and(place >= array.expand_dims(begins, 1), place < array.expand_dims(ends, 1))
    rows = array.where(array.expand_dims(own, 2), x, tensor(0, x.dtype))
    y = math.reduce_sum(linalg.matmul(rows, weight), [0])
    return y if bias is None else y + tensor(bias)


def _scaled(x: Any, factor: Any, op: AtenCall) -> Any:
    return x if isinstance(factor, (int, float)) and factor == 1 else x * tensor(factor, op.dtype)


@aten("addmm", "addmv", "baddbmm")
def addmm(op: AtenCall, bias: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _scaled(matmul_values(tensor(x), tensor(y)), alpha, op)
    return product if beta == 0 else product + _scaled(tensor(bias), beta, op)


@aten("addbmm")
def addbmm(op: AtenCall, bias: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _scaled(math.reduce_sum(linalg.matmul(tensor(x), tensor(y)), [0]), alpha, op)
    return product if beta == 0 else product + _scaled(tensor(bias), beta, op)


@aten("addr")
def addr(op: AtenCall, x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _scaled(array.expand_dims(tensor(a, op.dtype), 1) * tensor(b, op.dtype), alpha, op)
    return product if beta == 0 else _scaled(tensor(x, op.dtype), beta, op) + product


@aten("outer", "ger")
def outer(op: AtenCall, a: Any, b: Any) -> Any:
    return array.expand_dims(tensor(a, op.dtype), 1) * tensor(b, op.dtype)


@aten("einsum")
def einsum(op: AtenCall, equation: str, tensors: Sequence[Any], path: Any = None) -> Any:
    terms, arrow, result = equation.replace(" ", "").partition("->")
    operands = list(map(tensor, tensors))
    if not arrow or "..." not in terms or "..." in result:
        return linalg.einsum(terms + arrow + result, *operands)
    # PyTorch adds up the dimensions of "..." that the result does not name.
    several = [rank_of(x) - len(t.replace("...", "")) for t, x in zip(terms.split(","), operands) if "..." in t]
    return math.reduce_sum(linalg.einsum(f"{terms}->...{result}", *operands), list(range(max(several))))


@aten("scaled_dot_product_attention")
def attention(
    op: AtenCall,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if dropout_p:
        raise training_dropout()
    query, key, value = tensor(query), tensor(key), tensor(value)
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        groups = int(query.shape[-3]) // int(key.shape[-3])
        key, value = (array.repeat(t, groups, axis=rank_of(t) - 3) for t in (key, value))
    factor = 1.0 / scalar_math.sqrt(int(query.shape[-1])) if scale is None else scale
    scores = linalg.matmul(query * tensor(factor, op.dtype), key, transpose_b=True)
    if is_causal:
        rows, columns = sizes(scores)[-2:]
        if rows is None or columns is None:
            shape = array.shape(scores)
            attn_mask = array.range(shape[-1])[None] <= array.range(shape[-2])[:, None]
        else:
            attn_mask = np.tril(np.ones((rows, columns), bool))
    if attn_mask is not None:
        mask = tensor(attn_mask)
        if mask.dtype is bool_:
            mask = array.where(mask, tensor(0.0, op.dtype), tensor(float("-inf"), op.dtype))
        scores = scores + mask
    weights = nn.softmax(scores)
    if attn_mask is not None and tensor(attn_mask).dtype is bool_ and not is_causal:
        empty = math.logical_not(math.reduce_any(tensor(attn_mask), [-1], True))
        if not isinstance(attn_mask, np.ndarray) or not attn_mask.any(-1).all():
            weights = array.where(empty, tensor(0.0, op.dtype), weights)  # a row that sees nothing is zero
    return linalg.matmul(weights, value)


# ---- convolutions -----------------------------------------------------------------------------------------------


def _images(x: Any, kernel: Any, n: int) -> tuple[Any, Any]:
    """Return a sequence and its kernel as images of one row."""
    return (x, kernel) if n > 1 else (array.expand_dims(x, 2), array.expand_dims(kernel, 2))


def convolve(
    x: Any, weight: Any, stride: Sequence[int], sides: Sequence[tuple[int, int]], dilation: Sequence[int], groups: int
) -> Any:
    """Return the convolution of channels-first images or volumes [n, c, ...] by weight [o, c/groups, ...]."""
    n = rank_of(x) - 2
    window = [int(s) for s in sizes(weight)[2:]]  # type: ignore[arg-type]
    channels = int(x.shape[1])
    if not any(map(any, sides)):
        padding: Any = "VALID"
    elif is_same_padding(sizes(x)[2:], sides, window, stride, dilation):
        padding = "SAME"
    else:
        padding = "VALID"
        x = array.pad(x, [[0, 0], [0, 0], *map(list, sides)])
    y = to_nhwc(x)
    if n == 2 and groups == channels > 1 and stride[0] == stride[1]:
        outputs = int(weight.shape[0])
        kernel = array.transpose(weight, [2, 3, 0, 1])  # [h, w, o, 1], whose outputs are channel by channel
        kernel = array.reshape(kernel, [*window, channels, outputs // channels])
        return to_nchw(nn.depthwise_conv2d(y, kernel, [1, *stride, 1], padding, dilations=list(dilation)))
    kernel = array.transpose(weight, [*range(2, n + 2), 1, 0])
    if n == 2:
        return to_nchw(nn.conv2d(y, kernel, list(stride), padding, dilations=list(dilation)))
    if groups > 1:
        parts = array.split(y, groups, axis=n + 1)
        kernels = array.split(kernel, groups, axis=n + 1)
        many = [nn.conv3d(p, k, [1, *stride, 1], padding, dilations=[1, *dilation, 1]) for p, k in zip(parts, kernels)]
        return to_nchw(array.concat(many, axis=n + 1))
    return to_nchw(nn.conv3d(y, kernel, [1, *stride, 1], padding, dilations=[1, *dilation, 1]))


def _transposed(
    x: Any,
    weight: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    extra: Sequence[int],
    groups: int,
) -> Any:
    """Return the transposed convolution by weight [c, o/groups, ...]: the full one, cut by the paddings."""
    n = rank_of(x) - 2
    if groups > 1:
        pairs = zip(array.split(x, groups, axis=1), array.split(weight, groups, axis=0))
        return array.concat([_transposed(p, w, stride, padding, dilation, extra, 1) for p, w in pairs], axis=1)
    window = [int(s) for s in sizes(weight)[2:]]  # type: ignore[arg-type]
    wide = [(k - 1) * d + 1 for k, d in zip(window, dilation)]
    kernel = array.transpose(weight, [*range(2, n + 2), 1, 0])
    if any(d > 1 for d in dilation):  # a kernel with zeros between its elements
        for i, (k, d) in enumerate(zip(window, dilation)):
            if d > 1:
                shape = sizes(kernel)
                spaced = array.pad(
                    array.expand_dims(kernel, i + 1), [[0, d - 1] if j == i + 1 else [0, 0] for j in range(n + 3)]
                )
                shape[i] = k * d
                kernel = array.reshape(spaced, shape)[(slice(None),) * i + (slice(0, k * d - d + 1),)]
    spatial = [dim_size(x, i + 2) for i in range(n)]
    room = [min(e, s - 1) for e, s in zip(extra, stride)]
    full = [(size - 1) * s + w + r for size, s, w, r in zip(spatial, stride, wide, room)]
    y = to_nhwc(x)
    shape = [dim_size(x, 0), *full, int(weight.shape[1])]
    output_shape = vector(shape) if is_dynamic(shape) else shape
    transposed = nn.conv2d_transpose if n == 2 else nn.conv3d_transpose
    steps = list(stride) if n == 2 else [1, *stride, 1]
    y = transposed(y, kernel, output_shape, steps, "VALID")
    cuts = [slice(None)]
    for size, p, e, r in zip(full, padding, extra, room):
        cuts.append(slice(p, size - r - p + e) if p or e != r else slice(None))
        if not is_dynamic([size]) and e > r + p:
            raise InvalidArgumentError(what="output_padding is larger than stride and padding permit", found=extra)
    if any(c != slice(None) for c in cuts):
        y = y[tuple(cuts)]
    return to_nchw(y)


@aten("convolution")
def convolution(
    op: AtenCall,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    x, weight = tensor(x), tensor(weight)
    n = rank_of(weight) - 2
    single = rank_of(x) == n + 1
    if single:
        x = array.expand_dims(x, 0)
    window = [int(s) for s in sizes(weight)[2:]]  # type: ignore[arg-type]
    steps, wide = spread(stride, n), spread(dilation, n)
    if isinstance(padding, str):
        totals = [(k - 1) * d if padding == "same" else 0 for k, d in zip(window, wide)]
        sides = [(t // 2, t - t // 2) for t in totals]
    else:
        sides = [(p, p) for p in spread(padding, n)]
    extra = spread(output_padding, n)
    x, weight = _images(x, weight, n)
    if n == 1:
        steps, wide, sides, extra = [1, *steps], [1, *wide], [(0, 0), *sides], [0, *extra]
    if n == 1 and not transposed and steps[0] != steps[1] and groups > 1:
        steps[0] = steps[1]  # of one row: operators of channels alone have one stride
    if transposed:
        y = _transposed(x, weight, steps, [p for p, _ in sides], wide, extra, groups)
    else:
        y = convolve(x, weight, steps, sides, wide, groups)
    if bias is not None:
        y = y + array.reshape(tensor(bias), [-1] + [1] * (rank_of(y) - 2))
    if n == 1:
        y = array.squeeze(y, [2])
    return array.squeeze(y, [0]) if single else y


@aten("conv1d", "conv2d", "conv3d")
def conv(
    op: AtenCall,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    return convolution(op, x, weight, bias, stride, padding, dilation, False, 0, groups)


@aten("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    op: AtenCall,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    return convolution(op, x, weight, bias, stride, padding, dilation, True, output_padding, groups)


# ---- distances --------------------------------------------------------------------------------------------------


@aten("_cdist_forward", "cdist")
def cdist(op: AtenCall, x: Any, y: Any, p: float = 2.0, *rest: Any) -> Any:
    apart = math.abs(array.expand_dims(tensor(x), -2) - array.expand_dims(tensor(y), -3))
    return _norm(apart, p)


def _norm(apart: Any, p: float) -> Any:
    """Return norms over the last dimension of absolute differences."""
    if p == 2.0:
        return root(math.reduce_sum(math.square(apart), [-1]))
    if p == 0.0:
        return math.reduce_sum(array.cast(apart > tensor(0, apart.dtype), apart.dtype), [-1])
    if p == 1.0:
        return math.reduce_sum(apart, [-1])
    if p == float("inf"):
        return math.reduce_max(apart, [-1])
    total = math.reduce_sum(math.pow(apart, tensor(p, float32)), [-1])
    return math.pow(total, tensor(1.0 / p, float32))


@aten("_pdist_forward", "pdist")
def pdist(op: AtenCall, x: Any, p: float = 2.0) -> Any:
    """Return the distances of each pair of rows, i < j."""
    x = tensor(x)
    count = sizes(x)[0]
    if count is None:
        raise ValueError("distances of an unknown number of rows")
    first, second = np.triu_indices(count, 1)
    apart = math.abs(array.gather(x, first) - array.gather(x, second))
    return _norm(apart, p)


@aten("_trilinear")
def trilinear(
    op: AtenCall,
    a: Any,
    b: Any,
    c: Any,
    expand_a: Sequence[int],
    expand_b: Sequence[int],
    expand_c: Sequence[int],
    summed: Sequence[int],
    unroll: int = 1,
) -> Any:
    """Return the sum over dimensions of the product of three tensors, each with new dimensions of size 1."""
    factors = []
    for value, axes in ((a, expand_a), (b, expand_b), (c, expand_c)):
        value = tensor(value)
        for axis in sorted(axes):
            value = array.expand_dims(value, axis)
        factors.append(value)
    letters = "abcdefghijklmnopqrstuvwxyz"[: rank_of(factors[0])]
    terms, parts = [], []
    for value in factors:
        ones = [i for i, d in enumerate(sizes(value)) if d == 1]
        parts.append(array.squeeze(value, ones) if ones else value)
        terms.append("".join(v for i, v in enumerate(letters) if i not in ones))
    left = "".join(v for i, v in enumerate(letters) if i not in summed)
    present = "".join(v for v in left if any(v in t for t in terms))
    y = linalg.einsum(f"{','.join(terms)}->{present}", *parts)
    return y if present == left else array.reshape(y, [-1 if d is None else d for d in op.shape])
