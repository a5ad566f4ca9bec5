"""Who uses an interpreter: one call at a time.

Lives here: `Ownership`, one an interpreter; `exclusive` and `brief`, decorators of methods that use one.
Not here: what the methods do.

Every method that touches tensors, plans or state asks the same object, whatever way the interpreter runs its model:

    exclusive   runs, allocates, resizes, closes, changes delegates: another thread's call meanwhile is a RuntimeError
    brief       copies a tensor: another thread waits for it; while an exclusive call runs it is a RuntimeError

An exclusive call may change the execution plan and the addresses of tensors, so it drops the direct invocation
(direct_invocation.py). `Interpreter.invoke` keeps it: it runs by the direct invocation, and looks for one after a run
without it.

The thread that holds an interpreter may call further methods, but for one thing: while the model runs, its kernels may
read and write tensors and nothing else.

`thread` is tested and set in adjacent lines with no call between them. That makes the pair atomic: CPython switches
threads, and delivers signals, only at calls and at the ends of loops. For the same reason `finally` resets it in place
and not by a call, at whose start a KeyboardInterrupt might come.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Concatenate, ParamSpec, TypeVar

from ...core import forks
from ...core.errors import FailedPreconditionError
from .direct_invocation import NO_TENSORS
from .errors import also

UNKNOWN_THREAD = -1  # instead of a thread's number, which costs 25 ns to ask for: while nothing runs that may call back

P = ParamSpec("P")
T = TypeVar("T")
Self = TypeVar("Self")


class Ownership:
    """thread: which one uses the interpreter, 0 for none; running: whether the model runs; is_brief: whether the call
    is a brief one; torn: whether a fork cut an exclusive call off.

    direct: the call that runs the whole model, None where there is none; follow: see Direct; writable, readable: see
    Reach
    """

    __slots__ = ("__weakref__", "direct", "follow", "is_brief", "readable", "running", "thread", "torn", "writable")

    def __init__(self) -> None:
        self.thread = 0
        self.running = self.is_brief = self.torn = False
        self.drop()
        _all.add(self)

    def drop(self) -> None:
        """Forget the direct ways: something may change that they hang on."""
        self.direct: Callable[[], int] | None = None
        self.follow: Callable[[], bool] | None = None
        self.writable, self.readable = NO_TENSORS.writable, NO_TENSORS.readable

    def refuse(self, what: str) -> None:
        """Raise the error for an interpreter that is `what` (closed, resized, ...) while another call uses it."""
        if self.torn:
            raise also(FailedPreconditionError, RuntimeError)(
                what=f"the interpreter cannot be {what}: another thread used it when the process was forked",
                do="make another interpreter in the child process",
            )
        me, other = get_ident(), self.thread
        user = "another thread" if other == UNKNOWN_THREAD else f"thread {other}"
        found = "a call from a kernel that it runs" if other == me else f"thread {me} calls, {user} uses it"
        raise also(FailedPreconditionError, RuntimeError)(
            what=f"the interpreter is {what} while it runs",
            found=found,
            wanted="one call at a time",
            do="make an interpreter for each thread; they can share one lite.Model",
        )

    def check_idle(self, what: str) -> None:
        """Raise the error for an interpreter that is `what` by one of its own kernels."""
        if self.running:
            self.refuse(what)

    def wait(self, what: str) -> None:
        """Wait a moment for a brief call to end; raise the error where the call is no brief one, or this thread's."""
        if self.thread and (not self.is_brief or self.thread == get_ident()):
            self.refuse(what)
        time.sleep(1e-5)

    def after_fork(self) -> None:
        """In the child: a thread that is gone has left a copy unfinished, or a run. Plans need threads of their own."""
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
    """Let a method have the interpreter, `self._ownership`, to itself. what: "invoked", "closed", ... for the error.

    The method raises RuntimeError (FailedPreconditionError, too) where another thread has it, or where a kernel calls.
    """

    def decorate(method: Callable[Concatenate[Self, P], T]) -> Callable[Concatenate[Self, P], T]:
        @functools.wraps(method)
        def call(self: Self, *arguments: P.args, **named: P.kwargs) -> T:
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
    """Let a method that is over soon have the interpreter. what: "read", "written", ... for the error.

    The method waits for another thread's brief call, and raises RuntimeError where another thread runs the model.
    """

    def decorate(method: Callable[Concatenate[Self, P], T]) -> Callable[Concatenate[Self, P], T]:
        @functools.wraps(method)
        def call(self: Self, *arguments: P.args, **named: P.kwargs) -> T:
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
