"""A running subgraph: the life cycle of its nodes and the loop that runs them.

Lives here: `Subgraph`: init, prepare, planning, invoke, free; nodes whose shapes are known only while the model runs.
Not here: memory (memory.py), what kernels do (registration.py), subgraphs that nodes run
(callee_subgraph.py), delegates (delegation.py), timing (profiling.py).

    allocate   init each node that has not been, once; prepare each node in order; plan and bind memory; bind kernels
    invoke     call the bound kernels in order
    close      free each node whose init returned, once

A node with an input of unknown shape is deferred: it is prepared while the model runs, when the input has its shape,
and again only when a later run gives it another. All other nodes are prepared once an allocation, and allocations
happen only after a resize.
"""

from __future__ import annotations

import contextvars
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from threading import get_ident
from typing import Any

import numpy as np

from ...core import errors, flags
from ...core.errors import FailedPreconditionError, InvalidArgumentError, OpError, UnimplementedError
from ...core.forks import cached_property
from ...ops.dispatch import quiet_context, quietly
from ..format.verify import called_subgraphs
from ..ops.families import defined
from . import memory
from .callee_subgraph import CallableSubgraph
from .chains import joined
from .constants import link_block_scales, tensor_from_file
from .direct_invocation import NO_TENSORS, DirectInvocation, DirectTensors
from .dynamic_shapes import MOST_READ
from .errors import also, failure_line, names_failed_node, node_error
from .memory import MemoryUsage
from .node import Context, Node, check_status, check_temporaries
from .observers import run_observed, run_watched
from .ownership import Ownership
from .resolution import Resolved
from .resources import Resources
from .shape_constant_folding import is_folded
from .tensor import ARENA, CONSTANT, DYNAMIC, FOLDED, OUTSIDE, OWN, Tensor

NOT_READY = "Invoke called on model that is not ready."


class Subgraph(CallableSubgraph):
    """One subgraph of a verified model, with its tensors and nodes."""

    def __init__(
        self,
        model: Any,
        index: int,
        codes: list[Resolved],
        num_threads: int,
        family: list[Subgraph] | None = None,
        ownership: Ownership | None = None,
    ) -> None:
        source = model.subgraphs[index]
        self.family: list[Subgraph] = [] if family is None else family  # all subgraphs of the model, itself included
        self.resources: Resources = self.family[0].resources if self.family else Resources(ownership or Ownership())
        self.ownership = self.resources.ownership
        self.model, self.index, self.name = model, index, source.name or ""
        self.observer: Callable[[Node, bool], None] | None = None  # see run_observed; `observe` sets it
        self.tensors = [tensor_from_file(i, t, model.buffers[t.buffer]) for i, t in enumerate(source.tensors)]
        link_block_scales(self.tensors)
        self.file_tensors = len(self.tensors)
        self.inputs: list[int] = np.asarray(source.inputs).tolist()
        self.outputs: list[int] = np.asarray(source.outputs).tolist()
        self.calls = sorted({i for op in source.operators for _, i in called_subgraphs(op)})
        self.nodes = [self._node(number, op, codes[op.opcode_index]) for number, op in enumerate(source.operators)]
        self.execution_plan = self.nodes  # what runs, in order: with delegates, other nodes than the file's
        self.delegation: Any = None  # its delegates (delegation.py), once there are any
        self.native: Any = None  # how operators in C see it (native/c_context.py), once there are any
        self.closed = False
        self.context = Context(self, num_threads)
        self.ready = self.running = False
        self.holding: MemoryUsage = MemoryUsage(self.family[0].holding.family if self.family else [])
        self._dynamic: set[int] = set()  # indices of tensors that a prepare made dynamic
        self._touched: dict[int, Node] = {}  # by identity of a tensor, the last node prepared that reads or writes it
        self.steps: list[Callable[[], Any]] = []  # one for each node
        self.joined: list[Callable[[], Any]] = []  # the same work by fewer calls (chains.py)
        self._direct: DirectInvocation | None = None  # the native call that `direct` gave last
        self._reach: DirectTensors | None = None  # made when it is first asked for
        self._quiet: contextvars.Context | None = None
        self._deferred: set[int] = set()
        self.accepted: Any = None  # what `accept` made it ready for; None where it is no node that runs it
        self._connected: Any = None
        self.handles: dict[int, Any] = {}  # by tensor, the resources that inputs hold at each run
        self.changing: frozenset[int] = frozenset()  # inputs whose shape may be another at each run
        self._places: dict[int, Any] = {}  # outputs in the arena, and where there
        self.preserve_all = self._outside = False

    def _node(self, number: int, op: Any, code: Resolved) -> Node:
        def tensors(indices: Any) -> list[Tensor | None]:
            return [self.tensors[i] if i >= 0 else None for i in np.asarray(indices).tolist()]

        options = op.builtin_options if op.builtin_options is not None else op.builtin_options_2
        if code.is_custom:
            options = b"" if op.custom_options is None else bytes(op.custom_options)
            code = code.of(options)
        outputs: Any = tensors(op.outputs)
        node = Node(
            self,
            number,
            code.name,
            code.version,
            options,
            code.registration,
            tensors(op.inputs),
            outputs,
            tensors(op.intermediates),
        )
        node.has_options = not code.is_custom or op.custom_options is not None
        return node

    # ---- allocation ---------------------------------------------------------------------------------------------

    def allocate(self, preserve_all: bool = False) -> None:
        """Make it ready to run; nothing happens where it is ready. Raises OpErrors that are RuntimeErrors, too."""
        if self.ready:
            return
        self.ownership.check_idle("allocated")
        self.accepted = self.connected = None
        if self.handles and self.delegation is not None:
            self.delegation.resized()
        self.changing, self.handles = frozenset(), {}
        self.preserve_all = preserve_all
        self._plan()
        self._bind_steps()
        self.ready = True

    def _bind_steps(self) -> None:
        self.steps = [self._step(node, node.number in self._deferred) for node in self.execution_plan]
        if self.observer is not None:
            pairs = zip(self.execution_plan, self.steps)
            self.steps = [functools.partial(run_observed, node, step, self.observer) for node, step in pairs]
            self.joined = self.steps
        else:
            self.joined = joined(self.context, self.execution_plan, self.steps, self._deferred, self._outside)
        self._reach = None

    @property
    def direct(self) -> DirectInvocation:
        """The run by one call, of a subgraph that is ready: native where one step is all."""
        native = self._direct = self._native_step()
        if native is not None and not native.calls_back:
            return native
        ownership, call = self.ownership, self._call_steps if native is None else native.run

        def run() -> int:
            self.running = ownership.running = True
            ownership.thread = get_ident()  # for kernels, which may read tensors
            try:
                return call()
            finally:
                self.running = ownership.running = False

        if native is not None:
            return native._replace(run=run, follow=None)
        if self._quiet is None:
            self._quiet = quiet_context()
        return DirectInvocation(functools.partial(self._quiet.run, run), _always_good)

    def _native_step(self) -> DirectInvocation | None:
        """The run by the native call of the only step."""
        return getattr(self.joined[0], "direct", None) if len(self.joined) == 1 else None

    def _call_steps(self) -> int:
        step: Any = None
        try:
            for step in self.joined:
                step()
        except Exception as error:
            self.blame(error, self.joined, step)
        return 0

    @property
    def reach(self) -> DirectTensors:
        """The inputs and outputs that stay where they are; of a subgraph that is ready. Operators in C may put outputs
        elsewhere."""
        if self._reach is None:
            alone = self._native_step() is not None
            if self.native is not None and not alone:
                return NO_TENSORS
            of = self.tensors.__getitem__
            self._reach = DirectTensors.of(map(of, self.inputs), map(of, self.outputs), alone)
        return self._reach

    def moved(self, tensors: Iterable[Tensor]) -> None:
        """Tensors have got other memory from the step that is all of it; another step need not tell."""
        if self._reach is not None:
            self._reach.move(t for t in tensors if t.index in self.outputs)

    @cached_property
    def writers(self) -> Counter[int]:
        """By tensor, how many of the file's nodes write it."""
        return Counter(t.index for node in self.nodes if node.delegate is None for t in node.tensors_out)

    def observe(self, observer: Callable[[Node, bool], None] | None) -> None:
        """Let an observer be told of each node (see run_observed), or none any more; also where it is ready to run."""
        self.observer = observer
        self.connected = None  # who runs it connects it again, which binds the steps
        if self.ready:
            self._bind_steps()

    def _plan(self, outside: bool = False) -> None:
        """Init, prepare, place. outside: the inputs are in the memory of who runs it."""
        self._outside = outside
        if self.delegation is None:
            self._plan_once()
        else:
            self.delegation.plan(self._plan_once)

    def _plan_once(self) -> None:
        self.steps = self.joined = []
        self.resources.restart(self.index)
        for node in self.execution_plan:
            self.init(node)
        self._deferred = self.prepare_all(self.execution_plan, self.prepare)
        if self.delegation is not None:
            self.delegation.claim_late()
        self._place_all()
        self.reset_variables()  # as the official run time does where it allocates anew

    def _place_all(self) -> None:
        try:
            self._place(self._deferred, self.preserve_all)
        except OpError as error:
            raise also(type(error), RuntimeError)(f"{error.message}\nAllocateTensors() failed.") from error
        except MemoryError as error:
            raise also(errors.ResourceExhaustedError, RuntimeError)(f"{error}\nAllocateTensors() failed.") from error

    def reclaim(self, delegate: Any) -> None:
        """Between two runs, let a delegate take nodes that are prepared. What stays from run to run stays."""
        accepted = self.accepted
        if not (self.ready or accepted is not None):
            return
        kept = [t for i, t in enumerate(self.tensors) if (i in self.inputs or t.is_variable) and t.array is not None]
        elements = [t.array.copy() for t in kept if t.array is not None]
        if not self.delegation.claim(delegate):
            return
        self.ready, self.accepted = False, None  # as it stays where this is interrupted: steps of two plans do not mix
        self._place_all()
        for t, array in zip(kept, elements):
            if t.array is not None and t.kind != OUTSIDE:
                t.array[...] = array
        if accepted is not None:
            self.keep_places()
            self.accepted = accepted
        else:
            self._bind_steps()
            self.ready = True

    def prepare_all(self, nodes: Iterable[Node], prepare: Callable[[Node], None]) -> set[int]:
        """Prepare nodes in order, but those with an input of unknown shape; the numbers of these."""
        self._dynamic.clear()
        self._touched.clear()
        for t in self.tensors:
            if t.kind in (DYNAMIC, OUTSIDE, FOLDED):
                self.holding.forget((t,))
                t.set_kind(OWN if t.is_object else ARENA)
        if self._outside:
            for i in self.inputs:
                self.tensors[i].set_kind(DYNAMIC if i in self.changing else OUTSIDE)
            for i, resource in self.handles.items():
                self._fold_handle(self.tensors[i], resource)
        deferred = set()
        for node in nodes:
            if any(t is not None and t.kind == DYNAMIC for t in node.tensors_in):
                deferred.add(node.number)
                node.prepared_for = None
                for t in node.tensors_out:
                    self._refuse_output(node, t)
                    t.set_kind(DYNAMIC)
            else:
                prepare(node)
        return deferred

    def _fold_handle(self, t: Tensor, resource: Any) -> None:
        """Let an input hold a resource from now on."""
        t.set_kind(FOLDED)
        self.allocate_own(t)
        t.array.fill(resource)  # type: ignore[union-attr]

    def _place(self, deferred: set[int], preserve_all: bool) -> None:
        for t in self.tensors:
            if t.kind == ARENA and t.index < self.file_tensors:
                self.bounded(t, t.shape)
            elif t.kind == OWN and t.array is None:
                self.allocate_own(t)
        running = [node for node in self.execution_plan if not is_folded(node)]
        static = [node for node in running if node.number not in deferred]
        used = {id(t) for node in running for t in (*node.tensors_in, *node.tensors_out)}
        kept = self.tensors[: self.file_tensors] if preserve_all else [self.tensors[i] for i in self.inputs]
        for node in self.execution_plan:
            read = [t for t in node.tensors_in if t is not None and id(t) in used]
            if node.number in deferred:  # it may run at any later step
                kept += read
            elif node.asks or any(t.kind == DYNAMIC for t in node.tensors_out):  # sizes follow from what it reads,
                kept += [t for t in read if t.nbytes <= MOST_READ]  # which a delegate may look at after the run
        self.holding.set_arena(memory.plan_memory(static, kept, [self.tensors[i] for i in self.outputs]))

    def init_early(self) -> None:
        """Call init of the nodes whose kernels want it as soon as there is an interpreter."""
        for node in self.nodes:
            if node.registration is not None and node.registration.early:
                self.init(node)

    def init(self, node: Node) -> None:
        """Call init of a node that has not been."""
        registration = node.registration
        if node.inited or registration is None:
            return
        if self.closed and registration.early:
            raise node_error(
                FailedPreconditionError(op=node.name, what="the interpreter is closed", do="make another one"),
                node,
                "init",
                [],
            )
        if registration.init is not None:
            self.context.begin(node)
            try:
                definition = defined.get(node.name)  # of a builtin operator; its registration has imported it
                if definition is not None and not isinstance(node.options, bytes):
                    definition.check_options(node.options)
                node.user_data = registration.init(self.context, node.options)
            except Exception as error:
                raise node_error(error, node, "init", self.context.reported) from error
        node.inited = True

    def _refuse_output(self, node: Node, t: Tensor) -> None:
        """Raises InvalidArgumentError for an output that may not be written; custom operators may write an input."""
        builtin = node.delegate is None and not isinstance(node.options, bytes)
        what = (
            "a constant"
            if t.kind == CONSTANT
            else "a variable"
            if t.is_variable
            else "an input of the subgraph"
            if t.kind == OUTSIDE or t.index in self.changing
            else "an input of the node, too"
            if t in node.tensors_in and builtin
            else ""
        )
        if what:
            raise node_error(
                InvalidArgumentError(
                    op=node.name,
                    what=f"output {t.name!r} is {what}",
                    found=repr(t),
                    wanted="a tensor that this node may write",
                ),
                node,
                "prepare",
                [],
            )

    def prepare(self, node: Node) -> None:
        """Call prepare. Temporaries that the last prepare made are dropped."""
        registration: Any = node.registration
        for t in node.tensors_out:
            self._refuse_output(node, t)
        if node.added:
            self.drop_tensors(node.added)
            node.added, node.temporaries = [], []
        node.prepared_for, node.repeat = tuple(None if t is None else t.shape for t in node.tensors_in), None
        given = [t.shape for t in node.tensors_out]
        if not self.running:
            self._touched.update((id(t), node) for t in node.tensors_in if t is not None)
        context = self.context
        context.begin(node)
        try:
            if registration.invoke is None:
                raise UnimplementedError(
                    op=node.name, what="its registration has no invoke", do="Registration(invoke=...)"
                )
            for view in (*node.inputs, *node.outputs):
                if view is not None:
                    view.lent = None
            if registration.prepare is not None:
                check_status(registration.prepare(context, node), node.name, "prepare")
            check_temporaries(node, self.tensors)
            self._check_shared(node, given)
        except Exception as error:
            node.prepared_for = None
            raise node_error(error, node, "prepare", context.reported) from error

    def _check_shared(self, node: Node, given: list[tuple[int, ...]]) -> None:
        """Raises InvalidArgumentError where a prepare gave another shape to an output that the node itself, or one
        prepared before it, reads or writes. given: the shapes of the outputs before."""
        touched = {id(t): node for t in node.tensors_in if t is not None} if self.running else self._touched
        for t, shape in zip(node.tensors_out, given):
            other = touched.get(id(t))
            if other is not None and t.shape != shape:
                whose = "this node" if other is node else f"node {other.number}"
                raise InvalidArgumentError(
                    op=node.name,
                    what=f"output {t.name!r} is a tensor of {whose} too, and would get another shape",
                    found=list(t.shape),
                    wanted=list(shape),
                )
        touched.update((id(t), node) for t in node.tensors_out)

    def drop_tensors(self, gone: Sequence[Tensor]) -> None:
        """Forget tensors that the file does not have; those that stay may get another index."""
        self.holding.forget(gone)
        dropped = {id(t) for t in gone}
        n = self.file_tensors
        self.tensors = self.tensors[:n] + [t for t in self.tensors[n:] if id(t) not in dropped]
        for place, t in enumerate(self.tensors[n:], n):
            t.index = place

    def _step(self, node: Node, deferred: bool) -> Callable[[], Any]:
        if deferred and not node.registration.follows_shapes:  # type: ignore[union-attr]
            return functools.partial(self._run_deferred, node)
        try:
            return node.registration.bind(self.context, node)  # type: ignore[union-attr]
        except Exception as error:
            raise node_error(error, node, "prepare", self.context.reported) from error

    # ---- dynamic tensors ----------------------------------------------------------------------------------------

    def make_dynamic(self, t: Tensor) -> None:
        """From here on its shape is known only when it is computed."""
        shared = id(t) in self._touched and not self.running
        if t.kind == CONSTANT or t.is_variable or t.index in self.inputs or shared:
            raise InvalidArgumentError(
                what=f"tensor {t.name!r} cannot be dynamic",
                found=repr(t),
                wanted="an output that is no tensor of a node before",
            )
        self._dynamic.add(t.index)
        if self.running and t.kind != DYNAMIC:
            raise FailedPreconditionError(
                what=f"tensor {t.name!r} was made dynamic while the model runs",
                do="call context.set_tensor_to_dynamic(tensor) in prepare",
            )
        t.set_kind(DYNAMIC)
        t.bind(None)

    def bounded(self, t: Tensor, sizes: tuple[int, ...]) -> None:
        """Raises ResourceExhaustedError where a tensor of these sizes, with what there is, passes the limit."""
        self.holding.check(t, sizes, self.running)

    def allocate_own(self, t: Tensor) -> None:
        """Memory of its own for a tensor, within the limit."""
        self.holding.allocate(t, self.running)

    def _run_deferred(self, node: Node) -> None:
        """Prepare the node if its inputs have other shapes than when it was last prepared; then run it."""
        context = self.context
        if node.prepared_for != tuple(None if t is None else t.shape for t in node.tensors_in):
            for t in node.tensors_out:
                self._dynamic.discard(t.index)
                t.bind(None)
            self.prepare(node)
            for t in (*node.tensors_out, *(view.tensor for view in node.temporaries)):
                if t.array is None and t.index not in self._dynamic:
                    t.set_kind(DYNAMIC)
                    self.allocate_own(t)
        context.begin(node)
        registration: Any = node.registration
        check_status(registration.invoke(context, node), node.name, "invoke")

    # ---- running ------------------------------------------------------------------------------------------------

    def invoke(self) -> None:
        """Run every node. Raises OpErrors that are RuntimeErrors, too, naming the node; it can be run again after."""
        if not self.ready:
            do = "make another interpreter: this one was closed" if self.closed else "call allocate_tensors() first"
            raise also(FailedPreconditionError, RuntimeError)(what=NOT_READY, do=do)
        ownership = self.ownership
        if ownership.running:
            ownership.refuse("invoked")
        self.running = ownership.running = True
        try:
            quietly(self._run)
        finally:
            self.running = ownership.running = False

    def recover(self, status: int) -> None:
        """Go on after a direct run that gave a status. Raises as invoke."""
        step: Any = self.joined[0]
        direct: Any = self._direct

        def run() -> None:
            try:
                direct.recover(status)
            except Exception as error:
                self.blame(error, self.joined, step)

        ownership = self.ownership
        self.running = ownership.running = True
        try:
            quietly(run)
        finally:
            self.running = ownership.running = False

    def _run(self) -> None:
        if not flags.check_inputs:
            self._call_steps()
            return
        step: Any = None
        steps = self.runnable()
        try:
            for step in steps:
                step()
        except Exception as error:
            self.blame(error, steps, step)

    def runnable(self) -> list[Callable[[], Any]]:
        """The bound kernels in order, one for each node, as they run under the present flags."""
        if flags.check_inputs:
            pairs = zip(self.execution_plan, self.steps)
            return [functools.partial(run_watched, node, step) for node, step in pairs]
        return self.steps

    def blame(self, error: Exception, steps: list[Callable[[], Any]], step: Any) -> None:
        """Raises the error for one that came out of a step, naming its node."""
        if hasattr(step, "failed"):
            node = step.nodes[step.failed]
        else:
            each = self.steps if steps is self.joined else steps
            node = self.execution_plan[next(i for i, s in enumerate(each) if s is step)]
        if isinstance(error, OpError) and names_failed_node(error):
            lines = (failure_line(node, "prepare"), *(failure_line(n, "invoke") for n in node.replaced))
            if error.message.endswith(lines):
                raise error  # a deferred node's prepare has said it already, or a node that a delegate's stands for
        raise node_error(error, node, "invoke", self.context.reported) from error

    def resize_input(self, t: Tensor, sizes: tuple[int, ...]) -> None:
        """Another shape for an input; tensors must be allocated again."""
        if sizes == t.shape and t.kind in (ARENA, OWN):
            return
        self.ownership.check_idle("resized")
        self.bounded(t, sizes)
        if self.delegation is not None:
            self.delegation.resized()
        self.ready = False
        for other in self.tensors:
            if other.kind in (ARENA, DYNAMIC):
                other.bind(None)
        t.set_shape(sizes)

    def reset_variables(self) -> None:
        """Variable tensors back to zeros; those of int8 to their zero point. Resources stay as they are."""
        for t in self.tensors:
            if t.is_variable and t.array is not None:
                t.clear()

    def release(self) -> None:
        """Give its memory back; it must be allocated again before it runs again. Variable tensors keep theirs."""
        self.unready()
        for t in self.tensors:
            if t.kind != CONSTANT and not t.is_variable:
                t.bind(None)
        self.holding.clear()

    def unready(self) -> None:
        """It must be allocated again before it runs again."""
        self.ready, self.accepted, self.connected = False, None, None
        self.steps = self.joined = []
        for t in self.tensors:
            if t.kind == FOLDED:
                self.holding.forget((t,))
                t.set_kind(ARENA)

    def close(self) -> list[Exception]:
        """Free every node whose init returned; the errors on the way."""
        self.ready, self.closed, self.connected = False, True, None
        self.steps = self.joined = []
        errors = self.free(self.nodes)
        if self.native is not None:
            self.native.release()
            self.native = None
        return errors

    def free(self, nodes: Iterable[Node]) -> list[Exception]:
        """Call free of those nodes whose init returned; the errors on the way."""
        errors: list[Exception] = []
        for node in nodes:
            registration = node.registration
            if not node.inited or registration is None:
                continue
            node.inited = False
            if registration.free is not None:
                self.context.begin(node)
                try:
                    registration.free(self.context, node.user_data)
                except Exception as error:
                    wrong = node_error(error, node, "free", self.context.reported)
                    wrong.__cause__ = error
                    errors.append(wrong)
            node.user_data = None
        return errors


def _always_good(status: int) -> None:
    """Where errors are raised there is no status."""
