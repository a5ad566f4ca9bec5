"""The short way to a model that was planned before: its frozen plan, without reading the file.

Lives here: `Shortcut`: its inputs and outputs, running; `find`, one for a file; `described`, `keep`: a note for it.
Not here: frozen plans (compiler/loops/frozen.py), the interpreter that takes this way until it is asked for more.

An interpreter that runs a whole model as one plan needs of the file no more than the weights that steps read in place.
What it tells of inputs and outputs stands in a note in the cache, beside the frozen plan, under the file's identity.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...compiler.cache import objects
from ...compiler.loops import frozen
from ...compiler.native.executor import StepError, StepFailed
from ...core import flags
from ...core.errors import OpError
from ..format import schema
from ..runtime.direct import Reach
from ..runtime.errors import also
from ..runtime.holding import check_bytes
from ..runtime.tensor import ARENA, Tensor

if TYPE_CHECKING:
    from ..runtime.subgraph import Subgraph


FORMAT = 2  # of notes


class Quantization(NamedTuple):
    """What a tensor's details say of its scale."""

    scale: np.ndarray
    zero_point: np.ndarray
    quantized_dimension: int
    details: None = None


class Shortcut:
    """One model by its frozen plan. inputs, outputs: its tensors, in the file's order; mapping: the file.

    Who calls it owns the interpreter (runtime/ownership.py): nothing here asks whether it runs.
    """

    def __init__(self, mapping: mmap.mmap, note: dict[str, Any], plan: Any) -> None:
        self.mapping, self._note, self._plan = mapping, note, plan
        made: dict[int, Tensor] = {}
        for row in (*note["inputs"], *note["outputs"]):
            if row["index"] not in made:
                made[row["index"]] = _tensor(row)
        self.tensors = made
        self.inputs = [made[row["index"]] for row in note["inputs"]]
        self.outputs = [made[row["index"]] for row in note["outputs"]]
        self._running: Any = None
        self._closed = False

    @property
    def allocated(self) -> bool:
        """Whether it can run."""
        return self._running is not None

    def allocate(self, threads: int) -> None:
        """Memory for inputs, outputs and the arena. Raises ResourceExhaustedError."""
        if self._running is not None or self._closed:
            return
        try:
            check_bytes(self._plan.arena, "the arena of compiled operators")
        except OpError as error:
            raise also(type(error), RuntimeError)(f"{error.message}\nAllocateTensors() failed.") from error
        base = _address(np.frombuffer(self.mapping, np.uint8))
        places = self._note["places"]
        running = self._plan.start(threads, lambda index: base + places[str(index)])
        for t in self.tensors.values():
            t.bind(_zeros(t.shape, t.dtype.np))
        running.connect({i: _address(self.tensors[i].array) for i in self._plan.outside})
        self._running = running

    def run(self) -> bool:
        """Run the model; whether it did. It does not before it is allocated, or where a guard fails: the operators'
        own kernels then say what is wrong."""
        if self._running is None:
            return False
        try:
            self._running.run()
        except StepFailed:
            return False
        return True

    @property
    def direct(self) -> Callable[[], int]:
        """The native call of `run`, once it is allocated: gives 0 where the model has run."""
        entry: Callable[[], int] = self._running.executor.entry
        return entry

    def check(self, status: int) -> None:
        """Raise what a signal's handler raised, where that ended a direct run."""
        with contextlib.suppress(StepError):
            self._running.executor.check(status)

    @property
    def reach(self) -> Reach:
        """Its inputs and outputs, once it is allocated."""
        return Reach.of(self.inputs, self.outputs)

    def close(self) -> None:
        """Let go of its memory; it cannot run any more."""
        self._closed = True
        self._running = None
        for t in self.tensors.values():
            t.bind(None)


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An array at a multiple of 64 bytes."""
    n = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.zeros(n + 64, np.uint8)
    start = -_address(raw) % 64
    return raw[start : start + n].view(dtype).reshape(shape)


def _tensor(row: dict[str, Any]) -> Tensor:
    t = Tensor(row["index"], row["name"], schema.TensorType[row["type"]], tuple(row["shape"]), ARENA)
    t.signature = None if row["signature"] is None else tuple(row["signature"])
    if row["quantization"] is not None:
        scale, zero, axis = row["quantization"]
        t.quantization = Quantization(np.array(scale, np.float32), np.array(zero, np.int64), axis)
    return t


def _row(t: Tensor) -> dict[str, Any]:
    """What `_tensor` makes a tensor of again: float32 scales are exact as Python's floats."""
    q = t.quantization
    return {"index": t.index, "name": t.name, "type": t.type.name, "shape": list(t.shape),
            "signature": None if t.signature is None else [int(n) for n in t.signature],
            "quantization": None if q is None else [[float(s) for s in q.scale], [int(z) for z in q.zero_point],
                                                    int(q.quantized_dimension)]}  # fmt: skip


def _digest(key: str) -> str:
    return hashlib.sha256(f"shortcut {FORMAT} {key}".encode()).hexdigest()


def find(path: Any) -> Shortcut | None:
    """The short way to the model in a file; None where it was not planned before, or not as a whole."""
    key = frozen.key_of_file(path)
    if key is None:
        return None
    content = objects(flags.cache_dir).find(_digest(key))
    if content is None:
        return None
    note = json.loads(content)
    found = frozen.find(note["plan"])
    if found is None:
        return None
    try:
        with open(path, "rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    if frozen.key_of_file(path) != key:
        return None
    return Shortcut(mapping, note, found.plans[0])


class Described(NamedTuple):
    """What a note says of a subgraph, taken while nobody uses the interpreter: it is written when others may.

    inputs, outputs: as `_row` gives them; indices: theirs; tensors: the subgraph's, whose constants never move
    """

    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    indices: set[int]
    tensors: list[Tensor]


def described(subgraph: Subgraph) -> Described | None:
    """Describe the only subgraph of a model for a note; None where there can be none.

    That is where a tensor's details are more than a note holds, where inputs have other shapes than in the file, which
    is what an interpreter begins with, and where there are custom operators: which code serves them is not the file's
    to say.
    """
    if any(type(node.options) is bytes for node in subgraph.nodes):
        return None
    inputs, outputs = ([subgraph.tensors[i] for i in indices] for indices in (subgraph.inputs, subgraph.outputs))
    file = subgraph.model.subgraphs[subgraph.index].tensors
    if any(t.shape != tuple(np.asarray(file[t.index].shape).tolist()) for t in (*inputs, *outputs)):
        return None
    if not all(map(_is_plain, (*inputs, *outputs))):
        return None
    indices = {*subgraph.inputs, *subgraph.outputs}
    return Described([*map(_row, inputs)], [*map(_row, outputs)], indices, [*subgraph.tensors])


def keep(path: Any, plan_key: str, described: Described) -> None:
    """Leave the note for a model in a file, whose only subgraph one frozen plan runs whole. A note for another plan is
    replaced."""
    key = frozen.key_of_file(path)
    digest = "" if key is None else _digest(key)
    before = None if key is None else objects(flags.cache_dir).find(digest)
    if key is None or (before is not None and json.loads(before)["plan"] == plan_key):
        return
    found = frozen.find(plan_key)
    if found is None or len(found.plans) != 1 or not set(found.plans[0].outside) <= described.indices:
        return
    places = {}
    for i in found.plans[0].inside:
        array = described.tensors[i].array
        mapping = None if array is None else _mapping(array)
        if mapping is None:
            return
        places[i] = _address(array) - _address(np.frombuffer(mapping, np.uint8))
    note = {"plan": plan_key, "inputs": described.inputs, "outputs": described.outputs, "places": places}
    objects(flags.cache_dir).keep(digest, json.dumps(note).encode())


def _is_plain(t: Tensor) -> bool:
    return t.kind == ARENA and t.sparsity is None and t.blocks is None and not t.is_variable and not t.is_object


def _mapping(array: np.ndarray) -> mmap.mmap | None:
    """The file that an array's elements lie in."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base
    return base if isinstance(base, mmap.mmap) else None


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
