"""Copy a finished trace into the one that is recording: a traced function called in another.

Lives here: the copy of nodes, and of the records by which gradients pass them; `fused_call`, which inlines a function
that stands for a fused operator (`experimental_implements`) between two nodes that mark its borders.
Not here: recording (trace.py), when a function is called so (program.py), those nodes (ops/fusion.py), their conversion
(lite/convert/custom_arguments.py).
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
from ..ops.fusion import FusionInputs, FusionResults
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

    variables: by id of what stands for a variable among the arguments of `inner`, the variable.

    Its records are replayed to the active tapes, so that gradients of any order pass through.
    """
    at: dict[Any, Any] = {}
    for placeholder, argument in zip([*inner.inputs, *(p for _, p in inner.captures.values())], arguments):
        at[placeholder.value_in_graph] = argument
    for node in inner.builder.nodes:
        operands = [
            None
            if o is None
            else tuple([trace.value_of(at[v]) for v in o])
            if type(o) is tuple
            else trace.value_of(at[o])
            for o in node.inputs
        ]
        specs = [v.spec for v in node.outputs]
        if any(o.spec is not v.spec for o, v in zip(_flat(operands), node.operands)):
            specs = _narrowed(node, specs, at)
        copy = trace.builder.node(node.op, operands, node.attrs, specs, node.name, node.at)
        for old, new in zip(node.outputs, copy.outputs):
            at[old] = SymbolicTensor(new, trace)
    if state.tapes:
        _replay(inner, at, variables or {})
    return [at[o.value_in_graph] for o in outputs]


def _flat(operands: Sequence[Any]) -> Iterator[Value]:
    for operand in operands:
        if operand is not None:
            yield from operand if type(operand) is tuple else (operand,)


def _narrowed(node: Node, specs: list[TensorSpec], at: dict[Any, Any]) -> list[TensorSpec]:
    """The output specs of a node whose operands may be more specific here than where it was recorded."""
    if any(node.subgraphs):
        return specs  # those of branches and bodies are fixed
    structure = [None if o is None else tuple([at[v] for v in o]) if type(o) is tuple else at[o] for o in node.inputs]
    try:
        inferred = node.op.infer(node.op.bind(dict(node.attrs)), structure, node.name)
    except (TypeError, ValueError):
        return specs  # the error belongs to the run, where it names the node
    flat = [s for spec in inferred for s in (spec if isinstance(spec, list) else (spec,))]
    return [
        new if new.dtype is old.dtype and new.shape.is_subtype_of(old.shape) else old
        for new, old in zip(flat, specs, strict=True)
    ]


def _replay(inner: FuncTrace, at: dict[Value, Any], variables: Mapping[int, Any]) -> None:
    def here(x: Any) -> Any:
        if type(x) is tuple:
            return tuple(map(here, x))
        return at.get(x.value_in_graph, x) if type(x) is SymbolicTensor else variables.get(id(x), x)

    for record in inner.recorder.records:
        if isinstance(record, OpRecord):
            kind = type(record)
            copy: Any = kind(
                record.op, record.bound, [here(x) for x in record.structure], [here(y) for y in record.outputs]
            )
        else:
            copy = CustomRecord(
                [here(x) for x in record.inputs],
                [here(y) for y in record.outputs],
                _away_from_home(record, inner, at, variables),
            )
        watch_variables(copy.inputs)
        for tape in state.tapes:
            tape.record(copy)


def _away_from_home(record: Any, inner: FuncTrace, at: dict[Value, Any], variables: Mapping[int, Any]) -> Any:
    """The backward function of a record, which speaks of the inner trace's tensors, where these stand for others."""

    def backward(dys: Sequence[Any]) -> Sequence[Any]:
        trace = state.trace
        assert isinstance(trace, FuncTrace)
        saved = trace.foreign.get(inner)
        trace.foreign[inner] = lambda t: at[t.value_in_graph]
        before = trace.variables_here
        trace.variables_here = {**before, **variables}
        try:
            result: Sequence[Any] = record.backward(dys)
            return result
        finally:
            trace.variables_here = before
            if saved is None:
                del trace.foreign[inner]
            else:
                trace.foreign[inner] = saved

    return backward


_HANDLES = (resource, variant)


def fused_call(implements: str, inputs: Sequence[Any], call: Callable[[Sequence[Any]], Sequence[Any]]) -> list[Any]:
    """The results of a call, marked. inputs: the arguments, then what was captured; call: inlines it.

    Handles go in beside the borders. A variable that was captured is an input by its value when the call begins.
    """
    inside = list(inputs)
    places = [i for i, x in enumerate(inside) if not isinstance(x, Variable) and x.dtype not in _HANDLES]
    values = [x.read_value() for x in inside if isinstance(x, Variable)]
    outside = [*(inside[i] for i in places), *values]
    given: Any = FusionInputs(outside, implements=implements) if outside else []
    for place, tensor in zip(places, given):
        inside[place] = tensor
    results = list(call(inside))
    marked = [i for i, y in enumerate(results) if y.dtype not in _HANDLES]
    fused: Any = FusionResults([results[i] for i in marked], list(given), implements=implements)
    for place, tensor in zip(marked, fused):
        results[place] = tensor
    return results
