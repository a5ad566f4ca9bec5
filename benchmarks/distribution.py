"""Rows of batch inference on processes: `python -m benchmarks.distribution ROW...`.

Lives here: `map_one_process`, `map_two_processes`, `map_two_loops`, `map_driver_memory`.
Not here: timing of calls (measure.py).

The model takes some milliseconds for a batch, and its weights stay in the second-level cache, so that two processes
share little but the driver. Loops run in turn; the least time of each counts.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import measure

COLUMNS, LAYERS, BATCH, BATCHES, ROUNDS = 256, 26, 128, 300, 6
ELEMENTS = 100_000


def _content() -> bytes:
    import numpy as np

    import opwright as ow

    weights = np.random.default_rng(0).standard_normal((COLUMNS, COLUMNS), np.float32) / COLUMNS**0.5

    @ow.function(input_signature=[ow.TensorSpec([None, COLUMNS], ow.float32, name="x")], autograph=False)
    def model(x: Any) -> Any:
        matrix = ow.constant(weights)
        for _ in range(LAYERS):
            x = ow.nn.relu(ow.matmul(x, matrix))
        return x

    converter = ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model)
    return converter.convert()


def _least(executors: tuple[str, ...]) -> list[float]:
    """Return the least seconds of a bare loop over the batches, and of `map` with each executor."""
    import contextlib

    import numpy as np

    import opwright as ow

    x = np.random.default_rng(1).standard_normal((BATCH * BATCHES, COLUMNS), np.float32)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = Path(folder) / "model.tflite"
        path.write_bytes(_content())
        runner = ow.lite.Interpreter(path, num_threads=1).get_signature_runner()

        def bare() -> int:
            rows = []
            for start in range(0, len(x), BATCH):
                (y,) = runner(x=x[start : start + BATCH]).values()
                rows += list(y)
            return len(rows)

        def mapped(executor: Any) -> Callable[[], int]:
            return lambda: len(list(ow.distribute.map(path, x, executor, batch=BATCH)))

        loops = [bare, *(mapped(stack.enter_context(ow.distribute.executor(name))) for name in executors)]
        least = [float("inf")] * len(loops)
        for number in range(ROUNDS + 1):  # the first one starts processes and fills caches
            for i, loop in enumerate(loops):
                start = time.perf_counter()
                assert loop() == len(x)
                if number:
                    least[i] = min(least[i], time.perf_counter() - start)
    return least


def _every_core() -> None:
    """Undo the runner's restriction to one core: the workers and the driver need their own."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def map_one_process() -> float:
    """The throughput of `map` on one process over that of a bare loop."""
    _every_core()
    bare, one = _least(("processes:1",))
    return bare / one


def map_two_processes() -> float:
    """The throughput of two processes over that of one."""
    _every_core()
    _, one, two = _least(("processes:1", "processes:2"))
    return one / two


def _loop_on_request(path: str, connection: Any) -> None:
    """Run a bare loop over as many batches as are asked for, and return its seconds, until None is asked for."""
    import numpy as np

    import opwright as ow

    x = np.random.default_rng(1).standard_normal((BATCH * BATCHES, COLUMNS), np.float32)
    runner = ow.lite.Interpreter(path, num_threads=1).get_signature_runner()
    while (batches := connection.recv()) is not None:
        start, rows = time.perf_counter(), []
        for number in range(batches):
            (y,) = runner(x=x[number * BATCH : (number + 1) * BATCH]).values()
            rows += list(y)
        connection.send(time.perf_counter() - start)


def map_two_loops() -> float:
    """The throughput of two processes that run bare loops side by side over that of one: the limit of the machine."""
    import multiprocessing

    _every_core()
    context, least = multiprocessing.get_context("spawn"), {1: float("inf"), 2: float("inf")}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(_content())
        pipes = [context.Pipe() for _ in range(2)]
        processes = [context.Process(target=_loop_on_request, args=(str(path), far), daemon=True) for _, far in pipes]
        for process in processes:
            process.start()
        for number in range(ROUNDS + 1):
            for count in (1, 2) if number else (2,):  # the first one fills caches
                for near, _ in pipes[:count]:
                    near.send(BATCHES // count)
                seconds = max(near.recv() for near, _ in pipes[:count])
                least[count] = min(least[count], seconds) if number else least[count]
        for near, _ in pipes:
            near.send(None)
        for process in processes:
            process.join()
    return least[1] / least[2]


def map_driver_memory() -> float:
    """The bytes by which the driver's memory grows in the second half of 100,000 elements: pools fill in the first."""
    import resource

    import numpy as np

    import opwright as ow

    _every_core()
    elements = (np.full(COLUMNS, i, np.float32) for i in range(ELEMENTS))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(_content())
        before = 0
        for i, _ in enumerate(ow.distribute.map(path, elements, "processes:2", batch=BATCH)):
            if i == ELEMENTS // 2:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert i == ELEMENTS - 1
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


ROWS: dict[str, measure.Prepare] = {
    "map_one_process": map_one_process,
    "map_two_processes": map_two_processes,
    "map_two_loops": map_two_loops,
    "map_driver_memory": map_driver_memory,
}

if __name__ == "__main__":
    measure.main(ROWS)
