"""Lowering: a forward walk that builds a graph of the lite dialect, and what its rules may do.

Lives here: `Lowering` (emit a node, make a constant, ask about values), `Rule`, `NoMatch`, `EachOnce`.
Not here: the rules (rules/), the walks (legalize.py, optimize.py), the operators of the dialect (lite/ops/).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.dtypes import DType, int32, of_numpy
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...graph import Graph, GraphBuilder, Node, Value
from ...graph.ir import Operand, flat, unused
from ...ops import registry
from .. import ops as dialect
from ..ops import types


@dataclass(frozen=True)
class NoMatch:
    """A rule declines, and says why; the reason is shown where no rule takes the node."""

    reason: str


Lowered = Value | Sequence[Value] | NoMatch
"""What stands for a node's outputs in the new graph, or why the rule declines."""


@dataclass(frozen=True)
class Rule:
    """One named rewrite of the nodes of one operator. why: what makes it exact, or how exact it is."""

    name: str
    op: str
    lower: Callable[[Node, Any], Lowered]
    why: str = "the same operator"


Table = dict[str, list[Rule]]


def table(*rules: Rule) -> Table:
    """Rules by the operator they match, in the order they are tried."""
    by_op: Table = {}
    for rule in rules:
        by_op.setdefault(rule.op, []).append(rule)
    return by_op


def join(*tables: Table) -> Table:
    """Several tables as one; within an operator the earlier table's rules are tried first."""
    return table(*(rule for part in tables for rules in part.values() for rule in rules))


# Types that the operator's definition has, but the official kernel (2.3) refuses or gets wrong: found by trying all.
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


def _check_official_types(op_name: str, inputs: Sequence[Operand], specs: Sequence[TensorSpec]) -> None:
    refused = REFUSED.get(op_name)
    if refused is None:
        return
    for dtype in (*(v.dtype for v in flat(inputs) if v is not None), *(s.dtype for s in specs)):
        if dtype.name in refused:
            raise InvalidArgumentError(what=f"the official kernel of {op_name} does not take {dtype.name}")


class EachOnce:
    """A change of graphs that is made of each once, so that one which several nodes hold stays one.

    change(graph, inside): gives the new graph, and asks `inside` for those that its nodes hold.
    """

    __slots__ = ("_change", "_done")

    def __init__(self, change: Callable[[Graph, Callable[[Graph], Graph]], Graph]) -> None:
        self._change, self._done = change, dict[Graph, Graph]()

    def __call__(self, graph: Graph) -> Graph:
        if graph not in self._done:
            made = self._change(graph, self)
            self._done[graph] = self._done[made] = made
        return self._done[graph]


class Lowering:
    """The new graph while it is built. Constants stand before all other nodes and are shared where equal."""

    def __init__(self, graph: Graph, graph_of: Callable[[Graph], Graph] | None = None) -> None:
        self.graph = graph
        self.graph_of = graph_of or (lambda held: held)  # what becomes of a graph that a node holds
        self.became: dict[Value, Value] = {v: v for v in graph.inputs}
        self.nodes: list[Node] = []
        self.constants: dict[Any, Node] = {}
        self.names = {v.name for v in graph.values()}
        self.at: str | None = None
        self.name = graph.name  # of the node being lowered: names of what a rule emits begin with it

    # ---- what rules use -------------------------------------------------------------------------------------------

    def emit(self, op_name: str, *inputs: Operand, like: TensorSpec | None = None, **attrs: Any) -> Value:
        """A node of a builtin operator with one output. attrs: those that differ from the default.

        like: what is known of the output besides what the operator infers. raises SignatureError or
        InvalidArgumentError where the operator does not take these operands
        """
        (value,) = self.emit_many(op_name, *inputs, likes=(like,), **attrs)
        return value

    def emit_many(
        self, op_name: str, *inputs: Operand, likes: Sequence[TensorSpec | None] = (), **attrs: Any
    ) -> tuple[Value, ...]:
        """A node with any number of outputs; see `emit`."""
        op = dialect.get(op_name)
        bound = op.bind(attrs)
        found = op.infer(bound, inputs, self.name)
        specs = [s for spec in found for s in (spec if isinstance(spec, list) else (spec,))]
        _check_official_types(op_name, inputs, specs)
        for i, like in enumerate(likes):
            if like is not None:
                specs[i] = more_specific(specs[i], like)
        node = Node(op, inputs, bound.attrs, specs, self.unique(f"{self.name}/{op_name.lower()}"), self.at)
        self.nodes.append(node)
        return node.outputs

    def constant(self, array: Any, dtype: DType | None = None) -> Value:
        """A constant; equal small ones are one value."""
        array = np.asarray(array, None if dtype is None else dtype.np)
        key = self._constant_key(array)
        node = self.constants.get(key)
        if node is None:
            array = array.copy() if array.flags.writeable else array
            array.setflags(write=False)
            spec = TensorSpec(array.shape, dtype or of_numpy(array.dtype))
            node = Node(registry.get("Const"), (), {"value": array}, [spec], self.unique(f"{self.name}/const"), self.at)
            self.constants[key] = node
        return node.outputs[0]

    def cast(self, value: Value, dtype: DType) -> Value:
        """`value` as `dtype`."""
        return self.emit(
            "CAST",
            value,
            in_data_type=types.name_of(value.dtype),
            out_data_type=types.name_of(dtype),
            like=value.spec.with_dtype(dtype),
        )

    def int32(self, value: Value | Sequence[Any]) -> Value:
        """Integers as a tensor of int32: sizes and axes of most lite operators."""
        if not isinstance(value, Value):
            return self.constant(value, int32)
        constant = value.constant
        if value.dtype is int32 or constant is None:
            return value if value.dtype is int32 else self.cast(value, int32)
        limits = np.iinfo(np.int32)
        if constant.size and not limits.min <= constant.min() <= constant.max() <= limits.max:
            raise InvalidArgumentError(what="a size does not fit int32", found=f"{constant.min()} to {constant.max()}")
        return self.constant(constant, int32)

    # ---- what the walks use ----------------------------------------------------------------------------------------

    def unique(self, wanted: str) -> str:
        """A name that no value of the graph has."""
        return unused(wanted, self.names)

    def with_operands(self, node: Node) -> Node:
        """The node reading what its operands became."""
        became = self.became
        inputs = tuple(
            None if o is None else tuple([became[v] for v in o]) if isinstance(o, tuple) else became[o]
            for o in node.inputs
        )
        if inputs == node.inputs:
            return node
        return node.replaced(inputs=inputs)

    def replace(self, old: Node, lowered: Value | Sequence[Value]) -> None:
        """Let the outputs of a node be these values, under the old names where they are new."""
        values = (lowered,) if isinstance(lowered, Value) else tuple(lowered)
        fresh = set(self.nodes[self.mark :])
        for before, after in zip(old.outputs, values):
            if after.node in fresh:
                GraphBuilder.rename(after, before.name)
                GraphBuilder.refine(after, more_specific(before.spec, after.spec))
            self.became[before] = after

    mark = 0

    def begin(self, node: Node) -> None:
        """What is emitted from here on is for this node."""
        self.name, self.at, self.mark = node.name, node.at, len(self.nodes)

    def emitted(self) -> list[Node]:
        """What was emitted since `begin`."""
        return self.nodes[self.mark :]

    def keep(self, node: Node, old: Node) -> None:
        """Let a node stay what it is."""
        self.nodes.append(node)
        self.became.update(zip(old.outputs, node.outputs))

    def keep_constant(self, node: Node, old: Node) -> None:
        """Let a constant stay, or be an equal one seen before."""
        (before,), value = old.outputs, node.attrs["value"]
        key = self._constant_key(value)
        self.became[before] = self.constants.setdefault(key, node).outputs[0]

    @staticmethod
    def _constant_key(array: np.ndarray) -> Any:
        if array.dtype == object or array.nbytes > 1024:
            return object()  # not worth comparing; equal contents share a buffer in the file anyway
        return array.dtype.str, array.shape, array.tobytes()

    def show(self, rule: Rule, node: Node) -> None:
        """Print what a rule made of a node, for the switch `show`."""
        made = ", ".join(map(repr, self.emitted()))
        print(f"  {rule.name:22} {node.at or '':16} {node!r}  ->  {made}", file=sys.stderr)

    def abandon(self) -> None:
        """Take back what was emitted since `begin`: the rule declined after all."""
        del self.nodes[self.mark :]

    def finish(self) -> Graph:
        """The new graph."""
        graph = self.graph
        outputs = [self.became[v] for v in graph.outputs]
        return Graph(graph.name, graph.inputs, [*self.constants.values(), *self.nodes], outputs)


class Rewriting(Lowering):
    """A walk within the dialect: rules also ask who else reads a value."""

    def __init__(self, graph: Graph, uses: dict[Value, int], graph_of: Callable[[Graph], Graph] | None = None) -> None:
        super().__init__(graph, graph_of)
        self.uses = uses

    def producer(self, value: Value, *op_names: str) -> Node | None:
        """The node that makes a value nobody else reads, if it is one of these operators."""
        node = value.node
        if node is None or node.op.name not in op_names or self.uses.get(value, 0) != 1:
            return None
        return node

    def again(self, node: Node, *inputs: Operand, like: TensorSpec | None = None, **attrs: Any) -> Value:
        """A copy of a node with other operands (none given: the same) or attributes."""
        options = {k: node.attrs[k] for k in node.attrs} | attrs
        return self.emit(node.op.name, *(inputs or node.inputs), like=like or node.outputs[0].spec, **options)

    def keep(self, node: Node, old: Node) -> None:
        """Let a node stay what it is."""
        super().keep(node, old)
        for before, after in zip(old.outputs, node.outputs):
            self.uses[after] = self.uses.get(before, 0)

    def replace(self, old: Node, lowered: Value | Sequence[Value]) -> None:
        """Let the outputs of a node be these values; their readers are counted anew."""
        values = (lowered,) if isinstance(lowered, Value) else tuple(lowered)
        for node in self.emitted():
            for value in node.operands:
                self.uses[value] = self.uses.get(value, 0) + 1
        for before, after in zip(old.outputs, values):
            self.uses[after] = self.uses.get(after, 0) + self.uses.get(before, 0)
        super().replace(old, values)


def more_specific(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """What two true statements about one tensor say together; the first where they contradict each other."""
    try:
        return a.with_shape(a.shape.merge_with(b.shape))
    except ValueError:
        return a
