"""Attributes that modules read of a package are names of the package, or modules that the reader imports.

`package.module` works without that only after something else has imported the module: in a process that calls one
function, it is an AttributeError.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import opwright
from opwright.core.lazy_imports import _homes
from opwright.scalar.table import FUNCTIONS

SOURCES = Path(opwright.__file__).parent
COMPUTED = {"opwright.compiler.language": set(FUNCTIONS)}
"""Names that a package makes at the first use."""


IMPORTED = re.compile(r"from [\w.]+ import ([^\n(]+|\([^)]*\))")
NAME = re.compile(r"(\w+)(?: as (\w+))?")
ATTRIBUTE = re.compile(r"(?<![\w.])(\w+)\.([A-Za-z]\w*)")


def modules_of(root: Path) -> dict[str, Path]:
    """Return the path of each module below a folder, by its full name."""
    result = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root.parent).with_suffix("").parts
        result[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return result


def names_of(package: str, path: Path) -> set[str]:
    """Return the names that a package lists, assigns, defines or imports."""
    names = set(COMPUTED.get(package, ()))
    if path.with_suffix(".pyi").exists() and "lazily(" in path.read_text():
        import_module(package)
        names |= _homes(package).keys()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def imports_of(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[str, str]]:
    """Yield the local name and the full name of what a module imports, also within functions, not for checkers only."""
    parts = module.split(".") if is_package else module.split(".")[:-1]
    pending = list(ast.iter_child_nodes(tree))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        pending += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        if isinstance(node, ast.ImportFrom):
            home = [*parts[: len(parts) + 1 - node.level]] if node.level else []
            home += [node.module] if node.module else []
            for alias in node.names:
                yield alias.asname or alias.name, ".".join([*home, alias.name])
            yield "", ".".join(home)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield "", alias.name


def missing_names(root: Path) -> list[str]:
    """Return what modules below a folder read of packages there without having it."""
    modules = modules_of(root)
    packages = {name: path for name, path in modules.items() if path.name == "__init__.py"}
    names = {name: names_of(name, path) for name, path in packages.items()}
    heads: dict[str, set[str]] = {}
    for name in packages:
        heads.setdefault(name.rpartition(".")[2], set()).update(names[name])
    result = []
    for module, path in modules.items():
        source = path.read_text()
        words = {
            alias or name: heads[name]
            for line in IMPORTED.findall(source)
            for name, alias in NAME.findall(line)
            if name in heads
        }
        if all(name in words.get(head, (name,)) for head, name in ATTRIBUTE.findall(source)):
            continue  # parsing all modules takes seconds
        tree = ast.parse(source)
        imports = list(imports_of(tree, module, module in packages))
        local = {name: full for name, full in imports if full in packages and name}
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                local.pop(node.id, None)
            elif isinstance(node, ast.arg):
                local.pop(node.arg, None)
        imported = {full for _, full in imports}
        for node in nodes:
            if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in local):
                continue
            package = local[node.value.id]
            full = f"{package}.{node.attr}"
            if node.attr in names[package] or node.attr.startswith("__") or full in imported:
                continue
            if not any(other.startswith(f"{full}.") for other in imported):
                result.append(f"{path}:{node.lineno}: {full}")
    return result


def test_a_missing_name_is_reported(tmp_path: Path) -> None:
    root = tmp_path / "one"
    (root / "inner").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "inner" / "__init__.py").write_text("given = 1\n")
    (root / "inner" / "deep.py").write_text("value = 2\n")
    (root / "right.py").write_text(
        "from . import inner\nfrom .inner import deep\nboth = inner.given + inner.deep.value\n"
    )
    (root / "wrong.py").write_text("from . import inner\nboth = inner.given + inner.deep.value\n")
    assert [line.rpartition(": ")[2] for line in missing_names(root)] == ["one.inner.deep"]


def test_names_of_packages_are_there_for_who_reads_them() -> None:
    missing = missing_names(SOURCES)
    assert not missing, "\n".join(missing)
