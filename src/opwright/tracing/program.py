"""Program: a finished trace that can be executed, inlined and differentiated.

Lives here: execution on arrays by a Plan, and the derived programs that gradients need.
Not here: argument structures and caches (function.py).

A call under a tape executes the forward graph with the intermediate values that the backward graph reads as additional
outputs. If gradients of gradients are possible (nested or persistent tapes), these intermediates are differentiable
outputs, so every order follows by the same construction.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..compiler.plan import Plan
from ..compiler.tiered_plan import TieredPlan
from ..core import flags
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..graph import Graph
from ..graph.passes import UNUSED, run_passes
from ..ops import array, dispatch
from ..ops.autodiff import CustomRecord, accumulate, backpropagate, is_trainable
from ..ops.indexed_slices import IndexedSlices
from ..ops.tensor import ShapeOnlyTensor, Tensor, identity_key, tensor_identity
from .inliner import fused_call, inline
from .placeholders import VariableArgument, shape_placeholder
from .symbolic import SymbolicTensor
from .trace import TRACING, FuncTrace

if TYPE_CHECKING:
    from ..compiler.native_plan import NativePlan

state = dispatch.state
quietly = dispatch.quietly


def gradients_by_kind(kinds: Sequence[str | None], flat: Iterator[Any]) -> list[Any]:
    """Return gradients from their tensors: None, one for "dense", three of IndexedSlices for "sparse"."""
    return [
        None if kind is None else next(flat) if kind == "dense" else IndexedSlices(next(flat), next(flat), next(flat))
        for kind in kinds
    ]


class Program:
    """A finished trace with selected outputs. Called with flat tensors, the arguments only; captures belong to the
    program.

    implements: the fused operator that represents a call inside another trace, if any.
    """

    __slots__ = ("_checked", "_derivatives", "_plan", "captured", "graph", "implements", "outputs", "trace")

    def __init__(self, trace: FuncTrace, outputs: Sequence[SymbolicTensor], implements: str | None = None) -> None:
        self.trace, self.implements = trace, implements
        self.outputs = tuple(outputs)
        self.captured: tuple[Any, ...] = tuple(outer for outer, _ in trace.captures.values())
        builder = trace.builder
        inputs = [t.value_in_graph for t in (*trace.inputs, *(p for _, p in trace.captures.values()))]
        raw = Graph(builder.name, inputs, builder.nodes, [o.value_in_graph for o in outputs])
        self.graph = run_passes(raw)
        if "graph" in flags.show:
            print(self.graph, file=sys.stderr)
        self._plan: Plan | NativePlan | TieredPlan | None = None
        self._checked: dict[tuple[bool, bool], Plan] = {}
        self._derivatives: dict[bool, _Derivative] = {}

    @property
    def checked_plan(self) -> Plan:
        """The plan that checks the results and effects of each kernel, for the flags check_numerics and
        check_inputs.
        """
        switches = flags.check_numerics, flags.check_inputs
        plan = self._checked.get(switches)
        if plan is None:
            builder = self.trace.builder  # the recorded graph: a folded constant would hide the origin of its NaN
            raw = Graph(builder.name, self.graph.inputs, builder.nodes, [o.value_in_graph for o in self.outputs])
            plan = self._checked[switches] = Plan(run_passes(raw, UNUSED), *switches)
        return plan

    @property
    def plan(self) -> Plan | NativePlan | TieredPlan:
        """The plan, built on first use; it uses machine code if requested, or if it may be compiled after frequent
        calls.
        """
        if self._plan is None:
            if self.trace.native:
                from ..compiler.native_plan import NativePlan

                self._plan = NativePlan(self.graph)
                return self._plan
            if self.trace.native is None and flags.jit and not flags.deterministic:
                self._plan = TieredPlan(self.graph)
                return self._plan
            self._plan = Plan(self.graph)
            if "plan" in flags.show:
                print(self._plan, file=sys.stderr)
        return self._plan

    def run(self, arguments: Sequence[Any], captured: Sequence[Any]) -> list[EagerTensor]:
        """Execute on eager tensors (and variables), without recording to tapes."""
        plan = self.checked_plan if flags.checked else self.plan
        try:
            arrays = quietly(plan.run, *[a._array for a in arguments], *[c._array for c in captured])
        except Exception as error:
            inputs = [a._array for a in (*arguments, *captured)]
            raise (failure := plan.explain(error, inputs)) from failure.__cause__
        return [EagerTensor(a, v.spec.dtype) for a, v in zip(arrays, self.graph.outputs)]

    def consume(self, arrays: list[Any]) -> list[EagerTensor]:
        """Execute on arrays, arguments and captures in one list, which is emptied: each array is released at its last
        use.
        """
        plan = self.checked_plan if flags.checked else self.plan
        try:
            results = quietly(plan.consume, arrays)
        except Exception as error:
            raise (failure := plan.explain(error)) from failure.__cause__
        return [EagerTensor(a, v.spec.dtype) for a, v in zip(results, self.graph.outputs)]

    def call(self, arguments: Sequence[Any], captured: Sequence[Any] | None = None) -> list[Any]:
        """Execute now or inline into the active trace, and record to tapes.

        captured: replacements of the captures, if not the captured objects themselves; a backward program receives the
        tensors of one forward run.
        """
        if captured is None:
            captured = self.captured
        trace = state.trace
        if trace is not None:
            assert isinstance(trace, FuncTrace)
            inputs = [
                a
                if isinstance(a, Variable)
                else shape_placeholder(trace, a)
                if type(a) is ShapeOnlyTensor
                else trace.to_tensor(a)
                for a in (*arguments, *captured)
            ]

            def inlined(inputs: Sequence[Any]) -> list[Any]:
                tensors = [trace.capture(a) if isinstance(a, Variable) else a for a in inputs]
                variables = {id(v): inputs[i] for i, v in self.trace.variable_arguments.items()}
                return inline(trace, self.trace, tensors, self.outputs, variables)

            return inlined(inputs) if self.implements is None else fused_call(self.implements, inputs, inlined)
        tapes = state.tapes
        if tapes:
            for variable in (*arguments, *captured):
                if isinstance(variable, Variable) and variable.trainable:
                    for tape in tapes:
                        if getattr(tape, "watches_variables", False):
                            tape.watch_variable(variable)
            inputs = [*arguments, *captured]
            keys = [identity_key(x) for x in inputs]
            live = [t for t in tapes if t.follows(keys)]
            if live:
                higher = len(live) > 1 or any(t.persistent for t in live)
                return self._call_recorded(inputs, len(arguments), higher)
        return self.run(arguments, captured)

    def _call_recorded(self, inputs: list[Any], n_arguments: int, higher: bool) -> list[Any]:
        derivative = self._derivatives.get(higher)
        if derivative is None:
            with TRACING:
                derivative = self._derivatives.get(higher)
                if derivative is None:
                    before = state.trace, state.tapes, state.names
                    try:
                        derivative = self._derivatives[higher] = _Derivative(self, higher)
                    finally:  # reset by assignments: see Recording
                        state.trace, state.tapes, state.names = before
        forward = derivative.forward
        results = forward.run(inputs[:n_arguments], inputs[n_arguments:])
        n = len(self.outputs)
        values = {key: results[i] for i, key in derivative.stored_outputs}
        values.update([(key, inputs[i]) for i, key in derivative.stored_inputs])
        values.update([(id(v), inputs[i]) for i, v in self.trace.variable_arguments.items()])
        recorded = results if higher else results[:n]
        identities = [tensor_identity(y) for y in recorded]

        sources = list(map(tensor_identity, inputs))

        def backward(dys: Sequence[Any], once: bool = False) -> list[Any]:
            grads = derivative.backward(dys, values, identities, once and not higher)
            for i in derivative.reached:
                if grads[i] is None:
                    grads[i] = array.zeros_like(sources[i])
            return grads

        record = CustomRecord(inputs, recorded, backward, functools.partial(backward, once=True))
        for tape in state.tapes:
            tape.record(record)
        return results[:n]


def _gradient_form(dy: Any) -> tuple[Any, Any] | bool:
    """Return the form of an incoming gradient: False (none), True (dense), or for sparse rows their dtypes."""
    if isinstance(dy, IndexedSlices) and dy.dense_shape is not None:
        return dy.indices.dtype, dispatch.to_tensor(dy.dense_shape).dtype
    return dy is not None


def _gradient_placeholder(trace: FuncTrace, y: SymbolicTensor, form: Any) -> SymbolicTensor | IndexedSlices:
    """Return the placeholder of the incoming gradient of y in a backward program."""
    name = f"d_{y.value_in_graph.name}"
    if form is True:
        return trace.placeholder(y.spec, name)
    indices, shape = form
    values = None if y.shape.rank is None else [None, *y.shape[1:]]
    return IndexedSlices(
        trace.placeholder(TensorSpec(values, y.dtype), name),
        trace.placeholder(TensorSpec([None], indices), f"{name}_indices"),
        trace.placeholder(TensorSpec([y.shape.rank], shape), f"{name}_shape"),
    )


def _dense(dy: Any) -> Tensor | None:
    return dy.to_dense() if isinstance(dy, IndexedSlices) else dy


class _Backward(NamedTuple):
    """A backward program. Its arguments are the incoming gradients.

    kinds: for each input and capture of the forward program None, "dense" or "sparse". captured: its captures, by the
    key of a forward tensor, each with its replacement if it is not stored. read: the keys of the tensors that must be
    stored.
    """

    program: Program
    kinds: list[Any]
    captured: list[tuple[int, Any]]
    read: frozenset[int]


class _Derivative:
    """The programs of one gradient: the forward program with intermediates, and backward programs.

    higher: whether gradients may also flow into the intermediates. placeholders: the program's inputs and captures.
    """

    def __init__(self, program: Program, higher: bool) -> None:
        trace = program.trace
        self.program, self.trace = program, trace
        self.placeholders = [*trace.inputs, *(p for _, p in trace.captures.values())]
        self._backward: dict[tuple[Any, ...], _Backward] = {}
        inputs = {id(p) for p in self.placeholders}
        outputs = list(program.outputs)
        while True:  # for higher orders, until gradients of the intermediates need no further ones
            mask = tuple(is_trainable(o.dtype) for o in outputs)
            built = self._backward[mask] = self._build(outputs, mask)
            read = self._read(built.program, higher)
            existing = {*inputs, *(id(o) for o in outputs)}
            new = [c for c in read if id(c) not in existing]
            if not (higher and new):
                break
            outputs += new
        self.forward = Program(trace, [*outputs, *new])
        stored = {id(c) for c in read}
        self.stored_outputs = [(i, id(o)) for i, o in enumerate(self.forward.outputs) if id(o) in stored]
        self.stored_inputs = [(i, id(p)) for i, p in enumerate(self.placeholders) if id(p) in stored]
        # An input that an output depends on has a gradient (at least zeros), whichever outputs are differentiated.
        kinds = self._backward[tuple(is_trainable(o.dtype) for o in program.outputs)].kinds
        sources = zip((*trace.sources, *program.captured), kinds)
        self.reached = [
            i
            for i, (source, kind) in enumerate(sources)
            if kind and (isinstance(source, Variable) or not source.dtype.is_handle)
        ]

    def _read(self, backward: Program, higher: bool = False) -> list[SymbolicTensor]:
        """Return the tensors of the forward program to store for a backward program.

        These are the ones that it reads after its passes. For higher orders, its own gradient may read any of its
        captures, so all are stored; otherwise a capture that is not read is replaced by a shape-only tensor if its
        shape is known.
        """
        graph = backward.graph
        used = {v for node in graph.nodes for v in node.operands}.union(graph.outputs)
        stored = []
        for outer, placeholder in backward.trace.captures.values():
            if isinstance(outer, SymbolicTensor) and outer.trace is self.trace:
                replaceable = outer.shape.is_fully_defined() and not outer.dtype.is_handle
                if higher or not replaceable or placeholder.value_in_graph in used:
                    stored.append(outer)
        return stored

    def _build(self, outputs: Sequence[SymbolicTensor], mask: Sequence[Any]) -> _Backward:
        """Build the backward program for incoming gradients of the masked outputs."""
        trace = FuncTrace(f"{self.trace.name}_backward", parent=self.trace)
        with trace.recording():
            targets: dict[int, Any] = {}
            for y, form in zip(outputs, mask):
                if form:
                    dy = _gradient_placeholder(trace, y, form)
                    targets[id(y)] = accumulate(targets[id(y)], dy) if id(y) in targets else dy
            sources = [
                outer if isinstance(outer, Variable) else placeholder
                for outer, placeholder in zip((*self.trace.sources, *self.program.captured), self.placeholders)
            ]
            grads = backpropagate(self.trace.recorder.records, targets, {id(s) for s in sources})
            kinds: list[Any] = []
            flat: list[SymbolicTensor] = []
            for source in sources:
                grad = grads.get(id(source))
                if grad is None:
                    kinds.append(None)
                elif isinstance(grad, IndexedSlices):
                    kinds.append("sparse")
                    dense_shape = grad.dense_shape
                    flat += [trace.to_tensor(x) for x in (grad.values, grad.indices, dense_shape)]
                else:
                    kinds.append("dense")
                    flat.append(trace.to_tensor(grad))
        program = Program(trace, flat)
        captured = [
            (id(c), ShapeOnlyTensor(c.dtype, c.shape))
            if isinstance(c, SymbolicTensor) and c.trace is self.trace
            else (id(c) if isinstance(c, VariableArgument) else 0, c)
            for c in program.captured
        ]
        return _Backward(program, kinds, captured, frozenset(id(c) for c in self._read(program)))

    def backward(
        self, dys: Sequence[Any], values: dict[int, Any], identities: Sequence[Any], once: bool = False
    ) -> list[Any]:
        """Return the gradients of inputs and captures.

        values: the stored tensors of the forward run, by id of their symbolic tensors. identities: of its outputs.
        once: there is no further call; `values` is emptied, so that tensors of the forward run are released at their
        last use.
        """
        mask = tuple(_gradient_form(dy) if is_trainable(o.dtype) else False for dy, o in zip(dys, self.forward.outputs))
        built = self._backward.get(mask)
        if built is None:
            with TRACING:
                built = self._backward.get(mask)
                if built is None:
                    before = state.trace, state.tapes, state.names
                    try:
                        built = self._backward[mask] = self._build(self.forward.outputs[: len(mask)], mask)
                    finally:  # reset by assignments: see Recording
                        state.trace, state.tapes, state.names = before
        kinds = built.kinds
        if not built.read <= values.keys():
            # Zeros in place of a missing gradient need a shape that the forward run has not stored: use the outputs'.
            full = tuple(is_trainable(y.dtype) for y in identities)
            filled = [
                array.zeros_like(y) if m and dy is None else _dense(dy) for dy, y, m in zip(dys, identities, full)
            ]
            if mask != full:
                grads = self.backward(filled, values, identities, once)
                return [None if kind is None else grad for kind, grad in zip(kinds, grads)]
        arguments: list[Any] = []
        for dy, form in zip(dys, mask):
            if form is True:
                arguments.append(_dense(dy))
            elif form:
                arguments += [dy.values, dy.indices, dy.dense_shape]
        captured = [values.get(key, other) for key, other in built.captured]
        if once and state.trace is None and not state.tapes:
            arrays = [x._array for x in (*arguments, *captured)]
            values.clear()
            del arguments, captured
            flat = iter(built.program.consume(arrays))
        else:
            flat = iter(built.program.call(arguments, captured))
        return gradients_by_kind(kinds, flat)
