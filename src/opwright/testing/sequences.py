"""A call of LoDTensors: levels declared are levels produced, traced and run, forward and backward.

Lives here: `with_lods`.  Not here: what becomes of LoDs (ops/lod_calls.py), numbers of sequence operators.
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
from .trial import NotTried, Trial, array, flat, flows, tensor

# What may be said of a call with a LoD: rows that broadcasting would move, and tensors without sequences beside it.
REFUSALS = ("has not the rows", "differ in their LoD levels", "LoD levels", "no LoD")


def offsets(rows: int, levels: int) -> list[list[int]]:
    """So many levels over so many rows: empty sequences first, in the middle and last."""
    half = rows // 2
    last = [0, 0, half, half, rows, rows]
    return [[0, 1, 1, 5], last] if levels == 2 else [last]


def with_lods(trial: Trial) -> Iterator[Trial]:
    """The call with one and two levels on each input that has rows, in turn; its own offsets as LoDs, its own LoDs."""
    op = trial.op
    if any(isinstance(t, LoDTensor) for t in trial.tensors()):
        yield trial
        return
    by_name = dict(zip(op.input_names, trial.inputs))
    own = {i.name: i.lod_of for i in op.inputs if i.lod_of is not None}
    if own:
        made = dict(by_name)
        for name, source in own.items():
            levels, x = by_name[name], by_name[source]
            made[name] = None
            if levels is None or x is None or isinstance(x, tuple) != isinstance(levels, tuple):
                continue
            if isinstance(x, tuple) and len(x) == len(levels) and all(map(_fits, x, levels)):
                made[source] = tuple(LoDTensor(a, [array(b)]) for a, b in zip(x, levels))
            elif not isinstance(x, tuple) and _fits(x, levels):
                made[source] = LoDTensor(x, [array(levels)])
        yield Trial(op, tuple(made.values()), trial.attrs)
        return
    for k, x in enumerate(trial.inputs):
        members = x if isinstance(x, tuple) else (x,)
        if x is None or not all(_has_rows(m) for m in members) or not members:
            continue
        for levels in (1, 2):
            given = [LoDTensor(m, offsets(int(m.shape[0]), levels)) for m in members]
            value = tuple(given) if isinstance(x, tuple) else given[0]
            yield Trial(op, (*trial.inputs[:k], value, *trial.inputs[k + 1 :]), trial.attrs)


def _fits(x: Any, levels: Any) -> bool:
    return _has_rows(x) and array(levels).ndim == 1 and array(levels)[-1] == x.shape[0]


def _has_rows(x: Any) -> bool:
    return not isinstance(x, LoDTensor) and not x.dtype.is_handle and bool(x.shape.rank)


def lod_as_declared(trial: Trial, traced: bool = True) -> int:
    """In every call of `with_lods`: results have the LoD that the operator's `lod` says, valid for their rows.

    traced: also that the number of levels known while tracing is the number produced, and that gradients have the LoD
    of what they are gradients of. Gives how many calls were made; calls that the operator refuses do not count.
    raises AssertionError; NotTried where no input has rows
    """
    made = tried = 0
    for call in with_lods(trial):
        tried += 1
        try:
            found = call.flat()
        except InvalidArgumentError as error:
            if not any(words in str(error) for words in REFUSALS):
                raise AssertionError(f"refused in other words: {error}") from error
            continue
        made += 1
        _forward(call, found)
        if traced:
            _levels_while_tracing(call, found)
            _backward(call)
    if not tried:
        raise NotTried("no input with rows")
    return made


def _forward(call: Trial, found: list[Any]) -> None:
    op, bound = call.op, call.op.bind(dict(call.attrs))
    inputs = list(call.inputs)
    carriers = lod_calls.carriers_of(op, inputs)
    word = lod_calls.lod_word(op, bound, lod_calls.take_apart(op, inputs, carriers))
    first = next(iter(carriers.values()), None)
    shown = [o for o in op.outputs if not o.intermediate and not (word == "changed" and o.lod_of is not None)]
    outs = [o for o in shown if not o.repeated] if len(found) == len(shown) else []
    for output, y in zip(outs or [None] * len(found), found):
        if isinstance(y, LoDTensor):
            assert y.has_valid_recursive_sequence_lengths(), f"{op.name}: rows {y.shape} under {y.lod()}"
        if output is None or first is None:
            continue
        levels = y.lod_level if isinstance(y, LoDTensor) else 0
        where = f"{op.name} ({word}), output {output.name!r}"
        source = carriers.get(word[3:]) if word.startswith("as ") else first
        if word == "vanishes" or source is None:
            assert levels == 0, f"{where} has {levels} LoD levels"
        elif word == "unchanged" or word.startswith("as "):
            assert not output.rows or (levels and y.lod() == source.lod()), f"{where} has not the LoD of its input"
        elif word == "above":
            assert not output.rows or levels == source.lod_level - 1, f"{where} has {levels} LoD levels"


def _levels_while_tracing(call: Trial, found: list[Any]) -> None:
    """Facts 6.4: declared is produced."""
    every = call.tensors()
    tensors = [t for t in every if isinstance(t, LoDTensor) or t.dtype.is_handle]

    def traced_call(*given: Any) -> list[Any]:
        rest = iter(given)  # sizes and axes are constants: what no trace can know, no LoD level can depend on
        return call.flat([next(rest) if any(t is g for g in tensors) else constant(array(t)) for t in every])

    specs = [LoDTensorSpec(t.shape, t.dtype, t.lod_level) if isinstance(t, LoDTensor) else t for t in tensors]
    concrete = function(traced_call, autograph=False).get_concrete_function(*specs)
    known = flat(concrete.structured_outputs)
    assert len(known) == len(found), f"{call.op.name}: {len(known)} results traced, {len(found)} produced"
    for spec, y in zip(known, found):
        said = getattr(spec, "lod_level", 0)
        levels = y.lod_level if isinstance(y, LoDTensor) else 0
        assert said == levels, f"{call.op.name}: {said} LoD levels while tracing, {levels} produced"
    for spec, y in zip(flat(concrete(*tensors)), found):
        assert getattr(spec, "lod", list)() == getattr(y, "lod", list)(), f"{call.op.name}: another LoD when traced"


def _backward(call: Trial) -> None:
    """Facts 10.5: the gradient of a variable has its LoD."""
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
"""Lengths of sequences that have to work: empty first, in the middle once and twice, last, all; a batch of one."""


def edges(trial: Trial) -> int:
    """The call with its LoDTensor's rows laid out as each of EDGES, where all its LoDTensors can be: runs, with a
    valid LoD and finite results, and gives the gradient the LoD of its input. Gives how many calls were made."""
    bearers = [t for t in trial.tensors() if isinstance(t, LoDTensor)]
    if not bearers:
        raise NotTried("no LoDTensor among the inputs")
    made = 0
    for lengths in EDGES:
        rows = sum(lengths)
        moved = [
            LoDTensor(tensor(np.resize(array(t), (rows, *array(t).shape[1:]))), [np.cumsum([0, *lengths])])
            if isinstance(t, LoDTensor)
            else t
            for t in trial.tensors()
        ]
        call = trial.over(moved)
        try:
            found = call.flat()
        except InvalidArgumentError as error:
            if len(trial.tensors()) > len(bearers):
                continue  # the other inputs have a row for each sequence that there was
            raise AssertionError(f"sequences of lengths {lengths} are refused: {error}") from error
        made += 1
        for y in found:
            if isinstance(y, LoDTensor):
                assert y.has_valid_recursive_sequence_lengths(), f"lengths {lengths}: {y.shape} under {y.lod()}"
        _backward(call)
    return made
