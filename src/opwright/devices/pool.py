"""`DeviceContextPool`: exactly one context for each place; copies of arrays between places.

Lives here: the pool and the registry of kinds of places; `transfer`.
Not here: the contexts; which copies wait, the place of an array (memory.py).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from ..core.errors import AlreadyExistsError, NotFoundError
from ..core.lazy_imports import is_abandoned, note_origin
from ..core.places import CPUPlace, CUDAPinnedPlace, Place, place_of
from .context import DeviceContext
from .memory import place_of_array

Factory = Callable[[Place], DeviceContext]


def _cpu(place: Place) -> DeviceContext:
    from .cpu import CPUDeviceContext

    return CPUDeviceContext(place)


def _cuda(place: Place) -> DeviceContext:
    from .cuda import CUDADeviceContext

    return CUDADeviceContext(place)


def _pinned(place: Place) -> DeviceContext:
    from .cuda import CUDAPinnedDeviceContext

    return CUDAPinnedDeviceContext(place)


def _simulated(place: Place) -> DeviceContext:
    from .simulated import SimulatedDeviceContext

    return SimulatedDeviceContext(place)


_factories: dict[str, Factory] = {"cpu": _cpu, "gpu": _cuda, "pinned": _pinned, "sim": _simulated}
_BUILT_IN = frozenset(_factories)


def register_place_kind(kind: str, factory: Factory, *, replace: bool = False) -> None:
    """Register a kind of place, so that the pool creates contexts for it.

    kind: the word of the Place subclass. factory: returns the context of a place; called once for each place. replace:
    replace a factory registered earlier; its contexts stay.

    >>> class NPUPlace(ow.core.places.Place):
    ...     kind = "npu"
    >>> register_place_kind("npu", NPUDeviceContext)

    raises AlreadyExistsError if the kind has a factory and `replace` is false, or if it is one of this package's own
    """
    if kind in _factories and not is_abandoned(_factories[kind]) and (not replace or kind in _BUILT_IN):
        raise AlreadyExistsError(
            op="register_place_kind",
            what=f"places of kind {kind!r} have a device context already",
            do="choose another word" if kind in _BUILT_IN else "replace=True to replace it",
        )
    _factories[kind] = factory
    note_origin(factory)


def kinds_of_places() -> list[str]:
    """Return the kinds of places that have a device context, sorted."""
    return sorted(_factories)


class DeviceContextPool:
    """The device contexts of this process, by place; each is created on first use.

    There is one pool: `DeviceContextPool()` returns it, as `DeviceContextPool.instance()` does.

    >>> pool = DeviceContextPool.instance()
    >>> pool.get(CPUPlace()) is pool.get("cpu")
    True
    """

    _instance: ClassVar[DeviceContextPool | None] = None
    _instance_lock: ClassVar[Any] = threading.Lock()

    _contexts: dict[Place, DeviceContext]

    def __new__(cls) -> DeviceContextPool:
        return cls.instance()

    @classmethod
    def _apart(cls) -> DeviceContextPool:
        """Return a separate pool, for tests."""
        pool = object.__new__(cls)
        pool._contexts = {}
        pool._begin()
        _pools.add(pool)
        return pool

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._making: dict[Place, Any] = {}  # a lock for each place, so that a slow device does not block others

    @classmethod
    def instance(cls) -> DeviceContextPool:
        """Return the pool of this process."""
        if cls._instance is None:
            with cls._instance_lock:
                if cls._instance is None:
                    cls._instance = cls._apart()
        return cls._instance

    def get(self, place: Place | str) -> DeviceContext:
        """Return the context of a place: the same object at each call. place: a place, or a name such as "gpu:0".

        raises NotFoundError for a place of an unregistered kind; UnavailableError with cause and remedy if its device
        or library is not available
        """
        place = place_of(place)
        context = self._contexts.get(place)
        if context is not None:
            return context
        with self._lock:
            creation_lock = self._making.setdefault(place, threading.RLock())
        with creation_lock:
            context = self._contexts.get(place)
            if context is None:
                factory = _factories.get(place.kind)
                if factory is None:
                    raise NotFoundError(
                        op="DeviceContextPool",
                        what=f"there is no device context for {place!r}",
                        found=f"a place of kind {place.kind!r}",
                        wanted=f"one of the kinds {', '.join(sorted(_factories))}",
                        do=f"register_place_kind({place.kind!r}, ...) with a factory of contexts",
                    )
                context = factory(place)
                with self._lock:
                    self._contexts[place] = context
        return context

    def places(self) -> list[Place]:
        """Return the places that have a context, in order of creation."""
        with self._lock:
            return list(self._contexts)

    def __iter__(self) -> Iterator[DeviceContext]:
        with self._lock:
            return iter(list(self._contexts.values()))

    def __len__(self) -> int:
        return len(self._contexts)

    def __contains__(self, place: object) -> bool:
        return place in self._contexts

    def wait(self) -> None:
        """Wait for the work of all devices."""
        for context in self:
            context.wait()

    def close(self, place: Place | str | None = None) -> None:
        """Close the context of one place, or of all; later calls of `get` create new ones."""
        with self._lock:
            places = list(self._contexts) if place is None else [place_of(place)]
            closing = [self._contexts.pop(p) for p in places if p in self._contexts]
        for context in closing:
            context.close()


_pools: weakref.WeakSet[DeviceContextPool] = weakref.WeakSet()


def _after_fork() -> None:
    """Reset the locks in a forked child. Contexts stay; each handles forks itself."""
    DeviceContextPool._instance_lock = threading.Lock()
    for pool in list(_pools):
        pool._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def transfer(array: Any, place: Place | str) -> Any:
    """Return the array on another place, a copy unless it is there already.

    Waits for both devices; the copy is complete on return. Copies between two devices go through the host. raises as
    `DeviceContextPool.get` if a device is missing
    """
    target = place_of(place)
    source = place_of_array(array)
    if source == target or ({source, target} == {CPUPlace(), CUDAPinnedPlace()} and target == CPUPlace()):
        return array  # page-locked memory is host memory
    pool = DeviceContextPool.instance()
    to = pool.get(target)
    if isinstance(array, np.ndarray | np.generic):
        result = to.to_device(np.asarray(array))
    else:
        of = pool.get(source)
        of.wait()
        host = of.to_host(array)
        result = host if target == CPUPlace() else to.to_device(host)
    to.wait()
    return result
