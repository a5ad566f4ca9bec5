"""The compiled engine of one interpreter: applied when tensors are allocated, switched to once its kernels are there.

Lives here: `Engine`: compiling in the background, the switch at the boundary of a run.
Not here: which nodes are compiled (delegate.py), finding machine code (compiler/native/store.py).

Where the cache holds every kernel that a model needs, the delegate takes its nodes at once. Else the interpreter runs
the model with its own kernels, a thread compiles, and the first run after that is done finds the delegate applied, with
inputs and variables as they were.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ...compiler import plan_cache
from ...compiler.background import Job, compiling
from ...compiler.plan_serialization import save
from ...core import flags
from ..runtime.subgraph import Subgraph
from . import fast_path_notes
from .cached_partitions import UnsavedPlans
from .delegate import CompiledDelegate

_warned = threading.Event()  # that nothing can be compiled here


class Engine:
    """The compiled engine of one interpreter.

    apply: lets a delegate claim nodes of all subgraphs. path: of the model's file, or None; content: its bytes;
    background: whether a thread compiles; late: whether nodes are already prepared, and claimed by `claim_prepared`.
    """

    def __init__(
        self,
        subgraphs: Sequence[Subgraph],
        apply: Callable[[CompiledDelegate], None],
        path: Any,
        content: Any,
        background: bool,
        late: bool = False,
    ) -> None:
        self._subgraphs, self._path, self._background = subgraphs, path, background
        identity = plan_cache.key_of_model(path, content)
        key = identity or f"{[len(s.nodes) for s in subgraphs]} {[len(s.tensors) for s in subgraphs]}"
        self.delegate = CompiledDelegate(key, identity, background)
        self.delegate.late = late
        self._job: Job | None = None
        apply(self.delegate)
        self.delegate.late = False

    def claim_prepared(self) -> bool:
        """Between two runs, claim prepared nodes. Return whether kernels are missing."""
        for s in self._subgraphs:
            if s.delegation is not None and not s.delegation.has(self.delegate):
                s.reclaim(self.delegate)
        return self.compile_missing()

    def compile_missing(self) -> bool:
        """After allocation, begin to compile missing kernels, or to save new plans. Return whether kernels are
        missing."""
        cache = self.delegate.cache
        unsaved, cache.unsaved = cache.unsaved, []
        described = None
        if self._path and (cache.model_key is not None or any(one.covers_model for one in unsaved)):
            described = fast_path_notes.described(self._subgraphs[0])
        if cache.model_key is not None and described is not None:
            fast_path_notes.keep(self._path, cache.model_key, described)
        for one in unsaved:
            keep = functools.partial(_keep, one, self._path, described if one.covers_model else None)
            if self._background:
                compiling.submit(keep, urgent=True)
            else:
                keep()
        if self.delegate.failure is not None:
            _warn(self.delegate.failure)
        elif self.delegate.pending and self._job is None:
            self._job = compiling.submit(self.delegate.take_pending())
            weakref.finalize(self, self._job.cancel).atexit = False  # it has no other reader
        return self._job is not None or any(map(self._is_open, self._subgraphs))

    def _is_open(self, subgraph: Subgraph) -> bool:
        """Whether plans for sizes that are determined at run time are still to be built."""
        applied = subgraph.delegation is not None and (subgraph.ready or subgraph.accepted is not None)
        return applied and self.delegate.is_open(subgraph)

    def look(self) -> None:
        """After a run, record sizes if plans for them are to be built."""
        for s in self._subgraphs:
            if s.index in self.delegate.seen or self._is_open(s):
                self.delegate.look(s)

    def wait(self) -> None:
        """Wait for compilation."""
        if self._job is not None:
            self._job.wait()

    def cancel(self) -> None:
        """Cancel compilation, except what has begun."""
        if self._job is not None:
            self._job.cancel()

    def switch(self) -> bool:
        """Between two runs, claim the nodes if their kernels are available. Return whether kernels are still
        missing."""
        job, delegate = self._job, self.delegate
        if job is None and not delegate.seen:
            return any(map(self._is_open, self._subgraphs))
        if job is not None and not job.done:
            return True
        if job is not None and job.lost:
            self._job = None
            return False
        if job is not None:
            delegate.forget_pending()
            if isinstance(job.error, Exception):
                delegate.failure = job.error
        if delegate.failure is None:
            for s in self._subgraphs:
                late = job is not None and s.delegation is not None and not s.delegation.has(delegate)
                if late or s.index in delegate.seen:
                    s.reclaim(delegate)
        self._job = None
        return self.compile_missing()

    def runs_nodes(self) -> bool:
        """Whether nodes are claimed in any subgraph."""
        return any(s.delegation is not None and s.delegation.has(self.delegate) for s in self._subgraphs)

    def withdraw(self) -> None:
        """Restore the claimed nodes, if any."""
        for s in self._subgraphs:
            if s.delegation is not None:
                s.delegation.withdraw(self.delegate)


def _keep(unsaved: UnsavedPlans, path: Any, described: fast_path_notes.SubgraphDescription | None) -> None:
    """Save a subgraph's plans, and the fast path's note if one plan is the entire model of a file."""
    with contextlib.suppress(OSError, MemoryError):
        save(*unsaved[:-1])
        if described is not None:
            fast_path_notes.keep(path, unsaved.key, described)


def _warn(error: Exception) -> None:
    if "time" in flags.show or not _warned.is_set():
        _warned.set()
        text = f"models run without compiled kernels: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
