"""The plan cache: plans of files and of functions, which later processes load instead of planning and packing.

Lives here: `find`, `CachedPlans`, keys of files and of modes.
Not here: writing plans (plan_serialization.py), their users (files: lite/compiled/, functions: calls.py),
binding to memory (native/executor.py), the cache's files (cache.py).

A file has a head and a body. The head contains the image of each plan, the machine code of its kernels, and a note of
its owner; the body the packed constants, which are mapped and read in place.
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
from .cache import Mapped, file_state, objects
from .native import executor as native
from .native.executor import Origin, PlanImage, StepOrigin
from .native.host import is_described
from .native.image import runs_images
from .native.sources import list_sources
from .native.store import load_packed, program_digest

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = later("hashlib", "")  # it loads OpenSSL, for models that are given as bytes

_MOST_CONTENT = 64 << 20  # of a model in memory, which is known by its bytes: 0.5 ms a MiB, packing takes longer
_SHOWN_WHEN_PLANNED = frozenset({"kernel", "llvm", "asm", "graph", "plan"})
HEAD = struct.Struct("<QQQ")  # bytes of text, of code; number of integers; these follow


def key_of_file(path: str | os.PathLike[str]) -> str | None:
    """Return a key of a file's current state; None if the file does not exist."""
    try:
        return f"file {file_state(os.stat(path))}"
    except OSError:
        return None


def key_of_bytes(content: Any) -> str | None:
    """Return a key of a model in memory; None if it is too large to hash."""
    content = memoryview(content)
    return f"bytes {hashlib.sha256(content).hexdigest()}" if content.nbytes <= _MOST_CONTENT else None


def key_of_model(path: Any, content: Any) -> str | None:
    """Return a key of the model in a file or, without one, in memory; None if there is none."""
    if path:
        return key_of_file(path)
    return None if content is None else key_of_bytes(content)


_MEASURED, _DETERMINISTIC = " measured", " deterministic"  # under OPWRIGHT_TUNE=1, under `deterministic`, or neither
# Once a model was measured, every process uses that plan, except under `deterministic`, where no plan that depends on
# measurements is used: it rounds differently than before the measurement.


def keys_of(key: str) -> tuple[str, ...]:
    """Return the keys of plans that this process can use, by its switches, the best first."""
    if flags.deterministic:
        return (key + _DETERMINISTIC,)
    return (key + _MEASURED,) if tuning.is_on() else (key + _MEASURED, key)


def key_with_modes(key: str, measured: bool) -> str:
    """Return the key of a plan built by this process. measured: whether all its choices were."""
    return key + (_DETERMINISTIC if flags.deterministic else _MEASURED if measured else "")


def serves(key: str) -> bool:
    """Return whether this process can use the plan of a key."""
    if flags.deterministic or tuning.is_on():
        return key.endswith(_DETERMINISTIC if flags.deterministic else _MEASURED)
    return not key.endswith(_DETERMINISTIC)


class CachedPlans:
    """The cached value of a key: note; plans; helpers: addresses of further kernels, by name. Immutable; shared by all
    users of a key in this process while one references it."""

    __slots__ = ("__weakref__", "helpers", "note", "plans")

    def __init__(self, note: Any, plans: list[PlanImage], helpers: dict[str, int]) -> None:
        self.note, self.plans, self.helpers = note, plans, helpers


_in_use: weakref.WeakValueDictionary[tuple[str, bytes], CachedPlans] = weakref.WeakValueDictionary()
"""Cached plans in use, by the digest of the key and the state of the file, so that constants are mapped once."""


def find(key: str) -> CachedPlans | None:
    """Return the cached plans of a key, for this version of Opwright and this processor; None if missing or damaged."""
    if not may_find() or not is_described():
        return None
    name = digest_of(key)
    mapped = objects(flags.cache_dir).find_mapped(name)
    if mapped is None:
        return None
    cached = _in_use.get((name, mapped.state))
    if cached is not None:
        return cached
    if objects(flags.cache_dir).verify(name, mapped):
        with contextlib.suppress(DataLossError):
            return _in_use.setdefault((name, mapped.state), _read(mapped))
    objects(flags.cache_dir).drop(name)
    return None


def may_find() -> bool:
    """Return whether plans are cached and found: not if `show` prints a stage of planning."""
    return runs_images() and flags.cache_dir is not None and not flags.show & _SHOWN_WHEN_PLANNED


def forget(key: str) -> None:
    """Remove the cached plans of a key."""
    objects(flags.cache_dir).drop(digest_of(key))


def _read(mapped: Mapped) -> CachedPlans:
    head, body = mapped.head, np.frombuffer(mapped.body, np.uint8)
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
    """Return the name of the cached plans of a key."""
    return program_digest("plans", key, _own_sources())


@functools.cache
def _own_sources() -> str:
    return source_digest(os.path.dirname(sys.modules[__name__.partition(".")[0]].__file__ or ""))


def source_digest(root: str) -> str:
    """Return a digest of the sources that plans depend on in addition to those of kernels (`native.sources`).

    Covers names, sizes and times of files. The catalogue, the IR and the interpreter change in a checkout only: an
    installed package is identified by its other sources, which saves 0.6 ms.
    """
    sources: list[str] = []
    packages = ["lite/compiled", "lite/ops", "lite/customs"]
    if not _is_installed(root):
        packages += ["ops", "graph", "lite/runtime", "lite/format"]
    for package in packages:
        list_sources(os.path.join(root, package), sources)
    list_sources(os.path.join(root, "lite"), sources, recursive=False)
    list_sources(os.path.join(root, "compiler", "tuning", "tables"), sources, (".json",))
    return digest("\0".join(sources).encode())


def _is_installed(root: str) -> bool:
    """Return whether an installer wrote the package; the files of a checkout are edited."""
    return os.path.basename(os.path.dirname(root)) in ("site-packages", "dist-packages")
