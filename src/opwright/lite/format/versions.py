"""Versions of the builtin operators: which version an operator needs, which are registered, since which run time.

Lives here: `stamp`, which evaluates the rules of `versions.json`, the same for whole models, and look-ups beside it.
Not here: versions of operators defined with this package, which follow from their definitions.

A rule is [version, condition]; within an operator the first rule that holds gives the version, none the default.
The order is not by version. A condition is one of PREDICATES; what they cannot say is a named flag of FLAGS.
An input left out (-1) or past the end of the list has no type, fails every test of type, and has rank 0. An operator
without options table reads every option as 0, even where the schema has another default.

Source: LiteRT at commit f67457790c9c: op_version.cc, op_signature.cc and runtime_version.cc in
tflite/converter/tools/versioning, register.cc in tflite/core/kernels.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from opwright.core.errors import NotFoundError
from opwright.lite.format import objects, schema

METADATA_NAME = "min_runtime_version"
METADATA_BYTES = 16


class OperatorView(NamedTuple):
    """What the rules look at: tensors (`objects.Tensor`, None where an optional one is left out) and the options."""

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    options: Any = None

    def tensor(self, side: str, index: int) -> Any:
        tensors = self.inputs if side == "input" else self.outputs
        return tensors[index] if index < len(tensors) else None


@functools.cache
def _table() -> dict[str, Any]:
    return json.loads(resources.files(__package__).joinpath("versions.json").read_text("utf-8"))


def facts(op_name: str) -> dict[str, Any]:
    """The row of one operator, as it stands in `versions.json`.

    code, options (table name or None), registered ([min, max] or None), default, min_runtime ({version: run time}),
    rules; calibration (least version on the int16 path) and converter_writes_options (false) where they apply; for the
    three codes that are no operators only code and special. Raises NotFoundError for a name the schema lacks.
    """
    try:
        return _table()[op_name]
    except KeyError:
        raise NotFoundError(
            what="no builtin operator of this name", found=repr(op_name), wanted="such as 'CONV_2D'"
        ) from None


def stamp(op_name: str, operator: OperatorView) -> int:
    """The version that an operator needs: the least that can express it, as the official converter writes it.

    1 for CUSTOM. Raises NotFoundError for a name the schema lacks.
    """
    row = facts(op_name)
    for version, condition in row.get("rules", ()):
        if holds(condition, operator):
            return version
    return row.get("default", 1)


def resolver_range(op_name: str) -> tuple[int, int] | None:
    """(min, max) version registered by the official builtin resolver, None for an operator it has no kernel for."""
    registered = facts(op_name).get("registered")
    return (registered[0], registered[1]) if registered else None


def min_runtime(op_name: str, version: int) -> str:
    """The first official run time with that version, such as "2.3.0"; "" when none is known."""
    return facts(op_name).get("min_runtime", {}).get(str(version), "")


def builtin_code(code: Any) -> int:
    """The number of the builtin operator that an OperatorCode names, in files old and new."""
    return max(int(code.builtin_code), int(code.deprecated_builtin_code))


def operator_code(op_name: str, version: int = 1, custom_code: str | None = None) -> Any:
    """An OperatorCode with both fields set as old and new readers expect them."""
    number = int(facts(op_name)["code"])
    return objects.OperatorCode(
        deprecated_builtin_code=min(number, 127), builtin_code=number, version=version, custom_code=custom_code
    )


def op_name(code: Any) -> str:
    """The builtin operator's name of an OperatorCode. Raises NotFoundError for a number newer than the schema."""
    number = builtin_code(code)
    member = schema.enum_members("BuiltinOperator").get(number)
    if member is None:
        raise NotFoundError(what="no builtin operator has this code", found=number)
    return member.name


def view(subgraph: Any, operator: Any) -> OperatorView:
    """An operator of a model as the rules see it."""

    def tensors(indices: Any) -> list[Any]:
        found = np.asarray(indices).tolist()
        return [subgraph.tensors[i] if 0 <= i < len(subgraph.tensors) else None for i in found]

    options = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
    return OperatorView(tensors(operator.inputs), tensors(operator.outputs), options)


def versions_of_model(model: Any) -> list[int]:
    """The version each OperatorCode of a model needs: the greatest over all operators that share it.

    Custom operators, and codes no operator uses, keep the version they have.
    """
    needed: dict[int, int] = {}
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            i = operator.opcode_index
            name = op_name(model.operator_codes[i])
            if name != "CUSTOM":
                needed[i] = max(needed.get(i, 0), stamp(name, view(subgraph, operator)))
    return [needed.get(i, code.version) for i, code in enumerate(model.operator_codes)]


def stamp_model(model: Any) -> None:
    """Set the version of each OperatorCode to what `versions_of_model` gives."""
    for code, version in zip(model.operator_codes, versions_of_model(model)):
        code.version = version


def min_runtime_of_model(model: Any) -> str:
    """The least official run time that has all builtin operators of a model, by the versions in its operator codes.

    Versions unknown to the table are skipped; "" when nothing is known.
    """
    used = {operator.opcode_index for subgraph in model.subgraphs for operator in subgraph.operators}
    codes = [model.operator_codes[i] for i in sorted(used)]
    return max((min_runtime(op_name(code), code.version) for code in codes), key=runtime_key, default="")


def runtime_key(version: str) -> tuple[int, ...]:
    """Sort key of run-time versions: "2.9.0" < "2.10.0", "2.3" < "2.3.0", and "" before all."""
    return tuple(map(int, version.split("."))) if version else ()


def metadata_of(version: str) -> bytes:
    """The 16 bytes of the metadata entry METADATA_NAME. Raises ValueError for a version of 16 characters or more."""
    if len(version) >= METADATA_BYTES:
        raise ValueError(f"run-time version {version!r} does not fit {METADATA_BYTES} bytes")
    return version.encode("ascii").ljust(METADATA_BYTES, b"\0")


# What conditions are made of


def holds(condition: dict[str, Any], operator: OperatorView) -> bool:
    """Whether a condition of a rule holds for an operator."""
    for key, predicate in PREDICATES.items():
        if key in condition:
            return predicate(condition, operator)
    raise KeyError(f"no predicate for condition {condition}")


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


def _option(condition: dict[str, Any], operator: OperatorView) -> Any:
    """The value of an option; enum members compare as numbers."""
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


def _grouped(op: OperatorView) -> bool:
    x, filter = _shape(op.tensor("input", 0)), _shape(op.tensor("input", 1))
    return bool(x) and (x[3] if len(x) > 3 else 0) != (filter[3] if len(filter) > 3 else 0)


def _scale_for_each(op: OperatorView, axis: int) -> bool:
    """Input 1 has a scale for each slice of an axis; a single slice with a single scale counts."""
    tensor = op.tensor("input", 1)
    shape = _shape(tensor)
    return len(shape) > axis and shape[axis] > 0 and len(_scales(tensor)) == shape[axis]


def _per_channel(tensor: Any) -> bool:
    """More than one scale, one for each slice of the quantized dimension."""
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
