"""Write the tables that say which module defines, lowers or compiles which operators: `make families`.

Lives here: finding the operators and selectors of the packages, and the tables' text in modules of theirs.
Not here: the test that the tables are current (lite/ops/test_families.py).

Modules are imported when one of their operators is asked for, so their names have to stand where no import is needed.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys
import textwrap
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

KERNELS, LOWERING = "opwright.compiler.kernels", "opwright.compiler.lowering"
PACKAGES = {
    "opwright.lite.ops": ".definition",
    "opwright.lite.customs": ".definition",
    LOWERING: ".families",
    KERNELS: "",
}
"""Packages, and the module of each that has the table: the package itself, or one of it."""
HEAD, TAIL = "FAMILIES: dict[str, str] = {\n", "}\n"
WIDTH = 120


def families(package: str) -> dict[str, list[str]]:
    """Return the operators that each module of a package defines; imports them all."""
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)
    if package == KERNELS:
        return selectors()
    if package == LOWERING:
        return rules()
    found: dict[str, list[str]] = {}
    for name, defined in sorted(_table(package).defined.items()):
        for operator in defined if isinstance(defined, list) else [defined]:
            names = found.setdefault(operator.__module__.removeprefix(f"{package}."), [])
            names.extend([name] if name not in names else [])
    return dict(sorted(found.items()))


def selectors() -> dict[str, list[str]]:
    """Return the forms that each module of kernels makes, in the order in which the modules are asked."""
    kernels: Any = importlib.import_module(KERNELS)
    found: dict[str, list[str]] = {}
    for form, modules in kernels.SELECTORS.items():
        for module in modules:
            found.setdefault(module, []).append(form.__name__)

    def place(module: str) -> tuple[str, str]:
        return (kernels.BEFORE[module], "") if module in kernels.BEFORE else (module, module)

    return {module: sorted(found[module]) for module in sorted(found, key=place)}


def rules() -> dict[str, list[str]]:
    """Return the operators that each module of lowering has rules for. Raises ValueError if two have one."""
    lowering: Any = importlib.import_module(f"{LOWERING}.registry")
    found = {module: sorted(names) for module, names in sorted(lowering.registered().items())}
    repeated = [name for name, count in Counter(itertools.chain(*found.values())).items() if count > 1]
    if repeated:
        raise ValueError(f"several modules have a rule for {', '.join(repeated)}")
    return found


def _table(package: str) -> ModuleType:
    return importlib.import_module(f"{package}{PACKAGES[package]}")


def rows(found: dict[str, list[str]]) -> str:
    """Return the table's text, as the formatter would have it."""
    lines = []
    for module, names in found.items():
        line = f'    "{module}": "{" ".join(names)}",'
        if len(line) > WIDTH:
            parts = textwrap.wrap(" ".join(names), WIDTH - len('        " "'), break_long_words=False)
            parts[:-1] = [f"{part} " for part in parts[:-1]]
            line = "\n".join([f'    "{module}": (', *(f'        "{part}"' for part in parts), "    ),"])
        lines.append(f"{line}\n")
    return "".join(lines)


def written(package: str) -> tuple[Path, str, str]:
    """Return the file of a package's table, its text, and the text that it should have."""
    path = Path(str(_table(package).__file__))
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(HEAD)
    _, end, after = rest.partition(f"\n{TAIL}")
    return path, text, f"{before}{HEAD}{rows(families(package))}{end.lstrip(chr(10))}{after}"


def main() -> int:
    """Write the tables that are not current."""
    for package in PACKAGES:
        path, text, wanted = written(package)
        if text != wanted:
            path.write_text(wanted, encoding="utf-8")
            print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
