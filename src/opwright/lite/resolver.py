"""Resolvers: the registration for an operator of a file, by name and version.

Lives here: `OpResolver`, `MutableOpResolver`, `BuiltinOpResolver`, the overlay of custom operators on another resolver.
Not here: registrations (registration.py), the errors for missing operators (runtime/model_loader.py).

Versions are ranges, both ends included. A kernel for versions 1 to 3 is never used for version 4: a missing operator is
an error when the model is loaded, never a wrong result.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.forks import once
from ..core.lazy_imports import later
from ..core.named_tuples import NamedTuple
from ..ops import registry
from ..ops.definition import Operator
from .format import schema
from .ops import LiteOperator, get, list_names
from .registration import Registration, registration_of

if TYPE_CHECKING:
    from . import customs
else:  # not needed by models of builtin operators
    customs = later(".customs", __package__)


class ResolverEntry(NamedTuple):
    """A kernel for the versions min_version..max_version of an operator."""

    min_version: int
    max_version: int
    kernel: Any


class BuiltinEntry:
    """An entry for an operator of the dialect, whose family is imported when its versions or its kernel are
    accessed."""

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
    """Source of an interpreter's kernels. Subclasses define `find_op`."""

    def find_op(self, op: Any, version: int = 1) -> Registration | None:
        """Return the registration for a version of a builtin operator (a BuiltinOperator, its number or its name) or a
        custom one (its name); None if there is none."""
        raise TypeError(f"{type(self).__name__} must define find_op(op, version)")

    def find_custom(self, name: str, version: int = 1) -> Registration | None:
        """Return the registration for a custom operator, whose name may equal that of a builtin one."""
        return self.find_op(name, version)

    def custom_versions(self, name: str) -> list[tuple[int, int]]:
        """Return the supported version ranges of a custom operator, for errors."""
        return []

    def builtin_versions(self, name: str) -> list[tuple[int, int]]:
        """Return the supported version ranges of a builtin operator, for errors."""
        return []

    def custom_names(self) -> list[str]:
        """Return the custom operators, for errors."""
        return []


class MutableOpResolver(OpResolver):
    """A resolver to which operators are added; later additions take precedence.

    >>> resolver = lite.MutableOpResolver()
    >>> resolver.add_builtin("DEPTHWISE_CONV_2D", depthwise, min_version=1, max_version=2)
    >>> resolver.add_custom("Atan", Atan)
    """

    def __init__(self) -> None:
        self._builtins: dict[int, list[ResolverEntry | BuiltinEntry]] = {}
        self._customs: dict[str, list[ResolverEntry | BuiltinEntry]] = {}

    def add_builtin(self, op: Any, registration: Any, min_version: int = 1, max_version: int = 1) -> None:
        """Serve versions min_version..max_version of a builtin operator, with precedence over earlier additions.

        op: a BuiltinOperator, its number or its name. registration: a Registration or an @ow.operator. The default is
        version 1, whatever the kernel supports: the range is declared where the kernel is added. raises
        InvalidArgumentError for an invalid operator or range, TypeError for another registration
        """
        self._builtins.setdefault(_code(op), []).insert(0, _entry(op, registration, min_version, max_version))

    def add_custom(self, name: str, registration: Any, min_version: int = 1, max_version: int = 1) -> None:
        """Serve versions min_version..max_version of the custom operator of that name; see add_builtin."""
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(what="a custom operator's name is text", found=repr(name))
        self._customs.setdefault(name, []).insert(0, _entry(name, registration, min_version, max_version))

    def add_all(self, other: MutableOpResolver) -> None:
        """Add all of another resolver's operators, with precedence over those present."""
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
    """A resolver with all of Opwright's builtin operators, the shipped custom ones (lite/customs), and those of
    installed packages (ops/registry.py), each imported when a model uses it."""

    def __init__(self) -> None:
        super().__init__()
        for name in list_names():
            self._builtins[_code(name)] = [BuiltinEntry(name)]

    def find_custom(self, name: str, version: int = 1) -> Registration | None:
        registration = super().find_custom(name, version)
        if registration is None:
            shipped = customs.find(name, version)
            registration = None if shipped is None else registration_of(shipped)
        if registration is None and name.startswith("Flex") and version == 1:
            from .flex import flex_registration  # imports the catalogue, which other models do not need

            registration = flex_registration(name)
        if registration is None:
            registration = _from_package(name)
            registration = None if registration is None or version > registration.version else registration
        return registration

    def custom_versions(self, name: str) -> list[tuple[int, int]]:
        versions = super().custom_versions(name) + customs.versions_of(name)
        added = None if versions else _from_package(name)
        return versions if added is None else [(1, added.version)]


def _from_package(name: str) -> Registration | None:
    """Return the registration of an operator that an installed package provides."""
    operator = registry.from_package(name)
    return None if operator is None else registration_of(operator)


@once
def default_resolver() -> OpResolver:
    """Return the builtin and the shipped custom operators, created once; must not be modified."""
    return BuiltinOpResolver()


class Overlay(OpResolver):
    """A resolver in front of another: the second is searched for operators that the first lacks."""

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
    """Custom operators by name; a name may equal that of a builtin operator."""

    def find_op(self, op: Any, version: int = 1) -> Registration | None:
        return None


CustomOps = Mapping[str, Any] | Iterable[Any] | OpResolver | Operator


def with_customs(base: OpResolver, custom_ops: CustomOps) -> OpResolver:
    """Return `base` with custom operators in front of it.

    custom_ops: @ow.operator classes in a list or a set, a mapping from names to them or to Registrations, a resolver
    (placed in front), or a list of any of these. The later of two for one version counts, in a set the greater
    version. Each serves the versions from 1 to its own. raises TypeError for other objects; warns if an operator comes
    from two libraries
    """
    customs = _CustomOpResolver()
    libraries: dict[str, str] = {}
    for item in _flat(custom_ops):
        if isinstance(item, OpResolver):
            base = Overlay(item, Overlay(customs, base) if customs.custom_names() else base)
            customs = _CustomOpResolver()
        else:
            name, kernel = item
            _warn_of_another_library(name, kernel, libraries)
            customs.add_custom(name, kernel, 1, registration_of(kernel).version)
    return Overlay(customs, base) if customs.custom_names() else base


def _warn_of_another_library(name: str, kernel: Any, libraries: dict[str, str]) -> None:
    """Warn if an operator comes from two libraries. libraries: by operator, its library so far."""
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
    """Yield the resolvers and the named kernels."""
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
MAX_VERSION = 2**31 - 1  # limit of the file format


def _code(op: Any, finding: bool = False) -> int:
    """Return an operator's number. finding: accept numbers of the schema that are not operators, as files may contain
    them."""
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
    checked = registration_of(kernel)
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
            do=f"max_version={max(low, checked.version)}" if high < low else None,
        )
    return ResolverEntry(low, high, checked)


def _find(entries: Iterable[ResolverEntry | BuiltinEntry], version: int) -> Registration | None:
    for entry in entries:
        if entry.min_version <= version <= entry.max_version:
            return registration_of(entry.kernel)
    return None
