"""Scope: named variables, in scopes inside scopes.

Lives here: `Scope`, the global one, `scope_guard`.  Not here: what a variable holds (variable.py), who reads and
writes them (running.py).

An operator that runs finds its inputs by name, in the scope it is given or one around it, and has nothing else. A run
makes a scope inside for what it needs on the way and drops it at the end.
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

    A scope made by `new_scope` sees the variables of those around it, and may have its own under the same names, which
    leave the outer ones as they are. Dropping a scope drops those inside; a dropped scope answers nothing any more.
    Used with `with` it is dropped at the end.

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
        """The variable of this scope, made if it has none of that name; scopes around are not asked.

        raises SignatureError for a name that is no text or stands for no variable, FailedPreconditionError for a
        dropped scope
        """
        with self._lock:
            self._alive()
            found = self._vars.get(name) if isinstance(name, str) else None
            if found is None:
                if not isinstance(name, str) or not name or name in (EMPTY, TEMP):
                    raise SignatureError(
                        op="Scope.var",
                        what="a variable has a name of its own",
                        found=repr(name),
                        wanted=f"a text; {EMPTY} and {TEMP} stand for no variable",
                    )
                found = self._vars[name] = ScopeVariable(name)
            return found

    def find_var(self, name: str) -> ScopeVariable | None:
        """The variable of that name in this scope, or in the nearest one around that has it; None if there is none."""
        self._alive()
        scope: Scope | None = self
        while scope is not None:
            found = scope._vars.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def find_local_var(self, name: str) -> ScopeVariable | None:
        """The variable of that name in this very scope, or None."""
        self._alive()
        return self._vars.get(name)

    def find_scope(self, name: str) -> Scope | None:
        """The nearest scope, from this one outward, that has a variable of that name."""
        self._alive()
        scope: Scope | None = self
        while scope is not None and name not in scope._vars:
            scope = scope.parent
        return scope

    def local_var_names(self) -> list[str]:
        """The names in this very scope, in the order they came."""
        with self._lock:
            self._alive()
            return list(self._vars)

    def rename(self, old: str, new: str) -> ScopeVariable:
        """Give a variable of this very scope another name.

        raises NotFoundError where there is none, AlreadyExistsError where the new name is taken, SignatureError where
        it is none
        """
        with self._lock:
            self._alive()
            self._there(old, "rename")
            if not isinstance(new, str) or not new or new in (EMPTY, TEMP):
                raise SignatureError(
                    op="Scope.rename", what="a variable has a name of its own", found=repr(new), wanted="a text"
                )
            if new in self._vars:
                raise AlreadyExistsError(
                    op="Scope.rename",
                    what="the name is taken",
                    found=repr(new),
                    wanted="a name that this scope has not",
                )
            variable = self._vars.pop(old)
            variable.name = new
            self._vars[new] = variable
            return variable

    def erase(self, names: str | Iterable[str]) -> None:
        """Take variables out of this very scope; scopes around keep theirs. Raises NotFoundError for one not there."""
        wanted = [names] if isinstance(names, str) else list(names)
        with self._lock:
            self._alive()
            for name in wanted:
                self._there(name, "erase")
            for name in wanted:
                self._vars.pop(name, None)

    def _there(self, name: str, method: str) -> None:
        if name not in self._vars:
            raise NotFoundError(
                op=f"Scope.{method}",
                what=f"this scope has no variable {name!r}",
                found=list(self._vars),
                wanted="one of its own",
            )

    # ---- scopes inside ---------------------------------------------------------------------------------------------

    def new_scope(self) -> Scope:
        """A scope inside this one, empty."""
        kid = Scope()
        kid.parent = self
        with self._lock:
            self._alive()
            self._kids.append(kid)
        return kid

    @property
    def kids(self) -> tuple[Scope, ...]:
        """The scopes inside, in the order they were made."""
        with self._lock:
            self._alive()
            return tuple(self._kids)

    def drop_kids(self) -> None:
        """Drop every scope inside."""
        with self._lock:
            self._alive()
            kids, self._kids = self._kids, []
        for kid in kids:
            kid._drop()

    def drop(self) -> None:
        """Drop this scope and those inside; the one around forgets it. Dropping it again changes nothing."""
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
        """Whether it was dropped."""
        return self._dropped

    def _alive(self) -> None:
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
        raise TypeError("a Scope is not copied: it is where variables are. Make another with ow.Scope()")

    def __repr__(self) -> str:
        if self._dropped:
            return "<Scope, dropped>"
        depth, scope = 0, self.parent
        while scope is not None:
            depth, scope = depth + 1, scope.parent
        return f"<Scope at depth {depth}: {', '.join(self._vars) or 'no variables'}; {len(self._kids)} inside>"


_outermost = Scope()
_current: contextvars.ContextVar[Scope] = contextvars.ContextVar("opwright scope", default=_outermost)


def scope_or_global(scope: Any) -> Scope:
    """The scope that a run is to use; None stands for the global one. Raises SignatureError for what is no scope."""
    if isinstance(scope, Scope):
        return scope
    if scope is None:
        return _current.get()
    raise SignatureError(
        op="run",
        what="the data of a run is in a scope",
        found=type(scope).__name__,
        wanted="a Scope, or None for the global one",
        do="scope.var(name).set(...)",
    )


def global_scope() -> Scope:
    """The scope that runs use where none is given: the process's, or that of the innermost `scope_guard`."""
    return _current.get()


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[Scope]:
    """Make `scope` the global one inside a `with`, in this thread (and tasks it starts); other threads keep theirs.

    >>> with ow.scope_guard(ow.Scope()) as mine:
    ...     assert ow.global_scope() is mine
    """
    if not isinstance(scope, Scope):
        raise SignatureError(op="scope_guard", what="this is no scope", found=type(scope).__name__, wanted="a Scope")
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)
