"""Calls on LoDTensors: the declared LoD levels are produced, traced and run, forward and backward.

Lives here: `with_lods`.  Not here: the rules of LoDs (ops/lod_calls.py), numbers of sequence operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..eager.tape import GradientTape
from ..ops import lod_calls
from ..ops.dispatch import to_tensor as constant
from ..ops.lod_tensor import LoDTensor, LoDTensorSpec
from ..tracing.function import function
from .operator_call import CheckedCall, NotApplicable, array, flat, flows, tensor

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
    carriers = lod_calls.carriers_of(op, inputs)
    lod_rule = lod_calls.lod_word(op, bound, lod_calls.take_apart(op, inputs, carriers))
    first = next(iter(carriers.values()), None)
    shown = [o for o in op.outputs if not o.intermediate and not (lod_rule == "changed" and o.lod_of is not None)]
    outs = [o for o in shown if not o.repeated] if len(results) == len(shown) else []
    for output, y in zip(outs or [None] * len(results), results):
        if isinstance(y, LoDTensor):
            assert y.has_valid_recursive_sequence_lengths(), f"{op.name}: rows {y.shape} under {y.lod()}"
        if output is None or first is None:
            continue
        levels = y.lod_level if isinstance(y, LoDTensor) else 0
        where = f"{op.name} ({lod_rule}), output {output.name!r}"
        source = carriers.get(lod_rule[3:]) if lod_rule.startswith("as ") else first
        if lod_rule == "vanishes" or source is None:
            assert levels == 0, f"{where} has {levels} LoD levels"
        elif lod_rule == "unchanged" or lod_rule.startswith("as "):
            assert not output.rows or (levels and y.lod() == source.lod()), f"{where} has not the LoD of its input"
        elif lod_rule == "above":
            assert not output.rows or levels == source.lod_level - 1, f"{where} has {levels} LoD levels"


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
    assert len(traced) == len(results), f"{call.op.name}: {len(traced)} results traced, {len(results)} produced"
    for spec, y in zip(traced, results):
        declared = getattr(spec, "lod_level", 0)
        levels = y.lod_level if isinstance(y, LoDTensor) else 0
        assert declared == levels, f"{call.op.name}: {declared} LoD levels while tracing, {levels} produced"
    for spec, y in zip(flat(concrete(*tensors)), results):
        assert getattr(spec, "lod", list)() == getattr(y, "lod", list)(), f"{call.op.name}: another LoD when traced"


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
            assert isinstance(g, LoDTensor), f"{call.op.name}: the gradient of a LoDTensor has no LoD"
            assert g.lod() == x.lod(), f"{call.op.name}: the gradient has LoD {g.lod()}, the input {x.lod()}"


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
            if isinstance(y, LoDTensor):
                assert y.has_valid_recursive_sequence_lengths(), f"lengths {lengths}: {y.shape} under {y.lod()}"
        _check_backward(call)
    return count
