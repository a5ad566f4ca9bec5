"""`opwright op model`: a .tflite file of one operator, to be timed, checked and looked at.

Lives here: which operator a name means, shapes, types, attributes and constants from the command line.
Not here: making the file (lite/convert/single_operator.py), timing it (benchmark.py).
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
    """Write the file and say what is in it.

    raises BadFile for files that are no use and a name that is none, click.UsageError for what the operator does not
    take, OpError as its call does
    """
    operator = _operator(name, customs)
    dtypes = _dtypes(operator, types)
    given = _Given(operator, dtypes.get(""), {k: v for k, v in dtypes.items() if k})
    rng = np.random.default_rng(seed)
    given.take(shapes, lambda declared, text: TensorSpec(sizes_of(text), given.dtype(declared)))
    given.take(
        constants,
        lambda declared, text: random_input({"dtype": given.dtype(declared).np, "shape": sizes_of(text)}, rng),
    )
    given.take(values, given.value)
    content = single_operator(operator, given.operands(), _attributes(operator, attrs))
    write_file(output, content)
    report_file(output, content, as_json)
    notes().print(f"opwright bench {output} --ops" + "".join(f" --custom {c}" for c in customs))


def _operator(name: str, customs: Sequence[str]) -> Any:
    """Those of --custom first; the dialect's; the catalogue's and installed packages'. Raises BadFile."""
    made = [op for op in custom_operators(customs) if isinstance(op, Operator)]
    found = next((op for op in made if op.name == name), None)
    if found is not None:
        return found
    if name in dialect.list_names():
        return dialect.get(name)
    try:
        return registry.get(name)
    except KeyError as error:
        if name in shipped.list_names():
            raise BadFile(f"{name} is read from files of other converters and never written") from None
        there = f"; --custom has {', '.join(op.name for op in made)}" if made else ""
        raise BadFile(f"{error}{there}") from None


class _Given:
    """What is said of each declared input, in the order of the command line where no name is."""

    def __init__(self, operator: Any, dtype: DType | None, dtypes: dict[str, DType]) -> None:
        self.operator, self.all, self.dtypes = operator, dtype, dtypes
        self.found: dict[str, list[Any]] = {i.name: [] for i in operator.inputs}
        if dtype is not None and not any(dtype in i.dtypes for i in operator.inputs):
            takes = "; ".join(f"{i.name}: {', '.join(d.name for d in i.dtypes)}" for i in operator.inputs)
            raise click.UsageError(f"{operator.name} has no input that takes {dtype.name}; {takes}")

    def dtype(self, declared: Any) -> DType:
        """As said for it, for all, else float32, else the first that it takes; one that is `like` another follows."""
        if declared.name in self.dtypes:
            return self.dtypes[declared.name]
        if declared.like in self.dtypes:
            return self.dtypes[declared.like]
        wanted = [d for d in (self.all, float32) if d is not None and d in declared.dtypes]
        return wanted[0] if wanted else next(iter(declared.dtypes))

    def take(self, texts: Sequence[str], read: Callable[[Any, str], Any]) -> None:
        """[NAME=]WHAT, by name or for the next input that has nothing yet (the last again where it is repeated)."""
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
        """A constant: whole numbers are int32 where the input takes that and follows no other. Raises UsageError."""
        dtype = self.dtype(declared)
        try:
            found = np.array(json.loads(text))
            free = declared.like is None and self.all is None and declared.name not in self.dtypes
            if free and found.dtype.kind == "i" and int32 in declared.dtypes:
                dtype = int32
            return found.astype(dtype.np)
        except (ValueError, TypeError, OverflowError):
            raise click.UsageError(
                f"{text!r} is no value of input {declared.name!r}; wanted {dtype.name} such as [1, 2] or 3"
            ) from None

    def operands(self) -> list[Any]:
        """One for each declared input. Raises click.UsageError for one that is missing."""
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
    """[NAME=]DTYPE by the name of an input, "" for all. Raises click.UsageError."""
    found = {}
    for text in texts:
        name, _, what = text.rpartition("=")
        if name and name not in operator.input_names:
            raise click.UsageError(f"{operator.name} has no input {name!r}: {operator.signature()}")
        try:
            found[name] = as_dtype(what)
        except TypeError:
            raise click.UsageError(f"{what!r} is no dtype such as int8") from None
    return found


def _attributes(operator: Any, texts: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE, read as the attribute's type says."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in operator.attr_defs:
            there = ", ".join(f"{k}: {a.type_name()}" for k, a in operator.attr_defs.items())
            raise click.UsageError(f"{text!r} is no attribute of {operator.name}; it has {there or 'none'}")
        try:
            found[name] = read_value(operator.attr_defs[name].type, value)
        except (ValueError, TypeError):
            wanted = operator.attr_defs[name].type_name()
            raise click.UsageError(f"{value!r} is no value of attribute {name!r}; wanted {wanted}") from None
    return found


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
    """An attribute of that type, from text: 3, 0.5, true, SAME, int8, 1,2,3. Raises ValueError, TypeError."""
    if kind is bool:
        if text.lower() not in _TRUTH:
            raise ValueError(text)
        return _TRUTH[text.lower()]
    if isinstance(kind, list):
        return [read_value(kind[0], part) for part in text.strip("[]()").split(",") if part.strip()]
    return _READ.get(kind, json.loads)(text)
