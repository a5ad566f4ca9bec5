"""The version of a builtin operator that a node of the lite dialect needs.

Lives here: `version_of`, `too_new`.  Not here: what replaces operators that are too new (driver.py).
"""

from __future__ import annotations

from ....graph import Node, Value
from ....graph.ir import flat
from ...format import objects, schema, versions
from ...ops import types
from ...ops.definition import LiteOperator


def version_of(node: Node) -> int:
    """The version that a node of the lite dialect will have in the file, by the rules of lite/format/versions.py."""

    def tensor(value: Value | None) -> object:
        if value is None:
            return None
        name = types.name_of(value.dtype)
        return objects.Tensor(type=schema.enum("TensorType")[name], shape=[d or 1 for d in value.spec.shape.dims or ()])

    assert isinstance(node.op, LiteOperator)
    options = None if versions.facts(node.op.name).get("converter_writes_options") is False else _options(node)
    seen = versions.OperatorView([*map(tensor, flat(node.inputs))], [*map(tensor, node.outputs)], options)
    return versions.stamp(node.op.name, seen)


def _options(node: Node) -> object:
    """An options object; graphs have no place in one and no rule of versions looks at their indices."""
    op = node.op
    assert isinstance(op, LiteOperator)
    return op.to_options({k: node.attrs[k] for k in node.attrs if k not in op.graphs.values()})


def too_new(node: Node, runtime: str) -> bool:
    """Whether a run time lacks the builtin operator that a node is, in the version that it needs."""
    return isinstance(node.op, LiteOperator) and versions.lacks(runtime, node.op.name, version_of(node))
