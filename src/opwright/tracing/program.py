"""Program: a finished trace that can be run, inlined and differentiated.

Lives here: running on arrays through a Plan, and the derived programs that gradients need.
Not here: argument structures and caches (function.py).

A call under a tape runs the forward graph with the intermediate values that the backward graph reads as further
outputs. Where gradients of gradients may be asked for (nested or persistent tapes) these intermediates are themselves
outputs that gradients can flow into, so every order is the same construction again.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any

from ..compiler.plan import Plan
from ..core import flags
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..graph import Graph
from ..graph.passes import UNUSED, run_passes
from ..ops import array, dispatch
from ..ops.autodiff import CustomRecord, accumulate, backpropagate, is_trainable
from ..ops.indexed_slices import IndexedSlices
from ..ops.outline import identity_of
from .inlining import inline
from .symbolic import SymbolicTensor
from .trace import TRACING, FuncTrace

state = dispatch.state
quietly = dispatch.quietly


class Program:
    """A finished trace with chosen outputs. Called with flat tensors: arguments only, the captures are its own."""

    __slots__ = ("_checked", "_derivatives", "_plan", "captured", "graph", "outputs", "trace")

    def __init__(self, trace: FuncTrace, outputs: Sequence[SymbolicTensor]) -> None:
        self.trace = trace
        self.outputs = tuple(outputs)
        self.captured: tuple[Any, ...] = tuple(outer for outer, _ in trace.captures.values())
        builder = trace.builder
        inputs = [t.value_in_graph for t in (*trace.inputs, *(p for _, p in trace.captures.values()))]
        raw = Graph(builder.name, inputs, builder.nodes, [o.value_in_graph for o in outputs])
        self.graph = run_passes(raw)
        if "graph" in flags.show:
            print(self.graph, file=sys.stderr)
        self._plan: Plan | None = None
        self._checked: dict[tuple[bool, bool], Plan] = {}
        self._derivatives: dict[bool, _Derivative] = {}

    @property
    def checked_plan(self) -> Plan:
        """The plan that looks at what every kernel gives and does, for the switches check_numerics, check_inputs."""
        switches = flags.check_numerics, flags.check_inputs
        found = self._checked.get(switches)
        if found is None:
            builder = self.trace.builder  # as it was recorded: a folded constant would hide where its NaN comes from
            raw = Graph(builder.name, self.graph.inputs, builder.nodes, [o.value_in_graph for o in self.outputs])
            found = self._checked[switches] = Plan(run_passes(raw, UNUSED), *switches)
        return found

    @property
    def plan(self) -> Plan:
        """The plan, made at first use."""
        if self._plan is None:
            self._plan = Plan(self.graph)
            if "plan" in flags.show:
                print(self._plan, file=sys.stderr)
        return self._plan

    def run(self, arguments: Sequence[Any], captured: Sequence[Any]) -> list[EagerTensor]:
        """Compute on eager tensors (and variables); tapes are not told."""
        plan = self.checked_plan if flags.checked else self.plan
        try:
            arrays = quietly(plan.run, *[a._array for a in arguments], *[c._array for c in captured])
        except Exception as error:
            raise plan.explain(error) from None
        return [EagerTensor(a, v.spec.dtype) for a, v in zip(arrays, self.graph.outputs)]

    def consume(self, arrays: list[Any]) -> list[EagerTensor]:
        """`run` on arrays, arguments and captures in one list, which it empties: each dies at its last use."""
        plan = self.checked_plan if flags.checked else self.plan
        try:
            results = quietly(plan.consume, arrays)
        except Exception as error:
            raise plan.explain(error) from None
        return [EagerTensor(a, v.spec.dtype) for a, v in zip(results, self.graph.outputs)]

    def call(self, arguments: Sequence[Any], captured: Sequence[Any] | None = None) -> list[Any]:
        """Run now or inline into the current trace; tapes are told.

        captured: what stands for the captures, where it is not the captured things themselves; a backward program gets
        the tensors of one forward run.
        """
        if captured is None:
            captured = self.captured
        trace = state.trace
        if trace is not None:
            assert isinstance(trace, FuncTrace)
            inputs = [trace.to_tensor(a) if not isinstance(a, Variable) else a for a in (*arguments, *captured)]
            return inline(
                trace, self.trace, [trace.capture(a) if isinstance(a, Variable) else a for a in inputs], self.outputs
            )
        tapes = state.tapes
        if tapes:
            for variable in captured:
                if isinstance(variable, Variable) and variable.trainable:
                    for tape in tapes:
                        if getattr(tape, "watches_variables", False):
                            tape.watch_variable(variable)
            inputs = [*arguments, *captured]
            keys = [identity_of(x) for x in inputs]
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
                    derivative = self._derivatives[higher] = _Derivative(self, higher)
        forward = derivative.forward
        results = forward.run(inputs[:n_arguments], inputs[n_arguments:])
        n = len(self.outputs)
        known = dict(zip((id(o) for o in forward.outputs), results))
        known.update(zip((id(p) for p in derivative.placeholders), inputs))
        recorded = results if higher else results[:n]

        def backward(dys: Sequence[Any], once: bool = False) -> list[Any]:
            return derivative.backward(dys, known, once and not higher)

        record = CustomRecord(inputs, recorded, backward, functools.partial(backward, once=True))
        for tape in state.tapes:
            tape.record(record)
        return results[:n]


class _Derivative:
    """What a program's gradient needs: the forward program with intermediates, and backward programs.

    higher: whether gradients may also flow into the intermediates. placeholders: the program's inputs and captures.
    """

    def __init__(self, program: Program, higher: bool) -> None:
        trace = program.trace
        self.program, self.trace = program, trace
        self.placeholders = [*trace.inputs, *(p for _, p in trace.captures.values())]
        self._backward: dict[tuple[bool, ...], tuple[Program, list[Any]]] = {}
        first = self._build(program.outputs, [is_trainable(o.dtype) for o in program.outputs])
        needed = self._needed(first)
        if higher:  # until gradients of the intermediates need no further ones
            while True:
                outputs = (*program.outputs, *needed)
                more = self._needed(self._build(outputs, [is_trainable(o.dtype) for o in outputs]))
                new = [v for v in more if all(v is not o for o in outputs)]
                if not new:
                    break
                needed = [*needed, *new]
        self.forward = Program(
            trace, (*program.outputs, *(v for v in needed if all(v is not o for o in program.outputs)))
        )

    def _needed(self, built: tuple[Program, list[Any]]) -> list[SymbolicTensor]:
        inputs = {id(p) for p in self.placeholders}
        return [
            c
            for c in built[0].captured
            if isinstance(c, SymbolicTensor) and c.trace is self.trace and id(c) not in inputs
        ]

    def _build(self, outputs: Sequence[SymbolicTensor], mask: Sequence[bool]) -> tuple[Program, list[Any]]:
        """The backward program for gradients arriving at the masked outputs: arguments are those gradients.

        Also gives, for each input and capture of the forward program: None, "dense" or "sparse".
        """
        trace = FuncTrace(f"{self.trace.name}_backward", parent=self.trace)
        with trace.recording():
            targets: dict[int, Any] = {}
            for y, arrives in zip(outputs, mask):
                if arrives:
                    dy = trace.placeholder(y.spec, f"d_{y.value_in_graph.name}")
                    targets[id(y)] = accumulate(targets[id(y)], dy) if id(y) in targets else dy
            sources = [
                outer if isinstance(outer, Variable) else placeholder
                for outer, placeholder in zip((*self.trace.inputs, *self.program.captured), self.placeholders)
            ]
            found = backpropagate(self.trace.recorder.records, targets, {id(s) for s in sources})
            kinds: list[Any] = []
            flat: list[SymbolicTensor] = []
            for source in sources:
                grad = found.get(id(source))
                if grad is None:
                    kinds.append(None)
                elif isinstance(grad, IndexedSlices):
                    kinds.append("sparse")
                    dense_shape = grad.dense_shape
                    flat += [trace.to_tensor(x) for x in (grad.values, grad.indices, dense_shape)]
                else:
                    kinds.append("dense")
                    flat.append(trace.to_tensor(grad))
        return Program(trace, flat), kinds

    def backward(self, dys: Sequence[Any], known: dict[int, Any], once: bool = False) -> list[Any]:
        """Gradients of inputs and captures. known: the forward run's tensors by id of their symbolic ones.

        once: nobody will ask again; `known` is emptied, and what the forward run kept dies at its last use.
        """
        mask = tuple(dy is not None and is_trainable(o.dtype) for dy, o in zip(dys, self.forward.outputs))
        built = self._backward.get(mask)
        if built is None:
            with TRACING:
                built = self._backward.get(mask)
                if built is None:
                    built = self._backward[mask] = self._build(self.forward.outputs[: len(mask)], mask)
        program, kinds = built
        inside = [c for c in program.captured if isinstance(c, SymbolicTensor) and c.trace is self.trace]
        if any(id(c) not in known for c in inside):
            # Zeros in place of a gradient that is not there need a shape that the forward run has not kept: they come
            # from the outputs instead.
            outputs = self.forward.outputs[: len(dys)]
            full = tuple(is_trainable(o.dtype) for o in outputs)
            filled = [
                array.zeros_like(known[id(o)]) if m and dy is None else dy for dy, o, m in zip(dys, outputs, full)
            ]
            if mask != full:
                grads = self.backward(filled, known, once)
                return [None if kind is None else grad for kind, grad in zip(kinds, grads)]
        arguments = [dy.to_dense() if isinstance(dy, IndexedSlices) else dy for dy, m in zip(dys, mask) if m]
        captured = [known.get(id(c), c) for c in program.captured]
        if once and state.trace is None and not state.tapes:
            arrays = [x._array for x in (*arguments, *captured)]
            known.clear()
            del arguments, captured
            flat = iter(program.consume(arrays))
        else:
            flat = iter(program.call(arguments, captured))
        return [
            None
            if kind is None
            else next(flat)
            if kind == "dense"
            else IndexedSlices(next(flat), next(flat), next(flat))
            for kind in kinds
        ]
