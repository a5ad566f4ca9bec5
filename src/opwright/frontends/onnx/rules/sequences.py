"""Sequences and optional values of ONNX, which are Python lists and None while a graph is executed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.errors import InvalidArgumentError
from ....ops import array
from ..execution import RULES
from ..operands import at, axis_of, dims, rank_of

rule = RULES.rule


def _place(context: Any, inputs: Any, position: int, length: int, end: int) -> int:
    value = at(inputs, position)
    if value is None:
        return end
    index = int(context.required(value, "a position in a sequence").reshape(-1)[0])
    if not -length <= index <= max(length, 0):
        raise InvalidArgumentError(
            what="no such position in the sequence", found=index, wanted=f"{-length} to {length}"
        )
    return index + length if index < 0 else index


@rule("SequenceEmpty")
def sequence_empty(context: Any, inputs: Any, attributes: Any) -> Any:
    return [[]]


@rule("SequenceConstruct")
def sequence_construct(context: Any, inputs: Any, attributes: Any) -> Any:
    return [list(inputs)]


@rule("SequenceInsert")
def sequence_insert(context: Any, inputs: Any, attributes: Any) -> Any:
    items = list(inputs[0])
    items.insert(_place(context, inputs, 2, len(items), len(items)), inputs[1])
    return [items]


@rule("SequenceErase")
def sequence_erase(context: Any, inputs: Any, attributes: Any) -> Any:
    items = list(inputs[0])
    del items[_place(context, inputs, 1, len(items), len(items) - 1)]
    return [items]


@rule("SequenceAt")
def sequence_at(context: Any, inputs: Any, attributes: Any) -> Any:
    items = list(inputs[0])
    return items[_place(context, inputs, 1, len(items), 0)]


@rule("SequenceLength")
def sequence_length(context: Any, inputs: Any, attributes: Any) -> Any:
    return np.asarray(len(inputs[0]), np.int64)


@rule("ConcatFromSequence")
def concat_from_sequence(context: Any, inputs: Any, attributes: Any) -> Any:
    items, axis = list(inputs[0]), attributes["axis"]
    return array.stack(items, axis) if attributes.get("new_axis") else array.concat(items, axis)


@rule("SplitToSequence")
def split_to_sequence(context: Any, inputs: Any, attributes: Any) -> Any:
    x, sizes = inputs[0], at(inputs, 1)
    axis = axis_of(attributes.get("axis", 0), rank_of(x))
    whole = dims(x)[axis]
    if sizes is None:
        parts = array.split(x, whole, axis)
        return [[p if attributes.get("keepdims", 1) else array.squeeze(p, [axis]) for p in parts]]
    sizes = context.required(sizes, "the sizes of parts")
    if sizes.ndim == 0:
        if whole is None:
            raise InvalidArgumentError(what="SplitToSequence needs the size at import")
        step = int(sizes)
        sizes = np.asarray([min(step, whole - i) for i in range(0, whole, step)])
    return [list(array.split(x, sizes.tolist(), axis))]


@rule("SequenceMap", pure=False)
def sequence_map(context: Any, inputs: Any, attributes: Any) -> Any:
    rows = [
        context.run(attributes["body"], [v[i] if isinstance(v, (list, tuple)) else v for v in inputs])
        for i in range(len(inputs[0]))
    ]
    count = len(attributes["body"].output)
    return [[row[i] for row in rows] for i in range(count)]


@rule("Optional")
def optional(context: Any, inputs: Any, attributes: Any) -> Any:
    return [at(inputs, 0)]


@rule("OptionalHasElement")
def optional_has_element(context: Any, inputs: Any, attributes: Any) -> Any:
    return np.asarray(at(inputs, 0) is not None)


@rule("OptionalGetElement")
def optional_get_element(context: Any, inputs: Any, attributes: Any) -> Any:
    if inputs[0] is None:
        raise InvalidArgumentError(what="the optional value is absent")
    return [inputs[0]]
