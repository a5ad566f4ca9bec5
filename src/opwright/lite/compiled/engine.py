"""The compiled engine of one interpreter: applied when tensors are allocated, switched to once its kernels are there.

Lives here: `Engine`: compiling in the background, the switch at the boundary of a run.
Not here: which nodes are compiled (delegate.py), finding machine code (compiler/native/store.py).

Where the cache holds every kernel that a model needs, the delegate takes its nodes at once. Else the interpreter runs
the model with its own kernels, a thread compiles, and the first run after that is done finds the delegate applied, with
inputs and variables as they were.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...compiler.kernels import Unmade
from ...compiler.loops.planning import plan_of
from ...compiler.native.store import pack
from ...core import flags
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import Tensor
from .delegate import Cold, CompiledDelegate

_warned = threading.Event()  # that nothing can be compiled here
_one_at_a_time = threading.Lock()


def _after_fork() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Engine:
    """apply: lets a delegate claim nodes of all subgraphs. key: text that stands for the model."""

    def __init__(self, subgraphs: Sequence[Subgraph], apply: Callable[[CompiledDelegate], None], key: str) -> None:
        self._subgraphs, self._apply, self._key = subgraphs, apply, key
        self.delegate: CompiledDelegate | None = None
        self._job: threading.Thread | None = None
        self._process = 0

    @property
    def compiling(self) -> bool:
        """Whether kernels that the model needs are being compiled, or are and the next run has not begun."""
        return self._job is not None

    def start(self) -> None:
        """Take nodes, or begin to compile what that needs."""
        self.delegate = delegate = CompiledDelegate(self._key)
        self._apply(delegate)
        if delegate.failure is not None:
            _warn(delegate.failure)
        elif delegate.cold and self._job is None:
            self._process = os.getpid()
            self._job = threading.Thread(target=self._compile, args=(delegate.cold,), daemon=True,
                                         name="opwright-compiler")  # fmt: skip
            self._job.start()

    def _compile(self, cold: Iterable[Cold]) -> None:
        with _one_at_a_time:
            try:
                for graph, apart in cold:
                    with pack(f"{self._key} {graph.name}"):
                        try:
                            plan_of(graph, apart=apart)
                        except Unmade:
                            continue  # what else the graph has is compiled; it is planned again without these
            except Exception as error:
                _warn(error)

    def wait(self) -> None:
        """Until the compiler is done."""
        if self._job is not None and self._process == os.getpid():
            self._job.join()

    def switch(self) -> bool:
        """Between two runs: whether nothing is left to wait for. Takes the nodes if their kernels are there now."""
        job = self._job
        if job is None or (job.is_alive() and self._process == os.getpid()):
            return job is None
        self._job = None
        kept = [(t, t.array.copy()) for t in self._kept() if t.array is not None]
        self.withdraw()
        self.start()
        for t, array in kept:
            if t.array is not None and t.array.shape == array.shape:
                np.copyto(t.array, array)
        return self._job is None

    def _kept(self) -> Iterable[Tensor]:
        """Tensors whose elements stay from run to run."""
        for s in self._subgraphs:
            yield from (t for i, t in enumerate(s.tensors) if t.is_variable or i in s.inputs)

    def withdraw(self) -> None:
        """Give the nodes back, if any are taken."""
        for s in self._subgraphs:
            if s.delegation is not None and self.delegate is not None:
                s.delegation.withdraw(self.delegate)


def _warn(error: Exception) -> None:
    if "time" in flags.show or not _warned.is_set():
        _warned.set()
        text = f"models run without compiled kernels: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def key_of(source: Any, size: int) -> str:
    """Text that stands for a model: its path, if any, and its size."""
    return f"{os.fspath(source) if source else 'bytes'} {size}"
