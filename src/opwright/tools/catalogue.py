"""`opwright op ...`: the operator catalogue for people and for programs.

Lives here: printing.  Not here: the catalogue (ops/), the comparison (ops/specification.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.table import Table

from .. import ops
from ..core.errors import DataLossError
from .report import notes, out, print_json


def _catalogue() -> dict[str, Any]:
    import opwright  # noqa: F401  the families register themselves

    return ops.spec()


def list_operators(pattern: str, as_json: bool) -> None:
    """Names, versions and formulas."""
    found = {n: s for n, s in _catalogue().items() if pattern.lower() in n.lower()}
    if as_json:
        return print_json(found)
    table = Table("operator", "version", "inputs", "attributes", "formula")
    for name, spec in found.items():
        formula = ops.get(name).formula
        table.add_row(name, str(spec["version"]), ", ".join(i["name"] for i in spec["inputs"]),
                      ", ".join(a["name"] for a in spec["attrs"]), formula if len(formula) < 70 else formula[:67] + "...")  # fmt: skip
    out().print(table)
    notes().print(f"{len(found)} operators")
    return None


def show_operator(name: str, as_json: bool) -> bool:
    """All of one operator. False if there is none of that name."""
    catalogue = _catalogue()
    try:
        op = ops.get(name)
    except KeyError as error:
        notes().print(f"opwright: {error.args[0]}")
        return False
    if as_json:
        print_json({op.name: catalogue.get(op.name)})
        return True
    console = out()
    console.print(f"[bold]{op.signature()}[/bold]   version {op.version}", highlight=False)
    console.print()
    console.print(op.doc, markup=False, highlight=False)
    console.print()
    table = Table("", "name", "what it takes")
    for i in op.inputs:
        extra = [w for w, on in (("optional", i.optional), ("repeated", i.repeated)) if on]
        rank = [f"rank {' or '.join(map(str, i.ranks))}"] if i.ranks else []
        like = [f"dtype like {i.like}"] if i.like else [", ".join(d.name for d in i.dtypes)]
        table.add_row("input", i.name, "; ".join([*like, *rank, *extra]))
    for a in op.attr_defs.values():
        default = "required" if a.required else f"default {a.default!r}"
        check = [a.check.wanted] if a.check else []
        since = [f"since version {a.since}"] if a.since > 1 else []
        table.add_row("attribute", a.name, "; ".join([a.type_name(), default, *check, *since]))
    for o in op.outputs:
        table.add_row("output", o.name, f"dtype like {o.like}" if o.like else o.dtype.name if o.dtype else "by inference")
    console.print(table)
    gradient = "has a gradient" if op.gradient_rule else "differentiation ends here" if op.has_gradient_rule else "has no gradient"
    facts = [gradient, f"effect: {op.effect or 'none'}"]
    facts += ["element-wise"] if op.elementwise else []
    facts += [f"may reuse {i} for {o}" for o, i in op.inplace.items()]
    console.print("; ".join(facts))
    return True


def print_spec() -> None:
    """The catalogue as JSON."""
    print_json(_catalogue())


def _read(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataLossError(what=f"{path} is not a catalogue: {error}", wanted="JSON from `opwright op spec`") from None


def print_compatibility(old: str, new: str | None, as_json: bool) -> bool:
    """Each change; True if all are allowed."""
    changes = ops.compatibility(_read(old), _catalogue() if new is None else _read(new))
    if as_json:
        print_json([{"operator": c.operator, "what": c.what, "allowed": c.allowed} for c in changes])
    else:
        for change in changes:
            out().print(str(change), markup=False, highlight=False)
        broken = sum(not c.allowed for c in changes)
        notes().print(f"{len(changes)} changes, {broken} not allowed")
    return all(c.allowed for c in changes)
