"""Test state that threads share: values computed once, locks that forks free; the package has no others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import opwright
from opwright.core import forks
from opwright.core.forks import cached_property, once

SOURCES = Path(opwright.__file__).parent
forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def from_threads(call: Any, count: int = 8) -> list[Any]:
    """Return the results of a call made by several threads at once."""
    barrier, results = threading.Barrier(count), []

    def work() -> None:
        barrier.wait()
        results.append(call())

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_once_returns_one_object_to_all_threads() -> None:
    @once
    def thing(name: str) -> object:
        time.sleep(0.2)  # all threads are here at once
        return object()

    results = from_threads(lambda: thing("a"))
    assert len(results) == 8
    assert len({id(r) for r in results}) == 1
    assert thing("a") is results[0]
    assert thing("b") is not results[0]
    thing.cache_clear()  # type: ignore[attr-defined]
    assert thing("a") is not results[0]


def test_once_keeps_nothing_of_a_failure() -> None:
    fails = [KeyboardInterrupt, ValueError]

    @once
    def thing() -> int:
        if fails:
            raise fails.pop()
        return 5

    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            thing()
    assert thing() == 5


def test_a_cached_property_is_one_object_to_all_threads() -> None:
    class Thing:
        @cached_property
        def part(self) -> object:
            time.sleep(0.01)
            return object()

    thing = Thing()
    assert len({id(r) for r in from_threads(lambda: thing.part)}) == 1


@forking
def test_a_child_finds_locks_free_that_other_threads_held() -> None:
    locks = [forks.lock() for _ in range(3)]
    held, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with locks[0]:
            held.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with locks[1]:  # of the thread that forks: it goes on holding it
        child = os.fork()
        if child == 0:
            mine = from_threads(lambda: locks[1].acquire(blocking=False), 1)
            free = locks[0].acquire(timeout=5) and locks[2].acquire(timeout=5)
            os._exit(0 if free and mine == [False] else 1)
    leave.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


@forking
def test_a_fork_waits_for_what_may_not_be_cut_in_two() -> None:
    lock = forks.held_through_forks()
    held = threading.Event()
    done = []

    def hold() -> None:
        with lock:
            held.set()
            time.sleep(0.3)
            done.append(True)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if done and lock.acquire(timeout=5) else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert lock.acquire(timeout=5)
    lock.release()


@forking
def test_a_fork_waits_for_imports_of_other_threads(tmp_path: Path) -> None:
    """On this package's behalf: a module of another name that one of its functions imports."""
    (tmp_path / "slow_to_import.py").write_text("import time; time.sleep(0.5); value = 7")
    script = (
        "import os, sys, threading, time, types, opwright\n"
        f"sys.path.insert(0, {os.fspath(tmp_path)!r})\n"
        "ours = types.ModuleType('opwright.imports_late')\n"
        "exec('def late():\\n    import slow_to_import\\n    return slow_to_import.value', ours.__dict__)\n"
        "thread = threading.Thread(target=ours.late); thread.start(); time.sleep(0.1)\n"
        "child = os.fork()\n"
        "if not child: os._exit(0 if ours.late() == 7 else 1)\n"
        "thread.join(); sys.exit(os.waitpid(child, 0)[1] >> 8)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


# ---- the whole package ----------------------------------------------------------------------------------------------

# Locks whose owner mends them after a fork in a hook of its own, and those that live no longer than one call.
OTHER_LOCKS = {
    "core/forks.py",
    "devices/cpu.py",
    "devices/memory.py",
    "devices/pool.py",
    "devices/streams.py",
    "distribute/mailboxes.py",
    "lite/litert/invocation.py",
}
# Functions whose results are plain values of Python's, though their modules call foreign functions.
VALUES = {"cache_bytes", "runs_images", "items_offset", "_own_sources"}
VALUES |= {"_environment"}  # under a lock
VALUES |= {"_converted"}  # Python's functions
VALUES |= {"_select_compiler"}  # a named tuple


def modules() -> list[tuple[str, str]]:
    return [(path.relative_to(SOURCES).as_posix(), path.read_text("utf-8")) for path in SOURCES.rglob("*.py")]


def test_every_lock_is_one_that_a_fork_frees() -> None:
    result = {name for name, text in modules() if re.search(r"\b(Lock|RLock|Condition|Semaphore)\(", text)}
    assert result - {"core/forks.py"} <= OTHER_LOCKS, "take core.forks.lock()"


def test_no_cache_without_a_lock_holds_foreign_memory() -> None:
    """`functools.cache` gives threads that come at once an object each, and frees all but one."""
    cached = re.compile(r"@functools\.(?:cache|lru_cache\(.*\))[^\n]*\ndef (\w+)")
    result = {
        f"{name} {function}"
        for name, text in modules()
        if re.search("^import ctypes", text, re.MULTILINE)
        for function in cached.findall(text)
        if function not in VALUES
    }
    assert not result, "take core.once.once"


def test_every_class_and_table_that_is_made_late_is_made_once() -> None:
    """Two classes of one table, or two registrations of one operator, are not equal where they meet."""
    script = """
import sys, threading
sys.setswitchinterval(1e-6)
from opwright.lite.format import schema, objects
from opwright.lite import registration, resolver
import opwright as ow
from opwright.lite.ops import operators
some = list(operators().values())[:20]
calls = [lambda: [objects.table_class(n) for n in schema.tables()], lambda: [schema.enum("BuiltinOperator")],
         lambda: [registration._of_operator(o) for o in some], lambda: [resolver.default_resolver()],
         lambda: [objects.absent_vector(scalar) for scalar in schema.SCALARS],
         lambda: [ow.random.get_global_generator()]]
for call in calls:
    barrier, results = threading.Barrier(8), []
    def work():
        barrier.wait(); results.append(call())
    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]; [t.join() for t in threads]
    assert len(results) == 8
    assert all(a is b for r in results for a, b in zip(r, results[0], strict=True)), call.__code__.co_firstlineno
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
