"""Work in the background: a bounded number of threads, an order, and an end with the process."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from opwright.compiler.background import Worker


def run(script: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own, with a cold cache and compiling in the background."""
    variables = {**os.environ, "OPWRIGHT_CACHE_DIR": os.fspath(cache), "OPWRIGHT_COMPILED": "1", **environment}
    variables.pop("OPWRIGHT_BACKGROUND", None)
    path = os.pathsep.join([os.fspath(Path(__file__).parents[1] / "lite"), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**variables, "PYTHONPATH": path},
    )


@pytest.fixture(scope="module", autouse=True)
def before() -> set[Any]:
    """Threads that tests of other files have left, such as those of contexts of the CPU."""
    return set(threading.enumerate())


def test_jobs_run_in_order_and_urgent_ones_first() -> None:
    worker, leave, seen = Worker("test"), threading.Event(), []
    first = worker.submit(leave.wait)
    while worker._current is not first:
        time.sleep(0.001)
    jobs = [worker.submit(lambda i=i: seen.append(i), urgent=i in (3, 5)) for i in range(7)]
    jobs[1].cancel()
    assert jobs[1].done
    assert not jobs[0].done
    leave.set()
    for job in (first, *jobs):
        job.wait()
    assert seen == [3, 5, 0, 2, 4, 6]


def test_one_thread_at_most_and_none_without_jobs() -> None:
    worker, most = Worker("test-threads"), 0
    jobs = [worker.submit(lambda: time.sleep(0.001)) for _ in range(20)]
    while not all(job.done for job in jobs):
        most = max(most, sum(t.name == "test-threads" for t in threading.enumerate()))
    assert most == 1
    thread = worker._thread
    if thread is not None:
        thread.join(10)
    assert worker._thread is None


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_is_its_jobs_own(error: type[BaseException]) -> None:
    worker = Worker("test")

    def fail() -> None:
        raise error

    job, after = worker.submit(fail), worker.submit(lambda: None)
    job.wait()
    after.wait()
    assert type(job.error) is error
    assert after.error is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_jobs_of_the_parent_are_lost_in_the_child() -> None:
    worker, leave = Worker("test"), threading.Event()
    jobs = [worker.submit(leave.wait), worker.submit(lambda: None)]
    child = os.fork()
    if child == 0:
        for job in jobs:
            job.wait()  # at once
        ok = all(job.lost and job.done for job in jobs)
        own = worker.submit(lambda: None)
        own.wait()
        os._exit(0 if ok and own.done and not own.lost else 1)
    leave.set()
    assert os.waitpid(child, 0)[1] == 0
    jobs[1].wait()


COLD = """
    import gc, sys, threading, time
    import numpy as np
    from lite_kit import Build
    from opwright import lite
    def chain(ops):
        build = Build().tensor("x", (3, 5))
        for i, op in enumerate(ops):
            after = "y" if i == len(ops) - 1 else f"t{i}"
            build.tensor(after, (3, 5)).op(op, "x" if i == 0 else f"t{i - 1}", after)
        return build.done()
    UNARY = ("ABS", "COS", "SIN", "TANH", "LOGISTIC", "SQUARE", "NEG", "ELU", "RELU6", "FLOOR")
    def interpreter(n):
        made = lite.Interpreter(model_content=chain([UNARY[(n + i * i) % 10] for i in range(3 + n % 5)]), num_threads=1)
        made.allocate_tensors()
        return made
"""


def test_many_cold_interpreters_have_two_threads(tmp_path: Path) -> None:
    done = run(
        COLD
        + """
    most, made = 0, []
    for n in range(30):
        made.append(interpreter(n))
        made[-1].invoke()
        most = max(most, threading.active_count() - 1)
    print(most, len(made))
    """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    most, count = map(int, done.stdout.split())
    assert 1 <= most <= 2
    assert count == 30


@pytest.mark.slow
def test_nothing_is_compiled_for_who_is_gone(tmp_path: Path) -> None:
    done = run(
        COLD
        + """
    from opwright.compiler.background import LLVM, compiling
    with LLVM:  # nothing is compiled meanwhile
        made = [interpreter(n) for n in range(6)]
        jobs = [i._engine._job for i in made]
        made[2].close()
        del made[3:]
        gc.collect()
        assert [j.done for j in jobs[2:]] == [True] * 4, jobs
        assert not jobs[1].done
    for job in jobs:
        job.wait()
    assert jobs[0].error is None and jobs[1].error is None
    made[0].invoke(); made[0].invoke()
    assert made[0]._engine.runs_nodes()
    """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_the_process_ends_while_models_are_compiled(tmp_path: Path) -> None:
    start = time.monotonic()
    done = run(
        COLD
        + """
    made = [interpreter(n) for n in range(60)]
    for i in made: i.invoke()
    print("made")
    """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "made\n", "")
    assert time.monotonic() - start < 60  # compiling them all would take longer


def test_plans_are_kept_before_the_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    script = (
        COLD
        + f"""
    path = {os.fspath(path)!r}
    open(path, "wb").write(chain(UNARY[:4]))
    made = lite.Interpreter(model_path=path, num_threads=1)
    print(made._fast_path is not None)
    made.allocate_tensors()
    if made._engine is not None: made._engine.wait()
    made.invoke()
    """
    )
    script = script.replace('open(path, "wb")', 'import os; os.path.exists(path) or open(path, "wb")')
    result = []
    for _ in range(2):
        done = run(script, tmp_path / "cache")
        assert done.returncode == 0, done.stderr
        result.append(done.stdout.strip())
    assert result == ["False", "True"]


def test_this_process_leaves_nothing_behind(before: set[Any]) -> None:
    gc.collect()
    left = [t for t in threading.enumerate() if t.name.startswith("opwright-") and not t.daemon]
    assert not {t.name for t in left if t not in before}
