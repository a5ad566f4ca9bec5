"""Operators that installed packages add, by the entry points `opwright.operators`.

Lives here: which packages name which operators, loading one, what is wrong with one.
Not here: who asks (ops/registry.py, lite/resolver.py, the command line), a package's text (tools/operator_package.py).

A package says, in its pyproject.toml,

    [project.entry-points."opwright.operators"]
    LeakyClip = "leaky_clip:LeakyClip"

The name on the left is the one that programs and files give the operator; on the right is an `@ow.operator`, a
`lite.Registration`, a mapping that has one under that name, or a module that does. Nothing is read before somebody asks
for an operator that is not here by other means, and then only packages that name it are imported. A package that cannot
be imported is warned of and otherwise left alone. Two packages that name one operator, and mean different ones, serve
neither: nobody but the user can tell which is meant.
"""

from __future__ import annotations

import os
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

GROUP = "opwright.operators"


class PackageWarning(RuntimeWarning):
    """An installed package names operators that cannot be had."""


class Entry(NamedTuple):
    """One operator of one package. value: where it is, `module:name`; point: what loads it."""

    name: str
    package: str
    value: str
    point: Any


class LoadedEntry(NamedTuple):
    """What became of an entry: the operator or registration, or in words why there is none."""

    entry: Entry
    operator: Any
    trouble: str


class _EntryScan(NamedTuple):
    """What packages there are. seen: the folders of sys.path and when they last changed: a package may come while a
    notebook runs. Replaced as a whole: other threads read it meanwhile."""

    seen: Any
    entries: dict[str, list[Entry]]
    loaded: dict[str, list[LoadedEntry]]


_scan_cache = _EntryScan(None, {}, {})


def entries() -> dict[str, list[Entry]]:
    """Every entry by the operator's name, sorted; imports no package."""
    return _current().entries


def _current() -> _EntryScan:
    global _scan_cache
    now = tuple((folder, _changed(folder)) for folder in sys.path)
    scanned = _scan_cache
    if now != scanned.seen:
        found: dict[str, list[Entry]] = {}
        for entry in _scan():
            found.setdefault(entry.name, []).append(entry)
        scanned = _scan_cache = _EntryScan(now, dict(sorted(found.items())), {})
    return scanned


def _changed(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


def _scan() -> Iterator[Entry]:
    """As `importlib.metadata.entry_points`, which one package with damaged metadata makes useless for all."""
    from importlib import metadata  # 10 ms that only those pay who have an operator to look for

    packages: set[str] = set()
    for distribution in metadata.distributions():
        package = "a package without a name"
        try:
            package = distribution.metadata["Name"] or package
            if package.lower() in packages:  # the first on the path is the one that is imported
                continue
            packages.add(package.lower())
            points = list(distribution.entry_points.select(group=GROUP))
        except Exception as error:
            _warn(f"the metadata of {package} cannot be read: {_words(error)}")
            continue
        for point in points:
            yield Entry(point.name, f"{package} {distribution.version}", point.value, point)


def load(name: str) -> list[LoadedEntry]:
    """What the packages give that name this operator, broken ones too, loaded once."""
    current = _current()
    found = current.loaded.get(name)
    if found is None:
        found = current.loaded.setdefault(name, [_load(entry) for entry in current.entries.get(name, ())])
    return found


def _load(entry: Entry) -> LoadedEntry:
    try:
        found = entry.point.load()
        if isinstance(found, types.ModuleType):
            found = getattr(found, entry.name)
        elif isinstance(found, Mapping):
            found = found[entry.name]
    except (Exception, SystemExit) as error:  # another's program: whatever it does
        return LoadedEntry(entry, None, f"{entry.value} cannot be loaded: {_words(error)}")
    if not (hasattr(found, "attr_defs") or callable(getattr(found, "invoke", None))):
        return LoadedEntry(entry, None, f"{entry.value} is a {type(found).__name__}, and no operator or registration")
    return LoadedEntry(entry, found, "")


def find(name: str) -> Any:
    """The operator or registration that an installed package adds under this name, or None.

    None, with a PackageWarning, also where the package cannot be loaded, or two packages give different ones.
    """
    found = load(name)
    if not found:
        return None
    trouble = troubles(name)
    if trouble:
        _warn(trouble)
    good = _different(found)
    return good[0].operator if len(good) == 1 else None


def troubles(name: str) -> str:
    """What is wrong with what installed packages add under this name; empty where nothing is."""
    found = load(name)
    words = [f"package {f.entry.package}: {f.trouble}; mend or remove it" for f in found if f.trouble]
    good = _different(found)
    if len(good) > 1:
        places = " and ".join(f"{f.entry.package} ({f.entry.value})" for f in good)
        words.append(
            f"{name} is added by {len(good)} installed packages: {places}; remove one, or say which is meant: "
            f"custom_ops=[{name}]"
        )
    return "; ".join(words)


def _different(found: list[LoadedEntry]) -> list[LoadedEntry]:
    """Those that could be loaded, each operator once."""
    good = [f for f in found if not f.trouble]
    return [f for i, f in enumerate(good) if all(f.operator is not g.operator for g in good[:i])]


_warned: set[str] = set()


def _warn(text: str) -> None:
    """Once a process: an interpreter asks for each version of each operator."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, PackageWarning, stacklevel=2)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
