"""Many threads use everything at once, and nothing crashes, hangs or gives a wrong answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MINUTES = float(os.environ.get("OPWRIGHT_STRESS_MINUTES", "10"))


def told(stderr: str) -> str:
    """Return the relevant part of a failed process's output: of a crash, the thread that crashed."""
    head, crashed, rest = stderr.partition("Current thread")
    return f"{head[-1500:]}{crashed}{rest[:4000]}" if crashed else stderr[-6000:]


def stress(seconds: float, seed: int, tmp_path: Path) -> None:
    environment = {**os.environ, "OPWRIGHT_CACHE_DIR": os.fspath(tmp_path), "OPWRIGHT_COMPILED": "1"}
    environment.pop("OPWRIGHT_BACKGROUND", None)
    script = os.fspath(Path(__file__).with_name("stress.py"))
    done = subprocess.run(
        [sys.executable, script, str(seconds), str(seed)],
        capture_output=True,
        text=True,
        timeout=seconds + 400,
        env=environment,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{told(done.stderr)}"


@pytest.mark.slow
def test_a_few_seconds(tmp_path: Path) -> None:
    stress(1.0, 0, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_minutes(tmp_path: Path) -> None:
    """OPWRIGHT_STRESS_MINUTES says how many; each round has a cold cache at first."""
    rounds = max(1, round(MINUTES))
    for seed in range(1, rounds + 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        stress(60.0 * MINUTES / rounds, seed, folder)
