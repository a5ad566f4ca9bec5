"""The sweeps of this repository and of the command line, on real workers: processes and Dask.

Lives here: tuning, the operator table, fuzzing, search and bench by their own commands. Not here: `sweep`
(tests/distribute), the reports of search and bench (test_tools_sweeps.py).
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import distribute_kit as kit
import numpy as np
import pytest
from tools_harness import result_of

import opwright as ow

ROOT = pathlib.Path(__file__).parents[2]
LITE = [ROOT / "tests" / folder for folder in ("lite", "lite/ops", "lite/fuzz", "data/tflite")]
EXECUTORS = ["processes:2", "dask:2"]

pytestmark = pytest.mark.slow


@pytest.fixture(params=EXECUTORS)
def executor(request, monkeypatch):
    """The name of an executor whose workers import what the commands of this repository are made of."""
    if request.param.startswith("dask"):
        pytest.importorskip("distributed")
    folders = [str(folder) for folder in (ROOT, ROOT / "src", *LITE)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")]))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    return request.param


def output_of(*command):
    process = subprocess.run(
        [sys.executable, *map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=250
    )
    assert not process.returncode, process.stdout + process.stderr
    return process.stdout


def test_tuning(executor):
    """The same questions are answered as by one process, each with a time for every way."""
    arguments = ("-m", "benchmarks.tune", "copies_int8", "--seconds", "0.001", "--dry-run")
    counts = []
    for options in ((), ("--executor", executor)):
        line = output_of(*arguments, *options).split()
        counts.append(int(line[line.index("questions,") - 1]) + int(line[line.index("too") - 1]))
    assert counts[0] == counts[1] > 0


def test_operator_table(executor):
    arguments = (LITE[1] / "drawn_table.py", "1", "--only=MAXIMUM")
    alone, on_workers = output_of(*arguments), output_of(*arguments, f"--executor={executor}")
    assert "| MAXIMUM scaled | INT64 |" in alone
    assert on_workers == alone


def test_fuzzing(executor):
    assert "500 cases in" in output_of(LITE[2] / "run_fuzz.py", "--cases", "500", "--executor", executor)


def test_search_and_bench(executor, tmp_path):
    weights = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
    model = ow.function(
        lambda x: ow.matmul(x, ow.constant(weights)), input_signature=[ow.TensorSpec([1, 16], ow.float32, name="x")]
    )
    ow.saved_model.save(ow.Module(), tmp_path / "dense", signatures=model)
    x = np.random.default_rng(1).standard_normal((40, 1, 16)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    common = ("search", tmp_path / "dense", "--data", tmp_path / "x.npz", "--quantize", "int8", "--json", "-o")
    alone, on_workers = (
        result_of(*common, tmp_path / name, *options) for name, options in (("a", ()), ("b", ("--executor", executor)))
    )
    assert [row["quantize"] for row in on_workers] == ["float32", "int8"]
    for a, b in zip(alone, on_workers):
        assert pathlib.Path(a["file"]).read_bytes() == pathlib.Path(b["file"]).read_bytes()
        assert (a["bytes"], a["largest_error"]) == (b["bytes"], b["largest_error"])
    (tmp_path / "other.tflite").write_bytes(kit.convert(kit.function()))
    models = [row["file"] for row in on_workers] + [str(tmp_path / "other.tflite")]
    rows = result_of("bench", *models, "--runs", 3, "--executor", executor, "--json")
    assert [row["file"] for row in rows] == models
    assert all(row["seconds"]["invoke_fastest"] > 0 for row in rows)
