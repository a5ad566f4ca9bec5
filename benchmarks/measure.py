"""How a figure is taken: one thread, one core, the median of repeated batches.

Lives here: the quiet environment, the clock, and the command line that every measured process has.
Not here: what is measured (ours.py, peers/).  Standard library only, as peers' Pythons run this too.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

QUIET = {  # read by NumPy's BLAS, OpenMP, TensorFlow, XLA and Opwright when they start
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "OPWRIGHT_NUM_THREADS": "1",
}

Prepare = Callable[[], "Callable[[], object] | float | dict[str, Any]"]
"""Sets a row up and gives the call to time; or what is found itself, where it is taken another way."""


def pin() -> str:
    """Keeps this process and its children on one core, where the system can; says which or that it cannot."""
    if not hasattr(os, "sched_setaffinity"):
        return "not pinned"
    core = max(os.sched_getaffinity(0))  # core 0 is where interrupts tend to go
    os.sched_setaffinity(0, {core})
    return f"pinned to core {core}"


def use_all_cores() -> None:
    """Let this process and its children run on every core again, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def median_seconds(
    call: Callable[[], object], *, batches: int = 25, batch_s: float = 0.01, budget_s: float = 5.0
) -> float:
    """Seconds for one `call`: the median over batches, each of as many calls as last `batch_s`.

    Calls for 0.2 s first, so that caches, allocators and compilers are warm.  Slow calls get fewer batches, at least
    five, so that a row keeps near `budget_s`.  The garbage collector stays on: its work is part of the cost.
    """
    clock = time.perf_counter
    start, calls = clock(), 0
    while calls < 3 or clock() - start < 0.2:
        call()
        calls += 1
    once = time_batch(call, 1)
    size = max(1, int(batch_s / max(once, 1e-9)))
    count = max(5, min(batches, int(budget_s / max(once * size, 1e-9))))
    return statistics.median(time_batch(call, size) / size for _ in range(count))


def time_batch(call: Callable[[], object], size: int) -> float:
    """Seconds for `size` calls in a row."""
    clock, rounds = time.perf_counter, range(size)
    start = clock()
    for _ in rounds:
        call()
    return clock() - start


def process_seconds(code: str) -> float:
    """Seconds from starting this Python with `code` to its end; bytecode is kept, as it is for an installed package."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environ, **quiet)
    return time.perf_counter() - start


def peak_bytes(call: Callable[[], object]) -> float:
    """The most memory that this process had in use while `call` ran, above what it had before; Linux only.

    Pages in memory, as the system counts them, whoever allocated them; what the C library keeps for later is given
    back first, and the system's record of the peak is reset.
    """
    before = resident_bytes()
    call()
    return peak_bytes_so_far() - before


def whole_peak_bytes(small: Callable[[], Callable[[], object]], whole: Callable[[], Callable[[], object]]) -> float:
    """Return the peak memory of a program's calls, what it keeps between them included; Linux only.

    small: prepares a smaller program of the same kind, which is run first so that libraries and compilers are loaded
    and not counted. whole: prepares the program; the memory that only its preparation and first calls need is no part
    of the peak.
    """
    run = small()
    for _ in range(3):
        run()
    del run
    before = resident_bytes()
    run = whole()
    for _ in range(3):
        run()
    resident_bytes()
    for _ in range(3):
        run()
    return peak_bytes_so_far() - before


FULL_SPEED = 1.25
"""Maximum time of a call at full speed, relative to the median of the last calls."""


def seconds_until_steady(call: Callable[[], object], *, budget_s: float = 20.0, calls: int = 2000) -> float:
    """Return the seconds from the first call until three calls in a row are at full speed.

    Full speed is the median of the last quarter of the calls, at most a hundred; there are `calls` of them, or as many
    as last `budget_s`, at least thirty.
    """
    times: list[float] = []
    while len(times) < 30 or (sum(times) < budget_s and len(times) < calls):
        times.append(time_batch(call, 1))
    limit = FULL_SPEED * statistics.median(times[-min(100, len(times) // 4) :])
    steady = next((i for i in range(len(times) - 2) if max(times[i : i + 3]) <= limit), len(times))
    return sum(times[:steady])


def training_runs(step: Callable[[str, Any], Callable[[], object]], workloads: Mapping[str, Any]) -> dict[str, Prepare]:
    """Return a peer's rows on training. step: of a workload's name and sizes; a call of one step."""

    def rows(name: str) -> dict[str, Prepare]:
        whole, reduced = workloads[name].sizes, workloads[name].reduced
        return {
            f"train_{name}": lambda: step(name, whole),
            f"train_{name}_memory": lambda: whole_peak_bytes(lambda: step(name, reduced), lambda: step(name, whole)),
            f"train_{name}_ready": lambda: seconds_until_steady(step(name, whole)),
        }

    return {row: run for name in workloads for row, run in rows(name).items()}


def resident_bytes() -> float:
    """Return the process's resident set size in bytes, after trimming the heap, and reset the recorded peak."""
    import ctypes
    import gc

    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return float(_pages("VmRSS"))


def peak_bytes_so_far() -> float:
    """The most that this process has had in use since `resident_bytes`."""
    return float(_pages("VmHWM"))


def _pages(name: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def import_seconds(module: str, *, bare: bool = True, repeats: int = 11) -> float:
    """Seconds to import `module` in a fresh process with warm file caches; `bare` takes the interpreter's start off.

    The two are measured in turn, so that a slow minute of the machine touches both.
    """
    whole, start = [], []
    process_seconds(f"import {module}")  # writes bytecode, fills the file cache
    for _ in range(repeats):
        whole.append(process_seconds(f"import {module}"))
        start.append(process_seconds("pass"))
        if sum(whole) > 20.0 and len(whole) >= 3:
            break
    return statistics.median(whole) - (statistics.median(start) if bare else 0.0)


def main(runs: Mapping[str, Prepare]) -> None:
    """Measures the rows named on the command line and prints `{row: figure}` as JSON, the last line of stdout."""
    figures: dict[str, Any] = {}
    for row in sys.argv[1:]:
        run = runs[row]()
        figures[row] = median_seconds(run) if callable(run) else run if isinstance(run, dict) else float(run)
    print(json.dumps(figures), flush=True)
