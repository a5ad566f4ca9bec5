"""Processes that outlive a test run are found, named and killed: orphans.py."""

import subprocess
import sys

import pytest

SCRIPT = """
import subprocess, sys
import orphans
orphans.adopt()
subprocess.run(["sh", "-c", "setsid sleep 61 & setsid sleep 0.05 & exit 0"], check=True)
print(*orphans.survivors(grace=0.5).values(), sep=";")
print(len(orphans.survivors(grace=0.5)))
"""


@pytest.mark.any_engine
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a subreaper")
def test_a_process_without_a_parent_is_named_and_killed(pytestconfig):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=pytestconfig.rootpath / "tests",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split("\n")[:2] == ["sleep 61", "0"]
