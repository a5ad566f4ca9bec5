"""The rewriter of the lite dialect: the interface of the converter's rules.

Lives here: `LiteRewriter`, `NoMatch`, tables of rules, queries of nodes, the types that official kernels refuse.
Not here: the rules (rules/), the passes that apply them (passes.py), the dialect's operators (lite/ops/).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import flags
from ...core.dtypes import DType, int32, of_numpy
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.specs import TensorSpec
from ...graph import Graph, GraphRewriter, Node, Value
from ...graph.builder import constant_node, refined, use_counts
from ...graph.ir import Operand, flat
from ...graph.passes.rewrite_rules import RewriteRule, change_line
from ...ops import registry
from .. import ops as dialect
from ..ops import types


@dataclass(frozen=True)
class NoMatch:
    """The reason why a rule declines a node, reported if no rule takes it."""

    reason: str


RuleResult = Value | Sequence[Value] | NoMatch
"""The values that replace a node's outputs, or why the rule declines."""

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


# Types that the operator's definition has and the official kernel (2.3) refuses or computes wrongly, by trial of all.
REFUSED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "BATCH_MATMUL", "FULLY_CONNECTED"), ("float16",)),  # XNNPACK alone has them
    "BATCH_TO_SPACE_ND": ("complex128",),
    "BROADCAST_TO": ("string",),
    "CAST": ("uint64", "complex128"),
    "CEIL": ("float16",),
    "CONCATENATION": ("string",),
    "DEPTH_TO_SPACE": ("float16",),
    "GATHER": ("int4",),
    "MIRROR_PAD": ("complex128",),
    "NOT_EQUAL": ("int8", "uint8", "int16"),
    "PACK": ("float16", "bfloat16", "bool"),
    "SELECT_V2": ("string", "complex128"),
    "SLICE": ("complex128",),
    "SPACE_TO_BATCH_ND": ("complex128",),
    "SPLIT": ("float16",),
    "STRIDED_SLICE": ("complex128",),
    "TILE": ("complex128",),
    "TRANSPOSE": ("string", "complex128"),
    "UNPACK": ("int64",),
    # Half precision that XNNPACK alone takes, and truth values that the reference kernels alone reduce.
    **dict.fromkeys(
        (
            "ABS",
            "DIV",
            "ELU",
            "EXP",
            "HARD_SWISH",
            "LEAKY_RELU",
            "LOG",
            "PRELU",
            "RELU",
            "RELU6",
            "RELU_N1_TO_1",
            "RSQRT",
            "SQRT",
            "SQUARE",
            "SQUARED_DIFFERENCE",
            "SUB",
        ),
        ("float16",),
    ),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN", "SUM"), ("float16", "bool")),
    "REDUCE_PROD": ("bool",),
    # Integers that they want to have a scale.
    "MEAN": ("float16", "int8", "uint8", "int16"),
    **dict.fromkeys(("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), ("int8", "uint8")),
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

        like: what is known of the output besides what the operator infers. raises SignatureError or
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
        """Replace a node by what a rule emits for it; return the reason if the rule declines it.

        old: the node of the source that `node`, with its operands replaced, stands for. errors_decline: whether a lite
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
        if "passes" in flags.show:
            print(change_line(rule.name, node, ", ".join(map(repr, self.created()))), file=sys.stderr)
        return None

    def keep(self, node: Node, old: Node) -> None:
        """Append a node in place of a node of the source, with the same outputs."""
        self.insert(node)
        for before, after in zip(old.outputs, node.outputs):
            self.uses[after] = self.uses.get(before, 0)
        super().replace(old, node.outputs)

    def keep_constant(self, node: Node) -> None:
        """Keep a constant of the source, or replace it by an equal one."""
        super().replace(node, self.constants.setdefault(self._constant_key(node.attrs["value"]), node).outputs)

    @staticmethod
    def _constant_key(array: np.ndarray) -> object:
        if array.dtype == object or array.nbytes > 1024:
            return object()  # not worth comparing; equal contents share a buffer in the file anyway
        return array.dtype.str, array.shape, array.tobytes()

    def finish(self) -> Graph:
        """Return the new graph."""
        self.nodes[:0] = self.constants.values()
        return super().finish()
