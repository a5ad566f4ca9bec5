"""Frozen plans: what planning found, as arrays in one file, so that a later process plans and packs nothing.

Lives here: `find`, `Frozen`, `FrozenPlan`, `FrozenRunning`, keys of files.
Not here: keeping them (freezing.py), which nodes they replace (lite/compiled/), the cache's files (../cache.py).

A file holds a head and a body. The head: the steps and words of each plan as integers, which of those are addresses and
of what, the machine code of its kernels, and a note of whoever keeps it. The body: the packed constants, mapped where
they are read. Words that are addresses hold offsets; loading adds where the arena, the constants and the tensors are.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import struct
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import flags
from ...core.digests import digest
from ...core.errors import DataLossError
from ...core.importing import later
from ...core.named_tuples import NamedTuple
from ..cache import Mapped, objects
from ..native import executor as native
from ..native.executor import StepFailed, aligned
from ..native.host import is_described
from ..native.image import runs_images
from ..native.store import list_sources, load_packed, program_digest

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = later("hashlib", "")  # it loads OpenSSL, for models that are given as bytes

_MOST_CONTENT = 64 << 20  # of a model in memory, which is known by its bytes: 0.5 ms a MiB, packing takes longer
_SHOWN_WHEN_PLANNED = frozenset({"kernel", "llvm", "asm", "graph", "plan"})
HEAD = struct.Struct("<QQQQ")  # bytes of meta, of text, of code; number of integers; these follow


def key_of_file(path: str | os.PathLike[str]) -> str | None:
    """Text that stands for a file as it is now: another where the file was written to or replaced. None where there
    is none."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return f"file {stat.st_dev} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"


def key_of_bytes(content: Any) -> str | None:
    """Text that stands for a model in memory; None where that would take too long."""
    content = memoryview(content)
    return f"bytes {hashlib.sha256(content).hexdigest()}" if content.nbytes <= _MOST_CONTENT else None


def key_of_model(path: Any, content: Any) -> str | None:
    """Text that stands for the model in a file or, without one, in memory; None where there is none."""
    if path:
        return key_of_file(path)
    return None if content is None else key_of_bytes(content)


class Origin(NamedTuple):
    """What a step came from: names of operators."""

    origin: tuple[str, ...]


class FrozenStep(NamedTuple):
    """A step, for people. form: what it came from, if anything; name: of its kernel."""

    form: Origin | None
    name: str


class FrozenPlan:
    """A plan as arrays. arena: bytes it works in; outside: the tensors to connect, inputs and outputs; inside: the
    constant tensors that it reads where they are; steps: for people.

    block: steps and words as the executor takes them, with offsets for addresses; in_arena, in_constants, in_tensors:
    which of its words are addresses of what.
    """

    def __init__(self, told: dict[str, Any], numbers: Iterable[np.ndarray], constants: np.ndarray) -> None:
        self.arena: int = told["arena"]
        self.outside: list[int] = told["outside"]
        self.steps = [FrozenStep(Origin(tuple(origin)) if origin else None, name) for name, *origin in told["steps"]]
        self._scratch: int = told["scratch"]
        self.inside: list[int] = told["inside"]
        self._constants = constants
        self._block, self._in_arena, self._in_constants, *tensors = numbers
        self._in_tensors = dict(zip((*self.outside, *self.inside), tensors, strict=True))

    def start(self, threads: int, address: Callable[[int], int]) -> FrozenRunning:
        """The plan, ready to run once its outside is connected.

        address: where the elements of a constant tensor of the file are, by its index
        raises ResourceExhaustedError
        """
        return FrozenRunning(self, threads, address)


class FrozenRunning:
    """A frozen plan bound to an arena of its own and to threads: as `Running`."""

    def __init__(self, plan: FrozenPlan, threads: int, address: Callable[[int], int]) -> None:
        self.plan = plan
        arena = aligned(plan.arena)
        keep = (arena, plan._constants)
        self.executor = native.Executor.of_block(plan._block, len(plan.steps), plan._scratch, threads, keep)
        block = self.executor.block
        block[plan._in_arena] += arena.__array_interface__["data"][0]
        block[plan._in_constants] += plan._constants.__array_interface__["data"][0]
        for index in plan.inside:
            block[plan._in_tensors[index]] += address(index)
        self._at = dict.fromkeys(plan.outside, 0)

    def connect(self, addresses: Mapping[int, int]) -> None:
        """Where inputs and outputs are, by the tensors' indices."""
        for index, address in addresses.items():
            before = self._at[index]
            if before != address:
                self.executor.block[self.plan._in_tensors[index]] += address - before
                self._at[index] = address

    def run(self) -> None:
        """Run all steps. Raises StepFailed naming the operator whose step failed."""
        try:
            self.executor.run()
        except native.StepError as error:
            raise self._failed(error) from None

    def profile(self) -> list[tuple[FrozenStep, float]]:
        """Run all steps, and say how many seconds each took. Raises as run."""
        try:
            nanoseconds = self.executor.run_profiled()
        except native.StepError as error:
            raise self._failed(error) from None
        return [(step, ns * 1e-9) for step, ns in zip(self.plan.steps, nanoseconds.tolist())]

    def _failed(self, error: native.StepError) -> StepFailed:
        step = self.plan.steps[error.step]
        return StepFailed.of(step.form, step.name, error.status)


class Frozen:
    """What was kept. note, meta: as they were given; plans. Never changed: all who ask for one key share it, as long as
    one of them holds it."""

    __slots__ = ("__weakref__", "meta", "note", "plans")

    def __init__(self, note: Any, meta: bytes, plans: list[FrozenPlan]) -> None:
        self.note, self.meta, self.plans = note, meta, plans


_held: weakref.WeakValueDictionary[tuple[str, bytes], Frozen] = weakref.WeakValueDictionary()
"""What this process holds, by the digest of its key and the state of its file: with one mapping of its constants."""


# ---- reading ---------------------------------------------------------------------------------------------------------


def find(key: str) -> Frozen | None:
    """What was kept under a key, by this version of Opwright for this processor; None where there is nothing whole."""
    if not may_find() or not is_described():
        return None
    name = digest_of(key)
    found = objects(flags.cache_dir).find_mapped(name)
    if found is None:
        return None
    held = _held.get((name, found.state))
    if held is not None:
        return held
    if objects(flags.cache_dir).verify(name, found):
        with contextlib.suppress(DataLossError):
            return _held.setdefault((name, found.state), _read(found))
    objects(flags.cache_dir).drop(name)
    return None


def may_find() -> bool:
    """Whether plans are kept and found here: not where a stage of making them is to be shown."""
    return runs_images() and flags.cache_dir is not None and not flags.show & _SHOWN_WHEN_PLANNED


def forget(key: str) -> None:
    """Drop what was kept under a key."""
    objects(flags.cache_dir).drop(digest_of(key))


def _read(found: Mapped) -> Frozen:
    head, body = found.head, np.frombuffer(found.body, np.uint8)
    *sizes, count = HEAD.unpack_from(head)
    meta, text, code, end = itertools.accumulate(sizes, initial=HEAD.size)
    told = json.loads(bytes(head[text:code]))
    if body.size != told["constants"]:
        raise DataLossError(what="damaged constants")
    addresses = load_packed(head[code:end])
    numbers = np.frombuffer(head, np.int64, count, end)
    parts = iter(np.split(numbers, np.cumsum(told["lengths"])[:-1]))
    plans = []
    for plan in told["plans"]:
        block, kernels, *places = (next(parts) for _ in range(4 + len(plan["outside"]) + len(plan["inside"])))
        block = block.copy()
        rows = block[: native.ROW * len(kernels)].reshape(-1, native.ROW)
        rows[:, 0] = np.array([addresses[d] for d in told["kernels"]], np.int64)[kernels] if len(kernels) else 0
        plans.append(FrozenPlan(plan, (block, *places), body))
    return Frozen(told["note"], bytes(head[meta:text]), plans)


def digest_of(key: str) -> str:
    """What plans are kept as under a key."""
    return program_digest("frozen", key, _rules())


@functools.cache
def _rules() -> str:
    """A digest of what plans hang on beside the compiler: names, sizes and times of the rules' sources, and of the
    tables by which kernels are chosen."""
    found: list[str] = []
    root = os.path.dirname(sys.modules[__name__.partition(".")[0]].__file__ or "")
    for room in ("compiled", "ops", "customs"):
        list_sources(os.path.join(root, "lite", room), found)
    list_sources(os.path.join(root, "compiler", "tuning", "tables"), found, (".json",))
    return digest("\0".join(found).encode())
