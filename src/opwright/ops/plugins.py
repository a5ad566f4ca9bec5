"""Operators of installed packages, found by the entry points `opwright.operators`.

Lives here: the packages that name an operator, loading, problems of packages.
Not here: callers (ops/registry.py, lite/resolver.py, the command line), the template of a package
(tools/operator_package.py).

A package declares, in its pyproject.toml,

    [project.entry-points."opwright.operators"]
    LeakyClip = "leaky_clip:LeakyClip"

The left side is the name by which programs and files refer to the operator; the right side is an `@ow.operator`, a
`lite.Registration`, a mapping that contains one under that name, or a module that does. Metadata is read only when an
operator is requested that is not defined otherwise, and only packages that name it are imported. A package that cannot
be imported is skipped with a warning. Two packages that name one operator, and define different ones, are both skipped:
only the user can choose.
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
    """Warning for an installed package whose operators cannot be loaded."""


class Entry(NamedTuple):
    """One operator of one package. value: its location, `module:name`; point: the entry point that loads it."""

    name: str
    package: str
    value: str
    point: Any


class LoadedEntry(NamedTuple):
    """The result of loading an entry: the operator or registration, or the reason why there is none."""

    entry: Entry
    operator: Any
    trouble: str


class _EntryScan(NamedTuple):
    """Installed packages of operators. seen: the folders of sys.path and when they last changed, since a package may be
    installed while a notebook runs. Replaced as a whole: other threads read it meanwhile."""

    seen: Any
    entries: dict[str, list[Entry]]
    loaded: dict[str, list[LoadedEntry]]


_scan_cache = _EntryScan(None, {}, {})


def entries() -> dict[str, list[Entry]]:
    """Return every entry by the operator's name, sorted; imports no package."""
    return _current().entries


def _current() -> _EntryScan:
    global _scan_cache
    now = tuple((folder, _changed(folder)) for folder in sys.path)
    scanned = _scan_cache
    if now != scanned.seen:
        by_name: dict[str, list[Entry]] = {}
        for entry in _scan():
            by_name.setdefault(entry.name, []).append(entry)
        scanned = _scan_cache = _EntryScan(now, dict(sorted(by_name.items())), {})
    return scanned


def _changed(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


def _scan() -> Iterator[Entry]:
    """Yield entries as `importlib.metadata.entry_points`, which fails for all packages if one has damaged metadata."""
    from importlib import metadata  # 10 ms, paid only by a search

    packages: set[str] = set()
    for distribution in metadata.distributions():
        package = "a package without a name"
        try:
            package = distribution.metadata["Name"] or package
            if package.lower() in packages:  # the first on the path is imported
                continue
            packages.add(package.lower())
            points = list(distribution.entry_points.select(group=GROUP))
        except Exception as error:
            _warn(f"the metadata of {package} cannot be read: {_words(error)}")
            continue
        for point in points:
            yield Entry(point.name, f"{package} {distribution.version}", point.value, point)


def load(name: str) -> list[LoadedEntry]:
    """Return the loaded entries of this name, failures included; cached."""
    current = _current()
    loaded = current.loaded.get(name)
    if loaded is None:
        loaded = current.loaded.setdefault(name, [_load(entry) for entry in current.entries.get(name, ())])
    return loaded


def _load(entry: Entry) -> LoadedEntry:
    try:
        value = entry.point.load()
        if isinstance(value, types.ModuleType):
            value = getattr(value, entry.name)
        elif isinstance(value, Mapping):
            value = value[entry.name]
    except (Exception, SystemExit) as error:  # foreign code may raise anything
        return LoadedEntry(entry, None, f"{entry.value} cannot be loaded: {_words(error)}")
    if not (hasattr(value, "attr_defs") or callable(getattr(value, "invoke", None))):
        return LoadedEntry(entry, None, f"{entry.value} is a {type(value).__name__}, and no operator or registration")
    return LoadedEntry(entry, value, "")


def find(name: str) -> Any:
    """Return the operator or registration that an installed package defines under this name, or None.

    None, with a PackageWarning, also where the package cannot be loaded, or two packages give different ones.
    """
    loaded = load(name)
    if not loaded:
        return None
    trouble = troubles(name)
    if trouble:
        _warn(trouble)
    good = _different(loaded)
    return good[0].operator if len(good) == 1 else None


def troubles(name: str) -> str:
    """Return the problems of the packages that define this name; empty without any."""
    loaded = load(name)
    words = [f"package {f.entry.package}: {f.trouble}; mend or remove it" for f in loaded if f.trouble]
    good = _different(loaded)
    if len(good) > 1:
        places = " and ".join(f"{f.entry.package} ({f.entry.value})" for f in good)
        words.append(
            f"{name} is added by {len(good)} installed packages: {places}; remove one, or say which is meant: "
            f"custom_ops=[{name}]"
        )
    return "; ".join(words)


def _different(loaded: list[LoadedEntry]) -> list[LoadedEntry]:
    """Return the entries that loaded, each operator once."""
    good = [f for f in loaded if not f.trouble]
    return [f for i, f in enumerate(good) if all(f.operator is not g.operator for g in good[:i])]


_warned: set[str] = set()


def _warn(text: str) -> None:
    """Warn once per process: an interpreter asks for each version of each operator."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, PackageWarning, stacklevel=2)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
