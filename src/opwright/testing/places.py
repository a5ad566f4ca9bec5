"""An operator in other surroundings: on the variables of a scope at a place, and with memory reused.

Lives here: `on_scopes`: a run gives the eager call's results, again and again, and leaves its inputs alone;
`reuse_changes_no_bits`: a call, its gradient and the gradient of that, with memory used again and without.
Not here: the run itself (scopes/execution.py), when memory is used again (compiler/inplace.py).
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
from .slopes import Function
from .trial import NotTried, Trial, array, assert_same, flows, refs

ORDERS = 2  # gradients of gradients


def graphs(run: Function, values: Sequence[Any]) -> Iterator[Graph]:
    """The graph of the call, of its gradients, of their gradients. Inputs come out of other nodes, and die."""

    def dying(*given: Any) -> list[Any]:
        return run([math_ops.negative(math_ops.negative(x)) if flows(x) else x for x in given])

    graph = function(dying, autograph=False).get_concrete_function(*values).graph
    if len(graph.inputs) != len(values):
        raise NotTried("the graph takes more than the tensors")
    yield graph
    targets = [y for y in graph.outputs if flows(y)]
    for _ in range(ORDERS):
        if not targets:
            return
        try:
            made = graph_gradients(graph, targets, [x for x in graph.inputs if flows(x)])
        except NoGradientError:
            return
        graph = made.graph
        yield graph
        targets = [g for g in made.gradients if isinstance(g, Value) and flows(g)]


def reuse_changes_no_bits(run: Function, values: Sequence[Any]) -> int:
    """Run each of `graphs` with the planner's reuse of memory on and off. Gives how many results were written into
    memory that died. Small arrays are let in too. raises AssertionError where one bit differs, or an input changes
    """
    reused = 0
    if any(v.dtype.is_handle for v in values):
        raise NotTried("a handle among the inputs")
    arrays = [array(v) for v in values]
    before = [a.tobytes() for a in arrays]
    with inplace.any_size():
        for order, graph in enumerate(graphs(run, values)):
            on, off = Plan(graph, inplace=True), Plan(graph, inplace=False)
            reused += on.reused
            if not on.reused:
                continue  # one program
            with np.errstate(all="ignore"):
                found, wanted = on.run(*arrays), off.run(*arrays)
            for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
                x, y = np.asarray(a), np.asarray(b)
                if x.dtype == object:
                    continue
                assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes()), (
                    f"gradient {order}, result {k}: memory used again changes bits"
                )
            for a, was in zip(arrays, before):
                assert a.tobytes() == was, f"gradient {order}: an argument was written"
    return reused


def on_scopes(trial: Trial, place: str | Place = "cpu", wanted: Any = None, unused: bool = False) -> Any:
    """Run the call on scopes at a place. Gives the Explanation: which kernel it was.

    wanted: what the eager call gives, by default that is run. unused: also that every input is read, or `shape_only`.
    On the CPU the bits are the eager ones; elsewhere numbers agree within the dtype's tolerance. One instance gives the
    same bits on another scope, and so does its deep copy. Inputs keep their bits, and no output lies in their memory.
    raises AssertionError; NotTried for operators with effects, and control flow
    """
    op, place = trial.op, place_of(place)
    if op.effect is not None or op.control:
        raise NotTried(f"it has an effect: {op.effect}" if op.effect else "control flow runs graphs")
    results = trial.call() if wanted is None else wanted
    shown = [o for o in op.outputs if not o.intermediate]
    if any(o.lod_of for o in shown):
        shown, results = _with_lods(trial, shown, results)
    by_output = dict(zip([o.name for o in shown], [results] if len(shown) == 1 else list(results)))
    ins, values = _names(trial)
    outs: dict[str, Any] = {
        o.name: [f"{o.name}:{i}" for i in range(len(by_output[o.name]))] if o.repeated else f"{o.name}:" for o in shown
    }
    wanted_by_name: dict[str, Any] = {
        name: value
        for o in shown
        for name, value in (zip(outs[o.name], by_output[o.name]) if o.repeated else [(outs[o.name], by_output[o.name])])
    }
    for o in op.outputs:
        outs.setdefault(o.name, "@EMPTY@")
    instance = OpInstance(op, ins, outs, dict(trial.attrs))
    first, explanation = _run(instance, values, wanted_by_name, place, unused)
    assert_same(first, list(wanted_by_name.values()), f"at {place}", bits=place.kind == "cpu")
    again, _ = _run(instance, values, wanted_by_name, place, False)
    assert_same(again, first, f"the same instance on another scope at {place}")
    copied, _ = _run(copy.deepcopy(instance), values, wanted_by_name, place, False)
    assert_same(copied, first, f"a deep copy of the instance at {place}")
    return explanation


def _with_lods(trial: Trial, shown: list[Any], results: Any) -> tuple[list[Any], Any]:
    """Outputs and results as variables have them: offsets that came out by themselves are the LoD of their rows."""
    op, own = trial.op, [o for o in shown if o.lod_of is None]
    listed = list(results) if isinstance(results, (tuple, list)) else [results]
    inputs = list(trial.inputs)
    carriers = lod_calls.carriers_of(op, inputs)
    word = lod_calls.lod_word(op, op.bind(dict(trial.attrs)), lod_calls.take_apart(op, inputs, carriers))
    if word != "changed":
        return shown, results
    if len(listed) == len(shown):
        listed = lod_calls.put_together(op, word, carriers, listed, shown)
    return own, listed if len(own) > 1 else listed[0]


def _names(trial: Trial) -> tuple[dict[str, Any], dict[str, Any]]:
    """The names of variables by slot, and what they hold."""
    ins: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for declared, value in zip(trial.op.inputs, trial.inputs):
        if value is None:
            continue
        members = value if isinstance(value, tuple) else (value,)
        names = [f"{declared.name}{i}" for i in range(len(members))]
        ins[declared.name] = names
        values.update(zip(names, members))
    return ins, values


def _prints(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: [fingerprint(a) for a in refs(value)] for name, value in values.items()}


def _run(
    instance: OpInstance, values: Mapping[str, Any], wanted: Mapping[str, Any], place: Place, unused: bool
) -> tuple[list[Any], Any]:
    """A run on a scope of its own: the results in order, and the Explanation."""
    scope = Scope()
    for name, value in values.items():
        scope.var(name).set(value)
    held = {name: scope.var(name).value for name, v in values.items() if not v.dtype.is_handle}
    before = _prints(held)
    with warnings.catch_warnings(), flags.override(check_unused_inputs=unused):
        warnings.simplefilter("ignore", RuntimeWarning)  # of falling back, which the Explanation says
        explanation = instance.run(scope, place)
    assert scope.kids == (), f"at {place}: the run left a scope behind"
    after = _prints(held)
    for name in held:
        assert before[name] == after[name], f"at {place}: input {name!r} was written"
    found = [w if w.dtype.is_handle else scope.var(name).value for name, w in wanted.items()]
    if place.kind == "cpu":
        mine = [(name, a) for name, value in held.items() for a in refs(value)]
        for out, result in zip(wanted, found):
            for array in refs(result)[:1]:
                for name, other in mine:
                    assert not _overlap(array, other), f"{out.rstrip(':')!r} lies in the memory of input {name!r}"
    return found, explanation


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    return a.size > 0 and b.size > 0 and a.dtype != object and np.may_share_memory(a, b) and np.shares_memory(a, b)
