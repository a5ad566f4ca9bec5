"""The number of processors that this process may use.

Lives here: `usable_processors`.
Not here: what they can do (compiler/target.py).
"""

from __future__ import annotations

import functools
import os

_CGROUPS, _OWN = "/sys/fs/cgroup", "/proc/self/cgroup"  # not paths of pathlib, which takes time to import


def usable_processors() -> int:
    """Return the number of processors that this process may use, 1 or more: those of its affinity mask, at most the
    processor time that a container (cgroup) allows, rounded up. More threads than that only wait for each other."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = _count()
    return max(1, min(count, _quota()))


@functools.cache
def _count() -> int:
    return os.cpu_count() or 1  # which takes 50 us


@functools.cache
def _quota() -> int:
    """Return the processors whose time the control group of this process gets, or a large number."""
    quotas = [_read(path, *names) for path in _own_groups() for names in (("cpu.max",), _NAMES_OF_V1)]
    return min((-(-quota // period) for quota, period in filter(None, quotas)), default=1 << 16)


_NAMES_OF_V1 = ("cpu.cfs_quota_us", "cpu.cfs_period_us")


def _own_groups() -> list[str]:
    """Return the folders of the process's control groups that limit processor time, version 2 and 1, with the root of
    each: within a container the process's own path may not be visible."""
    folders = []
    try:
        for line in _text(_OWN).splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                root = os.path.join(_CGROUPS, controllers)
                folders += [root, os.path.join(root, path.lstrip("/"))]
    except (OSError, ValueError):
        pass
    return folders


def _read(folder: str, *names: str) -> tuple[int, int] | None:
    """Return the quota and its period in microseconds, None without a limit."""
    try:
        words = [word for name in names for word in _text(os.path.join(folder, name)).split()]
        quota, period = int(words[0]), int(words[1])
    except (OSError, ValueError, IndexError):
        return None
    return (quota, period) if quota > 0 and period > 0 else None


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
