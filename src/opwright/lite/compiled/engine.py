"""The compiled engine of one interpreter: applied when tensors are allocated, switched to once its kernels are there.

Lives here: `Engine`: compiling in the background, the switch at the boundary of a run; `write_note`, the note for the
fast path: a model's inputs and outputs, for a later process that does not read the file.
Not here: which nodes are compiled (delegate.py), finding machine code (compiler/native/store.py), running a model by
its note (fast_path.py), its plan (cached_partitions.py).

Where the cache holds every kernel that a model needs, the delegate takes its nodes immediately. Otherwise the
interpreter runs the model with its own kernels, a thread compiles, and the first run after that is done finds the
delegate applied, with inputs and variables as they were.
"""

from __future__ import annotations

import contextlib
import functools
import json
import mmap
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compiler import plan_cache
from ...compiler.background import Job, compiling
from ...compiler.cache import objects
from ...compiler.plan_serialization import save
from ...core import dtypes, flags
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import ARENA, Tensor
from .cached_partitions import UnsavedPlans
from .delegate import CompiledDelegate
from .eligibility import is_user_operator, served_elsewhere
from .fast_path import Use, address_of, digest_of, has_places
from .plan_registration import owner_of


class SubgraphDescription(NamedTuple):
    """The content of a note, read while the interpreter is not in use: it is written when it may be.

    inputs, outputs: rows of `_row`; state: those of variable tensors; indices: of these tensors; tensors: the
    subgraph's, whose constants never move.
    once: subgraphs that CALL_ONCE runs; initial: the values they assign, by the variables' containers and names
    content: the model's bytes, None for a file
    """

    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    state: list[dict[str, Any]]
    indices: set[int]
    tensors: list[Tensor]
    once: list[int]
    initial: dict[tuple[str, str], np.ndarray]
    content: bytes | None


def describe_subgraph(subgraph: Subgraph, content: bytes | None) -> SubgraphDescription | None:
    """Describe the main subgraph of a model for a note; None if a note cannot.

    That is the case if a tensor's details are more than a note has, inputs have other shapes than in the file,
    CALL_ONCE does more than assign constants of the file, or a custom operator is not a shipped one, as the file does
    not determine its code.
    """
    customs = (node for s in subgraph.family for node in s.nodes if type(node.options) is bytes)
    if any(is_user_operator(node) or served_elsewhere(node) for node in customs):
        return None
    once = [int(getattr(node.options, "init_subgraph_index", 0)) for node in subgraph.nodes if node.name == "CALL_ONCE"]
    initial: dict[tuple[str, str], np.ndarray] = {}
    for index in dict.fromkeys(once):
        assigned = _assigned(subgraph.family[index])
        if assigned is None:
            return None
        initial |= assigned
    inputs, outputs = ([subgraph.tensors[i] for i in indices] for indices in (subgraph.inputs, subgraph.outputs))
    file = subgraph.model.subgraphs[subgraph.index].tensors
    if any(t.shape != _shape_in_file(file[t.index]) for t in inputs):
        return None
    if not all(t.kind == ARENA and _is_plain(t) and not t.is_variable for t in (*inputs, *outputs)):
        return None
    indices = {*subgraph.inputs, *subgraph.outputs}
    state = [t for t in subgraph.tensors if t.is_variable and _is_plain(t)]
    indices.update(t.index for t in state)

    def rows(group: Sequence[Tensor]) -> list[dict[str, Any]]:
        return [_row(t, _shape_in_file(file[t.index])) for t in group]

    tensors = [*subgraph.tensors]
    return SubgraphDescription(rows(inputs), rows(outputs), rows(state), indices, tensors, once, initial, content)


def _assigned(subgraph: Subgraph) -> dict[tuple[str, str], np.ndarray] | None:
    """Return the constants that a subgraph assigns to variables; None if it does anything else."""
    handles: dict[int, tuple[str, str]] = {}
    values: dict[tuple[str, str], np.ndarray] = {}
    for node in subgraph.nodes:
        if node.name == "VAR_HANDLE" and len(node.tensors_out) == 1:
            names = (getattr(node.options, name, None) or "" for name in ("container", "shared_name"))
            handles[node.tensors_out[0].index] = tuple(names)  # type: ignore[assignment]
            continue
        assigns = node.name == "ASSIGN_VARIABLE" and len(node.tensors_in) == 2
        handle, value = node.tensors_in if assigns else (None, None)
        array = None if value is None else value.constant
        if handle is None or handle.index not in handles or array is None or array.dtype.kind == "O":
            return None
        values[handles[handle.index]] = array
    return values


def write_note(key: str | None, plan_key: str, described: SubgraphDescription) -> None:
    """Write the note of a model, whose only subgraph one cached plan runs entirely, or replace that of another plan.
    key: the model's, None if its file is gone."""
    digest = "" if key is None else digest_of(key)
    before = None if key is None else objects(flags.cache_dir).find(digest)
    cached = plan_cache.find(plan_key)
    if key is None or cached is None or len(cached.plans) != 1:
        return
    note = {} if before is None else json.loads(before)
    if note.get("plan") == plan_key and has_places(note, cached):
        return
    handles = {Use.of_note(row).handle for row in cached.note["parts"][0]["variables"]}
    if not set(cached.plans[0].outside) <= described.indices | handles:
        return
    content = described.content
    places = {i: _place(described.tensors[i].array, content) for i in cached.plans[0].inside}
    initial = [
        {
            "container": container,
            "name": name,
            "dtype": dtypes.as_dtype(array.dtype).name,
            "shape": list(array.shape),
            "bytes": array.nbytes,
            "place": _place(array, content),
        }
        for (container, name), array in described.initial.items()
    ]
    if None in places.values() or any(row["place"] is None for row in initial):
        return
    note = {
        "plan": plan_key,
        "inputs": described.inputs,
        "outputs": described.outputs,
        "state": described.state,
        "places": places,
        "once": described.once,
        "initial": initial,
    }
    objects(flags.cache_dir).keep(digest, json.dumps(note).encode())


def _is_plain(t: Tensor) -> bool:
    return t.sparsity is None and t.blocks is None and not t.is_object


def _place(array: np.ndarray | None, content: bytes | None) -> int | None:
    """Return the offset of a contiguous array's elements in the mapped file or in `content`; None if not there."""
    if array is None or not array.flags.c_contiguous:
        return None
    whole: Any = owner_of(array)
    if not isinstance(whole, mmap.mmap) and (content is None or whole is not content):
        return None
    return address_of(array) - address_of(np.frombuffer(whole, np.uint8))


def _shape_in_file(t: Any) -> tuple[int, ...]:
    return tuple(np.asarray(t.shape).tolist())


def _row(t: Tensor, before: tuple[int, ...]) -> dict[str, Any]:
    """Return a row from which `_tensor` rebuilds a tensor: float32 scales are exact as Python floats. before: its shape
    until tensors are allocated.
    """
    q = t.quantization
    return {
        "index": t.index,
        "name": t.name,
        "type": t.type.name,
        "shape": list(t.shape),
        "before": list(before),
        "signature": None if t.signature is None else [int(n) for n in t.signature],
        "quantization": None
        if q is None
        else [[float(s) for s in q.scale], [int(z) for z in q.zero_point], int(q.quantized_dimension)],
    }


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
        self._subgraphs, self._background = subgraphs, background
        identity = plan_cache.key_of_model(path, content)
        self._model_key: Callable[[], str | None] = (
            functools.partial(plan_cache.key_of_file, path) if path else lambda: identity
        )
        self._content = content if type(content) is bytes else None
        self._notable = bool(path) or self._content is not None  # bytes of other objects may change
        key = identity or f"{[len(s.nodes) for s in subgraphs]} {[len(s.tensors) for s in subgraphs]}"
        self.delegate = CompiledDelegate(key, identity, background)
        self.delegate.late = late
        self._job: Job | None = None
        apply(self.delegate)
        self.delegate.late = False

    def claim_prepared(self) -> bool:
        """Claim prepared nodes, between two runs. Return whether kernels are missing."""
        for s in self._subgraphs:
            if s.delegation is not None and not s.delegation.has(self.delegate):
                s.reclaim(self.delegate)
        return self.compile_missing()

    def compile_missing(self) -> bool:
        """Compile missing kernels, or save new plans, after allocation. Return whether kernels are missing."""
        cache = self.delegate.cache
        unsaved = [one for one in cache.unsaved if one.is_packed]
        cache.unsaved = [one for one in cache.unsaved if not one.is_packed]  # of signatures that are not yet allocated
        described = None
        if self._notable and (cache.model_key is not None or any(one.covers_model for one in unsaved)):
            described = describe_subgraph(self._subgraphs[0], self._content)
        if cache.model_key is not None and described is not None:
            write_note(self._model_key(), cache.model_key, described)
        for one in unsaved:
            save_plans = functools.partial(_save_plans, one, self._model_key, described if one.covers_model else None)
            if self._background:
                compiling.submit(save_plans, urgent=True)
            else:
                save_plans()
        if self.delegate.failure is not None:
            _warn(self.delegate.failure)
        elif self.delegate.pending and self._job is None:
            self._job = compiling.submit(self.delegate.take_pending())
            weakref.finalize(self, self._job.cancel).atexit = False  # it has no other reader
        return self._job is not None or any(map(self._is_open, self._subgraphs))

    def _is_open(self, subgraph: Subgraph) -> bool:
        """Return whether plans for sizes that are determined at run time are still to be built."""
        applied = subgraph.delegation is not None and (subgraph.ready or subgraph.accepted is not None)
        return applied and self.delegate.is_open(subgraph)

    def note_run(self) -> None:
        """Record sizes after a run, if plans for them are to be built."""
        for s in self._subgraphs:
            if s.index in self.delegate.seen or self._is_open(s):
                self.delegate.record_sizes(s)

    def wait(self) -> None:
        """Wait for compilation."""
        if self._job is not None:
            self._job.wait()

    def cancel(self) -> None:
        """Cancel compilation, except what has begun."""
        if self._job is not None:
            self._job.cancel()

    def switch(self) -> bool:
        """Claim the nodes between two runs, if their kernels are available. Return whether kernels are missing."""
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
        """Return whether nodes are claimed in any subgraph."""
        return any(s.delegation is not None and s.delegation.has(self.delegate) for s in self._subgraphs)

    def withdraw(self) -> None:
        """Restore the claimed nodes, if any."""
        for s in self._subgraphs:
            if s.delegation is not None:
                s.delegation.withdraw(self.delegate)


def _save_plans(
    unsaved: UnsavedPlans, model_key: Callable[[], str | None], described: SubgraphDescription | None
) -> None:
    """Save a subgraph's plans, and the fast path's note if one plan is the entire model."""
    with contextlib.suppress(OSError, MemoryError):
        save(*unsaved[:-1])
        if described is not None:
            write_note(model_key(), unsaved.key, described)


def _warn(error: Exception) -> None:
    if "time" in flags.show or not _warned.is_set():
        _warned.set()
        text = f"models run without compiled kernels: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
