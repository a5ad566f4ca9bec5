"""Bytes of every file that the converter's tests make, under the test's id and how many it has made before.

Each file of tests runs in a process of its own, so that what one keeps is not there for another. A test that fails is
recorded with its outcome: that is for the test to tell, but a comparison should not miss it.

Lives here: running the tests.  Not here: the plugin that notes conversions (pytest_recorder.py).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .outcomes import Entry, entry

FOLDERS = ("tests/lite/convert", "tests/lite/quantize")

_tree: Path


def prepare(tree: Path, folder: Path) -> None:
    """Make this process ready to run units."""
    global _tree
    _tree = tree


def units() -> list[str]:
    """The files of tests, by folder and name."""
    return [
        f"{Path(folder).name}/{path.stem}" for folder in FOLDERS for path in sorted((_tree / folder).glob("test_*.py"))
    ]


def run(unit: str) -> Iterator[Entry]:
    """The entries of a file of tests. Raises RuntimeError where it does not load."""
    path = f"tests/lite/{unit}.py"
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        variables = {
            **os.environ,
            "BASELINE_NOTES": str(notes),
            "OPWRIGHT_COMPILED": "0",
            "PYTHONPATH": os.pathsep.join([str(_tree / "src"), os.environ["PYTHONPATH"]]),
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", path, "-q", "-p", "baseline.pytest_recorder", "-p", "no:cacheprovider"],
            cwd=_tree,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        if not notes.exists():
            words = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
            raise RuntimeError(f"pytest {path} ended with status {done.returncode}:\n{words}")
        result = pickle.loads(notes.read_bytes())
    for key, data in result:
        yield entry(f"{unit}/{key}", data)
