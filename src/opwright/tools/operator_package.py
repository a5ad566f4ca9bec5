"""`opwright op new` and `op test`: a package with a user's operator, and its checks.

Lives here: valid names, filling in the template (package_template/), writing it atomically; the report of
`opwright.testing` on operators by name or by file. Not here: discovery of installed packages (ops/registry.py),
the checks and their generated inputs (testing/), the rules of names and docstrings (ops/definition_lint.py), operators
in a file (catalogue.py).
"""

from __future__ import annotations

import importlib.util
import keyword
import re
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from ..core import __version__
from ..core.files import replacing_folder
from ..lite.customs import list_names as shipped
from ..ops import registry
from ..testing import outcomes
from .catalogue import is_builtin, operators_in
from .report import BadFile, notes, out, print_json

TEMPLATE = Path(__file__).with_name("package_template")
FILES = {  # of the package -> of the template
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    "src/{module}/__init__.py": "__init__.py.txt",
    "src/{module}/operator.py": "operator.py.txt",
    "tests/test_{module}.py": "test_operator.py.txt",
}

RULES: tuple[tuple[Callable[[str], object], str], ...] = (  # what refuses a name, and why; the first counts
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
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return True  # it exists, but cannot be imported


def _check_name(name: str) -> str:
    """Return the name. Raises click.UsageError with the reason if it is invalid."""
    for refuses, why in RULES:
        if refuses(name):
            parts = re.findall(r"[A-Za-z][A-Za-z0-9]*", name)
            camel = "".join(part[0].upper() + part[1:] for part in parts) or "LeakyClip"
            package = ", ".join(e.package for e in registry.package_entries().get(name, ()))
            words = why.format(name=name, camel=camel, module=module_of(name), package=package)
            raise click.UsageError(f"{name[:80]!r} {words}")
    return name


def new_package(name: str, folder: str | None, as_json: bool) -> None:
    """Write the package and print the next steps. folder: by default the distribution's name, in the current one.

    raises click.UsageError for an invalid name, BadFile for a folder that exists or cannot be written
    """
    module = module_of(_check_name(name))
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
        for path, source in FILES.items()
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


def test_operators(targets: tuple[str, ...], as_json: bool) -> bool:
    """Check operators by name or by file, and print the outcomes; True if nothing failed."""
    operators: list[Any] = []
    for target in targets:
        if target.endswith(".py"):
            operators += operators_in(target)
            continue
        try:
            operators.append(registry.get(target))
        except KeyError as error:
            raise BadFile(str(error.args[0])) from None
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
