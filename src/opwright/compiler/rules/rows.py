"""Operators that need a whole row at once, and norms: Softmax, LogSoftmax, cross entropies, LayerNorm, FusedBatchNorm,
LRN.

Lives here: their rules.  Not here: the row kernels.
"""

from __future__ import annotations

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32
from ..loops.expressions import Expr, apply, arg, const
from ..loops.forms import Buffer, Gather, Reduce, RowPass
from .elementwise import mapped
from .nodes import At, Refused, places
from .registry import rule


@rule("Softmax", "LogSoftmax")
def softmax(at: At) -> None:
    x = at.operand(0)
    if int(at.attr("axis")) not in (-1, len(x.shape) - 1) or x.dtype is not float32 or not x.shape:
        raise Refused(f"softmax of {x} along {at.attr('axis')}")
    kind = "softmax" if at.node.op.name == "Softmax" else "log_softmax"
    at.form(RowPass, at.output(shape=x.shape), x, (), kind, arg(0, float32), arg(0, float32))


@rule("LRN")
def local_response(at: At) -> None:
    x = at.operand(0)
    numbers = tuple(float(at.attr(name)) for name in ("depth_radius", "bias", "alpha", "beta"))
    if x.dtype is not float32 or len(x.shape) != 4 or not x.size:
        raise Refused(f"rows of {x}")
    at.form(RowPass, at.output(shape=x.shape), x, (), "local_response", arg(0, float32), arg(0, float32), numbers)


@rule("LayerNorm")
def layer_norm(at: At) -> None:
    x, scale, offset = at.operand(0), at.optional(1), at.optional(2)
    axes = tuple(int(a) % max(len(x.shape), 1) for a in at.attr("axis"))
    if axes != (len(x.shape) - 1,) or x.dtype is not float32 or scale is None or offset is None:
        raise Refused(f"rows of {x} along {axes}, with scale {scale}, offset {offset}")
    at.form(RowPass, at.output(shape=x.shape), x, (scale, offset), "layer_norm", arg(0, float32), arg(0, float32),
            (float(at.attr("epsilon")),))  # fmt: skip


def _log_softmax(at: At, x: Buffer) -> Buffer:
    if x.dtype is not float32 or not x.shape or not x.size:
        raise Refused(f"softmax of {x}")
    made = at.new(float32, x.shape)
    at.form(RowPass, made, x, (), "log_softmax", arg(0, float32), arg(0, float32))
    return made


@rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(at: At) -> None:
    """A label outside of the row is a failed guard."""
    labels, x = at.operands
    y = at.output(shape=x.shape[:-1])
    found = _log_softmax(at, x)
    rows = at.viewed(found, (y.size, x.shape[-1]))
    taken = at.new(float32, (y.size,))
    at.form(Gather, taken, rows, at.viewed(labels, (y.size,)), 1, 1)
    mapped(at, y, [at.viewed(taken, y.shape)], lambda p: apply("neg", p))


@rule("SoftmaxCrossEntropyWithLogits")
def cross_entropy(at: At) -> None:
    """Labels of 0 give 0 beside a logit of minus infinity too."""
    labels, x = at.operands
    if labels.shape != x.shape or int(at.attr("axis")) not in (-1, len(x.shape) - 1):
        raise Refused(f"labels {labels} of {x} along {at.attr('axis')}")
    y = at.output(shape=x.shape[:-1])
    terms = at.new(float32, x.shape)

    def term(wanted: Expr, p: Expr) -> Expr:
        zero = const(0, float32)
        return apply("select", apply("equal", wanted, zero, dtype=bool_), zero, apply("mul", wanted, p), dtype=float32)

    mapped(at, terms, [labels, _log_softmax(at, x)], term)
    at.form(Reduce, y, terms, (len(x.shape) - 1,), "sum", arg(0, float32), apply("neg", arg(0, float32)))


@rule("FusedBatchNorm")
def batch_norm(at: At) -> None:
    """With the moments that it is given: y = (x - mean) * scale / sqrt(variance + epsilon) + offset."""
    if at.attr("is_training") or at.attr("data_format") != "NHWC":
        raise Refused("moments of the batch, or channels first")
    x, *moments = at.operands
    if any(b.dtype is not float32 for b in (x, *moments)):
        raise Refused(f"a norm of {x}")
    epsilon = const(float(at.attr("epsilon")), float32)
    factor = at.new(float32, moments[0].shape)
    mapped(at, factor, [moments[0], moments[3]],
           lambda s, v: apply("div", s, apply("sqrt", apply("add", v, epsilon))))  # fmt: skip
    mapped(at, at.output(0), [x, moments[2], factor, moments[1]],
           lambda a, m, f, o: apply("add", apply("mul", apply("sub", a, m), f), o))  # fmt: skip
    for place, moment in ((1, moments[2]), (2, moments[3])):
        at.moved_whole(at.output(place), moment, places(moment))
