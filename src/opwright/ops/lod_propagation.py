"""LoDs of results: rules of operators, and calls with LoDTensors.

Lives here: the decomposition of arguments and the reassembly of results, as the operator's definition specifies; rules
that several operators share, for their `lod`.
Not here: the type (lod_tensor.py), execution of the call (dispatch.py, scopes/).

    lod = "unchanged"   results have the LoD of the first input that has one: they have as many rows
    lod = "vanishes"    results are ordinary tensors
    lod = "above"       results have one row per sequence of the last level, and the levels above it
    lod = "as ids"      results have the LoD of this input if it has one, regardless of the others
    lod = "changed"     outputs named by an Output(lod_of=) have the LoD that it computes, the others none
    def lod(op)         one of these words, from the attributes and the shapes of the inputs, or
                        "joined": the sequences of one input after those of another, if all have as many levels

A rule `lod` receives the call, with its attributes, and inputs that have a spec. The rows of the result must be
certain: if sizes or axes are known only at run time, the LoD vanishes.

Offsets are ordinary tensors. An Input(lod_of="x") receives the last level of x's LoD, or all levels if it is repeated;
an Output(lod_of="y") is the last level of y's new LoD, or if repeated all levels, none if y has no LoD. Kernels,
gradients, graphs and files are therefore independent of LoDs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import lod
from ..core.errors import InvalidArgumentError
from . import array, dispatch
from .call import call_rule
from .compute_wrappers import offsets_violation
from .lod_tensor import LoDTensor

UNCHANGED, VANISHES = "unchanged", "vanishes"
Rule = Callable[[Any], str]


def as_input(name: str) -> str:
    """Return the word for: the LoD of that input, whatever the others have."""
    return f"as {name}"


def _preserved(rows_stay: bool, name: str) -> str:
    return as_input(name) if rows_stay else VANISHES


def _rank(op: Any, name: str) -> int | None:
    value = getattr(op, name)
    result: int | None = (value[0] if isinstance(value, (tuple, list)) else value).spec.shape.rank
    return result


def along(axis: str, data: str, every: bool = True) -> Rule:
    """Return the rule that preserves the LoD of `data` unless an axis in this attribute is its first.

    every: whether None means every axis; else it means none.
    """

    def rule(op: Any) -> str:
        axes = getattr(op, axis)
        if axes is None:
            return _preserved(not every, data)
        rank = _rank(op, data)
        axes_ = axes if isinstance(axes, Sequence) else (axes,)
        return _preserved(all(a != 0 and (a > 0 or (rank is not None and a != -rank)) for a in axes_), data)

    return rule


def batched(data: str, core: int) -> Rule:
    """Return the rule that preserves the LoD of `data` if it has axes before the last `core` ones."""

    def rule(op: Any) -> str:
        rank = _rank(op, data)
        return _preserved(rank is not None and rank > core, data)

    return rule


def added_axis(axis: str, data: str) -> Rule:
    """Return the rule that preserves the LoD of `data` unless the new axis becomes the first."""

    def rule(op: Any) -> str:
        rank, position = _rank(op, data), getattr(op, axis)
        return _preserved(position > 0 or (position < 0 and rank is not None and position + rank + 1 > 0), data)

    return rule


def first_of(constant: str, data: str, holds: Callable[[Any], bool]) -> Rule:
    """Return the rule that preserves the LoD of `data` if `holds` is true of the first element of a constant input."""

    def rule(op: Any) -> str:
        value = getattr(op, constant).constant
        return _preserved(value is not None and value.ndim > 0 and len(value) > 0 and bool(holds(value[0])), data)

    return rule


def reshape(op: Any) -> str:
    """Preserve the LoD if the first size stays: explicitly, or because rows have as many elements as before."""
    old = op.tensor.spec.shape
    new = op.shape.constant
    if old.rank in (None, 0) or new is None or len(new) == 0:
        return VANISHES
    if old[0] is not None and new[0] == old[0]:
        return as_input("tensor")
    row = old[1:].num_elements()
    if new[0] != -1 or row is None:
        return VANISHES
    row_elements = 1
    for size in new[1:].tolist():
        row_elements *= size
    return _preserved(row == row_elements and row != 0, "tensor")


def strided_slice(op: Any) -> str:
    """Preserve the LoD if the first axis is selected completely: x[:, 3], x[..., 1:]."""
    rank = _rank(op, "input_")
    if op.ellipsis_mask & 1:  # the first axis is in the ellipsis, if any is
        begin = op.begin.spec.shape[0]
        leading = None if begin is None else begin - 1 - bin(op.new_axis_mask).count("1")
        return _preserved(rank is not None and leading is not None and rank > leading, "input_")
    steps = op.strides.constant
    is_full = op.begin_mask & 1 and op.end_mask & 1 and steps is not None and len(steps) and steps[0] == 1
    return _preserved(bool(is_full) and not (op.new_axis_mask | op.shrink_axis_mask) & 1, "input_")


def slice_(op: Any) -> str:
    """Preserve the LoD if the first axis is selected completely."""
    begin, size, rows = op.begin.constant, op.size.constant, op.input.spec.shape
    if begin is None or size is None or not rows.rank or begin[0] != 0:
        return VANISHES
    return _preserved(size[0] == -1 or (rows[0] is not None and size[0] == rows[0]), "input")


def squeeze(op: Any) -> str:
    """Preserve the LoD unless the first axis is removed."""
    shape = op.input.spec.shape
    if not shape.rank:
        return VANISHES
    if not op.axis:
        return _preserved(shape[0] is not None and shape[0] != 1, "input")
    return _preserved(all(a % shape.rank for a in op.axis), "input")


def broadcast_to(op: Any) -> str:
    """Preserve the LoD if no axis is added before the first and its size stays."""
    target, rows = op.shape.constant, op.input.spec.shape
    if target is None or rows.rank != len(target) or not rows.rank:
        return VANISHES
    return _preserved(rows[0] is not None and target[0] == rows[0], "input")


def gather(op: Any) -> str:
    """Return the LoD of the indices, or of the table if another axis is indexed."""
    rank = _rank(op, "params")
    if op.batch_dims:
        return UNCHANGED
    if op.axis == 0 or (rank is not None and op.axis == -rank):
        return as_input("indices")
    return as_input("params")


def matmul(op: Any) -> str:
    """Return the LoD of the first matrix unless transposed; of stacks of matrices, that of the stacks."""
    ranks = _rank(op, "a"), _rank(op, "b")
    if ranks == (2, 2):
        return VANISHES if op.transpose_a or getattr(op, "adjoint_a", False) else as_input("a")
    return UNCHANGED if ranks[0] == ranks[1] and ranks[0] is not None else VANISHES


def einsum(op: Any) -> str:
    """Preserve the LoD if the first index of the first operand is the first of the result."""
    left, _, right = op.equation.replace(" ", "").partition("->")
    first = left.split(",")[0]
    return _preserved(bool(first) and first[:1] == right[:1] and first[0].isalpha(), "inputs")


def transpose(op: Any) -> str:
    """Preserve the LoD if the first axis stays first."""
    perm = op.perm
    rank = _rank(op, "a")
    return _preserved(rank is not None and rank > 0 and (perm[0] == 0 if perm else rank == 1), "a")


def concat(op: Any) -> str:
    """Join the sequences along the first axis; preserve the LoD along others."""
    rank = _rank(op, "values")
    return "joined" if op.axis == 0 or (rank is not None and op.axis == -rank) else UNCHANGED


def call(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> object:
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
