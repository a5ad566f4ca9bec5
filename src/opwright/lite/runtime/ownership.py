"""Ownership of an interpreter: one call at a time, and the direct access that its owner may use.

Lives here: `Ownership`, one for each interpreter; `exclusive` and `brief`, decorators of methods that use one;
`DirectInvocation`, a run by one native call; `DirectTensors`, reads and writes that bypass the subgraph.
Not here: the methods, the native call (compiled/plan_registration.py).

Every method that touches tensors, plans or state queries the same object, however the interpreter runs its model:

    exclusive   runs, allocates, resizes, closes, changes delegates: another thread's call meanwhile is a RuntimeError
    brief       copies a tensor: another thread waits for it; while an exclusive call runs it is a RuntimeError

An exclusive call may change the execution plan and the addresses of tensors, so it drops the direct invocation.
`Interpreter.invoke` keeps it: it runs by the direct invocation, and looks for one after a run without it.

The thread that owns an interpreter may call further methods. Kernels of a running model may only read and write
tensors.

`thread` is tested and set in adjacent lines with no call between them, which makes the pair atomic: CPython switches
threads, and delivers signals, only at calls and at the ends of loops. For the same reason `finally` resets it in place
and not by a call, at whose start a KeyboardInterrupt might be raised.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, TypeVar

from ...compiler.native.builtins import Builtins, bound, builtins, objects
from ...core import forks
from ...core.dtypes import string
from ...core.errors import FailedPreconditionError, also
from ...core.named_tuples import NamedTuple
from ..ops import types
from .tensor import ARENA, DYNAMIC, OWN, Tensor


class DirectInvocation(NamedTuple):
    """A run of a whole subgraph by one call.

    run: returns 0, or the status of the step that stopped. recover: called with that status, resumes or raises the
    error. calls_back: whether the run may call Python. follow: resumes in machine code and returns whether the run is
    complete; if not, call recover.
    """

    run: Callable[[], int]
    recover: Callable[[int], Any]
    calls_back: bool = False
    follow: Callable[[], bool] | None = None


class DirectTensors(NamedTuple):
    """Small input and output tensors by index, whose addresses are fixed until the next allocation.

    writable: functions that copy a value into the tensor if it is an array of exactly its dtype and shape, and return
    1, else 0 without effect. readable: functions that return a copy, or a NumPy scalar. follows: whether `move` reports
    outputs that get other memory during a run; otherwise these are excluded.
    """

    writable: dict[int, Callable[[Any], int]]
    readable: dict[int, Callable[[], Any]]
    follows: bool = False

    @classmethod
    def of(cls, inputs: Iterable[Tensor], outputs: Iterable[Tensor], follows: bool = False) -> DirectTensors:
        """Return direct access to those inputs and outputs that qualify."""
        functions = builtins()
        if functions is None:
            return NO_TENSORS
        inputs, outputs = [*inputs], [*outputs]
        writable = {t.index: _writer(t, functions) for t in inputs if t.kind in (ARENA, OWN) and _has_fixed_address(t)}
        reach = cls(writable, {}, follows)
        reach._read([t for t in (*inputs, *outputs) if follows or t.kind != DYNAMIC])
        return reach

    def move(self, outputs: Iterable[Tensor]) -> None:
        """Update outputs that moved to other memory."""
        if self.follows:
            self._read(outputs)

    def _read(self, tensors: Iterable[Tensor]) -> None:
        functions = builtins()
        assert functions is not None, "there are machine codes for what is in reach"
        for t in tensors:
            if _has_fixed_address(t):
                array: Any = t.array
                self.readable[t.index] = array.copy if t.is_object else bound(functions.take, array)
            else:
                self.readable.pop(t.index, None)


NO_TENSORS = DirectTensors({}, {})
MAX_BYTES = 1 << 15  # copied in a microsecond, during which no other Python thread runs


def _has_fixed_address(t: Tensor) -> bool:
    """Return whether the elements are stored as callers exchange them, contiguously, and are cheap to copy."""
    array = t.array
    if array is None or (t.is_object and t.dtype is not string) or t.type.name in types.IN_BYTES:
        return False
    return array.nbytes <= MAX_BYTES and array.flags.c_contiguous and array.flags.aligned


def _writer(t: Tensor, functions: Builtins) -> Callable[[Any], int]:
    """Return the function that copies a value into a tensor."""
    return bound(functions.put_strings, objects(t.array, bytes)) if t.is_object else bound(functions.put, t.array)


UNKNOWN_THREAD = -1  # placeholder for get_ident(), which takes 25 ns, in runs without callbacks

P = ParamSpec("P")
T = TypeVar("T")
Self = TypeVar("Self")


class Ownership:
    """The exclusive use of an interpreter by one thread.

    thread: the owner, 0 for none. running: whether the model runs. is_brief: whether the call is a brief one. torn:
    whether a fork interrupted an exclusive call.

    direct, follow: see DirectInvocation; None if there is no direct invocation. writable, readable: see DirectTensors.
    """

    __slots__ = ("__weakref__", "direct", "follow", "is_brief", "readable", "running", "thread", "torn", "writable")

    def __init__(self) -> None:
        self.thread = 0
        self.running = self.is_brief = self.torn = False
        self.drop()
        _all.add(self)

    def drop(self) -> None:
        """Reset direct invocation and direct tensors, before anything that they depend on changes."""
        self.direct: Callable[[], int] | None = None
        self.follow: Callable[[], bool] | None = None
        self.writable, self.readable = NO_TENSORS.writable, NO_TENSORS.readable

    def refuse(self, what: str) -> None:
        """Raise the error for an attempt to use the interpreter during another call. what: invoked, closed, ..."""
        if self.torn:
            raise also(FailedPreconditionError, RuntimeError)(
                what=f"the interpreter cannot be {what}: another thread used it when the process was forked",
                do="create another interpreter in the child process",
            )
        me, other = get_ident(), self.thread
        user = "another thread" if other == UNKNOWN_THREAD else f"thread {other}"
        caller = "a call from a kernel that it runs" if other == me else f"thread {me} calls, {user} uses it"
        raise also(FailedPreconditionError, RuntimeError)(
            what=f"the interpreter is {what} while it runs",
            found=caller,
            wanted="one call at a time",
            do="create an interpreter for each thread; they can share one lite.Model",
        )

    def check_idle(self, what: str) -> None:
        """Raise the error of `refuse` if one of the interpreter's own kernels makes the call."""
        if self.running:
            self.refuse(what)

    def wait(self, what: str) -> None:
        """Wait a moment for a brief call to end; raise the error for any other call, or one of this thread."""
        if self.thread and (not self.is_brief or self.thread == get_ident()):
            self.refuse(what)
        time.sleep(1e-5)

    def after_fork(self) -> None:
        """Reset the state in the child process, where the owner may be a thread that no longer exists."""
        self.drop()
        if self.thread not in (0, get_ident()):
            if self.is_brief:
                self.thread, self.is_brief = 0, False
            else:
                self.torn = True


_all: weakref.WeakSet[Ownership] = weakref.WeakSet()


def _after_fork() -> None:
    for ownership in list(_all):
        ownership.after_fork()


forks.in_child(_after_fork)


def exclusive(what: str) -> Callable[[Callable[Concatenate[Self, P], T]], Callable[Concatenate[Self, P], T]]:
    """Return a decorator that gives a method exclusive use of `self._ownership`. what: invoked, closed, ... for errors.

    The method raises RuntimeError (FailedPreconditionError, too) if another thread or a running kernel owns it.
    """

    def decorate(method: Callable[Concatenate[Self, P], T]) -> Callable[Concatenate[Self, P], T]:
        @functools.wraps(method)
        def call(self: Self, /, *arguments: P.args, **named: P.kwargs) -> T:
            ownership: Ownership = self._ownership  # type: ignore[attr-defined]
            me = get_ident()
            if ownership.thread == me:
                if ownership.running:
                    ownership.refuse(what)
                ownership.drop()
                return method(self, *arguments, **named)
            while ownership.thread:
                ownership.wait(what)
            ownership.thread = me
            try:
                ownership.drop()
                return method(self, *arguments, **named)
            finally:
                ownership.thread = 0

        return call

    return decorate


def brief(what: str) -> Callable[[Callable[Concatenate[Self, P], T]], Callable[Concatenate[Self, P], T]]:
    """Return a decorator for a method that uses the interpreter briefly. what: read, written, ... for errors.

    The method waits for another thread's brief call, and raises RuntimeError if another thread runs the model.
    """

    def decorate(method: Callable[Concatenate[Self, P], T]) -> Callable[Concatenate[Self, P], T]:
        @functools.wraps(method)
        def call(self: Self, /, *arguments: P.args, **named: P.kwargs) -> T:
            ownership: Ownership = self._ownership  # type: ignore[attr-defined]
            me = get_ident()
            if ownership.thread == me:
                return method(self, *arguments, **named)
            while ownership.thread:
                ownership.wait(what)
            ownership.thread = me
            ownership.is_brief = True
            try:
                return method(self, *arguments, **named)
            finally:
                ownership.is_brief = False
                ownership.thread = 0

        return call

    return decorate
