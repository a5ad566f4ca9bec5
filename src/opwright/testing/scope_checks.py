"""Run an operator on the variables of a scope at a place, with reused memory, and on LoDTensors.

Lives here: `on_scopes`: runs compute the eager call's results, repeatably, and leave the inputs unchanged;
`reuse_changes_no_bits`: a call, its gradient and the gradient of that, with and without memory reuse; `with_lods`: the
declared LoD levels are produced, traced and run, forward and backward.
Not here: the run itself (scopes/execution.py), the analysis of memory reuse (compiler/inplace.py), the rules of LoDs
(ops/lod_propagation.py), numbers of sequence operators.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler import inplace
from ..compiler.plan import Plan
from ..core import flags
from ..core.errors import InvalidArgumentError
from ..core.places import Place, place_of
from ..eager.tape import GradientTape
from ..graph import Graph, Value
from ..ops import lod_propagation
from ..ops import math as math_ops
from ..ops.compute_wrappers import fingerprint
from ..ops.dispatch import to_tensor as constant
from ..ops.lod_tensor import LoDTensor, LoDTensorSpec
from ..scopes.backward import NoGradientError, graph_gradients
from ..scopes.instance import OpInstance
from ..scopes.scope import Scope
from ..tracing.function import function
from .gradient_check import Function
from .operator_call import CheckedCall, NotApplicable, array, assert_same, flat, flows, refs, tensor

if TYPE_CHECKING:
    from ..ops.kernel_selection import Explanation

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
                if (x.dtype, x.shape, x.tobytes()) != (y.dtype, y.shape, y.tobytes()):
                    raise AssertionError(f"gradient {order}, result {k}: memory used again changes bits")
            for a, original in zip(arrays, before):
                if a.tobytes() != original:
                    raise AssertionError(f"gradient {order}: an argument was written")
    return reused


def on_scopes(call: CheckedCall, place: str | Place = "cpu", expected: Any = None, unused: bool = False) -> Explanation:
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
    explanation: Explanation
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
    carriers = lod_propagation.carriers_of(op, inputs)
    lod_rule = lod_propagation.lod_word(op, op.bind(dict(call.attrs)), lod_propagation.take_apart(op, inputs, carriers))
    if lod_rule != "changed":
        return shown, results
    if len(listed) == len(shown):
        listed = lod_propagation.put_together(op, lod_rule, carriers, listed, shown)
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
    if scope.kids != ():
        raise AssertionError(f"at {place}: the run left a scope behind")
    after = _fingerprints(contents)
    for name in contents:
        if before[name] != after[name]:
            raise AssertionError(f"at {place}: input {name!r} was written")
    results = [w if w.dtype.is_handle else scope.var(name).value for name, w in expected.items()]
    if place.kind == "cpu":
        inputs = [(name, a) for name, value in contents.items() for a in refs(value)]
        for out, result in zip(expected, results):
            for array in refs(result)[:1]:
                for name, other in inputs:
                    if _overlap(array, other):
                        raise AssertionError(f"{out.rstrip(':')!r} lies in the memory of input {name!r}")
    return results, explanation


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    return a.size > 0 and b.size > 0 and a.dtype != object and np.may_share_memory(a, b) and np.shares_memory(a, b)


# Accepted refusals of a call with a LoD: rows that broadcasting would move, and operands without sequences.
REFUSALS = ("has not the rows", "differ in their LoD levels", "LoD levels", "no LoD")


def offsets(rows: int, levels: int) -> list[list[int]]:
    """Return this many levels over this many rows: empty sequences first, in the middle and last."""
    half = rows // 2
    last = [0, 0, half, half, rows, rows]
    return [[0, 1, 1, 5], last] if levels == 2 else [last]


def with_lods(original: CheckedCall) -> Iterator[CheckedCall]:
    """Yield the call with one and two levels on each input with rows, in turn; or with its own offsets as LoDs."""
    op = original.op
    if any(isinstance(t, LoDTensor) for t in original.tensors()):
        yield original
        return
    by_name = dict(zip(op.input_names, original.inputs))
    own = {i.name: i.lod_of for i in op.inputs if i.lod_of is not None}
    if own:
        replaced_inputs = dict(by_name)
        for name, source in own.items():
            levels, x = by_name[name], by_name[source]
            replaced_inputs[name] = None
            if levels is None or x is None or isinstance(x, tuple) != isinstance(levels, tuple):
                continue
            if isinstance(x, tuple) and len(x) == len(levels) and all(map(_offsets_match, x, levels)):
                replaced_inputs[source] = tuple(LoDTensor(a, [array(b)]) for a, b in zip(x, levels))
            elif not isinstance(x, tuple) and _offsets_match(x, levels):
                replaced_inputs[source] = LoDTensor(x, [array(levels)])
        yield CheckedCall(op, tuple(replaced_inputs.values()), original.attrs)
        return
    for k, x in enumerate(original.inputs):
        members = x if isinstance(x, tuple) else (x,)
        if x is None or not all(_has_rows(m) for m in members) or not members:
            continue
        for levels in (1, 2):
            packed = [LoDTensor(m, offsets(int(m.shape[0]), levels)) for m in members]
            value = tuple(packed) if isinstance(x, tuple) else packed[0]
            yield CheckedCall(op, (*original.inputs[:k], value, *original.inputs[k + 1 :]), original.attrs)


def _offsets_match(x: Any, levels: Any) -> bool:
    return _has_rows(x) and array(levels).ndim == 1 and array(levels)[-1] == x.shape[0]


def _has_rows(x: Any) -> bool:
    return not isinstance(x, LoDTensor) and not x.dtype.is_handle and bool(x.shape.rank)


def lod_as_declared(original: CheckedCall, traced: bool = True) -> int:
    """Check in every call of `with_lods` that results have the LoD that the operator's `lod` declares, valid for their
    rows.

    traced: also that the number of levels known while tracing is the number produced, and that gradients have the LoD
    of their tensors. Returns the number of calls; calls that the operator refuses do not count. raises AssertionError;
    NotApplicable if no input has rows
    """
    count = tried = 0
    for call in with_lods(original):
        tried += 1
        try:
            results = call.flat()
        except InvalidArgumentError as error:
            if not any(words in str(error) for words in REFUSALS):
                raise AssertionError(f"refused in other words: {error}") from error
            continue
        count += 1
        _check_forward(call, results)
        if traced:
            _check_traced_levels(call, results)
            _check_backward(call)
    if not tried:
        raise NotApplicable("no input with rows")
    return count


def _check_forward(call: CheckedCall, results: list[Any]) -> None:
    op, bound = call.op, call.op.bind(dict(call.attrs))
    inputs = list(call.inputs)
    carriers = lod_propagation.carriers_of(op, inputs)
    lod_rule = lod_propagation.lod_word(op, bound, lod_propagation.take_apart(op, inputs, carriers))
    first = next(iter(carriers.values()), None)
    shown = [o for o in op.outputs if not o.intermediate and not (lod_rule == "changed" and o.lod_of is not None)]
    outs = [o for o in shown if not o.repeated] if len(results) == len(shown) else []
    for output, y in zip(outs or [None] * len(results), results):
        if isinstance(y, LoDTensor) and not y.has_valid_recursive_sequence_lengths():
            raise AssertionError(f"{op.name}: rows {y.shape} under {y.lod()}")
        if output is None or first is None:
            continue
        levels = y.lod_level if isinstance(y, LoDTensor) else 0
        where = f"{op.name} ({lod_rule}), output {output.name!r}"
        source = carriers.get(lod_rule[3:]) if lod_rule.startswith("as ") else first
        if lod_rule == "vanishes" or source is None:
            if levels != 0:
                raise AssertionError(f"{where} has {levels} LoD levels")
        elif lod_rule == "unchanged" or lod_rule.startswith("as "):
            if output.rows and not (levels and y.lod() == source.lod()):
                raise AssertionError(f"{where} has not the LoD of its input")
        elif lod_rule == "above" and output.rows and levels != source.lod_level - 1:
            raise AssertionError(f"{where} has {levels} LoD levels")


def _check_traced_levels(call: CheckedCall, results: list[Any]) -> None:
    """Check that the LoD levels known while tracing are the levels produced."""
    every = call.tensors()
    tensors = [t for t in every if isinstance(t, LoDTensor) or t.dtype.is_handle]

    def traced_call(*arguments: Any) -> list[Any]:
        remaining = iter(arguments)  # sizes and axes are constants: no LoD level depends on values unknown to a trace
        return call.flat([next(remaining) if any(t is g for g in tensors) else constant(array(t)) for t in every])

    specs = [LoDTensorSpec(t.shape, t.dtype, t.lod_level) if isinstance(t, LoDTensor) else t for t in tensors]
    concrete = function(traced_call, autograph=False).get_concrete_function(*specs)
    traced = flat(concrete.structured_outputs)
    if len(traced) != len(results):
        raise AssertionError(f"{call.op.name}: {len(traced)} results traced, {len(results)} produced")
    for spec, y in zip(traced, results):
        declared = getattr(spec, "lod_level", 0)
        levels = y.lod_level if isinstance(y, LoDTensor) else 0
        if declared != levels:
            raise AssertionError(f"{call.op.name}: {declared} LoD levels while tracing, {levels} produced")
    for spec, y in zip(flat(concrete(*tensors)), results):
        if getattr(spec, "lod", list)() != getattr(y, "lod", list)():
            raise AssertionError(f"{call.op.name}: another LoD when traced")


def _check_backward(call: CheckedCall) -> None:
    """Check that the gradient of a variable has its LoD."""
    if call.op.gradient_rule is None:
        return
    values = [t for t in call.tensors() if flows(t)]
    with GradientTape() as tape:
        for t in values:
            tape.watch(t)
        outputs = [y for y in call.flat() if flows(y)]
    if not outputs or not values:
        return
    try:
        grads = tape.gradient(outputs, values)
    except LookupError:
        return
    for x, g in zip(values, grads):
        if isinstance(x, LoDTensor) and g is not None:
            if not isinstance(g, LoDTensor):
                raise AssertionError(f"{call.op.name}: the gradient of a LoDTensor has no LoD")
            if g.lod() != x.lod():
                raise AssertionError(f"{call.op.name}: the gradient has LoD {g.lod()}, the input {x.lod()}")


EDGES: tuple[tuple[int, ...], ...] = ((0, 2, 1), (2, 0, 1), (1, 0, 0, 2), (2, 1, 0), (0, 0), (3,), (0,), (1,))
"""Lengths of sequences that must work: empty first, in the middle once and twice, last, all; a batch of one."""


def edge_cases(original: CheckedCall) -> int:
    """Run the call with its LoDTensor's rows laid out as each of EDGES, if all its LoDTensors can be: the results have
    a valid LoD, and the gradient has the LoD of its input. Returns the number of calls.
    """
    packed = [t for t in original.tensors() if isinstance(t, LoDTensor)]
    if not packed:
        raise NotApplicable("no LoDTensor among the inputs")
    count = 0
    for lengths in EDGES:
        rows = sum(lengths)
        replaced = [
            LoDTensor(tensor(np.resize(array(t), (rows, *array(t).shape[1:]))), [np.cumsum([0, *lengths])])
            if isinstance(t, LoDTensor)
            else t
            for t in original.tensors()
        ]
        call = original.over(replaced)
        try:
            results = call.flat()
        except InvalidArgumentError as error:
            if len(original.tensors()) > len(packed):
                continue  # other inputs have a row for each original sequence
            raise AssertionError(f"sequences of lengths {lengths} are refused: {error}") from error
        count += 1
        for y in results:
            if isinstance(y, LoDTensor) and not y.has_valid_recursive_sequence_lengths():
                raise AssertionError(f"lengths {lengths}: {y.shape} under {y.lod()}")
        _check_backward(call)
    return count
