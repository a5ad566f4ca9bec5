"""Calls in a child process: what it is told, what comes of errors, and that it ends with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import opwright as ow
from opwright.core import children

WORK = """
import os, sys, time
from opwright.core import flags
def note(path, number, content=None):
    with open(path, "w") as file:
        print(flags.num_threads, flags.cache_dir, flags.background, number, content, os.getpid(), file=file)
def wait(path):
    note(path, 0)
    time.sleep(60)
def kill(path):
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "worked_apart.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "noted"


def test_the_child_has_the_import_path_the_flags_and_the_arguments(work: Path) -> None:
    with ow.flags(num_threads=3, cache_dir=work.parent):
        assert children.call_apart("worked_apart:note", [str(work), 7], bytearray(b"abc"), background=False)
    words = work.read_text().split()
    assert words[:5] == ["3", str(work.parent), "False", "7", "b'abc'"]
    assert int(words[5]) != os.getpid()


def test_a_call_that_fails_or_cannot_be_made_reports_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not children.call_apart("worked_apart:note", [str(work / "none"), 7])
    assert not children.call_apart("worked_apart:kill", [str(work)])
    for program in ("", "/usr/bin/an-application", str(work / "python")):
        monkeypatch.setattr(sys, "executable", program)
        assert not children.call_apart("worked_apart:note", [str(work), 7])
    assert not work.exists()


PARENT = "from opwright.core import children; import sys; children.call_apart('worked_apart:wait', [sys.argv[1]])"


def test_the_child_ends_with_its_parent(work: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", PARENT, str(work)], env=environment) as parent:
        try:
            until = time.monotonic() + 30
            while not (work.exists() and work.read_text().endswith("\n")) and time.monotonic() < until:
                time.sleep(0.01)
            child = int(work.read_text().split()[5])
        finally:
            parent.send_signal(signal.SIGKILL)
    while alive(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not alive(child)


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended may wait for somebody to ask how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
