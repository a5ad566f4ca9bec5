"""Contractions with a filter: Conv2D, DepthwiseConv2dNative and their builtins, FULLY_CONNECTED.

Lives here: their rules, their epilogues.
Not here: windows (nodes.py), other matrix products (matmul.py), transposed convolutions (gradients.py),
kernels (../kernels/).

Integer kernels accumulate in int32, add the bias, and requantize by one float32 multiplier per channel:

    y = quantize(float(sum + bias) * (scale_x * scale_w[f] / scale_y), zero_y)

Hybrid kernels quantize float inputs to int8 at run time, per row or image; asymmetrically if an option requests it or
if the channels of a convolution have individual scales:

    y = activation(sum * (scale_x * scale_w[f]) + bias)

or sum * scale_w[f] * scale_x, for a convolution whose channels have individual scales, as officially.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, float32, int4, int8, int16, int32, int64, uint8
from ...scalar.fixed_point import multipliers, short_multiplier
from ..loops.buffers import Buffer, IndexMap, Window, row_major
from ..loops.expressions import Expr, apply, arg, const, convert, row_scale, substitute
from ..loops.ops import Contract, Depthwise, Map, MatMul, Move
from .context import LoweringContext, NoLowering, RuleOperand
from .data_movement import layout, move, move_view
from .nodes import window_of
from .operand_expressions import clamped, in_steps, steps_per
from .registry import CATALOGUE, rule
from .type_conversion import as_bytes, in_float32

INTEGERS = frozenset(
    (
        (int8, int8, int8),
        (uint8, uint8, uint8),
        (int8, int4, int8),
        (int16, int8, int16),
        (int16, int4, int16),
        (int16, int16, int16),
        (uint8, uint8, int16),
    )
)
"""Types of input, weights and output with kernels."""
_DENSE = (float32, int8, uint8)
"""Types of input and constant weights for which a depthwise convolution of one channel is lowered as a convolution, and
a convolution whose groups have one channel as a depthwise one."""
SUM_BOUNDS = {int32: 2.0**31, int64: 2.0**63}
"""Exclusive bounds of sums, by type."""


@rule("Conv2D", "CONV_2D")
def conv_2d(ctx: LoweringContext) -> None:
    """Lower a convolution. Filters are [height, width, in, out] in the catalogue, [out, height, width, in] in files."""
    x, w = ctx.operand(0), _readable(ctx, ctx.operand(1))
    if len(x.shape) != 4 or len(w.shape) != 4:
        raise NoLowering(f"a convolution of {x} and {w}")
    if ctx.node.dialect == CATALOGUE:
        if w.constant is None and w.shape[2] == x.shape[3] and _is_pointwise(ctx, x, w):
            _pointwise(ctx, x, w)
            return
        w = w.with_buffer(transposed(ctx, w.buffer, (3, 0, 1, 2)))
    if w.shape[3] == 0 or x.shape[3] % w.shape[3]:
        raise NoLowering(f"a convolution of {x} and {w}")
    features, groups = w.shape[0], x.shape[3] // w.shape[3]
    window, sizes = window_of(ctx, x.shape, (w.shape[1], w.shape[2]))
    y = ctx.output((x.shape[0], *sizes, features))
    if is_hybrid(x, w):
        by_channel = bool(np.any(w.scales != w.scales[0]))
        rounding = "asymmetric" if by_channel else "symmetric"
        operands, expr = hybrid_epilogue(ctx, w, y, features, filter_first=by_channel)
        ctx.add(Contract, y.buffer, x.buffer, _signed(ctx, w), operands, expr, window, groups, rounding=rounding)
        return
    operands, expr = epilogue(ctx, x, w, y, features)
    if w.shape[3] == 1 < groups and features % groups == 0 and w.constant is not None and _is_dense(x, w):
        taps = np.ascontiguousarray(w.constant[..., 0].transpose(1, 2, 0))  # a channel a group: a depthwise convolution
        filter = Buffer(f"{w.buffer.name}.depthwise", w.dtype, taps.shape, taps)
        ctx.add(Depthwise, y.buffer, x.buffer, filter, operands, expr, window, features // groups, *zeros_of(x, w))
        return
    if groups == 1 and not _is_packed(x, w):
        rows, size = x.shape[0] * math.prod(sizes), math.prod(w.shape[1:])
        windows = ctx.viewed(_windows(ctx, x, window, sizes), (rows, size))
        with ctx.reshaped(y, (rows, features)) as out:
            ctx.add(MatMul, out, windows, ctx.viewed(w.buffer, (features, size)), operands, expr, transpose_b=True)
        return
    ctx.add(Contract, y.buffer, x.buffer, w.buffer, operands, expr, window, groups, *zeros_of(x, w))


def _readable(ctx: LoweringContext, w: RuleOperand) -> RuleOperand:
    """Return weights as kernels read them: those below a byte as bytes, except int4 constants."""
    return w if w.dtype is int4 and w.buffer.constant is not None else as_bytes(ctx, w)


def _is_dense(x: RuleOperand, w: RuleOperand) -> bool:
    """Return whether a constant filter may become that of another kind of convolution."""
    return x.dtype in _DENSE and w.dtype in _DENSE


def _is_packed(x: RuleOperand, w: RuleOperand) -> bool:
    """Return whether kernels pack the weights of a contraction: for int16 inputs, only constants of at most 8 bits."""
    return x.dtype is not int16 or (w.dtype is not int16 and w.buffer.constant is not None)


def _windows(ctx: LoweringContext, x: RuleOperand, window: Window, sizes: tuple[int, int]) -> Buffer:
    """Return the pixels of each window of an image, [n, height, width, window height, window width, channels]; those
    outside of the image are 0."""
    n, height, width, channels = x.shape
    above, below, left, right = window.padding
    image = x.buffer
    if any(window.padding):
        image = ctx.new(x.dtype, (n, above + height + below, left + width + right, channels), ".padded")
        move(ctx, image, (x.buffer, layout(x), (0, above, left, 0)), fill=0)
    image_step, row, column, _ = row_major(image.shape)
    steps = [step * s for step, s in zip((row, column), window.strides)]
    taps = [step * d for step, d in zip((row, column), window.dilations)]
    windows = ctx.new(x.dtype, (n, *sizes, *window.size, channels), ".windows")
    box = IndexMap((0,) * 6, windows.shape, 0, (image_step, *steps, *taps, 1))
    ctx.add(Move, windows, (image,), (box,))
    return windows


def _is_pointwise(ctx: LoweringContext, x: RuleOperand, w: RuleOperand) -> bool:
    """Return whether a filter [height, width, in, out] is a matrix that each pixel is multiplied by."""
    return window_of(ctx, x.shape, w.shape[:2])[0] == Window((1, 1)) and x.dtype is w.dtype is float32


def _pointwise(ctx: LoweringContext, x: RuleOperand, w: RuleOperand) -> None:
    """Lower a pointwise convolution by a computed filter to a matrix product, without transposing the filter."""
    y = ctx.output((*x.shape[:3], w.shape[3]))
    rows, (channels, features) = x.size // max(x.shape[3], 1), w.shape[2:]
    a, b = ctx.viewed(x.buffer, (rows, channels)), ctx.viewed(w.buffer, (channels, features))
    with ctx.reshaped(y.buffer, (rows, features)) as out:
        ctx.add(MatMul, out, a, b, (), arg(0, float32))


def transposed(ctx: LoweringContext, x: Buffer, order: Sequence[int]) -> Buffer:
    """Return a buffer with permuted axes; a constant is permuted at compile time."""
    if x.constant is not None:
        array = np.ascontiguousarray(x.constant.transpose(order))
        return Buffer(f"{x.name}.transposed", x.dtype, array.shape, array)
    buffer = ctx.new(x.dtype, [x.shape[i] for i in order])
    move(ctx, buffer, (x, layout(x).transpose(order), (0,) * len(order)))
    return buffer


@rule("DepthwiseConv2dNative", "DEPTHWISE_CONV_2D")
def depthwise_conv_2d(ctx: LoweringContext) -> None:
    """Lower a depthwise convolution. Filters are [height, width, channels, multiplier] in the catalogue, [1, height,
    width, out] in files."""
    x, w = ctx.operand(0), _readable(ctx, ctx.operand(1))
    if ctx.node.dialect == CATALOGUE:
        w = w.with_buffer(ctx.viewed(w.buffer, (1, *w.shape[:2], w.shape[2] * w.shape[3])))
    if len(x.shape) != 4 or len(w.shape) != 4 or w.shape[0] != 1 or x.shape[3] == 0 or w.shape[3] % x.shape[3]:
        raise NoLowering(f"a depthwise convolution of {x} and {w}")
    channels = w.shape[3]
    window, sizes = window_of(ctx, x.shape, (w.shape[1], w.shape[2]))
    y = ctx.output((x.shape[0], *sizes, channels))
    filter = ctx.viewed(w.buffer, w.shape[1:])
    if w.dtype is not uint8 and is_hybrid(x, w):
        operands, expr = hybrid_epilogue(ctx, w, y, channels)
        ctx.add(
            Depthwise, y.buffer, x.buffer, filter, operands, expr, window, channels // x.shape[3], rounding="asymmetric"
        )
        return
    operands, expr = epilogue(ctx, x, w, y, channels, axis=3)
    if x.shape[3] == 1 < channels and w.constant is not None and _is_dense(x, w):
        taps = np.ascontiguousarray(w.constant.transpose(3, 1, 2, 0))  # one channel: an ordinary convolution
        dense = Buffer(f"{w.buffer.name}.dense", w.dtype, taps.shape, taps)
        ctx.add(Contract, y.buffer, x.buffer, dense, operands, expr, window, 1, *zeros_of(x, w))
        return
    ctx.add(Depthwise, y.buffer, x.buffer, filter, operands, expr, window, channels // x.shape[3], *zeros_of(x, w))


@rule("FULLY_CONNECTED")
@in_float32
def fully_connected(ctx: LoweringContext) -> None:
    x, w = ctx.operand(0), _readable(ctx, ctx.operand(1))
    if ctx.attr("weights_format") == "SHUFFLED4x16INT8":
        _shuffled(ctx, x, w)
        return
    if len(w.shape) != 2 or not w.shape[1] or x.size % w.shape[1] or ctx.attr("weights_format") not in (0, "DEFAULT"):
        raise NoLowering(f"a product of {x} and {w}")
    features, channels = w.shape
    rows = x.size // channels
    keep = bool(ctx.attr("keep_num_dims")) and x.shape[-1] == channels
    y = ctx.output((*x.shape[:-1], features) if keep else (rows, features))
    source = ctx.viewed(x.buffer, (rows, 1, 1, channels))
    hybrid = w.blocks is None and is_hybrid(x, w)
    filter = ctx.viewed(_signed(ctx, w) if hybrid else w.buffer, (features, 1, 1, channels))
    if w.blocks is not None:
        scales = _block_scales(x, w, y)
        operands, total = with_bias(ctx.optional(2), float32, features)
        scaled = apply("mul", arg(0, float32), row_scale())
        expr = clamped(substitute(total, {0: scaled}), ctx.node.activation)
        more: dict[str, Any] = {"rounding": "asymmetric", "scales": scales}
    elif hybrid:
        operands, expr = hybrid_epilogue(ctx, w, y, features)
        more = {"rounding": "asymmetric" if ctx.attr("asymmetric_quantize_inputs") else "symmetric"}
    else:
        operands, expr = epilogue(ctx, x, w, y, features)
        more = dict(zip(("input_zero", "filter_zero"), zeros_of(x, w)))
    if not _is_packed(x, w):
        with ctx.reshaped(y, (rows, features)) as target:
            matrix = ctx.viewed(x.buffer, (rows, channels))
            ctx.add(MatMul, target, matrix, w.buffer, operands, expr, transpose_b=True)
        return
    with ctx.reshaped(y, (rows, 1, 1, features)) as target:
        ctx.add(Contract, target, source, filter, operands, expr, Window((1, 1)), **more)


BLOCK = (4, 16)
"""Rows and columns of a block of shuffled weights."""


def _shuffled(ctx: LoweringContext, x: RuleOperand, w: RuleOperand) -> None:
    """Lower a product by weights in blocks, of bytes with their sign flipped; the second output is what the official
    kernel leaves in its workspace: rows as int8, of four of them block by block."""
    features, channels = w.shape if len(w.shape) == 2 else (0, 0)
    rows, columns = BLOCK
    if (
        w.constant is None
        or x.dtype is not uint8
        or not x.size
        or features % rows
        or not channels
        or channels % columns
    ):
        raise NoLowering(f"a product of {x} and shuffled {w}")
    count, keep = x.size // channels, bool(ctx.attr("keep_num_dims")) and x.shape[-1] == channels
    y, workspace = ctx.output((*x.shape[:-1], features) if keep else (count, features)), ctx.output(index=1)
    if count not in (1, rows) or workspace.size != x.size or workspace.dtype is not uint8:
        raise NoLowering(f"a product of {x} and shuffled {w} to {y} with {workspace}")
    blocks = w.constant.view(np.int8).reshape(features // rows, channels // columns, rows, columns)
    matrix = np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)).reshape(features, 1, 1, channels)
    operands, expr = epilogue(ctx, x, w, y, features)
    filter = Buffer(f"{w.buffer.name}.rows", int8, matrix.shape, matrix)
    with ctx.reshaped(y, (count, 1, 1, features)) as target:
        source = ctx.viewed(x.buffer, (count, 1, 1, channels))
        ctx.add(Contract, target, source, filter, operands, expr, Window((1, 1)), 1, FLIPPED, 0)
    flipped = ctx.new(uint8, (count, channels // columns, columns), ".flipped")
    value = apply("bitwise_xor", arg(0, uint8), const(FLIPPED, uint8))
    ctx.add(Map, flipped, (ctx.viewed(x.buffer, flipped.shape),), value)
    places = layout(flipped)
    move_view(ctx, workspace.buffer, flipped, places.swapaxes(0, 1) if count == rows else places, places)


FLIPPED = 0x80
"""The sign of a byte, and the zero point of bytes of which it is flipped."""


def _block_scales(x: RuleOperand, w: RuleOperand, y: RuleOperand) -> Buffer:
    """Return the blockwise scales of weights, float32 [features, blocks]. Raises NoLowering for other types."""
    blocks, (features, channels) = w.blocks, w.shape
    raw_scales = None if blocks is None else blocks.scales
    if blocks is None or raw_scales is None or (x.dtype, w.dtype, y.dtype) != (float32, int4, float32):
        raise NoLowering(f"{x.dtype.name} by {w.dtype.name} with scales by block")
    if blocks.size < 1 or channels % blocks.size or raw_scales.size != features * (channels // blocks.size):
        raise NoLowering(f"{raw_scales.size} scales by block of {blocks.size} for {w}")
    scales = raw_scales.reshape(features, -1).astype(np.float32)  # float16 in files
    return Buffer(f"{w.buffer.name}.scales", float32, scales.shape, scales)


def zeros_of(x: RuleOperand, w: RuleOperand) -> tuple[int, int]:
    return (0, 0) if x.dtype is float32 else (x.zero, w.zero)


def epilogue(
    ctx: LoweringContext, x: RuleOperand, w: RuleOperand, y: RuleOperand, features: int, bias: int = 2, axis: int = 0
) -> tuple[tuple[Buffer, ...], Expr]:
    """Return the epilogue of a sum - bias, scales and activation - as operands and their expression.

    bias: index of the input; axis: of the features in the weights.
    """
    bias_operand, activation = ctx.optional(bias), ctx.node.activation
    kind = x.dtype, w.dtype, y.dtype
    if kind == (float32, float32, float32):
        operands, total = with_bias(bias_operand, float32, features)
        return operands, clamped(total, activation)
    if kind not in INTEGERS or not (x.is_quantized and y.is_quantized):
        raise NoLowering(f"{x.dtype.name} by {w.dtype.name} to {y.dtype.name}")
    has_zero_point = np.any(np.asarray(w.quantization.zero_point))
    if (x.dtype is int16 and (x.zero or has_zero_point)) or (w.dtype is int4 and has_zero_point):
        raise NoLowering(f"{x.dtype.name} by {w.dtype.name} with a zero point")
    factors = _factors(x, w, y, features)
    if x.dtype is int16 and (bias_operand is None or bias_operand.dtype is int64):
        factors = _short(factors)
    operands, total = with_bias(bias_operand, int64 if x.dtype is int16 else int32, features)
    check_sums(x, w, bias_operand, axis)
    scales = Buffer(f"{y.buffer.name}.scales", float32, (features,), factors.astype(np.float32))
    value = apply("mul", convert(total, float32), arg(len(operands) + 1, float32))
    return (*operands, scales), in_steps(value, y, activation)


def is_hybrid(x: RuleOperand, w: RuleOperand) -> bool:
    """Return whether float inputs are quantized at run time. Raises NoLowering for weights with a zero point."""
    if x.dtype is not float32 or w.dtype not in (int8, uint8, int4) or not w.is_quantized:
        return False
    if np.any(w.quantization.zero_point):
        raise NoLowering(f"{x.dtype.name} by {w.dtype.name} with a zero point")
    return True


def _signed(ctx: LoweringContext, w: RuleOperand) -> Buffer:
    """Return hybrid weights as int8; the first files declare the same bytes as uint8."""
    return ctx.bits(w.buffer, int8, w.shape) if w.dtype is uint8 else w.buffer


def hybrid_epilogue(
    ctx: LoweringContext, w: RuleOperand, y: RuleOperand, features: int, bias: int = 2, filter_first: bool = False
) -> tuple[tuple[Buffer, ...], Expr]:
    """Return the epilogue of a hybrid contraction: the scales of rows and weights, bias and activation.

    bias: index of the input. filter_first: whether sums are multiplied by the scale of the weights and then by that of
    the row, instead of by the product of both.
    """
    bias_operand, scales = ctx.optional(bias), w.scales
    if y.dtype is not float32 or scales.size not in (1, features):
        raise NoLowering(f"{y.dtype.name} of {scales.size} scales for {features} features")
    factors = np.ascontiguousarray(np.broadcast_to(scales, (features,)))
    value = hybrid_product(arg(1, float32), filter_first)
    operands: tuple[Buffer, ...] = (Buffer(f"{y.buffer.name}.scales", float32, (features,), factors),)
    if bias_operand is not None:
        if bias_operand.dtype is not float32 or bias_operand.shape != (features,):
            raise NoLowering(f"a bias {bias_operand}")
        operands, value = (*operands, bias_operand.buffer), apply("add", value, arg(2, float32))
    return operands, clamped(value, ctx.node.activation)


def hybrid_product(scale: Expr, filter_first: bool = False) -> Expr:
    """Return the expression of sums of quantized floats times the scales of their rows and of the weights.
    filter_first: see `hybrid_epilogue`."""
    total = convert(arg(0, int32), float32)
    if filter_first:
        return apply("mul", apply("mul", total, scale), row_scale())
    return apply("mul", total, apply("mul", row_scale(), scale))


def with_bias(bias: RuleOperand | None, dtype: DType, features: int) -> tuple[tuple[Buffer, ...], Expr]:
    total = arg(0, dtype)
    if bias is None:
        return (), total
    if bias.dtype not in (dtype, int32) or bias.shape != (features,) or (dtype is float32) != (bias.dtype is float32):
        raise NoLowering(f"a bias {bias}")
    return (bias.buffer,), apply("add", total, convert(arg(1, bias.dtype), dtype))


def check_sums(x: RuleOperand, w: RuleOperand, bias: RuleOperand | None, axis: int) -> None:
    """Raise NoLowering for a constant bias with which sums may overflow: officially undefined, and kernels differ.

    A large bias alone is not a reason: channels whose weights are all 0 have the smallest scales and thus the largest
    biases. The bound of a feature's sums: |b| + sum |w - z_w| max |x - z_x|
    """
    if bias is None or bias.constant is None:
        return
    size, bound = np.abs(bias.constant.astype(np.float64)), SUM_BOUNDS[int64 if x.dtype is int16 else int32]
    if size.max(initial=0) <= bound / 2:
        return
    if w.constant is None or w.constant.shape != w.shape:
        raise NoLowering(f"a bias {bias} with which sums may overflow")
    others = tuple(i for i in range(len(w.shape)) if i != axis)
    taps = np.abs(w.constant.astype(np.float64) - w.zero).sum(others)
    range_of_x = max(abs(int(limit) - x.zero) for limit in x.dtype.limits)
    if np.any(size + taps * range_of_x >= bound):
        raise NoLowering(f"a bias {bias} with which sums may overflow")


def _factors(x: RuleOperand, w: RuleOperand, y: RuleOperand, features: int) -> np.ndarray:
    """Return the factors from sums to steps of the output, float64[features]."""
    scales: Any = steps_per(w.scales.astype(np.float64) * x.scale, y)
    if scales.size not in (1, features):
        raise NoLowering(f"{scales.size} scales for {features} features")
    return np.broadcast_to(scales, (features,))


def _short(factors: np.ndarray) -> np.ndarray:
    """Round the fractions of factors to 15 bits, via 31, as kernels with int64 sums receive them."""
    m, e = multipliers(factors)
    return np.broadcast_to(np.ldexp(short_multiplier(m).astype(np.float64), e - 15), factors.shape)
