"""Graph, Node and Value: a program in SSA form, immutable once built.

Lives here: the three types, `flat` operands, structural equality (`same`).
Not here: builders, rewriters and verification (builder.py), text (printer.py, parser.py), passes (passes/).

Nodes are in program order, which is also the order of their effects: executing them in this order is always correct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn, Protocol

import numpy as np

from ..core.deferred import DeferredArray
from ..core.dtypes import DType
from ..core.named_tuples import NamedTuple
from ..core.notebook_reprs import shown_as
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from .printer import Store, text

Effect = str | None
"""None: pure. "read": depends on state. "write": changes state, or has an external effect. "random": differs per
run.
"""
STRENGTH = (None, "read", "random", "write")  # an unused node may be removed up to "random", and moved if None


class OperatorLike(Protocol):
    """The interface of operators to graphs."""

    @property
    def name(self) -> str: ...
    @property
    def effect(self) -> Effect: ...


class Value:
    """One tensor of a graph: a graph input (node is None) or output `index` of a node. Compared by identity."""

    __slots__ = ("index", "name", "node", "spec")

    name: str
    spec: TensorSpec
    node: Node | None
    index: int

    def __init__(self, name: str, spec: TensorSpec, node: Node | None = None, index: int = 0) -> None:
        _set_value_name(self, name)
        _set_value_spec(self, spec)
        _set_value_node(self, node)
        _set_value_index(self, index)

    def __setattr__(self, attribute: str, to: object) -> NoReturn:
        raise AttributeError(f"value {self.name} of a graph is immutable: {attribute!r} cannot be set")

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.spec.dtype

    @property
    def shape(self) -> TensorShape:
        """Shape, perhaps partly unknown."""
        return self.spec.shape

    @property
    def constant(self) -> np.ndarray | None:
        """The value of a Const node; None for other values. Read-only."""
        node = self.node
        if node is None or node.op.name != "Const":
            return None
        value: np.ndarray | DeferredArray = node.attrs["value"]
        return value.compute() if isinstance(value, DeferredArray) else value

    def __repr__(self) -> str:
        return f"{self.name}: {self.spec.short()}"


# Constructors alone set these, and GraphBuilder while a graph is under construction.
_set_value_name, _set_value_spec, _set_value_node, _set_value_index = (
    Value.__dict__[slot].__set__ for slot in ("name", "spec", "node", "index")
)


Operand = Value | None | tuple[Value, ...]
"""The operand of one input: a value, None (optional and absent), or several values (repeated)."""


def flat(operands: Iterable[Any]) -> list[Any]:
    """Return operands with repeated ones flattened, in order; None represents an absent one."""
    return [v for operand in operands for v in (operand if isinstance(operand, tuple) else (operand,))]


def map_operands(function: Callable[[Any], Any], operands: Iterable[Any]) -> list[Any]:
    """Return a function of each operand; of each element of repeated ones, which are tuples; None of absent ones."""
    return [None if o is None else tuple(map(function, o)) if isinstance(o, tuple) else function(o) for o in operands]


class Node:
    """One call of an operator. inputs: one Operand per declared input; attrs: all attributes.

    specs: one per output. name: unique in its graph. at: "file:line" of the user's code, or None. names: of the
    outputs, by default the node's, then NAME.1, NAME.2, ... rules: the rewrite rules and rules of importers that made
    the node, first to last, each with its reason. Neither `at` nor `rules` is part of a graph's meaning or text.
    """

    __slots__ = ("at", "attrs", "inputs", "name", "op", "outputs", "rules")

    op: Any
    inputs: tuple[Operand, ...]
    attrs: Mapping[str, Any]
    outputs: tuple[Value, ...]
    name: str
    at: str | None
    rules: tuple[str, ...]

    def __init__(
        self,
        op: OperatorLike,
        inputs: Sequence[Operand],
        attrs: Mapping[str, Any],
        specs: Sequence[TensorSpec],
        name: str,
        at: str | None = None,
        names: Sequence[str] | None = None,
        rules: tuple[str, ...] = (),
    ) -> None:
        _set_op(self, op)
        _set_inputs(self, tuple(inputs))
        _set_attrs(self, attrs if type(attrs) is MappingProxyType else MappingProxyType(dict(attrs)))
        _set_name(self, name)
        _set_at(self, at)
        _set_rules(self, rules)
        names = names or output_names(name, len(specs))
        _set_outputs(self, tuple([Value(n, s, self, i) for i, (n, s) in enumerate(zip(names, specs, strict=True))]))

    def __setattr__(self, attribute: str, to: object) -> NoReturn:
        raise AttributeError(f"node {self.name} of a graph is immutable: {attribute!r} cannot be set")

    def replaced(
        self,
        *,
        op: Any = None,
        inputs: Sequence[Operand] | None = None,
        attrs: Mapping[str, Any] | None = None,
        specs: Sequence[TensorSpec] | None = None,
    ) -> Node:
        """Return a copy of this node with the given operator, inputs, attributes or output types.

        Names, source line and rules are preserved.
        """
        return Node(
            self.op if op is None else op,
            self.inputs if inputs is None else inputs,
            self.attrs if attrs is None else attrs,
            [v.spec for v in self.outputs] if specs is None else specs,
            self.name,
            self.at,
            [v.name for v in self.outputs],
            self.rules,
        )

    def with_operands(self, inputs: Sequence[Operand], attrs: Mapping[str, Any] | None = None) -> Node:
        """Return the node with other operands or attributes, and with the same output values.

        The outputs still refer to this node. For code that inspects one node or records a graph again.
        """
        node = Node(self.op, inputs, self.attrs if attrs is None else attrs, (), self.name, self.at, None, self.rules)
        _set_outputs(node, self.outputs)
        return node

    @property
    def type(self) -> str:
        """The operator's name."""
        return str(self.op.name)

    @property
    def operands(self) -> Iterator[Value]:
        """Every value read, in order, without absent inputs."""
        for operand in self.inputs:
            if type(operand) is tuple:
                yield from operand
            elif operand is not None:
                yield operand  # type: ignore[misc]

    @property
    def effect(self) -> Effect:
        """The operator's effect, or the strongest one inside its sub-graphs."""
        rule = getattr(self.op, "effect_rule", None)
        strongest = self.op.effect if rule is None else rule(self.attrs)
        for graph in self.subgraphs:
            strongest = max(strongest, graph.effect, key=STRENGTH.index)
        result: Effect = strongest
        return result

    @property
    def subgraphs(self) -> Iterator[Graph]:
        """Graphs among the attributes: the branches and bodies of control flow."""
        for value in self.attrs.values():
            if isinstance(value, Graph):
                yield value
            elif isinstance(value, tuple):
                yield from (v for v in value if isinstance(v, Graph))

    def __repr__(self) -> str:
        ins = ", ".join(
            "_" if o is None else str([v.name for v in o]) if isinstance(o, tuple) else o.name for o in self.inputs
        )
        return f"{', '.join(map(repr, self.outputs)) or self.name} = {self.op.name}({ins})"


_set_op, _set_inputs, _set_attrs, _set_outputs, _set_name, _set_at, _set_rules = (
    Node.__dict__[slot].__set__ for slot in ("op", "inputs", "attrs", "outputs", "name", "at", "rules")
)


def branch_inputs(node: Node) -> tuple[Value, tuple[Value, ...]]:
    """Return the value that chooses the branch of an If or Case, and the operands of the branches."""
    chooser, operands = node.inputs
    assert isinstance(chooser, Value)
    assert isinstance(operands, tuple)
    return chooser, operands


def loop_inputs(node: Node) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Return the initial variables of a While, and the values that its graphs take from outside."""
    variables, captured = node.inputs
    assert isinstance(variables, tuple)
    assert isinstance(captured, tuple)
    return variables, captured


def output_names(name: str, count: int, unique: Callable[[str], str] | None = None) -> list[str]:
    """Return the names of a node's outputs: the node's, then NAME.1, NAME.2, ..., each made unique by the function."""
    others = [f"{name}.{i}" for i in range(1, count)]
    return [name, *(others if unique is None else map(unique, others))][:count]


class Graph:
    """A program: `inputs` to `outputs` through `nodes`, in order. Its text parses to an equal graph.

    origin: the recording from which it was built, if any, for differentiation. No part of its meaning.
    """

    __slots__ = ("__weakref__", "_effect", "inputs", "name", "nodes", "origin", "outputs")

    name: str
    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    origin: Any
    _effect: Any

    def __init__(
        self, name: str, inputs: Sequence[Value], nodes: Sequence[Node], outputs: Sequence[Value], origin: Any = None
    ) -> None:
        put = object.__setattr__
        put(self, "name", name)
        put(self, "origin", origin)
        put(self, "inputs", tuple(inputs))
        put(self, "nodes", tuple(nodes))
        put(self, "outputs", tuple(outputs))
        put(self, "_effect", STRENGTH)  # not computed yet

    def __setattr__(self, attribute: str, to: object) -> NoReturn:
        raise AttributeError(f"graph {self.name} is immutable: {attribute!r} cannot be set")

    def keep_origin(self, origin: Any) -> None:
        """Set the recording of a graph without one, which was parsed from text and recorded again."""
        object.__setattr__(self, "origin", origin)

    @property
    def effect(self) -> Effect:
        """The strongest effect of its nodes."""
        if self._effect is STRENGTH:
            strongest = max((n.effect for n in self.nodes), key=STRENGTH.index, default=None)
            object.__setattr__(self, "_effect", strongest)
        result: Effect = self._effect
        return result

    def values(self) -> Iterator[Value]:
        """Yield every value: the inputs, then each node's outputs."""
        yield from self.inputs
        for node in self.nodes:
            yield from node.outputs

    def find(self, name: str) -> Node:
        """Return the node with a name. Raises KeyError."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(f"graph {self.name} has no node {name!r}; it has {', '.join(n.name for n in self.nodes)}")

    def get_operations(self) -> list[Node]:
        """Return the nodes, in program order."""
        return list(self.nodes)

    def as_graph_def(self) -> GraphDef:
        """Return flat records with TensorFlow's names: `.node`, each with `name`, `op`, `input`, `attr`."""
        records = [NodeDef(v.name, "Placeholder", [], {"dtype": v.dtype, "shape": v.shape}) for v in self.inputs]
        for node in self.nodes:
            reads = [_reference(v) for v in node.operands]
            records.append(NodeDef(node.name, node.op.name, reads, dict(node.attrs)))
        return GraphDef(records)

    def to_text(self, indent: str = "", store: Store | None = None) -> str:
        """Return the graph as text; see `printer.text`."""
        return text(self, indent, store)

    def __str__(self) -> str:
        return self.to_text()

    _repr_html_ = shown_as("graph")

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.outputs)} outputs>"


class Placeholder(NamedTuple):
    """An input of a graph as the operation that produces it."""

    name: str
    outputs: tuple[Value, ...]
    inputs: tuple[Operand, ...] = ()
    type: str = "Placeholder"


class NodeDef(NamedTuple):
    """One node as a flat record. input: the names of its operands, "name" or "name:index" for later outputs."""

    name: str
    op: str
    input: list[str]
    attr: dict[str, Any]


class GraphDef(NamedTuple):
    """A graph as flat records. node: the inputs as Placeholders, then the nodes in program order."""

    node: list[NodeDef]


def _reference(value: Value) -> str:
    if value.node is None:
        return value.name
    return value.node.name if value.index == 0 else f"{value.node.name}:{value.index}"


def same(a: Graph, b: Graph) -> bool:
    """Return whether two graphs are equal in all but their source lines."""
    if a.name != b.name or len(a.inputs) != len(b.inputs) or len(a.nodes) != len(b.nodes):
        return False
    counterpart: dict[Value, Value] = {}

    def same_value(x: Value, y: Value) -> bool:
        return counterpart.get(x) is y

    def declare(x: Value, y: Value) -> bool:
        counterpart[x] = y
        alike = x.spec.short() == y.spec.short() and same_attr(x.spec.details, y.spec.details)
        return x.name == y.name and alike

    if not all(map(declare, a.inputs, b.inputs)):
        return False
    for m, n in zip(a.nodes, b.nodes):
        if m.op != n.op or m.name != n.name or len(m.inputs) != len(n.inputs) or len(m.outputs) != len(n.outputs):
            return False
        for p, q in zip(m.inputs, n.inputs):
            if isinstance(p, tuple):
                if not isinstance(q, tuple) or len(p) != len(q) or not all(map(same_value, p, q)):
                    return False
            elif p is None or q is None or isinstance(q, tuple):
                if p is not q:
                    return False
            elif not same_value(p, q):
                return False
        if m.attrs.keys() != n.attrs.keys() or not all(same_attr(m.attrs[k], n.attrs[k]) for k in m.attrs):
            return False
        if not all(map(declare, m.outputs, n.outputs)):
            return False
    return len(a.outputs) == len(b.outputs) and all(map(same_value, a.outputs, b.outputs))


def same_attr(x: Any, y: Any) -> bool:
    """Return whether two attribute values are equal: by type, arrays by dtype and bits, graphs by `same`.

    A list equals a tuple, since files and text have one form for both. Any nonzero byte of a file is True.
    """
    x, y = (v.compute() if isinstance(v, DeferredArray) else v for v in (x, y))
    if isinstance(x, np.ndarray):
        if not isinstance(y, np.ndarray) or x.dtype != y.dtype or x.shape != y.shape:
            return False
        if x.dtype == bool:
            return bool(np.array_equal(x.view(np.uint8) != 0, y.view(np.uint8) != 0))
        return x.tolist() == y.tolist() if x.dtype == object else x.tobytes() == y.tobytes()
    if isinstance(x, Graph):
        return isinstance(y, Graph) and same(x, y)
    if isinstance(x, tuple | list):
        return isinstance(y, tuple | list) and len(x) == len(y) and all(map(same_attr, x, y))
    if isinstance(x, dict):
        return isinstance(y, dict) and x.keys() == y.keys() and all(same_attr(v, y[k]) for k, v in x.items())
    if type(x) is not type(y):
        return False
    return repr(x) == repr(y) if isinstance(x, (float, complex)) else x == y  # 0.0 == -0.0, NaN != NaN
