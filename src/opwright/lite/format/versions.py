"""Versions of the builtin operators: the version that an operator needs, the registered ones, their first run time.

Lives here: `stamp`, which evaluates the rules of `versions.json`; the same for whole models; queries of the table; the
conditions of rules: predicates, and flags for conditions that the predicates cannot express.
Not here: versions of operators defined with this package, which follow from their definitions (ops/call.py).

A rule is [version, condition]; the first rule of an operator that holds determines the version, otherwise its default.
The order is not by version. In a condition, an input that is omitted (-1) or past the end of the list has no type,
fails every test of type, and has rank 0; an operator without an options table reads every option as 0, even where the
schema has another default.

Source: LiteRT at commit f67457790c9c: op_version.cc, op_signature.cc and runtime_version.cc in
tflite/converter/tools/versioning, register.cc in tflite/core/kernels.
"""

from __future__ import annotations

import functools
import json
import pkgutil
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import NotFoundError
from ...core.named_tuples import NamedTuple
from . import objects, schema


class OperatorView(NamedTuple):
    """The part of an operator that rules read: tensors (`objects.Tensor`, None for an omitted one) and options."""

    inputs: Sequence[objects.TableObject | None]
    outputs: Sequence[objects.TableObject | None]
    options: Any = None

    def tensor(self, side: str, index: int) -> objects.TableObject | None:
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


def _tensor(condition: dict[str, Any], operator: OperatorView) -> objects.TableObject | None:
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
    "weights_sparse": lambda op: getattr(op.tensor("input", 1), "sparsity", None) is not None,
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


METADATA_NAME = "min_runtime_version"
METADATA_BYTES = 16


@functools.cache
def _table() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(pkgutil.get_data(__name__, "versions.json") or b"")
    return result


def facts(op_name: str) -> dict[str, Any]:
    """Return the row of one operator in `versions.json`.

    code, options (table name or None), registered ([min, max] or None), default, min_runtime ({version: run time}),
    rules; calibration (least version on the int16 path) and converter_writes_options (false) where they apply. The
    three codes that are not operators have only code and special. Raises NotFoundError for an unknown name.
    """
    try:
        result: dict[str, Any] = _table()[op_name]
        return result
    except KeyError:
        raise NotFoundError(
            what="no builtin operator of this name", found=repr(op_name), wanted="such as 'CONV_2D'"
        ) from None


def stamp(op_name: str, operator: OperatorView) -> int:
    """Return the version that an operator needs: the least that can express it, as the official converter writes it.

    1 for CUSTOM. Raises NotFoundError for an unknown name.
    """
    return _stamped(op_name, operator)[0]


def stamp_and_reason(op_name: str, operator: OperatorView) -> tuple[int, str]:
    """Return the version of `stamp`, and as text why the operator needs it; "" for the default."""
    version, condition = _stamped(op_name, operator)
    return version, "" if condition is None else describe(condition)


def _stamped(op_name: str, operator: OperatorView) -> tuple[int, dict[str, Any] | None]:
    """Return the version of `stamp` and its condition, None for the default."""
    row = facts(op_name)
    for version, condition in row.get("rules", ()):
        if holds(condition, operator):
            return int(version), condition
    return int(row.get("default", 1)), None


@functools.cache
def options_since(op_name: str) -> dict[str, int]:
    """Return the options of later versions: for each, the least version in which it may differ from its default.

    It follows from the rules: an option that a rule requires to differ from its default was added in the rule's
    version. Options without an entry exist since version 1. Raises NotFoundError.
    """
    row = facts(op_name)
    defaults = {f.name: f.default for f in schema.table(row["options"]).fields} if row.get("options") else {}
    since: dict[str, int] = {}
    for version, condition in row.get("rules", ()):
        for name in options_set(condition, defaults):
            since[name] = min(version, since.get(name, version))
    return {name: version for name, version in since.items() if version > 1}


def resolver_range(op_name: str) -> tuple[int, int] | None:
    """Return the (min, max) version that the official builtin resolver registers, None for an operator without
    kernel."""
    registered = facts(op_name).get("registered")
    return (registered[0], registered[1]) if registered else None


def without_types_beyond(op_name: str, types: Container[str]) -> tuple[int, int]:
    """Return the (least, greatest) version of an operator that can be used without tensors of other types.

    types: names of tensor types. An operator that the official resolver lacks has its default version alone.
    raises NotFoundError
    """
    row = facts(op_name)
    least, greatest = row.get("registered") or (row["default"], row["default"])
    beyond = {version for version, condition in row.get("rules", ()) if wants_types_beyond(condition, types)}
    while greatest > least and greatest in beyond:
        greatest -= 1
    return least, greatest


def min_runtime(op_name: str, version: int) -> str:
    """Return the first official run time with that version, such as "2.3.0"; "" if unknown."""
    result: str = facts(op_name).get("min_runtime", {}).get(str(version), "")
    return result


def builtin_code(code: Any) -> int:
    """Return the number of the builtin operator of an OperatorCode, in old and new files."""
    return max(int(code.builtin_code), int(code.deprecated_builtin_code))


def operator_code(op_name: str, version: int = 1, custom_code: str | None = None) -> objects.TableObject:
    """Return an OperatorCode with both code fields set, for old and new readers."""
    number = int(facts(op_name)["code"])
    return objects.OperatorCode(
        deprecated_builtin_code=min(number, 127), builtin_code=number, version=version, custom_code=custom_code
    )


def op_name(code: Any) -> str:
    """Return the name of an OperatorCode's builtin operator. Raises NotFoundError for a number newer than the
    schema."""
    number = builtin_code(code)
    member = schema.enum_members("BuiltinOperator").get(number)
    if member is None:
        raise NotFoundError(what="no builtin operator has this code", found=number)
    return member.name


def view(subgraph: Any, operator: Any) -> OperatorView:
    """Return an operator of a model as rules read it."""

    def tensors(indices: Any) -> list[Any]:
        positions = np.asarray(indices).tolist()
        return [subgraph.tensors[i] if 0 <= i < len(subgraph.tensors) else None for i in positions]

    options = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
    return OperatorView(tensors(operator.inputs), tensors(operator.outputs), options)


def versions_of_model(model: Any) -> list[int]:
    """Return the version that each OperatorCode of a model needs: the maximum over all operators that share it.

    Custom operators, and codes that no operator uses, keep their version.
    """
    needed: dict[int, int] = {}
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            i = operator.opcode_index
            name = op_name(model.operator_codes[i])
            if name != "CUSTOM":
                needed[i] = max(needed.get(i, 0), stamp(name, view(subgraph, operator)))
    result: list[int] = [code.version for code in model.operator_codes]
    for i, version in needed.items():
        result[i] = version
    return result


def stamp_model(model: Any) -> None:
    """Set the version of each OperatorCode to its entry in `versions_of_model`."""
    for code, version in zip(model.operator_codes, versions_of_model(model)):
        code.version = version


def min_runtime_of_model(model: Any) -> str:
    """Return the least official run time with all builtin operators of a model, by the versions in its operator codes.

    Versions missing from the table are skipped; "" if none is known.
    """
    used = {operator.opcode_index for subgraph in model.subgraphs for operator in subgraph.operators}
    codes = [model.operator_codes[i] for i in sorted(used)]
    return max((min_runtime(op_name(code), code.version) for code in codes), key=runtime_key, default="")


def runtime_key(version: str) -> tuple[int, ...]:
    """Return the sort key of a run-time version: "2.9.0" < "2.10.0", "2.3" < "2.3.0", and "" before all."""
    return tuple(map(int, version.split("."))) if version else ()


def is_newer(version: str, runtime: str) -> bool:
    """Return whether a run-time version comes after `runtime`, which may be abbreviated: "2.8" means any 2.8.x."""
    limit = runtime_key(runtime)
    return runtime_key(version)[: len(limit)] > limit


def lacks(runtime: str, op_name: str, version: int) -> bool:
    """Return whether a run time lacks that version of an operator; True if no run time is known to have it."""
    since = min_runtime(op_name, version)
    return not since or is_newer(since, runtime)


def metadata_of(version: str) -> bytes:
    """Return the 16 bytes of the metadata entry METADATA_NAME. Raises ValueError for 16 characters or more."""
    if len(version) >= METADATA_BYTES:
        raise ValueError(f"run-time version {version!r} does not fit {METADATA_BYTES} bytes")
    return version.encode("ascii").ljust(METADATA_BYTES, b"\0")
