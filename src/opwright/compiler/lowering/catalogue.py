"""Nodes of catalogue graphs as the lowering context reads them.

Lives here: `CatalogueNode`, `operand_of`.  Not here: nodes of files (lite/compiled/nodes.py), which nodes are lowered
(../partitioner.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, bfloat16
from ...graph import Node, Value
from ..loops.forms import Buffer
from .context import NoLowering, Operand
from .registry import CATALOGUE, USER


def operand_of(value: Value) -> Operand:
    """Return a value as an operand. Raises NoLowering for unknown sizes, and for elements that are no numbers."""
    dims = value.shape.dims
    if value.dtype.is_handle or (value.dtype.np.kind in "OSUVc" and value.dtype is not bfloat16):
        raise NoLowering(f"elements of type {value.dtype.name}")
    if dims is None or None in dims:
        raise NoLowering(f"sizes of {value!r} are not known")
    shape = tuple(int(n) for n in dims if n is not None)
    constant = value.constant
    if constant is not None:
        constant = np.ascontiguousarray(constant).reshape(shape)
    return Operand(value, value.name, Buffer(value.name, value.dtype, shape, constant))


class CatalogueNode:
    """A node of a graph of catalogue operators, or of users' operators with a kernel."""

    __slots__ = ("dialect", "node", "operator", "origin", "prefix")

    quantized = False
    intermediates = ()
    activation = "NONE"

    def __init__(self, node: Node) -> None:
        self.node = node
        self.dialect: str = CATALOGUE if node.op.catalogue else USER
        self.operator: str = node.op.name if node.op.catalogue else CATALOGUE
        self.origin = self.prefix = node.name

    @property
    def inputs(self) -> Sequence[Any]:
        """Values, None for one left out, a tuple for a repeated input."""
        return self.node.inputs

    @property
    def outputs(self) -> Sequence[Value]:
        """Values."""
        return self.node.outputs

    def attr(self, name: str) -> Any:
        """An attribute; 0 if the operator has none of this name."""
        return self.node.attrs.get(name, 0)

    @property
    def call(self) -> Any:
        """The bound attributes."""
        return self.node.op.bind(dict(self.node.attrs))

    def takes(self, place: int, dtype: DType) -> bool:
        """Whether the operator takes this type there: the graph was checked when it was traced."""
        return True

    def evaluate(self, operands: Sequence[Operand], arrays: Sequence[Any]) -> list[Any]:
        """Compute the operator's reference on arrays."""
        op = self.node.op
        return list(op.flat_outputs(op.reference(self.call)(*arrays)))

    def integer_kernel(self) -> Callable[[Sequence[Any], Sequence[Any]], None]:
        """Raise NoLowering: the catalogue's integers stand for themselves."""
        raise NoLowering("its integers stand for themselves")
