"""Execute nodes with run-time shapes by plans specialised for the shapes of earlier runs.

Lives here: `SpecialisedRegistration`, its step, and `Specialisation`, a plan for the sizes of one run.
Not here: which nodes (eligibility.py), the plans' graphs (partition_plans.py), plans for sizes that are known
(plan_registration.py).

A specialisation is a plan for the sizes that there were at a run. Guards among its steps compare what those sizes
followed from with what it was then; where they differ the plan stops, before it has had an effect, and another
specialisation runs, or the nodes one by one. Sizes that come for a second time get a plan of their own. So a model
whose sizes stay runs without Python, one whose sizes change among a few with some microseconds of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compiler.background import Job
from ...compiler.loops.plans import LoopPlan
from ...compiler.native.executor import Executor, Step, StepFailed
from ...compiler.native.workers import functions, raise_pending
from ...core.errors import InternalError, ResourceExhaustedError
from ..registration import Registration
from ..runtime.memory import check_bytes
from ..runtime.node import Context, Node
from ..runtime.ownership import DirectInvocation
from ..runtime.tensor import DYNAMIC, Tensor
from .eligibility import Seen, seen_by
from .plan_registration import address, one_by_one, pack_and_release, profile

Shapes = tuple[tuple[int, ...], ...]

MOST_KEPT = 32  # specialisations of a node
MOST_BYTES = 1 << 28  # that they hold together, if there are several
MOST_MADE = 128  # ever
MOST_MISSED = 128  # sizes without a plan that are remembered


class Specialised(NamedTuple):
    """A plan for the sizes of a run. assumed: external tensors with the elements that it was built for; counted:
    tensors with memory for the maximum number of rows."""

    plan: LoopPlan
    assumed: dict[int, np.ndarray]
    counted: Sequence[int]


class Specialisation:
    """A plan bound to its own memory: its arena, and the node's outputs of these sizes."""

    __slots__ = ("_assumed", "_counts", "_given", "_node", "_outputs", "_running", "_used", "nbytes", "shapes")

    def __init__(self, specialised: Specialised, context: Context, node: Node) -> None:
        """Bind the plan. Raises ResourceExhaustedError."""
        graph, tensors = specialised.plan.graph, node.subgraph.tensors
        self.nbytes = specialised.plan.arena + sum(c.nbytes for c in specialised.plan.constants)
        self.nbytes += sum(b.size * b.dtype.size for b in graph.outputs)
        others = sum(usage.activations for usage in node.subgraph.memory_usage.family)
        check_bytes(self.nbytes + others, "the arena of compiled operators")
        names = {b.name: b for b in (*graph.inputs, *graph.outputs)}
        self._node = node
        self.shapes = shapes_of(node)
        read = [t for t in node.tensors_in if t is not None and t.constant is None]
        self._given = [(t, names.get(f"t{t.index}")) for t in read]  # the node's own tensors that it reads and writes
        self._assumed = [(tensors[i], elements.tobytes()) for i, elements in specialised.assumed.items()]
        self._outputs: list[tuple[Tensor, np.ndarray]] = []
        self._counts: dict[int, np.ndarray] = {}
        connected = {}
        for index in specialised.counted:
            count = self._counts[index] = np.full(2, -1, np.int64)
            connected[names[f"t{index}.count"]] = count.ctypes.data
        for t in node.tensors_out:
            b = names[f"t{t.index}"]
            if t.kind == DYNAMIC:
                own = np.zeros(b.shape, b.dtype.np)
                connected[b] = own.ctypes.data
                self._outputs.append((t, own))
            else:
                self._given.append((t, b))
        connected_ids = {id(b) for b in (*connected, *(b for _, b in self._given))}
        for b in (*graph.inputs, *graph.outputs):
            if id(b) not in connected_ids:
                raise InternalError(op=graph.name, what=f"nothing is connected to {b!r}, in a plan for a run's sizes")
        pack_and_release(specialised.plan, node)
        self._running = specialised.plan.bind(context.recommended_num_threads)
        self._running.connect(connected)
        self._used: list[tuple[Tensor, Any]] = []

    def matches(self) -> bool:
        """Return whether the node's inputs, whose shapes it supports, have the assumed elements."""
        return all(t.array is not None and t.array.tobytes() == was for t, was in self._assumed)

    def is_connected(self) -> bool:
        """Return whether it reads the node's current tensors, and its results are connected to them."""
        for t, array in self._used:
            if t.array is not array:
                return False
        return bool(self._used)

    def run(self, context: Context) -> bool:
        """Run on the node's current tensors; return whether all assumptions hold, so that its results are the
        node's."""
        current = [(t, t.array) for t, _ in self._given]
        if not self._used or any(array is not was for (_, array), (_, was) in zip(current, self._used)):
            self._running.connect({b: address(t) for t, b in self._given if b is not None})
        if context.events is not None:
            try:
                profile(self._running, context)
                status = 0
            except StepFailed:
                status = 1
        else:
            status = self._running.executor.entry()
        if status:
            raise_pending()
            if not self.has_counted:
                return False
        self._used = current
        self._give()
        return True

    @property
    def has_counted(self) -> bool:
        """Whether a stopped plan only reports another number of rows than before."""
        return bool(self._counts) and all(count[0] >= 0 for count in self._counts.values())

    def counted(self) -> None:
        """Set the counted rows as the node's results."""
        self._used = self._used[: len(self._given)]
        self._give()

    def _give(self) -> None:
        moved = []
        for t, own in self._outputs:
            count = self._counts.get(t.index)
            array = own if count is None else own[: int(count[0])]
            if t.array is not array:
                if t.shape != array.shape:
                    t.set_shape(array.shape)
                t.bind(array)
                moved.append(t)
            self._used.append((t, array))
        for count in self._counts.values():  # last, so that an interrupt leaves a consistent state
            count[1] = count[0]
        self._node.subgraph.update_addresses(moved)

    @property
    def executor(self) -> Executor:
        """Executor of the plan."""
        return self._running.executor


def shapes_of(node: Node) -> Shapes:
    """Return the shapes of a node's inputs that are not constants."""
    return tuple([t.shape for t in node.tensors_in if t is not None and t.constant is None])


class SpecialisedRegistration(Registration):
    """Run nodes by plans for their sizes. first: the plan for the run before; again: builds one for the sizes observed
    in another run, returns the job that compiles kernels for it, or None if no plan is possible."""

    __slots__ = ("_all", "_dynamic", "_job", "_left", "_missed", "again", "first", "kept")

    follows_shapes = True

    def __init__(self, first: Specialised, again: Callable[[Node, Seen], Specialised | Job | None]) -> None:
        super().__init__(None, self._free, self._prepare, self._invoke)
        self.first: Specialised | None = first
        self.again = again
        self._all: list[Specialisation] = []  # the most recently used is last
        self.kept: dict[Shapes, list[Specialisation]] = {}
        self._left = MOST_MADE
        self._missed: OrderedDict[Any, bool] = OrderedDict()  # whether a plan is built when they recur
        self._job: Job | None = None
        self._dynamic: list[int] | None = None

    def _prepare(self, context: Context, node: Node) -> None:
        if self._dynamic is None:
            self._dynamic = [i for i, t in enumerate(node.tensors_out) if t.kind == DYNAMIC]
            if self.first is not None:
                self._keep(self.first, context, node)
        for i in self._dynamic:
            if node.tensors_out[i].kind != DYNAMIC:
                context.set_tensor_to_dynamic(node.outputs[i])

    def bind(self, context: Context, node: Node) -> SpecialisedStep:
        return SpecialisedStep(self, context, node)

    def _invoke(self, context: Context, node: Node) -> None:
        SpecialisedStep(self, context, node)()

    def _free(self, context: Context, _: Any) -> None:
        self.first, self.kept, self._all = None, {}, []

    def missed(self, context: Context, node: Node, seen: Seen) -> None:
        """Build a plan after a run without one, if these sizes have occurred before."""
        first = self.first
        if first is None or self._left <= 0 or (self._job is not None and not self._job.done):
            return
        inside = tuple(t.shape for inner in node.replaced for t in inner.tensors_out)
        values = tuple(seen[i].tobytes() for i in sorted(first.assumed) if i in seen)
        key = (shapes_of(node), inside, values)
        if key not in self._missed:
            self._missed[key] = True
            if len(self._missed) > MOST_MISSED:
                self._missed.popitem(last=False)
        elif self._missed[key]:
            self._left -= 1
            specialised = self.again(node, seen)
            if isinstance(specialised, Specialised):
                del self._missed[key]
                self._keep(specialised, context, node)
            elif specialised is None:
                self._missed[key] = False
            else:
                self._job = specialised

    def _keep(self, specialised: Specialised, context: Context, node: Node) -> None:
        """Bind a plan; without memory for it, the nodes run one by one."""
        try:
            one = Specialisation(specialised, context, node)
        except ResourceExhaustedError:
            return
        self._all.append(one)
        while len(self._all) > MOST_KEPT or (len(self._all) > 1 and sum(k.nbytes for k in self._all) > MOST_BYTES):
            self._all.pop(0)
        self.kept = {}
        for each in self._all:
            self.kept.setdefault(each.shapes, []).append(each)

    def chosen(self, one: Specialisation) -> None:
        """Mark a plan as most recently used."""
        self._all.remove(one)
        self._all.append(one)


class SpecialisedStep:
    """A run of a node by the specialisation that ran last, by another one, or by the nodes that it replaces."""

    __slots__ = ("_context", "_current", "_node", "_registration", "executor")

    alone = True

    def __init__(self, registration: SpecialisedRegistration, context: Context, node: Node) -> None:
        self._registration, self._context, self._node = registration, context, node
        self._current: Specialisation | None = None
        self.executor = Executor([Step(functions().nested, [0], 1)], inner=context.recommended_num_threads)

    def is_ready(self) -> bool:
        """Return whether the executor may run: the last plan reads and writes the current tensors.

        Without a last plan, the executor stops at once.
        """
        return self._current is None or self._current.is_connected()

    def __call__(self) -> None:
        if self._current is None or self._context.events is not None or not self.is_ready():
            self._choose(None)
        elif status := self.executor.entry():
            self._recover(status)

    def resume(self) -> None:
        """Continue after the executor was stopped, by a guard or for lack of a plan."""
        if self.is_ready():
            self._stopped()
        else:
            self._choose(None)

    @property
    def direct(self) -> DirectInvocation | None:
        """The run without further checks."""
        return DirectInvocation(self.executor.entry, self._recover, follow=self.follow) if self.is_ready() else None

    def proceed(self) -> bool:
        """Run by a plan for these sizes, if there is one."""
        if self._current is None or not self.is_ready():
            return self._other(None)
        return not self.executor.entry() or self.follow()

    def follow(self) -> bool:
        """Continue a stopped run by the count or by another plan; return whether there is one."""
        raise_pending()
        current = self._current
        if current is not None and current.has_counted:
            current.counted()
            return True
        return self._other(current)

    def _recover(self, status: int) -> None:
        raise_pending()
        self._stopped()

    def _stopped(self) -> None:
        current = self._current
        if current is not None and current.has_counted:
            current.counted()
        else:
            self._choose(current)

    def _other(self, tried: Specialisation | None) -> bool:
        """Run by a plan for these sizes, if there is one. tried: a plan to exclude."""
        self._become(None)
        registration, node = self._registration, self._node
        for one in registration.kept.get(shapes_of(node), ()):
            if one is not tried and one.matches() and one.run(self._context):
                registration.chosen(one)
                self._become(one)
                return True
        return False

    def _choose(self, tried: Specialisation | None) -> None:
        """Run by a plan for these sizes, or the nodes one by one. tried: a plan to exclude."""
        if self._other(tried):
            return
        registration, node = self._registration, self._node
        observed: list[Seen] = []
        one_by_one(node, lambda: observed.append(seen_by(node.replaced)))
        node.subgraph.update_addresses(node.tensors_out)
        registration.missed(self._context, node, observed[0])

    def _become(self, one: Specialisation | None) -> None:
        """Set the plan that the executor runs from now on."""
        self._current = one
        self.executor.words[0][0] = 0 if one is None else one.executor.address
