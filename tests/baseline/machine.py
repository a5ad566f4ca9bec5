"""The machine that a record is of, and the environment that makes what it computes repeatable.

Lives here: `identity`, `environment`, `python_path`.

Bits depend on the processor, where NumPy, its BLAS and Opwright choose instructions by its features; on the versions of
NumPy, LLVM and ml_dtypes; and on the C library, whose functions NumPy calls. Records are compared where all of these
are the same. How many cores there are does not matter: everything runs on one thread.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding as llvm

TABLES = (
    "tests",
    "tests/data/tflite",
    "tests/ops",
    "tests/functions",
    "tests/compiler",
    "tests/compiler/lowering",
    "tests/lite",
    "tests/lite/ops",
    "tests/lite/convert",
)
"""Folders of a tree whose modules have rows."""
PACKAGES = ("numpy", "llvmlite", "ml_dtypes")

SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "OPWRIGHT_NUM_THREADS": "1",
    "OPWRIGHT_BACKGROUND": "0",
    "OPWRIGHT_COMPILED": "0",
    "OPWRIGHT_TUNE": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""One thread, nothing in the background, no choice by a clock; who wants the compiled engine turns it on."""


def identity() -> dict[str, Any]:
    """Return the dependencies of results other than the tree."""
    features = sorted(name for name, there in llvm.get_host_cpu_features().items() if there)
    config: dict[str, Any] = np.show_config(mode="dicts")  # type: ignore[assignment]
    blas = config["Build Dependencies"]["blas"]
    return {
        "processor": llvm.get_host_cpu_name(),
        "features": hashlib.sha256(",".join(features).encode()).hexdigest()[:16],
        "system": f"{platform.system()} {platform.machine()}",
        "C library": " ".join(platform.libc_ver()),
        "Python": platform.python_version(),
        "BLAS": f"{blas['name']} {blas['version']}",
        **{name: importlib.metadata.version(name) for name in PACKAGES},
    }


def commit_of(tree: Path) -> str:
    """The commit of a tree, with a + where files differ from it; empty where git does not know it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(tree), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return f"{git('rev-parse', '--short', 'HEAD')}{'+' if git('status', '--porcelain', '-uno') else ''}"


def environment(folder: Path) -> dict[str, str]:
    """The variables of processes that compute. folder: for what they keep while they run."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPWRIGHT_") or k == "OPWRIGHT_BENCH_MODELS"}
    here = str(Path(__file__).resolve().parents[1])
    return {**kept, **SETTINGS, "OPWRIGHT_CACHE_DIR": str(folder), "PYTHONPATH": here}


def python_path(tree: Path) -> list[str]:
    """Where processes that compute import from, first of all."""
    return [str(tree / "src"), *(str(tree / name) for name in TABLES), str(tree)]
