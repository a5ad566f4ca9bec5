"""Delegation: a subgraph's nodes replaced by a delegate's kernels, undone and done again.

Lives here: `DelegateNode`, `Delegation` (the delegates of one subgraph), `apply_delegate`, `remove_all_delegates`.
Not here: what a delegate sees (delegate_context.py), which nodes become one (compiler/partitions.py).

    apply     prepare of the delegate; each partition becomes one node at the end of the subgraph's nodes, its kernel's
              init has run; the execution plan holds it in place of those it replaces
    undo      kernels are freed, the plan is that of the file; `redo` applies the delegates again, in order
    drop      a delegate that failed is taken out; the others are applied again

A delegate that takes no dynamic tensors is undone when an input gets another shape and done again by the next
allocation, as in the official run time. There a failure takes all delegates out; here only the one that failed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.errors import FailedPreconditionError, OpError
from ...core.introspection import levels_to_user
from ..delegate import Delegate, DelegateFlags, DelegateParams, DelegateWarning
from ..registration import Registration
from .delegate_context import DelegateContext, new_plan
from .errors import also, as_base, node_error
from .node import Node, check_status
from .subgraph import Subgraph
from .tensor import DYNAMIC, Tensor

RESTORED = "Restored original execution plan after delegate application failure."
VALIDATION = "VALIDATION:"  # subgraphs of this prefix check delegates and are never delegated themselves
METHODS = ("init", "prepare", "invoke", "free")


class DelegateNode(Node):
    """A node that runs a delegate's kernel. replaced: the nodes it stands for; made: tensors that its init added."""

    __slots__ = ("delegate", "made", "params", "replaced")

    def __init__(self, subgraph: Subgraph, params: DelegateParams, registration: Registration) -> None:
        tensors, delegate = subgraph.tensors, params.delegate
        super().__init__(
            subgraph,
            len(subgraph.nodes),
            delegate.name,
            1,
            params,
            registration,
            [tensors[i] for i in params.input_tensors],
            [tensors[i] for i in params.output_tensors],
            [],
        )
        self.delegate, self.params = delegate, params
        self.replaced: Sequence[Node] = [subgraph.nodes[i] for i in params.nodes_to_replace]
        self.made: list[Tensor] = []


def _registration_of(delegate: Delegate, kernel: Any) -> Registration:
    """The registration of one new kernel. Raises TypeError for what is none."""
    if isinstance(kernel, Registration):
        return kernel
    if not callable(kernel) or (not isinstance(kernel, type) and hasattr(kernel, "invoke")):
        raise TypeError(
            f"{delegate.name}: a kernel is a DelegateKernel class, a function that makes one or a "
            f"lite.Registration, as each partition has its own; found {kernel!r}"[:300]
        )
    made = kernel()
    if isinstance(made, Registration):
        return made
    methods = {name: getattr(made, name, None) for name in METHODS}
    if not callable(methods["invoke"]):
        raise TypeError(f"{delegate.name}: a kernel has a method invoke(context, node); found {made!r}"[:300])
    free = methods["free"]

    def init(context: Any, params: Any) -> Any:
        if methods["init"] is not None:
            check_status(methods["init"](context, params), delegate.name, "init")
        return made

    return Registration(
        init, None if free is None else lambda context, _: free(context), methods["prepare"], methods["invoke"]
    )


class DelegateServices(NamedTuple):
    """What the delegates of all subgraphs of an interpreter share. metadata: the bytes of a name; check: raises where
    a node of the plan, or of a subgraph it calls, has no kernel; skipped: subgraphs that a delegate runs itself."""

    metadata: Callable[[str], Any]
    check: Callable[[Subgraph], None]
    skipped: dict[int, set[int]]


class Delegation:
    """The delegates of one subgraph."""

    def __init__(self, subgraph: Subgraph, around: DelegateServices) -> None:
        self.subgraph, self.around = subgraph, around
        self.original = list(subgraph.execution_plan)
        subgraph.execution_plan = list(self.original)
        self.count = len(subgraph.nodes)
        self.applied: list[tuple[Delegate, bool]] = []  # with whether its failure is an error or a warning
        self.undone = False
        self.late: Any = None  # a delegate that takes nodes once they are prepared

    # ---- apply ------------------------------------------------------------------------------------------------------

    def apply(self, delegate: Delegate, strict: bool) -> None:
        """Let a delegate claim nodes. Where it fails the plan is as before. Raises OpErrors that are RuntimeErrors."""
        self.redo()
        subgraph, flags = self.subgraph, DelegateFlags(delegate.flags)
        dynamic = bool(flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS)
        if not dynamic or flags & DelegateFlags.REQUIRE_PROPAGATED_SHAPES:
            self.propagate()
        if not dynamic:
            self._refuse_dynamic(delegate)
        plan, count = subgraph.execution_plan, len(subgraph.nodes)
        context = self._context(delegate)
        try:
            check_status(delegate.prepare(context), delegate.name, "prepare")
        except Exception as error:
            subgraph.execution_plan = plan
            self._release(count)
            raise self._failed(delegate, error, context.reported) from error
        finally:
            context.close()
        if len(subgraph.nodes) > count:
            self._drop_prepared(subgraph.nodes[count:])
            subgraph.unready()
        self.applied.append((delegate, strict))

    def _context(self, delegate: Delegate) -> DelegateContext:
        context = DelegateContext(
            self.subgraph,
            delegate,
            lambda kernel, *how: self._replace(context, kernel, *how),
            self.around.skipped.setdefault(id(delegate), set()).add,
            self.around.metadata,
        )
        return context

    def claim(self, delegate: Any) -> bool:
        """Let a delegate claim nodes that are prepared, by its method `take`; whether it took any. What the nodes had
        prepared is dropped. A failure leaves all as it was, and is the delegate's `failure`."""
        subgraph = self.subgraph
        plan, count = subgraph.execution_plan, len(subgraph.nodes)
        context = self._context(delegate)
        try:
            delegate.claim_after_prepare(context)
            made: list[Any] = subgraph.nodes[count:]
            for node in made:
                subgraph.prepare(node)
        except BaseException as error:
            subgraph.execution_plan = plan
            self._release(count)
            if not isinstance(error, Exception):
                raise
            delegate.failure = error
            return False
        finally:
            context.close()
        self._drop_prepared(made)
        return bool(made)

    def _drop_prepared(self, made: Sequence[Any]) -> None:
        """Drop what nodes had prepared that delegates' nodes run now."""
        for node in made:
            for inner in node.replaced:
                self.subgraph.drop_tensors(inner.added)
                inner.added, inner.temporaries, inner.kernel, inner.prepared_for = [], [], None, None

    def claim_late(self) -> None:
        """What `take` does, for the delegate that asked for it when it was applied."""
        delegate, self.late = self.late, None
        if delegate is not None:
            self.claim(delegate)

    def propagate(self) -> None:
        """Work out the shapes of the graph as the file has it, and which tensors are dynamic.

        A node that has no kernel, or whose kernel refuses it, keeps the shapes of the file: a delegate may take it.
        """
        subgraph = self.subgraph
        subgraph.unready()

        def prepare(node: Node) -> None:
            if node.registration is None:
                return
            try:
                subgraph.init(node)
                subgraph.prepare(node)
            except OpError:
                return  # if no delegate takes the node, the allocation says why it cannot run

        subgraph.prepare_all(self.original, prepare)

    def _refuse_dynamic(self, delegate: Delegate) -> None:
        for node in self.subgraph.execution_plan:
            for t in (*node.tensors_in, *node.tensors_out):
                if t is not None and t.kind == DYNAMIC:
                    what = "Attempting to use a delegate that only supports static-sized tensors with a graph that has "
                    what += f"dynamic-sized tensors (tensor#{t.index} is a dynamic-sized tensor)."
                    raise also(FailedPreconditionError, RuntimeError)(
                        op=delegate.name,
                        what=what,
                        found=f"{t!r} of node {node.number} ({node.name})",
                        wanted="DelegateFlags.ALLOW_DYNAMIC_TENSORS, or a graph of known shapes",
                        do='SimpleDelegate(dynamic_tensors="split") leaves such nodes to the interpreter',
                    )

    def _replace(
        self,
        context: DelegateContext,
        kernel: Any,
        params: Sequence[DelegateParams],
        arrange: Callable[[Sequence[Node]], list[Node]] | None = None,
    ) -> None:
        subgraph = self.subgraph
        made: list[Node] = []
        for p in params:
            node = DelegateNode(subgraph, p, _registration_of(p.delegate, kernel))
            subgraph.nodes.append(node)
            made.append(node)
            before = len(subgraph.tensors)
            subgraph.context.begin(node)
            init: Any = node.registration.init  # type: ignore[union-attr]
            try:
                node.user_data = None if init is None else init(context, p)
            except Exception as error:
                raise node_error(error, node, "init", subgraph.context.reported) from error
            finally:
                node.made = subgraph.tensors[before:]
            node.inited = True
        if arrange is not None:
            subgraph.execution_plan = arrange(made)
        elif made:
            subgraph.execution_plan = new_plan(subgraph.execution_plan, params, made)

    def _failed(self, delegate: Delegate, error: Exception, said: list[str]) -> OpError:
        where = "" if self.subgraph.index == 0 else f" of subgraph {self.subgraph.index}"
        last = "".join(f"\n  said    {line}" for line in said if line not in str(error))
        last += f"\nDelegate {delegate.name} failed to prepare{where}.\n{RESTORED}"
        if isinstance(error, OpError):
            return also(type(error), RuntimeError)(error.message + last)
        return also(OpError, RuntimeError)(f"{delegate.name}: {type(error).__name__}: {error}{last}")

    def inside(self, t: Tensor) -> str | None:
        """The words for where a tensor is that only the nodes of a partition touch."""
        if any(t in (*node.tensors_in, *node.tensors_out) for node in self.subgraph.execution_plan):
            return None
        for node in self.subgraph.nodes[self.count :]:
            if any(t in n.tensors_out for n in node.replaced):
                return f"{t!r} inside node {node.number}, which delegate {node.name} runs"
        return None

    # ---- undo and redo ----------------------------------------------------------------------------------------------

    def _release(self, count: int) -> None:
        """Free the delegates' nodes from this one on."""
        subgraph = self.subgraph
        gone: Any = subgraph.nodes[count:]
        for error in subgraph.free(gone):
            warnings.warn(str(error), DelegateWarning, stacklevel=levels_to_user())
        subgraph.drop_tensors([t for node in gone for t in (*node.made, *node.added)])
        del subgraph.nodes[count:]

    def undo(self) -> None:
        """The plan of the file, until `redo`."""
        if not self.undone:
            self.subgraph.execution_plan = list(self.original)
            self._release(self.count)
            self.subgraph.unready()
            self.undone = bool(self.applied)

    def redo(self) -> None:
        """Apply the delegates again if they were undone. One that fails is left out: an error or a warning."""
        while self.undone:
            self.undone = False
            todo, self.applied = self.applied, []
            for delegate, strict in todo:
                try:
                    self.apply(delegate, strict)
                except OpError as error:
                    self.applied = todo
                    self.drop(delegate, error)
                    break

    def drop(self, delegate: Delegate, error: OpError) -> None:
        """Take out a delegate that failed: raises its error, or warns, as was asked for when it was given."""
        strict = any(s for d, s in self.applied if d is delegate)
        self.undone = False
        self.undo()
        self.applied = [entry for entry in self.applied if entry[0] is not delegate]
        self.undone = bool(self.applied)
        if strict:
            raise error
        warn_left_out(delegate, error)

    def withdraw(self, delegate: Delegate) -> None:
        """Take a delegate out. What others have claimed stays theirs where it claimed nothing; else all is undone."""
        taken = self.has(delegate)
        self.late = None
        if taken:
            self.undo()
        self.applied = [entry for entry in self.applied if entry[0] is not delegate]
        if taken:
            self.undone = bool(self.applied)

    def has(self, delegate: Delegate) -> bool:
        """Whether the delegate runs any node."""
        return any(node.delegate is delegate for node in self.subgraph.nodes[self.count :])

    def resized(self) -> None:
        """An input gets another shape: delegates that take no dynamic tensors, or plan anew, are undone."""
        if any(d.anew or not DelegateFlags(d.flags) & DelegateFlags.ALLOW_DYNAMIC_TENSORS for d, _ in self.applied):
            self.undo()

    def plan(self, once: Callable[[], None]) -> None:
        """Allocate with the delegates applied; without those whose kernel's prepare fails."""
        while True:
            self.redo()
            if any(DelegateFlags(d.flags) & DelegateFlags.REQUIRE_PROPAGATED_SHAPES for d, _ in self.applied):
                self.propagate()
            try:
                once()
                return
            except OpError as error:
                delegate = getattr(error, "delegate", None)
                if delegate is None:
                    raise
                self.drop(
                    delegate, as_base(also(type(error), RuntimeError)(f"{error.message}\n{RESTORED}"), RuntimeError)
                )
            self.redo()
            self.around.check(self.subgraph)


def warn_left_out(delegate: Delegate, error: OpError) -> None:
    """Say that the interpreter goes on without a delegate, at the line of the user's program that is running."""
    text = f"delegate {delegate.name} is left out, the model runs without it: {error.message}"
    warnings.warn(text, DelegateWarning, stacklevel=levels_to_user())


def apply_delegate(subgraphs: Sequence[Subgraph], delegate: Any, around: DelegateServices, strict: bool) -> None:
    """Let a delegate claim nodes of every subgraph that is not for validation or skipped; of none where one fails.

    strict: a failure is an error, now or when its kernels are prepared; else a warning.
    raises TypeError for what is no Delegate; OpErrors that are RuntimeErrors
    """
    if not isinstance(delegate, Delegate):
        raise TypeError(f"a delegate is an object of a class derived from lite.Delegate, found {delegate!r}"[:300])
    try:
        for subgraph in subgraphs:
            if subgraph.name.startswith(VALIDATION) or subgraph.index in around.skipped.get(id(delegate), ()):
                continue
            if subgraph.delegation is None:
                subgraph.delegation = Delegation(subgraph, around)
            was_ready = subgraph.ready
            subgraph.delegation.apply(delegate, strict)
            if was_ready:
                subgraph.allocate(subgraph.preserve_all)
    except OpError as error:
        for subgraph in subgraphs:
            found: Delegation | None = subgraph.delegation
            if found is not None and any(d is delegate for d, _ in found.applied):
                found.undo()
                found.applied = [entry for entry in found.applied if entry[0] is not delegate]
                found.undone = bool(found.applied)
        if strict:
            raise
        warn_left_out(delegate, error)


def remove_all_delegates(subgraphs: Sequence[Subgraph]) -> None:
    """Free all kernels and run the model as the file has it; tensors must be allocated again."""
    for subgraph in subgraphs:
        if subgraph.delegation is not None:
            if subgraph.delegation.applied:
                subgraph.delegation.undo()
            subgraph.delegation = None
