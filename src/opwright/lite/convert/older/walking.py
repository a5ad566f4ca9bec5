"""The walk that replaces operators newer than a run time, again and again until nothing changes.

Lives here: `say_older`, `version_of` a node of the lite dialect.  Not here: the rules (the other modules).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....core.errors import InvalidArgumentError, UnimplementedError
from ....core.once import once
from ....graph import Graph, Node, Value
from ....graph.ir import flat
from ...format import objects, schema, versions
from ...ops import types
from ...ops.definition import LiteOperator
from ..lowering import Lowered, NoMatch, Rewriting, Rule
from ..optimize import rewrite


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


def say_older(graph: Graph, runtime: str) -> Graph:
    """The graph, and those that its nodes hold, with every operator that `runtime` lacks in an older form, where there
    is a rule for it; the others stay, to be reported.
    """
    from . import OLDER

    def rules(node: Node) -> Sequence[Rule]:
        found = OLDER.get(node.op.name)
        return [_declining(rule) for rule in found] if found and too_new(node, runtime) else ()

    return rewrite(graph, rules)


@once
def _declining(rule: Rule) -> Rule:
    """The rule, which declines where operators do not take what it would give them."""

    def lower(node: Node, low: Rewriting) -> Lowered:
        try:
            return rule.lower(node, low)
        except (InvalidArgumentError, UnimplementedError) as error:
            return NoMatch(" ".join(error.message.split()))

    return Rule(rule.name, rule.op, lower, rule.why)
