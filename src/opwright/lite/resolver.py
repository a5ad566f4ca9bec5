"""Resolvers: which registration serves an operator of a file, by name and version.

Lives here: `OpResolver`, `MutableOpResolver`, `BuiltinOpResolver`, the overlay of custom operators on another resolver.
Not here: registrations (registration.py), the errors for what is not found (runtime/resolution.py).

Versions are ranges, both ends included. What serves versions 1 to 3 is never used for version 4: an operator that is
not there is an error when the model is loaded, never a wrong answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.forks import once
from ..ops import registry
from ..ops.definition import Operator
from . import customs
from .format import schema
from .ops import LiteOperator, get, list_names
from .registration import Registration, registration_of


class ResolverEntry(NamedTuple):
    """A kernel for the versions min_version..max_version of an operator."""

    min_version: int
    max_version: int
    kernel: Any


class BuiltinEntry:
    """As Entry, for an operator of the dialect, whose family is imported when its versions or its kernel are asked."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def kernel(self) -> LiteOperator:
        return get(self.name)

    @property
    def min_version(self) -> int:
        return self.kernel.versions[0]

    @property
    def max_version(self) -> int:
        return self.kernel.versions[1]


class OpResolver:
    """What an interpreter asks for kernels. Subclasses define `find_op`."""

    def find_op(self, op: Any, version: int = 1) -> Registration | None:
        """The registration for a builtin operator (a BuiltinOperator, its number or its name) or a custom one (its
        name), in that version; None where there is none."""
        raise TypeError(f"{type(self).__name__} must define find_op(op, version)")

    def find_custom(self, name: str, version: int = 1) -> Registration | None:
        """As find_op, for a custom operator whose name may be that of a builtin one."""
        return self.find_op(name, version)

    def custom_versions(self, name: str) -> list[tuple[int, int]]:
        """The ranges of versions it has of a custom operator, for errors."""
        return []

    def builtin_versions(self, name: str) -> list[tuple[int, int]]:
        """The ranges of versions it has of a builtin operator, for errors."""
        return []

    def custom_names(self) -> list[str]:
        """The custom operators it has, for errors."""
        return []


class MutableOpResolver(OpResolver):
    """A resolver that operators are added to; what is added later goes before what was there.

    >>> resolver = lite.MutableOpResolver()
    >>> resolver.add_builtin("DEPTHWISE_CONV_2D", depthwise, min_version=1, max_version=2)
    >>> resolver.add_custom("Atan", Atan)
    """

    def __init__(self) -> None:
        self._builtins: dict[int, list[ResolverEntry | BuiltinEntry]] = {}
        self._customs: dict[str, list[ResolverEntry | BuiltinEntry]] = {}

    def add_builtin(self, op: Any, registration: Any, min_version: int = 1, max_version: int = 1) -> None:
        """Serve versions min_version..max_version of a builtin operator, before what served them so far.

        op: a BuiltinOperator, its number or its name. registration: a Registration or an @ow.operator. Without
        versions it serves version 1 alone, whatever it could: which versions a kernel takes is said where it is added.
        raises InvalidArgumentError for an operator or a range that is none, TypeError for another registration
        """
        self._builtins.setdefault(_code(op), []).insert(0, _entry(op, registration, min_version, max_version))

    def add_custom(self, name: str, registration: Any, min_version: int = 1, max_version: int = 1) -> None:
        """Serve versions min_version..max_version of the custom operator of that name. Else as add_builtin."""
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(what="a custom operator's name is text", found=repr(name))
        self._customs.setdefault(name, []).insert(0, _entry(name, registration, min_version, max_version))

    def add_all(self, other: MutableOpResolver) -> None:
        """Take over all of another resolver's operators; they go before those that are here."""
        if not isinstance(other, MutableOpResolver):
            raise TypeError(f"add_all takes a MutableOpResolver, found {type(other).__name__}")
        for code, entries in other._builtins.items():
            self._builtins[code] = [*entries, *self._builtins.get(code, [])]
        for name, entries in other._customs.items():
            self._customs[name] = [*entries, *self._customs.get(name, [])]

    def find_op(self, op: Any, version: int = 1) -> Registration | None:
        if isinstance(op, str) and (op in self._customs or op not in schema.BuiltinOperator.__members__):
            return self.find_custom(op, version)
        return _find(self._builtins.get(_code(op, finding=True), ()), version)

    def find_custom(self, name: str, version: int = 1) -> Registration | None:
        return _find(self._customs.get(name, ()), version)

    def custom_versions(self, name: str) -> list[tuple[int, int]]:
        return [(e.min_version, e.max_version) for e in self._customs.get(name, ())]

    def builtin_versions(self, name: str) -> list[tuple[int, int]]:
        return [(e.min_version, e.max_version) for e in self._builtins.get(_code(name, finding=True), ())]

    def custom_names(self) -> list[str]:
        return sorted(self._customs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._builtins)} builtin and {len(self._customs)} custom operators>"


class BuiltinOpResolver(MutableOpResolver):
    """A resolver that starts with all of Opwright's builtin operators, the custom ones that are shipped (lite/customs),
    and those that installed packages add (ops/installed.py), each imported when a model has it."""

    def __init__(self) -> None:
        super().__init__()
        for name in list_names():
            self._builtins[_code(name)] = [BuiltinEntry(name)]

    def find_custom(self, name: str, version: int = 1) -> Registration | None:
        found = super().find_custom(name, version)
        if found is None:
            shipped = customs.find(name, version)
            found = None if shipped is None else registration_of(shipped)
        if found is None and name.startswith("Flex") and version == 1:
            from .flex import flex_registration  # with it comes the catalogue, which other models do without

            found = flex_registration(name)
        if found is None:
            found = _from_package(name)
            found = None if found is None or version > found.version else found
        return found

    def custom_versions(self, name: str) -> list[tuple[int, int]]:
        found = super().custom_versions(name) + customs.versions_of(name)
        added = None if found else _from_package(name)
        return found if added is None else [(1, added.version)]


def _from_package(name: str) -> Registration | None:
    """What an installed package adds under this name."""
    found = registry.from_package(name)
    return None if found is None else registration_of(found)


@once
def default_resolver() -> OpResolver:
    """The builtin and the shipped custom operators, made once; not to be changed."""
    return BuiltinOpResolver()


class Overlay(OpResolver):
    """A resolver in front of another: what the first does not have, the second may."""

    def __init__(self, front: OpResolver, base: OpResolver) -> None:
        self.front, self.base = front, base

    def find_op(self, op: Any, version: int = 1) -> Registration | None:
        return self.front.find_op(op, version) or self.base.find_op(op, version)

    def find_custom(self, name: str, version: int = 1) -> Registration | None:
        return self.front.find_custom(name, version) or self.base.find_custom(name, version)

    def custom_versions(self, name: str) -> list[tuple[int, int]]:
        return self.front.custom_versions(name) + self.base.custom_versions(name)

    def builtin_versions(self, name: str) -> list[tuple[int, int]]:
        return self.front.builtin_versions(name) + self.base.builtin_versions(name)

    def custom_names(self) -> list[str]:
        return sorted({*self.front.custom_names(), *self.base.custom_names()})


class _CustomOpResolver(MutableOpResolver):
    """Custom operators alone, asked for by their names: one may bear the name of a builtin operator."""

    def find_op(self, op: Any, version: int = 1) -> Registration | None:
        return None


CustomOps = Mapping[str, Any] | Iterable[Any] | OpResolver | Operator


def with_customs(base: OpResolver, custom_ops: CustomOps) -> OpResolver:
    """`base` with custom operators before it.

    custom_ops: @ow.operator classes in a list or a set, a mapping from names to them or to Registrations, a resolver
    (all of it goes before), or a list of any of these; of two that serve one version the one given later counts, in a
    set the greater version. Each serves the versions from 1 to its own.
    raises TypeError for anything else; warns where one operator comes from two libraries
    """
    customs = _CustomOpResolver()
    libraries: dict[str, str] = {}
    for found in _flat(custom_ops):
        if isinstance(found, OpResolver):
            base = Overlay(found, Overlay(customs, base) if customs.custom_names() else base)
            customs = _CustomOpResolver()
        else:
            name, kernel = found
            _warn_of_another_library(name, kernel, libraries)
            customs.add_custom(name, kernel, 1, registration_of(kernel).version)
    return Overlay(customs, base) if customs.custom_names() else base


def _warn_of_another_library(name: str, kernel: Any, libraries: dict[str, str]) -> None:
    """Warn where an operator comes from two libraries. libraries: by operator, the one that it came from so far."""
    library = getattr(kernel, "library", None)
    if library is None:
        return
    before = libraries.setdefault(name, library)
    if before != library:
        warnings.warn(
            f"custom_ops: two libraries have an operator {name!r}: {before} and {library}; the latter's is "
            "used. Give one of them, or load_custom_ops(path, {name: function}) with other names.",
            RuntimeWarning,
            stacklevel=4,
        )
        libraries[name] = library


def _flat(custom_ops: CustomOps) -> Iterator[OpResolver | tuple[str, Any]]:
    """The resolvers and the named kernels among what was given."""
    if isinstance(custom_ops, OpResolver):
        yield custom_ops
    elif isinstance(custom_ops, Operator):
        yield custom_ops.name, custom_ops
    elif isinstance(custom_ops, Mapping):
        yield from custom_ops.items()
    elif isinstance(custom_ops, set | frozenset):
        items = [item for part in custom_ops for item in _flat(part)]
        yield from (item for item in items if isinstance(item, OpResolver))
        named = (item for item in items if not isinstance(item, OpResolver))
        yield from sorted(named, key=lambda item: (item[0], registration_of(item[1]).version))
    elif isinstance(custom_ops, Iterable) and not isinstance(custom_ops, str | bytes):
        for item in custom_ops:
            yield from _flat(item)
    else:
        raise TypeError(
            "custom_ops holds @ow.operator classes, mappings from names to Registrations, or resolvers; "
            f"found {custom_ops!r}"[:300]
        )


_NO_OPERATORS = ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES")
MAX_VERSION = 2**31 - 1  # what a file can hold


def _code(op: Any, finding: bool = False) -> int:
    """The number. finding: numbers of the schema that stand for no operator may be asked for, as files name them."""
    if isinstance(op, LiteOperator):
        return op.code
    member = None
    if isinstance(op, str):
        member = schema.BuiltinOperator.__members__.get(op)
    elif isinstance(op, int | np.integer):
        member = schema.enum_members("BuiltinOperator").get(int(op))
    if member is None or (member.name in _NO_OPERATORS and not finding):
        raise InvalidArgumentError(
            what="no builtin operator of this name or number", found=repr(op), wanted="such as 'CONV_2D'"
        )
    return int(member)


def _entry(op: Any, kernel: Any, low: Any, high: Any) -> ResolverEntry:
    name = getattr(op, "name", None) or str(op)
    found = registration_of(kernel)
    for version in (low, high):
        if not isinstance(version, int) or isinstance(version, bool):
            raise InvalidArgumentError(
                op=name,
                what="versions are integers",
                found=f"{low!r}..{high!r}",
                wanted="such as min_version=1, max_version=2",
            )
    if not 1 <= low <= high <= MAX_VERSION:
        raise InvalidArgumentError(
            op=name,
            what="the range of versions is empty",
            found=f"{low}..{high}",
            wanted="1 <= min_version <= max_version",
            do=f"max_version={max(low, found.version)}" if high < low else None,
        )
    return ResolverEntry(low, high, found)


def _find(entries: Iterable[ResolverEntry | BuiltinEntry], version: int) -> Registration | None:
    for entry in entries:
        if entry.min_version <= version <= entry.max_version:
            return registration_of(entry.kernel)
    return None
