"""Operations of the loop graph, to which the operators of both dialects are lowered.

Lives here: `LoopOp` and most operations, immutable and compared by identity.
Not here: buffers (buffers.py), operations of sequences (recurrent_ops.py), images (domain_ops.py), indices
(indexing_ops.py) and numeric algorithms (domain_ops.py); expressions of elements (expressions.py), fusion (fusion.py),
machine code (../kernels/).

Integers with a zero point represent `value - zero`; operations have zero points as numbers where padding and sums
require them, the remaining arithmetic is in their expressions.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from ...core.records import record
from .buffers import Buffer, IndexMap, Window, row_major
from .expressions import Expr


@record
class LoopOp:
    """One operation of a loop graph. output: the buffer that it writes entirely. origin: names of its operators, for
    messages."""

    output: Buffer
    origin: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """All buffers that it reads."""
        buffers: list[Buffer] = []
        for name in self.__dataclass_fields__:
            if name == "output":
                continue
            value = getattr(self, name)
            buffers += [b for b in (value if isinstance(value, tuple) else (value,)) if isinstance(b, Buffer)]
        return tuple(buffers)


@record
class Map(LoopOp):
    """output[i] = expr(operands[0][i], ...): operands broadcast to the output's shape as in NumPy."""

    operands: tuple[Buffer, ...]
    expr: Expr


@record
class Contract(LoopOp):
    """Convolution and matrix product with a filter: sum over taps and channels, then an expression of the sum.

    input [N, H, W, C], filter [F, KH, KW, C / groups], output [N, OH, OW, F]:
        s = sum (input - input_zero) * (filter - filter_zero); padding counts as input_zero
        output = expr(s, operands...)
    Operands have the output's shape; shape [F], one number per channel; or are tables of 256 for `lookup`.
    s is float32 for floats, int32 for integers of 8 bits, int64 for int16. The filter may be constant or not.
    A fully connected layer is a window of (1, 1) over [rows, 1, 1, C].

    rounding: of a float32 input of hybrid kernels, whose filter is int8 or int4. Each input[n] is quantized to int8
    with its own scale and, if asymmetric, zero point (formulas: kernels/quantization.py). s is then int32, and
    scale[n] is the leaf row_scale of expr:
        s = sum (q - zero[n]) * filter, q = round(input / scale[n]) + zero[n]
    scales: constant float32 [F, blocks], only of hybrid fully connected layers: each multiplies the sum over its
    block of C / blocks channels, and s is float32.
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


@record
class Depthwise(LoopOp):
    """A convolution of each channel by itself: input [N, H, W, C], filter [KH, KW, C * multiplier]; otherwise as
    Contract."""

    input: Buffer
    filter: Buffer
    operands: tuple[Buffer, ...]
    expr: Expr
    window: Window
    multiplier: int = 1
    input_zero: int = 0
    filter_zero: int = 0
    rounding: Literal["", "symmetric", "asymmetric"] = ""


@record
class Banded(LoopOp):
    """A chain of operations, each the only reader of the one before, computed a band of lines at a time, so that
    intermediate lines stay in the cache.

    parts: a Depthwise, with a Contract before it, after it or both. lines: of the Depthwise's output in a band.
    """

    parts: tuple[LoopOp, ...]
    lines: int

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """All buffers that a part reads and no part writes."""
        inside = {id(part.output) for part in self.parts}
        return tuple(b for part in self.parts for b in part.inputs if id(b) not in inside)


@record
class TransposedContract(LoopOp):
    """The transpose of a convolution: input [N, H, W, C], filter [F, KH, KW, C], output [N, OH, OW, F]; each input
    pixel is distributed over the window at its position times strides, less the top and left padding. rounding: as
    Contract's."""

    input: Buffer
    filter: Buffer
    operands: tuple[Buffer, ...]
    expr: Expr
    window: Window
    input_zero: int = 0
    filter_zero: int = 0
    rounding: Literal["", "symmetric", "asymmetric"] = ""


@record
class MatMul(LoopOp):
    """output[..., m, n] = expr(sum_k a[..., m, k] b[..., k, n], operands...); leading axes broadcast.

    a_zero, b_zero: zero points of integers. transpose_a, transpose_b: the last two axes are stored in reverse order.
    rounding: of a float32 a with an int8 b, as Contract's, with a scale per row of a.
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


@record
class FusedAttention(LoopOp):
    """output = softmax(before(q k^T, operands...)) v, float32, over the last axis.

    output [..., m, e], q [..., m, d], k [..., n, d] (or [..., d, n], transposed), v [..., n, e]; leading axes
    broadcast, operands to [..., m, n].
    """

    q: Buffer
    k: Buffer
    v: Buffer
    operands: tuple[Buffer, ...]
    before: Expr
    turned: bool = False


@record
class GroupedAttention(LoopOp):
    """Attention over keys and values as a cache has them: y = softmax(scale q k^T + mask) v, float32.

    output, q [b, s, n, h]; k, v [b, t, m, h], where each of m heads serves n / m queries, one after the other; mask
    broadcasts to [b, n, s, t] and is [..., t]. Keys behind the last one whose mask is not minus infinity are not read.
    """

    q: Buffer
    k: Buffer
    v: Buffer
    mask: Buffer
    scale: float


@record
class Pool(LoopOp):
    """The maximum of a window, or its sum over the pixels inside the image, then expr(result, number of pixels as
    float32). propagates_nan: the maximum of a window with NaN is NaN; else NaN is ignored."""

    input: Buffer
    kind: Literal["max", "sum"]
    expr: Expr
    window: Window
    propagates_nan: bool = False


@record
class Reduce(LoopOp):
    """output = expr(reduction over axes of before(input)). kind: sum, max, min, prod, any, all.

    Sums of integers are int32. The output's shape is the input's without the axes, or with 1 there.
    """

    input: Buffer
    axes: tuple[int, ...]
    kind: Literal["sum", "max", "min", "prod", "any", "all"]
    before: Expr
    expr: Expr


@record
class ArgReduce(LoopOp):
    """The index of the first largest (or smallest) element along an axis."""

    input: Buffer
    axis: int
    kind: Literal["max", "min"]


@record
class Ordered(LoopOp):
    """Positions of the first elements of each sorted row (the last axis), as many as the output's rows have, in
    descending or ascending order; the sort is stable. nan: comes last, or counts as infinity."""

    input: Buffer
    rising: bool = False
    nan: Literal["last", "infinite"] = "last"


@record
class Part(LoopOp):
    """The bytes of the input from `start` on: one result of an operation that has several."""

    input: Buffer
    start: int


@record
class Scan(LoopOp):
    """Cumulative combination along an axis: y_i = step(y_(i-1), operands[0][i], ...), of `start` before the first.

    step: arg 0 is the combination so far. exclusive: without the element itself, the combination of those before it;
    reverse: from the last to the first. Operands have the output's shape and dtype.
    """

    operands: tuple[Buffer, ...]
    axis: int
    step: Expr
    start: float
    exclusive: bool = False
    reverse: bool = False


@record
class RowPass(LoopOp):
    """A function of whole rows (the last axis).

    kind: a key of the row kernels' table (softmax, log_softmax, layer_norm, l2_norm, rms_norm ...). before: an
    expression of the input's element, float32; expr: of the result. numbers: parameters of the kind (beta, epsilon).
    operands: of the row's length (gamma, beta).
    """

    input: Buffer
    operands: tuple[Buffer, ...]
    kind: str
    before: Expr
    expr: Expr
    numbers: tuple[float, ...] = ()


@record
class Move(LoopOp):
    """Data movement: boxes of the output, each an affine map of an input. fill: for elements in no box, if any.

    Transposition, slice, pad, concatenation, tile, reverse and space to depth are each a move.
    """

    operands: tuple[Buffer, ...]
    maps: tuple[IndexMap, ...]  # one per operand; operands may repeat
    fill: float | None = None


@record
class ReduceWindow(LoopOp):
    """Reductions of windows along one axis, as many as the output has elements there: of the elements i * stride + k *
    dilation for k < size, in order; NaN propagates through maxima and minima. start: an initial value."""

    input: Buffer
    axis: int
    size: int
    stride: int
    dilation: int
    kind: Literal["sum", "prod", "max", "min"]
    start: tuple[Buffer, ...] = ()


@record
class Checked(LoopOp):
    """The input, with a guard that fails for an element that equals `limit`, is below it, or exceeds it in magnitude.
    NaN passes."""

    input: Buffer
    refused: Literal["equal", "below", "beyond"] = "equal"
    limit: float = 0


@record
class Store(LoopOp):
    """The value of a variable after the run; output: a SameMemory of the variable, an input of the graph.

    Stores are at the end of a graph, and the planner ensures that they read values from before any of them.
    """

    input: Buffer


@record
class Update(LoopOp):
    """Arrays written in place, element by element: targets[k][i] = exprs[k](targets[0][i], ..., operands[0][i], ...).

    Every expression reads the values from before the operation. targets: external buffers of one shape; operands: of
    that shape, or one number for all elements. output: a SameMemory of the first target.
    """

    targets: tuple[Buffer, ...]
    operands: tuple[Buffer, ...]
    exprs: tuple[Expr, ...]


@record
class RowsUpdate(Update):
    """An Update of the given rows of targets [height, ...], each by the sum of its rows of a gradient, in order.

    operands: the gradient [n, ...] and numbers; indices: [n] in [0, height), unguarded. exprs read the targets, the sum
    and the numbers; idle, of all other rows, the targets and the numbers; it is empty if these stay.
    """

    indices: Buffer
    idle: tuple[Expr, ...]


@record
class View(LoopOp):
    """The input's elements in order under another shape; free if the planner can share the memory."""

    input: Buffer


@record
class Reinterpret(LoopOp):
    """The input's bytes as elements of another dtype; free if the planner can share the memory."""

    input: Buffer


def slice_copy(source: Buffer, into: Buffer, origin: tuple[str, ...] = ()) -> Move:
    """Return the move of a dense buffer into a slice of another."""
    box = IndexMap((0,) * len(source.shape), source.shape, 0, row_major(source.shape))
    return Move(into, (source,), (box,), origin=origin)
