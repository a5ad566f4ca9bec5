"""FuncTrace: one recording of a Python function as a graph.

Lives here: the conversion of calls to nodes, captures of outer values, variables created while tracing. Not here: when
to trace and how long traces are kept (function.py), execution (program.py), copying one trace into another
(inliner.py), control flow (control/).
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..compiler.plan import Plan
from ..core import dtypes, forks
from ..core.dtypes import of_numpy
from ..core.introspection import users_line
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor, is_frozen, to_array
from ..eager.variable import Variable
from ..graph import Graph, GraphBuilder, Value
from ..ops import array, dispatch
from ..ops.arguments import tensors
from ..ops.autodiff import OpRecord
from ..ops.call import Call
from ..ops.definition import Operator
from ..ops.indexed_slices import IndexedSlices
from ..ops.tensor import Overriding, ShapeOnlyTensor, TensorLike, conversion_of, overriding
from .placeholders import VariableArgument, with_shape_placeholders
from .symbolic import OutOfScopeError, SymbolicTensor

state = dispatch.state
_HANDLE = TensorSpec((), dtypes.resource)

# Held while recording. There is one lock for all traces: functions call each other in any order, and differentiating
# one extends its trace, so no thread may copy or extend a trace while another thread does.
TRACING = forks.lock()


class Recording:
    """A context in which a trace records the calls of its thread. finishes: whether the trace ends with it.

    A Ctrl-C at the first instruction of `__exit__` leaves the thread's state unchanged, and no finaliser corrects it
    later at an arbitrary point. Therefore code that starts to trace outside of any trace holds TRACING and resets the
    state in a `finally` of its own: by assignments, between which CPython delivers no signal. Nested recordings acquire
    no lock, so no lock can remain acquired.
    """

    __slots__ = ("_finishes", "_locks", "_saved", "_trace")

    def __init__(self, trace: FuncTrace, finishes: bool) -> None:
        self._trace, self._finishes = trace, finishes

    def __enter__(self) -> FuncTrace:
        self._locks = not TRACING._is_owned()
        if self._locks:
            TRACING.acquire()
        self._saved = state.trace, state.tapes, state.names
        state.trace, state.tapes, state.names = self._trace, (self._trace.recorder,), ()
        return self._trace

    def __exit__(self, *error: object) -> None:
        state.trace, state.tapes, state.names = self._saved
        if self._locks:
            TRACING.release()
        if self._finishes:
            self._trace.finished = True
            self._trace.call_tensors = None  # a trace outlives its first call, and must not keep the arguments alive


class _Recorder:
    """The tape of every trace: it keeps all records, for gradients of the finished function."""

    watches_variables = False
    persistent = False

    def __init__(self) -> None:
        self.records: list[Any] = []

    def record(self, record: Any) -> None:
        self.records.append(record)

    keep = record

    def watch_variable(self, variable: Any) -> None:
        """Do nothing: all records are kept."""

    def follows(self, keys: Sequence[int]) -> bool:
        return True


class FuncTrace:
    """A recording in progress, or its result.

    inputs: placeholders of the arguments. captures: outer values that the program uses, in order of first use, each
    with its placeholder: eager tensors, variables (by handle), tensors of the enclosing trace. foreign: for traces that
    are neither this one nor enclose it, a function from their tensors to tensors here. The gradient of a branch or loop
    body refers to tensors of that body.
    """

    def __init__(self, name: str, parent: FuncTrace | None = None) -> None:
        self.name, self.parent = name, parent
        self.builder = GraphBuilder(name)
        self.inputs: list[SymbolicTensor] = []
        self.captures: dict[int, tuple[Any, SymbolicTensor]] = {}
        self.recorder = _Recorder()
        self.created_variables: list[Any] = []
        self.may_create_variables = True
        self.native: bool | None = parent.native if parent is not None else None  # whether machine code is requested
        self.call_tensors: Callable[[], Sequence[Any]] | None = None  # the inputs' values in the call being traced
        self.foreign: dict[FuncTrace, Callable[[SymbolicTensor], Any]] = {}
        self.finished = False
        self.opened: weakref.WeakSet[Any] = weakref.WeakSet()  # tapes opened in this trace
        self.shapes: dict[int, SymbolicTensor] = {}  # of its tensors, computed after it ended (placeholders.py)
        self._distant_captures: dict[
            int, tuple[Any, SymbolicTensor]
        ] = {}  # tensors of traces further out than the parent
        self.variable_arguments: dict[int, VariableArgument] = {}  # by their places among the inputs
        self.represented_variables: dict[int, Any] = {}  # by id of the placeholder variables of other traces

    # ---- being the current trace ----------------------------------------------------------------------------------

    def recording(self) -> Recording:
        """Return a context in which calls are recorded here, invisible to outer tapes. The trace ends with it."""
        return Recording(self, finishes=True)

    def resumed(self) -> Recording:
        """Return a context in which calls are added to this trace, finished or not, such as the calls that its gradient
        requires.
        """
        return Recording(self, finishes=False)

    def placeholder(self, spec: TensorSpec, name: str) -> SymbolicTensor:
        """Add an argument."""
        tensor = self.free_placeholder(spec, name)
        self.inputs.append(tensor)
        return tensor

    def variable_argument(self, owner: Any, name: str, kind: Any) -> VariableArgument:
        """Add an argument that is a variable. kind: its VariableType; owner: the Function being traced."""
        variable = VariableArgument(owner, self, kind.name, kind.dtype, kind.shape, kind.trainable, kind.constraint)
        placeholder = self.placeholder(_HANDLE, name)
        self.variable_arguments[len(self.inputs) - 1] = variable
        self._distant_captures[id(variable)] = variable, placeholder
        return variable

    @property
    def sources(self) -> list[Any]:
        """The identity of each input for gradients: its placeholder, or the placeholder variable."""
        return [self.variable_arguments.get(i, t) for i, t in enumerate(self.inputs)]

    def free_placeholder(self, spec: TensorSpec, name: str) -> SymbolicTensor:
        """Add an input of the graph whose value the caller provides."""
        return SymbolicTensor(self.builder.input(name, TensorSpec(spec.shape, spec.dtype)), self)

    # ---- recording ------------------------------------------------------------------------------------------------

    def record(self, op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> Any:
        """Add a node for the call; return symbolic tensors."""
        for x in inputs:
            if type(x) is not SymbolicTensor or x.trace is not self:
                if op.shape_only:
                    inputs = with_shape_placeholders(self, op, inputs)
                inputs = tensors(op, inputs, self.to_tensor, name)
                special = overriding(inputs)
                if special is not None:
                    return special.record(op, inputs, bound, name)
                break
        else:
            if not op.profile.simple:  # a single tensor passed for a repeated input represents its slices
                inputs = tensors(op, inputs, self.to_tensor, name)
        specs = op.infer(bound, inputs, name)
        flat = [s for spec in specs for s in (spec if isinstance(spec, list) else (spec,))]
        node_name = name or op.name
        if node_name[-1] == "/":  # the value of a name scope is a complete name
            node_name = node_name[:-1]
        elif state.names:
            node_name = "/".join((*state.names, node_name))
        return op.pack_outputs(self.record_specs(op, inputs, bound, flat, node_name, users_line()))

    def record_specs(
        self,
        op: Operator,
        structure: Sequence[Any],
        bound: Call,
        specs: Sequence[TensorSpec],
        name: str,
        line: str | None,  # of the user's program
    ) -> list[SymbolicTensor]:
        """Add a node whose inputs are tensors of this trace and whose output specs are known, and record it to the
        tapes.
        """
        operands = [
            None if x is None else tuple([self.value_of(y) for y in x]) if type(x) is tuple else self.value_of(x)
            for x in structure
        ]
        node = self.builder.node(op, operands, bound.attrs, specs, name, line)
        outs = [SymbolicTensor(v, self) for v in node.outputs]
        if state.tapes:
            record = OpRecord(op, bound, structure, outs)
            for tape in state.tapes:
                tape.record(record)
        return outs

    def record_control(
        self,
        kind: type[OpRecord],
        op: Operator,
        structure: Sequence[Any],
        attrs: dict[str, Any],
        specs: Sequence[TensorSpec],
        name: str | None,
    ) -> list[SymbolicTensor]:
        """Add a control flow node, whose attributes contain graphs; `kind` is its gradient record."""
        operands = [tuple([self.value_of(y) for y in x]) if type(x) is tuple else self.value_of(x) for x in structure]
        node_name = "/".join((*state.names, name or op.name))
        node = self.builder.node(op, operands, attrs, specs, node_name, users_line())
        outs = [SymbolicTensor(v, self) for v in node.outputs]
        record = kind(op, None, structure, outs)
        watch_variables(record.inputs)
        for tape in state.tapes:
            tape.record(record)
        return outs

    def widened(self, outputs: Sequence[SymbolicTensor], added: SymbolicTensor) -> None:
        """Extend the tapes that follow a control flow node's outputs to an output added for its gradient."""
        for tape in self.opened:
            tape.follow(outputs, added)

    def to_tensor(self, value: Any, dtype: Any = None, name: str | None = None) -> Any:
        """Convert `value` to a tensor of this trace."""
        if type(value) is SymbolicTensor:
            return value if value.trace is self else self.capture(value)
        if type(value) is EagerTensor:
            return self.capture(value)
        if isinstance(value, Variable):
            return value.value()
        if isinstance(value, Overriding):
            return value
        if isinstance(value, ShapeOnlyTensor):
            return value  # `record` checks its uses
        if isinstance(value, IndexedSlices):
            return self.to_tensor(value.to_dense())
        convert = conversion_of(value)
        if convert is not None:
            return self.to_tensor(convert(dtype, name))
        if isinstance(value, (list, tuple)) and _has_tensors(value):
            inferred = next(v.dtype for v in _leaves(value) if isinstance(v, TensorLike))
            tensors = [self.to_tensor(v, dtype or inferred) for v in value]
            if dtype is not None:  # the dtype of the other operands
                tensors = [t if t.dtype is dtype else array.cast(t, dtype) for t in tensors]
            return array.stack(tensors)
        array_, inferred = (value, of_numpy(value.dtype)) if is_frozen(value, dtype) else to_array(value, dtype)
        return self.constant(array_, inferred, name)

    def constant(self, array: np.ndarray, dtype: dtypes.DType, name: str | None = None) -> SymbolicTensor:
        """Add a Const node."""
        from ..ops.array.constants import Const

        array.setflags(write=False)
        const: Any = Const
        node = self.builder.node(const, (), {"value": array}, [TensorSpec(array.shape, dtype)], name, users_line())
        return SymbolicTensor(node.outputs[0], self)

    def value_of(self, tensor: Any) -> Value:
        """Return the graph value of a tensor of this trace, or of the handle of a variable."""
        if isinstance(tensor, Variable):
            return self.capture(tensor).value_in_graph
        result: Value = tensor.value_in_graph
        return result

    def capture(self, outer: Any, copied: bool = True) -> SymbolicTensor:
        """Return the placeholder in this graph of an outer value.

        copied: whether a constant becomes a new constant at each use, so that rules which read values see it.

        raises OutOfScopeError for a tensor of a trace that has ended and does not enclose this one
        """
        existing = self.captures.get(id(outer)) or self._distant_captures.get(id(outer))
        if existing is not None:
            return existing[1]
        spec, name = _HANDLE, "captured"
        if type(outer) is SymbolicTensor:
            if outer.constant is not None and copied and not self._is_input_of_enclosing(outer):
                return self.constant(outer.constant, outer.dtype, outer.value_in_graph.name)
            ancestor: FuncTrace | None = self
            while ancestor is not None and ancestor is not outer.trace:
                if outer.trace in ancestor.foreign:
                    return self._local(ancestor.foreign[outer.trace](outer))
                ancestor = ancestor.parent
            if ancestor is None:
                raise OutOfScopeError(
                    what=f"{outer.out_of_scope_in()}, and is used in {self.name!r}",
                    wanted="a tensor of this function",
                    do="return it from its function, or keep it in an ow.Variable",
                    explain="OW602",
                )
            if self.parent is not outer.trace and self.parent is not None:
                parent_tensor = self.parent.capture(outer, copied)  # pass it on one trace at a time
                placeholder = self.capture(parent_tensor)
                self._distant_captures[id(outer)] = (outer, placeholder)
                return placeholder
            spec, name = outer.spec, outer.value_in_graph.name
        elif type(outer) is EagerTensor:
            spec = outer.spec
        else:
            name = outer.name.partition(":")[0]
        placeholder = SymbolicTensor(self.builder.input(name, spec), self)
        self.captures[id(outer)] = (outer, placeholder)
        return placeholder

    def captured_tensor(self, value: Value) -> object:
        """Return the outer value of a captured input of this graph; None for an argument."""
        for outer, placeholder in (*self.captures.values(), *self._distant_captures.values()):
            if placeholder.value_in_graph is value:
                return outer
        return None

    def local_tensor(self, tensor: Any, capture: bool = False) -> object:
        """Return the tensor of this graph that represents an outer tensor; the tensor itself if it is not captured.

        capture: capture it, once for all of its uses. Tapes follow tensors by identity: those opened in this trace
        refer to an outer tensor by its local one.
        """
        if type(tensor) is not EagerTensor and (type(tensor) is not SymbolicTensor or tensor.trace is self):
            return tensor
        existing = self.captures.get(id(tensor)) or self._distant_captures.get(id(tensor))
        if existing is not None:
            return existing[1]
        if not capture:
            return tensor
        return self.capture(tensor, copied=False)

    def _is_input_of_enclosing(self, constant: SymbolicTensor) -> bool:
        """Return whether a trace between this one and a constant's has it as an input, as a tape there watches it."""
        trace = self.parent
        while trace is not None and trace is not constant.trace:
            if id(constant) in trace.captures or id(constant) in trace._distant_captures:
                return True
            trace = trace.parent
        return False

    def _local(self, tensor: Any) -> SymbolicTensor:
        return tensor if type(tensor) is SymbolicTensor and tensor.trace is self else self.capture(tensor)

    # ---- variables ------------------------------------------------------------------------------------------------

    def lift_initial_value(self, variable: Any, value: Any) -> object:
        """Compute the initial value of a variable created while tracing, once, outside of the graph.

        raises ValueError if the function was traced before, or if the value depends on arguments whose values are
        unknown (get_concrete_function)
        """
        if not self.may_create_variables:
            raise ValueError(
                "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable "
                "is only created once or created outside tf.function. "
                f"This one is created at {users_line()}. (opwright explain OW603)"
            )
        self.created_variables.append(variable)
        with init_scope():
            if callable(value) and not isinstance(value, TensorLike):
                return value()
        return self._lift(value) if isinstance(value, SymbolicTensor) else value

    def _lift(self, tensor: SymbolicTensor) -> np.ndarray:
        """Compute a tensor of this trace now, from the nodes that it depends on."""
        nodes, sources, required = [], [], {tensor.value_in_graph}
        for node in reversed(self.builder.nodes):
            if any(v in required for v in node.outputs):
                nodes.append(node)
                required.update(node.operands)
        arrays = []
        for outer, placeholder in self.captures.values():
            if placeholder.value_in_graph in required:
                sources.append(placeholder.value_in_graph)
                arrays.append(outer._array if not isinstance(outer, SymbolicTensor) else outer.trace._lift(outer))
        read = [i for i, argument in enumerate(self.inputs) if argument.value_in_graph in required]
        values = self.call_tensors() if read and self.call_tensors is not None else ()
        for i in read:
            argument = self.inputs[i]
            if not values:
                raise ValueError(
                    f"The initial value of a variable created inside a function must not depend on arguments without "
                    f"values; {tensor} depends on {argument.value_in_graph.name!r}. "
                    "Call the function first, or pass a function without arguments: Variable(lambda: ...)"
                )
            value = values[i]
            sources.append(argument.value_in_graph)
            with init_scope():
                arrays.append(
                    value.trace._lift(value)
                    if isinstance(value, SymbolicTensor)
                    else dispatch.to_tensor(value, argument.dtype).constant
                )
        plan = Plan(Graph("initial_value", sources, nodes[::-1], [tensor.value_in_graph]))
        return np.array(dispatch.quietly(plan.run, *arrays)[0])


def watch_variables(inputs: Sequence[Any]) -> None:
    """Notify the active tapes of the trainable variables among the inputs of a call."""
    for x in inputs:
        if isinstance(x, Variable) and x.trainable:
            for tape in state.tapes:
                if getattr(tape, "watches_variables", False):
                    tape.watch_variable(x)


def _leaves(value: Any) -> Iterator[Any]:
    for item in value:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield item


def _has_tensors(value: Any) -> bool:
    return any(isinstance(v, TensorLike) for v in _leaves(value))


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Return a context of eager execution, outside of all traces."""
    saved = state.trace, state.tapes
    state.trace, state.tapes = None, ()
    try:
        yield
    finally:
        state.trace, state.tapes = saved


def executing_eagerly() -> bool:
    """Return whether operators are computed immediately (True) or recorded (False)."""
    return state.trace is None
