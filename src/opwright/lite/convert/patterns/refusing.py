"""What could never be found, or never be right, of a pattern: an error where it is defined.

Lives here: `check_template`.  Not here: errors of what a pattern declares (pattern.py), of captures (capturing.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....core.errors import InvalidArgumentError
from ....graph import Graph
from ....graph.builder import has_subgraphs
from ....graph.matching import Template
from ...format.flexbuffers import encode_options

if TYPE_CHECKING:
    from .pattern import Pattern


class InferFailed(InvalidArgumentError):
    """An operator's `infer` raised what is no error of operators: it may ask for shapes that a pattern has not."""


def check_template(pattern: Pattern, template: Template) -> None:
    """Raises InvalidArgumentError for a template that no model can have, or that the operator does not stand for."""
    graph = template.graph
    _check_nodes(pattern, graph)
    read = {v for node in graph.nodes for v in node.operands}
    for v in graph.inputs:
        if v not in read:
            raise pattern.wrong(
                f"nothing reads {v.name}, so that no model tells which tensor it is", do="leave the parameter out"
            )
    for v in graph.outputs:
        if v.node is None or v.constant is not None:
            raise pattern.wrong(
                f"the result {v.name} is {'a parameter' if v.node is None else 'a constant'}",
                wanted="results of operators",
            )
    if len(set(graph.outputs)) < len(graph.outputs):
        raise pattern.wrong("two results are the same tensor", wanted="different ones")
    apart = [n for n in graph.nodes if n.op.name != "Const" and n not in template.reached()]
    if apart:
        raise pattern.wrong(
            f"{apart[0].op.name} ({apart[0].at}) has no tensor in common with the first result: "
            "nothing tells where it is",
            do="a pattern for each part",
        )
    attrs = {**pattern.attrs, **{c.name: c.values[0] for c in pattern.captures}}
    if pattern.operator is None:
        encode_options(attrs)
    else:
        _check_results(pattern, graph, attrs)


def _check_nodes(pattern: Pattern, graph: Graph) -> None:
    nodes = [n for n in graph.nodes if n.op.name != "Const"]
    if not nodes:
        raise pattern.wrong("there is no operator in it, once constants are computed", wanted="operators to look for")
    for n in nodes:
        if has_subgraphs(n) or n.effect is not None:
            what = "is control flow" if has_subgraphs(n) else "has an effect or draws numbers"
            raise pattern.wrong(
                f"{n.op.name} ({n.at}) {what}",
                wanted="operators whose results depend on operands alone",
                do="ow.function(experimental_implements=...), for what is called as a function",
            )


def _check_results(pattern: Pattern, graph: Graph, attrs: dict[str, Any]) -> None:
    wanted = [v.spec for v in graph.outputs]
    try:
        found = pattern.specs_of(attrs, dict(zip(pattern.parameters, graph.inputs)))
    except InferFailed:
        if all(v.shape.is_fully_defined() for v in graph.inputs):
            raise
        return  # the shapes that it asks for are those of a model, where it is asked again
    if len(found) != len(wanted) or not all(
        f.dtype is w.dtype and f.shape.is_compatible_with(w.shape) for f, w in zip(found, wanted)
    ):
        raise pattern.wrong(
            "the operator does not give what the function gives",
            found=", ".join(s.short() for s in found),
            wanted=", ".join(s.short() for s in wanted),
        )
