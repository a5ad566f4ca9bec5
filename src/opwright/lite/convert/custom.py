"""Custom operators in the file: an operator's attributes as its options, by name, in the least version that has them.

Lives here: `in_least_version`, and which Python value stands for which kind of attribute.
Not here: FlexBuffers (format/flexbuffers.py), reading the options back (lite/custom_options.py), how the version
follows from the definition (ops/versioning.py).

An old definition reads what a newer one wrote, as long as nothing new is used: the node is stamped with the least
version that expresses it and holds only what that version knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, of_numpy
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...graph import Graph, Node, Value
from ...graph.ir import Operand
from ...ops.versioning import least_version
from ..format.flexbuffers import VERSION_KEY
from ..ops.external import ExternalOp


class CustomNode(NamedTuple):
    """A node as the file has it: the version it needs, and the inputs and outputs which that version has."""

    version: int
    inputs: Sequence[Operand]
    outputs: Sequence[Value]


def in_least_version(node: Node, is_read: Callable[[Value], bool]) -> CustomNode:
    """A node of an operator of one's own, stamped. is_read: whether anybody reads a value."""
    op: Any = node.op
    if isinstance(op, ExternalOp):
        return CustomNode(node.attrs["version"], node.inputs, node.outputs)
    packed = [p if isinstance(p, (list, tuple)) else (p,) for p in op.pack_all(node.outputs)]
    version = least_version(op, node.attrs, node.inputs, [any(map(is_read, values)) for values in packed])
    return CustomNode(
        version,
        [operand for declared, operand in zip(op.inputs, node.inputs) if declared.since <= version],
        [v for declared, values in zip(op.outputs, packed) if declared.since <= version for v in values],
    )


def custom_options(node: Node, version: int, version_inside: bool) -> dict[str, Any]:
    """The attributes that this version of the operator has, also those with their default: what was meant stays so
    when a default changes.

    raises InvalidArgumentError for an attribute that options cannot hold
    """
    defined: Any = node.op
    options = {
        name: _option(node, name, value)
        for name, value in node.attrs.items()
        if name not in defined.attr_defs or defined.attr_defs[name].since <= version
    }
    if version_inside:
        options[VERSION_KEY] = version
    return options


def _option(node: Node, name: str, value: Any) -> Any:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, TensorShape):
        return None if value.dims is None else list(value.dims)
    if isinstance(value, np.ndarray):
        return {"dtype": of_numpy(value.dtype).name, "shape": list(value.shape), "values": value.reshape(-1).tolist()}
    if isinstance(value, tuple):
        return [_option(node, name, item) for item in value]
    if isinstance(value, Graph):
        raise InvalidArgumentError(what=f"attribute {name!r} is a graph, which custom options cannot hold")
    return value
