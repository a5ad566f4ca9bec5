"""Versions of the builtin operators: the version that an operator needs, the registered ones, their first run time.

Lives here: `stamp`, which evaluates the rules of `versions.json`; the same for whole models; queries of the table.
Not here: conditions (conditions.py), versions of operators defined with this package, which follow from their
definitions (ops/versions.py).

A rule is [version, condition]; the first rule of an operator that holds determines the version, otherwise its default.
The order is not by version.

Source: LiteRT at commit f67457790c9c: op_version.cc, op_signature.cc and runtime_version.cc in
tflite/converter/tools/versioning, register.cc in tflite/core/kernels.
"""

from __future__ import annotations

import functools
import json
import pkgutil
from collections.abc import Container
from typing import Any

import numpy as np

from ...core.errors import NotFoundError
from . import objects, schema
from .conditions import OperatorView, describe, holds, options_set, wants_types_beyond

METADATA_NAME = "min_runtime_version"
METADATA_BYTES = 16


@functools.cache
def _table() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(pkgutil.get_data(__package__, "versions.json") or b"")
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
    row = facts(op_name)
    for version, condition in row.get("rules", ()):
        if holds(condition, operator):
            return int(version)
    return int(row.get("default", 1))


def reason(op_name: str, operator: OperatorView) -> str:
    """Return as text why an operator needs the version of `stamp`; "" for the default."""
    for _, condition in facts(op_name).get("rules", ()):
        if holds(condition, operator):
            return describe(condition)
    return ""


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


def operator_code(op_name: str, version: int = 1, custom_code: str | None = None) -> Any:
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
    return [needed.get(i, code.version) for i, code in enumerate(model.operator_codes)]


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
