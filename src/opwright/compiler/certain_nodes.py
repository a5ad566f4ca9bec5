"""Nodes that run outside of compiled regions and cannot fail.

Lives here: `CertainNodes`.
Not here: why it matters (update_regions.py), guards of regions (loops/update_order.py).

An update of a variable may not run before a node that precedes it and fails. A node counts as certain if its types
exclude every error that its operator raises, or if an earlier node has checked the same: the rows that a gradient adds
to a table are the rows that the forward pass has looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.dtypes import int32, int64
from ..graph import Node, Value

_TOTAL = (np.add, np.subtract, np.multiply)
"""Functions of integers that are defined for all of them."""


class CertainNodes:
    """The nodes of a graph that cannot fail, as a container. nodes: in program order."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._certain: set[Node] = set()
        self._node_of: dict[Value, Node] = {}
        self._read: dict[Value, tuple[int, ...]] = {}  # shapes of variables
        self._in_range: set[tuple[Value, int]] = set()  # indices, and a number that they are below
        for node in nodes:
            self._node_of.update(dict.fromkeys(node.outputs, node))
            if self._cannot_fail(node):
                self._certain.add(node)
            if node.op.name == "ReadVariable" and node.outputs[0].shape.is_fully_defined():
                self._read[next(node.operands)] = _shape(node.outputs[0])
            if node.op.name == "Gather" and node.op.catalogue:
                self._add_checked(node)

    def _add_checked(self, gather: Node) -> None:
        table, indices = gather.operands
        axis, batch = gather.attrs["axis"], gather.attrs["batch_dims"]
        if table.shape.is_fully_defined() and table.shape.rank and not batch:
            self._in_range.add((self._source(indices), _shape(table)[axis]))

    def _source(self, indices: Value) -> Value:
        """Return the value with the same elements that an index was reshaped or widened from."""
        while (node := self._node_of.get(indices)) is not None:
            widens = node.op.name == "Cast" and node.outputs[0].dtype is int64 and next(node.operands).dtype is int32
            if not (widens or node.op.name == "Reshape"):
                break
            indices = next(node.operands)
        return indices

    def __contains__(self, node: Node) -> bool:
        return node in self._certain

    def _cannot_fail(self, node: Node) -> bool:
        if node.op.name == "ReadVariable":
            return True
        rule = _RULES.get(node.op.name) if node.op.catalogue else None
        return rule(self, node) if rule is not None else _is_total(node)

    def _assigns_its_shape(self, node: Node) -> bool:
        """Return whether an assignment has the type of a value of the variable."""
        handle, value = node.operands
        return value.shape.is_fully_defined() and self._read.get(handle) == _shape(value)

    def _adds_in_its_shape(self, node: Node) -> bool:
        """Return whether a sum in place is of numbers of a variable's type."""
        return next(v for v in node.operands if not v.dtype.is_handle).dtype.np.kind in "fiu" and (
            self._assigns_its_shape(node)
        )

    def _merges_checked_rows(self, node: Node) -> bool:
        """Return whether rows are merged by indices that were looked up in a table of that height."""
        values, indices, dense_shape = node.inputs
        assert isinstance(values, Value)
        assert isinstance(indices, Value)
        if not isinstance(dense_shape, Value) or dense_shape.constant is None:
            return False
        return self._are_rows_of(values, indices, tuple(dense_shape.constant.tolist()))

    def _are_rows_of(self, values: Any, indices: Any, table: tuple[int, ...]) -> bool:
        """Return whether values are rows of a table of this shape, at indices looked up in one of its height."""
        height, *row = table
        is_typed = values.shape.is_fully_defined() and indices.shape.is_fully_defined()
        is_typed = is_typed and _shape(values) == (*_shape(indices), *row)
        return is_typed and self._are_in_range(indices, height)

    def _are_in_range(self, indices: Value, height: int) -> bool:
        """Return whether indices were looked up in a table of that height; two lookups may be concatenated."""
        source = self._source(indices)
        if (source, height) in self._in_range:
            return True
        node = self._node_of.get(source)
        parts = node.inputs[0] if node is not None and node.op.name == "Concat" else ()
        return isinstance(parts, tuple) and bool(parts) and all(self._are_in_range(v, height) for v in parts)

    def _updates_checked_rows(self, node: Node) -> bool:
        """Return whether a node updates rows that were looked up or merged, of a variable of its dense shape.

        State is of the variable's shape: optimizers create it so."""
        variable, _, values, indices, numbers = node.inputs
        assert isinstance(variable, Value)
        assert isinstance(values, Value)
        merge = self._node_of.get(values)
        assert isinstance(numbers, tuple)
        table = self._read.get(variable)
        if table is None or any(v.shape.rank != 0 for v in numbers):
            return False
        if merge is None or merge.op.name != "MergeRows" or indices is not merge.outputs[1]:
            return self._are_rows_of(values, indices, table)
        if merge not in self:
            return False
        _, _, dense_shape = merge.inputs
        assert isinstance(dense_shape, Value)
        assert dense_shape.constant is not None
        return table == tuple(dense_shape.constant.tolist())


_RULES: dict[str, Any] = {
    **dict.fromkeys(("AssignAddVariable", "AssignSubVariable"), CertainNodes._adds_in_its_shape),
    "AssignVariable": CertainNodes._assigns_its_shape,
    "MergeRows": CertainNodes._merges_checked_rows,
    "UpdateRows": CertainNodes._updates_checked_rows,
}


def _shape(value: Value) -> tuple[int, ...]:
    dims: Any = value.shape.dims
    return tuple(dims)


def _is_total(node: Node) -> bool:
    """Return whether a node computes a number from numbers without a division of integers."""
    values = [*node.operands, *node.outputs]
    return (
        node.effect is None
        and node.op.catalogue
        and (node.op.elementwise or node.op.name == "Cast")
        and all(not v.dtype.is_handle and v.dtype.np.kind != "O" and v.shape.rank == 0 for v in values)
        and (node.op.compute_rule in _TOTAL or all(v.dtype.is_floating or v.dtype.is_bool for v in node.outputs))
    )
