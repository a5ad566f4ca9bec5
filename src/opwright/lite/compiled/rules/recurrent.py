"""Operators with state: UNIDIRECTIONAL_SEQUENCE_LSTM of floats.

Lives here: its rule.  Not here: the kernel of its steps (compiler/kernels/recurrent.py), integers (the interpreter's).
"""

from __future__ import annotations

from ....compiler.loops.expressions import apply, arg
from ....compiler.loops.forms import Buffer, Contract, Lstm, Window
from ....core.dtypes import float32
from ..nodes import At, Operand, Refused
from . import rule

WEIGHTS, RECURRENT, PEEPHOLES, BIASES, PROJECTION, STATE, NORMS = 1, 5, 9, 12, 16, 18, 20
"""Where inputs begin, which follow each other by gate: input, forget, cell, output."""


@rule("UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(at: At) -> None:
    x = at.operand(0)
    if x.dtype is not float32 or len(x.shape) != 3 or at.option("diagonal_recurrent_tensors"):
        raise Refused(f"an LSTM of {x}")
    if any(at.optional(i) is not None for i in range(NORMS, NORMS + 4)):
        raise Refused("layer normalisation within an LSTM")
    gates = range(0 if at.optional(WEIGHTS) is not None else 1, 4)
    recurrent = [_known(at, RECURRENT + g) for g in gates]
    cells, outputs = recurrent[0].shape
    time_major = bool(at.option("time_major"))
    y = at.output((*x.shape[:2], outputs))
    batch = x.shape[1] if time_major else x.shape[0]
    h, c = (_state(at, STATE + i, batch, n) for i, n in enumerate((outputs, cells)))
    peepholes = [at.optional(PEEPHOLES + i) for i in range(0 if len(gates) == 4 else 1, 3)]
    looks = [p.buffer for p in peepholes if p is not None]
    if len(looks) not in (0, len(peepholes)) or any(p.shape != (cells,) for p in looks):
        raise Refused("peepholes")
    projection = [_known(at, PROJECTION + i) for i in range(2) if at.optional(PROJECTION + i) is not None]
    if not projection and cells != outputs:
        raise Refused(f"{cells} cells and {outputs} outputs")
    if projection and (projection[0].shape != (outputs, cells) or any(p.shape != (outputs,) for p in projection[1:])):
        raise Refused("a projection")
    sums = [_from_input(at, x, WEIGHTS + g, BIASES + g, cells) for g in gates]
    at.form(Lstm, y.buffer, tuple(sums), tuple(r.buffer for r in recurrent), h, c, tuple(looks),
            tuple(p.buffer for p in projection), at.option("fused_activation_function") or "NONE", time_major,
            (float(at.option("cell_clip")), float(at.option("proj_clip"))))  # fmt: skip


def _known(at: At, place: int) -> Operand:
    """Weights. Raises Refused where they are not constants of float32."""
    w = at.operand(place)
    if w.constant is None or w.dtype is not float32:
        raise Refused(f"weights {w}")
    return w


def _state(at: At, place: int, batch: int, n: int) -> Buffer:
    s = at.operand(place)
    if not s.tensor.is_variable or s.size != batch * n or s.dtype is not float32:
        raise Refused(f"a state {s}")
    return s.buffer


def _from_input(at: At, x: Operand, weights: int, bias: int, cells: int) -> Buffer:
    """What a gate gets from the inputs of all steps, [rows, 1, 1, cells]."""
    w, b, n = _known(at, weights), at.operand(bias), x.shape[2]
    if w.shape != (cells, n) or b.shape != (cells,) or b.dtype is not float32 or not n:
        raise Refused(f"weights {w}, bias {b}")
    rows = x.shape[0] * x.shape[1]
    out = at.new(float32, (rows, 1, 1, cells), f".gate{weights}")
    total = apply("add", arg(0, float32), arg(1, float32))
    at.form(Contract, out, at.viewed(x.buffer, (rows, 1, 1, n)), at.viewed(w.buffer, (cells, 1, 1, n)), (b.buffer,),
            total, Window((1, 1)))  # fmt: skip
    return out
