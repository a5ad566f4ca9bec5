"""Operators of other frameworks that have no rule: the error that lists them, each with a definition to complete.

Lives here: `ForeignCall`, what is known of a call; `MissingOperators`; `skeleton`, the source of a definition.
Not here: rules (importing.py), reading of calls and schemas (the packages of the frameworks).
"""

from __future__ import annotations

import dataclasses
import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core import dtypes
from ..core.dtypes import as_dtype
from ..core.errors import UnimplementedError
from ..core.introspection import literal


@dataclasses.dataclass(frozen=True)
class ForeignCall:
    """A call of a foreign operator, as errors show it.

    operator: such as "ai.onnx::Conv" or "aten::conv2d". node: its name in the foreign program, or "". inputs: name and
    type of each, such as ("x", "float32[1, 3, ?]"); of a schema, which knows no types, "Tensor", "Tensor?" if it is
    optional, "Tensor[]" of several. attributes: Python values by name; `Required` where a schema has no default.
    outputs: how many.
    """

    operator: str
    node: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    outputs: int = 1


@dataclasses.dataclass(frozen=True)
class Required:
    """The value of an attribute that has no default. kind: the type of an `ow.Attr`, such as "float" or "[int]"."""

    kind: str


class MissingOperators(UnimplementedError):
    """Raised for a program with operators that no rule exists for: it lists all, each with a class to complete.

    operators: their names. calls: the calls of each.
    """

    def __init__(self, framework: str, calls: Mapping[str, Sequence[ForeignCall]]) -> None:
        self.operators = sorted(calls)
        self.calls = {name: tuple(calls[name]) for name in self.operators}
        rows = []
        for name in self.operators:
            first = self.calls[name][0]
            inputs = ", ".join(f"{n}: {t}" for n, t in first.inputs)
            attributes = "".join(f", {k}={_short(v)}" for k, v in first.attributes.items())
            nodes = [c.node for c in self.calls[name] if c.node]
            where = f" at {', '.join(nodes[:3])}{', ...' if len(nodes) > 3 else ''}" if nodes else ""
            rows.append(f"    {name}({inputs}{attributes}) {len(self.calls[name])} times{where}")
        table = ", ".join(f'"{name}": {class_name(name)}' for name in self.operators)
        skeletons = "\n\n".join(skeleton(self.calls[name][0]) for name in self.operators)
        count = len(self.operators)
        super().__init__(
            f"{framework}: {count} operator{'s' if count > 1 else ''} without a rule\n"
            + "\n".join(rows)
            + f"\n  try     define them, and pass custom={{{table}}}\n\n"
            + skeletons
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def class_name(operator: str) -> str:
    """Return a class name for a foreign operator: "my::fancy_op" -> "FancyOp"."""
    words = re.split(r"\W+|_", re.split(r"::|/", operator)[-1].partition(".")[0])
    name = "".join(word[:1].upper() + word[1:] for word in words if word)
    return name if name and not name[0].isdigit() else f"Op{name}"


def identifier(name: str, fallback: str) -> str:
    """Return a name as an identifier, or the fallback."""
    name = re.sub(r"\W", "_", name).strip("_")
    return name if name.isidentifier() and not keyword.iskeyword(name) else fallback


def skeleton(call: ForeignCall) -> str:
    """Return the source of an `@ow.operator` class of the call's inputs and attributes, its `compute` to be written."""
    lines = ["@ow.operator", f"class {class_name(call.operator)}:", f'    """Compute {call.operator}."""', ""]
    inputs: list[str] = []
    optional = False
    for i, (name, kind) in enumerate(call.inputs):
        slot = identifier(name, f"x{i}").lower()
        slot = f"x{i}" if slot in inputs or slot in call.attributes or slot in ("op", "y") else slot
        inputs.append(slot)
        optional = optional or kind == "Tensor?"  # required inputs stand first
        lines.append(f"    {slot} = ow.Input({'optional=True' if optional else _options(kind)})")
    like = f'like="{inputs[0]}"' if inputs else "dtype=ow.float32"
    outputs = ["y"] if call.outputs == 1 else [f"y{i}" for i in range(call.outputs)]
    lines += [f"    {name} = ow.Output({like})" for name in outputs]
    for name, value in call.attributes.items():
        if isinstance(value, Required):
            lines.append(f"    {name} = ow.Attr({value.kind})")
            continue
        kind = type(value).__name__ if isinstance(value, (bool, int, float, str)) else "list"
        member = _members(value) if kind == "list" else kind
        lines.append(f"    {name} = ow.Attr({member}, default={_default(value)})")
    lines += ["", f"    def compute(op, {', '.join(inputs)}):" if inputs else "    def compute(op):"]
    lines.append(f'        raise NotImplementedError("{call.operator} in NumPy")')
    return "\n".join(lines)


def _options(kind: str) -> str:
    """Return the arguments of an `ow.Input` of a type."""
    if kind.startswith("Tensor"):
        return "repeated=True" if kind == "Tensor[]" else ""
    dtype = kind.partition("[")[0]
    return f"dtypes=ow.{dtype}" if isinstance(getattr(dtypes, dtype, None), dtypes.DType) else ""


def _members(value: Any) -> str:
    return f"[{type(value[0]).__name__}]" if isinstance(value, (list, tuple)) and value else "[int]"


def _default(value: Any) -> str:
    text = repr(list(value) if isinstance(value, tuple) else value)
    try:
        literal(text)
    except (ValueError, SyntaxError):
        return "None"
    return text


def spec_text(dtype: Any, shape: Sequence[int | None] | None) -> str:
    """Return a type as errors show it: float32[1, ?, 3]; float32[...] of unknown rank."""
    sizes = "..." if shape is None else ", ".join("?" if d is None else str(d) for d in shape)
    try:
        name = as_dtype(dtype).name
    except TypeError:  # one that the catalogue lacks
        name = str(dtype)
    return f"{name}[{sizes}]"
