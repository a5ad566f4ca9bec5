"""`opwright op show CONV_2D`: a builtin operator of `.tflite` files: its options, its versions and what brought them.

Lives here: the report.  Not here: the catalogue's operators (catalogue.py), the rules (lite/format/versions.py).
"""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from ..lite import ops
from ..lite.format import conditions, schema, versions
from .report import out, print_json


def is_builtin(name: str) -> bool:
    """Whether the format has a builtin operator of that name."""
    return name in schema.BuiltinOperator.__members__ and "special" not in versions.facts(name)


def show_builtin(name: str, as_json: bool) -> None:
    """Print all of one builtin operator, whether it is implemented here or not."""
    facts = _facts(name)
    if as_json:
        print_json({name: facts})
        return
    console = out()
    here = facts["here"]
    console.print(Text(name, "bold").append(f"   builtin operator {facts['code']} of .tflite files", "not bold"))
    console.print()
    if here:
        console.print(ops.get(name).doc)
        console.print()
    table = Table("", "name", "what it takes")
    for i in ops.get(name).inputs if here else ():
        dtypes = f"dtype like {i.like}" if i.like else ", ".join(d.name for d in i.dtypes)
        extra = [word for word, on in (("optional", i.optional), ("repeated", i.repeated)) if on]
        table.add_row("input", i.name, "; ".join([dtypes, *extra]))
    for option in facts["options"]:
        since = [f"since version {option['since']}"] if option["since"] > 1 else []
        table.add_row("option", option["name"], "; ".join([option["type"], f"default {option['default']}", *since]))
    if table.row_count:
        console.print(table)
    table = Table("version", "run time", "when")
    for row in facts["versions"]:
        table.add_row(str(row["version"]), row["min_runtime"] or "?", "; or ".join(row["when"]))
    console.print(table)
    shown = [f"{where} {r[0]}..{r[1]}" if r else f"{where}: none" for where, r in
             (("here", here), ("official run time", facts["official"]))]  # fmt: skip
    console.print("; ".join(shown))


def _facts(name: str) -> dict[str, Any]:
    row = versions.facts(name)
    since = versions.options_since(name)
    fields = schema.table(row["options"]).fields if row.get("options") else ()
    when: dict[int, list[str]] = {row.get("default", 1): ["otherwise"]}
    for version, condition in reversed(row.get("rules", ())):
        when.setdefault(version, []).insert(0, conditions.words(condition))
    known = sorted({*map(int, row.get("min_runtime", {})), *when})
    return {
        "code": row["code"],
        "here": ops.get(name).versions if name in ops.list_names() else None,
        "official": versions.resolver_range(name),
        "options": [{"name": f.name, "type": f.enum or (f"list of {f.scalar}" if f.kind == "vector" else f.scalar),
                     "default": _default(f), "since": since.get(f.name, 1)} for f in fields],
        "versions": [{"version": v, "min_runtime": versions.min_runtime(name, v), "when": when.get(v, [])}
                     for v in known],
    }  # fmt: skip


def _default(field: schema.Field) -> Any:
    if field.enum and field.kind == "scalar":
        return schema.enum_members(field.enum)[field.default].name
    return field.default
