"""The file of the autotuner's choices: `tuning-<machine>.json` in the cache folder.

Lives here: the machine's name, reading, checking and writing of measurements. Not here: timing (autotuner.py).

A file that is missing, damaged, too large, of another format or another machine counts as empty, and a failure to write
it is not reported. It only selects among the algorithms of this package, so it has no keyed digest; its folder is
trusted by the rule of core/private_files.py. It is replaced atomically, after the current file is read again: of two
concurrent writers one may lose an entry, which is measured again.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..core import flags, forks
from ..core.named_tuples import NamedTuple
from ..core.private_files import cache_folder


class Measured(NamedTuple):
    """The kernel chosen, seconds by kernel, and why others were disqualified."""

    chosen: str
    seconds: dict[str, float]
    out: Mapping[str, str] = MappingProxyType({})

    def __str__(self) -> str:
        times = [f"{name} {s * 1e6:.3g} us" for name, s in sorted(self.seconds.items(), key=lambda pair: pair[1])]
        return ", ".join(times + [f"{name} out: {why}" for name, why in self.out.items()])


FORMAT = 1

MOST_ENTRIES = 2048  # the oldest go

MOST_BYTES = 1 << 22

_lock = forks.lock()

_loaded: dict[str | None, dict[str, Measured]] = {}


@functools.cache
def machine() -> str:
    """Return what timings depend on: processor, cores, system, versions of NumPy and of this package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        ours = version("opwright")
    except PackageNotFoundError:
        ours = "source"
    return "; ".join(
        (
            platform.machine(),
            _processor(),
            f"{os.cpu_count()} cores",
            platform.system(),
            f"numpy {np.__version__}",
            f"opwright {ours}",
        )
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        name = ""
    return name or platform.processor() or "processor"


def path() -> str | None:
    """Return the file of this machine's choices, None without a cache folder. Text: pathlib costs a first load 2 ms."""
    return None if flags.cache_dir is None else os.path.join(flags.cache_dir, _name())


@functools.cache
def _name() -> str:
    import hashlib

    return f"tuning-{hashlib.sha256(machine().encode()).hexdigest()[:16]}.json"


def read() -> dict[str, Measured]:
    """Return the choices that the file had when this process first read it, and the choices written since then."""
    file = path()
    choices = _loaded.get(file)
    if choices is None:
        with _lock:
            choices = _loaded.setdefault(file, _load())
    return choices


def reread() -> None:
    """Discard what was read: the next `read` reads the file again."""
    with _lock:
        _loaded.clear()


def _load() -> dict[str, Measured]:
    try:
        handle = cache_folder(flags.cache_dir).open(_name(), MOST_BYTES)
        if handle is None:
            return {}
        with os.fdopen(handle, "rb") as file:
            content = json.loads(file.read(MOST_BYTES))
        if content["format"] != FORMAT or content["machine"] != machine():
            return {}
        entries = content["choices"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    choices = {key: measured for key, entry in entries if (measured := _entry(entry)) is not None}
    return dict(list(choices.items())[-MOST_ENTRIES:])


def _entry(entry: Any) -> Measured | None:
    """Return an entry of the file, None if it is malformed."""
    try:
        chosen, seconds = entry["chosen"], {str(name): float(s) for name, s in entry["seconds"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    valid = isinstance(chosen, str) and chosen in seconds and all(math.isfinite(s) and s >= 0 for s in seconds.values())
    return Measured(chosen, seconds) if valid else None


def write(key: str, measured: Measured) -> None:
    """Add one choice to the file. A folder that cannot be written is not an error."""
    file = path()
    read()
    with _lock:
        choices = {**_loaded.get(file, {}), **_load()}
        choices.pop(key, None)
        choices[key] = Measured(measured.chosen, {n: s for n, s in measured.seconds.items() if math.isfinite(s)})
        choices = dict(list(choices.items())[-MOST_ENTRIES:])
        _loaded[file] = choices
        content = {
            "format": FORMAT,
            "machine": machine(),
            "choices": {k: {"chosen": m.chosen, "seconds": m.seconds} for k, m in choices.items()},
        }
        text = json.dumps(content, indent=0)
        if len(text.encode()) > MOST_BYTES:
            return
        with contextlib.suppress(OSError):
            cache_folder(flags.cache_dir).write_plain(_name(), [text.encode()])
