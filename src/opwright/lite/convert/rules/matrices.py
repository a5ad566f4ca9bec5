"""Rules for diagonals and bands of matrices, cross products, and places in sorted rows.

Lives here: Matrix{Diag,DiagPart,SetDiag,BandPart}, Cross, LowerBound, UpperBound.
Not here: products (matmul.py); decompositions and solvers, which have no lite form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import float32, int32, int64
from ....graph import Node, Value
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .building import constant_of, number, numbered, picked, rank_of, run, sizes


def _is_zero(value: Value) -> bool:
    return value.constant is not None and not value.constant.any()


def _diag(node: Node, low: LiteRewriter) -> RuleResult:
    x, padding = node.operands
    attrs = node.attrs
    if tuple(attrs["k"]) != (0, 0) or not _is_zero(padding) or (attrs["num_rows"], attrs["num_cols"]) != (-1, -1):
        return NoMatch("MATRIX_DIAG makes square matrices of the main diagonal, with zeros beside")
    return low.emit("MATRIX_DIAG", x, like=node.outputs[0].spec)


def _inner(value: Value, n: int) -> list[int]:
    """The last n sizes."""
    dims = value.spec.shape.dims
    if dims is None or None in dims[len(dims) - n :]:
        sizes(value)
    return [int(d) for d in (dims or ())[len(dims or ()) - n :] if d is not None]


def _diag_by_gather(node: Node, low: LiteRewriter) -> RuleResult:
    """Of any diagonals: where each element of the matrices comes from is the same for all of them."""
    x, padding = node.operands
    inner = _inner(x, 1 if node.attrs["k"][0] == node.attrs["k"][1] else 2)
    places = run(node, numbered(inner), np.int32(0)) - 1
    return picked(low, x, inner, places, padding)


def _diag_part(node: Node, low: LiteRewriter) -> RuleResult:
    x, padding = node.operands
    inner = _inner(x, 2)
    places = run(node, numbered(inner), np.int32(0)) - 1
    return picked(low, x, inner, places, padding)


def _set_by_gather(node: Node, low: LiteRewriter) -> RuleResult:
    x, diagonal = node.operands
    inner = _inner(x, 2)
    given = _inner(diagonal, 1 if node.attrs["k"][0] == node.attrs["k"][1] else 2)
    places = run(node, np.zeros(inner, np.int32), numbered(given)) - 1
    return picked(low, diagonal, given, places, x)


def _band(node: Node, low: LiteRewriter) -> RuleResult:
    x, *bounds = node.operands
    for bound in bounds:
        constant_of(bound, "the width of the band")
    inside = run(node, np.ones(_inner(x, 2), np.int32), *(b.constant for b in bounds)) > 0
    return low.emit("SELECT_V2", low.constant(inside), x, number(low, 0, x), like=node.outputs[0].spec)


def _cross(node: Node, low: LiteRewriter) -> RuleResult:
    a, b = node.operands
    last = rank_of(a) - 1

    def turned(v: Value, order: tuple[int, ...]) -> Value:
        return low.emit("GATHER", v, low.int32(order), axis=last)

    first, second = (1, 2, 0), (2, 0, 1)
    return low.emit(
        "SUB",
        low.emit("MUL", turned(a, first), turned(b, second)),
        low.emit("MUL", turned(a, second), turned(b, first)),
        like=node.outputs[0].spec,
    )


def _bucketize(node: Node, low: LiteRewriter) -> RuleResult:
    rows, values = node.operands
    bounds = constant_of(rows, "the sorted row")
    if len(bounds) != 1 or rows.dtype is not float32 or not (np.diff(bounds[0]) >= 0).all():
        return NoMatch("BUCKETIZE takes one sorted row of float32")
    y = low.emit("BUCKETIZE", values, boundaries=tuple(map(float, bounds[0])))
    wanted = node.attrs["out_type"]
    return y if wanted is int32 else low.cast(y, wanted)


def _bound(lite: str) -> Any:
    """How many elements of its row each value is above: LESS, or not below: LESS_EQUAL."""

    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        rows, values = node.operands
        if rows.dtype not in (float32, int32, int64):
            return NoMatch(f"{lite} takes float32, int32 and int64")
        row = low.emit("EXPAND_DIMS", rows, low.int32([1]))
        column = low.emit("EXPAND_DIMS", values, low.int32([2]))
        below = low.cast(low.emit(lite, row, column), int32)
        y = low.emit("SUM", below, low.int32([2]))
        wanted = node.attrs["out_type"]
        return y if wanted is int32 else low.cast(y, wanted)

    return lower


_KNOWN = "where each element comes from is known"

MATRICES = rule_table(
    RewriteRule("matrix_diag", "MatrixDiag", _diag),
    RewriteRule("diag_by_gather", "MatrixDiag", _diag_by_gather, _KNOWN),
    RewriteRule("diag_part_by_gather", "MatrixDiagPart", _diag_part, _KNOWN),
    RewriteRule("set_diag_by_gather", "MatrixSetDiag", _set_by_gather, _KNOWN),
    RewriteRule("band_by_select", "MatrixBandPart", _band, "what is inside the band is known"),
    RewriteRule("cross", "Cross", _cross, "its definition"),
    RewriteRule("bucketize", "UpperBound", _bucketize),
    RewriteRule("lower_bound", "LowerBound", _bound("LESS"), "its definition: a count"),
    RewriteRule("upper_bound", "UpperBound", _bound("LESS_EQUAL"), "its definition: a count"),
)
