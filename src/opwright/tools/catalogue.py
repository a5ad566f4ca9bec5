"""`opwright op ...`: the operators, for people and for programs: the catalogue and the builtins of `.tflite` files.

Lives here: the reports.
Not here: the catalogue (ops/), the comparison (ops/specification.py), rules of versions (lite/format/versions.py).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from .. import ops
from ..core.errors import OpError
from ..lite import ops as lite_ops
from ..lite.format import conditions, schema, versions
from ..ops import installed, registry, specification
from .report import BadFile, notes, out, print_json


def is_builtin(name: str) -> bool:
    """Whether the format has a builtin operator of that name."""
    return name in schema.BuiltinOperator.__members__ and "special" not in versions.facts(name)


def show_builtin(name: str, as_json: bool) -> None:
    """Print all of one builtin operator, whether it is implemented here or not."""
    facts = _builtin_facts(name)
    if as_json:
        print_json({name: facts})
        return
    console = out()
    here = facts["here"]
    console.print(Text(name, "bold").append(f"   builtin operator {facts['code']} of .tflite files", "not bold"))
    console.print()
    if here:
        console.print(lite_ops.get(name).doc)
        console.print()
    table = Table("", "name", "what it takes")
    for i in lite_ops.get(name).inputs if here else ():
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
    shown = [
        f"{where} {r[0]}..{r[1]}" if r else f"{where}: none"
        for where, r in (("here", here), ("official run time", facts["official"]))
    ]
    console.print("; ".join(shown))


def _builtin_facts(name: str) -> dict[str, Any]:
    row = versions.facts(name)
    since = versions.options_since(name)
    fields = schema.table(row["options"]).fields if row.get("options") else ()
    when: dict[int, list[str]] = {row.get("default", 1): ["otherwise"]}
    for version, condition in reversed(row.get("rules", ())):
        when.setdefault(version, []).insert(0, conditions.describe(condition))
    known = sorted({*map(int, row.get("min_runtime", {})), *when})
    return {
        "code": row["code"],
        "here": lite_ops.get(name).versions if name in lite_ops.list_names() else None,
        "official": versions.resolver_range(name),
        "options": [
            {
                "name": f.name,
                "type": f.enum or (f"list of {f.scalar}" if f.kind == "vector" else f.scalar),
                "default": _default(f),
                "since": since.get(f.name, 1),
            }
            for f in fields
        ],
        "versions": [
            {"version": v, "min_runtime": versions.min_runtime(name, v), "when": when.get(v, [])} for v in known
        ],
    }


def _default(field: schema.SchemaField) -> Any:
    if field.enum and field.kind == "scalar":
        return schema.enum_members(field.enum)[field.default].name
    return field.default


LONGEST_FORMULA = 70


def list_operators(pattern: str, as_json: bool) -> None:
    """Names, versions and formulas: of the catalogue, and of what installed packages add."""
    found = {n: s for n, s in ops.spec().items() if pattern.lower() in n.lower()}
    found |= _from_packages(pattern, found)
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


def _from_packages(pattern: str, known: Any) -> dict[str, Any]:
    """The specifications of operators that installed packages add; of what is no operator, or is none now, a note."""
    found: dict[str, Any] = {}
    for name in installed.entries():
        if pattern.lower() not in name.lower() or name in known:
            continue
        op = registry.from_package(name)
        if hasattr(op, "attr_defs"):
            (found[name],) = ops.spec([op]).values()
        elif op is not None:
            package = installed.load(name)[0].entry.package
            notes().print(f"{name} of {package} is a registration, which runs in lite.Interpreter alone")
    return found


def show_operator(name: str, as_json: bool) -> bool:
    """All of one operator. False if there is none of that name."""
    try:
        op = ops.get(name)
    except KeyError as error:
        notes().print(f"opwright: {error.args[0]}")
        return False
    if as_json:
        print_json(ops.spec([op]))
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


def print_spec(names: tuple[str, ...], files: tuple[str, ...]) -> None:
    """A specification as JSON, with the number of its format: of the catalogue, of some operators, or of users'."""
    made = [op for path in files for op in operators_in(path)]
    try:
        chosen = [*names, *made] if names or made else None
        found = specification.document(ops.spec(chosen))
    except KeyError as error:
        raise BadFile(str(error.args[0])) from None
    click.echo(json.dumps(found, indent=1, allow_nan=False))


def operators_in(path: str) -> list[Any]:
    """The operators that a Python file defines, in order. Raises BadFile where it has none or cannot be run."""
    before = registry.users()
    names_in(path)
    found = [op for name, op in registry.users().items() if before.get(name) is not op]
    if not found:
        raise BadFile(f"{path} defines no operator with @ow.operator")
    return found


def names_in(path: str) -> dict[str, Any]:
    """What a Python file defines, by name. Raises BadFile where it cannot be run."""
    import runpy

    if not Path(path).is_file():
        raise BadFile(f"{path}: no such file")
    try:
        return runpy.run_path(path)
    except (Exception, SystemExit) as error:  # it is the user's program: whatever it does
        raise BadFile(f"{path} cannot be run: {type(error).__name__}: {error}") from error


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _read(path: str) -> Any:
    """The operators of a specification's file. Raises BadFile whatever is wrong with it."""
    try:
        found = json.loads(Path(path).read_text("utf-8"), parse_constant=_no_constant)
        return specification.operators_of(found, path)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    except OpError as error:
        raise BadFile(f"{error}\nnot a catalogue as `opwright op spec` writes it") from error
    except (ValueError, RecursionError, MemoryError) as error:  # JSON's and UTF-8's errors are ValueErrors
        raise BadFile(f"{path}: not a catalogue as `opwright op spec` writes it: {error}") from error


def print_compatibility(old: str, new: str | None, strict: bool, as_json: bool) -> bool:
    """Each change, by operator and part; True if all are allowed. strict: if there is none."""
    before = _read(old)
    try:
        changes = ops.compatibility(before, _installed(before) if new is None else _read(new))
    except RecursionError:
        raise BadFile(f"{old}: values nested too deeply") from None
    if as_json:
        print_json([dataclasses.asdict(c) for c in changes])
    else:
        operator = part = ""
        for change in changes:
            if change.operator != operator:
                operator, part = change.operator, ""
                out().print(Text(operator, "bold"))
            if change.part != part:
                part = change.part
                out().print(f"  {part}{'' if part == 'operator' else 's'}")
            what = change.what.removeprefix(f"{part} ") if change.name else change.what
            out().print(Text(f"  {'  ' if change.allowed else '! '}{what}", "" if change.allowed else "red"))
    broken = sum(not c.allowed for c in changes)
    notes().print(f"{len(changes)} changes, {broken} not allowed")
    return not (changes if strict else broken)


def _installed(before: Any) -> Any:
    """The catalogue of this installation; of the old file's operators alone, where it has none of the catalogue's."""
    catalogue = ops.spec()
    return catalogue if not before or before.keys() & catalogue.keys() else ops.spec(users=True)
