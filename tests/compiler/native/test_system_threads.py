"""The executor on systems whose objects LLVM loads itself, and what it takes of macOS and Windows."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from images_kit import ADD_ONE, GUARD, MEET, SPIN

import opwright as ow
from opwright.compiler.native import executor as native
from opwright.compiler.native import linker, store, workers
from opwright.compiler.native.executor import Executor, Step, StepError
from opwright.compiler.native.store import find_module
from opwright.compiler.target import Target

TEXTS = {
    "arm64-apple-macosx11.0.0": "threads_darwin.ll",
    "aarch64-apple-darwin22": "threads_darwin.ll",
    "x86_64-pc-windows-msvc": "threads_windows.ll",
    "aarch64-w64-windows-gnu": "threads_windows.ll",
    "x86_64-unknown-linux-gnu": "threads_linux.ll",
    "aarch64-linux-android": "threads_linux.ll",
}
LINKED = {
    "aarch64-macos": "arm64-apple-macosx11.0.0",
    "x86_64-macos": "x86_64-apple-macosx11.0.0",
    "x86_64-windows-gnu": "x86_64-w64-windows-gnu",
    "aarch64-windows-gnu": "aarch64-w64-windows-gnu",
    "x86_64-linux-gnu": "x86_64-unknown-linux-gnu",
}
"""Targets of zig's, which has every system's libraries, and the same for LLVM."""


@pytest.fixture
def by_llvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Within: LLVM loads machine code, and there are new pools: as where Opwright has no loader of its own."""
    for module in (store, linker, workers):
        monkeypatch.setattr(module, "runs_images", lambda: False)
    monkeypatch.setattr(store, "_loaded", {})
    monkeypatch.setattr(workers, "_pools", {})
    method = native._method.__wrapped__  # type: ignore[attr-defined]
    with ow.flags(cache_dir=tmp_path):
        loaded = workers.functions.__wrapped__()  # type: ignore[attr-defined]
        for module in (workers, native):
            monkeypatch.setattr(module, "functions", lambda: loaded)
        result = method()
        monkeypatch.setattr(native, "_method", lambda: result)
        yield


def code(text: str) -> int:
    return find_module("kernel", text.replace("@k(", '@"k"('), "k").address  # names in quotes can be replaced


def test_plans_run_on_threads_where_llvm_loads_code(by_llvm: None) -> None:
    """Each item once, strands whole, all threads in a step at once, statuses, times."""
    array, counter = np.zeros(1000, np.int64), np.zeros(1, np.int64)
    add, long = Step(code(ADD_ONE), [array.ctypes.data], array.size, chunk=7), Step(code(SPIN), [1 << 18], 1)
    halves = [
        add._replace(words=[half.ctypes.data], items=500, chunk=0, strand=i)
        for i, half in enumerate((array[:500], array[500:]))
    ]
    for count in (1, 2, 3):
        workers.pool_of(count).set_rest(0)
        array[:] = 0
        meet = Step(code(MEET), [counter.ctypes.data, count, 1 << 33], count, chunk=1)
        executor = Executor([long, add, meet, Step(0, [], 2, chunk=1, covers=2), *halves, add], count)
        for _ in range(20):
            counter[0] = 0
            executor.run()
        assert array.tolist() == [60] * array.size
        counter[0] = 0
        assert executor.run_profiled()[1] > 0
        with pytest.raises(StepError, match="step 0 gave 7"):
            Executor([Step(code(GUARD), [0, 30], 40, chunk=4)], count).run()


@pytest.mark.parametrize("triple", TEXTS)
def test_each_system_has_its_functions(triple: str) -> None:
    """Its text says what it takes, and LLVM compiles the whole for it."""
    assert workers.threads_text(triple) == TEXTS[triple]
    target = Target.of(triple)
    text = workers.executor_text(target)
    called = set(re.findall(r"call \S+ @([a-z_]+)\(", text))
    defined = set(re.findall(r"define .*@\"?([a-z_]+)", text))
    assert called & defined >= {"lock", "unlock", "notify", "wait", "now", "thread", "own_pool", "keep_pool"}
    magic = {"darwin": b"\xcf\xfa\xed\xfe", "windows": None, "linux": b"\x7fELF"}
    head = magic[TEXTS[triple].removeprefix("threads_").removesuffix(".ll")]
    object_code = target.object_code(text)
    assert object_code.startswith(head or (b"\x64\x86" if target.is_x86 else b"\x64\xaa"))


PYTHON = """
void *PyEval_SaveThread(void) { return 0; }
void PyEval_RestoreThread(void *state) {}
void *PyLong_FromLongLong(long long value) { return 0; }
void *PyLong_AsVoidPtr(void *self) { return 0; }
int PyGILState_Ensure(void) { return 0; }
void PyGILState_Release(int state) {}
int PyErr_CheckSignals(void) { return 0; }
void PyErr_Fetch(void **type, void **value, void **trace) {}
void PyErr_Restore(void *type, void *value, void *trace) {}
extern void *executor(long long which);
int main(void) { return executor(0) == 0; }
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="zig has the systems' libraries")
@pytest.mark.parametrize("system", LINKED)
def test_each_system_has_what_is_called(system: str, tmp_path: Path) -> None:
    """Its own libraries have every function: the linker finds them. C code stands for Python's."""
    target = Target.of(LINKED[system])
    (tmp_path / "executor.o").write_bytes(target.object_code(workers.executor_text(target)))
    (tmp_path / "python.c").write_text(PYTHON)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", system, "-w", "python.c", "executor.o", "-o", "linked"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
