"""Control flow with effects as functions of values: loops and branches that write variables or draw random numbers.

Lives here: `with_keys`, random numbers as functions of a key; `functionalized`, loops and branches to which variables
and keys are passed as values, and which return the new ones.
Not here: which nodes are replaced (partitioner.py), sequences of random numbers (ops/random/state.py).

    while c: v.assign(f(v))        becomes        x = v.read(); while c: x = f(x); v.assign(x)

so that the loop has no effect and is part of a native call, as XLA does (functionalize_control_flow). The numbers are
those of the operators themselves: a draw of the n-th call of a sequence has the key (seed, seed2, n), so a loop begins
with the key of the next call, adds 1 at each draw, and the sequence continues behind its last one. Variables are
written when the loop has ended; an error in an iteration leaves them as they were before the loop.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import DType, resource, uint64
from ..core.specs import TensorSpec
from ..graph import Graph, GraphRewriter, Node, Value
from ..graph.builder import constant_node, map_subgraphs
from ..graph.ir import Operand
from ..graph.passes.control_flow import control_operands
from ..ops import registry
from ..ops.random import state as random_state
from ..ops.state import unequal_shapes
from ..scalar.table import FUNCTIONS
from .regions import KEY, NativeOperator
from .traced_rules import traced_rule

STATELESS = {
    "Multinomial": "StatelessMultinomial",
    "RandomStandardNormal": "StatelessRandomNormal",
    "RandomUniform": "StatelessRandomUniform",
    "RandomUniformInt": "StatelessRandomUniformInt",
}
"""By operator that continues a sequence, the one that computes the same numbers as a function of their key."""
_WRITES = frozenset({"AssignVariable", "AssignAddVariable", "AssignSubVariable", "UpdateVariable"})
MOST_ELEMENTS = 4096
"""Largest variable of a branch outside of loops: its value is copied whether the branch writes it or not."""
_KEY_SPEC = TensorSpec((3,), uint64)


class KeyOperator(NativeOperator):
    """The operator that draws the key of one call of a random operator. call: with the attributes of the latter."""

    def __init__(self, call: Any) -> None:
        super().__init__(functools.partial(random_state.key_for, call), 1, "random", KEY)
        self.call = call


def with_keys(graph: Graph) -> Graph:
    """Return the graph with random numbers of known shapes as functions of a key, which a node of its own draws.

    Only the key is drawn in Python, as the operator itself would do it; the numbers, of the same stream, are pure.
    """
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        inner = map_subgraphs(node, with_keys) if node.op.control else node
        if node.op.name not in STATELESS or not node.op.catalogue or not _has_constant_sizes(node):
            rewriter.replace(node, rewriter.insert(rewriter.remap(inner)).outputs)
            continue
        rewriter.begin(node)
        drawing = KeyOperator(node.op.bind(dict(node.attrs)))
        key = rewriter.node(drawing, [], {}, [_KEY_SPEC], f"{node.name}/key", node.at).outputs[0]
        stateless = registry.get(STATELESS[node.op.name])
        inputs = dict(zip(node.op.input_names, map(rewriter.operand, node.inputs)), seed=key)
        attrs = {name: node.attrs[name] for name in stateless.attr_defs if name in node.attrs}
        specs = [v.spec for v in node.outputs]
        operands = [inputs[name] for name in stateless.input_names]
        drawn = rewriter.node(stateless, operands, attrs, specs, node.name, node.at)
        rewriter.replace(node, drawn.outputs)
    return rewriter.finish() if len(rewriter.nodes) > len(graph.nodes) or rewriter.mapping else graph


def _has_constant_sizes(node: Node) -> bool:
    """Return whether all that random numbers follow from is constant, but for the weights of classes."""
    operands = dict(zip(node.op.input_names, node.operands))
    return all(v.constant is not None for name, v in operands.items() if name != "logits")


def functionalized(graph: Graph, chosen: Container[int] | None = None) -> tuple[Graph, dict[int, Node]]:
    """Return the graph with control flow without effects, and the new nodes by the index of the old one.

    chosen: indices of the nodes to replace, None for all that can be: whose effects are reads and writes of variables
    of known shapes, which are inputs of the graph, and draws of random numbers
    """
    candidates = {
        index: effects
        for index, node in enumerate(graph.nodes)
        if node.effect in ("write", "random") and node.op.control and (chosen is None or index in chosen)
        if (effects := _effects_of(node, graph)) is not None
    }
    if not candidates:
        return graph, {}
    rewriter, handles = GraphRewriter(graph), _handles(graph)
    replaced: dict[int, Node] = {}
    for index, node in enumerate(graph.nodes):
        if index not in candidates:
            rewriter.copy(node)
            continue
        effects = candidates[index]
        rewriter.begin(node)
        present = {state: effect.begin(rewriter) for state, effect in effects.items()}
        replaced[index] = _Functional(rewriter, handles, effects, dict(present)).replace(node)
        now = dict(zip(_written(effects), replaced[index].outputs[len(node.outputs) :]))
        for state, value in now.items():
            effects[state].end(rewriter, present[state], value)
    return rewriter.finish(), replaced


class _NotFunctional(Exception):
    """Control flow has effects that are not values."""


class _VariableEffect:
    """A variable as a value. handle: in the outer graph; is_read: whether its type is known from a read."""

    def __init__(self, handle: Value) -> None:
        self.handle, self.is_written, self.is_read = handle, False, False
        self.spec: TensorSpec | None = None

    def agree(self, spec: TensorSpec) -> None:
        """Record the type at one place. Raises _NotFunctional if it is unknown, or another one elsewhere."""
        if not spec.shape.is_fully_defined() or spec.dtype.np.kind not in "fiubV":
            raise _NotFunctional
        if self.spec is not None and (self.spec.dtype is not spec.dtype or self.spec.shape != spec.shape):
            raise _NotFunctional
        self.spec = TensorSpec(spec.shape, spec.dtype)

    def begin(self, rewriter: GraphRewriter) -> Value:
        """Emit a read."""
        assert self.spec is not None
        dims: Any = self.spec.shape.dims
        read = functools.partial(_value_of, tuple(dims), self.spec.dtype)
        operator = NativeOperator(read, 1, "read", "ReadVariable")
        return rewriter.node(operator, [self.handle], {}, [self.spec], f"{rewriter.prefix}/read", rewriter.at).outputs[
            0
        ]

    def end(self, rewriter: GraphRewriter, before: Value, after: Value) -> None:
        """Emit a write of the new value."""
        rewriter.create(registry.get("AssignVariable"), (self.handle, after))


def _value_of(shape: tuple[int, ...], dtype: DType, variable: Any) -> np.ndarray:
    array: np.ndarray = variable.read_array()
    if array.shape != shape or array.dtype != dtype.np:
        raise unequal_shapes(variable.name, array.shape, shape)
    return array


class _SequenceEffect:
    """A sequence of random numbers as the key of its next call."""

    is_written = True
    spec = _KEY_SPEC

    def __init__(self, call: Any) -> None:
        self.call = call

    def begin(self, rewriter: GraphRewriter) -> Value:
        """Emit the key of the next call."""
        operator = NativeOperator(functools.partial(random_state.reserve, self.call), 1, "random", KEY)
        return rewriter.node(operator, [], {}, [_KEY_SPEC], f"{rewriter.prefix}/key", rewriter.at).outputs[0]

    def end(self, rewriter: GraphRewriter, before: Value, after: Value) -> None:
        """Emit the end of the draws."""
        operator = NativeOperator(functools.partial(random_state.release, self.call), 0, "random", KEY)
        rewriter.node(operator, [before, after], {}, [], f"{rewriter.prefix}/drawn", rewriter.at)


_Effects = dict[Hashable, _VariableEffect | _SequenceEffect]
"""By handle in the outer graph, or by sequence."""


def _written(effects: Mapping[Hashable, _VariableEffect | _SequenceEffect]) -> list[Hashable]:
    return [state for state, effect in effects.items() if effect.is_written]


def _handles(graph: Graph) -> dict[Value, Value]:
    return {v: v for v in graph.inputs if v.dtype is resource}


def _effects_of(node: Node, graph: Graph) -> _Effects | None:
    """Return the effects of control flow; None if they cannot be values."""
    effects: _Effects = {}
    assigned: set[Hashable] = set()
    try:
        _collect(node, _handles(graph), effects, assigned)
        for read in graph.nodes:
            for v in read.operands:
                variable = effects.get(v)
                if read.op.name == "ReadVariable" and isinstance(variable, _VariableEffect):
                    variable.agree(read.outputs[0].spec)
                    variable.is_read = True
    except _NotFunctional:
        return None
    variables = [e for e in effects.values() if isinstance(e, _VariableEffect)]
    if any(e.spec is None or (e.handle in assigned and not e.is_read) for e in variables):
        return None  # a write alone does not tell the shape before it
    if node.op.name != "While" and any((v.spec.shape.num_elements() or 0) > MOST_ELEMENTS for v in variables if v.spec):
        return None
    return effects


def _collect(node: Node, handles: Mapping[Value, Value], effects: _Effects, assigned: set[Hashable]) -> None:
    """Add the effects of a node. handles: the outer graph's, by value; assigned: variables of which a write gives no
    type. Raises _NotFunctional."""

    def variable(value: Operand) -> _VariableEffect:
        handle = handles.get(value) if isinstance(value, Value) else None
        if handle is None:
            raise _NotFunctional
        effect = effects.setdefault(handle, _VariableEffect(handle))
        assert isinstance(effect, _VariableEffect)
        return effect

    if any(True for _ in node.subgraphs):
        if not node.op.control:
            raise _NotFunctional
        operands = control_operands(node)
        if node.op.name == "While" and any(v.dtype is resource for v in node.inputs[0] or ()):  # type: ignore[union-attr]
            raise _NotFunctional
        for inner in node.subgraphs:
            passed = {x: handles[v] for x, v in zip(inner.inputs, operands) if v in handles}
            if any(v in passed for v in inner.outputs):
                raise _NotFunctional
            for each in inner.nodes:
                _collect(each, passed, effects, assigned)
    elif node.op.name == KEY:
        call = node.op.call
        sequence = random_state.sequence_of(call)
        if sequence is None:
            raise _NotFunctional
        effects.setdefault(sequence, _SequenceEffect(call))
    elif node.op.name == "ReadVariable":
        read = variable(node.inputs[0])
        read.agree(node.outputs[0].spec)
        read.is_read = True
    elif node.op.name == "UpdateVariable":
        target, slots, values, _ = node.inputs
        assert isinstance(values, Value)
        handles_written = (target, *(slots if isinstance(slots, tuple) else ()))
        if len(set(handles_written)) < len(handles_written):
            raise _NotFunctional
        for handle in handles_written:
            written = variable(handle)
            written.agree(values.spec)
            written.is_written = True
        assigned.add(variable(target).handle)
    elif node.op.name in _WRITES:
        written = variable(node.inputs[0])
        value = node.inputs[1]
        assert isinstance(value, Value)
        written.agree(value.spec)
        written.is_written = True
        if node.op.name == "AssignVariable":
            assigned.add(written.handle)
    elif node.effect is not None or any(v in handles for v in node.operands):
        raise _NotFunctional


class _Functional:
    """Nodes of a graph under rewriting. handles: the outermost graph's, by value; present: the values of states now."""

    def __init__(
        self, rewriter: GraphRewriter, handles: Mapping[Value, Value], effects: _Effects, present: dict[Hashable, Value]
    ) -> None:
        self.rewriter, self.handles, self.effects, self.present = rewriter, handles, effects, present

    def replace(self, node: Node) -> Node:
        """Emit control flow as a function of the states, with the written ones as further results."""
        states: _Effects = {}
        _collect(node, self.handles, states, set())
        written = _written(states)
        read = [state for state in states if state not in written]
        is_loop = node.op.name == "While"
        added = [self.present[s] for s in written], [self.present[s] for s in read]
        *first, _ = map(self.rewriter.operand, node.inputs)
        passed = self.rewriter.operand(tuple([v for v in _several(node.inputs[-1]) if v not in self.handles]))
        assert isinstance(passed, tuple)
        inputs: list[Operand]
        if is_loop:
            variables = first[0]
            assert isinstance(variables, tuple)
            inputs, at = [(*variables, *added[0]), (*passed, *added[1])], len(variables)
        else:
            inputs, at = [*first, (*added[0], *passed, *added[1])], 0
        operands = control_operands(node)
        attrs = dict(node.attrs)
        specs = [v.spec for v in node.outputs]
        specs += [_spec(self.effects[s]) for s in written]

        def inner(graph: Graph) -> Graph:
            handles = {x: self.handles[v] for x, v in zip(graph.inputs, operands) if v in self.handles}
            gives_state = not (is_loop and graph is node.attrs["cond"])
            return self._block(graph, handles, written, read, at, gives_state)

        for name, value in node.attrs.items():
            if isinstance(value, Graph):
                attrs[name] = inner(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], Graph):
                attrs[name] = tuple(map(inner, value))
        names = [v.name for v in node.outputs]
        names += [self.rewriter.unique(f"{node.name}/state_{i}") for i in range(len(specs) - len(names))]
        if not node.outputs:
            names[0] = node.name
        new = self.rewriter.insert(Node(node.op, inputs, attrs, specs, node.name, node.at, names))
        self.rewriter.replace(node, new.outputs)
        self.present.update(zip(written, new.outputs[len(node.outputs) :]))
        return new

    def _block(
        self,
        graph: Graph,
        handles: Mapping[Value, Value],
        written: Sequence[Hashable],
        read: Sequence[Hashable],
        at: int,
        gives_state: bool,
    ) -> Graph:
        """Return a graph that takes states, those written from the input `at` on and the others last, and returns the
        written ones after its results."""
        rewriter = GraphRewriter(graph)
        values = {
            s: Value(rewriter.unique(f"state_{i}"), _spec(self.effects[s])) for i, s in enumerate((*written, *read))
        }
        own = [v for v in graph.inputs[at:] if v not in handles]
        rewriter.inputs = [*graph.inputs[:at], *(values[s] for s in written), *own, *(values[s] for s in read)]
        inside = _Functional(rewriter, handles, self.effects, dict(values))
        for node in graph.nodes:
            inside.emit(node)
        results = [rewriter.mapping.get(v, v) for v in graph.outputs]
        if gives_state:
            results += [inside.present[s] for s in written]
        return Graph(graph.name, rewriter.inputs, rewriter.nodes, results)

    def emit(self, node: Node) -> None:
        """Emit a node of a block, with reads as present values and writes as new ones."""
        rewriter = self.rewriter
        if node.effect is None:
            rewriter.copy(node)
            return
        rewriter.begin(node)
        if any(True for _ in node.subgraphs):
            self.replace(node)
        elif node.op.name == KEY:
            self._draw(node)
        elif node.op.name == "ReadVariable":
            rewriter.replace(node, [self.present[self._state(node.inputs[0])]])
        elif node.op.name == "UpdateVariable":
            self._update(node)
        else:
            state, value = self._state(node.inputs[0]), rewriter.operand(node.inputs[1])
            assert isinstance(value, Value)
            if node.op.name != "AssignVariable":
                value = self._applied(
                    "add" if node.op.name == "AssignAddVariable" else "sub", self.present[state], value
                )
            self.present[state] = value

    def _state(self, handle: Operand) -> Hashable:
        assert isinstance(handle, Value)
        return self.handles[handle]

    def _draw(self, node: Node) -> None:
        """Emit the key of the next call."""
        sequence = random_state.sequence_of(node.op.call)
        key = self.present[sequence]
        self.rewriter.replace(node, [key])
        array = np.array([0, 0, 1], np.uint64)
        one = constant_node(registry.get("Const"), array, _KEY_SPEC, self.rewriter.unique(f"{node.name}/one"), node.at)
        self.present[sequence] = self._applied("add", key, self.rewriter.insert(one).outputs[0])

    def _update(self, node: Node) -> None:
        """Emit a step of an optimizer."""
        target, slots, values, scalars = node.inputs
        states = [self._state(handle) for handle in (target, *_several(slots))]
        operands: list[Any] = [self.present[s] for s in states]
        operands += map(self.rewriter.operand, (values, *_several(scalars)))
        self.present.update(zip(states, traced_rule(node.attrs["rule"], operands, self._applied)))

    def _applied(self, function: str, *operands: Value) -> Value:
        """Emit a function of the scalar table."""
        row = FUNCTIONS[function]
        operator = registry.get(row.operators[0] if row.operators else function.capitalize())
        return self.rewriter.create(operator, operands).outputs[0]


def _several(operand: Operand) -> tuple[Value, ...]:
    return operand if isinstance(operand, tuple) else ()


def _spec(effect: _VariableEffect | _SequenceEffect) -> TensorSpec:
    assert effect.spec is not None
    return effect.spec
