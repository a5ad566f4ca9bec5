"""`opwright op ...`: reports on operators, of the catalogue, of `.tflite` files and of users; packages of operators.

Lives here: the reports, also of `opwright.testing` on operators by name or by file (`op test`); `op new`: valid names,
filling in the template of a package (package_template/), writing it atomically.
Not here: the catalogue and discovery of installed packages (ops/), the comparison (ops/specification.py), rules of
versions (lite/format/versions.py), the checks and their generated inputs (testing/), the rules of names and docstrings
(ops/definition_lint.py).
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import keyword
import re
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from .. import ops
from ..core import __version__
from ..core.class_names import spaced_words
from ..core.errors import OpError
from ..core.files import replacing_folder
from ..lite import ops as lite_ops
from ..lite.customs import list_names as shipped
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
    raise ValueError(f"{word} is not JSON")


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


TEMPLATE = Path(__file__).with_name("package_template")
PACKAGE_FILES = {  # of the package -> of the template
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    "src/{module}/__init__.py": "__init__.py.txt",
    "src/{module}/operator.py": "operator.py.txt",
    "tests/test_{module}.py": "test_operator.py.txt",
}

NAME_RULES: tuple[tuple[Callable[[str], object], str], ...] = (  # what refuses a name, and why; the first counts
    (lambda name: not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name), "is not in CamelCase, as operators are; try {camel}"),
    (lambda name: re.search(r"V\d+$", name), "ends with a version, which is said so: @ow.operator(version=2)"),
    (lambda name: name.startswith("Flex"), "begins with Flex, as TensorFlow's own operators do in .tflite files"),
    (lambda name: keyword.iskeyword(name) or keyword.iskeyword(module_of(name)), "is a word of Python; try My{name}"),
    (lambda name: name in registry.catalogue(), "is in the catalogue (`opwright op show {name}`); try My{name}"),
    (lambda name: name in shipped(), "is a custom operator that is shipped with Opwright; try My{name}"),
    (is_builtin, "is a builtin operator of .tflite files; try My{name}"),
    (lambda name: name in registry.package_entries(), "is an operator of a package that is installed: {package}"),
    (lambda name: _is_module(module_of(name)), "would be the module {module}, and there is one; try My{name}"),
)


def module_of(name: str) -> str:
    """Return leaky_clip for LeakyClip."""
    return spaced_words(name).lower()


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return True  # it exists, but cannot be imported


def _check_name(name: str) -> None:
    """Raise click.UsageError with the reason if a name is invalid."""
    for refuses, why in NAME_RULES:
        if refuses(name):
            parts = re.findall(r"[A-Za-z][A-Za-z0-9]*", name)
            camel = "".join(part[0].upper() + part[1:] for part in parts) or "LeakyClip"
            package = ", ".join(e.package for e in registry.package_entries().get(name, ()))
            words = why.format(name=name, camel=camel, module=module_of(name), package=package)
            raise click.UsageError(f"{name[:80]!r} {words}")


def new_package(name: str, folder: str | None, as_json: bool) -> None:
    """Write the package and print the next steps. folder: by default the distribution's name, in the current one.

    raises click.UsageError for an invalid name, BadFile for a folder that exists or cannot be written
    """
    _check_name(name)
    module = module_of(name)
    distribution = module.replace("_", "-")
    target = Path(folder or distribution)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise BadFile(f"{target} is there already, and not an empty folder")
    except OSError as error:
        raise BadFile(f"{target} cannot be written: {error.strerror or error}") from error
    words = {"name": name, "module": module, "distribution": distribution, "opwright": __version__}
    files = {
        path.format(module=module): Template((TEMPLATE / source).read_text("utf-8")).substitute(words)
        for path, source in PACKAGE_FILES.items()
    }
    _write(target, files)
    if as_json:
        print_json(
            {"operator": name, "package": distribution, "module": module, "folder": str(target), "files": list(files)}
        )
        return
    for path in files:
        click.echo(str(target / path))
    notes().print(f"next: cd {target}; pip install -e .; pytest; opwright op test {name}")


def _write(target: Path, files: dict[str, str]) -> None:
    """Write all files or none: into a temporary folder, which is then renamed."""
    try:
        with replacing_folder(target) as inside:
            for path, text in files.items():
                (Path(inside) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(inside) / path).write_text(text, "utf-8")
    except OSError as error:
        raise BadFile(f"{target} cannot be written: {error.strerror or error}") from error


def operators_named(targets: Sequence[str]) -> list[Any]:
    """Return operators by name or by file. Raises BadFile."""
    operators: list[Any] = []
    for target in targets:
        if target.endswith(".py"):
            operators += operators_in(target)
            continue
        try:
            operators.append(registry.get(target))
        except KeyError as error:
            raise BadFile(str(error.args[0])) from None
    return operators


def test_operators(targets: Sequence[str], as_json: bool, results: list[Any] | None) -> bool:
    """Check operators by name or by file, and print the outcomes; True if nothing failed.

    results: the outcomes, if workers have computed them
    """
    operators = operators_named(targets)
    if results is None:
        from ..testing import outcomes  # which no report on operators needs

        results = [outcome for op in operators for outcome in outcomes(op)]
    if as_json:
        print_json([o._asdict() for o in results])
    else:
        table = Table("operator", "check", "", "detail")
        for o in results:
            style = {"failed": "red", "not tried": "yellow"}.get(o.state, "")
            table.add_row(o.operator, o.check, Text(o.state, style), Text(o.detail))
        out().print(table)
    failed = sum(o.state == "failed" for o in results)
    notes().print(f"{len(operators)} operators, {len(results)} checks, {failed} failed")
    return not failed
