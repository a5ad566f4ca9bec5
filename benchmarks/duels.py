"""Networks from files, here and in the official interpreter as it comes, in one process in turn.

Lives here: the rows `NETWORK_KIND_WHAT`, and the processes in which loading and memory are measured.
Not here: the files (models.py), the machine's limits (probes.py), the table of rows (rows.py).

    invoke, own     a run, of the official converter's file and of ours, on one thread
    x86-64-v3 ...   a run of both restricted to a part of this processor's instructions
    threads         how many times faster two threads are than one
    construct       interpreter made and tensors allocated, again and again
    load            the same in a fresh process, code in the cache; start: with the import of the library before it
    memory          peak of the process until its second run is over, above what it had with the library imported

`networks_KIND` and `networks_KIND_TARGET`, runs of all networks: the geometric mean of the speeds relative to the
official one's, and each of them.
`cold_WHAT`, with nothing in the cache and no kernels in the package: answer, up to a result; ready, until all is
compiled and kept; processor, the processor's time until then; memory, the peak until then. `shipped_WHAT`: the same
with the kernels of a wheel (prebuild.py), other: processor of a network that the wheel was not made from.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import measure, models
from benchmarks.peers import restricted as peer

WHATS = ("invoke", "own", "threads", "construct", "load", "start", "memory")
COLD = "mobilenet_v2_f32"
OTHER = "mobilenet_v2_075_192_f32"
BUDGET_S = 2.0


def ours(path: str, threads: int = 1) -> Any:
    """Our interpreter as it comes."""
    from opwright.lite import Interpreter

    return Interpreter(path, num_threads=threads)


def litert(path: str, threads: int = 1) -> Any:
    """The official one as it comes."""
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(path, num_threads=threads)


SIDES: dict[str, Callable[..., Any]] = {"ours": ours, "litert": litert}


def present() -> list[str]:
    """The sides that are installed."""
    import importlib.util

    return [side for side in SIDES if side == "ours" or importlib.util.find_spec("ai_edge_litert")]


def ready(side: str, path: str, threads: int = 1) -> Any:
    """An interpreter with tensors allocated and the input set."""
    interpreter = SIDES[side](path, threads)
    interpreter.allocate_tensors()
    _fill(interpreter)
    interpreter.invoke()
    settle()
    return interpreter


def settle() -> None:
    """Wait for what is compiled and kept in the background; the next run takes it."""
    for thread in threading.enumerate():
        if thread.name.startswith("opwright"):
            thread.join()


def _fill(interpreter: Any) -> None:
    import numpy as np

    details = interpreter.get_input_details()[0]
    image = np.random.default_rng(0).integers(-100, 100, details["shape"])
    interpreter.set_tensor(details["index"], image.astype(details["dtype"]))


def in_turn(calls: Sequence[Callable[[], object]], budget_s: float = BUDGET_S) -> list[float]:
    """Seconds of each call, medians: a turn is some calls of the one, then of the next, the first not counted."""
    clock = time.perf_counter
    turns: list[list[float]] = [[] for _ in calls]
    sizes = []
    for call in calls:
        for _ in range(2):
            call()
        sizes.append(1 + max(1, int(0.03 / max(measure.time_batch(call, 1), 1e-9))))
    end = clock() + budget_s * len(calls)
    while clock() < end or not all(turns):
        for call, size, times in zip(calls, sizes, turns):
            call()
            for _ in range(size - 1):
                start = clock()
                call()
                times.append(clock() - start)
    return [statistics.median(times) for times in turns]


def invoke(network: str, kind: str, converter: str = "") -> dict[str, Any]:
    """A run on one thread; its share of what the processor could compute; of floats, the errors of the results."""
    from benchmarks import probes

    path = models.path_of(network, kind, converter)
    sides = present()
    interpreters = [ready(side, path) for side in sides]
    times = in_turn([interpreter.invoke for interpreter in interpreters])
    peak = probes.peak_int8() if kind == "int8" else probes.peak_f32()
    errors = {"errors": dict(zip(sides, errors_of(path, interpreters)))} if kind == "f32" else {}
    return (
        dict(zip(sides, times))
        | errors
        | {"share": models.work_of(path) / times[0] / peak, "of": "peak", "files": models.converter_of(path)}
    )


def errors_of(path: str, interpreters: Sequence[Any]) -> list[float]:
    """How far results of interpreters that were run are from those in float64, over the greatest number in these."""
    from benchmarks import exact

    first = interpreters[0]
    inputs = [first.get_tensor(detail["index"]) for detail in first.get_input_details()]
    wanted = exact.evaluated(Path(path).read_bytes(), inputs)
    return [exact.error_of(exact.results(interpreter), wanted) for interpreter in interpreters]


def restricted(network: str, kind: str, target: str) -> dict[str, Any]:
    """A run as on a processor that has no more than a target."""
    os.environ["OPWRIGHT_TARGET"] = target  # read when Opwright is imported, which this process has not done yet
    peer.restrict(target)
    return invoke(network, kind)


def mean_speed(kind: str, target: str = "") -> dict[str, Any]:
    """Return the geometric mean of the speeds of all networks relative to the official run time, and each of them.

    target: see `restricted`.
    """
    if target:
        os.environ["OPWRIGHT_TARGET"] = target
        peer.restrict(target)
    sides = present()
    if "litert" not in sides:
        raise RuntimeError("ai_edge_litert is not installed")
    speeds = {}
    for network in models.NETWORKS:
        path = models.path_of(network, kind)
        own, official = in_turn([ready(side, path).invoke for side in sides])
        files = models.converter_of(path)
        words = f"{network} {official / own:.3f}x ({own * 1e3:.3f} ms, {official * 1e3:.3f}; {files})"
        speeds[words] = official / own
    mean = statistics.geometric_mean(speeds.values())
    return {"ours": mean, "worst": sorted(speeds, key=lambda words: speeds[words])}


def threads(network: str, kind: str) -> dict[str, float]:
    """One thread's time over two threads', on two cores."""
    measure.use_all_cores()
    path = models.path_of(network, kind)
    sides = present()
    times = in_turn([ready(side, path, n).invoke for side in sides for n in (1, 2)], BUDGET_S / 2)
    return {side: times[2 * i] / times[2 * i + 1] for i, side in enumerate(sides)}


def construct(network: str, kind: str) -> dict[str, float]:
    """Making the interpreter and allocating."""
    path = models.path_of(network, kind)
    sides = present()
    ready("ours", path)
    return dict(zip(sides, in_turn([lambda s=side: SIDES[s](path).allocate_tensors() for side in sides], 1.0)))  # type: ignore[misc]


def in_process(figure: str, path: str, rounds: int) -> dict[str, float]:
    """A figure of `once` in fresh processes of each side, medians."""
    sides = present()
    found: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(rounds + 1):
        for side in sides:
            seen = _process(side, path)[figure]
            if turn:  # the first fills the caches
                found[side].append(seen)
    return {side: statistics.median(figures) for side, figures in found.items()}


def _process(side: str, path: str, **environ: str) -> dict[str, float]:
    """The figures of `once` in a fresh process, which keeps bytecode as that of an installed package is kept."""
    whole = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | environ
    command = [sys.executable, "-m", "benchmarks.duels", "--once", side, path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, env=whole)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def once(side: str, path: str) -> dict[str, float]:
    """Seconds to load, to the first result and until nothing is left to compile, those of the processor until then; the
    peak of memory of two runs and until then."""
    found: dict[str, float] = {}
    start = time.perf_counter()
    if side == "ours":
        import opwright.lite.interpreter  # noqa: F401
    else:
        import ai_edge_litert.interpreter  # noqa: F401
    imported = time.perf_counter() - start
    import numpy as np

    np.random.default_rng(0).integers(0, 2, 2)

    def whole() -> None:
        start, busy = time.perf_counter(), _processor()
        interpreter = SIDES[side](path, 1)
        interpreter.allocate_tensors()
        found["load"] = time.perf_counter() - start
        found["start"] = imported + found["load"]
        _fill(interpreter)
        interpreter.invoke()
        found["answer"] = time.perf_counter() - start
        interpreter.invoke()
        found["began"], found["busy"] = start, busy

    def until_ready() -> None:
        found["memory"] = measure.peak_bytes(whole)
        settle()
        found["ready"] = time.perf_counter() - found.pop("began")
        found["processor"] = _processor() - found.pop("busy")

    before = measure.resident_bytes()
    until_ready()
    found["memory_ready"] = measure.peak_bytes_so_far() - before
    found["memory_children"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return found


def _processor() -> float:
    """Seconds that this process and the children that have ended have worked: models are compiled in one."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def shipped(figure: str, model: str = COLD) -> dict[str, float]:
    """A figure of `once` with nothing in the cache and the kernels of a wheel, built if missing."""
    from opwright.compiler.native import prebuilt
    from opwright.compiler.target import processor

    if not prebuilt.is_available(processor()):
        subprocess.run([sys.executable, "-m", "benchmarks.prebuild"], stdout=subprocess.DEVNULL, check=True)
    return cold(figure, model, "1")


def cold(figure: str, model: str = COLD, prebuilt: str = "0") -> dict[str, float]:
    """A figure of `once` with nothing in the cache, medians; the official interpreter has none."""
    network, _, kind = model.rpartition("_")
    path = models.path_of(network, kind, "" if network in models.NETWORKS else "ours")
    found: dict[str, list[float]] = {side: [] for side in present()}
    for _ in range(3):
        for side, figures in found.items():
            with tempfile.TemporaryDirectory(prefix="opwright-bench-") as empty:
                figures.append(_process(side, path, OPWRIGHT_CACHE_DIR=empty, OPWRIGHT_PREBUILT=prebuilt)[figure])
    return {side: statistics.median(figures) for side, figures in found.items()}


def _limits() -> dict[str, float]:
    from benchmarks import probes

    return probes.found()


def _runs() -> dict[str, measure.Prepare]:
    runs: dict[str, measure.Prepare] = {
        "limits": _limits,
        "cold_answer": lambda: cold("answer"),
        "cold_ready": lambda: cold("ready"),
        "cold_processor": lambda: cold("processor"),
        "cold_memory": lambda: cold("memory_ready"),
        "cold_children": lambda: cold("memory_children"),
        "shipped_answer": lambda: shipped("answer"),
        "shipped_ready": lambda: shipped("ready"),
        "shipped_processor": lambda: shipped("processor"),
        "shipped_other": lambda: shipped("processor", OTHER),
    }
    makers: dict[str, Callable[[str, str], Any]] = {
        "invoke": invoke,
        "own": functools.partial(invoke, converter="ours"),
        "threads": threads,
        "construct": construct,
        "load": lambda network, kind: in_process("load", models.path_of(network, kind), 4),
        "start": lambda network, kind: in_process("start", models.path_of(network, kind), 4),
        "memory": lambda network, kind: in_process("memory", models.path_of(network, kind), 2),
    }
    for kind in models.KINDS:
        for target in ("", *peer.targets()):
            runs[f"networks_{kind}{target and '_'}{target}"] = functools.partial(mean_speed, kind, target)
    for network in models.NETWORKS:
        for kind in models.KINDS:
            for what in WHATS:
                runs[f"{network}_{kind}_{what}"] = functools.partial(makers[what], network, kind)
            for target in peer.targets():
                runs[f"{network}_{kind}_{target}"] = functools.partial(restricted, network, kind, target)
    return runs


RUNS = _runs()

if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        print(json.dumps(once(*sys.argv[2:])))
    else:
        measure.main(RUNS)
