"""Forks while other threads compile, trace, import or run: the child does all of it itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from thorough import sampled

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

SCRIPT = """
import os, sys, threading, time
import numpy as np
import numpy.testing  # a module that only user code imports late is Python's matter
import opwright as ow
from opwright import language as kl, lite

@ow.kernel
def exponential(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n")):
    for i in range(x.shape[0]):
        y[i] = kl.exp(x[i]) + kl.tanh(x[i]) * kl.atan2(x[i], x[i] + 1.0)

@ow.function(jit_compile=True)
def compiled(a):
    return ow.exp(ow.sin(a) * ow.tanh(a))

@ow.function
def traced(a):
    total = a
    for _ in ow.range(3):
        total = total * 2.0
    return total

def kernel():
    x, y = np.full(5, 0.5, np.float32), np.empty(5, np.float32)
    exponential(x, y)
    np.testing.assert_allclose(y, np.exp(0.5) + np.tanh(0.5) * np.arctan2(0.5, 1.5), rtol=1e-5)

def function():
    x = np.full((3, 3), 0.5, np.float32)
    np.testing.assert_allclose(compiled(ow.constant(x)).numpy(), np.exp(np.sin(x) * np.tanh(x)), rtol=1e-5)
    np.testing.assert_allclose(traced(ow.constant(x)).numpy(), 8 * x)

def model():
    x = np.full((3, 5), 0.5, np.float32)
    interpreter = lite.Interpreter(model_content=content, num_threads=2)
    interpreter.allocate_tensors()
    for _ in range(3):
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_allclose(y, np.tanh(np.cos(x)), rtol=1e-5)

sys.path[:0] = sys.argv[3:]
from lite_kit import Build
build = Build().tensor("x", (3, 5)).tensor("t", (3, 5)).tensor("y", (3, 5))
content = build.op("COS", "x", "t").op("TANH", "t", "y").done()
use = {"kernel": kernel, "function": function, "model": model}[sys.argv[1]]
delay = float(sys.argv[2])
errors = []

def work():
    try:
        use()
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
time.sleep(delay)
child = os.fork()
if child == 0:
    import faulthandler
    faulthandler.dump_traceback_later(60, exit=True)
    kernel(); function(); model()
    os._exit(0)
for thread in threads:
    thread.join()
assert not errors, errors
sys.exit(os.waitpid(child, 0)[1] >> 8)
"""


def fork(use: str, delay: float, tmp_path: Path, background: bool) -> None:
    environment = {
        **os.environ,
        "OPWRIGHT_CACHE_DIR": os.fspath(tmp_path),
        "OPWRIGHT_COMPILED": "1",
        "OPWRIGHT_BACKGROUND": str(int(background)),
    }
    kit = os.fspath(Path(__file__).parents[1] / "lite")
    script = tmp_path / "script.py"  # a file: kernels are read from their source
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, os.fspath(script), use, str(delay), kit],
        capture_output=True,
        text=True,
        timeout=150,
        env=environment,
    )
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr[-3000:]}"


@pytest.mark.parametrize("use", sampled(["model", "kernel", "function"], every=3))
def test_a_fork_while_a_thread_uses_something_for_the_first_time(use: str, tmp_path: Path) -> None:
    fork(use, 0.1, tmp_path, use == "model")


@pytest.mark.slow
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.2, 0.35, 0.6, 1.0])
@pytest.mark.parametrize("use", ["kernel", "function", "model"])
def test_a_fork_at_any_moment_of_the_first_use(use: str, delay: float, background: bool, tmp_path: Path) -> None:
    fork(use, delay, tmp_path, background)


def test_a_variable_that_a_thread_was_writing_to_has_a_value_in_the_child() -> None:
    import threading

    import opwright as ow
    from opwright.eager.variable_state import CopyOnWrite

    variable = ow.Variable([1.0, 2.0])
    writing, leave = threading.Event(), threading.Event()

    def write() -> None:
        with CopyOnWrite(variable) as array:
            array[0] = 5.0
            writing.set()
            leave.wait(60)

    thread = threading.Thread(target=write)
    thread.start()
    writing.wait()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            variable.assign_add([1.0, 1.0])
            status = int(variable.numpy()[1] != 3.0)
        finally:
            os._exit(status)
    leave.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert variable.numpy().tolist() == [5.0, 2.0]


FORKS_AT_ONCE = """
import _imp, _thread, os, sys, threading, time
from opwright.core import forks

class Lock(_thread.RLock):
    def release(self):
        super().release()
        time.sleep(1e-3)  # another thread's fork takes its locks here

def slowly(me, is_importing=forks._is_importing):
    time.sleep(5e-3)  # it has them, and the first one goes on
    return is_importing(me)

lock, unraisable = Lock(), []
forks._uninterruptible.insert(0, lock)
forks._is_importing = slowly
sys.unraisablehook = lambda raised: unraisable.append(raised.exc_value)

def work():
    for _ in range(15):
        child = os.fork()
        if child == 0:
            os._exit(unraisable != [] or not lock.acquire(timeout=20))
        if os.waitpid(child, 0)[1]:
            unraisable.append("a child")

threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
    assert not thread.is_alive(), "a fork waits for ever"
assert not unraisable, unraisable
assert lock.acquire(timeout=20) and not _imp.lock_held()
"""


def test_several_threads_fork_at_once() -> None:
    """Locks acquired by the fork of one thread are not released by that of another."""
    done = subprocess.run([sys.executable, "-c", FORKS_AT_ONCE], capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, f"{done.returncode}\n{done.stderr[-3000:]}"


LOGGER_DURING_IMPORT = """
import importlib.abc, importlib.util, os, sys, threading
from opwright.core import forks
import logging  # after forks: its hook acquires its lock before that of forks waits

importing, waiting, imported = threading.Event(), threading.Event(), threading.Event()

class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "opwright.slow" else None

    def exec_module(self, module):
        importing.set()
        assert waiting.wait(60)
        logging.getLogger("opwright.slow")
        imported.set()

def waits(me, is_importing=forks._is_importing):
    result = is_importing(me)
    if result:
        waiting.set()
    return result

forks._is_importing = waits
sys.meta_path.insert(0, Finder())
threading.Thread(target=importlib.import_module, args=("opwright.slow",), daemon=True).start()
assert importing.wait(60)
child = os.fork()
if child == 0:
    os._exit(not imported.is_set())
assert os.waitpid(child, 0)[1] == 0, "the fork did not wait for the import"
"""


def test_a_fork_waits_for_an_import_that_creates_a_logger() -> None:
    """The hook of `logging` has locked it for the fork, which would wait for the import for half a minute."""
    done = subprocess.run([sys.executable, "-c", LOGGER_DURING_IMPORT], capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, f"{done.returncode}\n{done.stderr[-3000:]}"
