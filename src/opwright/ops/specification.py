"""The catalogue as plain data, and what changed between two such dumps.

Lives here: `spec` and `compatibility`.  Not here: the definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.dtypes import DType
from ..core.shapes import TensorShape
from . import registry
from .attributes import REQUIRED

Spec = dict[str, Any]


def _plain(value: Any) -> Any:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, TensorShape):
        return None if value.dims is None else [*value.dims]
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value)


def spec() -> Spec:
    """The catalogue as dictionaries, lists, strings and numbers: what JSON holds. Operators by name."""
    found: Spec = {}
    for name, op in sorted(registry.catalogue().items()):
        found[name] = {
            "version": op.version,
            "inputs": [
                {"name": i.name, "dtypes": [d.name for d in i.dtypes], "like": i.like, "optional": i.optional,
                 "repeated": i.repeated, "ranks": None if i.ranks is None else list(i.ranks)}
                for i in op.inputs
            ],
            "outputs": [
                {"name": o.name, "like": o.like, "dtype": None if o.dtype is None else o.dtype.name,
                 "repeated": o.repeated, "intermediate": o.intermediate}
                for o in op.outputs
            ],
            "attrs": [
                {"name": a.name, "type": a.type_name(), "required": a.default is REQUIRED,
                 "default": None if a.default is REQUIRED else _plain(a.default), "since": a.since,
                 "check": None if a.check is None else a.check.wanted}
                for a in op.attr_defs.values()
            ],
            "effect": op.effect,
            "inplace": dict(op.inplace),
            "no_need_buffer": list(op.no_need_buffer),
            "lod": op.lod,
            "gradient": "rule" if op.gradient_rule else "empty" if op.has_gradient_rule else "none",
        }  # fmt: skip
    return found


@dataclass(frozen=True)
class Change:
    """One difference between two catalogues. allowed: whether programs and files of the old one still work."""

    operator: str
    what: str
    allowed: bool

    def __str__(self) -> str:
        return f"{'  ' if self.allowed else '! '}{self.operator}: {self.what}"


def _by_name(items: list[Spec]) -> dict[str, Spec]:
    return {item["name"]: item for item in items}


def _inputs(old: Spec, new: Spec) -> Iterator[tuple[str, bool]]:
    a, b = _by_name(old["inputs"]), _by_name(new["inputs"])
    for name in a.keys() - b.keys():
        yield f"input {name!r} is gone", False
    for name in b.keys() - a.keys():
        yield f"input {name!r} is new and {'optional' if b[name]['optional'] else 'required'}", b[name]["optional"]
    for name in a.keys() & b.keys():
        lost = set(a[name]["dtypes"]) - set(b[name]["dtypes"])
        if lost:
            yield f"input {name!r} takes {', '.join(sorted(lost))} no more", False
        if a[name]["optional"] and not b[name]["optional"]:
            yield f"input {name!r} is required now", False
        for field in ("repeated", "like"):
            if a[name][field] != b[name][field]:
                yield f"input {name!r}: {field} was {a[name][field]!r}, is {b[name][field]!r}", False
    kept = [n for n in a if n in b]
    if kept != [n for n in b if n in a]:
        yield "the order of inputs changed", False


def _outputs(old: Spec, new: Spec) -> Iterator[tuple[str, bool]]:
    a, b = _by_name(old["outputs"]), _by_name(new["outputs"])
    for name in a.keys() - b.keys():
        yield f"output {name!r} is gone", False
    for name in b.keys() - a.keys():
        yield f"output {name!r} is new", b[name]["intermediate"]
    for name in a.keys() & b.keys():
        for field in ("like", "dtype", "repeated"):
            if a[name][field] != b[name][field]:
                yield f"output {name!r}: {field} was {a[name][field]!r}, is {b[name][field]!r}", False


def _attrs(old: Spec, new: Spec) -> Iterator[tuple[str, bool]]:
    a, b = _by_name(old["attrs"]), _by_name(new["attrs"])
    for name in a.keys() - b.keys():
        yield f"attribute {name!r} is gone", False
    for name in b.keys() - a.keys():
        if b[name]["required"]:
            yield f"attribute {name!r} is new and has no default", False
        elif b[name]["since"] <= old["version"]:
            yield f"attribute {name!r} is new, but its `since` is {b[name]['since']}, not above {old['version']}", False
        else:
            yield f"attribute {name!r} is new, default {b[name]['default']!r}", True
    for name in a.keys() & b.keys():
        for field in ("type", "default", "since"):
            if a[name][field] != b[name][field]:
                yield f"attribute {name!r}: {field} was {a[name][field]!r}, is {b[name][field]!r}", False
        if b[name]["required"] and not a[name]["required"]:
            yield f"attribute {name!r} lost its default", False


def _version(old: Spec, new: Spec) -> Iterator[tuple[str, bool]]:
    if new["version"] < old["version"]:
        yield f"version fell from {old['version']} to {new['version']}", False


RULES: tuple[Callable[[Spec, Spec], Iterator[tuple[str, bool]]], ...] = (_version, _inputs, _outputs, _attrs)


def compatibility(old: Mapping[str, Spec], new: Mapping[str, Spec]) -> list[Change]:
    """What changed from one `spec()` to another, and whether it may: additions with defaults may, the rest may not."""
    changes = [Change(name, "the operator is gone", False) for name in sorted(old.keys() - new.keys())]
    changes += [Change(name, "the operator is new", True) for name in sorted(new.keys() - old.keys())]
    for name in sorted(old.keys() & new.keys()):
        changes += [
            Change(name, what, allowed) for rule in RULES for what, allowed in sorted(rule(old[name], new[name]))
        ]
    return changes
