"""Files of single operators: a .tflite file of one, for timing, checks and inspection; an operator as C source.

Lives here: `opwright op model` and `opwright op export`, parsing of attribute values. Not here: models (conversion.py),
the C (lite/export).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import click
import numpy as np

from ..aot.model_runs import random_input
from ..core import introspection
from ..core.dtypes import DType, as_dtype, float32, int32
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..lite import customs as shipped
from ..lite import ops as dialect
from ..lite.convert.converter import single_operator
from ..lite.export.c_export import export_c
from ..ops import registry
from ..ops.definition import Operator
from .conversion import report_file
from .model_runner import custom_operators, sizes_of
from .report import BadFile, notes, out, print_json, write_file


def export_operator(
    name: str, folder: str, customs: Sequence[str], api: str, attrs: Sequence[str], as_json: bool
) -> None:
    """Write the files, print their names. Raises BadFile for an invalid operator or file, OpError as export_c."""
    operator = _find_operator(name, customs)
    try:
        files = export_c(operator, folder, api=api, attrs=_values(attrs))
    except OSError as error:
        raise BadFile(f"{error.filename or folder} cannot be written: {error.strerror or error}") from error
    if as_json:
        print_json({"operator": operator.name, "version": operator.version, "api": api, "files": list(map(str, files))})
        return
    for file in files:
        out().print(str(file))
    notes().print(f"{operator.name} version {operator.version} as C; README.md says how to build and register it")


def _find_operator(name: str, customs: Sequence[str]) -> Operator:
    operators = [op for op in custom_operators(customs) if isinstance(op, Operator)]
    matches = [op for op in operators if op.name == name]
    if matches:
        return matches[-1]
    if customs and name not in registry.users():
        there = ", ".join(op.name for op in operators) or "none"
        raise BadFile(f"no operator {name!r} in {', '.join(customs)}; there are {there}")
    try:
        return registry.get(name)
    except KeyError as error:
        raise BadFile(str(error.args[0])) from None


def _values(texts: Sequence[str]) -> dict[str, Any]:
    """Parse `name=value` with Python literals; other words are text. Repeated names form a list."""
    result: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"wanted NAME=VALUE, found {text!r}", param_hint="--attr")
        try:
            result.setdefault(name, []).append(introspection.literal(value))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            result.setdefault(name, []).append(value)
    return dict(result)


def write_model(
    name: str,
    output: str,
    *,
    shapes: Sequence[str],
    types: Sequence[str],
    attrs: Sequence[str],
    constants: Sequence[str],
    values: Sequence[str],
    customs: Sequence[str],
    seed: int,
    as_json: bool,
) -> None:
    """Write the file and print its contents.

    raises BadFile for invalid files and an unknown name, click.UsageError for arguments that the operator does not
    take, OpError as its call does
    """
    operator = _operator(name, customs)
    dtypes = _dtypes(operator, types)
    inputs = _InputArguments(operator, dtypes.get(""), {k: v for k, v in dtypes.items() if k})
    rng = np.random.default_rng(seed)
    inputs.take(shapes, lambda declared, text: TensorSpec(sizes_of(text), inputs.dtype(declared)))
    inputs.take(
        constants,
        lambda declared, text: random_input({"dtype": inputs.dtype(declared).np, "shape": sizes_of(text)}, rng),
    )
    inputs.take(values, inputs.value)
    content = single_operator(operator, inputs.operands(), _attributes(operator, attrs))
    write_file(output, content)
    report_file(output, as_json)
    notes().print(f"opwright bench {output} --ops" + "".join(f" --custom {c}" for c in customs))


def _operator(name: str, customs: Sequence[str]) -> object:
    """Find an operator: --custom first, then the dialect's, the catalogue's and installed packages'. Raises BadFile."""
    custom = [op for op in custom_operators(customs) if isinstance(op, Operator)]
    match = next((op for op in custom if op.name == name), None)
    if match is not None:
        return match
    if name in dialect.list_names():
        return dialect.get(name)
    try:
        return registry.get(name)
    except KeyError as error:
        if name in shipped.list_names():
            raise BadFile(f"{name} is read from files of other converters and never written") from None
        there = f"; --custom has {', '.join(op.name for op in custom)}" if custom else ""
        raise BadFile(f"{error}{there}") from None


class _InputArguments:
    """The command line arguments of each declared input, in order if they have no name."""

    def __init__(self, operator: Any, dtype: DType | None, dtypes: dict[str, DType]) -> None:
        self.operator, self.all, self.dtypes = operator, dtype, dtypes
        self.found: dict[str, list[Any]] = {i.name: [] for i in operator.inputs}
        if dtype is not None and not any(dtype in i.dtypes for i in operator.inputs):
            takes = "; ".join(f"{i.name}: {', '.join(d.name for d in i.dtypes)}" for i in operator.inputs)
            raise click.UsageError(f"{operator.name} has no input that takes {dtype.name}; {takes}")

    def dtype(self, declared: Any) -> DType:
        """Return the input's dtype: its own, the common one, float32, or the first supported; `like` inputs follow."""
        if declared.name in self.dtypes:
            return self.dtypes[declared.name]
        if declared.like in self.dtypes:
            return self.dtypes[declared.like]
        preferred = [d for d in (self.all, float32) if d is not None and d in declared.dtypes]
        return preferred[0] if preferred else next(iter(declared.dtypes))

    def take(self, texts: Sequence[str], read: Callable[[Any, str], Any]) -> None:
        """Parse [NAME=]WHAT, by name or for the next input without one (the last again if it is repeated)."""
        for text in texts:
            name, equals, what = text.partition("=")
            if not equals:
                declared = next((i for i in self.operator.inputs if not self.found[i.name] or i.repeated), None)
                name, what = (declared.name if declared else ""), text
            if name not in self.found:
                what = f"has no input {name!r}" if name else f"takes no more inputs, {text!r} is one too many"
                raise click.UsageError(f"{self.operator.name} {what}: {self.operator.signature()}")
            (declared,) = [i for i in self.operator.inputs if i.name == name]
            if self.found[name] and not declared.repeated:
                raise click.UsageError(f"input {name!r} is given twice")
            self.found[name].append(read(declared, what))

    def value(self, declared: Any, text: str) -> np.ndarray:
        """Return a constant: integers are int32 if the input takes that and follows no other. Raises UsageError."""
        dtype = self.dtype(declared)
        try:
            parsed = np.array(json.loads(text))
            free = declared.like is None and self.all is None and declared.name not in self.dtypes
            if free and parsed.dtype.kind == "i" and int32 in declared.dtypes:
                dtype = int32
            return parsed.astype(dtype.np)
        except (ValueError, TypeError, OverflowError):
            raise click.UsageError(
                f"{text!r} is not a value of input {declared.name!r}; wanted {dtype.name} such as [1, 2] or 3"
            ) from None

    def operands(self) -> list[Any]:
        """Return an operand for each declared input. Raises click.UsageError for a missing one."""
        missing = [i.name for i in self.operator.inputs if not self.found[i.name] and not i.optional]
        if missing:
            raise click.UsageError(
                f"no shape is given for input {missing[0]!r} of {self.operator.signature()}; "
                f"--shape {missing[0]}=1,224,224,3"
            )
        return [
            tuple(self.found[i.name]) if i.repeated else (self.found[i.name] or [None])[0] for i in self.operator.inputs
        ]


def _dtypes(operator: Any, texts: Sequence[str]) -> dict[str, DType]:
    """Parse [NAME=]DTYPE by input name, "" for all inputs. Raises click.UsageError."""
    result = {}
    for text in texts:
        name, _, what = text.rpartition("=")
        if name and name not in operator.input_names:
            raise click.UsageError(f"{operator.name} has no input {name!r}: {operator.signature()}")
        try:
            result[name] = as_dtype(what)
        except TypeError:
            raise click.UsageError(f"{what!r} is not a dtype such as int8") from None
    return result


def _attributes(operator: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Parse NAME=VALUE by the attribute's type."""
    result = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in operator.attr_defs:
            there = ", ".join(f"{k}: {a.type_name()}" for k, a in operator.attr_defs.items())
            raise click.UsageError(f"{text!r} is not an attribute of {operator.name}; it has {there or 'none'}")
        try:
            result[name] = read_value(operator.attr_defs[name].type, value)
        except (ValueError, TypeError):
            type_name = operator.attr_defs[name].type_name()
            raise click.UsageError(f"{value!r} is not a value of attribute {name!r}; wanted {type_name}") from None
    return result


_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

_READ: dict[Any, Callable[[str], Any]] = {
    int: int,
    float: float,
    str: str,
    bytes: str.encode,
    DType: as_dtype,
    object: json.loads,
    np.ndarray: lambda text: np.array(json.loads(text)),
    TensorShape: lambda text: TensorShape([None if n in ("?", "None") else int(n) for n in text.split(",") if n]),
}


def read_value(kind: Any, text: str) -> Any:
    """Parse an attribute of that type: 3, 0.5, true, SAME, int8, 1,2,3. Raises ValueError, TypeError."""
    if kind is bool:
        if text.lower() not in _TRUTH:
            raise ValueError(text)
        return _TRUTH[text.lower()]
    if isinstance(kind, list):
        return [read_value(kind[0], part) for part in text.strip("[]()").split(",") if part.strip()]
    return _READ.get(kind, json.loads)(text)
