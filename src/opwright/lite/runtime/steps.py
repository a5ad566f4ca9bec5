"""Execution steps of a subgraph: single nodes under observation, and consecutive steps merged into one call.

Lives here: `run_watched` (the switch `check_inputs`) and `run_observed`; `NativeStep`, `Chain`; `joined`, which merges
steps; `copy_rows`, copies in machine code.
Not here: branches and loops with native subgraphs (subgraph_calls.py), the machine code (compiler/native/executor.ll),
nodes that can be merged (`is_joinable` and `bind_many` of their registrations), checks of operators on arrays
(ops/compute_wrappers.py).

The overhead of one more call exceeds the time of a small node. The steps of single nodes are kept, because input checks
and observers run node by node.

A kernel's guard, or a subgraph that is not connected, stops the native call at some step. Python resumes there: the
`resume` of that step completes it, and the remaining steps run one by one. Steps before it do not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...compiler.native.executor import Executor, Step, StepError
from ...compiler.native.image import runs_images
from ...compiler.native.workers import functions
from ...core.errors import PermissionDeniedError
from ...core.lazy_imports import later
from .dynamic_shapes import nothing
from .node import Context, Node
from .ownership import DirectInvocation
from .tensor import Tensor

if TYPE_CHECKING:
    from ...ops import compute_wrappers
else:  # not needed by the first answer of a model
    compute_wrappers = later("...ops.compute_wrappers", __package__)


def _watched(node: Node) -> list[Tensor]:
    """Return the inputs that the node must not write: no variables, and none that shares memory with an output."""
    outs = [t.array for t in node.tensors_out if t.array is not None]
    return [
        t
        for t in node.tensors_in
        if t is not None
        and t.array is not None
        and not t.is_variable
        and not any(np.may_share_memory(t.array, out) for out in outs)
    ]


def run_watched(node: Node, step: Callable[[], Any]) -> None:
    """Run one node. Raises PermissionDeniedError with operator and tensor if it writes an input."""
    before = [(t, compute_wrappers.fingerprint(t.array)) for t in _watched(node)]
    step()
    for t, was in before:
        if compute_wrappers.fingerprint(t.array) != was:
            raise PermissionDeniedError(
                op=node.name,
                what=f"invoke writes its input {t.name!r}",
                found="other elements after the call than before",
                wanted="inputs as they were: other nodes read them too",
                do="write to node.outputs or node.temporaries",
            )


def run_observed(node: Node, step: Callable[[], Any], observer: Callable[[Node, bool], None]) -> None:
    """Run one node between two calls of an observer: `observer(node, False)` and `observer(node, True)`."""
    observer(node, False)
    step()
    observer(node, True)


class NativeStep(Protocol):
    """A step that an executor can run.

    alone: whether the executor is faster than a Python call even for this step alone.

    A step that can continue in machine code also has `proceed()`, which runs it, and `follow()`, which continues it
    after the executor stopped in it. Both return whether that was possible, and have no effect if not.
    """

    alone: bool

    @property
    def executor(self) -> Executor: ...

    def is_ready(self) -> bool:
        """Return whether the executor may run now; otherwise call the step."""
        ...

    def resume(self) -> None:
        """Finish in Python the step in which the executor stopped."""

    def __call__(self) -> None: ...


class Chain:
    """Native steps in order, run by one executor. failed: the index of the step that raised last."""

    __slots__ = ("_next", "_run", "_steps", "executor", "failed", "nodes")

    def __init__(self, nodes: Sequence[Node], steps: Sequence[NativeStep]) -> None:
        self.nodes, self._steps, self.failed = list(nodes), list(steps), 0
        self._next = 0  # the step to resume with, if steps after the stopped one have run
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
        """Return whether every step is ready."""
        return all(step.is_ready() for step in self._steps)

    def resume(self) -> None:
        """Resume from the step that stopped."""
        if self._next:
            index, self._next = self._next, 0
            self._rest(index)
            return
        first = self.failed = self.executor.failed if len(self._steps) > 1 else 0
        self._steps[first].resume()
        self._rest(first + 1)

    def _rest(self, first: int) -> None:
        for index in range(first, len(self._steps)):
            self.failed = index
            self._steps[index]()

    @property
    def direct(self) -> DirectInvocation | None:
        """The native call alone; None while a step is not ready."""
        if not self.is_ready():
            return None
        return DirectInvocation(self.executor.entry, self._recover, follow=self._follow)

    def _follow(self) -> bool:
        """Continue the stopped step and its successors in machine code; return whether all have run."""
        self._next = 0  # an interrupt may have kept it set
        first = self.executor.failed if len(self._steps) > 1 else 0
        follow = getattr(self._steps[first], "follow", None)
        if follow is None or not follow():
            return False
        for index in range(first + 1, len(self._steps)):
            proceed = getattr(self._steps[index], "proceed", None)
            if proceed is None or not proceed():
                self._next = index
                return False
        return True

    def _recover(self, status: int) -> None:
        try:
            self.executor.check(status)
        except StepError:
            self.resume()


def copy_rows(copies: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray | None:
    """Return copies (destination, source) as rows for the executor; None if machine code cannot do one of them."""
    rows: list[tuple[int, int, int]] = []
    for to, source in copies:
        plain = to.flags.c_contiguous and source.flags.c_contiguous and to.dtype.kind != "O"
        if not plain or to.nbytes != source.nbytes or to.dtype != source.dtype:
            return None
        rows.append((_address(to), _address(source), to.nbytes))
    return np.array(rows, np.int64).reshape(-1, 3)


def _address(array: np.ndarray) -> int:
    address: Any = array.__array_interface__["data"][0]
    return int(address)


def joined(
    context: Context,
    plan: Sequence[Node],
    steps: Sequence[Callable[[], Any]],
    deferred: Container[int],
    called: bool = False,
) -> list[Callable[[], Any]]:
    """Return the steps with runs of nodes merged into one call each, and without folded nodes.

    plan, steps: nodes and their steps, in the same order. deferred: numbers of nodes that may be prepared during a run;
    these stay separate. called: whether a node of another subgraph runs these steps, in machine code if they form one
    chain.
    """

    def kind(i: int) -> Callable[..., Any] | None:
        """Return the function that merges a node with its neighbors; None for a node that runs separately."""
        registration: Any = plan[i].registration
        bind_many = getattr(registration, "bind_many", None)
        return bind_many if bind_many and plan[i].number not in deferred and registration.is_joinable(plan[i]) else None

    bound: list[tuple[Node, Callable[[], Any]]] = []
    for bind_many, group in groupby(range(len(plan)), kind):
        indices = list(group)
        if bind_many is None or len(indices) == 1:
            bound += [(plan[i], steps[i]) for i in indices if steps[i] is not nothing]
        else:
            bound.append((plan[indices[0]], bind_many(context, [plan[i] for i in indices])))
    return _chained(bound, called) if runs_images() else [step for _, step in bound]


def _is_native(step: object) -> bool:
    """Return whether a step is a NativeStep, by what its class has: a check by the protocol takes 20 us."""
    return all(hasattr(type(step), name) for name in ("alone", "is_ready", "resume"))


def _chained(steps: Sequence[tuple[Node, Any]], called: bool) -> list[Callable[[], Any]]:
    """Return the steps with native ones merged into chains: neighbors, and single steps that benefit."""
    if called and not steps:
        return [Chain((), ())]
    merged: list[Callable[[], Any]] = []
    for native, group in groupby(steps, lambda entry: _is_native(entry[1])):
        entries = list(group)
        nodes, members = [node for node, _ in entries], [step for _, step in entries]
        if native and (called or len(members) > 1 or members[0].alone):
            merged.append(Chain(nodes, members))
        else:
            merged += members
    return merged
