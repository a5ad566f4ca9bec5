"""Fork safety: locks that are free in the child, forks that wait for uninterruptible work, and shared lazy values.

Lives here: `lock`, `held_through_forks`, `in_child`, `generation`; `once`, `cached_property`.
Not here: bounded caches of other modules.

A forked child has one thread, the one that called fork. A lock held by any other thread would remain locked in the
child forever. There are two remedies, depending on the protected data:

    lock()                 is reset in the child: the protected data is consistent between any two lines
    held_through_forks()   the fork waits until it is released: work under it (LLVM) cannot be abandoned halfway

A fork also waits for imports by other threads on this package's behalf, because a module that is being imported remains
locked in the child, and incomplete. Python's own fork acquires only the lock of the import machinery's tables.

Values that are computed once and shared by all threads: `once`, `cached_property`. `functools.cache` holds no lock
while the function runs: concurrent threads receive an object each, and the cache keeps one of them. That is wrong if
identity matters (classes, registrations) or native code holds the object's address. Here the first stored result is
returned to every caller, and the others are discarded. No lock is held meanwhile, so the function may import, be
interrupted, or fork.
"""

from __future__ import annotations

import _imp
import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

PATIENCE = 30.0
"""Maximum wait of a fork in seconds. Compiling a kernel takes up to one; a longer wait is a deadlock."""
_OURS = __name__.partition(".")[0]
_PREFIX = f"{_OURS}."

generation = 0
"""The number of forks between the first process and this one: threads and jobs of another generation are gone."""
_reset_in_child: weakref.WeakSet[Any] = weakref.WeakSet()
_uninterruptible: list[Any] = []
_acquired: dict[int, list[Callable[[], None]]] = {}
"""The release functions of the locks acquired by a thread's fork, by thread, as several threads may fork at once: with
one list, the fork that ends would release the locks of the fork that begins."""


class ReentrantLock(Protocol):
    """`threading.RLock`, with its query of the owner."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> bool: ...
    def __exit__(self, *exc: object) -> None: ...
    def _is_owned(self) -> bool: ...


def lock() -> ReentrantLock:
    """Return a new reentrant lock, which is free in the child of a fork unless the forking thread holds it."""
    new: Any = threading.RLock()
    _reset_in_child.add(new)
    result: ReentrantLock = new
    return result


def held_through_forks() -> ReentrantLock:
    """Return a new reentrant lock that exists for the life of the process and that excludes forks.

    A thread that holds it must not wait for another lock that may be held around a fork.
    """
    new: Any = threading.RLock()
    _uninterruptible.append(new)
    result: ReentrantLock = new
    return result


def in_child(hook: Callable[[], None]) -> None:
    """Call a function in the child after each fork, once locks are reset; never if the system has no fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=hook)


def _is_importing(me: int) -> bool:
    """Return whether another thread imports a module of this package, or any module on its behalf."""
    locks = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
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
    """Wait until no thread compiles or imports for this package, and prevent both until the fork is done."""
    me, until = threading.get_ident(), time.monotonic() + PATIENCE
    while True:
        remaining = max(until - time.monotonic(), 0.0)
        acquired = _acquired[me] = [each.release for each in _uninterruptible if each.acquire(timeout=remaining)]
        _imp.acquire_lock()  # from here on no thread begins to import another module
        acquired.append(_imp.release_lock)
        if not _is_importing(me) or time.monotonic() > until:
            return
        _after_in_parent()  # an importing thread may need these locks
        _wait()


def _wait() -> None:
    """Sleep without the lock of `logging`: its own hook has acquired it, if it was imported after this module, and the
    importing thread may be about to create a logger."""
    lock = getattr(sys.modules.get("logging"), "_lock", None)
    if lock is None or not lock._is_owned():
        time.sleep(0.001)
        return
    lock.release()
    try:
        time.sleep(0.001)
    finally:
        lock.acquire()


def _after_in_parent() -> None:
    for release in reversed(_acquired.pop(threading.get_ident(), ())):
        release()


def _after_in_child() -> None:
    global generation
    generation += 1
    _after_in_parent()
    _acquired.clear()  # of threads that were waiting for their own forks
    for each in (*_reset_in_child, *_uninterruptible):
        if not each._is_owned():
            each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


P = ParamSpec("P")
T = TypeVar("T")


def once(function: Callable[P, T]) -> Callable[P, T]:
    """Cache a function's results by its positional arguments: one object for all threads, for the life of the process.

    Concurrent threads may each run the function, so it must be safe to run more than once; otherwise, compute under a
    lock.
    """
    results: dict[tuple[Any, ...], T] = {}

    def compute(*arguments: Any) -> T:
        return results.setdefault(arguments, function(*arguments))  # type: ignore[call-arg]

    cached: Any = functools.cache(functools.wraps(function)(compute))  # a hit costs 30 ns: it is C
    clear_cache = cached.cache_clear

    def cache_clear() -> None:
        results.clear()
        clear_cache()

    cached.cache_clear, cached.__wrapped__ = cache_clear, function
    result: Callable[P, T] = cached
    return result


class cached_property(Generic[T]):
    """`functools.cached_property` without a lock: Python 3.11 has one for all instances, which a fork may leave
    locked.
    """

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
