"""Graphs as values of JSON, which the page draws: nodes, values, attributes, sizes.

Lives here: `document_of`, `scope_of`, `rules_of`. Not here: where graphs come from (sources.py), text about operators
(operator_facts.py), figures that need a run (measurements.py).

    {"graphs": [{"name", "inputs": [value], "outputs": [value], "values": [VALUE], "nodes": [NODE],
                 "weights": {value: WEIGHTS}, if they are asked for}],
     "types": [text], "attrs": [{name: text}], "operators": [FACTS], "rules": [text]}
    VALUE: [name, index of its type, quantization or "", 1 for a constant, bytes or null]
    NODE: {"o": operator, "n": name, "s": [scope], "a": attributes, "i": inputs, "u": outputs; and where there are any
           "at": source line, "g": [[attribute, graph]], "w": bytes of constants that it reads first,
           "y": bytes of its results, "l": bytes of the arena while it runs, "z": share of zeros of its constants,
           "m": the rules that made it, first to last, as indices of "rules"; "f": the line of its call, if "at" is
           its place in a file}

    WEIGHTS: {"low", "high", "mean", "deviation", "counts": a histogram, "elements": text}, of real numbers

Constants are values without nodes, as their elements are part of a page only if they are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..compiler.memory import Lifetimes
from ..core.dtypes import floating
from ..core.specs import TensorSpec
from ..graph.ir import Graph, Node, Value
from ..lite.ops.module import all_graphs
from ..pages.markup import visible
from .operator_facts import facts_of
from .weight_summaries import weight_summary

NAME = 300  # characters of a name in a page
DEEPEST = 12  # scopes of a name; the rest of the name is the node's


def scope_of(name: str) -> list[str]:
    """Return the scopes of a name, outermost first: of "a/b/Conv2D;c/Relu", which names fused nodes, a and b."""
    first = name[: 100 * NAME].partition(";")[0]
    return [visible(part, NAME) for part in first.split("/")[:-1] if part][:DEEPEST]


def document_of(
    graphs: Sequence[Graph],
    title: str,
    facts: Sequence[tuple[str, object]] = (),
    stored: Mapping[Value, int] = MappingProxyType({}),
    weights: bool = False,
) -> dict[str, Any]:
    """Return graphs, and the graphs that their nodes run, as values of JSON.

    facts: names and texts about all of them; stored: bytes of constants in their file, by default those of their
    arrays; weights: whether the elements of constants are part of it
    """
    tables = _Tables(stored, weights)
    every = all_graphs(graphs)
    numbers = {graph: i for i, graph in enumerate(every)}
    return {
        "title": visible(title, NAME),
        "facts": [[label, visible(text)] for label, text in facts],
        "graphs": [_graph(graph, numbers, tables) for graph in every],
        "entries": len(graphs),
        "types": list(tables.types),
        "attrs": list(tables.attrs.values()),
        "operators": list(tables.operators.values()),
        "rules": list(tables.rules),
    }


def rules_of(document: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    """Return the rules that made a node of a document, first to last."""
    return "; then ".join(document["rules"][i] for i in node.get("m", ()))


class _Tables:
    """Types, attributes and operators, which many nodes share: stored once."""

    def __init__(self, stored: Mapping[Value, int], weights: bool) -> None:
        self._stored, self.weights = stored, weights
        self.types: dict[str, int] = {}
        self.attrs: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self.operators: dict[Any, dict[str, Any]] = {}
        self.rules: dict[str, int] = {}
        self._places: dict[Any, int] = {}
        self._zeros: dict[int, tuple[int, int]] = {}

    def type(self, spec: TensorSpec) -> int:
        return self.types.setdefault(visible(spec.short(), NAME), len(self.types))

    def size(self, value: Value) -> int:
        """Return the bytes of a constant."""
        constant = value.constant
        return self._stored.get(value, 0 if constant is None else constant.nbytes)

    def zeros(self, values: Sequence[Value]) -> float | None:
        """Return the share of zeros of constants with weights, None without any."""
        counts = [self._count(value) for value in values if _is_weight(value.spec)]
        elements = sum(size for _, size in counts)
        return sum(zeros for zeros, _ in counts) / elements if elements else None

    def _count(self, value: Value) -> tuple[int, int]:
        """Return how many elements of a constant represent zero, and how many it has."""
        if id(value) not in self._zeros:
            array, quantization = value.constant, value.spec.quantization
            assert array is not None
            zero = 0 if quantization is None or len(quantization.zero_point) != 1 else quantization.zero_point[0]
            self._zeros[id(value)] = int(np.count_nonzero(array == zero)), array.size
        return self._zeros[id(value)]

    def attributes(self, node: Node) -> int:
        key = tuple((visible(k, NAME), _text(v)) for k, v in node.attrs.items() if not _graphs(v))
        self.attrs.setdefault(key, dict(key))
        return self._places.setdefault(key, len(self.attrs) - 1)

    def rules_of(self, node: Node) -> list[int]:
        """Return the rules of a node, each once however often it applied in turn."""
        texts = dict.fromkeys(visible(rule, NAME) for rule in node.rules)
        return [self.rules.setdefault(text, len(self.rules)) for text in texts]

    def operator(self, node: Node) -> int:
        key = node.op
        if key not in self.operators:
            self.operators[key] = facts_of(node.op)
        return self._places.setdefault((key,), len(self.operators) - 1)


def _graph(graph: Graph, numbers: Mapping[Graph, int], tables: _Tables) -> dict[str, Any]:
    places: dict[Value, int] = {}
    values: list[list[Any]] = []

    def place(value: Value) -> int:
        if value not in places:
            places[value] = len(values)
            constant = value.constant
            size = tables.size(value) if constant is not None else nbytes(value.spec)
            name = visible(_name(value), NAME)
            values.append([name, tables.type(value.spec), _quantization(value.spec), int(constant is not None), size])
        return places[value]

    for value in graph.inputs:
        place(value)
    nodes = [node for node in graph.nodes if node.type != "Const"]
    live, arena = arena_of(graph, nodes)
    read: set[int] = set()
    rows = []
    for node, used in zip(nodes, live):
        constants = [v for v in node.operands if v.constant is not None and id(v) not in read]
        read |= set(map(id, constants))
        name = _name(node.outputs[0]) if node.outputs else node.name
        row: dict[str, Any] = {
            "o": tables.operator(node),
            "n": visible(name, NAME),
            "s": scope_of(name),
            "a": tables.attributes(node),
            "i": [place(v) for v in node.operands],
            "u": [place(v) for v in node.outputs],
            "at": visible(node.at, NAME) if node.at else "",
            "g": [[k, numbers[g]] for k, v in node.attrs.items() for g in _graphs(v)],
            "w": sum(map(tables.size, dict.fromkeys(constants))),
            "y": sum(nbytes(v.spec) or 0 for v in node.outputs),
            "l": used,
            "z": tables.zeros([v for v in node.operands if v.constant is not None]),
            "m": tables.rules_of(node),
        }
        rows.append({k: v for k, v in row.items() if v or k in "oa" or (k == "z" and v is not None)})
    constants = [v for v in places if v.constant is not None and v.constant.size] if tables.weights else []
    kept = {str(places[value]): weight_summary(value) for value in constants}
    return {
        "name": visible(graph.name, NAME),
        "inputs": [place(v) for v in graph.inputs],
        "outputs": [place(v) for v in graph.outputs],
        "values": values,
        "nodes": rows,
        "arena": arena,
        **({"weights": kept} if kept else {}),
    }


def _name(value: Value) -> str:
    """Return the name of a value; in a file, where it may differ from the one in a graph."""
    return (value.spec.name if hasattr(value.spec, "is_variable") else None) or value.name


def _graphs(value: object) -> Iterable[Graph]:
    if isinstance(value, Graph):
        return (value,)
    return [v for v in value if isinstance(v, Graph)] if isinstance(value, tuple) else ()


def _text(value: object) -> str:
    if isinstance(value, np.ndarray) and value.size > 16:
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, TensorSpec):
        return value.short()
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return visible(value.tolist() if isinstance(value, np.ndarray) else value, NAME)


def _is_weight(spec: TensorSpec) -> bool:
    """Return whether a constant has real numbers: sizes and axes have none."""
    return bool(spec.shape.rank) and (spec.dtype in floating or ((q := spec.quantization) is not None and q.has_scales))


def _quantization(spec: TensorSpec) -> str:
    """Return scale and zero point, or what there is by slice or by block; "" of other types."""
    q = spec.quantization
    if q is None or not q.has_scales:
        return ""
    if q.blocks is not None:
        return f"scales of blocks of {q.blocks.size}"
    if len(q.scale) == 1:
        zero = f", zero point {q.zero_point[0]}" if len(q.zero_point) else ""
        return f"scale {q.scale[0]:.6g}{zero}"
    return f"{len(q.scale)} scales along axis {q.axis}, {min(q.scale):.3g} to {max(q.scale):.3g}"


def nbytes(spec: TensorSpec) -> int | None:
    """Return the size of a tensor in bytes; None for strings, resources and unknown sizes."""
    dims, width = spec.shape.dims, getattr(spec.dtype, "size", None)
    if dims is None or None in dims or not width:
        return None
    return math.prod(int(d) for d in dims if d is not None) * int(width)


def arena_of(graph: Graph, nodes: Sequence[Node]) -> tuple[list[int], int]:
    """Return the bytes of values that are needed while each node runs, and the most of them, the least arena.

    Every value has memory of its own: kernels that work in place, and fused nodes, need less.
    """
    lives: Lifetimes[int] = Lifetimes()
    sizes: dict[int, int] = {}

    def touch(value: Value, step: int) -> None:
        size = None if value.constant is not None else nbytes(value.spec)
        if size:
            sizes[id(value)] = size
            lives.touch(id(value), step)

    for value in graph.inputs:
        touch(value, 0)
    for step, node in enumerate(nodes):
        for value in (*node.operands, *node.outputs):
            touch(value, step)
    for value in graph.outputs:
        touch(value, len(nodes))
    spans = [(sizes[key], *span) for key, span in lives.items()]
    change = [0] * (len(nodes) + 2)
    for size, first, last in spans:
        change[first] += size
        change[last + 1] -= size
    live, total = [], 0
    for difference in change[: len(nodes)]:
        total += difference
        live.append(total)
    return live, max(live, default=0)
