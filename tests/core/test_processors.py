"""The number of processors that the process may use: its affinity mask, and the quotas of its control groups."""

import os
import subprocess
import sys

import pytest

from opwright.core import processors


@pytest.fixture
def in_groups(tmp_path, monkeypatch):
    """Return a function that sets the files below /sys/fs/cgroup and the text of /proc/self/cgroup."""

    def enter(text, **files):
        (tmp_path / "own").write_text(text)
        for name, content in files.items():
            path = tmp_path / name.replace("__", "/").replace("cpu_", "cpu.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        monkeypatch.setattr(processors, "_CGROUPS", str(tmp_path))
        monkeypatch.setattr(processors, "_OWN", str(tmp_path / "own"))
        processors._quota.cache_clear()

    yield enter
    monkeypatch.undo()
    processors._quota.cache_clear()


@pytest.mark.parametrize(
    ("text", "files", "count"),
    [
        ("0::/\n", {"cpu_max": "250000 100000\n"}, 3),
        ("0::/\n", {"cpu_max": "max 100000\n"}, 1 << 16),
        ("0::/a/b\n", {"a__b__cpu_max": "50000 100000\n"}, 1),
        ("0::/not/there\n", {"cpu_max": "200000 100000\n"}, 2),  # a container sees its own group as the root
        (
            "4:cpu,cpuacct:/x\n",
            {"cpu,cpuacct__x__cpu_cfs_quota_us": "400000\n", "cpu,cpuacct__x__cpu_cfs_period_us": "100000\n"},
            4,
        ),
        ("4:cpu:/x\n", {"cpu__x__cpu_cfs_quota_us": "-1\n", "cpu__x__cpu_cfs_period_us": "100000\n"}, 1 << 16),
        ("0::/\n", {"cpu_max": "much\n"}, 1 << 16),
        ("damaged", {}, 1 << 16),
    ],
)
def test_quotas_of_control_groups(in_groups, text, files, count):
    in_groups(text, **files)
    assert processors._quota() == count
    assert processors.usable_processors() == min(count, processors.usable_processors())


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity masks")
def test_default_threads_follow_the_affinity_mask():
    code = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from opwright.core.processors import usable_processors
from opwright.devices.cpu import CPUDeviceContext
assert usable_processors() == 1
assert "1 cores, 1 threads" in CPUDeviceContext().describe()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "OPWRIGHT_NUM_THREADS": "0"}
    )
    assert done.returncode == 0, done.stderr
