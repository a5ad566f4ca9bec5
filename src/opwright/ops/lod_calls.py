"""Calls of operators with LoDTensors, and the LoDs of their results.

Lives here: the decomposition of arguments and the reassembly of results, as the operator's definition specifies.
Not here: the type (lod_tensor.py), execution of the call (dispatch.py, scopes/).

    lod = "unchanged"   results have the LoD of the first input that has one: they have as many rows
    lod = "vanishes"    results are ordinary tensors
    lod = "above"       results have one row per sequence of the last level, and the levels above it
    lod = "as ids"      results have the LoD of this input if it has one, regardless of the others
    lod = "changed"     outputs named by an Output(lod_of=) have the LoD that it computes, the others none
    def lod(op)         one of these words, from the attributes and the shapes of the inputs (lod_rules.py), or
                        "joined": the sequences of one input after those of another, if all have as many levels

Offsets are ordinary tensors. An Input(lod_of="x") receives the last level of x's LoD, or all levels if it is repeated;
an Output(lod_of="y") is the last level of y's new LoD, or if repeated all levels, none if y has no LoD. Kernels,
gradients, graphs and files are therefore independent of LoDs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import lod
from ..core.errors import InvalidArgumentError
from . import array, dispatch
from .compute_wrappers import offsets_violation
from .lod_tensor import LoDTensor
from .rule_errors import call_rule


def call(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    """Run or record a call with LoDTensors among its inputs."""
    carriers = carriers_of(op, inputs)
    plain = take_apart(op, inputs, carriers, name)
    word = lod_word(op, bound, plain)
    if word == "joined":
        carriers = {"": joined(op, inputs, name)} if carriers else carriers
    result = dispatch.call(op, plain, bound, name)
    shown = [o for o in op.outputs if not o.intermediate]
    if not shown:
        return result
    outputs = put_together(op, word, carriers, [result] if len(shown) == 1 else result, shown, name)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def carriers_of(op: Any, inputs: Sequence[Any]) -> dict[str, LoDTensor]:
    """Return the LoDTensors among the inputs, by input; of a repeated one the first that has levels.

    raises InvalidArgumentError for a number of levels that the input does not take
    """
    carriers: dict[str, LoDTensor] = {}
    for declared, value in zip(op.inputs, inputs):
        members = value if isinstance(value, (tuple, list)) else (value,)
        for one in members:
            if isinstance(one, LoDTensor):
                if declared.lod is not None and one.lod_level not in declared.lod:
                    _raise_lod_level(op, declared, one.lod_level)
                if one.levels:
                    carriers.setdefault(declared.name, one)
    return carriers


def _raise_lod_level(op: Any, declared: Any, level: int) -> None:
    expected = " or ".join(map(str, declared.lod))
    raise InvalidArgumentError(
        op=op.name,
        what=f"input {declared.name!r} has {level} LoD levels" if level else f"input {declared.name!r} has no LoD",
        found=f"{level} levels",
        wanted=f"{expected} level{'s' if expected != '1' else ''}",
        do="take the rows of some sequences, x.sequences, or set another LoD with ow.sequence.lod_reset"
        if level
        else "make it with ow.create_lod_tensor or ow.sequence.unpad, or set its LoD with ow.sequence.lod_reset",
    )


def take_apart(op: Any, inputs: Sequence[Any], carriers: dict[str, LoDTensor], name: str | None = None) -> list[Any]:
    """Return the inputs as ordinary tensors, with the offsets that `lod_of` requests."""
    by_name: dict[str, Any] = {}
    values: dict[str, Any] = {}
    plain: list[Any] = []
    for declared, value in zip(op.inputs, inputs):
        if value is None and declared.lod_of is not None:
            if not values:
                by_name = {other.name: other for other in op.inputs}
                values = dict(zip(by_name, inputs))
            source = values[declared.lod_of]
            of_each = isinstance(source, (tuple, list))  # of a repeated input: the last level of each member
            carrier = carriers.get(declared.lod_of)
            if of_each and any(not isinstance(s, LoDTensor) or not s.levels for s in source):
                carrier = None
            if carrier is None:
                if not declared.optional and source is not None:
                    leader = by_name[declared.lod_of]
                    if leader.lod is None:
                        raise InvalidArgumentError(
                            op=op.name,
                            node=name,
                            what=f"input {leader.name!r} has no LoD",
                            do="make it with ow.create_lod_tensor",
                        )
                    _raise_lod_level(op, leader, 0)
                plain.append(None)
            elif of_each:
                plain.append(tuple(one.levels[-1] for one in source))
            else:
                plain.append(tuple(carrier.levels) if declared.repeated else carrier.levels[-1])
        elif isinstance(value, (tuple, list)):
            plain.append(tuple(one.values if isinstance(one, LoDTensor) else one for one in value))
        else:
            plain.append(value.values if isinstance(value, LoDTensor) else value)
    return plain


def lod_word(op: Any, bound: Any, plain: Sequence[Any]) -> str:
    """Return the effect of this call on the LoD, as one of the words above."""
    if op.lod_rule is None:
        return str(op.lod)
    word: str = call_rule(op, "lod", op.lod_rule, bound.with_inputs(plain))
    return word


def put_together(
    op: Any,
    word: str,
    carriers: dict[str, LoDTensor],
    results: Sequence[Any],
    outputs: Sequence[Any],
    name: str | None = None,
) -> list[Any]:
    """Return the results with their LoDs; offsets that became the LoD of another result are left out.

    outputs: the declarations the results are of
    raises InvalidArgumentError where results under an unchanged LoD have not its rows
    """
    carrier = next(iter(carriers.values()), None)
    if word == "changed":
        above = () if carrier is None else carrier.levels[:-1]
        new = {o.lod_of: r if o.repeated else (*above, r) for o, r in zip(outputs, results) if o.lod_of is not None}
        return [
            _checked(op, o, LoDTensor.of(r, new[o.name]), name) if new.get(o.name) else r
            for o, r in zip(outputs, results)
            if o.lod_of is None
        ]
    if word == "above":
        above = () if carrier is None else carrier.levels[:-1]
        return [
            _checked(op, o, LoDTensor.of(r, above), name) if above and o.rows else r for o, r in zip(outputs, results)
        ]
    if word.startswith("as "):
        carrier = carriers.get(word[3:])
    if carrier is None or word == "vanishes":
        return list(results)
    return [_shared(op, o, carrier, r, name) for o, r in zip(outputs, results)]


def _checked(op: Any, output: Any, tensor: LoDTensor, name: str | None) -> LoDTensor:
    """Return a result whose offsets, if known, are a LoD over its rows.

    Offsets that are known when a graph runs are checked then, with what computed them (compute_wrappers.py).
    raises DefinitionError naming operator and output where they are none
    """
    if op.trusted or any(level.constant is None for level in tensor.levels):
        return tensor
    why = lod.wrong(tensor._offsets(), tensor._rows())
    if why is not None:
        raise offsets_violation(op, "compute", output.name, why, tensor.lod(), name)
    return tensor


def joined(op: Any, inputs: Sequence[Any], name: str | None = None) -> LoDTensor:
    """Return the LoD of concatenated sequences, as a LoDTensor without rows.

    raises InvalidArgumentError where inputs differ in their number of levels
    """
    members = [one for value in inputs for one in (value if isinstance(value, (tuple, list)) else (value,))]
    counts = [one.lod_level if isinstance(one, LoDTensor) else 0 for one in members]
    if len(set(counts)) > 1:
        raise InvalidArgumentError(
            op=op.name,
            node=name,
            what="inputs differ in their LoD levels",
            found=counts,
            wanted="as many levels in each",
            do="take the rows alone: x.values",
        )
    levels = []
    for first, *others in zip(*(one.levels for one in members)):
        parts = [first]
        for level in others:
            parts.append(level[1:] + parts[-1][-1])
        levels.append(array.concat(parts, 0))
    return LoDTensor.of(None, levels)


def _shared(op: Any, output: Any, carrier: LoDTensor, result: Any, name: str | None) -> object:
    if isinstance(result, (list, tuple)):
        return type(result)([_shared(op, output, carrier, r, name) for r in result])
    if not output.rows:
        return result
    before = carrier._values
    if type(before) is type(result) and before.constant is not None and result.constant is not None:
        old, new = before.constant.shape, result.constant.shape  # arrays', a tenth of the time of tensors'
        if new and new[0] == old[0] and (len(new) == len(old) or not op.elementwise):
            return LoDTensor.of(result, carrier.levels)
    rows = result.shape[0] if result.shape.rank else None
    expected = carrier.shape[0] if carrier.is_initialized and carrier.shape.rank else None
    other_axis = op.elementwise and carrier.is_initialized and carrier.shape.rank != result.shape.rank
    if result.shape.rank == 0 or other_axis or (rows is not None and expected is not None and rows != expected):
        raise InvalidArgumentError(
            op=op.name,
            node=name,
            what=f"output {output.name!r} has not the rows that the LoD of its input speaks of",
            found=f"shape {result.shape}",
            wanted=f"{expected} rows",
            do='say in the operator lod = "vanishes", or take the rows alone: x.values',
        )
    return LoDTensor.of(result, carrier.levels)


dispatch.install_lod_calls(call)
