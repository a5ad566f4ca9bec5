"""`opwright resolver`: write a Python module with a resolver that imports only the operators that some models use.

Lives here: finding them, the text of the module, writing it; measuring what it saves in time, memory and modules, in
separate processes.
Not here: resolvers (lite/resolver.py).

Three resolvers are compared: the generated one; the default one, which imports a kernel when a model has the operator;
and one with every kernel, like run times that link all operators. The time is that of creating the resolver and looking
up each operator of the models, the memory the growth of the process after importing `opwright.lite`.
"""

from __future__ import annotations

import json
import keyword
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import click
from rich.table import Table

from .. import lite
from ..lite.customs import list_names
from ..lite.format.runtime_requirements import requirements
from ..lite.ops import family_of
from ..ops import registry
from .inspection import read_model
from .report import BadFile, notes, print_json, write_file

PROCESSES = 5

KINDS = {"this": "this one", "default": "the default one", "all": "one of all operators"}

_SCRIPT = """
import json, os, sys, time
kind, folder, builtins, customs = json.loads(sys.argv[1])
import opwright.lite, opwright.lite.resolver
from opwright.lite import Registration

def memory():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0

before, bytes_before, start = len(sys.modules), memory(), time.perf_counter()
if kind == "this":
    sys.path.insert(0, folder)
    import written_resolver
    made = written_resolver.Resolver(**{name: Registration(version=2**31 - 1) for name in customs})
else:
    made = opwright.lite.BuiltinOpResolver()
    if kind == "all":
        from opwright.lite import customs as shipped, ops
        kernels = [ops.get(name) for name in ops.list_names()] + [shipped.get(name) for name in shipped.list_names()]
for name, (least, most) in builtins.items():
    assert made.find_op(name, most) is not None
print(json.dumps([time.perf_counter() - start, memory() - bytes_before, len(sys.modules) - before]))
"""


class Cost(NamedTuple):
    """The cost of a kind of resolver: seconds, bytes (0 if the system does not report them), modules imported."""

    resolver: str
    seconds: float
    bytes: int
    modules: int


def measure_costs(text: str, used: Any) -> list[Cost]:
    """Return the costs of each kind, as medians over processes. text: of the module; used: the operators of the models.

    raises BadFile if a process fails
    """
    runs_by_kind: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "written_resolver.py").write_text(text, "utf-8")
        for _ in range(PROCESSES + 1):  # interleaved, so that noise affects all kinds
            for kind in KINDS:
                runs_by_kind[kind].append(_run_process(kind, folder, used.builtins, used.parameters))
    return [
        Cost(kind, *_medians(runs[1:])) for kind, runs in runs_by_kind.items()
    ]  # the first run fills the file cache


def _run_process(kind: str, folder: str, builtins: Mapping[str, Any], customs: Sequence[str]) -> list[float]:
    request = json.dumps([kind, folder, dict(builtins), list(customs)])
    process = subprocess.run([sys.executable, "-c", _SCRIPT, request], capture_output=True, text=True, check=False)
    if process.returncode:
        lines = process.stderr.strip().splitlines() or [f"it ended with status {process.returncode}"]
        raise BadFile(f"the resolver cannot be measured: {lines[-1]}")
    answer: list[float] = json.loads(process.stdout.splitlines()[-1])
    return answer


def _medians(runs: Sequence[Sequence[float]]) -> tuple[float, int, int]:
    seconds, size, modules = (statistics.median(column) for column in zip(*runs))
    return seconds, int(size), int(modules)


def costs_table(costs: Sequence[Cost]) -> Table:
    """Return the costs as a table."""
    costs_table = Table("a resolver made, its kernels imported", "time", "memory", "modules")
    for c in costs:
        costs_table.add_row(KINDS[c.resolver], f"{c.seconds * 1e3:.1f} ms", f"{c.bytes / 1024:.0f} KB", str(c.modules))
    return costs_table


MAX_LINE_LENGTH = 100

Range = tuple[int, int]


class UsedOperators(NamedTuple):
    """The operators that some models use: the least and the greatest version of each, sorted by name.

    shipped: custom operators that are available here (lite/customs); flex: TensorFlow's operators that the catalogue's
    kernels run; customs: the others, which must be passed, or belong to an installed package.
    """

    builtins: Mapping[str, Range]
    customs: Mapping[str, Range]
    flex: Sequence[str] = ()
    shipped: Mapping[str, Range] = MappingProxyType({})

    @property
    def parameters(self) -> list[str]:
        """The names by which Resolver takes custom operators."""
        return list(_parameters(self.customs))


def write_resolver(paths: Sequence[str], output: str | None, measure: bool, as_json: bool) -> bool:
    """Write the module to `output`, or to stdout; False if a model uses an operator that is not available.

    measure: report what it saves, too. raises BadFile for an invalid model or a file that cannot be written
    """
    models = [read_model(path) for path in paths]
    resolver = lite.BuiltinOpResolver()
    missing = [
        f"{os.path.basename(path)}: {n.operator} version {n.version}, {n.where}"
        for path, model in zip(paths, models)
        for n in requirements(model)
        if n.version < 1 or (not n.custom and resolver.find_op(n.operator, n.version) is None)
    ]
    used = used_by(models)
    text = module_text([os.path.basename(path) for path in paths], used)
    saved = measure_costs(text, used) if measure and not missing else []
    if missing:
        for line in missing:
            notes().print(f"opwright: not in this installation: {line}")
    else:
        if output is not None:
            write_file(output, text.encode())
        elif not as_json:
            click.echo(text, nl=False)
    if as_json:
        print_json(
            {
                "models": list(paths),
                "output": None if missing else output,
                "builtins": used.builtins,
                "customs": used.customs,
                "shipped": dict(used.shipped),
                "flex": used.flex,
                "families": _families(used.builtins) if not missing else [],
                "installed": [name for name in used.customs if name in registry.package_entries()],
                "costs": [cost._asdict() for cost in saved],
                "missing": missing,
                "ok": not missing,
            }
        )
    elif output is not None and not missing:
        table = Table("operator", "versions")
        for name, (least, most) in (*used.builtins.items(), *used.shipped.items(), *used.customs.items()):
            table.add_row(name, f"{least}..{most}")
        for name in used.flex:
            table.add_row(name, "1, by the framework's kernels")
        notes().print(table)
        count = len(used.shipped) + len(used.customs)
        notes().print(f"{output}: {len(used.builtins)} builtin and {count} custom operators")
    if saved and not as_json:
        notes().print(costs_table(saved))
    return not missing


def used_by(models: Sequence[object]) -> UsedOperators:
    """Return the operators of some models, including those of their subgraphs and unused ones."""
    by_kind: tuple[dict[str, Range], dict[str, Range]] = ({}, {})
    for n in (n for model in models for n in requirements(model)):
        ranges = by_kind[n.custom]
        least, most = ranges.get(n.operator, (n.version, n.version))
        ranges[n.operator] = (min(least, n.version), max(most, n.version))
    builtins, customs = (dict(sorted(ranges.items())) for ranges in by_kind)
    here = lite.BuiltinOpResolver()
    shipped = {
        name: (least, most)
        for name, (least, most) in customs.items()
        if name in list_names()
        and all(here.find_custom(name, version) is not None for version in range(least, most + 1))
    }
    flex = [
        name
        for name, versions in customs.items()
        if name.startswith("Flex") and versions == (1, 1) and name not in shipped and here.find_custom(name) is not None
    ]
    others = {name: r for name, r in customs.items() if name not in flex and name not in shipped}
    return UsedOperators(builtins, others, flex, shipped)


def _families(builtins: Mapping[str, Range]) -> list[str]:
    return sorted({family_of(name) for name in builtins})


def module_text(names: Sequence[str], used: UsedOperators) -> str:
    """Return the text of the module. It only depends on the models' names and contents."""
    parameters = _parameters(used.customs)
    lines = [
        '"""A resolver with the operators of some models, and no others; only their kernels are imported.',
        "",
        "Written by `opwright resolver`; the models are MODELS. To use it:",
        "",
        *_wrapped("    resolver = Resolver(", [f"{p}={p}" for p in parameters], ")"),
        "    interpreter = lite.Interpreter(model_path, op_resolver=resolver)",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Any",
        "",
        *(["from opwright.core.errors import InvalidArgumentError"] if parameters else []),
        "from opwright.lite import MutableOpResolver",
        *(["from opwright.lite.customs import get as get_custom"] if used.shipped else []),
        *(["from opwright.lite.flex import flex_registration"] if used.flex else []),
        *(["from opwright.lite.ops import get"] if used.builtins else []),
        *(["from opwright.ops.registry import from_package"] if parameters else []),
        "",
        "MODELS = (",
        *(f"    {_literal(name)}," for name in names),
        ")",
        "",
    ]
    for title, ranges, what in (
        ("BUILTINS", used.builtins, "builtin"),
        ("SHIPPED", used.shipped, "shipped custom"),
        ("CUSTOMS", used.customs, "custom"),
    ):
        if ranges:
            lines += [f"# {what} operator: the least and the greatest version that the models use", f"{title} = {{"]
            lines += [f"    {_literal(name)}: ({least}, {most})," for name, (least, most) in ranges.items()]
            lines += ["}", ""]
    if used.flex:
        lines += ["# TensorFlow's operators, run by the framework's own kernels", "FLEX = ("]
        lines += [*(f"    {_literal(name)}," for name in used.flex), ")", ""]
    lines += _class_lines(used, parameters)
    return "\n".join(lines) + "\n"


CUSTOMS_DOC = (
    '    """Serves MODELS.',
    "",
    "    Custom operators are given, as @ow.operator classes or lite.Registrations; one that is not given",
    "    is looked for among those that installed packages add.",
    '    """',
)


def _class_lines(used: UsedOperators, parameters: Mapping[str, str]) -> list[str]:
    lines = [
        "",
        "class Resolver(MutableOpResolver):",
        *(CUSTOMS_DOC if parameters else ['    """Serves MODELS."""']),
        "",
        *_wrapped(
            "    def __init__(",
            ["self", *(["*"] if parameters else []), *(f"{p}: Any = None" for p in parameters)],
            ") -> None:",
        ),
        "        super().__init__()",
    ]
    if used.builtins:
        lines += [
            "        for name, (least, most) in BUILTINS.items():",
            "            self.add_builtin(name, get(name), least, most)",
        ]
    if used.shipped:
        lines += [
            "        for name, (least, most) in SHIPPED.items():",
            "            for version in range(least, most + 1):",
            "                self.add_custom(name, get_custom(name, version), version, version)",
        ]
    if used.flex:
        lines += ["        for name in FLEX:", "            self.add_custom(name, flex_registration(name))"]
    if parameters:
        lines += [
            "        given = {",
            *(f"            {_literal(name)}: {p}," for p, name in parameters.items()),
            "        }",
            "        for name in CUSTOMS:",
            "            if given[name] is None:",
            "                given[name] = from_package(name)",
            "        missing = [name for name in CUSTOMS if given[name] is None]",
            "        if missing:",
            "            raise InvalidArgumentError(",
            "                what=f\"the models use custom operators that were not given: {', '.join(missing)}\",",
            '                do="Resolver(NAME=..., ...), each an @ow.operator or a lite.Registration",',
            "            )",
            "        for name, (least, most) in CUSTOMS.items():",
            '            version = getattr(given[name], "version", most)',
            "            if version < most:",
            "                raise InvalidArgumentError(",
            '                    what=f"the models use version {most} of custom operator {name}",',
            '                    found=f"a definition of version {version}",',
            '                    do="give a newer definition",',
            "                )",
            "            self.add_custom(name, given[name], least, most)",
        ]
    return lines


def _literal(text: str) -> str:
    """Return a string literal, in double quotes if that needs no escapes."""
    literal = ascii(text)
    return f'"{text}"' if literal == f"'{text}'" and '"' not in text else literal


def _wrapped(before: str, items: Sequence[str], after: str) -> list[str]:
    """Format items on one line, or one per line if that would be too long."""
    line = before + ", ".join(items) + after
    if len(line) <= MAX_LINE_LENGTH:
        return [line]
    indent = " " * (len(before) - len(before.lstrip()))
    return [before, *(f"{indent}    {item}," for item in items), indent + after.lstrip()]


def _parameters(customs: Mapping[str, Range]) -> dict[str, str]:
    """Return a parameter name for each custom operator: its own, if it is a valid identifier."""
    names: dict[str, str] = {}
    for name in customs:
        base = re.sub(r"[^0-9A-Za-z_]", "_", name)
        if not base.isidentifier() or keyword.iskeyword(base) or base in ("self", "super", "get", "getattr"):
            base = f"op_{base}"
        parameter, count = base, 1
        while parameter in names:
            count += 1
            parameter = f"{base}_{count}"
        names[parameter] = name
    return names
