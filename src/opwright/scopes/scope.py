"""`Scope`: named variables, in nested scopes.

Lives here: `Scope`, the global one, `scope_guard`.  Not here: the contents of a variable (variable.py), reading and
writing them (execution.py).

An operator looks up its inputs by name, in its scope or an outer one, and has no other state. A run creates an inner
scope for its temporaries and drops it at the end.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterable, Iterator
from typing import Any

from ..core import forks
from ..core.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError, SignatureError
from .variable import EMPTY, TEMP, ScopeVariable


class Scope:
    """Variables by name. Safe to use in several threads at once.

    A scope created by `new_scope` sees the variables of outer scopes and may shadow them. Dropping a scope drops its
    inner scopes; every use of a dropped scope is an error. As a context manager it is dropped at the end.

    >>> outer = ow.Scope()
    >>> outer.var("x").set(ow.constant(1.0))
    >>> inner = outer.new_scope()
    >>> inner.find_var("x") is outer.find_var("x"), inner.find_local_var("x")
    (True, None)
    """

    __slots__ = ("__weakref__", "_dropped", "_kids", "_lock", "_vars", "parent")

    def __init__(self) -> None:
        self.parent: Scope | None = None
        self._vars: dict[str, ScopeVariable] = {}
        self._kids: list[Scope] = []
        self._lock = forks.lock()
        self._dropped = False

    # ---- variables -------------------------------------------------------------------------------------------------

    def var(self, name: str) -> ScopeVariable:
        """Return the variable of this scope, created if there is none of that name; outer scopes are not searched.

        raises SignatureError for a name that is not text or stands for no variable, FailedPreconditionError for a
        dropped scope
        """
        with self._lock:
            self._check_alive()
            variable = self._vars.get(name) if isinstance(name, str) else None
            if variable is None:
                if not isinstance(name, str) or not name or name in (EMPTY, TEMP):
                    raise SignatureError(
                        op="Scope.var",
                        what="a variable has a name of its own",
                        found=repr(name),
                        wanted=f"a text; {EMPTY} and {TEMP} stand for no variable",
                    )
                variable = self._vars[name] = ScopeVariable(name)
            return variable

    def find_var(self, name: str) -> ScopeVariable | None:
        """Return the variable of that name in this scope or the nearest outer one; None if there is none."""
        self._check_alive()
        scope: Scope | None = self
        while scope is not None:
            variable = scope._vars.get(name)
            if variable is not None:
                return variable
            scope = scope.parent
        return None

    def find_local_var(self, name: str) -> ScopeVariable | None:
        """Return the variable of that name in this scope, or None."""
        self._check_alive()
        return self._vars.get(name)

    def find_scope(self, name: str) -> Scope | None:
        """Return the nearest scope, from this one outward, that has a variable of that name."""
        self._check_alive()
        scope: Scope | None = self
        while scope is not None and name not in scope._vars:
            scope = scope.parent
        return scope

    def local_var_names(self) -> list[str]:
        """Return the names in this scope, in order of creation."""
        with self._lock:
            self._check_alive()
            return list(self._vars)

    def rename(self, old: str, new: str) -> ScopeVariable:
        """Rename a variable of this scope.

        raises NotFoundError if there is none, AlreadyExistsError if the new name is taken, SignatureError if it is not
        a name
        """
        with self._lock:
            self._check_alive()
            self._check_present(old, "rename")
            if not isinstance(new, str) or not new or new in (EMPTY, TEMP):
                raise SignatureError(
                    op="Scope.rename", what="a variable has a name of its own", found=repr(new), wanted="a text"
                )
            if new in self._vars:
                raise AlreadyExistsError(
                    op="Scope.rename",
                    what="the name is taken",
                    found=repr(new),
                    wanted="a name that is not in this scope",
                )
            variable = self._vars.pop(old)
            variable.name = new
            self._vars[new] = variable
            return variable

    def erase(self, names: str | Iterable[str]) -> None:
        """Remove variables from this scope, not from outer ones. Raises NotFoundError for one that is missing."""
        erased = [names] if isinstance(names, str) else list(names)
        with self._lock:
            self._check_alive()
            for name in erased:
                self._check_present(name, "erase")
            for name in erased:
                self._vars.pop(name, None)

    def _check_present(self, name: str, method: str) -> None:
        if name not in self._vars:
            raise NotFoundError(
                op=f"Scope.{method}",
                what=f"this scope has no variable {name!r}",
                found=list(self._vars),
                wanted="one of its own",
            )

    # ---- scopes inside ---------------------------------------------------------------------------------------------

    def new_scope(self) -> Scope:
        """Return a new, empty scope inside this one."""
        kid = Scope()
        kid.parent = self
        with self._lock:
            self._check_alive()
            self._kids.append(kid)
        return kid

    @property
    def kids(self) -> tuple[Scope, ...]:
        """The inner scopes, in order of creation."""
        with self._lock:
            self._check_alive()
            return tuple(self._kids)

    def drop_kids(self) -> None:
        """Drop every inner scope."""
        with self._lock:
            self._check_alive()
            kids, self._kids = self._kids, []
        for kid in kids:
            kid._drop()

    def drop(self) -> None:
        """Drop this scope and its inner scopes, and detach it from the outer one. Dropping it again has no effect."""
        parent = self.parent
        if parent is not None:
            with parent._lock:
                parent._kids = [kid for kid in parent._kids if kid is not self]
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            self._dropped = True
            kids, self._kids = self._kids, []
            self._vars = {}
            self.parent = None
        for kid in kids:
            kid._drop()

    @property
    def is_dropped(self) -> bool:
        """Whether the scope was dropped."""
        return self._dropped

    def _check_alive(self) -> None:
        if self._dropped:
            raise FailedPreconditionError(
                op="Scope",
                what="this scope was dropped",
                found="a dropped scope",
                wanted="one in use",
                do="scope.new_scope()",
            )

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *exc: object) -> None:
        self.drop()

    def __contains__(self, name: str) -> bool:
        return self.find_var(name) is not None

    def __copy__(self) -> Scope:
        return self

    def __deepcopy__(self, memo: Any) -> Scope:
        raise TypeError("a Scope cannot be copied; create another one with ow.Scope()")

    def __repr__(self) -> str:
        if self._dropped:
            return "<Scope, dropped>"
        depth, scope = 0, self.parent
        while scope is not None:
            depth, scope = depth + 1, scope.parent
        return f"<Scope at depth {depth}: {', '.join(self._vars) or 'no variables'}; {len(self._kids)} inside>"


_process_scope = Scope()
_current: contextvars.ContextVar[Scope] = contextvars.ContextVar("opwright scope", default=_process_scope)


def scope_or_global(scope: Any) -> Scope:
    """Return the scope of a run; None selects the global one. Raises SignatureError for other objects."""
    if isinstance(scope, Scope):
        return scope
    if scope is None:
        return _current.get()
    raise SignatureError(
        op="run",
        what="a run takes its data from a scope",
        found=type(scope).__name__,
        wanted="a Scope, or None for the global one",
        do="scope.var(name).set(...)",
    )


def global_scope() -> Scope:
    """Return the default scope of runs: the process's, or that of the innermost `scope_guard`."""
    return _current.get()


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[Scope]:
    """Set the global scope within a `with` statement, in this thread and tasks it starts; other threads are unaffected.

    >>> with ow.scope_guard(ow.Scope()) as mine:
    ...     assert ow.global_scope() is mine
    """
    if not isinstance(scope, Scope):
        raise SignatureError(op="scope_guard", what="this is not a scope", found=type(scope).__name__, wanted="a Scope")
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)
