"""Operators with state: LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM of floats.

Lives here: their rules.
Not here: those of integers (recurrent_int8.py), the kernel of their steps (compiler/kernels/recurrent.py).
"""

from __future__ import annotations

from ....compiler.loops.expressions import apply, arg
from ....compiler.loops.forms import Buffer, Contract, IndexMap, Move, Window
from ....compiler.loops.recurrent_forms import Lstm
from ....core.dtypes import float32, int8
from ..nodes import At, Operand, Refused
from . import rule
from .moving import row_major

WEIGHTS, RECURRENT, PEEPHOLES, BIASES, PROJECTION, STATE, NORMS = 1, 5, 9, 12, 16, 18, 20
"""Where inputs begin, which follow each other by gate: input, forget, cell, output."""
ONE, BOTH_STATES, AUXILIARY = 17, 35, 39
"""Of both directions: how many inputs the weights of one are, where the states are, where a second input is."""


@rule("UNIDIRECTIONAL_SEQUENCE_LSTM", "LSTM")
def one_direction(at: At) -> None:
    """LSTM of kernel_type FULL is a sequence of one step, or one whose time comes first."""
    x = at.operand(0)
    if x.dtype is int8 and at.operand(RECURRENT + 1).dtype is int8:
        from .recurrent_int8 import integer_lstm

        integer_lstm(at, x)
        return
    if at.node.name == "LSTM" and at.option("kernel_type") not in (0, "FULL"):
        raise Refused("an LSTM of kernel_type BASIC")
    if at.option("diagonal_recurrent_tensors"):
        raise Refused("diagonal weights")
    if any(at.optional(i) is not None for i in range(NORMS, NORMS + 4)):
        raise Refused("layer normalisation within an LSTM")
    time_major = at.node.name == "LSTM" or bool(at.option("time_major"))
    shape = (1, *x.shape) if at.node.name == "LSTM" and len(x.shape) == 2 else x.shape
    n = at.operand(RECURRENT + 1).shape[-1]
    y = at.output((*x.shape[:-1], n))
    out, close = at.under(y, (*shape[:-1], n))
    _direction(at, x, shape, out, (0, STATE), time_major=time_major)
    close()


@rule("BIDIRECTIONAL_SEQUENCE_LSTM")
def both_directions(at: At) -> None:
    """The second from the sequence's end."""
    x = at.operand(0)
    if at.optional(AUXILIARY) is not None or len(x.shape) != 3:
        raise Refused("an auxiliary input")
    sizes = [at.operand(RECURRENT + 1 + more).shape[-1] for more in (0, ONE)]
    shapes = [(*x.shape[:2], n) for n in sizes]
    merged = bool(at.option("merge_outputs"))
    y = at.output((*x.shape[:2], sum(sizes)) if merged else shapes[0])
    others = [] if merged else [at.output(shapes[1], 1).buffer]
    outs = (
        [at.new(float32, shape, f".direction{i}") for i, shape in enumerate(shapes)] if merged else [y.buffer, *others]
    )
    for i, out in enumerate(outs):
        places = (i * ONE, BOTH_STATES + 2 * i)
        _direction(at, x, x.shape, out, places, time_major=bool(at.option("time_major")), backward=bool(i))
    if merged:
        starts = (0, sizes[0])
        maps = tuple(IndexMap((0, 0, start), shape, 0, row_major(shape)) for start, shape in zip(starts, shapes))
        at.form(Move, y.buffer, tuple(outs), maps)


def _direction(at: At, x: Operand, shape: tuple[int, ...], out: Buffer, places: tuple[int, int], *, time_major: bool,
               backward: bool = False) -> None:  # fmt: skip
    """The forms of one direction. shape: [time, batch, n] or [batch, time, n]. places: how far behind the first
    direction's its weights are, and where its state is."""
    more, state = places
    if x.dtype is not float32 or len(shape) != 3:
        raise Refused(f"an LSTM of {x}")
    gates = range(0 if at.optional(WEIGHTS + more) is not None else 1, 4)
    recurrent = [_known(at, RECURRENT + more + g) for g in gates]
    cells, outputs = recurrent[0].shape
    batch = shape[1] if time_major else shape[0]
    h, c = (_state(at, state + i, batch, n) for i, n in enumerate((outputs, cells)))
    peepholes = [at.optional(PEEPHOLES + more + i) for i in range(0 if len(gates) == 4 else 1, 3)]
    looks = [_known(at, PEEPHOLES + more + i + 3 - len(peepholes)).buffer for i, p in enumerate(peepholes)
             if p is not None]  # fmt: skip
    if len(looks) not in (0, len(peepholes)) or any(p.shape != (cells,) for p in looks):
        raise Refused("peepholes")
    given = [PROJECTION + more + i for i in range(2) if at.optional(PROJECTION + more + i) is not None]
    projection = [_known(at, place) for place in given]
    if not projection and cells != outputs:
        raise Refused(f"{cells} cells and {outputs} outputs")
    if projection and (projection[0].shape != (outputs, cells) or any(p.shape != (outputs,) for p in projection[1:])):
        raise Refused("a projection")
    sums = [_from_input(at, x, (WEIGHTS + more + g, BIASES + more + g), cells) for g in gates]
    at.form(Lstm, out, tuple(sums), tuple(r.buffer for r in recurrent), h, c, tuple(looks),
            tuple(p.buffer for p in projection), at.option("fused_activation_function") or "NONE", time_major,
            (float(at.option("cell_clip")), float(at.option("proj_clip"))), backward)  # fmt: skip


def _known(at: At, place: int) -> Operand:
    """Weights. Raises Refused where they are not constants of float32."""
    w = at.operand(place)
    if not w.is_constant or w.dtype is not float32:
        raise Refused(f"weights {w}")
    return w


def _state(at: At, place: int, batch: int, n: int) -> Buffer:
    s = at.operand(place)
    if not s.tensor.is_variable or s.size != batch * n or s.dtype is not float32:
        raise Refused(f"a state {s}")
    return s.buffer


def _from_input(at: At, x: Operand, places: tuple[int, int], cells: int) -> Buffer:
    """What a gate gets from the inputs of all steps, [rows, 1, 1, cells]."""
    w, b, n = _known(at, places[0]), at.operand(places[1]), x.shape[-1]
    if w.shape != (cells, n) or b.shape != (cells,) or b.dtype is not float32 or not n or not x.size:
        raise Refused(f"weights {w}, bias {b}")
    rows = x.size // n
    out = at.new(float32, (rows, 1, 1, cells), f".gate{places[0]}")
    total = apply("add", arg(0, float32), arg(1, float32))
    at.form(Contract, out, at.viewed(x.buffer, (rows, 1, 1, n)), at.viewed(w.buffer, (cells, 1, 1, n)), (b.buffer,),
            total, Window((1, 1)))  # fmt: skip
    return out
