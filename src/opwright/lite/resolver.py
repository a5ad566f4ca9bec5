"""Resolvers: which registration serves an operator of a file, by name and version.

Lives here: `OpResolver`, `MutableOpResolver`, `BuiltinOpResolver`, the overlay of custom operators on another resolver.
Not here: registrations (registration.py), the errors for what is not found (runtime/resolution.py).

Versions are ranges, both ends included. What serves versions 1 to 3 is never used for version 4: an operator that is
not there is an error when the model is loaded, never a wrong answer.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..core.errors import InvalidArgumentError
from ..ops.definition import Operator
from .format import schema, versions
from .ops import LiteOperator, get, list_names
from .registration import Registration, registration_of


class Entry(NamedTuple):
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
    """A resolver that operators are added to; what is added later goes before what was there."""

    def __init__(self) -> None:
        self._builtins: dict[int, list[Entry | BuiltinEntry]] = {}
        self._customs: dict[str, list[Entry | BuiltinEntry]] = {}

    def add_builtin(self, op: Any, registration: Any, min_version: int = 1, max_version: int | None = None) -> None:
        """Serve versions min_version..max_version of a builtin operator.

        op: a BuiltinOperator, its number or its name. registration: a Registration or an @ow.operator.
        max_version: by default the registration's version.
        raises InvalidArgumentError for an operator or a range that is none, TypeError for another registration
        """
        self._builtins.setdefault(_code(op), []).insert(0, _entry(str(op), registration, min_version, max_version))

    def add_custom(self, name: str, registration: Any, min_version: int = 1, max_version: int | None = None) -> None:
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
        return _find(self._builtins.get(_code(op), ()), version)

    def find_custom(self, name: str, version: int = 1) -> Registration | None:
        return _find(self._customs.get(name, ()), version)

    def custom_versions(self, name: str) -> list[tuple[int, int]]:
        return [(e.min_version, e.max_version) for e in self._customs.get(name, ())]

    def builtin_versions(self, name: str) -> list[tuple[int, int]]:
        return [(e.min_version, e.max_version) for e in self._builtins.get(_code(name), ())]

    def custom_names(self) -> list[str]:
        return sorted(self._customs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._builtins)} builtin and {len(self._customs)} custom operators>"


class BuiltinOpResolver(MutableOpResolver):
    """A resolver that starts with all of Opwright's builtin operators, each imported when a model has it."""

    def __init__(self) -> None:
        super().__init__()
        for name in list_names():
            self._builtins[_code(name)] = [BuiltinEntry(name)]


@functools.cache
def default_resolver() -> OpResolver:
    """The builtin operators, made once; not to be changed."""
    return BuiltinOpResolver()


class Overlay(OpResolver):
    """Custom operators in front of another resolver."""

    def __init__(self, customs: MutableOpResolver, base: OpResolver) -> None:
        self.customs, self.base = customs, base

    def find_op(self, op: Any, version: int = 1) -> Registration | None:
        return self.base.find_op(op, version)

    def find_custom(self, name: str, version: int = 1) -> Registration | None:
        return self.customs.find_custom(name, version) or self.base.find_custom(name, version)

    def custom_versions(self, name: str) -> list[tuple[int, int]]:
        return self.customs.custom_versions(name) + self.base.custom_versions(name)

    def builtin_versions(self, name: str) -> list[tuple[int, int]]:
        return self.base.builtin_versions(name)

    def custom_names(self) -> list[str]:
        return sorted({*self.customs.custom_names(), *self.base.custom_names()})


def with_customs(base: OpResolver, custom_ops: Mapping[str, Any] | Iterable[Any]) -> OpResolver:
    """`base` with custom operators before it.

    custom_ops: @ow.operator classes, or a mapping from names to them or Registrations. Raises TypeError.
    """
    customs = MutableOpResolver()
    if isinstance(custom_ops, Mapping):
        items = list(custom_ops.items())
    else:
        items = []
        for op in (custom_ops,) if isinstance(custom_ops, Operator) else custom_ops:
            if not isinstance(op, Operator):
                raise TypeError(
                    f"custom_ops holds @ow.operator classes, or maps names to Registrations; found {op!r}"[:300]
                )
            items.append((op.name, op))
    if not items:
        return base
    for name, kernel in items:
        customs.add_custom(name, kernel)
    return Overlay(customs, base)


def _code(op: Any) -> int:
    if isinstance(op, LiteOperator):
        return op.code
    if isinstance(op, str):
        if op in schema.BuiltinOperator.__members__:
            return int(versions.facts(op)["code"])
    elif isinstance(op, int) and int(op) in schema.enum_members("BuiltinOperator"):
        return int(op)
    raise InvalidArgumentError(
        what="no builtin operator of this name or number", found=repr(op), wanted="such as 'CONV_2D'"
    )


def _entry(name: str, kernel: Any, low: int, high: int | None) -> Entry:
    found = registration_of(kernel)
    high = max(low, found.version) if high is None else high
    if not 1 <= low <= high:
        raise InvalidArgumentError(op=name, what="the range of versions is empty", found=f"{low}..{high}",
                                   wanted="1 <= min_version <= max_version")  # fmt: skip
    return Entry(low, high, found)


def _find(entries: Iterable[Entry | BuiltinEntry], version: int) -> Registration | None:
    for entry in entries:
        if entry.min_version <= version <= entry.max_version:
            return registration_of(entry.kernel)
    return None
