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
from ...compiler.native.interrupts import raise_pending
from ...compiler.native.workers import functions
from ...core.errors import InternalError, ResourceExhaustedError
from ..registration import Registration
from ..runtime.direct_invocation import DirectInvocation
from ..runtime.memory import check_bytes
from ..runtime.node import Context, Node
from ..runtime.tensor import DYNAMIC, Tensor
from .eligibility import Seen, seen_by
from .plan_registration import address, one_by_one, profile
from .weight_eviction import pack_and_release

Shapes = tuple[tuple[int, ...], ...]

MOST_KEPT = 32  # specialisations of a node
MOST_BYTES = 1 << 28  # that they hold together, if there are several
MOST_MADE = 128  # ever
MOST_MISSED = 128  # sizes without a plan that are remembered


class Specialised(NamedTuple):
    """A plan for the sizes of a run. assumed: tensors from outside, and the elements that it was made for; counted:
    tensors that have memory for more rows than there may be."""

    plan: LoopPlan
    assumed: dict[int, np.ndarray]
    counted: Sequence[int]


class Specialisation:
    """A plan bound to memory of its own: its arena, and the node's outputs of these sizes."""

    __slots__ = ("_assumed", "_counts", "_given", "_node", "_outputs", "_running", "_used", "nbytes", "shapes")

    def __init__(self, made: Specialised, context: Context, node: Node) -> None:
        """Raises ResourceExhaustedError."""
        graph, tensors = made.plan.graph, node.subgraph.tensors
        self.nbytes = made.plan.arena + sum(c.nbytes for c in made.plan.constants)
        self.nbytes += sum(b.size * b.dtype.size for b in graph.outputs)
        others = sum(held.nbytes for held in node.subgraph.memory_usage.family)
        check_bytes(self.nbytes + others, "the arena of compiled operators")
        names = {b.name: b for b in (*graph.inputs, *graph.outputs)}
        self._node = node
        self.shapes = shapes_of(node)
        self._given = [(t, names.get(f"t{t.index}")) for t in _read(node)]  # what it reads and writes of the node's own
        self._assumed = [(tensors[i], elements.tobytes()) for i, elements in made.assumed.items()]
        self._outputs: list[tuple[Tensor, np.ndarray]] = []
        self._counts: dict[int, np.ndarray] = {}
        connected = {}
        for index in made.counted:
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
        known = {id(b) for b in (*connected, *(b for _, b in self._given))}
        for b in (*graph.inputs, *graph.outputs):
            if id(b) not in known:
                raise InternalError(op=graph.name, what=f"nothing is connected to {b!r}, in a plan for a run's sizes")
        pack_and_release(made.plan, node)
        self._running = made.plan.bind(context.recommended_num_threads)
        self._running.connect(connected)
        self._used: list[tuple[Tensor, Any]] = []

    def matches(self) -> bool:
        """Whether the node's inputs, whose shapes it is for, are as it assumes."""
        return all(t.array is not None and t.array.tobytes() == was for t, was in self._assumed)

    def is_connected(self) -> bool:
        """Whether it reads the node's tensors as they are, and its results are theirs."""
        for t, array in self._used:
            if t.array is not array:
                return False
        return bool(self._used)

    def run(self, context: Context) -> bool:
        """Run on the node's tensors as they are; whether all it assumes is so, and its results are theirs now."""
        given = [(t, t.array) for t, _ in self._given]
        if not self._used or any(array is not was for (_, array), (_, was) in zip(given, self._used)):
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
        self._used = given
        self._give()
        return True

    @property
    def has_counted(self) -> bool:
        """Whether a plan that was stopped was so only to say that there are more or less rows than before."""
        return bool(self._counts) and all(count[0] >= 0 for count in self._counts.values())

    def counted(self) -> None:
        """Let what has been counted be the node's."""
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
        for count in self._counts.values():  # last, so that an interrupt leaves nothing that is half known
            count[1] = count[0]
        self._node.subgraph.update_addresses(moved)

    @property
    def executor(self) -> Executor:
        """What runs the plan."""
        return self._running.executor


def _read(node: Node) -> list[Tensor]:
    return [t for t in node.tensors_in if t is not None and t.constant is None]


def shapes_of(node: Node) -> Shapes:
    """Of a node's inputs that are no constants."""
    return tuple([t.shape for t in node.tensors_in if t is not None and t.constant is None])


class SpecialisedRegistration(Registration):
    """Runs nodes by plans for their sizes. first: the plan for the run before; again: makes one for the sizes seen at
    another run, gives the job that compiles kernels for it, or None where there is to be no such plan."""

    __slots__ = ("_all", "_dynamic", "_job", "_left", "_missed", "again", "first", "kept")

    follows_shapes = True

    def __init__(self, first: Specialised, again: Callable[[Node, Seen], Specialised | Job | None]) -> None:
        super().__init__(None, self._free, self._prepare, self._invoke)
        self.first: Specialised | None = first
        self.again = again
        self._all: list[Specialisation] = []  # the one used last comes last
        self.kept: dict[Shapes, list[Specialisation]] = {}
        self._left = MOST_MADE
        self._missed: OrderedDict[Any, bool] = OrderedDict()  # whether there is to be a plan where they come again
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
        """After a run that no plan was for: make one where these sizes have come before."""
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
            made = self.again(node, seen)
            if isinstance(made, Specialised):
                del self._missed[key]
                self._keep(made, context, node)
            elif made is None:
                self._missed[key] = False
            else:
                self._job = made

    def _keep(self, made: Specialised, context: Context, node: Node) -> None:
        """Be ready to run a plan; where there is no memory for it, the nodes run one by one."""
        try:
            one = Specialisation(made, context, node)
        except ResourceExhaustedError:
            return
        self._all.append(one)
        while len(self._all) > MOST_KEPT or (len(self._all) > 1 and sum(k.nbytes for k in self._all) > MOST_BYTES):
            self._all.pop(0)
        self.kept = {}
        for each in self._all:
            self.kept.setdefault(each.shapes, []).append(each)

    def chosen(self, one: Specialisation) -> None:
        """It has run, and is kept longer than others."""
        self._all.remove(one)
        self._all.append(one)


class SpecialisedStep:
    """A run of a node by the specialisation that ran last, by another one, or by the nodes that it stands for."""

    __slots__ = ("_context", "_current", "_node", "_registration", "executor")

    alone = True

    def __init__(self, registration: SpecialisedRegistration, context: Context, node: Node) -> None:
        self._registration, self._context, self._node = registration, context, node
        self._current: Specialisation | None = None
        self.executor = Executor([Step(functions().nested, [0], 1)], inner=context.recommended_num_threads)

    def is_ready(self) -> bool:
        """Whether the executor may run: what ran last reads and writes the tensors as they are now. Where nothing did,
        the executor stops at once."""
        return self._current is None or self._current.is_connected()

    def __call__(self) -> None:
        if self._current is None or self._context.events is not None or not self.is_ready():
            self._choose(None)
        elif status := self.executor.entry():
            self._recover(status)

    def resume(self) -> None:
        """Go on where the executor was stopped, by a guard or as there is no plan."""
        if self.is_ready():
            self._stopped()
        else:
            self._choose(None)

    @property
    def direct(self) -> DirectInvocation | None:
        """The run without a look at anything else."""
        return DirectInvocation(self.executor.entry, self._recover, follow=self.follow) if self.is_ready() else None

    def proceed(self) -> bool:
        """Run by a plan for these sizes, if there is one."""
        if self._current is None or not self.is_ready():
            return self._other(None)
        return not self.executor.entry() or self.follow()

    def follow(self) -> bool:
        """After the executor has stopped, go on by what has been counted or by another plan; whether there is one."""
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
        """Run by a plan for these sizes, if there is one. tried: one that is not."""
        self._become(None)
        registration, node = self._registration, self._node
        for one in registration.kept.get(shapes_of(node), ()):
            if one is not tried and one.matches() and one.run(self._context):
                registration.chosen(one)
                self._become(one)
                return True
        return False

    def _choose(self, tried: Specialisation | None) -> None:
        """Run by a plan for these sizes, or the nodes one by one. tried: a plan that is not."""
        if self._other(tried):
            return
        registration, node = self._registration, self._node
        found: list[Seen] = []
        one_by_one(node, lambda: found.append(seen_by(node.replaced)))
        node.subgraph.update_addresses(node.tensors_out)
        registration.missed(self._context, node, found[0])

    def _become(self, one: Specialisation | None) -> None:
        """Let the executor run this plan from now on."""
        self._current = one
        self.executor.words[0][0] = 0 if one is None else one.executor.address
