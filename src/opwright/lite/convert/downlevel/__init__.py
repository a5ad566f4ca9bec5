"""Downlevel conversion: express operators that a stated run time lacks by operators that it has.

    graph = downlevel(graph, "2.8")      # GELU, new in 2.9, becomes a handful of operators that 2.8 has

Lives here: the driver, `downlevel`, with its table of rules; `version_of` and `too_new`, the versions that nodes need,
`check_runtime`, the check of the result. The rules, in a module for each kind.
Not here: versions of operators, and since which run time each exists (lite/format/versions.py).

A rule does not know the run time: it emits the oldest form it can. The driver rewrites the result again, so rules build
on each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ....core.specs import TensorSpec
from ....graph import Graph, Node, Value
from ....graph.ir import flat
from ....graph.passes.rewrite_rules import RewriteRule
from ...format import objects, versions
from ...format.versions import OperatorView
from ...ops.definition import LiteOperator
from ...ops.specs import tensor_of
from ..errors import ConverterError
from ..export import set_builtin_options
from ..passes import rewrite_greedily
from ..rewriter import join
from .arithmetic import ARITHMETIC, PRODUCTS, WIDENING
from .shapes import IMAGES, INDEXING, RANKS

__all__ = ["DOWNLEVEL_RULES", "check_runtime", "downlevel", "version_of"]

DOWNLEVEL_RULES = join(
    ARITHMETIC, PRODUCTS, INDEXING, IMAGES, RANKS, WIDENING
)  # by type last: many operators have those rules


def downlevel(graph: Graph, runtime: str) -> Graph:
    """Replace the operators that `runtime` lacks by older forms, in the graph and its subgraphs.

    Operators without a rule stay, to be reported.
    """

    def rules(node: Node) -> Sequence[RewriteRule]:
        candidates = DOWNLEVEL_RULES.get(node.op.name)
        return candidates if candidates and too_new(node, runtime) else ()

    return rewrite_greedily(graph, rules, errors_decline=True)


def version_of(node: Node, specs: Mapping[Value, TensorSpec] = MappingProxyType({}), **attrs: Any) -> int:
    """Return the version that a node of a builtin operator has in a file.

    specs, attrs: types of its values and attributes in place of those they have.
    """

    def tensor(value: Value | None) -> objects.TableObject | None:
        return None if value is None else tensor_of(specs.get(value, value.spec))

    operator = objects.Operator()
    set_builtin_options(operator, node.op, {**node.attrs, **attrs}, lambda graph: 0)
    options = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
    view = OperatorView([*map(tensor, flat(node.inputs))], [*map(tensor, node.outputs)], options)
    return versions.stamp(node.op.name, view)


def too_new(node: Node, runtime: str) -> bool:
    """Return whether a run time lacks the builtin operator of a node, in the version that the node needs."""
    return isinstance(node.op, LiteOperator) and versions.lacks(runtime, node.op.name, version_of(node))


def check_runtime(graphs: Iterable[Graph], runtime: str) -> None:
    """Raise ConverterError naming every node whose operator `runtime` lacks in the version that it needs."""
    late = []
    for node in (node for graph in graphs for node in graph.nodes):
        if too_new(node, runtime):
            version = version_of(node)
            since = versions.min_runtime(node.op.name, version) or "one newer than is known here"
            where = f" at {node.at}" if node.at else ""
            late.append(f"{node.op.name} version {version} needs {since}: {node.name!r}{where}")
    if late:
        listing = "\n          ".join(dict.fromkeys(late))  # signatures set up the same variables, each for itself
        raise ConverterError(
            what=f"the model does not run on run time {runtime}",
            found=listing,
            wanted=f"operators that {runtime} has",
            do="a later target_spec.runtime, or other operators at the lines named",
        )
