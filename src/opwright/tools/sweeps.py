"""Sweeps of the command line: quantization search, `bench` over many models, `op test` on workers.

Lives here: the functions that workers call, the merged reports; commands on ranks of MPI.
Not here: the flow of jobs (distribute/sweeps.py), one conversion, one measurement, one check (conversion.py,
benchmark.py, catalogue.py).
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from .. import distribute, lite
from ..core.files import replacing
from ..distribute.executors import runs_on_each_rank
from .benchmark import Settings, measure_model
from .conversion import QUANTIZE, converter_of, samples_of
from .report import BadFile, notes, out, print_json

FLOAT = "float32"
TIMED_RUNS = 30


def drive_ranks() -> None:
    """Run the command again by `python -m mpi4py.futures` and exit, if `mpiexec` runs it on several ranks.

    Rank 0 then has the command, and the others compute for it. Returns where that is so already, and on one rank.
    """
    if runs_on_each_rank():
        sys.argv = ["mpi4py.futures", "-m", "opwright", *sys.argv[1:]]
        runpy.run_module("mpi4py.futures", run_name="__main__", alter_sys=True)
        sys.exit()


def search(folder: str, data: str, output: str, modes: Sequence[str], executor: str | None, as_json: bool) -> bool:
    """Convert a saved model in every way of `modes`, compare each with float32 on the samples, print one report.

    returns whether every conversion succeeded. raises BadFile
    """
    jobs = distribute.grid(
        folder=[os.path.abspath(folder)],
        data=[os.path.abspath(data)],
        output=[os.path.abspath(output)],
        quantize=[FLOAT, *(mode for mode in modes or QUANTIZE if mode != FLOAT)],
    )
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(f"{output}: {error.strerror or error}") from error
    report = distribute.sweep(quantized, jobs, executor, progress=True)
    rows: list[dict[str, Any]] = [
        {"quantize": trial.parameters["quantize"]}
        | (trial.value or {"error": f"{trial.error.type}: {trial.error.message}" if trial.error else ""})
        for trial in report
    ]
    if as_json:
        print_json(rows)
    else:
        table = Table("quantization", "bytes", "largest error", "of the largest output", "time", title=folder)
        for row in rows:
            if "error" in row:
                table.add_row(row["quantize"], "", row["error"].splitlines()[0], "", "")
                continue
            relative = f"{row['relative_error']:.3%}"
            cells = f"{row['bytes']:,}", f"{row['largest_error']:.3g}", relative, f"{row['seconds'] * 1e6:.1f} us"
            table.add_row(row["quantize"], *cells)
        out().print(table)
    return not report.failures


def quantized(folder: str, data: str, output: str, quantize: str) -> dict[str, Any]:
    """Convert, write `output/NAME-QUANTIZE.tflite`, and compare with float32: bytes, errors, seconds of a run.

    Raises BadFile, OpError
    """
    plain = converter_of(folder)
    samples = samples_of(data, plain)
    reference = plain.convert()
    content = reference
    if quantize != FLOAT:
        converter = converter_of(folder)
        sets, types, needs_samples = QUANTIZE[quantize]
        converter.optimizations = [lite.Optimize.DEFAULT]
        converter.target_spec.supported_ops, converter.target_spec.supported_types = [*sets], [*types]
        if needs_samples:
            converter.representative_dataset = lambda: samples
        content = converter.convert()
    path = os.path.join(output, f"{Path(folder).name}-{quantize}.tflite")
    with replacing(path) as file:
        file.write(content)
    expected, _ = _outputs_of(reference, samples)
    actual, seconds = _outputs_of(content, samples)
    error = max((float(np.abs(a - e).max(initial=0)) for a, e in zip(actual, expected)), default=0.0)
    scale = max((float(np.abs(e).max(initial=0)) for e in expected), default=0.0)
    figures = {"largest_error": error, "relative_error": error / scale if scale else 0.0, "seconds": seconds}
    return {"file": path, "bytes": len(content), **figures}


def _outputs_of(content: bytes, samples: Sequence[dict[str, np.ndarray]]) -> tuple[list[np.ndarray], float]:
    """Return the outputs for all samples in float64, dequantized, and the median seconds of a run."""
    interpreter = lite.Interpreter(model_content=content, num_threads=1)
    runner = interpreter.get_signature_runner(next(iter(interpreter.get_signature_list())))
    arrays = []
    for sample in samples:
        arrays += [np.asarray(array, np.float64) for array in runner(**sample).values()]
    times = []
    for _ in range(TIMED_RUNS):
        start = time.perf_counter()
        runner(**samples[0])
        times.append(time.perf_counter() - start)
    return arrays, float(np.median(times))


# ---- bench -----------------------------------------------------------------------------------------------------------


def bench_models(paths: Sequence[str], settings: Settings, executor: str | None, as_json: bool) -> bool:
    """Time several models on workers and print one table; return whether every model ran."""
    jobs = distribute.grid(path=[os.path.abspath(path) for path in paths], settings=[settings])
    report = distribute.sweep(figures_of, jobs, executor, progress=True)
    if as_json:
        rows = [
            {"file": path, "seconds": trial.value}
            if trial.error is None
            else {"file": path, "error": f"{trial.error.type}: {trial.error.message}"}
            for path, trial in zip(paths, report)
        ]
        print_json(rows)
        return not report.failures
    table = Table("model", "load", "allocate", "first", "median", "fastest", "95 %")
    labels = ("load", "allocate", "invoke_first", "invoke_median", "invoke_fastest", "invoke_95_percent")
    for path, trial in zip(paths, report):
        if trial.error is None:
            table.add_row(path, *(f"{trial.value[label] * 1e6:.1f} us" for label in labels))
        else:
            notes().print(f"{path}: {trial.error.message}")
    out().print(table)
    return not report.failures


def figures_of(path: str, settings: Settings) -> dict[str, float]:
    """Return the times of one model, in seconds. Raises BadFile."""
    return measure_model(path, settings).figures


# ---- op test ---------------------------------------------------------------------------------------------------------


def outcomes_on(targets: Sequence[str], executor: str) -> list[Any]:
    """Return the outcomes of the checks of operators, by name or by file, computed on workers.

    Raises BadFile for a target that fails as a whole
    """
    jobs = distribute.grid(target=[os.path.abspath(t) if t.endswith(".py") else t for t in targets])
    report = distribute.sweep(checked, jobs, executor, progress=True)
    for trial in report.failures:
        assert trial.error is not None
        raise BadFile(trial.error.message)
    return [outcome for trial in report for outcome in trial.value]


def checked(target: str) -> list[Any]:
    """Return the outcomes of the checks of one target. Raises BadFile."""
    from ..testing import outcomes
    from .catalogue import operators_named

    return [outcome for op in operators_named([target]) for outcome in outcomes(op)]
