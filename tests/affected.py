"""Print the test files that changes since a commit may affect: `make quick SINCE=main`.

A test file is affected if it changed, if it imports a module of the package that changed, or a module that imports one
of these directly, or if it lies in the folder of tests that mirrors the folder of a changed module. Tests that reach a
change only through the public names of `opwright` are the full suite's: `make test`.

Lives here: selection by imports as they are written.  Not here: running (Makefile).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
IMPORT = re.compile(r"^[ \t]*(from[ \t]+\S+[ \t]+import[ \t]+(?:\([^)]*\)|[^\n(]+)|import[ \t]+[^\n]+)", re.MULTILINE)


def changed(since: str) -> list[Path]:
    """Return the files that differ from the merge base with a commit, and untracked files."""
    commands = (["diff", "--name-only", "--merge-base", since], ["ls-files", "--others", "--exclude-standard"])
    names = [
        line
        for command in commands
        for line in subprocess.run(
            ["git", *command], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
    ]
    return [Path(name) for name in names if name.endswith(".py")]


def module_of(path: Path) -> str:
    """Return the dotted name of a source file. path: relative to src."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, package: str = "") -> Iterator[str]:
    """Yield the modules, and the names in them, that a file imports at any depth. package: of the file, for relative
    ones.

    Only the import statements are parsed, a tenth of the time that whole files take; lines of a docstring that read
    like one count.
    """
    statements = IMPORT.findall(path.read_text("utf-8"))
    for node in ast.walk(ast.parse("\n".join(text for text in statements if _is_valid(text)))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _is_valid(statement: str) -> bool:
    try:
        ast.parse(statement)
    except SyntaxError:
        return False
    return True


def affected(files: list[Path]) -> list[Path]:
    """Return the test files that changes of these files may affect. files: relative to the repository."""
    sources = [f for f in files if f.parts[:2] == ("src", "opwright")]
    modules = {module_of(f.relative_to("src")) for f in sources}
    importers = set()
    for path in SOURCE.rglob("*.py"):
        name = module_of(path.relative_to(SOURCE))
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        if not modules.isdisjoint(imported(path, package)):
            importers.add(name)
    wanted = (modules | importers) - {"opwright"}
    folders = {ROOT / "tests" / Path(*f.parts[2:]).parent for f in sources if len(f.parts) > 3}
    tests = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "data" not in path.parts]
    return [
        path
        for path in tests
        if path.relative_to(ROOT) in files or path.parent in folders or not wanted.isdisjoint(imported(path))
    ]


if __name__ == "__main__":
    print(*(path.relative_to(ROOT) for path in affected(changed(sys.argv[1]))), sep="\n")
