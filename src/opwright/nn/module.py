"""Module: an object that owns variables.

Lives here: the base class, the traversal of variables and modules, the name scope.  Not here: layers (layer.py).
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from ..core import nest
from ..eager import variable_state
from ..eager.variable import Variable
from ..ops import dispatch
from ..tracing.name_scopes import name_scope

M = TypeVar("M", bound="Module")
P = ParamSpec("P")
R = TypeVar("R")

_WORD = re.compile(r"(?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z])")


@contextlib.contextmanager
def root_scope() -> Iterator[None]:
    """Return a context manager outside of every name scope."""
    state = dispatch.state
    saved, state.names = state.names, ()
    try:
        yield
    finally:
        state.names = saved


class Module:
    """Base class of objects with variables: attributes that are variables, modules or structures of them are tracked.

    name: by default the class name in snake case.
    raises ValueError for a name that is not a Python identifier
    """

    _ignored: frozenset[str] = frozenset()  # attributes that the traversal skips

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _WORD.sub(r"_\g<0>", type(self).__name__).lower()
        elif not name.isidentifier():
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers "
                "(e.g. a valid class name)."
            )
        self._name = name
        self._scope = "".join(f"{scope}/" for scope in dispatch.state.names)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if variable_state.deferred_restores:  # a checkpoint may have values for the new attribute
            variable_state.restore_attached(value)

    @property
    def name(self) -> str:
        """Name of the module."""
        return getattr(self, "_name", type(self).__name__)

    @property
    def name_scope(self) -> name_scope:
        """Context manager that prefixes names of nodes and variables with `<name>/`."""
        return name_scope(f"{getattr(self, '_scope', '')}{self.name}/")

    @classmethod
    def with_name_scope(cls, method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
        """Decorate a method to run inside the module's name scope."""

        @functools.wraps(method)
        def scoped(self: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped

    def _flatten(
        self, predicate: Callable[[Any], bool], recursive: bool = True, seen: set[int] | None = None
    ) -> Iterator[Any]:
        """Yield the attributes that satisfy `predicate`, each once: by attribute name, then in submodules."""
        seen = {id(self)} if seen is None else seen
        inner: list[Module] = []
        for key in sorted(vars(self)):
            if key in self._ignored:
                continue
            try:
                leaves = nest.flatten(vars(self)[key])
            except (TypeError, ValueError):
                continue  # not a structure, such as a dict with keys of mixed types
            for leaf in leaves:
                if id(leaf) in seen:
                    continue
                if predicate(leaf):
                    seen.add(id(leaf))
                    yield leaf
                if isinstance(leaf, Module):
                    seen.add(id(leaf))
                    inner.append(leaf)
        if recursive:
            for module in inner:
                yield from module._flatten(predicate, True, seen)

    @property
    def variables(self) -> Sequence[Any]:
        """All variables of this module and its submodules."""
        return tuple(self._flatten(lambda leaf: isinstance(leaf, Variable)))

    @property
    def trainable_variables(self) -> Sequence[Any]:
        """Trainable variables of this module and its submodules."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self) -> Sequence[Any]:
        """Non-trainable variables of this module and its submodules."""
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All modules nested in this one."""
        return tuple(self._flatten(lambda leaf: isinstance(leaf, Module)))
