"""Conditions on an operator of a model, from which the rules for operator versions are built.

Lives here: `holds`, `describe`, `options_set`, `wants_types_beyond`; the predicates; the flags, for conditions that the
predicates cannot express.
Not here: the rules (versions.json) and the versions that follow from them (versions.py).

An input that is omitted (-1) or past the end of the list has no type, fails every test of type, and has rank 0. An
operator without an options table reads every option as 0, even where the schema has another default.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class OperatorView(NamedTuple):
    """The part of an operator that rules read: tensors (`objects.Tensor`, None for an omitted one) and options."""

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    options: Any = None

    def tensor(self, side: str, index: int) -> Any:
        tensors = self.inputs if side == "input" else self.outputs
        return tensors[index] if index < len(tensors) else None


def holds(condition: dict[str, Any], operator: OperatorView) -> bool:
    """Return whether a condition of a rule holds for an operator."""
    for key, predicate in PREDICATES.items():
        if key in condition:
            return predicate(condition, operator)
    raise KeyError(f"no predicate for condition {condition}")


def describe(condition: dict[str, Any]) -> str:
    """Return a condition as text."""
    for key, said in WORDS.items():
        if key in condition:
            return said(condition)
    raise KeyError(f"no words for condition {condition}")


def options_set(condition: dict[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that a condition requires to differ from their default."""
    for part in (*condition.get("all", ()), *condition.get("any", ())):
        yield from options_set(part, defaults)
    if "option" in condition:
        name = condition["option"]
        default = defaults.get(name, 0)
        if ("equals" in condition and condition["equals"] != default) or condition.get("not_equals", ...) == default:
            yield name


def wants_types_beyond(condition: dict[str, Any], types: Container[str]) -> bool:
    """Return whether a condition holds only for operators with a tensor of a type that is not among `types`."""
    if "all" in condition:
        return any(wants_types_beyond(part, types) for part in condition["all"])
    if "any" in condition:
        return all(wants_types_beyond(part, types) for part in condition["any"])
    return "type_in" in condition and not any(name in types for name in condition["type_in"])


def _tensor(condition: dict[str, Any], operator: OperatorView) -> Any:
    side = "input" if "input" in condition else "output"
    return operator.tensor(side, condition[side])


def _shape(tensor: Any) -> list[int]:
    return [] if tensor is None else np.asarray(tensor.shape).tolist()


def _scales(tensor: Any) -> list[Any]:
    if tensor is None or tensor.quantization is None:
        return []
    return list(np.asarray(tensor.quantization.scale, np.float32))


def _type_in(condition: dict[str, Any], operator: OperatorView) -> bool:
    tensor = _tensor(condition, operator)
    return tensor is not None and getattr(tensor.type, "name", "") in condition["type_in"]


def _option(condition: dict[str, Any], operator: OperatorView) -> object:
    """Return the value of an option; enum members compare as numbers."""
    return getattr(operator.options, condition["option"], 0)


PREDICATES: dict[str, Callable[[dict[str, Any], OperatorView], bool]] = {
    "all": lambda c, op: all(holds(part, op) for part in c["all"]),
    "any": lambda c, op: any(holds(part, op) for part in c["any"]),
    "not": lambda c, op: not holds(c["not"], op),
    "type_in": _type_in,
    "rank_gt": lambda c, op: len(_shape(_tensor(c, op))) > c["rank_gt"],
    "rank_eq": lambda c, op: len(_shape(_tensor(c, op))) == c["rank_eq"],
    "rank_ne": lambda c, op: len(_shape(_tensor(c, op))) != c["rank_ne"],
    "present": lambda c, op: (_tensor(c, op) is not None) == c["present"],
    "n_inputs_eq": lambda c, op: len(op.inputs) == c["n_inputs_eq"],
    "max_input_rank_gt": lambda c, op: max((len(_shape(t)) for t in op.inputs), default=0) > c["max_input_rank_gt"],
    "equals": lambda c, op: bool(_option(c, op) == c["equals"]),
    "not_equals": lambda c, op: bool(_option(c, op) != c["not_equals"]),
    "flag": lambda c, op: FLAGS[c["flag"]](op),
}


def _side(condition: dict[str, Any]) -> str:
    side = "input" if "input" in condition else "output"
    return f"{side} {condition[side]}"


WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "all": lambda c: " and ".join(_nested(part, "any") for part in c["all"]),
    "any": lambda c: " or ".join(_nested(part, "all") for part in c["any"]),
    "not": lambda c: f"not ({describe(c['not'])})",
    "type_in": lambda c: f"{_side(c)} is {' or '.join(c['type_in'])}",
    "rank_gt": lambda c: f"{_side(c)} has more than {c['rank_gt']} dimensions",
    "rank_eq": lambda c: f"{_side(c)} has {c['rank_eq']} dimensions",
    "rank_ne": lambda c: f"{_side(c)} has not {c['rank_ne']} dimensions",
    "present": lambda c: f"{_side(c)} is {'given' if c['present'] else 'left out'}",
    "n_inputs_eq": lambda c: f"there are {c['n_inputs_eq']} inputs",
    "max_input_rank_gt": lambda c: f"an input has more than {c['max_input_rank_gt']} dimensions",
    "equals": lambda c: f"{c['option']} is {c['equals']}",
    "not_equals": lambda c: f"{c['option']} is not {c['not_equals']}",
    "flag": lambda c: FLAG_WORDS[c["flag"]],
}


def _nested(part: dict[str, Any], other: str) -> str:
    return f"({describe(part)})" if other in part else describe(part)


def _grouped(op: OperatorView) -> bool:
    x, filter = _shape(op.tensor("input", 0)), _shape(op.tensor("input", 1))
    return bool(x) and (x[3] if len(x) > 3 else 0) != (filter[3] if len(filter) > 3 else 0)


def _scale_for_each(op: OperatorView, axis: int) -> bool:
    """Return whether input 1 has a scale for each slice of an axis; a single slice with a single scale counts."""
    tensor = op.tensor("input", 1)
    shape = _shape(tensor)
    return len(shape) > axis and shape[axis] > 0 and len(_scales(tensor)) == shape[axis]


def _per_channel(tensor: Any) -> bool:
    """Return whether a tensor has several scales, one for each slice of the quantized dimension."""
    scales, shape = _scales(tensor), _shape(tensor)
    axis = tensor.quantization.quantized_dimension if scales else 0
    return len(scales) > 1 and 0 <= axis < len(shape) and len(scales) == shape[axis]


def _has_quantization(tensor: Any) -> bool:
    return tensor is not None and tensor.quantization is not None


def _rescale_at_least_1(op: OperatorView) -> bool:
    scales = [_scales(t)[:1] for t in (op.tensor("input", 0), op.tensor("input", 1), op.tensor("output", 0))]
    if not all(scales) or not all(s[0] != 0 for s in scales):
        return False
    with np.errstate(all="ignore"):
        return bool(np.float32(scales[0][0] * scales[1][0]) / scales[2][0] >= 1)


FLAGS: dict[str, Callable[[OperatorView], bool]] = {
    "builtin_options_present": lambda op: op.options is not None,
    "conv2d_grouped": _grouped,
    "filter_per_channel_axis0": lambda op: _scale_for_each(op, 0),
    "filter_per_channel_axis3": lambda op: _scale_for_each(op, 3),
    "weights_per_channel_axis0": lambda op: _scale_for_each(op, 0),
    "weights_sparse": lambda op: op.tensor("input", 1) is not None and op.tensor("input", 1).sparsity is not None,
    "table_per_row_scales": lambda op: len(_scales(op.tensor("input", 1))) > 1 and _scale_for_each(op, 0),
    "any_operand_has_quantization_table": lambda op: any(_has_quantization(op.tensor("input", i)) for i in (0, 1)),
    "input0_has_quantization_table": lambda op: _has_quantization(op.tensor("input", 0)),
    "mul_rescale_ge_1": _rescale_at_least_1,
    "input_per_channel": lambda op: _per_channel(op.tensor("input", 0)),
    "output_per_channel": lambda op: _per_channel(op.tensor("output", 0)),
    "binary_broadcast": lambda op: (
        len(op.inputs) >= 2 and _shape(op.tensor("input", 0)) != _shape(op.tensor("input", 1))
    ),
}

FLAG_WORDS: dict[str, str] = {
    "builtin_options_present": "it has an options table",
    "conv2d_grouped": "the convolution is grouped",
    "filter_per_channel_axis0": "the filter has a scale for each channel",
    "filter_per_channel_axis3": "the filter has a scale for each channel",
    "weights_per_channel_axis0": "the weights have a scale for each row",
    "weights_sparse": "the weights are sparse",
    "table_per_row_scales": "the table has a scale for each row",
    "any_operand_has_quantization_table": "input 0 or input 1 has a quantization table",
    "input0_has_quantization_table": "input 0 has a quantization table",
    "mul_rescale_ge_1": "the product is scaled by 1 or more",
    "input_per_channel": "input 0 has a scale for each channel",
    "output_per_channel": "output 0 has a scale for each channel",
    "binary_broadcast": "the inputs differ in shape",
}
