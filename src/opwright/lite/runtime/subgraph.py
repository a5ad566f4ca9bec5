"""A running subgraph: the life cycle of its nodes and the loop that runs them.

Lives here: `Subgraph`: init, prepare, planning, invoke, free; nodes whose shapes are determined during a run.
Not here: memory (memory.py), kernels (registration.py), subgraphs called by nodes (callee_subgraph.py), delegates
(delegation.py), timing (profiler.py).

    allocate   init each node once; prepare each node in order; plan and bind memory; bind kernels
    invoke     call the bound kernels in order
    close      free each node whose init returned, once

A node with an input of unknown shape is deferred: it is prepared during a run, once the input has its shape, and again
only when a later run changes that shape. All other nodes are prepared once per allocation, and allocations happen only
after a resize.
"""

from __future__ import annotations

import contextvars
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import errors, flags
from ...core.errors import FailedPreconditionError, InvalidArgumentError, OpError, UnimplementedError, also
from ...core.forks import cached_property
from ...core.lazy_imports import later
from ...ops.dispatch import quiet_context, quietly
from ..format.verify import called_subgraphs
from ..ops.definition import defined
from . import memory
from .callee_subgraph import CallableSubgraph
from .constants import link_block_scales, tensor_from_file
from .dynamic_shapes import MOST_READ, is_folded
from .errors import failure_line, names_failed_node, node_error
from .memory import MemoryUsage
from .node import Context, Node, check_status, check_temporaries
from .ownership import NO_TENSORS, DirectInvocation, DirectTensors, Ownership
from .resources import Resources
from .steps import joined, run_observed, run_watched
from .tensor import ARENA, CONSTANT, DYNAMIC, FOLDED, OUTSIDE, OWN, Tensor

if TYPE_CHECKING:
    from . import bound_arrays
    from .model_loader import Resolved
else:  # not needed by the first answer of a model
    bound_arrays = later(".bound_arrays", __package__)

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
        self.family: list[Subgraph] = [] if family is None else family  # all subgraphs of the model, including this one
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
        self.execution_plan = self.nodes  # nodes to run, in order; delegates replace nodes
        self.delegation: Any = None  # its delegates (delegation.py), if any
        self.native: Any = None  # its view in C (native/c_context.py), if it has operators in C
        self.closed = False
        self.context = Context(self, num_threads)
        self.ready = self.running = False
        self.memory_usage: MemoryUsage = MemoryUsage(self.family[0].memory_usage.family if self.family else [])
        self._dynamic: set[int] = set()  # indices of tensors declared dynamic by a prepare
        self._touched: dict[int, Node] = {}  # by id of a tensor: the last prepared node that uses it
        self.steps: list[Callable[[], Any]] = []  # one for each node
        self.joined: list[Callable[[], Any]] = []  # the same work by fewer calls (steps.py)
        self._direct: DirectInvocation | None = None  # the last native call that `direct` returned
        self._reach: DirectTensors | None = None  # created on first access
        self._quiet: contextvars.Context | None = None
        self._deferred: set[int] = set()
        self.accepted: Any = None  # the arguments of `accept`; None if no node calls it
        self._connected: Any = None
        self.handles: dict[int, Any] = {}  # by tensor: resources of inputs, the same in every run
        self.changing: frozenset[int] = frozenset()  # inputs whose shape may differ from run to run
        self._arena_outputs: dict[int, Any] = {}  # outputs in the arena, with their arrays
        self.bound: dict[int, np.ndarray] = {}  # by tensor: arrays of the caller (bound_arrays.py)
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
        """Prepare for running; return at once if ready. Raises OpErrors that are RuntimeErrors, too."""
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

    def bind_arrays(self, arrays: Mapping[int, np.ndarray]) -> None:
        """Let inputs and outputs of an allocated subgraph, by index, be arrays of the caller. Other inputs keep their
        values. Raises InvalidArgumentError."""
        for index, array in arrays.items():
            bound_arrays.check_array(self.tensors[index], array, index in self.outputs)
        bound_arrays.check_apart(self.tensors, {**self.bound, **arrays}, self.outputs)
        self.bound.update(arrays)
        self._place_again(self._saved())
        self._bind_steps()
        self.ready = True

    def unbind_arrays(self, indices: Iterable[int]) -> None:
        """Let inputs and outputs be in memory of the subgraph again, which has to be allocated."""
        for index in self.bound.keys() & set(indices):
            del self.bound[index]
            self.tensors[index].set_kind(ARENA)
            self.ready = False

    def _bind_steps(self) -> None:
        self._part_inputs()
        self.steps = [self._step(node, node.number in self._deferred) for node in self.execution_plan]
        if self.observer is not None:
            pairs = zip(self.execution_plan, self.steps)
            self.steps = [functools.partial(run_observed, node, step, self.observer) for node, step in pairs]
            self.joined = self.steps
        else:
            self.joined = joined(self.context, self.execution_plan, self.steps, self._deferred, self._outside)
        self._reach = None

    def _part_inputs(self) -> None:
        """Give an input memory of its own if its bound array is also that of an output, which is written too early."""
        for i in self.bound.keys() & set(self.inputs):
            t, array = self.tensors[i], self.bound[i]
            sharing = [self.tensors[o] for o in self.outputs if o in self.bound and o != i]
            for out in (x for x in sharing if bound_arrays.is_same(self.bound[x.index], array)):
                if not bound_arrays.works_in_place(self.execution_plan, t, out):
                    t.bind(array.copy())

    @property
    def direct(self) -> DirectInvocation:
        """The run by one call, of a subgraph that is ready; native if a single step does all the work."""
        native = self._direct = self._native_step()
        if native is not None and not native.calls_back:
            return native
        ownership, call = self.ownership, self._call_steps if native is None else native.run

        def run() -> int:
            self.running = ownership.running = True
            ownership.thread = get_ident()  # kernels may read tensors
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
        """Return the native call of the only step, if there is one."""
        return getattr(self.joined[0], "direct", None) if len(self.joined) == 1 else None

    def _call_steps(self) -> int:
        step: Any = None
        try:
            for step in self.joined:
                step()
        except Exception as error:
            self.raise_node_error(error, self.joined, step)
        return 0

    @property
    def reach(self) -> DirectTensors:
        """Direct access to inputs and outputs with fixed addresses, of a subgraph that is ready. Operators in C may
        move outputs."""
        if self._reach is None:
            alone = self._native_step() is not None
            if self.native is not None and not alone:
                return NO_TENSORS
            of = self.tensors.__getitem__
            self._reach = DirectTensors.of(map(of, self.inputs), map(of, self.outputs), alone)
        return self._reach

    def update_addresses(self, tensors: Iterable[Tensor]) -> None:
        """Update outputs that a whole-model step moved to other memory; other steps need not report it."""
        if self._reach is not None:
            self._reach.move(t for t in tensors if t.index in self.outputs)

    @cached_property
    def writers(self) -> Counter[int]:
        """Count the file's nodes that write each tensor, by index."""
        return Counter(t.index for node in self.nodes if node.delegate is None for t in node.tensors_out)

    def observe(self, observer: Callable[[Node, bool], None] | None) -> None:
        """Set or remove the observer of each node (see run_observed), also while ready to run."""
        self.observer = observer
        self.connected = None  # the caller connects it again, which binds the steps
        if self.ready:
            self._bind_steps()

    def _plan(self, outside: bool = False) -> None:
        """Initialize and prepare nodes, and plan memory. outside: the caller provides the inputs' memory."""
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
        self.reset_variables()  # as in the official run time, when it allocates again

    def _place_all(self) -> None:
        try:
            self._place(self._deferred, self.preserve_all)
        except OpError as error:
            raise also(type(error), RuntimeError)(f"{error.message}\nAllocateTensors() failed.") from error
        except MemoryError as error:
            raise also(errors.ResourceExhaustedError, RuntimeError)(f"{error}\nAllocateTensors() failed.") from error

    def reclaim(self, delegate: Any) -> None:
        """Let a delegate claim prepared nodes between two runs. Inputs and variables keep their values."""
        accepted = self.accepted
        if not (self.ready or accepted is not None):
            return
        saved = self._saved()
        if not self.delegation.claim(delegate):
            return
        self._place_again(saved)
        if accepted is not None:
            self.save_arena_outputs()
            self.accepted = accepted
        else:
            self._bind_steps()
            self.ready = True

    def _saved(self) -> list[tuple[Tensor, np.ndarray]]:
        """Return copies of the inputs and variables in memory of the subgraph."""
        persistent = [
            t for i, t in enumerate(self.tensors) if (i in self.inputs or t.is_variable) and i not in self.bound
        ]
        return [(t, t.array.copy()) for t in persistent if t.array is not None]

    def _place_again(self, saved: list[tuple[Tensor, np.ndarray]]) -> None:
        """Plan memory again between two runs. saved: tensors that keep their values, which are copied."""
        self.ready, self.accepted = False, None  # also if interrupted here: the steps of two plans must not mix
        self._place_all()
        for t, array in saved:
            if t.array is not None and t.kind != OUTSIDE:
                t.array[...] = array

    def prepare_all(self, nodes: Iterable[Node], prepare: Callable[[Node], None]) -> set[int]:
        """Prepare nodes in order except those with an input of unknown shape; return the numbers of these."""
        self._dynamic.clear()
        self._touched.clear()
        for index, array in self.bound.items():
            bound_arrays.attach(self.tensors[index], array)
        for t in self.tensors:
            if t.kind in (DYNAMIC, OUTSIDE, FOLDED):
                self.memory_usage.forget((t,))
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
        """Set the resource of an input for all runs."""
        t.set_kind(FOLDED)
        self.allocate_own(t)
        t.array.fill(resource)  # type: ignore[union-attr]

    def _place(self, deferred: set[int], preserve_all: bool) -> None:
        for index, array in self.bound.items():
            bound_arrays.attach(self.tensors[index], array)
        for t in self.tensors:
            if t.kind == ARENA and t.index < self.file_tensors:
                self.bounded(t, t.shape)
            elif t.kind == OWN and t.array is None:
                self.allocate_own(t)
        running = [node for node in self.execution_plan if not is_folded(node)]
        static = [node for node in running if node.number not in deferred]
        used = {id(t) for node in running for t in (*node.tensors_in, *node.tensors_out)}
        permanent = self.tensors[: self.file_tensors] if preserve_all else [self.tensors[i] for i in self.inputs]
        for node in self.execution_plan:
            read = [t for t in node.tensors_in if t is not None and id(t) in used]
            if node.number in deferred:  # it may run at any later step
                permanent += read
            elif node.needs_values or any(t.kind == DYNAMIC for t in node.tensors_out):  # shapes depend on values,
                permanent += [t for t in read if t.nbytes <= MOST_READ]  # which a delegate may read after the run
        self.memory_usage.set_arena(memory.plan_memory(static, permanent, [self.tensors[i] for i in self.outputs]))

    def init_early(self) -> None:
        """Call init of nodes whose kernels are initialized when the interpreter is created."""
        for node in self.nodes:
            if node.registration is not None and node.registration.init_at_creation:
                self.init(node)

    def init(self, node: Node) -> None:
        """Call init of a node once."""
        registration = node.registration
        if node.initialized or registration is None:
            return
        if self.closed and registration.init_at_creation:
            raise node_error(
                FailedPreconditionError(op=node.name, what="the interpreter is closed", do="create another one"),
                node,
                "init",
                [],
            )
        if registration.init is not None:
            self.context.begin(node)
            try:
                definition = defined.get(node.name)  # of a builtin operator, imported by its registration
                if definition is not None and not isinstance(node.options, bytes):
                    definition.check_options(node.options)
                node.user_data = registration.init(self.context, node.options)
            except Exception as error:
                raise node_error(error, node, "init", self.context.reported) from error
        node.initialized = True

    def _refuse_output(self, node: Node, t: Tensor) -> None:
        """Raise InvalidArgumentError for an output that must not be written; custom operators may write an input."""
        builtin = node.delegate is None and not isinstance(node.options, bytes)
        what = (
            "a constant"
            if t.kind == CONSTANT
            else "a variable"
            if t.is_variable
            else "an input of the subgraph"
            if t.kind == OUTSIDE or t.index in self.changing
            else "also an input of the node"
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
        """Call prepare, after dropping temporaries of the last prepare."""
        registration: Any = node.registration
        for t in node.tensors_out:
            self._refuse_output(node, t)
        if node.added:
            self.drop_tensors(node.added)
            node.added, node.temporaries = [], []
        node.prepared_for, node.repeat = tuple(None if t is None else t.shape for t in node.tensors_in), None
        shapes = [t.shape for t in node.tensors_out]
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
                    view.tracker = None
            if registration.prepare is not None:
                check_status(registration.prepare(context, node), node.name, "prepare")
            check_temporaries(node, self.tensors)
            self._check_shared(node, shapes)
        except Exception as error:
            node.prepared_for = None
            raise node_error(error, node, "prepare", context.reported) from error

    def _check_shared(self, node: Node, shapes: list[tuple[int, ...]]) -> None:
        """Raise InvalidArgumentError if prepare resized an output that this node or an earlier one also uses.

        given: the shapes of the outputs before.
        """
        touched = {id(t): node for t in node.tensors_in if t is not None} if self.running else self._touched
        for t, shape in zip(node.tensors_out, shapes):
            other = touched.get(id(t))
            if other is not None and t.shape != shape:
                whose, found = "this node" if other is node else f"node {other.number}", list(t.shape)
                t.set_shape(shape)  # else a second allocation would take the result's shape for the input's
                raise InvalidArgumentError(
                    op=node.name,
                    what=f"output {t.name!r} is also a tensor of {whose}, and would get another shape",
                    found=found,
                    wanted=list(shape),
                )
        touched.update((id(t), node) for t in node.tensors_out)

    def drop_tensors(self, removed: Sequence[Tensor]) -> None:
        """Remove tensors that are not the file's; the remaining ones may get another index."""
        self.memory_usage.forget(removed)
        dropped = {id(t) for t in removed}
        n = self.file_tensors
        self.tensors = self.tensors[:n] + [t for t in self.tensors[n:] if id(t) not in dropped]
        for index, t in enumerate(self.tensors[n:], n):
            t.index = index

    def _step(self, node: Node, deferred: bool) -> Callable[[], Any]:
        if deferred and not node.registration.follows_shapes:  # type: ignore[union-attr]
            return functools.partial(self._run_deferred, node)
        try:
            return node.registration.bind(self.context, node)  # type: ignore[union-attr]
        except Exception as error:
            raise node_error(error, node, "prepare", self.context.reported) from error

    # ---- dynamic tensors ----------------------------------------------------------------------------------------

    def make_dynamic(self, t: Tensor) -> None:
        """Declare a tensor dynamic: its shape is determined when it is computed."""
        shared = id(t) in self._touched and not self.running
        if t.kind == CONSTANT or t.is_variable or t.index in self.inputs or shared:
            raise InvalidArgumentError(
                what=f"tensor {t.name!r} cannot be dynamic", found=repr(t), wanted="an output that no earlier node uses"
            )
        self._dynamic.add(t.index)
        if self.running and t.kind != DYNAMIC:
            raise FailedPreconditionError(
                what=f"tensor {t.name!r} was declared dynamic while the model runs",
                do="call context.set_tensor_to_dynamic(tensor) in prepare",
            )
        t.set_kind(DYNAMIC)
        t.bind(None)

    def bounded(self, t: Tensor, sizes: tuple[int, ...]) -> None:
        """Raise ResourceExhaustedError if a tensor of these sizes would exceed the limit."""
        self.memory_usage.check(t, sizes, self.running)

    def allocate_own(self, t: Tensor) -> None:
        """Allocate memory of its own for a tensor, within the limit."""
        self.memory_usage.allocate(t, self.running)

    def _run_deferred(self, node: Node, planned: Mapping[int, np.ndarray] | None = None) -> None:
        """Prepare the node if its inputs have other shapes than at its last prepare; then run it.

        planned: memory of outputs by tensor, which those of its shape are written to; others get memory of their own.
        """
        context = self.context
        if node.prepared_for != tuple(None if t is None else t.shape for t in node.tensors_in):
            for t in node.tensors_out:
                self._dynamic.discard(t.index)
                t.bind(None)
            self.prepare(node)
            for t in (*node.tensors_out, *(view.tensor for view in node.temporaries)):
                if t.array is None and t.index not in self._dynamic:
                    array = None if planned is None else planned.get(t.index)
                    t.set_kind(DYNAMIC)
                    if array is not None and (array.shape, array.dtype) == (t.shape, t.dtype.np):
                        t.bind(array)
                    else:
                        self.allocate_own(t)
        context.begin(node)
        registration: Any = node.registration
        check_status(registration.invoke(context, node), node.name, "invoke")

    # ---- running ------------------------------------------------------------------------------------------------

    def invoke(self) -> None:
        """Run every node. Raises OpErrors that are RuntimeErrors, too, naming the node; it can be invoked again."""
        if not self.ready:
            do = "create another interpreter: this one was closed" if self.closed else "call allocate_tensors() first"
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
        """Resume after a direct run that returned a status. Raises as invoke."""
        step: Any = self.joined[0]
        direct: Any = self._direct

        def run() -> None:
            try:
                direct.recover(status)
            except Exception as error:
                self.raise_node_error(error, self.joined, step)

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
            self.raise_node_error(error, steps, step)

    def runnable(self) -> list[Callable[[], Any]]:
        """Return the bound kernels in order, one for each node, instrumented as the present flags require."""
        if flags.check_inputs:
            pairs = zip(self.execution_plan, self.steps)
            return [functools.partial(run_watched, node, step) for node, step in pairs]
        return self.steps

    def raise_node_error(self, error: Exception, steps: list[Callable[[], Any]], step: Any) -> None:
        """Raise the error for an exception from a step, naming its node."""
        if hasattr(step, "failed"):
            node = step.nodes[step.failed]
        else:
            each = self.steps if steps is self.joined else steps
            node = self.execution_plan[next(i for i, s in enumerate(each) if s is step)]
        if isinstance(error, OpError) and names_failed_node(error):
            lines = (failure_line(node, "prepare"), *(failure_line(n, "invoke") for n in node.replaced))
            if error.message.endswith(lines):
                raise error  # already reported by a deferred node's prepare, or by a node that a delegate replaces
        raise node_error(error, node, "invoke", self.context.reported) from error

    def resize_input(self, t: Tensor, sizes: tuple[int, ...]) -> None:
        """Set the shape of an input; tensors must be allocated again."""
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
        """Reset variable tensors to zeros, those of int8 to their zero point. Resources keep their values."""
        for t in self.tensors:
            if t.is_variable and t.array is not None:
                t.clear()

    def release(self) -> None:
        """Free its memory except variable tensors; allocate again before the next run."""
        self.unready()
        for t in self.tensors:
            if t.kind != CONSTANT and not t.is_variable:
                t.bind(None)
        self.memory_usage.clear()

    def unready(self) -> None:
        """Require another allocation before the next run."""
        self.ready, self.accepted, self.connected = False, None, None
        self.steps = self.joined = []
        for t in self.tensors:
            if t.kind == FOLDED:
                self.memory_usage.forget((t,))
                t.set_kind(ARENA)

    def close(self) -> list[Exception]:
        """Free every initialized node; return the errors."""
        self.ready, self.closed, self.connected = False, True, None
        self.steps = self.joined = []
        errors = self.free(self.nodes)
        if self.native is not None:
            self.native.release()
            self.native = None
        return errors

    def free(self, nodes: Iterable[Node]) -> list[Exception]:
        """Call free of initialized nodes; return the errors."""
        errors: list[Exception] = []
        for node in nodes:
            registration = node.registration
            if not node.initialized or registration is None:
                continue
            node.initialized = False
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
    """Do nothing: a run that raises its errors has no status."""
