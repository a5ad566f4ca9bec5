"""Inlining: copying a finished trace into the active one, for a traced function that another one calls.

Lives here: the copy of nodes and of gradient records; `fused_call`, which inlines a function that represents a fused
operator (`experimental_implements`) between two marker nodes. Not here: recording (trace.py), the decision to inline
(program.py), the marker nodes (ops/control.py), their conversion (lite/convert/custom_operators.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..core.dtypes import resource, variant
from ..core.specs import TensorSpec
from ..eager.variable import Variable
from ..graph import Node, Value
from ..ops import dispatch
from ..ops.autodiff import CustomRecord, OpRecord
from ..ops.control import FusionInputs, FusionResults
from .symbolic import SymbolicTensor
from .trace import FuncTrace, watch_variables

state = dispatch.state


def inline(
    trace: FuncTrace,
    inner: FuncTrace,
    arguments: Sequence[Any],
    outputs: Sequence[SymbolicTensor],
    variables: Mapping[int, Any] | None = None,
) -> list[Any]:
    """Copy the nodes of `inner` into `trace`. arguments: for its inputs, then its captures.

    variables: the variables among the arguments, by id of their placeholders in `inner`.

    Gradient records are replayed to the active tapes, so gradients of any order pass through.
    """
    tensors: dict[Any, Any] = {}
    for placeholder, argument in zip([*inner.inputs, *(p for _, p in inner.captures.values())], arguments):
        tensors[placeholder.value_in_graph] = argument
    for node in inner.builder.nodes:
        operands = [
            None
            if o is None
            else tuple([trace.value_of(tensors[v]) for v in o])
            if type(o) is tuple
            else trace.value_of(tensors[o])
            for o in node.inputs
        ]
        specs = [v.spec for v in node.outputs]
        if any(o.spec is not v.spec for o, v in zip(_flat(operands), node.operands)):
            specs = _narrowed(node, specs, tensors)
        copy = trace.builder.node(node.op, operands, node.attrs, specs, node.name, node.at)
        trace.builder.attribute(copy, node.rules)
        for old, new in zip(node.outputs, copy.outputs):
            tensors[old] = SymbolicTensor(new, trace)
    if state.tapes:
        _replay(inner, tensors, variables or {})
    return [tensors[o.value_in_graph] for o in outputs]


def _flat(operands: Sequence[Any]) -> Iterator[Value]:
    for operand in operands:
        if operand is not None:
            yield from operand if type(operand) is tuple else (operand,)


def _narrowed(node: Node, specs: list[TensorSpec], tensors: dict[Any, Any]) -> list[TensorSpec]:
    """Return the output specs of a node whose operands may be more specific than when it was recorded."""
    if any(node.subgraphs):
        return specs  # branches and bodies have fixed specs
    structure = [
        None if o is None else tuple([tensors[v] for v in o]) if type(o) is tuple else tensors[o] for o in node.inputs
    ]
    try:
        inferred = node.op.infer(node.op.bind(dict(node.attrs)), structure, node.name)
    except (TypeError, ValueError):
        return specs  # reported at run time, with the node's name
    flat = [s for spec in inferred for s in (spec if isinstance(spec, list) else (spec,))]
    return [
        new if new.dtype is old.dtype and new.shape.is_subtype_of(old.shape) else old
        for new, old in zip(flat, specs, strict=True)
    ]


def _replay(inner: FuncTrace, tensors: dict[Value, Any], variables: Mapping[int, Any]) -> None:
    def translate(x: Any) -> object:
        if type(x) is tuple:
            return tuple(map(translate, x))
        return tensors.get(x.value_in_graph, x) if type(x) is SymbolicTensor else variables.get(id(x), x)

    for record in inner.recorder.records:
        if isinstance(record, OpRecord):
            kind = type(record)
            copy: Any = kind(
                record.op,
                record.bound,
                [translate(x) for x in record.structure],
                [translate(y) for y in record.outputs],
            )
        else:
            copy = CustomRecord(
                [translate(x) for x in record.inputs],
                [translate(y) for y in record.outputs],
                _translated_backward(record, inner, tensors, variables),
            )
        watch_variables(copy.inputs)
        for tape in state.tapes:
            tape.record(copy)


def _translated_backward(
    record: Any, inner: FuncTrace, tensors: dict[Value, Any], variables: Mapping[int, Any]
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return the backward function of a record, with the inner trace's tensors translated to this trace's."""

    def backward(dys: Sequence[Any]) -> Sequence[Any]:
        trace = state.trace
        assert isinstance(trace, FuncTrace)
        saved = trace.foreign.get(inner)
        trace.foreign[inner] = lambda t: tensors[t.value_in_graph]
        before = trace.represented_variables
        trace.represented_variables = {**before, **variables}
        try:
            result: Sequence[Any] = record.backward(dys)
            return result
        finally:
            trace.represented_variables = before
            if saved is None:
                del trace.foreign[inner]
            else:
                trace.foreign[inner] = saved

    return backward


_HANDLES = (resource, variant)


def fused_call(implements: str, inputs: Sequence[Any], call: Callable[[Sequence[Any]], Sequence[Any]]) -> list[Any]:
    """Return the results of a call, marked. inputs: the arguments, then the captures; call: inlines the function.

    Handles bypass the marker nodes. A captured variable is an input by its value at the start of the call.
    """
    operands = list(inputs)
    positions = [i for i, x in enumerate(operands) if not isinstance(x, Variable) and x.dtype not in _HANDLES]
    values = [x.read_value() for x in operands if isinstance(x, Variable)]
    marker_inputs = [*(operands[i] for i in positions), *values]
    inside: Any = FusionInputs(marker_inputs, implements=implements) if marker_inputs else []
    for i, tensor in zip(positions, inside):
        operands[i] = tensor
    results = list(call(operands))
    marked = [i for i, y in enumerate(results) if y.dtype not in _HANDLES]
    fused: Any = FusionResults([results[i] for i in marked], list(inside), implements=implements)
    for i, tensor in zip(marked, fused):
        results[i] = tensor
    return results
