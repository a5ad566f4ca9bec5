"""C++ exceptions that leave a library's functions: errors of the node, with what was thrown.

The oracles: the language's names of types, what() of the standard's classes, counters of the library itself.
"""

from __future__ import annotations

import ctypes as C
import platform
import sys
import threading

import numpy as np
import pytest
from abi_kit import needs_compiler
from lite_kit import Build
from native_kit import HERE, run

import opwright as ow
from opwright import lite
from opwright.lite.format import versions
from opwright.lite.native.toolchain import build_library

pytestmark = [
    needs_compiler,
    pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="guard.c is for x86-64 ELF"),
]

THROWN = {
    "r": "std::runtime_error: thrown",
    "l": "std::out_of_range: xxxxxxxxxx",
    "m": "(anonymous namespace)::Mine: of several bases",
    "n": "(anonymous namespace)::NoException",
    "i": "int",
    "b": "std::bad_alloc",
    "c": "std::logic_error: a copy",
    "a": "std::logic_error: again",
}
"""The exceptions of the operator, by option."""


@pytest.fixture(scope="module")
def path():
    return str(build_library([HERE / "throwing.cc"], flags="-Wno-deprecated-declarations"))


@pytest.fixture(scope="module")
def ops(path):
    return lite.load_custom_ops(path, {"Throws": "Register_THROWS"})


@pytest.fixture(scope="module")
def code(path, ops):
    return C.CDLL(path)


def model(options):
    raw = np.frombuffer(options, np.uint8)
    return Build().operator(versions.operator_code("CUSTOM", 1, "Throws"), "x", "y", custom_options=raw).done()


def made_and_run(content, ops):
    interpreter = lite.Interpreter(model_content=content, custom_ops=ops)
    interpreter.allocate_tensors()
    return run(interpreter, np.full(5, -1))


@pytest.mark.parametrize("what", THROWN)
@pytest.mark.parametrize("when", ["i", "p", "v"])
def test_an_exception_is_an_error_of_the_node(ops, code, when, what):
    content = model(f"{when}{what}".encode())
    phase = {"i": "init", "p": "prepare", "v": "invoke"}[when]
    with pytest.raises(RuntimeError, match=f"{phase} threw a C\\+\\+ exception") as caught:
        made_and_run(content, ops)
    assert f"a C++ exception: {THROWN[what]}" in str(caught.value)
    assert "Register_THROWS" in str(caught.value)
    assert code.objects_alive() == 0  # what it passed was destroyed
    assert code.exceptions_on_their_way() == 0  # and it has ended


@pytest.mark.parametrize("nodes", [1, 3])
def test_the_interpreter_runs_on(ops, nodes):
    b = Build()
    for i in range(nodes):
        b.operator(
            versions.operator_code("CUSTOM", 1, "Throws"),
            f"t{i - 1}" if i else "x",
            f"t{i}" if i < nodes - 1 else "y",
            custom_options=np.frombuffer(b"vr", np.uint8),
        )
    interpreter = lite.Interpreter(model_content=b.done(), custom_ops=ops)
    interpreter.allocate_tensors()
    for x in (1.0, -1.0, 2.0, -1.0, -1.0, 3.0):
        if x < 0:
            with pytest.raises(RuntimeError, match=r"runtime_error: thrown"):
                run(interpreter, np.full(5, x))
        else:
            np.testing.assert_array_equal(run(interpreter, np.full(5, x)), np.full(5, x * 2**nodes))


def test_an_exception_of_free_is_none_of_the_process(ops):
    interpreter = lite.Interpreter(model_content=model(b"fr"), custom_ops=ops)
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match=r"free threw a C\+\+ exception(.|\n)*runtime_error: thrown"):
        interpreter.close()


@pytest.mark.parametrize(
    ("entry", "words"),
    [("ThrowingRegistration", "runtime_error: no registration today"), ("ThrowingByValueRegistration", "NoException")],
)
def test_entries_that_throw(path, entry, words):
    with pytest.raises(ow.errors.InvalidArgumentError, match="threw a C\\+\\+ exception") as caught:
        lite.load_custom_ops(path, {"Throws": entry})
    assert words in str(caught.value)
    assert entry in str(caught.value)


def test_threads_throw_at_once(ops):
    """Each thread has its own guard: eight of them, an interpreter each."""
    failures = []

    def work():
        interpreter = lite.Interpreter(model_content=model(b"vm"), custom_ops=ops)
        interpreter.allocate_tensors()
        for i in range(50):
            try:
                result = run(interpreter, np.full(5, 1 - 2 * (i % 2)))
                if i % 2 or not np.array_equal(result, np.full(5, 2)):
                    failures.append((i, result))
            except RuntimeError as error:
                if i % 2 == 0 or "of several bases" not in str(error):
                    failures.append((i, error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
