"""The rewriter of the lite dialect, and emission: the interface of the converter's rules.

Lives here: `LiteRewriter`, `NoMatch`, tables of rules, queries of nodes, the types that official kernels refuse;
functions that emit nodes for several families of rules: numbers, shapes, elements at constant positions.
Not here: the rules (rules/), the passes that apply them (passes.py), the dialect's operators (lite/ops/).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import flags
from ...core.deferred import DeferredArray
from ...core.dtypes import DType, float32, int32, of_numpy
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.specs import TensorSpec
from ...graph import Graph, GraphRewriter, Node, Value
from ...graph.builder import GraphTransform, constant_node, map_subgraphs, refined, use_counts
from ...graph.ir import Operand, flat
from ...graph.passes.rewrite_rules import RewriteRule, change_line
from ...ops import registry
from .. import ops as dialect
from ..ops import types

DEFERRED = 1 << 18
"""Bytes from which on products of weights are computed when they are written."""


@dataclass(frozen=True)
class NoMatch:
    """The reason why a rule declines a node, reported if no rule takes it."""

    reason: str


RuleResult = Value | Sequence[Value] | NoMatch
"""The values that replace a node's outputs, or why the rule declines."""

Rewrite = Callable[[Node, "LiteRewriter"], RuleResult]
"""The function of a rule."""

RuleTable = dict[str, list[RewriteRule]]


def rule_table(*rules: RewriteRule) -> RuleTable:
    """Return rules by the operator they match, in the order in which they are tried."""
    by_op: RuleTable = {}
    for rule in rules:
        for op in rule.ops.split():
            by_op.setdefault(op, []).append(rule)
    return by_op


def join(*tables: RuleTable) -> RuleTable:
    """Return the union of tables; for each operator the rules of earlier tables are tried first."""
    joined: RuleTable = {}
    for table in tables:
        for op, rules in table.items():
            joined.setdefault(op, []).extend(rules)
    return joined


# By operator, the types that its definition has and the official kernel (2.3) refuses or computes wrongly, by trial of
# all. XNNPACK alone takes half precision; reference kernels alone reduce truth values; some kernels require integers
# with a scale.
REFUSED: dict[str, tuple[str, ...]] = {
    op: tuple(types.split())
    for types, ops in {
        "float16": "ABS AVERAGE_POOL_2D BATCH_MATMUL CEIL DEPTH_TO_SPACE DIV ELU EXP FULLY_CONNECTED HARD_SWISH "
        "LEAKY_RELU LOG PRELU RELU RELU6 RELU_N1_TO_1 RSQRT SPLIT SQRT SQUARE SQUARED_DIFFERENCE SUB",
        "float16 bfloat16 bool": "PACK",
        "float16 bool": "REDUCE_MAX REDUCE_MIN SUM",
        "float16 int8 uint8 int16": "MEAN",
        "bool": "REDUCE_PROD",
        "int4": "GATHER",
        "int8 uint8": "EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL",
        "int8 uint8 int16": "NOT_EQUAL",
        "int64": "UNPACK",
        "string": "BROADCAST_TO CONCATENATION",
        "string complex128": "SELECT_V2 TRANSPOSE",
        "uint64 complex128": "CAST",
        "complex128": "BATCH_TO_SPACE_ND MIRROR_PAD SLICE SPACE_TO_BATCH_ND STRIDED_SLICE TILE",
    }.items()
    for op in ops.split()
}


def scalar(value: Value) -> Any:
    """Return the element of a constant that has a single one; None otherwise."""
    constant = value.constant
    return constant.reshape(-1)[0] if constant is not None and constant.size == 1 else None


def fused_activation(node: Node) -> str:
    """Return the activation that is fused into a node, "NONE" for operators without one."""
    return str(node.attrs.get("fused_activation_function", "NONE"))


def definition(value: Value | None, *op_names: str) -> Node | None:
    """Return the node that computes a value, if it is one of these operators without a fused activation."""
    node = value.node if value is not None else None
    return node if node is not None and node.op.name in op_names and fused_activation(node) == "NONE" else None


class LiteRewriter(GraphRewriter):
    """A rewriter that creates nodes of the lite dialect. Constants precede all other nodes; equal ones are shared.

    graph_of: returns the rewritten form of a graph that a node holds. uses: how often each value of the new graph is
    read, by nodes of the source that are still to come too.
    """

    def __init__(self, source: Graph, graph_of: Callable[[Graph], Graph] = lambda graph: graph) -> None:
        super().__init__(source)
        self.graph_of = graph_of
        self.constants: dict[Any, Node] = {}
        self.uses = use_counts(source)

    # ---- for rules ------------------------------------------------------------------------------------------------

    def emit(self, op_name: str, *inputs: Operand, like: TensorSpec | None = None, **attrs: Any) -> Value:
        """Append a node of a builtin operator with one output. attrs: attributes with other values than the default.

        like: facts about the output type that the operator cannot infer. raises SignatureError or
        InvalidArgumentError if the operator does not take the operands
        """
        (value,) = self.create(dialect.get(op_name), inputs, attrs, (like,)).outputs
        return value

    def emit_many(
        self, op_name: str, *inputs: Operand, likes: Sequence[TensorSpec | None] = (), **attrs: Any
    ) -> tuple[Value, ...]:
        """Append a node of a builtin operator with any number of outputs; see `emit`."""
        return self.create(dialect.get(op_name), inputs, attrs, likes).outputs

    def infer(self, op: Any, inputs: Sequence[Operand], attrs: Mapping[str, Any]) -> tuple[Any, list[TensorSpec]]:
        """Infer the output types of a call. Raises InvalidArgumentError for types that the official kernel refuses."""
        bound, specs = super().infer(op, inputs, attrs)
        refused = REFUSED.get(op.name)
        if refused is not None:
            for dtype in (*(v.dtype for v in flat(inputs) if v is not None), *(s.dtype for s in specs)):
                if dtype.name in refused:
                    raise InvalidArgumentError(what=f"the official kernel of {op.name} does not take {dtype.name}")
        return bound, specs

    def constant(self, array: Any, dtype: DType | None = None) -> Value:
        """Return a constant; equal small ones are one value."""
        array = np.asarray(array, None if dtype is None else dtype.np)
        key = self._constant_key(array)
        node = self.constants.get(key)
        if node is None:
            array = array.copy() if array.flags.writeable else array
            spec = TensorSpec(array.shape, dtype or of_numpy(array.dtype))
            name = self.unique(f"{self.prefix}/const")
            self.constants[key] = node = constant_node(registry.get("Const"), array, spec, name, self.at)
        return node.outputs[0]

    def product(self, weights: Value, factor: np.ndarray) -> Value:
        """Return constant float32 weights times a factor. Large products are computed when their file is written: all
        of them at once would double the memory of a model."""
        assert weights.node is not None
        stored: np.ndarray | DeferredArray = weights.node.attrs["value"]
        shape = np.broadcast_shapes(stored.shape, factor.shape)

        def compute() -> np.ndarray:
            array = stored.compute() if isinstance(stored, DeferredArray) else stored
            product: np.ndarray = np.multiply(array, factor, order="C", dtype=np.float32)
            return product

        if stored.nbytes < DEFERRED:
            product = compute()
            product.flags.writeable = False  # the constant is this array, no copy
            return self.constant(product, float32)
        deferred = DeferredArray(compute, shape, np.dtype(np.float32))
        name = self.unique(f"{self.prefix}/const")
        node = Node(registry.get("Const"), (), {"value": deferred}, [TensorSpec(shape, float32)], name, self.at)
        self.constants[object()] = node
        return node.outputs[0]

    def cast(self, value: Value, dtype: DType) -> Value:
        """Return a value converted to a dtype."""
        return self.emit(
            "CAST",
            value,
            in_data_type=types.name_of(value.dtype),
            out_data_type=types.name_of(dtype),
            like=value.spec.with_dtype(dtype),
        )

    def int32(self, value: Value | Sequence[Any]) -> Value:
        """Return integers as a tensor of int32, the type of sizes and axes of most lite operators."""
        if not isinstance(value, Value):
            return self.constant(value, int32)
        constant = value.constant
        if value.dtype is int32 or constant is None:
            return value if value.dtype is int32 else self.cast(value, int32)
        limits = np.iinfo(np.int32)
        if constant.size and not limits.min <= constant.min() <= constant.max() <= limits.max:
            raise InvalidArgumentError(what="a size does not fit int32", found=f"{constant.min()} to {constant.max()}")
        return self.constant(constant, int32)

    def producer(self, value: Value, *op_names: str) -> Node | None:
        """Return the node that computes a value, if it is one of these operators and the value has a single use."""
        node = value.node
        if node is None or node.op.name not in op_names or self.uses.get(value, 0) != 1:
            return None
        return node

    def recreate(self, node: Node, *inputs: Operand, like: TensorSpec | None = None, **attrs: Any) -> Value:
        """Append a copy of a node with other operands (by default its own) or attributes."""
        return self.emit(
            node.op.name, *(inputs or node.inputs), like=like or node.outputs[0].spec, **{**node.attrs, **attrs}
        )

    # ---- for walks ------------------------------------------------------------------------------------------------

    def replace(self, node: Node, values: Value | Sequence[Value]) -> None:
        """Replace the outputs of a node of the source; values created since `begin` take their names and types."""
        values = (values,) if isinstance(values, Value) else tuple(values)
        created = set(self.created())
        for fresh in created:
            for value in fresh.operands:
                self.uses[value] = self.uses.get(value, 0) + 1
        for old, new in zip(node.outputs, values):
            self.uses[new] = self.uses.get(new, 0) + self.uses.get(old, 0)
            if new.node in created:
                self.rename(new, old.name)
                self.refine(new, refined(old.spec, new.spec))
        super().replace(node, values)

    def apply(self, rule: RewriteRule, node: Node, old: Node, errors_decline: bool = False) -> NoMatch | None:
        """Replace a node by the nodes that a rule emits; return the reason if the rule declines.

        old: the node of the source whose copy with new operands `node` is. errors_decline: whether a lite
        operator that rejects its operands declines the rule; otherwise its error is a defect of the rule.
        """
        try:
            result = rule.rewrite(node, self)
        except (InvalidArgumentError, UnimplementedError) as error:
            if not errors_decline:
                raise
            result = NoMatch(" ".join(error.message.split()))
        if isinstance(result, NoMatch):
            self.rollback()
            return result
        self.replace(old, result)
        self.credit(node, rule.title)
        if "passes" in flags.show:
            print(change_line(rule.name, node, ", ".join(map(repr, self.created()))), file=sys.stderr)
        return None

    def keep(self, node: Node, old: Node) -> None:
        """Append a node in place of a node of the source, with the same outputs."""
        self.insert(node)
        for before, after in zip(old.outputs, node.outputs):
            self.uses[after] = self.uses.get(before, 0)
        super().replace(old, node.outputs)

    def walk(self) -> Iterator[tuple[Node, Node]]:
        """Yield each node with its operands in the new graph, and as it was; keep the constants."""
        for old in self.source.nodes:
            node = self.remap(old)
            if node.op.name == "Const":
                self.keep_constant(old)
            else:
                yield node, old

    def keep_constant(self, node: Node) -> None:
        """Keep a constant of the source, or replace it by an equal one."""
        super().replace(node, self.constants.setdefault(self._constant_key(node.attrs["value"]), node).outputs)

    @staticmethod
    def _constant_key(array: np.ndarray | DeferredArray) -> object:
        if isinstance(array, DeferredArray) or array.dtype == object or array.nbytes > 1024:
            return object()  # not worth comparing; equal contents share a buffer in the file anyway
        return array.dtype.str, array.shape, array.tobytes()

    def finish(self) -> Graph:
        """Return the new graph."""
        self.nodes[:0] = self.constants.values()
        return super().finish()


def without_deferred(graph: Graph) -> Graph:
    """Return a graph whose constants are computed, in subgraphs too."""
    return GraphTransform(_without_deferred)(graph)


def _without_deferred(graph: Graph, inside: Callable[[Graph], Graph]) -> Graph:
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        fresh = map_subgraphs(rewriter.remap(node), inside)
        if isinstance(node.attrs.get("value"), DeferredArray):
            fresh = node.replaced(attrs={"value": node.outputs[0].constant})
        rewriter.replace(node, rewriter.insert(fresh).outputs)
    return rewriter.finish()


class UnmatchedNode(InvalidArgumentError):
    """An error of a rule that does not match the node, handled as NoMatch."""

    def __init__(self, what: str) -> None:
        super().__init__(what=what)


def sizes(value: Value, what: str = "the shape") -> list[int]:
    """Return the sizes of a value, all known. Raises UnmatchedNode."""
    dims = value.spec.shape.dims
    if dims is None or None in dims:
        raise UnmatchedNode(f"{what} is not known")
    return [int(d) for d in dims if d is not None]


def rank_of(value: Value) -> int:
    """Return the rank of a value. Raises UnmatchedNode if it is unknown."""
    rank = value.spec.shape.rank
    if rank is None:
        raise UnmatchedNode("the rank is not known")
    return rank


def constant_of(value: Value, what: str) -> np.ndarray:
    """Return the elements of a constant. Raises UnmatchedNode."""
    if value.constant is None:
        raise UnmatchedNode(f"{what} is not constant")
    return value.constant


def only(value: Value, *dtypes: DType) -> None:
    """Raise UnmatchedNode for a value of another dtype."""
    if value.dtype not in dtypes:
        raise UnmatchedNode(f"taken are {', '.join(d.name for d in dtypes)}, found {value.dtype.name}")


def number(rewriter: LiteRewriter, value: Any, like: Value) -> Value:
    """Return a scalar constant of the dtype of another value."""
    return rewriter.constant(value, like.dtype)


def reshaped(rewriter: LiteRewriter, x: Value, dims: Sequence[int | None]) -> Value:
    """Return `x` with these sizes, of which one may be unknown. Raises UnmatchedNode for more."""
    if x.spec.shape.dims == tuple(dims) and None not in dims:
        return x
    if list(dims).count(None) > 1:
        raise UnmatchedNode("more than one size is not known")
    return rewriter.emit(
        "RESHAPE", x, rewriter.int32([-1 if d is None else d for d in dims]), like=x.spec.with_shape(dims)
    )


def shape_of_batch(rewriter: LiteRewriter, x: Value, dims: Sequence[int]) -> Value:
    """Return the shape of as many elements of these sizes as x has, a constant if their number is known."""
    batch = size_along(rewriter, x, 0)
    if batch.constant is not None:
        return rewriter.int32([int(batch.constant), *dims])
    return rewriter.emit(
        "CONCATENATION", (rewriter.emit("RESHAPE", batch, rewriter.int32([1])), rewriter.int32(dims)), axis=0
    )


def within(rewriter: LiteRewriter, x: Value, end: int) -> Value:
    """Return whether int32 elements are at least 0 and below `end`."""
    return rewriter.emit(
        "LOGICAL_AND",
        rewriter.emit("GREATER_EQUAL", x, rewriter.constant(0, int32)),
        rewriter.emit("LESS", x, rewriter.constant(end, int32)),
    )


def size_along(rewriter: LiteRewriter, x: Value, axis: int) -> Value:
    """Return one size of a value as a scalar int32, a constant if it is known."""
    dims = x.spec.shape.dims
    if dims is not None and dims[axis] is not None:
        return rewriter.constant(dims[axis], int32)
    shape = rewriter.emit("SHAPE", x, out_type="INT32")
    return rewriter.emit(
        "STRIDED_SLICE",
        shape,
        rewriter.int32([axis]),
        rewriter.int32([axis + 1]),
        rewriter.int32([1]),
        shrink_axis_mask=1,
    )


def sliced(rewriter: LiteRewriter, x: Value, begin: Sequence[int], size: Sequence[int]) -> Value:
    """Return a slice of `x`; a size of -1 takes the rest."""
    if all(b == 0 for b in begin) and all(s in (-1, d) for s, d in zip(size, x.spec.shape.dims or ())):
        return x
    dims = x.spec.shape.dims or (None,) * len(begin)
    result = [s if s >= 0 else None if d is None else d - b for b, s, d in zip(begin, size, dims)]
    return rewriter.emit("SLICE", x, rewriter.int32(begin), rewriter.int32(size), like=x.spec.with_shape(result))


def padded(rewriter: LiteRewriter, x: Value, pads: Sequence[tuple[int, int]], value: float | None = None) -> Value:
    """Return `x` padded with zeros, or another number."""
    if not any(a or b for a, b in pads):
        return x
    if len(pads) > 5:
        raise UnmatchedNode("PAD takes ranks up to 5")
    table = rewriter.int32([list(p) for p in pads])
    return (
        rewriter.emit("PAD", x, table)
        if value is None
        else rewriter.emit("PADV2", x, table, number(rewriter, value, x))
    )


def picked(
    rewriter: LiteRewriter, x: Value, inner: Sequence[int], places: np.ndarray, outside: Value | float = 0.0
) -> Value:
    """Gather elements of the last dimensions of `x`, of sizes `inner`, by flat index; -1 stands for `outside`.

    The places are those of the result's last dimensions.
    """
    lead = list((x.spec.shape.dims or ())[: rank_of(x) - len(inner)])
    flat = reshaped(rewriter, x, [*lead, int(np.prod(inner, dtype=np.int64))])
    y = rewriter.emit("GATHER", flat, rewriter.int32(np.maximum(places, 0).tolist()), axis=len(lead))
    if (places >= 0).all():
        return y
    fill = outside if isinstance(outside, Value) else number(rewriter, outside, x)
    return rewriter.emit("SELECT_V2", rewriter.constant(places >= 0), y, fill)


def numbered(shape: Sequence[int]) -> np.ndarray:
    """Return an array of flat indices counted from 1, so that a 0 in an operator's result marks an element from
    outside."""
    return np.arange(1, int(np.prod(shape, dtype=np.int64)) + 1, dtype=np.int32).reshape(shape)


def run(node: Node, *arrays: Any, **attrs: Any) -> np.ndarray:
    """Run the catalogue's operator on arrays; attrs: replace those of the node."""
    op = registry.get(node.op.name)
    result: np.ndarray = op.compute(op.bind({**node.attrs, **attrs}), arrays)[0]
    return result


def matrix_of(function: Callable[[np.ndarray], np.ndarray], size: int) -> np.ndarray:
    """Return the matrix of a linear function, its results on unit vectors: the channels of [1, n, 1, n]."""
    unit = np.eye(size, dtype=np.float32).reshape(1, size, 1, size)
    return function(unit).reshape(-1, size).astype(np.float32)


def along(rewriter: LiteRewriter, x: Value, matrix: np.ndarray, axis: int) -> Value:
    """Apply a constant matrix [out, in] to one dimension of `x`."""
    dims = list(x.spec.shape.dims or ())
    if np.array_equal(matrix, np.eye(*matrix.shape)):
        return x
    out, rank = len(matrix), len(dims)
    before = dims[:axis]
    rest = _product(dims[axis + 1 :])
    weights = rewriter.constant(matrix, float32)
    if axis == rank - 1:
        return rewriter.emit("FULLY_CONNECTED", x, weights, None, keep_num_dims=rank > 2)
    flat = reshaped(rewriter, x, [_product(before), dims[axis], rest])
    y = rewriter.emit("BATCH_MATMUL", weights, flat, like=x.spec.with_shape([_product(before), out, rest]))
    return reshaped(rewriter, y, [*before, out, *dims[axis + 1 :]])


def _product(dims: Sequence[int | None]) -> int | None:
    return None if None in dims else math.prod(d for d in dims if d is not None)
