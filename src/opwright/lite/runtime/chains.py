"""Steps that follow one another as one native call: plans, and branches and loops whose subgraphs are native, too.

Lives here: `NativeStep`, what such a step has; `Chain`; `copy_rows`, copies by machine code.
Not here: which steps become chains (chains.py), branches and loops (native_control_flow.py), the machine code
(compiler/native/executor.ll).

A kernel's guard, or a subgraph that is not connected, stops the native call at some step. From there on Python goes on:
that step's `resume` finishes what it began, and the steps after it run one by one. What ran before does not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import groupby
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ...compiler.native.executor import Executor, Step, StepError
from ...compiler.native.image import runs_images
from ...compiler.native.workers import functions
from .direct_invocation import DirectInvocation
from .node import Context, Node
from .shape_constant_folding import nothing


@runtime_checkable
class NativeStep(Protocol):
    """A step that an executor runs. alone: whether the executor is quicker than the step even where nothing follows.

    One that can go on by machine code alone has, besides, `proceed()`, which runs it, or `follow()`, after the executor
    was stopped in it; both say whether that was possible, and have had no effect if not.
    """

    alone: bool

    @property
    def executor(self) -> Executor: ...

    def is_ready(self) -> bool:
        """Whether the executor may run now; else the step is to be called."""

    def resume(self) -> None:
        """Finish in Python what the executor began, and was stopped in."""

    def __call__(self) -> None: ...


class Chain:
    """Native steps in order. failed: after it has raised, which of them did."""

    __slots__ = ("_next", "_run", "_steps", "executor", "failed", "nodes")

    def __init__(self, nodes: Sequence[Node], steps: Sequence[NativeStep]) -> None:
        self.nodes, self._steps, self.failed = list(nodes), list(steps), 0
        self._next = 0  # the step to go on with, where those before have run since the executor stopped
        if len(steps) == 1:
            self.executor = steps[0].executor
        else:
            nested = functions().nested
            threads = nodes[0].subgraph.context.recommended_num_threads if nodes else 1
            self.executor = Executor([Step(nested, [s.executor.address], 1) for s in steps], inner=threads)
        self._run = self.executor.run

    def __call__(self) -> None:
        self._next = 0
        if not self.is_ready():
            self._rest(0)
            return
        try:
            self._run()
        except StepError:
            self.resume()

    def is_ready(self) -> bool:
        """Whether every step is."""
        return all(step.is_ready() for step in self._steps)

    def resume(self) -> None:
        """Go on from the step that stopped."""
        if self._next:
            place, self._next = self._next, 0
            self._rest(place)
            return
        first = self.failed = self.executor.failed if len(self._steps) > 1 else 0
        self._steps[first].resume()
        self._rest(first + 1)

    def _rest(self, first: int) -> None:
        for place in range(first, len(self._steps)):
            self.failed = place
            self._steps[place]()

    @property
    def direct(self) -> DirectInvocation | None:
        """The native call alone."""
        if not self.is_ready():
            return None
        return DirectInvocation(self.executor.entry, self._recover, follow=self._follow)

    def _follow(self) -> bool:
        """Let the step that stopped go on by machine code, and those behind it; whether all have run."""
        self._next = 0  # an interrupt may have left it
        first = self.executor.failed if len(self._steps) > 1 else 0
        follow = getattr(self._steps[first], "follow", None)
        if follow is None or not follow():
            return False
        for place in range(first + 1, len(self._steps)):
            proceed = getattr(self._steps[place], "proceed", None)
            if proceed is None or not proceed():
                self._next = place
                return False
        return True

    def _recover(self, status: int) -> None:
        try:
            self.executor.check(status)
        except StepError:
            self.resume()


def copy_rows(copies: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray | None:
    """Copies, each to the first of two arrays, as rows of the executor; None where machine code cannot do one."""
    rows: list[tuple[int, int, int]] = []
    for to, source in copies:
        plain = to.flags.c_contiguous and source.flags.c_contiguous and to.dtype.kind != "O"
        if not plain or to.nbytes != source.nbytes or to.dtype != source.dtype:
            return None
        rows.append((_address(to), _address(source), to.nbytes))
    return np.array(rows, np.int64).reshape(-1, 3)


def _address(array: np.ndarray) -> int:
    found: Any = array.__array_interface__["data"][0]
    return int(found)


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
