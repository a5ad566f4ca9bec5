"""`opwright op model`: write a .tflite file of one operator, for timing, checks and inspection.

Lives here: resolving the operator's name; shapes, types, attributes and constants from the command line. Not here:
creating the file (lite/convert/single.py), timing it (benchmark.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import click
import numpy as np

from ..core.dtypes import DType, as_dtype, float32, int32
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..lite import customs as shipped
from ..lite import ops as dialect
from ..lite.convert.single_operator import single_operator
from ..ops import registry
from ..ops.definition import Operator
from .conversion import report_file
from .custom_arguments import custom_operators
from .model_runner import random_input, sizes_of
from .report import BadFile, notes, write_file


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
    report_file(output, content, as_json)
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
                f"{text!r} is no value of input {declared.name!r}; wanted {dtype.name} such as [1, 2] or 3"
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
            raise click.UsageError(f"{what!r} is no dtype such as int8") from None
    return result


def _attributes(operator: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Parse NAME=VALUE by the attribute's type."""
    result = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in operator.attr_defs:
            there = ", ".join(f"{k}: {a.type_name()}" for k, a in operator.attr_defs.items())
            raise click.UsageError(f"{text!r} is no attribute of {operator.name}; it has {there or 'none'}")
        try:
            result[name] = read_value(operator.attr_defs[name].type, value)
        except (ValueError, TypeError):
            type_name = operator.attr_defs[name].type_name()
            raise click.UsageError(f"{value!r} is no value of attribute {name!r}; wanted {type_name}") from None
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
