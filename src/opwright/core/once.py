"""Values that are computed once and shared by all threads.

Lives here: `once`, `cached_property`.  Not here: locks (forks.py).

`functools.cache` holds no lock while the function runs: threads that come at once each get an object of their own, and
the cache keeps one of them. That is wrong wherever identity matters (classes, registrations) or where native code holds
the object's address. Here the first result that is stored counts, and every caller gets it; the others are dropped
before anybody has seen them. No lock is held meanwhile, so the function may import, be interrupted, or fork.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

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
