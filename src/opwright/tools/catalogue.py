"""`opwright op ...`: the operator catalogue for people and for programs.

Lives here: printing.  Not here: the catalogue (ops/), the comparison (ops/specification.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from .. import ops
from .report import BadFile, notes, out, plain, print_json

LONGEST_FORMULA = 70


def list_operators(pattern: str, as_json: bool) -> None:
    """Names, versions and formulas."""
    found = {n: s for n, s in ops.spec().items() if pattern.lower() in n.lower()}
    if as_json:
        print_json(found)
        return
    table = Table("operator", "version", "inputs", "attributes", "formula")
    for name, spec in found.items():
        formula = " ".join(ops.get(name).formula.split())
        if len(formula) > LONGEST_FORMULA:
            formula = formula[: LONGEST_FORMULA - 3] + "..."
        inputs, attributes = (", ".join(part["name"] for part in spec[key]) for key in ("inputs", "attrs"))
        table.add_row(name, str(spec["version"]), inputs, attributes, formula)
    out().print(table)
    notes().print(f"{len(found)} operators")


def show_operator(name: str, as_json: bool) -> bool:
    """All of one operator. False if there is none of that name."""
    try:
        op = ops.get(name)
    except KeyError as error:
        notes().print(f"opwright: {error.args[0]}")
        return False
    if as_json:
        print_json({op.name: ops.spec().get(op.name)})
        return True
    console = out()
    console.print(Text(op.signature(), "bold").append(f"   version {op.version}", "not bold"))
    console.print()
    console.print(op.doc)
    console.print()
    table = Table("", "name", "what it takes")
    for i in op.inputs:
        dtypes = f"dtype like {i.like}" if i.like else ", ".join(d.name for d in i.dtypes)
        ranks = [f"rank {' or '.join(map(str, i.ranks))}"] if i.ranks else []
        extra = [word for word, on in (("optional", i.optional), ("repeated", i.repeated)) if on]
        table.add_row("input", i.name, "; ".join([dtypes, *ranks, *extra]))
    for a in op.attr_defs.values():
        default = "required" if a.required else f"default {a.default!r}"
        check = [a.check.wanted] if a.check else []
        since = [f"since version {a.since}"] if a.since > 1 else []
        table.add_row("attribute", a.name, "; ".join([a.type_name(), default, *check, *since]))
    for o in op.outputs:
        dtype = f"dtype like {o.like}" if o.like else o.dtype.name if o.dtype else "dtype by inference"
        table.add_row("output", o.name, dtype)
    console.print(table)
    console.print("; ".join(_facts(op)))
    return True


def _facts(op: Any) -> list[str]:
    if op.gradient_rule:
        gradient = "has a gradient"
    else:
        gradient = "differentiation ends here" if op.has_gradient_rule else "has no gradient"
    elementwise = ["element-wise"] if op.elementwise else []
    inplace = [f"may reuse {i} for {o}" for o, i in op.inplace.items()]
    return [gradient, f"effect: {op.effect or 'none'}", *elementwise, *inplace]


def print_spec() -> None:
    """The catalogue as JSON."""
    print_json(ops.spec())


SPEC_KEYS = {"version", "inputs", "outputs", "attrs"}


def _read(path: str) -> Any:
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # JSON's and UTF-8's errors are ValueErrors
        raise BadFile(f"{path}: not a catalogue as `opwright op spec` writes it: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(s, dict) and s.keys() >= SPEC_KEYS for s in found.values()):
        raise BadFile(f"{path}: not a catalogue as `opwright op spec` writes it")
    return found


def print_compatibility(old: str, new: str | None, as_json: bool) -> bool:
    """Each change; True if all are allowed."""
    changes = ops.compatibility(_read(old), plain(ops.spec()) if new is None else _read(new))
    if as_json:
        print_json([{"operator": c.operator, "what": c.what, "allowed": c.allowed} for c in changes])
    else:
        for change in changes:
            out().print(str(change))
        broken = sum(not c.allowed for c in changes)
        notes().print(f"{len(changes)} changes, {broken} not allowed")
    return all(c.allowed for c in changes)
