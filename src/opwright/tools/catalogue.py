"""`opwright op ...`: reports on operators: the catalogue and the builtins of `.tflite` files.

Lives here: the reports. Not here: the catalogue (ops/), the comparison (ops/specification.py), rules of versions
(lite/format/versions.py).
"""

from __future__ import annotations

import dataclasses
import json
import runpy
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from .. import ops
from ..core.errors import OpError
from ..lite import ops as lite_ops
from ..lite.format import schema, versions
from ..ops import registry, specification
from .report import BadFile, notes, out, print_json


def is_builtin(name: str) -> bool:
    """Return whether the format has a builtin operator of that name."""
    return name in schema.BuiltinOperator.__members__ and "special" not in versions.facts(name)


def show_builtin(name: str, as_json: bool) -> None:
    """Print the details of one builtin operator, implemented here or not."""
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
        when.setdefault(version, []).insert(0, versions.describe(condition))
    known_versions = sorted({*map(int, row.get("min_runtime", {})), *when})
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
            {"version": v, "min_runtime": versions.min_runtime(name, v), "when": when.get(v, [])}
            for v in known_versions
        ],
    }


def _default(field: schema.SchemaField) -> object:
    if field.enum and field.kind == "scalar":
        return schema.enum_members(field.enum)[field.default].name
    return field.default


MAX_FORMULA_LENGTH = 70


def list_operators(pattern: str, as_json: bool) -> None:
    """Print names, versions and formulas: of the catalogue and of installed packages."""
    specs = {n: s for n, s in ops.spec().items() if pattern.lower() in n.lower()}
    specs |= _from_packages(pattern, specs)
    if as_json:
        print_json(specs)
        return
    table = Table("operator", "version", "inputs", "attributes", "formula")
    for name, spec in specs.items():
        formula = " ".join(ops.get(name).formula.split())
        if len(formula) > MAX_FORMULA_LENGTH:
            formula = formula[: MAX_FORMULA_LENGTH - 3] + "..."
        inputs, attributes = (", ".join(part["name"] for part in spec[key]) for key in ("inputs", "attrs"))
        table.add_row(name, str(spec["version"]), inputs, attributes, formula)
    out().print(table)
    notes().print(f"{len(specs)} operators")


def _from_packages(pattern: str, catalogue: Any) -> dict[str, Any]:
    """Return the specifications of operators that installed packages add; report entries that are not operators."""
    specs: dict[str, Any] = {}
    for name in registry.package_entries():
        if pattern.lower() not in name.lower() or name in catalogue:
            continue
        op = registry.from_package(name)
        if hasattr(op, "attr_defs"):
            (specs[name],) = ops.spec([op]).values()
        elif op is not None:
            package = registry.load_entries(name)[0].entry.package
            notes().print(f"{name} of {package} is a registration, which runs in lite.Interpreter alone")
    return specs


def show_operator(name: str, as_json: bool) -> bool:
    """Print the details of one operator. False if there is none of that name."""
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
    console.print("; ".join(_properties(op)))
    return True


def _properties(op: Any) -> list[str]:
    if op.gradient_rule:
        gradient = "has a gradient"
    else:
        gradient = "differentiation ends here" if op.has_gradient_rule else "has no gradient"
    elementwise = ["element-wise"] if op.elementwise else []
    inplace = [f"may reuse {i} for {o}" for o, i in op.inplace.items()]
    return [gradient, f"effect: {op.effect or 'none'}", *elementwise, *inplace]


def print_spec(names: tuple[str, ...], files: tuple[str, ...]) -> None:
    """Print a specification as JSON, with its format number: of the catalogue, of some operators, or of users'."""
    defined = [op for path in files for op in operators_in(path)]
    try:
        selected = [*names, *defined] if names or defined else None
        document = specification.document(ops.spec(selected))
    except KeyError as error:
        raise BadFile(str(error.args[0])) from None
    click.echo(json.dumps(document, indent=1, allow_nan=False))


def operators_in(path: str) -> list[Any]:
    """Return the operators that a Python file defines, in order. Raises BadFile if it has none or fails."""
    before = registry.users()
    names_in(path)
    operators = [op for name, op in registry.users().items() if before.get(name) is not op]
    if not operators:
        raise BadFile(f"{path} defines no operator with @ow.operator")
    return operators


def names_in(path: str) -> dict[str, Any]:
    """Return the names that a Python file defines. Raises BadFile if it fails."""
    if not Path(path).is_file():
        raise BadFile(f"{path}: no such file")
    try:
        return runpy.run_path(path)
    except (Exception, SystemExit) as error:  # the user's program may raise any error
        raise BadFile(f"{path} cannot be run: {type(error).__name__}: {error}") from error


def _reject_constant(word: str) -> object:
    raise ValueError(f"{word} is no JSON")


def _read_specification(path: str) -> dict[str, Any]:
    """Return the operators of a specification file. Raises BadFile for an invalid file."""
    try:
        document = json.loads(Path(path).read_text("utf-8"), parse_constant=_reject_constant)
        return specification.operators_of(document, path)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    except OpError as error:
        raise BadFile(f"{error}\nnot a catalogue as `opwright op spec` writes it") from error
    except (ValueError, RecursionError, MemoryError) as error:  # errors of JSON and UTF-8 are ValueErrors
        raise BadFile(f"{path}: not a catalogue as `opwright op spec` writes it: {error}") from error


def print_compatibility(old: str, new: str | None, strict: bool, as_json: bool) -> bool:
    """Print each change, by operator and part; True if all are allowed. strict: if there is none."""
    before = _read_specification(old)
    try:
        changes = ops.compatibility(before, _installed(before) if new is None else _read_specification(new))
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


def _installed(before: Any) -> dict[str, Any]:
    """Return the installed catalogue; or users' operators, if the old file has none of the catalogue's."""
    catalogue = ops.spec()
    return catalogue if not before or before.keys() & catalogue.keys() else ops.spec(users=True)
