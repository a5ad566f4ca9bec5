"""Equations of values that are stored in another order of dimensions, and the walk that moves transposes by them.

Lives here: `Layout`, `LayoutRewriter`. Not here: the equation of each operator, and the use of the result (layout.py).

The walk removes each Transpose and records the equation

    value = transpose(stored, perm)

for its output. An operator of such values is computed on the stored ones if it has a rule. Any other operator reads
transpose(stored, perm), one node for each value; the same holds for outputs of the graph, so that they keep their
layout. Two equations that meet compose, and a perm that is the identity is not a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import as_dtype
from ...core.specs import TensorSpec
from ..builder import GraphRewriter, constant_node, has_subgraphs
from ..ir import Graph, Node, Operand, Value

Perm = tuple[int, ...]
MOVED = "assign_layouts: an operator of transposes is the transpose of the operator on what they read"
ORDERED = "assign_layouts: a reader that has no rule reads the value in the order of the source"
CONSTANT = frozenset({"Const", "ReadVariable"})


class Layout(NamedTuple):
    """The equation value = transpose(stored, perm). stored: a value of the new graph."""

    stored: Value
    perm: Perm

    @property
    def shape(self) -> list[int | None]:
        """The sizes of the value, not of the stored one."""
        return [self.stored.shape[p] for p in self.perm]


def identity(rank: int) -> Perm:
    """Return the permutation that changes nothing."""
    return tuple(range(rank))


def inverse(perm: Perm) -> Perm:
    """Return the permutation that undoes one."""
    result = [0] * len(perm)
    for i, p in enumerate(perm):
        result[p] = i
    return tuple(result)


def moves_ones(dims: Sequence[int | None], perm: Perm) -> bool:
    """Return whether a transpose changes the places of dimensions of size 1 alone, so that it is a reshape."""
    if list(dims).count(None) > 1:
        return False
    order = [p for p in perm if dims[p] != 1]
    return order == sorted(order)


class LayoutRewriter(GraphRewriter):
    """One walk. layouts: the equations of values of the source that are stored in another order.

    operators: returns an operator of the catalogue by name. fixed: values computed from constants and variables alone.
    """

    def __init__(self, source: Graph, operators: Callable[[str], Any]) -> None:
        super().__init__(source)
        self.operators = operators
        self.layouts: dict[Value, Layout] = {}
        self.fixed = constants(source)
        self._ordered: dict[tuple[Value, Perm], Value] = {}

    def run(self, rules: Callable[[Node], Callable[[Node, LayoutRewriter], bool] | None]) -> Graph:
        """Return the new graph. rules: returns the rule of a node, which returns whether it applied."""
        for node in self.source.nodes:
            self.begin(node)
            if node.op.name == "Transpose" and self._transpose(node):
                continue
            if any(v in self.layouts for v in node.operands) and not has_subgraphs(node):
                rule = rules(node)
                if rule is not None and rule(node, self):
                    self.credit(node, MOVED)
                    continue
                self.rollback_layout(node)
            self._materialize(node.operands)
            self.copy(node)
        self.prefix, self.at = self.source.name, None
        self._materialize(self.source.outputs)
        return self.finish()

    def rollback_layout(self, node: Node) -> None:
        """Erase what a rule appended before it declined."""
        dropped = {v for n in self.created() for v in n.outputs}
        if dropped:
            self.rollback()
            self._ordered = {key: value for key, value in self._ordered.items() if value not in dropped}
            for old in [old for old, new in self.mapping.items() if new in dropped]:
                del self.mapping[old]

    def _transpose(self, node: Node) -> bool:
        """Record the equation of a Transpose."""
        (x,) = node.operands
        rank, perm = x.shape.rank, node.attrs["perm"]
        if rank is None or x in self.fixed:
            return False
        perm = identity(rank)[::-1] if perm is None else tuple(p % rank for p in perm)
        stored, before = self.layout(x)
        self.hold(node.outputs[0], stored, tuple(before[p] for p in perm))
        return True

    def _materialize(self, values: Any) -> None:
        for value in values:
            if value in self.layouts and value not in self.mapping:
                layout = self.layouts[value]
                self.mapping[value] = self.ordered(layout.stored, layout.perm)

    # ---- for rules --------------------------------------------------------------------------------------------------

    def layout(self, value: Value) -> Layout:
        """Return the equation of a value of the source. Its rank is known."""
        layout = self.layouts.get(value)
        if layout is None:
            rank = value.shape.rank
            assert rank is not None
            layout = Layout(self.mapping.get(value, value), identity(rank))
        return layout

    def operand_in_order(self, value: Value) -> Value:
        """Return the new value of one of the source, in the order of the source."""
        self._materialize((value,))
        replacement = self.operand(value)
        assert isinstance(replacement, Value)
        return replacement

    def hold(self, old: Value, stored: Value, perm: Perm) -> None:
        """Record that a value of the source is the transpose of a new one."""
        if perm == identity(len(perm)):
            self.mapping[old] = stored
        else:
            self.layouts[old] = Layout(stored, perm)

    def ordered(self, stored: Value, perm: Perm) -> Value:
        """Return transpose(stored, perm): one node, a reshape if it only moves ones, none for the identity."""
        if perm == identity(len(perm)):
            return stored
        key = stored, perm
        value = self._ordered.get(key)
        if value is None:
            if moves_ones(list(stored.shape), perm):
                value = self.reshaped(stored, [stored.shape[p] for p in perm])
            else:
                value = self.create(self.operators("Transpose"), (stored,), {"perm": list(perm)}).outputs[0]
            if value.node is not None:
                self.attribute(value.node, (ORDERED,))
            self._ordered[key] = value
        return value

    def reshaped(self, value: Value, dims: Sequence[int | None]) -> Value:
        """Return a value in another shape, with one unknown size at most."""
        if list(value.shape) == list(dims):
            return value
        shape = np.array([-1 if d is None else d for d in dims], np.int32)
        return self.create(self.operators("Reshape"), (value, self.constant(shape)), name="reshape").outputs[0]

    def constant(self, array: Any) -> Value:
        """Return a new constant."""
        spec = TensorSpec(array.shape, as_dtype(array.dtype))
        name = self.unique(f"{self.prefix}/const")
        return self.insert(constant_node(self.operators("Const"), array, spec, name, self.at)).outputs[0]

    def emit(
        self, node: Node, inputs: Sequence[Operand], perms: Sequence[Perm], attrs: dict[str, Any] | None = None
    ) -> bool:
        """Append a node on stored operands, and record the perm of each of its outputs."""
        specs = []
        for old, perm in zip(node.outputs, perms, strict=True):
            back = inverse(perm)
            dims = old.shape.dims
            specs.append(old.spec if dims is None else old.spec.with_shape([dims[b] for b in back]))
        new = self.insert(node.replaced(inputs=inputs, attrs={**node.attrs, **(attrs or {})}, specs=specs))
        for old, value, perm in zip(node.outputs, new.outputs, perms):
            self.hold(old, value, perm)
        return True


def constants(graph: Graph) -> set[Value]:
    """Return the values computed from constants and variables alone, which a converted model holds as constants."""
    fixed: set[Value] = set()
    for node in graph.nodes:
        if node.op.name in CONSTANT or (node.effect is None and node.inputs and all(v in fixed for v in node.operands)):
            fixed.update(node.outputs)
    return fixed
