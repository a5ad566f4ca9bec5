"""Rules for catalogue operators with a counterpart in the lite dialect: one node becomes one node.

Lives here: the pairs, and their differences: operands that are attributes, types of sizes, names of options.
Not here: operators that need several nodes or other layouts (the other modules), merging afterwards (../passes.py).

A row maps the operands of the builtin operator; without a mapping it takes the operands in order. Options with the name
of an attribute take its value.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

from ....core.dtypes import DType, complex64, float32, int8, int16, int32, int64, uint8, uint16, uint32
from ....core.shapes import TensorShape
from ....graph import Node, Value
from ....graph.ir import Operand
from ....graph.passes.rewrite_rules import RewriteRule
from ....scalar.table import OF_OPERATOR
from ... import ops as dialect
from ...ops import types
from ..rewriter import LiteRewriter, NoMatch, RuleResult, UnmatchedNode, only, rank_of, rule_table

SLICE_RANK = 5
"""The greatest rank that the official kernels slice."""

# Official kernels, now or in older run times, broadcast up to this rank only; operands of one shape may have any.
BROADCAST_RANK = {
    "ADD": 6,
    "SUB": 6,
    "MUL": 6,
    "DIV": 5,
    "MAXIMUM": 5,
    "MINIMUM": 5,
    "SELECT_V2": 5,
    "FLOOR_DIV": 4,
    "FLOOR_MOD": 4,
    "POW": 4,
    "SQUARED_DIFFERENCE": 4,
    "ATAN2": 0,
    "EQUAL": 4,
    "NOT_EQUAL": 4,
    "LESS": 4,
    "LESS_EQUAL": 4,
    "GREATER": 4,
    "GREATER_EQUAL": 4,
    "LOGICAL_AND": 4,
    "LOGICAL_OR": 4,
}


def broadcastable(node: Node, rewriter: LiteRewriter, op_name: str) -> tuple[Any, ...]:
    """Return the operands, broadcast first if their rank is beyond the lite operator's broadcasting."""
    limit = BROADCAST_RANK.get(op_name)
    if limit is None:
        return node.inputs
    shape, operands = node.outputs[0].spec.shape, list(node.operands)
    if shape.rank is not None and shape.rank <= limit:
        return node.inputs
    if limit and (shape.rank is None or all(v.spec.shape.dims == shape.dims for v in operands)):
        return node.inputs  # such a rank is rare, or unknown sizes are most likely equal: kernels of today take both
    if shape.is_fully_defined():
        sizes = rewriter.int32([d for d in shape.dims or () if d is not None])
        return tuple(v if v.spec.shape == shape else spread(rewriter, v, sizes, shape) for v in operands)
    sizes, *others = (rewriter.emit("SHAPE", v, out_type="INT32") for v in operands)
    for other in others:
        sizes = rewriter.emit("BROADCAST_ARGS", sizes, other)
    return tuple(spread(rewriter, v, sizes, shape) for v in operands)


def spread(rewriter: LiteRewriter, value: Value, sizes: Value, shape: TensorShape) -> Value:
    """Return `value` broadcast to a shape, given as a tensor and as far as it is known."""
    return rewriter.emit("BROADCAST_TO", value, sizes, like=value.spec.with_shape(shape))


# ---- where operands and options come from ----------------------------------------------------------------------------

Source = Callable[[Node, LiteRewriter, Iterator[Value]], Operand]
"""One operand of the new node: of the old node, the graph being built and the operands that are left."""


def as_it_is(node: Node, rewriter: LiteRewriter, operands: Iterator[Value]) -> Value:
    """Take the next operand."""
    return next(operands)


def as_int32(node: Node, rewriter: LiteRewriter, operands: Iterator[Value]) -> Value:
    """Take the next operand, of integers, as int32."""
    return rewriter.int32(next(operands))


def front(axis: int, rank: int | None) -> int:
    """Return an axis counted from the front, if the rank is known."""
    return axis + rank if axis < 0 and rank is not None else axis


def axis_of(node: Node, name: str) -> int:
    """Return an axis attribute counted from the front; raise UnmatchedNode if the rank is unknown."""
    return front(node.attrs[name], rank_of(next(node.operands)))


def axis_operand(node: Node, rewriter: LiteRewriter, operands: Iterator[Value]) -> Value:
    """Return the attribute `axis` as a scalar int32, counted from the front if the rank is known."""
    return rewriter.constant(front(node.attrs["axis"], next(node.operands).spec.shape.rank), int32)


def new_axis_operand(node: Node, rewriter: LiteRewriter, operands: Iterator[Value]) -> Value:
    """Return the attribute `axis`, an axis of the result, as int32 [1]."""
    return rewriter.int32([node.attrs["axis"]])


Condition = Callable[[Node], None]
"""Raises UnmatchedNode, whose text is the reason to decline, for a node that the builtin operator does not take."""


def of_types(*dtypes: DType) -> Condition:
    """Decline nodes whose first operand has another dtype."""
    return lambda node: only(next(node.operands), *dtypes)


def of_ranks(ranks: Container[int | None], reason: str) -> Condition:
    """Decline nodes whose first operand has another rank, or an unknown one."""

    def check(node: Node) -> None:
        if next(node.operands).spec.shape.rank not in ranks:
            raise UnmatchedNode(reason)

    return check


def having(name: str, value: Any, reason: str) -> Condition:
    """Decline nodes with another value of an attribute."""

    def check(node: Node) -> None:
        if node.attrs.get(name, value) != value:
            raise UnmatchedNode(reason)

    return check


def direct(
    op: str, lite: str, *sources: Source, when: Condition | None = None, **options: str | Callable[[Node], Any]
) -> RewriteRule:
    """Return the rule that replaces a node of the catalogue's operator `op` by one of the builtin operator `lite`.

    sources: of each operand; by default those of the node, spread where the rank is beyond the kernel's broadcasting.
    options: by name, the attribute that has the value, or a function of the node.
    """

    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        if when is not None:
            when(node)
        left = iter(node.operands)
        operands = (
            [source(node, rewriter, left) for source in sources] if sources else broadcastable(node, rewriter, lite)
        )
        values = {name: node.attrs[name] for name in dialect.get(lite).option_names if name in node.attrs}
        for name, value in options.items():
            values[name] = node.attrs[value] if isinstance(value, str) else value(node)
        return rewriter.emit_many(lite, *operands, likes=[v.spec for v in node.outputs], **values)

    return RewriteRule(lite.lower(), op, lower)


def type_option(attribute: str) -> Callable[[Node], str]:
    """Set an option to the schema's name of the dtype in an attribute."""
    return lambda node: types.name_of(node.attrs[attribute])


def _cast(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,), dtype = node.operands, node.attrs["dtype"]
    if x.dtype is dtype:
        return x
    if x.dtype.is_complex != dtype.is_complex:
        return NoMatch(f"CAST from {x.dtype.name} to {dtype.name} means another thing in the lite dialect")
    return rewriter.cast(x, dtype)


def _truncate_div(node: Node, rewriter: LiteRewriter) -> RuleResult:
    if not node.outputs[0].dtype.is_integer:
        return NoMatch("only the DIV of integers cuts fractions off")
    return rewriter.emit("DIV", *broadcastable(node, rewriter, "DIV"), like=node.outputs[0].spec)


def _round(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return x if x.dtype.is_integer else rewriter.emit("ROUND", x)


BIT_TYPES = (int8, int16, int32, uint8, uint16, uint32)

OTHERS = ("Round", "RightShift", "BitwiseXor")
"""Functions of one element whose rules here are more than the pair."""

DIRECT = rule_table(
    *(direct(op, row.builtin) for op, row in OF_OPERATOR.items() if row.builtin and op not in OTHERS),
    # unlike the catalogue's, these kernels return the other operand if one is NaN
    direct("Maximum", "MAXIMUM"),
    direct("Minimum", "MINIMUM"),
    direct("Select", "SELECT_V2"),
    direct("BitwiseXor", "BITWISE_XOR", when=of_types(*BIT_TYPES)),
    direct("RightShift", "RIGHT_SHIFT", when=of_types(*BIT_TYPES)),
    direct("Bitcast", "BITCAST", output_type=type_option("type")),
    direct("Real", "REAL", when=of_types(complex64)),
    direct("Imag", "IMAG", when=of_types(complex64)),
    direct("ComplexAbs", "COMPLEX_ABS", when=of_types(complex64)),
    direct("LRN", "LOCAL_RESPONSE_NORMALIZATION", radius="depth_radius"),
    # creation and shapes
    direct("Fill", "FILL", as_int32, as_it_is),
    direct("Range", "RANGE"),
    direct("BroadcastArgs", "BROADCAST_ARGS"),
    direct("ExpandDims", "EXPAND_DIMS", as_it_is, new_axis_operand),
    direct("Tile", "TILE", as_it_is, as_int32),
    direct("MirrorPad", "MIRROR_PAD", as_it_is, as_int32, mode=lambda node: node.attrs["mode"].upper()),
    *(
        direct(op, lite, as_it_is, as_int32, as_int32, when=of_ranks((3, 4), f"{lite} takes ranks 3 and 4"))
        for op, lite in (("SpaceToBatchND", "SPACE_TO_BATCH_ND"), ("BatchToSpaceND", "BATCH_TO_SPACE_ND"))
    ),
    direct("MatrixSetDiag", "MATRIX_SET_DIAG", when=having("k", (0, 0), "MATRIX_SET_DIAG sets the main diagonal")),
    direct(
        "ResizeNearestNeighbor",
        "RESIZE_NEAREST_NEIGHBOR",
        as_it_is,
        as_int32,
        when=of_types(float32, uint8, int8, int16),
    ),
    # gathering, scattering, sums
    direct(
        "Slice",
        "SLICE",
        as_it_is,
        as_int32,
        as_int32,
        when=of_ranks(range(SLICE_RANK + 1), f"SLICE takes ranks up to {SLICE_RANK}"),
    ),
    direct("GatherNd", "GATHER_ND", when=having("batch_dims", 0, "GATHER_ND has no batch_dims")),  # see INDEXING
    direct("ScatterNd", "SCATTER_ND", as_int32, as_it_is, as_int32),
    direct("Where", "WHERE"),
    direct("Cumsum", "CUMSUM", as_it_is, axis_operand),
    direct(
        "ReverseSequence",
        "REVERSE_SEQUENCE",
        when=of_types(float32, uint8, int16, int32, int64),
        seq_dim=lambda node: axis_of(node, "seq_axis"),
        batch_dim=lambda node: axis_of(node, "batch_axis"),
    ),
    *(
        direct(f"UnsortedSegment{kind}", f"UNSORTED_SEGMENT_{kind.upper()}", as_it_is, as_int32, as_int32)
        for kind in ("Sum", "Prod", "Max", "Min")
    ),
    # variables
    direct("ReadVariable", "READ_VARIABLE", dtype=type_option("dtype")),
    direct("AssignVariable", "ASSIGN_VARIABLE"),
    # conditional on types
    RewriteRule("truncate_div", "TruncateDiv", _truncate_div, "integers divide toward zero"),
    RewriteRule("cast", "Cast", _cast),
    RewriteRule("round", "Round", _round, "integers are round"),
)
