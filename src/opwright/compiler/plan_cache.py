"""The plan cache: plans of earlier processes, of files and of functions, so that a later one plans and packs nothing.

Lives here: `find`, `CachedPlans`, keys of files and of the ways that plans are made.
Not here: writing them (plan_serialization.py), what they are plans of (files: lite/compiled/, functions:
cached_regions.py), binding them to memory (bound_plan.py), the cache's files (cache.py).

A file holds a head and a body. The head: the image of each plan, the machine code of its kernels, and a note of whoever
keeps it. The body: the packed constants, mapped where they are read.
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
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags
from ..core.errors import DataLossError
from ..core.files import digest
from ..core.lazy_imports import later
from . import tuning
from .bound_plan import Origin, PlanImage, StepOrigin
from .cache import Mapped, objects
from .native import executor as native
from .native.host import is_described
from .native.image import runs_images
from .native.store import list_sources, load_packed, program_digest

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = later("hashlib", "")  # it loads OpenSSL, for models that are given as bytes

_MOST_CONTENT = 64 << 20  # of a model in memory, which is known by its bytes: 0.5 ms a MiB, packing takes longer
_SHOWN_WHEN_PLANNED = frozenset({"kernel", "llvm", "asm", "graph", "plan"})
HEAD = struct.Struct("<QQQ")  # bytes of text, of code; number of integers; these follow


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


# ---- the ways a plan may have been made, which its key says ----------------------------------------------------------

_MEASURED, _DETERMINISTIC = " measured", " deterministic"  # under OPWRIGHT_TUNE=1, under `deterministic`, or neither
# Once a model was measured every process takes that plan. Under `deterministic` none does, nor a plan that was made
# when another model had been measured: both round differently than before the measurement.


def keys_of(key: str) -> tuple[str, ...]:
    """The keys of plans that serve this process by its switches, the best first."""
    if flags.deterministic:
        return (key + _DETERMINISTIC,)
    return (key + _MEASURED,) if tuning.is_on() else (key + _MEASURED, key)


def key_with_modes(key: str, measured: bool) -> str:
    """The key of a plan that this process made. measured: whether all its choices were."""
    return key + (_DETERMINISTIC if flags.deterministic else _MEASURED if measured else "")


def serves(key: str) -> bool:
    """Whether the plan of such a key serves this process."""
    if flags.deterministic or tuning.is_on():
        return key.endswith(_DETERMINISTIC if flags.deterministic else _MEASURED)
    return not key.endswith(_DETERMINISTIC)


# ---- what is kept ----------------------------------------------------------------------------------------------------


class CachedPlans:
    """What was kept under a key. note: as it was given; plans; helpers: addresses of further kernels, by name. Never
    changed: all who ask for one key share it, as long as one of them holds it."""

    __slots__ = ("__weakref__", "helpers", "note", "plans")

    def __init__(self, note: Any, plans: list[PlanImage], helpers: dict[str, int]) -> None:
        self.note, self.plans, self.helpers = note, plans, helpers


_held: weakref.WeakValueDictionary[tuple[str, bytes], CachedPlans] = weakref.WeakValueDictionary()
"""What this process holds, by the digest of its key and the state of its file: with one mapping of its constants."""


# ---- reading ---------------------------------------------------------------------------------------------------------


def find(key: str) -> CachedPlans | None:
    """Return what was kept under a key, by this version of Opwright for this processor; None where it is not whole."""
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


def _read(found: Mapped) -> CachedPlans:
    head, body = found.head, np.frombuffer(found.body, np.uint8)
    *sizes, count = HEAD.unpack_from(head)
    text, code, end = itertools.accumulate(sizes, initial=HEAD.size)
    content = json.loads(bytes(head[text:code]))
    if body.size != content["constants"]:
        raise DataLossError(what="damaged constants")
    addresses = load_packed(head[code:end])
    kernels = np.array([addresses[d] for d in content["kernels"]], np.int64)
    numbers = np.frombuffer(head, np.int64, count, end)
    parts = iter(np.split(numbers, np.cumsum(content["lengths"])[:-1]))
    plans = []
    for row in content["plans"]:
        block, in_arena, in_constants = next(parts).copy(), next(parts), next(parts)
        outside, inside = ({number: next(parts) for number in row[name]} for name in ("outside", "inside"))
        if row["steps"]:
            steps = block[: native.ROW * len(row["steps"])].reshape(-1, native.ROW)
            steps[:, 0] = kernels[steps[:, 0]] if kernels.size else 0
        origins = [StepOrigin(Origin(tuple(origin)) if origin else None, name) for name, *origin in row["steps"]]
        memory = row["arena"], row["scratch"]
        plans.append(PlanImage(block, origins, *memory, in_arena, outside, body, in_constants, inside))
    return CachedPlans(content["note"], plans, {name: addresses[d] for name, d in content["helpers"].items()})


def digest_of(key: str) -> str:
    """What plans are kept as under a key."""
    return program_digest("plans", key, _rules())


@functools.cache
def _rules() -> str:
    """Return a digest of what plans depend on besides the compiler: names, sizes and times of the sources that read
    files and define their operators, and of the tables by which kernels are chosen."""
    found: list[str] = []
    root = os.path.dirname(sys.modules[__name__.partition(".")[0]].__file__ or "")
    for room in ("lite/compiled", "lite/ops", "lite/customs"):
        list_sources(os.path.join(root, room), found)
    with contextlib.suppress(OSError):  # the package lies in an archive
        for module in ("importer.py", "quantized_registration.py", "shape_inference.py"):
            stat = os.stat(os.path.join(root, "lite", module))
            found.append(f"{module} {stat.st_size} {stat.st_mtime_ns}")
    list_sources(os.path.join(root, "compiler", "tuning", "tables"), found, (".json",))
    return digest("\0".join(found).encode())
