"""Fork safety: locks that do not outlive their thread, and forks that wait for what cannot be cut in two.

Lives here: `lock`, `held_through_forks`, `in_child`, `generation`.
Not here: caches that several threads fill (forks.py).

A forked child has one thread, the one that called fork. A lock held by any other thread would stay locked in the child
for ever. Two remedies exist, by what a lock protects:

    lock()                 is made free in the child: what it protects is consistent between any two lines
    held_through_forks()   the fork waits until nobody holds it: what runs under it (LLVM) cannot be abandoned halfway

A fork also waits for other threads' imports on this package's behalf, because a module that was being imported stays
locked in the child, and half filled. Python's own fork takes only the lock of the import machinery's tables.

Values that are computed once and shared by all threads: `once`, `cached_property`. `functools.cache` holds no lock
while the function runs: threads that come at once each get an object of their own, and the cache keeps one of them.
That is wrong wherever identity matters (classes, registrations) or where native code holds the object's address. Here
the first result that is stored counts, and every caller gets it; the others are dropped unseen. No lock is held
meanwhile, so the function may import, be interrupted, or fork.
"""

from __future__ import annotations

import _imp
import functools
import importlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

PATIENCE = 30.0
"""Seconds that a fork waits. Compiling a kernel takes up to one; a longer wait is a deadlock with others' locks."""
_OURS = __name__.partition(".")[0]
_PREFIX = f"{_OURS}."

generation = 0
"""How many forks lie between the first process and this one: threads and jobs of another generation are gone."""
_freed: weakref.WeakSet[Any] = weakref.WeakSet()
_held: list[Any] = []
_acquired: dict[int, list[Callable[[], None]]] = {}
"""By thread, what gives back the locks that its fork took. Several threads may fork at once, each with its locks; one
list would hand the thread whose fork ends the locks of the thread whose fork begins."""


def lock() -> Any:
    """Return a new reentrant lock, which a fork's child finds free unless the forking thread itself holds it."""
    new = threading.RLock()
    _freed.add(new)
    return new


def held_through_forks() -> Any:
    """Return a new reentrant lock that lives as long as the process and that no fork happens under.

    Whoever holds it must not wait for another lock that may be held around a fork.
    """
    new = threading.RLock()
    _held.append(new)
    return new


def in_child(hook: Callable[[], None]) -> None:
    """Call a function in the child after each fork, once locks are free again; never where the system has no fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=hook)


def _is_importing(me: int) -> bool:
    """Whether another thread imports a module of this package, or any module on its behalf."""
    locks = getattr(importlib._bootstrap, "_module_locks", {})
    frames: dict[int, Any] = {}
    for name, reference in list(locks.items()):
        owner = getattr(reference(), "owner", None)
        if owner is None or owner == me:
            continue
        if str(name) == _OURS or str(name).startswith(_PREFIX):
            return True
        frames = frames or sys._current_frames()
        frame = frames.get(owner)
        while frame is not None:
            if str(frame.f_globals.get("__name__", "")).startswith(_PREFIX):
                return True
            frame = frame.f_back
    return False


def _before() -> None:
    """Wait until no thread compiles or imports for this package, and keep it so until the fork is done."""
    me, until = threading.get_ident(), time.monotonic() + PATIENCE
    while True:
        remaining = max(until - time.monotonic(), 0.0)
        acquired = _acquired[me] = [each.release for each in _held if each.acquire(timeout=remaining)]
        _imp.acquire_lock()  # from here on no thread begins to import another module
        acquired.append(_imp.release_lock)
        if not _is_importing(me) or time.monotonic() > until:
            return
        _after_in_parent()  # who imports may need what is held here
        time.sleep(0.001)


def _after_in_parent() -> None:
    for release in reversed(_acquired.pop(threading.get_ident(), ())):
        release()


def _after_in_child() -> None:
    global generation
    generation += 1
    _after_in_parent()
    _acquired.clear()  # of threads that were waiting for their own forks
    for each in (*_freed, *_held):
        if not each._is_owned():
            each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


P = ParamSpec("P")
T = TypeVar("T")


def once(function: Callable[P, T]) -> Callable[P, T]:
    """Cache a function's results by its positional arguments: one object for all threads, for the process's life.

    The function may run more than once where threads come at the same time, so it must be free of effects that
    happening twice would make wrong; where it is not, compute under a lock.
    """
    results: dict[tuple[Any, ...], T] = {}

    def first(*arguments: Any) -> T:
        return results.setdefault(arguments, function(*arguments))  # type: ignore[call-arg]

    cached: Any = functools.cache(functools.wraps(function)(first))  # a call that finds a result costs 30 ns: it is C
    forget = cached.cache_clear

    def cache_clear() -> None:
        results.clear()
        forget()

    cached.cache_clear, cached.__wrapped__ = cache_clear, function
    result: Callable[P, T] = cached
    return result


class cached_property(Generic[T]):
    """`functools.cached_property` without a lock: Python 3.11 holds one for all instances, which a fork may cut off."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[T] | T:
        if instance is None:
            return self
        result: T = instance.__dict__.setdefault(self.name, self.compute(instance))
        return result
