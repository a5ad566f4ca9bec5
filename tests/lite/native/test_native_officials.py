"""Classes of the official run time that libraries use: strings for a tensor, what kernels share their threads by.

The oracles: Python's strings, the layout of a tensor of strings, counters of the library.
"""

from __future__ import annotations

import ctypes as C
import gc
import itertools
import struct

import numpy as np
import pytest
from abi_kit import needs_compiler
from lite_kit import Build
from native_kit import HERE, run, single

from opwright import lite
from opwright.lite.native.toolchain import build_library

pytestmark = needs_compiler
GENERATIONS = {"until 2022": {"OLD": None}, "2023": {}, "since 2024": {"MLIR": None}}


@pytest.fixture(scope="module", params=GENERATIONS)
def path(request):
    defines = GENERATIONS[request.param]
    return str(build_library([HERE / "officials.cc"], defines=defines, flags="-std=c++17"))


@pytest.fixture(scope="module")
def ops(path):
    return lite.load_custom_ops(path, {"Threads": "Register_THREADS", "Strings": "Register_STRINGS"})


@pytest.mark.parametrize(
    "strings",
    [[b"a", b"", b"\0b", b"longer than a word"], [b""], [b"x" * 5000, b"y"] * 20],
    ids=["few", "none", "many"],
)
def test_strings_for_a_tensor(ops, strings):
    content = single("Strings", (len(strings),), (1,), ("STRING", "STRING"))
    interpreter = lite.Interpreter(model_content=content, custom_ops=ops)
    interpreter.allocate_tensors()
    result = run(interpreter, np.array(strings, object))
    assert result.tolist() == [s for s in strings for _ in range(2)] + [b",".join(strings), b" & ".join(strings)]


def test_bytes_of_a_tensor_of_strings(path, ops):
    code, out = C.CDLL(path), C.c_void_p()
    size = code.strings_as_bytes(C.byref(out))
    raw = C.string_at(out.value, size)
    free = C.CDLL(None).free
    free.argtypes = [C.c_void_p]
    free(out)
    (count,) = struct.unpack_from("<i", raw)
    places = struct.unpack_from(f"<{count + 1}i", raw, 4)
    texts = [raw[a:b] for a, b in itertools.pairwise(places)]
    assert texts == [bytes([ord("a") + i % 26]) * (i % 2) for i in range(100)]
    assert places[0] == 4 * (count + 2)
    assert places[-1] == size


@pytest.mark.parametrize("threads", [1, 3])
def test_nodes_share_a_context_for_threads(path, ops, threads):
    """A library that has the official CpuBackendContext linked in makes one an interpreter, which ends with it."""
    code = C.CDLL(path)
    before = code.backends_made(), code.backends_ended()
    b = Build().custom("Threads", "x", "t").custom("Threads", "x", "y")
    content = b.done("x", "t y")
    interpreters = [lite.Interpreter(model_content=content, custom_ops=ops, num_threads=threads) for _ in range(2)]
    for interpreter in interpreters:
        interpreter.allocate_tensors()
        for calls in (1, 3):
            run(interpreter, np.zeros(5))
            result = [interpreter.get_tensor(d["index"])[:2].tolist() for d in interpreter.get_output_details()]
            assert result == [[threads, calls], [threads, calls + 1]]
    assert code.backends_made() - before[0] == 2
    interpreters.pop().close()
    assert code.backends_ended() - before[1] == 1
    del interpreter
    interpreters.clear()
    gc.collect()
    assert code.backends_ended() - before[1] == 2


def test_each_library_has_a_context_of_its_own():
    """The class may be of another version in each."""
    paths = [str(build_library([HERE / "officials.cc"], defines=d, flags="-std=c++17")) for d in GENERATIONS.values()]
    ops = {}
    for i, path in enumerate(paths):
        ops |= lite.load_custom_ops(path, {f"Threads{i}": "Register_THREADS"})
    before = [C.CDLL(path).backends_made() for path in paths]
    b = Build()
    for i in range(len(paths)):
        b.custom(f"Threads{i}", "x", f"y{i}")
    interpreter = lite.Interpreter(model_content=b.done("x", "y0 y1 y2"), custom_ops=ops)
    interpreter.allocate_tensors()
    run(interpreter, np.zeros(5))
    run(interpreter, np.zeros(5))
    assert [C.CDLL(path).backends_made() for path in paths] == [n + 1 for n in before]
    assert [interpreter.get_tensor(d["index"])[1] for d in interpreter.get_output_details()] == [2, 2, 2]
