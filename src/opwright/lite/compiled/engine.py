"""The compiled engine of one interpreter: applied when tensors are allocated, switched to once its kernels are there.

Lives here: `Engine`: compiling in the background, the switch at the boundary of a run.
Not here: which nodes are compiled (delegate.py), finding machine code (compiler/native/store.py).

Where the cache holds every kernel that a model needs, the delegate takes its nodes at once. Else the interpreter runs
the model with its own kernels, a thread compiles, and the first run after that is done finds the delegate applied, with
inputs and variables as they were.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...compiler.kernels import Unmade
from ...compiler.loops import freezing, frozen
from ...compiler.loops.planning import plan_of
from ...compiler.native.store import compiling_beside, pack
from ...core import flags
from ..runtime.subgraph import Subgraph
from . import shortcut
from .delegate import Cold, CompiledDelegate
from .keeping import Made

_warned = threading.Event()  # that nothing can be compiled here
_one_at_a_time = threading.Lock()


def _after_fork() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Engine:
    """apply: lets a delegate claim nodes of all subgraphs. path: of the model's file, or None; content: its bytes."""

    def __init__(self, subgraphs: Sequence[Subgraph], apply: Callable[[CompiledDelegate], None], path: Any = None,
                 content: Any = None) -> None:  # fmt: skip
        self._subgraphs, self._path = subgraphs, path
        identity = None
        if path:
            identity = frozen.key_of_file(path)
        elif content is not None:
            identity = frozen.key_of_bytes(content)
        self._key = identity or f"{[len(s.nodes) for s in subgraphs]} {[len(s.tensors) for s in subgraphs]}"
        self.delegate = CompiledDelegate(self._key, identity)
        self._job: threading.Thread | None = None
        self._process = 0
        apply(self.delegate)

    def settle(self) -> bool:
        """After tensors are allocated: begin to compile what is missing, or to keep what is new. Whether something is
        missing."""
        made, self.delegate.made = self.delegate.made, None
        if self.delegate.whole is not None and self._path and len(self._subgraphs) == 1:
            shortcut.keep(self._path, self.delegate.whole, self._subgraphs[0])
        if made is not None:
            thread = threading.Thread(target=self._keep, args=(made,), name="opwright-keeper")
            thread.start()
            if not flags.background:
                thread.join()
        if self.delegate.failure is not None:
            _warn(self.delegate.failure)
        elif self.delegate.cold and self._job is None:
            self._process = os.getpid()
            self._job = threading.Thread(target=self._compile, args=(self.delegate.cold,), daemon=True,
                                         name="opwright-compiler")  # fmt: skip
            self._job.start()
        return self._job is not None

    def _compile(self, cold: Iterable[Cold]) -> None:
        with _one_at_a_time:
            try:
                for graph, apart in cold:
                    with pack(f"{self._key} {graph.name}"), compiling_beside():
                        try:
                            plan_of(graph, apart=apart)
                        except Unmade:
                            continue  # what else the graph has is compiled; it is planned again without these
            except Exception as error:
                self.delegate.failure = error

    def _keep(self, made: Made) -> None:
        """Keep a plan for later processes, and where it is all of the model, the short way to it."""
        with _one_at_a_time, contextlib.suppress(OSError, MemoryError):
            freezing.keep(*made)
            if self._path and len(self._subgraphs) == 1:
                shortcut.keep(self._path, made.key, self._subgraphs[0])

    def wait(self) -> None:
        """Until the compiler is done."""
        if self._job is not None and self._process == os.getpid():
            self._job.join()

    def switch(self) -> bool:
        """Between two runs: take the nodes if their kernels are there now. Whether something is missing still."""
        job = self._job
        if job is None or (job.is_alive() and self._process == os.getpid()):
            return job is not None
        self._job, self.delegate.cold = None, []
        if self._process != os.getpid():  # the thread is in the process that this one was forked from
            return False
        if self.delegate.failure is None:
            for s in self._subgraphs:
                if s.delegation is not None and not s.delegation.has(self.delegate):
                    s.retake(self.delegate)
        return self.settle()

    def runs_nodes(self) -> bool:
        """Whether nodes are taken in any subgraph."""
        return any(s.delegation is not None and s.delegation.has(self.delegate) for s in self._subgraphs)

    def withdraw(self) -> None:
        """Give the nodes back, if any are taken."""
        for s in self._subgraphs:
            if s.delegation is not None:
                s.delegation.withdraw(self.delegate)


def _warn(error: Exception) -> None:
    if "time" in flags.show or not _warned.is_set():
        _warned.set()
        text = f"models run without compiled kernels: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
