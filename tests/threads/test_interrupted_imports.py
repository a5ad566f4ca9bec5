"""Ctrl-C at the import of any module: afterwards everything works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import opwright

SCRIPTS = Path(__file__).parent / "interrupted_imports.py"


def interrupted(tmp_path: Path, where: float, scenario: str) -> int:
    """Run a scenario with a KeyboardInterrupt in every module that it imports. Gives the number of modules."""
    environment = {
        **os.environ,
        "OPWRIGHT_CACHE_DIR": os.fspath(tmp_path),
        "OPWRIGHT_COMPILED": "1",
        "OPWRIGHT_BACKGROUND": "0",
    }
    package = os.path.dirname(opwright.__file__)
    done = subprocess.run(
        [sys.executable, os.fspath(SCRIPTS), str(where), package, scenario],
        capture_output=True,
        text=True,
        timeout=900,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return int(done.stdout.split()[-1])


@pytest.mark.slow
def test_an_interrupt_in_the_middle_of_each_module_that_a_trace_imports(tmp_path: Path) -> None:
    assert interrupted(tmp_path, 0.6, "trace") > 150


@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("where", [0.0, 0.3, 0.6, 0.99])
def test_an_interrupt_in_each_module_that_the_whole_package_imports(where: float, tmp_path: Path) -> None:
    assert interrupted(tmp_path, where, "whole") > 700
