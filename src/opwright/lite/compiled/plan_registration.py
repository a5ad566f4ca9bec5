"""Plans as the kernels of a delegate's nodes.

Lives here: `PlanRegistration`, `CachedPlanRegistration`, `PlanStep`: binding a plan to the interpreter's tensors,
running it, times by operator; `pack_and_release`, packing of constants during which the pages of the mapped file that
will not be read soon are dropped from the process, so that the file and its packed copy are never both in memory.
Not here: making plans (delegate.py), binding them to memory (compiler/native/executor.py).
"""

from __future__ import annotations

import contextlib
import mmap
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiler import plan_cache
from ...compiler.loops.buffers import Buffer
from ...compiler.loops.plans import LoopPlan
from ...compiler.native.executor import BoundPlan, Executor, PlanImage, StepError, StepFailed
from ...compiler.native.workers import raise_pending
from ...compiler.plan_cache import CachedPlans
from ...core.errors import FailedPreconditionError
from ...core.lazy_imports import later
from ..registration import Registration
from ..runtime.errors import node_error
from ..runtime.memory import check_bytes
from ..runtime.node import Context, Node
from ..runtime.ownership import DirectInvocation
from ..runtime.tensor import ARENA, CONSTANT, DYNAMIC, Tensor
from .fast_path import Use, Variables

if TYPE_CHECKING:
    from ...compiler.native import call_traces
else:
    call_traces = later("...compiler.native.call_traces", __package__)  # for timelines alone

IN_PLACE = frozenset({"copy_unless_shared"})
"""Kernels that read an input before they write an output, which may be in one memory (compiler/kernels/gather.py)."""
EVICTION_INTERVAL = 8 << 20  # bytes of constants packed between evictions


class PlanRegistration(Registration):
    """Run a plan instead of the nodes that it was built from. uses: the variables that it reads and writes."""

    __slots__ = ("_pairs", "_running", "_uses", "_variables", "plan")

    def __init__(self, plan: LoopPlan | PlanImage, uses: Sequence[Use] = ()) -> None:
        super().__init__(None, self._free, self._prepare, self._invoke)
        self.plan: Any = plan
        self._uses = uses
        self._variables: Any = None
        self._running: Any = None  # a BoundPlan, once prepared
        self._pairs: list[tuple[Any, Tensor, tuple[int, ...]]] = []  # the plan's key of a tensor, and its shape

    def _prepare(self, context: Context, node: Node) -> None:
        self._pairs = self._connections(context, node)
        self._variables = Variables(node, self._uses)
        if self._running is None:
            check_bytes(self.plan.arena, "the arena of compiled operators")
            self._running = self._start(context, node)

    def _connections(self, context: Context, node: Node) -> list[tuple[Any, Tensor, tuple[int, ...]]]:
        names = self._names()
        named = [
            (names.get(f"t{t.index}"), t)
            for t in (*node.tensors_in, *node.tensors_out)
            if t is not None and not t.is_object
        ]
        return [(b, t, b.shape) for b, t in named if b is not None]

    def _names(self) -> dict[str, Buffer]:
        """Return the external buffers by name; for a variable, that of its memory."""
        return {b.name: b for b in (*self.plan.graph.outputs, *self.plan.graph.inputs)}

    def _key(self, index: int) -> Buffer | int:
        """Return the plan's key of a variable; index: of its handle."""
        return self._names()[f"t{index}"]

    def _start(self, context: Context, node: Node) -> BoundPlan:
        pack_and_release(self.plan, node)
        result: BoundPlan = self.plan.bind(context.recommended_num_threads)
        return result

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        self._connect()
        return PlanStep(self, context, node)

    def _connect(self) -> None:
        self._running.connect({key: address(t) for key, t, _ in self._pairs})

    def _attach(self, context: Context) -> bool:
        """Connect the current memory of variables; return whether the plan is for their values."""
        addresses = self._variables.addresses(context)
        if addresses is None:
            return False
        self._running.connect({self._key(index): pointer for index, pointer in addresses.items()})
        return True

    def words(self) -> tuple[Executor, list[tuple[Tensor, list[tuple[int, int]]]]] | None:
        """Return the executor of a prepared plan and the words of each external tensor's address, each with the offset
        to add, for execution without Python. None if the plan has variables."""
        running = self._running
        if running is None or self._variables:
            return None
        return running.executor, [(t, running.places(key)) for key, t, _ in self._pairs]

    def works_in_place(self, source: Tensor, target: Tensor) -> bool:
        """Return whether the plan has the same results with its output `target` in the memory of its input `source`."""
        keys = {id(t): key for key, t, _ in self._pairs}
        image: PlanImage = self._running.image
        return image.works_in_place(keys.get(id(source)), keys.get(id(target)), IN_PLACE)

    def _invoke(self, context: Context, node: Node) -> None:
        """Run nodes one by one, unless their shapes at run time are the planned ones."""
        if all(shape == t.shape for _, t, shape in self._pairs) and (not self._variables or self._attach(context)):
            self._connect()
            with contextlib.suppress(StepFailed):
                self._running.run()
                return
        one_by_one(node)

    def _free(self, context: Context, _: Any) -> None:
        self.plan = self._running = self._variables = None
        self._pairs = []


class PlanStep:
    """A run of a plan instead of a node."""

    __slots__ = ("_context", "_executor", "_node", "_registration", "_running", "_variables")

    alone = False

    def __init__(self, registration: PlanRegistration, context: Context, node: Node) -> None:
        self._registration, self._context, self._node = registration, context, node
        self._running, self._variables = registration._running, registration._variables
        self._executor = self._running.executor

    def __call__(self) -> None:
        if not (self.is_ready() or self._registration._attach(self._context)):
            one_by_one(self._node)
            return
        if self._context.events is None:
            if status := self._executor.entry():
                self._recover(status)
            return
        try:
            profile(self._running, self._context)
        except StepFailed:
            one_by_one(self._node)

    @property
    def executor(self) -> Executor:
        """Executor of the plan."""
        executor: Executor = self._executor
        return executor

    def resume(self) -> None:
        """Run the plan again: a guard stops it before it has an effect."""
        self()

    def is_ready(self) -> bool:
        """Return whether the plan's variables, if any, are at the connected addresses; checks their current ones."""
        variables = self._variables
        if not variables or variables.seen == variables.resources.changes:
            return True
        return variables.is_initialised and self._registration._attach(self._context)

    def proceed(self) -> bool:
        """Run the plan; return whether no guard has stopped it."""
        if not self.is_ready():
            return False
        if self._executor.entry():
            raise_pending()
            return False
        return True

    @property
    def direct(self) -> DirectInvocation | None:
        """The run without further checks; None if variables may have other memory by now."""
        return DirectInvocation(self._executor.entry, self._recover) if self.is_ready() else None

    def _recover(self, status: int) -> None:
        try:
            self._executor.check(status)
        except StepError:
            one_by_one(self._node)


class CachedPlanRegistration(PlanRegistration):
    """Run a cached plan. shapes: of its external tensors, by index; cached: the plans of which it is one, shared by
    interpreters of a model; key: of the cached plans.

    If a node that runs in Python sets another output shape than the recorded one, prepare removes the cached plan and
    fails.
    """

    __slots__ = ("_cache_key", "_cached", "_shapes")

    def __init__(
        self, plan: PlanImage, shapes: Mapping[int, tuple[int, ...]], uses: Sequence[Use], cached: CachedPlans, key: str
    ) -> None:
        super().__init__(plan, uses)
        self._shapes, self._cache_key = shapes, key
        self._cached: CachedPlans | None = cached

    def _free(self, context: Context, _: Any) -> None:
        super()._free(context, _)
        self._cached = None

    def _key(self, index: int) -> Buffer | int:
        return index

    def _connections(self, context: Context, node: Node) -> list[tuple[Any, Tensor, tuple[int, ...]]]:
        for t in node.tensors_in:
            if t is not None and t.index in self._shapes and t.shape != self._shapes[t.index]:
                plan_cache.forget(self._cache_key)
                raise FailedPreconditionError(
                    what=f"the kept plan is for another shape of {t.name!r}, which a node outside of it makes",
                    found=list(t.shape),
                    wanted=list(self._shapes[t.index]),
                    do="make another interpreter: the plan is dropped, and made anew",
                )
        for view in node.outputs:
            context.resize_tensor(view, self._shapes[view.index])
        return [
            (t.index, t, self._shapes[t.index])
            for t in (*node.tensors_in, *node.tensors_out)
            if t is not None and t.index in self.plan.outside
        ]

    def _start(self, context: Context, node: Node) -> BoundPlan:
        tensors = node.subgraph.tensors
        result: BoundPlan = self.plan.bind(context.recommended_num_threads, lambda index: address(tensors[index]))
        return result


def one_by_one(node: Node, look: Callable[[], Any] | None = None) -> None:
    """Run the nodes that a delegate's node replaces by the interpreter's kernels, once. These support shapes that were
    not planned, and report errors if a guard of machine code stops a plan.

    look: called after the run, while the tensors between the nodes have their elements. raises the nodes' exceptions,
    with the number of the node in the file
    """
    subgraph = node.subgraph
    results = [(t, t.kind, t.array) for t in node.tensors_out]
    planned = {t.index: array for t, kind, array in results if kind != DYNAMIC and array is not None}
    inside = [(t, t.kind, t.array) for inner in node.replaced for t in inner.tensors_out if t not in node.tensors_out]
    try:
        for t, kind, _ in inside:
            if kind == ARENA:  # its shape may be set only now
                t.set_kind(DYNAMIC)
        for inner in node.replaced:
            try:
                subgraph.init(inner)
                subgraph._run_deferred(inner, planned)
            except Exception as error:
                raise node_error(error, inner, "invoke", []) from error
        if look is not None:
            look()
        for t, _, array in results:
            if array is not None and t.index in planned and t.array is not None and t.array is not array:
                array[...] = t.array
    finally:
        for t, kind, array in (*inside, *results):
            if kind != DYNAMIC:
                t.set_kind(kind)
                t.bind(array)


def address(t: Tensor) -> int:
    """Return the address of a tensor's elements."""
    assert t.array is not None
    pointer: int = t.array.__array_interface__["data"][0]
    return pointer


def profile(running: Any, context: Context) -> None:
    """Run once, and report the time of each operator to the context: of the first operator of a fused step; or, for a
    timeline, all calls of kernels."""
    if context.calls is not None:
        before = time.perf_counter_ns()
        log = call_traces.trace_plan(running)
        context.calls.append((before, time.perf_counter_ns(), log))
        return
    for step, seconds in running.profile():
        if step.op is not None and step.op.origin:
            first, *others = (int(name.rpartition(" ")[2]) for name in step.op.origin)
            context.add_profiling_event(first, seconds)
            for number in others:
                context.add_profiling_event(number, 0.0)


def pack_and_release(plan: LoopPlan, node: Node) -> None:
    """Pack a plan's constants, and evict the pages of the file with the node's constants meanwhile."""
    mapping = next(
        (
            mapped
            for t in node.tensors_in
            if t is not None and t.kind == CONSTANT and (mapped := mapping_of(t.array)) is not None
        ),
        None,
    )
    advise: Any = getattr(mapping, "madvise", None)
    if advise is None or not hasattr(mmap, "MADV_DONTNEED"):
        plan.pack()
        return
    plan.pack(EVICTION_INTERVAL, lambda: advise(mmap.MADV_DONTNEED))
    advise(mmap.MADV_DONTNEED)


def mapping_of(array: Any) -> mmap.mmap | None:
    """Return the mapped file that contains an array's elements, if any."""
    owner = owner_of(array)
    return owner if isinstance(owner, mmap.mmap) else None


def owner_of(array: Any) -> Any:
    """Return the object whose memory an array's elements are in, such as a model's bytes; None if it is the array's."""
    owner = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner.obj if isinstance(owner, memoryview) else owner
