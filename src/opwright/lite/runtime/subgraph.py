"""A running subgraph: its allocation and the loop that runs its nodes.

Lives here: `Subgraph`: allocation, bound steps, runs.
Not here: preparing nodes (node_preparation.py), memory (memory.py), kernels (registration.py), subgraphs called by
nodes (callee_subgraph.py), delegates (delegation.py), timing (profiler.py).

    allocate   init each node once; prepare each node in order; plan and bind memory; bind kernels
    invoke     call the bound kernels in order
    close      free each node whose init returned, once
"""

from __future__ import annotations

import contextvars
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import errors, flags
from ...core.errors import FailedPreconditionError, OpError, also
from ...core.forks import cached_property
from ...core.lazy_imports import later
from ...ops.dispatch import quiet_context, quietly
from ..format.verify import called_subgraphs
from . import memory
from .callee_subgraph import CallableSubgraph
from .constants import link_block_scales, tensor_from_file
from .dynamic_shapes import MOST_READ, is_folded
from .errors import failure_line, names_failed_node, node_error
from .memory import MemoryUsage
from .node import Context, Node
from .node_preparation import NodePreparation
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


class Subgraph(NodePreparation, CallableSubgraph):
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
        self._dynamic, self._touched = set(), {}
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

    def _place(self, deferred: set[int], preserve_all: bool) -> None:
        for index, array in self.bound.items():
            bound_arrays.attach(self.tensors[index], array)
        running = [node for node in self.execution_plan if not is_folded(node)]
        static = [node for node in running if node.number not in deferred]
        used = {id(t) for node in running for t in (*node.tensors_in, *node.tensors_out)}
        self._allocate_kept(running, used, preserve_all)
        permanent = self.tensors[: self.file_tensors] if preserve_all else [self.tensors[i] for i in self.inputs]
        for node in self.execution_plan:
            read = [t for t in node.tensors_in if t is not None and id(t) in used]
            if node.number in deferred:  # it may run at any later step
                permanent += read
            elif node.needs_values or any(t.kind == DYNAMIC for t in node.tensors_out):  # shapes depend on values,
                permanent += [t for t in read if t.nbytes <= MOST_READ]  # which a delegate may read after the run
        self.memory_usage.set_arena(memory.plan_memory(static, permanent, [self.tensors[i] for i in self.outputs]))

    def _allocate_kept(self, running: list[Node], used: set[int], preserve_all: bool) -> None:
        """Allocate tensors outside of the arena, and release those of nodes that a delegate has claimed, such as
        weights as floats. Check the sizes of the others. used: ids of the tensors of running nodes."""
        used = used | {id(self.tensors[i]) for i in (*self.inputs, *self.outputs, *self.bound)}
        of_constants = {
            id(t)
            for node in running
            if all(t is None or t.kind == CONSTANT for t in node.tensors_in)
            for t in node.tensors_out
        }
        for t in self.tensors:
            if t.kind == ARENA and t.index < self.file_tensors:
                self.bounded(t, t.shape)
            elif t.kind == OWN:
                state = t.is_variable or t.is_object or t.index >= self.file_tensors
                if not (state or preserve_all or id(t) in used):
                    t.bind(None)
                    self.memory_usage.forget((t,))
                elif t.array is None:
                    self.memory_usage.allocate(t, self.running, of_constants=not state and id(t) in of_constants)

    def _step(self, node: Node, deferred: bool) -> Callable[[], Any]:
        if deferred and not node.registration.follows_shapes:  # type: ignore[union-attr]
            return functools.partial(self._run_deferred, node)
        try:
            return node.registration.bind(self.context, node)  # type: ignore[union-attr]
        except Exception as error:
            raise node_error(error, node, "prepare", self.context.reported) from error

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


def _always_good(status: int) -> None:
    """Do nothing: a run that raises its errors has no status."""
