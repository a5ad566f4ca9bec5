"""Delegation: replacement of a subgraph's nodes by a delegate's kernels, and its reversal.

Lives here: `DelegateNode`, `Delegation` (the delegates of one subgraph), `apply_delegate`, `remove_all_delegates`.
Not here: the view of a subgraph for delegates (delegate_context.py), the partitioner (compiler/regions.py).

    apply     call the delegate's prepare; each partition becomes one node, appended to the subgraph's nodes after its
              kernel's init has run, and replaces the partition's nodes in the execution plan
    undo      free the kernels and restore the file's plan; `redo` applies the delegates again, in order
    drop      remove a delegate that failed; the others are applied again

A delegate without support for dynamic tensors is undone when an input gets another shape and applied again by the next
allocation, as in the official run time. There a failure removes all delegates; here only the failing one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.errors import FailedPreconditionError, OpError, also
from ...core.introspection import levels_to_user
from ..delegate import Delegate, DelegateFlags, DelegateParams, DelegateWarning
from ..registration import Registration
from .delegate_context import DelegateContext, new_plan
from .errors import as_base, node_error
from .node import Node, check_status
from .subgraph import Subgraph
from .tensor import DYNAMIC, Tensor

RESTORED = "Restored original execution plan after delegate application failure."
VALIDATION = "VALIDATION:"  # name prefix of subgraphs that validate delegates and are never delegated
METHODS = ("init", "prepare", "invoke", "free")


class DelegateNode(Node):
    """A node that runs a delegate's kernel. replaced: the nodes it replaces. made: tensors that its init added."""

    __slots__ = ("added_tensors", "delegate", "params", "replaced")

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
        self.added_tensors: list[Tensor] = []


def _registration_of(delegate: Delegate, kernel: Any) -> Registration:
    """Return the registration of a new kernel. Raises TypeError for an invalid kernel."""
    if isinstance(kernel, Registration):
        return kernel
    if not callable(kernel) or (not isinstance(kernel, type) and hasattr(kernel, "invoke")):
        raise TypeError(
            f"{delegate.name}: a kernel is a DelegateKernel class, a function that makes one or a "
            f"lite.Registration, as each partition has its own; found {kernel!r}"[:300]
        )
    instance = kernel()
    if isinstance(instance, Registration):
        return instance
    methods = {name: getattr(instance, name, None) for name in METHODS}
    if not callable(methods["invoke"]):
        raise TypeError(f"{delegate.name}: a kernel has a method invoke(context, node); found {instance!r}"[:300])
    free = methods["free"]

    def init(context: Any, params: Any) -> object:
        if methods["init"] is not None:
            check_status(methods["init"](context, params), delegate.name, "init")
        return instance

    return Registration(
        init, None if free is None else lambda context, _: free(context), methods["prepare"], methods["invoke"]
    )


class DelegateServices(NamedTuple):
    """Functions of the interpreter for the delegates of all its subgraphs.

    metadata: returns the bytes of an entry. check: raises if a node of the plan, or of a subgraph that it calls, has no
    kernel. skipped: by delegate, the subgraphs that it runs itself.
    """

    metadata: Callable[[str], Any]
    check: Callable[[Subgraph], None]
    skipped: dict[int, set[int]]


class Delegation:
    """The delegates of one subgraph."""

    def __init__(self, subgraph: Subgraph, services: DelegateServices) -> None:
        self.subgraph, self.services = subgraph, services
        self.original = list(subgraph.execution_plan)
        subgraph.execution_plan = list(self.original)
        self.count = len(subgraph.nodes)
        self.applied: list[tuple[Delegate, bool]] = []  # and whether its failure is an error or a warning
        self.undone = False
        self.late: Any = None  # a delegate that claims nodes after prepare

    # ---- apply ------------------------------------------------------------------------------------------------------

    def apply(self, delegate: Delegate, strict: bool) -> None:
        """Let a delegate claim nodes. If it fails the plan is restored. Raises OpErrors that are RuntimeErrors."""
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
            self.services.skipped.setdefault(id(delegate), set()).add,
            self.services.metadata,
        )
        return context

    def claim(self, delegate: Any) -> bool:
        """Let a delegate claim prepared nodes, by its method `claim_after_prepare`; return whether it claimed any.

        State that the nodes prepared is dropped. A failure restores the plan and is stored in the delegate's `failure`.
        """
        subgraph = self.subgraph
        plan, count = subgraph.execution_plan, len(subgraph.nodes)
        context = self._context(delegate)
        try:
            delegate.claim_after_prepare(context)
            new_nodes: list[Any] = subgraph.nodes[count:]
            for node in new_nodes:
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
        self._drop_prepared(new_nodes)
        return bool(new_nodes)

    def _drop_prepared(self, new_nodes: Sequence[Any]) -> None:
        """Drop the prepared state of nodes that these delegate nodes replace."""
        for node in new_nodes:
            for inner in node.replaced:
                self.subgraph.drop_tensors(inner.added)
                inner.added, inner.temporaries, inner.kernel, inner.prepared_for = [], [], None, None

    def claim_late(self) -> None:
        """Call `claim` for the delegate that requested it when it was applied."""
        delegate, self.late = self.late, None
        if delegate is not None:
            self.claim(delegate)

    def propagate(self) -> None:
        """Propagate shapes through the file's graph, and determine which tensors are dynamic.

        A node without kernel, or whose kernel fails, keeps the shapes of the file: a delegate may claim it.
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
                return  # if no delegate claims the node, the allocation raises the error

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
        new_nodes: list[Node] = []
        for p in params:
            node = DelegateNode(subgraph, p, _registration_of(p.delegate, kernel))
            subgraph.nodes.append(node)
            new_nodes.append(node)
            before = len(subgraph.tensors)
            subgraph.context.begin(node)
            init: Any = node.registration.init  # type: ignore[union-attr]
            try:
                node.user_data = None if init is None else init(context, p)
            except Exception as error:
                raise node_error(error, node, "init", subgraph.context.reported) from error
            finally:
                node.added_tensors = subgraph.tensors[before:]
            node.initialized = True
        if arrange is not None:
            subgraph.execution_plan = arrange(new_nodes)
        elif new_nodes:
            subgraph.execution_plan = new_plan(subgraph.execution_plan, params, new_nodes)

    def _failed(self, delegate: Delegate, error: Exception, messages: list[str]) -> OpError:
        where = "" if self.subgraph.index == 0 else f" of subgraph {self.subgraph.index}"
        last = "".join(f"\n  said    {line}" for line in messages if line not in str(error))
        last += f"\nDelegate {delegate.name} failed to prepare{where}.\n{RESTORED}"
        if isinstance(error, OpError):
            return also(type(error), RuntimeError)(error.message + last)
        return also(OpError, RuntimeError)(f"{delegate.name}: {type(error).__name__}: {error}{last}")

    def inside(self, t: Tensor) -> str | None:
        """Return a description of the partition that contains a tensor; None if a node of the plan touches it."""
        if any(t in (*node.tensors_in, *node.tensors_out) for node in self.subgraph.execution_plan):
            return None
        for node in self.subgraph.nodes[self.count :]:
            if any(t in n.tensors_out for n in node.replaced):
                return f"{t!r} inside node {node.number}, which delegate {node.name} runs"
        return None

    # ---- undo and redo ----------------------------------------------------------------------------------------------

    def _release(self, count: int) -> None:
        """Free the delegates' nodes from `count` on."""
        subgraph = self.subgraph
        gone: Any = subgraph.nodes[count:]
        for error in subgraph.free(gone):
            warnings.warn(str(error), DelegateWarning, stacklevel=levels_to_user())
        subgraph.drop_tensors([t for node in gone for t in (*node.added_tensors, *node.added)])
        del subgraph.nodes[count:]

    def undo(self) -> None:
        """Restore the plan of the file, until `redo`."""
        if not self.undone:
            self.subgraph.execution_plan = list(self.original)
            self._release(self.count)
            self.subgraph.unready()
            self.undone = bool(self.applied)

    def redo(self) -> None:
        """Apply the delegates again after `undo`. Drop one that fails, with an error or a warning."""
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

    def remove(self, delegate: Delegate) -> None:
        """Restore the plan without delegates; all but this one are to be applied again."""
        self.undo()
        self.applied = [entry for entry in self.applied if entry[0] is not delegate]
        self.undone = bool(self.applied)

    def drop(self, delegate: Delegate, error: OpError) -> None:
        """Remove a delegate that failed; raise its error or warn, as specified when it was applied."""
        strict = any(s for d, s in self.applied if d is delegate)
        self.undone = False
        self.remove(delegate)
        if strict:
            raise error
        warn_left_out(delegate, error)

    def withdraw(self, delegate: Delegate) -> None:
        """Remove a delegate. If it claimed nothing other delegates keep their nodes; otherwise all are undone."""
        has_nodes = self.has(delegate)
        self.late = None
        if has_nodes:
            self.undo()
        self.applied = [entry for entry in self.applied if entry[0] is not delegate]
        if has_nodes:
            self.undone = bool(self.applied)

    def has(self, delegate: Delegate) -> bool:
        """Return whether the delegate runs any node."""
        return any(node.delegate is delegate for node in self.subgraph.nodes[self.count :])

    def resized(self) -> None:
        """Undo delegates without support for dynamic tensors, or that replan, as an input gets another shape."""
        if any(
            d.replan_on_resize or not DelegateFlags(d.flags) & DelegateFlags.ALLOW_DYNAMIC_TENSORS
            for d, _ in self.applied
        ):
            self.undo()

    def plan(self, once: Callable[[], None]) -> None:
        """Allocate with the delegates applied; drop those whose kernel's prepare fails."""
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
            self.services.check(self.subgraph)


def warn_left_out(delegate: Delegate, error: OpError) -> None:
    """Warn at the user's line that the interpreter continues without a delegate."""
    text = f"delegate {delegate.name} is left out, the model runs without it: {error.message}"
    warnings.warn(text, DelegateWarning, stacklevel=levels_to_user())


def apply_delegate(subgraphs: Sequence[Subgraph], delegate: Any, services: DelegateServices, strict: bool) -> None:
    """Let a delegate claim nodes of every subgraph except validation and skipped ones; of none if one fails.

    strict: a failure is an error, now or when its kernels are prepared; otherwise a warning. raises TypeError for an
    object that is not a Delegate; OpErrors that are RuntimeErrors
    """
    if not isinstance(delegate, Delegate):
        raise TypeError(f"a delegate is an object of a class derived from lite.Delegate, found {delegate!r}"[:300])
    try:
        for subgraph in subgraphs:
            if subgraph.name.startswith(VALIDATION) or subgraph.index in services.skipped.get(id(delegate), ()):
                continue
            if subgraph.delegation is None:
                subgraph.delegation = Delegation(subgraph, services)
            was_ready = subgraph.ready
            subgraph.delegation.apply(delegate, strict)
            if was_ready:
                subgraph.allocate(subgraph.preserve_all)
    except OpError as error:
        for subgraph in subgraphs:
            delegation: Delegation | None = subgraph.delegation
            if delegation is not None and any(d is delegate for d, _ in delegation.applied):
                delegation.remove(delegate)
        if strict:
            raise
        warn_left_out(delegate, error)


def remove_all_delegates(subgraphs: Sequence[Subgraph]) -> None:
    """Free all kernels and restore the file's plan; tensors must be allocated again."""
    for subgraph in subgraphs:
        if subgraph.delegation is not None:
            if subgraph.delegation.applied:
                subgraph.delegation.undo()
            subgraph.delegation = None
