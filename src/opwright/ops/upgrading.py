"""Nodes that were written for an older version of their operator, made whole for the one that is here.

Lives here: the outputs that are added to a node read from a file, and the words for what cannot be.
Not here: the inputs and attributes that are added, where text is read (graph/parsing.py), files (saved/), whether an
operator may change so (changes.py).

An older node lacks what later versions added, and these may only be what nobody has to give or take: attributes get
their default (that is what the older version did), optional inputs are absent, intermediate outputs are made and not
read. Everything stands last, so that what the file has keeps its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import SignatureError
from ..graph import Graph, Node


def with_outputs(graph: Graph, node: Node, attrs: Mapping[str, Any], specs: Sequence[Any]) -> Node | None:
    """Return the node with these attributes and the intermediate outputs that it lacks at its end. None if it lacks
    others.

    specs: what inference gives, one entry for each declared output, a list for a repeated one
    """
    given = 0
    for i, (declared, spec) in enumerate(zip(node.op.outputs, specs)):
        if given == len(node.outputs) and all(o.since > 1 for o in node.op.outputs[i:]):
            break
        given += len(spec) if declared.repeated else 1
    else:
        return node.replaced(attrs=attrs) if given == len(node.outputs) else None
    if given != len(node.outputs):
        return None
    taken = {v.name for v in graph.values()} | {n.name for n in graph.nodes}
    added = [s for entry in specs[i:] for s in (entry if isinstance(entry, list) else (entry,))]
    names = [v.name for v in node.outputs]
    for index in range(given, given + len(added)):
        name = f"{node.name}.{index}"
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return Node(node.op, node.inputs, attrs, [*(v.spec for v in node.outputs), *added], node.name, node.at, names)


def refused(node: Node, error: Exception, written: int | None) -> str:
    """Why a node cannot be, in words that name both versions where they may be the reason."""
    text = str(error)[:500]
    if isinstance(error, SignatureError) and written is not None:
        text += (f"\n  the file was written with version {written} of {node.op.name}, here is version "
                 f"{node.op.version}; load it with the definition that it was saved with, or a newer one")  # fmt: skip
    return text
