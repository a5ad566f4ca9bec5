"""Constants that must be unpacked, strings and four-bit numbers, are unpacked once however many tensors use them."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np

from opwright import lite
from opwright.lite.format import Model, objects, pack_strings, schema
from opwright.lite.runtime import constants as tensors

WORDS = [b"word %d" % i for i in range(20_000)]
PACKED = np.arange(1 << 18, dtype=np.int64).astype(np.uint8)


def model() -> bytes:
    t = schema.TensorType
    some = [objects.Tensor(shape=[len(WORDS)], type=t.STRING, buffer=1) for _ in range(40)]
    some += [objects.Tensor(shape=[1000, i], type=t.INT4, buffer=2) for i in range(1, 60)]
    main = objects.SubGraph(tensors=some, inputs=[], outputs=[0])
    buffers = [objects.Buffer(), objects.Buffer(data=pack_strings(WORDS)), objects.Buffer(data=PACKED)]
    return Model(subgraphs=[main], buffers=buffers).to_bytes()


def test_they_share_memory_and_let_go_of_it():
    data = model()
    tracemalloc.start()
    first, second = lite.Interpreter(model_content=data), lite.Interpreter(model_content=data)
    assert tracemalloc.get_traced_memory()[1] < 2 * len(data) + (16 << 20)
    tracemalloc.stop()
    first.allocate_tensors()
    assert first.get_tensor(7).tolist() == WORDS
    nibbles = np.stack([PACKED & 15, PACKED >> 4], 1).reshape(-1).astype(np.int8)
    nibbles[nibbles > 7] -= 16
    assert (first.get_tensor(45).reshape(-1) == nibbles[: 1000 * 6]).all()
    assert np.shares_memory(first.tensor(45)(), second.tensor(60)())
    before = len(tensors._unpacked)
    del first, second
    gc.collect()
    assert len(tensors._unpacked) <= before - 2


def test_bytes_that_may_change_are_read_again():
    held = Model.read(model())
    held.buffers[2].data = PACKED.copy()
    one = lite.Interpreter(model_content=held).tensor(40)().copy()
    held.buffers[2].data[:] = 0
    assert one.any()
    assert not lite.Interpreter(model_content=held).tensor(40)().any()


def test_a_sparse_scalar_is_one_number():
    """Found by fuzzing: a tensor without dimensions may still have (empty) sparsity parameters."""
    tensor = objects.Tensor(shape=[], buffer=1, sparsity=objects.SparsityParameters())
    main = objects.SubGraph(tensors=[tensor], inputs=[], outputs=[0])
    buffers = [objects.Buffer(), objects.Buffer(data=np.float32([2.5]).view(np.uint8))]
    interpreter = lite.Interpreter(model_content=Model(subgraphs=[main], buffers=buffers).to_bytes())
    interpreter.allocate_tensors()
    assert interpreter.get_tensor(0) == 2.5
