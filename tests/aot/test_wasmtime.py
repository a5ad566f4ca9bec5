"""WebAssembly modules in wasmtime, without JavaScript: the interpreter's numbers; the sandbox and its limits hold."""

import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import opwright as ow
from opwright import aot
from opwright.aot.model_runs import TensorFacts
from opwright.aot.tensor_differences import Tolerance, tensor_difference
from opwright.core.errors import OpError, UnimplementedError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from benchmarks import single_operators
from built_singles import REFUSED, build_single
from test_libraries import interpreted, network, rows

wasmtime = pytest.importorskip("wasmtime")
PAGE = 1 << 16


class Module:
    """A module of one signature in a store of its own, called through its C functions."""

    def __init__(self, folder, name, memory_size=-1):
        self.notes = json.loads((folder / f"{name}.json").read_text())
        self.store = wasmtime.Store()
        self.store.set_limits(memory_size=memory_size)
        module = wasmtime.Module.from_file(self.store.engine, str(folder / f"{name}.wasm"))
        assert list(module.imports) == []
        exports = wasmtime.Instance(self.store, module, []).exports(self.store)
        self.signature = self.notes["signatures"][0]
        self.memory, self.function = exports["memory"], exports[self.signature["function"]]
        self.end = exports["__heap_base"].value(self.store)
        self.state = self.place(self.notes["state"]) if self.notes["state"] else None
        if self.state is not None:
            exports[f"{name}_reset"](self.store, self.state)
        self.arena = self.place(self.notes["arena"])

    def place(self, content):
        """Reserve memory for bytes, or for a number of them, and return its address."""
        size = content if isinstance(content, int) else len(content)
        start = -(-self.end // 64) * 64
        self.end = start + size
        missing = self.end - self.memory.data_len(self.store)
        if missing > 0:
            self.memory.grow(self.store, -(-missing // PAGE))
        if not isinstance(content, int):
            self.memory.write(self.store, content, start)
        return start

    def words(self, words):
        return self.place(np.array([*words, 0], np.uint32).tobytes())

    def run(self, feeds, runs=1):
        ports = self.signature["outputs"]
        dtypes = [np.dtype(ow.as_dtype(p["dtype"]).as_numpy_dtype) for p in ports]
        places = [self.place(math.prod(p["shape"]) * d.itemsize) for p, d in zip(ports, dtypes)]
        extents = sum(max(len(p["shape"]), 1) for p in ports if p["varies"])
        inputs = self.words([self.place(np.ascontiguousarray(x).tobytes()) for x in feeds])
        outputs = self.words([*places, *[0] * extents])
        state = [] if self.state is None else [self.state]
        for _ in range(runs):
            status = self.function(self.store, inputs, outputs, *state, self.arena, self.notes["arena"])
            assert status == 0
        at, arrays = outputs + 4 * len(ports), []
        for p, dtype, place in zip(ports, dtypes, places):
            shape = p["shape"]
            if p["varies"]:
                shape = np.frombuffer(self.memory.read(self.store, at, at + 4 * len(shape)), np.uint32)
                at += 4 * max(len(shape), 1)
            size = math.prod(map(int, shape)) * dtype.itemsize
            arrays.append(np.frombuffer(self.memory.read(self.store, place, place + size), dtype).reshape(shape))
        return arrays


@pytest.mark.parametrize("part", rows(24))
def test_results_of_every_builtin_are_the_interpreters(part, tmp_path):
    faults, ran = [], 0
    for i, single in enumerate(itertools.islice(single_operators.singles(), part, None, 24)):
        try:
            expected = interpreted(single.content, single.feeds, runs=2)
        except OpError:
            continue  # a model of an operator's errors
        try:
            build_single(single, "wasm32-simd128", tmp_path, name=f"row{i}")
        except UnimplementedError as error:
            if not any(reason in str(error) for reason in REFUSED):
                raise
            continue
        ran += 1
        for actual, exact in zip(Module(tmp_path, f"row{i}").run(single.feeds, 2), expected, strict=True):
            facts = TensorFacts(single.name, exact.shape, exact.dtype, 0.0, 0)
            row = tensor_difference(actual, facts, np.asarray(exact), facts, Tolerance())
            if not row.agrees:
                faults.append(row)
    assert not faults, "\n".join(map(str, faults))
    assert ran >= 10


def test_the_sandbox_holds(tmp_path):
    """Addresses outside of the memory trap, and leave the module usable; misaligned ones and null are statuses; a host
    that grants less memory is told when it grows."""
    content, image = network()
    aot.build(content, "wasm32-simd128", tmp_path, name="net")
    module = Module(tmp_path, "net")
    (scores, _) = module.run([image])
    np.testing.assert_allclose(scores, interpreted(content, [image])[0], rtol=1e-5)
    size, arena = module.notes["arena"], module.arena
    end = module.memory.data_len(module.store)
    far = module.words([end - 64])
    results = module.words([module.place(64), module.place(64)])
    for inputs, outputs in (
        (far, results),
        (end - 2, results),
        (module.words([module.place(3072)]), module.words([end, end])),
    ):
        with pytest.raises(wasmtime.Trap, match="out of bounds"):
            module.function(module.store, inputs, outputs, arena, size)
    good = module.words([module.place(image.tobytes())])
    statuses = {
        "ok": module.function(module.store, good, results, arena, size),
        "small": module.function(module.store, good, results, arena, size - 1),
        "misaligned": module.function(module.store, good, results, arena + 1, size),
        "null": module.function(module.store, 0, results, arena, size),
    }
    assert statuses == {"ok": 0, "small": 2, "misaligned": 3, "null": 4}
    with pytest.raises(wasmtime.WasmtimeError, match="grow"):
        Module(tmp_path, "net", memory_size=2 * PAGE).place(4 * PAGE)
