"""Nodes that follow one another and run by one call: what lies between two calls costs more than a small node.

Lives here: `joined`, `JoinedStep`.
Not here: which nodes can (their registrations' `is_joinable` and `bind_many`), running steps (subgraph.py).

The steps of single nodes stay: watching and observing look at nodes one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from itertools import groupby
from typing import Any, Protocol

from ...compiler.native.image import runs_images
from .chains import Chain, NativeStep
from .node import Context, Node
from .shape_constant_folding import nothing


class JoinedStep(Protocol):
    """Runs several nodes in order. failed: after it has raised, which of them did."""

    failed: int
    nodes: Sequence[Node]

    def __call__(self) -> None: ...


def joined(
    context: Context,
    plan: Sequence[Node],
    steps: Sequence[Callable[[], Any]],
    deferred: Container[int],
    called: bool = False,
) -> list[Callable[[], Any]]:
    """The steps, with one in the place of several where nodes can run by one call, and none for folded nodes.

    plan, steps: nodes and their own steps, in the same order. deferred: numbers of nodes that may be prepared while the
    model runs, which run alone. called: whether a node of another subgraph runs these, by machine code if they are one.
    """

    def kind(i: int) -> Any:
        """What binds such nodes together; None for a node that runs alone."""
        registration: Any = plan[i].registration
        bind_many = getattr(registration, "bind_many", None)
        return bind_many if bind_many and plan[i].number not in deferred and registration.is_joinable(plan[i]) else None

    found: list[tuple[Node, Callable[[], Any]]] = []
    for bind_many, group in groupby(range(len(plan)), kind):
        places = list(group)
        if bind_many is None or len(places) == 1:
            found += [(plan[i], steps[i]) for i in places if steps[i] is not nothing]
        else:
            found.append((plan[places[0]], bind_many(context, [plan[i] for i in places])))
    return _chained(found, called) if runs_images() else [step for _, step in found]


def _chained(steps: Sequence[tuple[Node, Any]], called: bool) -> list[Callable[[], Any]]:
    """The steps, with a chain in the place of native ones that follow one another, or gain by it alone."""
    if called and not steps:
        return [Chain((), ())]
    found: list[Callable[[], Any]] = []
    for native, group in groupby(steps, lambda entry: isinstance(entry[1], NativeStep)):
        nodes, members = zip(*group)
        if native and (called or len(members) > 1 or members[0].alone):
            found.append(Chain(nodes, members))
        else:
            found += members
    return found
