"""Forms: the few shapes of loops that operators of both dialects become.

Lives here: `Buffer` and most forms, immutable and compared by identity.
Not here: forms of LSTM and GRU (recurrent_ops.py), of boxes (image_ops.py); what an element is
(expressions.py), fusion (fusion.py), machine code (../kernels/).

Arrays are dense and row-major; images are NHWC. Integers with a zero point stand for `value - zero`; forms have the
zero points as numbers where padding and sums need them, and the rest stands in their expressions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .buffers import Buffer, IndexMap, Window
from .expressions import Expr


@dataclass(frozen=True, eq=False)
class LoopOp:
    """One operation of a loop graph. output: what it writes, whole. origin: the operators it came from, for people."""

    output: Buffer
    origin: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """Every buffer it reads."""
        found: list[Buffer] = []
        for name in self.__dataclass_fields__:
            if name == "output":
                continue
            value = getattr(self, name)
            found += [b for b in (value if isinstance(value, tuple) else (value,)) if isinstance(b, Buffer)]
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Map(LoopOp):
    """output[i] = expr(operands[0][i], ...): operands broadcast to the output's shape as in NumPy."""

    operands: tuple[Buffer, ...]
    expr: Expr


@dataclass(frozen=True, eq=False)
class Contract(LoopOp):
    """Convolution and matrix product with a filter: sum over taps and channels, then an expression of the sum.

    input [N, H, W, C], filter [F, KH, KW, C / groups], output [N, OH, OW, F]:
        s = sum (input - input_zero) * (filter - filter_zero); padding counts as input_zero
        output = expr(s, operands...)
    Operands are of the output's shape; of shape [F], one number a channel; or tables of 256 for `lookup`.
    s is float32 for floats, int32 for integers of 8 bits, int64 for int16. The filter may be constant or not.
    A fully connected layer is a window of (1, 1) over [rows, 1, 1, C].

    rounding: of a float32 input beside a filter of int8 or int4 that stands for itself. Each input[n] is rounded to
    int8 first with its own scale and, if asymmetric, zero point (formulas: kernels/dynamic_quantization.py):
        s = scale[n] sum (q - zero[n]) * filter, q = round(input / scale[n]) + zero[n]
    scales: constant float32 [F, blocks], only of fully connected layers whose input is rounded: each stands before the
    sum over its block of C / blocks channels.
    """

    input: Buffer
    filter: Buffer
    operands: tuple[Buffer, ...]
    expr: Expr
    window: Window
    groups: int = 1
    input_zero: int = 0
    filter_zero: int = 0
    rounding: Literal["", "symmetric", "asymmetric"] = ""
    scales: Buffer | None = None


@dataclass(frozen=True, eq=False)
class Depthwise(LoopOp):
    """Each channel by itself: input [N, H, W, C], filter [KH, KW, C * multiplier]; else as Contract."""

    input: Buffer
    filter: Buffer
    operands: tuple[Buffer, ...]
    expr: Expr
    window: Window
    multiplier: int = 1
    input_zero: int = 0
    filter_zero: int = 0
    rounding: Literal["", "symmetric", "asymmetric"] = ""


@dataclass(frozen=True, eq=False)
class Banded(LoopOp):
    """Forms one after the other, each the only reader of the one before, a band of lines at a time: what lies between
    them stays in the cache.

    parts: a Depthwise, a Contract before or after it or both. lines: of the Depthwise's output, in a band.
    """

    parts: tuple[LoopOp, ...]
    lines: int

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """Every buffer that a part reads and no part writes."""
        inside = {id(part.output) for part in self.parts}
        return tuple(b for part in self.parts for b in part.inputs if id(b) not in inside)


@dataclass(frozen=True, eq=False)
class TransposedContract(LoopOp):
    """The transpose of a convolution: input [N, H, W, C], filter [F, KH, KW, C], output [N, OH, OW, F]; each input
    pixel is spread over the window at its place times strides, less the padding's top and left. rounding: as
    Contract's."""

    input: Buffer
    filter: Buffer
    operands: tuple[Buffer, ...]
    expr: Expr
    window: Window
    input_zero: int = 0
    filter_zero: int = 0
    rounding: Literal["", "symmetric", "asymmetric"] = ""


@dataclass(frozen=True, eq=False)
class MatMul(LoopOp):
    """output[..., m, n] = expr(sum_k a[..., m, k] b[..., k, n], operands...); leading axes broadcast.

    a_zero, b_zero: zero points of integers. transpose_a, transpose_b: the last two axes are stored the other way round.
    rounding: of a float32 a beside an int8 b, as Contract's: each row of a has a scale of its own.
    """

    a: Buffer
    b: Buffer
    operands: tuple[Buffer, ...]
    expr: Expr
    transpose_a: bool = False
    transpose_b: bool = False
    a_zero: int = 0
    b_zero: int = 0
    rounding: Literal["", "symmetric", "asymmetric"] = ""


@dataclass(frozen=True, eq=False)
class Attention(LoopOp):
    """output = softmax(before(q k^T, operands...)) v, float32, over the last axis of what before gives.

    output [..., m, e], q [..., m, d], k [..., n, d] (or [..., d, n], turned), v [..., n, e]; leading axes broadcast,
    operands to [..., m, n].
    """

    q: Buffer
    k: Buffer
    v: Buffer
    operands: tuple[Buffer, ...]
    before: Expr
    turned: bool = False


@dataclass(frozen=True, eq=False)
class Pool(LoopOp):
    """A window's maximum, or its sum over the pixels inside the image, then expr(that, their number as float32)."""

    input: Buffer
    kind: Literal["max", "sum"]
    expr: Expr
    window: Window


@dataclass(frozen=True, eq=False)
class Reduce(LoopOp):
    """output = expr(reduction over axes of before(input)). kind: sum, max, min, prod, any, all.

    Sums of integers are int32. The output's shape is the input's without the axes, or with 1 there.
    """

    input: Buffer
    axes: tuple[int, ...]
    kind: Literal["sum", "max", "min", "prod", "any", "all"]
    before: Expr
    expr: Expr


@dataclass(frozen=True, eq=False)
class ArgReduce(LoopOp):
    """The index of the first largest (or smallest) element along an axis."""

    input: Buffer
    axis: int
    kind: Literal["max", "min"]


@dataclass(frozen=True, eq=False)
class Ordered(LoopOp):
    """The places of the first elements of each row (the last axis), as many as the output's rows are long, in falling
    order, or rising; equal elements in the order of their places. nan: comes last, or counts as infinity."""

    input: Buffer
    rising: bool = False
    nan: Literal["last", "infinite"] = "last"


@dataclass(frozen=True, eq=False)
class Part(LoopOp):
    """The output's bytes, which begin at a byte of the input: one result of a form that has several."""

    input: Buffer
    start: int


@dataclass(frozen=True, eq=False)
class Scan(LoopOp):
    """Running sums along an axis. exclusive: without the element itself; reverse: from the last to the first."""

    input: Buffer
    axis: int
    exclusive: bool = False
    reverse: bool = False


@dataclass(frozen=True, eq=False)
class RowPass(LoopOp):
    """What needs a whole row (the last axis) at once. kind: a key of the row kernels' table (softmax, log_softmax,
    layer_norm, l2_norm, rms_norm ...). before: an expression of the input's element, float32; expr: of the result.
    numbers: what the kind asks for (beta, epsilon). operands: of the row's length (gamma, beta)."""

    input: Buffer
    operands: tuple[Buffer, ...]
    kind: str
    before: Expr
    expr: Expr
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Move(LoopOp):
    """Data movement: boxes of the output, each an affine map of an input. fill: for elements in no box, if any.

    Transposition, slice, pad, concatenation, tile, reverse, space to depth and back are each one of these.
    """

    operands: tuple[Buffer, ...]
    maps: tuple[IndexMap, ...]  # one an operand; an operand may stand several times
    fill: float | None = None


@dataclass(frozen=True, eq=False)
class ReduceWindow(LoopOp):
    """Windows along one axis, as many as the output has elements there: of each the elements i * stride + k * dilation
    for k < size, joined in their order; NaN is the extreme of what it is among. start: one number that comes first."""

    input: Buffer
    axis: int
    size: int
    stride: int
    dilation: int
    kind: Literal["sum", "prod", "max", "min"]
    start: tuple[Buffer, ...] = ()


@dataclass(frozen=True, eq=False)
class Checked(LoopOp):
    """The input as it is; an element that equals `limit`, is below it, or is beyond it either way from 0, is a failed
    guard. NaN is none of these."""

    input: Buffer
    refused: Literal["equal", "below", "beyond"] = "equal"
    limit: float = 0


@dataclass(frozen=True, eq=False)
class Store(LoopOp):
    """The value that a variable keeps after the run; output: a SameMemory of the variable, an input of the graph.

    Stores stand at the end of a graph, and what they read is as it was before any of them: the planner sees to that.
    """

    input: Buffer


@dataclass(frozen=True, eq=False)
class View(LoopOp):
    """The input's elements in their order under another shape: no work where the planner can share the memory."""

    input: Buffer


@dataclass(frozen=True, eq=False)
class Bitcast(LoopOp):
    """The input's bytes as elements of another dtype: no work where the planner can share the memory."""

    input: Buffer


def slice_copy(source: Buffer, into: Buffer, origin: tuple[str, ...] = ()) -> Move:
    """The move of a dense buffer into a slice of another."""
    strides, step = [], 1
    for n in reversed(source.shape):
        strides.append(step)
        step *= n
    box = IndexMap((0,) * len(source.shape), source.shape, 0, tuple(reversed(strides)))
    return Move(into, (source,), (box,), origin=origin)
