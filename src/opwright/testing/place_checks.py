"""Run an operator on the variables of a scope at a place, and with reused memory.

Lives here: `on_scopes`: runs compute the eager call's results, repeatably, and leave the inputs unchanged;
`reuse_changes_no_bits`: a call, its gradient and the gradient of that, with and without memory reuse. Not here: the run
itself (scopes/execution.py), the analysis of memory reuse (compiler/inplace.py).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler import inplace
from ..compiler.plan import Plan
from ..core import flags
from ..core.places import Place, place_of
from ..graph import Graph, Value
from ..ops import lod_calls
from ..ops import math as math_ops
from ..ops.compute_wrappers import fingerprint
from ..scopes.backward import NoGradientError, graph_gradients
from ..scopes.instance import OpInstance
from ..scopes.scope import Scope
from ..tracing.function import function
from .gradient_check import Function
from .operator_call import CheckedCall, NotApplicable, array, assert_same, flows, refs

ORDERS = 2  # gradients of gradients


def graphs(run: Function, values: Sequence[Any]) -> Iterator[Graph]:
    """Yield the graph of the call, of its gradients, of their gradients. Inputs are results of other nodes, and die."""

    def dying(*arguments: Any) -> list[Any]:
        return run([math_ops.negative(math_ops.negative(x)) if flows(x) else x for x in arguments])

    graph = function(dying, autograph=False).get_concrete_function(*values).graph
    if len(graph.inputs) != len(values):
        raise NotApplicable("the graph takes more than the tensors")
    yield graph
    targets = [y for y in graph.outputs if flows(y)]
    for _ in range(ORDERS):
        if not targets:
            return
        try:
            backward = graph_gradients(graph, targets, [x for x in graph.inputs if flows(x)])
        except NoGradientError:
            return
        graph = backward.graph
        yield graph
        targets = [g for g in backward.gradients if isinstance(g, Value) and flows(g)]


def reuse_changes_no_bits(run: Function, values: Sequence[Any]) -> int:
    """Run each of `graphs` with the planner's memory reuse on and off. Returns the number of results written into dead
    buffers. Small arrays are included. raises AssertionError if a bit differs, or an input changes
    """
    reused = 0
    if any(v.dtype.is_handle for v in values):
        raise NotApplicable("a handle among the inputs")
    arrays = [array(v) for v in values]
    before = [a.tobytes() for a in arrays]
    with inplace.any_size():
        for order, graph in enumerate(graphs(run, values)):
            on, off = Plan(graph, inplace=True), Plan(graph, inplace=False)
            reused += on.reused
            if not on.reused:
                continue  # one program
            with np.errstate(all="ignore"):
                results, expected = on.run(*arrays), off.run(*arrays)
            for k, (a, b) in enumerate(zip(results, expected, strict=True)):
                x, y = np.asarray(a), np.asarray(b)
                if x.dtype == object:
                    continue
                assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes()), (
                    f"gradient {order}, result {k}: memory used again changes bits"
                )
            for a, original in zip(arrays, before):
                assert a.tobytes() == original, f"gradient {order}: an argument was written"
    return reused


def on_scopes(call: CheckedCall, place: str | Place = "cpu", expected: Any = None, unused: bool = False) -> Any:
    """Run the call on scopes at a place. Returns the Explanation of the selected kernel.

    expected: the eager call's results, by default computed here. unused: also check that every input is read, or in
    `shape_only`. On the CPU the bits equal the eager ones; elsewhere numbers agree within the dtype's tolerance. The
    instance computes the same bits on another scope, and so does its deep copy. Inputs are unchanged, and no output
    shares their memory. raises AssertionError; NotApplicable for operators with effects, and control flow
    """
    op, place = call.op, place_of(place)
    if op.effect is not None or op.control:
        raise NotApplicable(f"it has an effect: {op.effect}" if op.effect else "control flow runs graphs")
    results = call.call() if expected is None else expected
    shown = [o for o in op.outputs if not o.intermediate]
    if any(o.lod_of for o in shown):
        shown, results = _with_lods(call, shown, results)
    by_output = dict(zip([o.name for o in shown], [results] if len(shown) == 1 else list(results)))
    ins, values = _variables_of(call)
    outs: dict[str, Any] = {
        o.name: [f"{o.name}:{i}" for i in range(len(by_output[o.name]))] if o.repeated else f"{o.name}:" for o in shown
    }
    expected_by_name: dict[str, Any] = {
        name: value
        for o in shown
        for name, value in (zip(outs[o.name], by_output[o.name]) if o.repeated else [(outs[o.name], by_output[o.name])])
    }
    for o in op.outputs:
        outs.setdefault(o.name, "@EMPTY@")
    instance = OpInstance(op, ins, outs, dict(call.attrs))
    first, explanation = _run(instance, values, expected_by_name, place, unused)
    assert_same(first, list(expected_by_name.values()), f"at {place}", bits=place.kind == "cpu")
    again, _ = _run(instance, values, expected_by_name, place, False)
    assert_same(again, first, f"the same instance on another scope at {place}")
    copied, _ = _run(copy.deepcopy(instance), values, expected_by_name, place, False)
    assert_same(copied, first, f"a deep copy of the instance at {place}")
    return explanation


def _with_lods(call: CheckedCall, shown: list[Any], results: Any) -> tuple[list[Any], Any]:
    """Return outputs and results as variables have them: separate offsets become the LoD of their rows."""
    op, own = call.op, [o for o in shown if o.lod_of is None]
    listed = list(results) if isinstance(results, (tuple, list)) else [results]
    inputs = list(call.inputs)
    carriers = lod_calls.carriers_of(op, inputs)
    lod_rule = lod_calls.lod_word(op, op.bind(dict(call.attrs)), lod_calls.take_apart(op, inputs, carriers))
    if lod_rule != "changed":
        return shown, results
    if len(listed) == len(shown):
        listed = lod_calls.put_together(op, lod_rule, carriers, listed, shown)
    return own, listed if len(own) > 1 else listed[0]


def _variables_of(call: CheckedCall) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the names of variables by slot, and their values."""
    ins: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for declared, value in zip(call.op.inputs, call.inputs):
        if value is None:
            continue
        members = value if isinstance(value, tuple) else (value,)
        names = [f"{declared.name}{i}" for i in range(len(members))]
        ins[declared.name] = names
        values.update(zip(names, members))
    return ins, values


def _fingerprints(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: [fingerprint(a) for a in refs(value)] for name, value in values.items()}


def _run(
    instance: OpInstance, values: Mapping[str, Any], expected: Mapping[str, Any], place: Place, unused: bool
) -> tuple[list[Any], Any]:
    """Run on a new scope: return the results in order, and the Explanation."""
    scope = Scope()
    for name, value in values.items():
        scope.var(name).set(value)
    contents = {name: scope.var(name).value for name, v in values.items() if not v.dtype.is_handle}
    before = _fingerprints(contents)
    with warnings.catch_warnings(), flags.override(check_unused_inputs=unused):
        warnings.simplefilter("ignore", RuntimeWarning)  # fallback warnings; the Explanation has the kernel
        explanation = instance.run(scope, place)
    assert scope.kids == (), f"at {place}: the run left a scope behind"
    after = _fingerprints(contents)
    for name in contents:
        assert before[name] == after[name], f"at {place}: input {name!r} was written"
    results = [w if w.dtype.is_handle else scope.var(name).value for name, w in expected.items()]
    if place.kind == "cpu":
        inputs = [(name, a) for name, value in contents.items() for a in refs(value)]
        for out, result in zip(expected, results):
            for array in refs(result)[:1]:
                for name, other in inputs:
                    assert not _overlap(array, other), f"{out.rstrip(':')!r} lies in the memory of input {name!r}"
    return results, explanation


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    return a.size > 0 and b.size > 0 and a.dtype != object and np.may_share_memory(a, b) and np.shares_memory(a, b)
