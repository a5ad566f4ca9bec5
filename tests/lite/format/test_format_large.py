"""Files over 2 GB: buffers behind the FlatBuffer, on a sparse file, so that neither disk nor memory holds them."""

from __future__ import annotations

import os
import time
import tracemalloc

import numpy as np
import pytest
from format_models import add_model

from opwright.core import errors
from opwright.lite.format import Model, objects, writer

GB = 1 << 30


def sparse_write(model: Model, path) -> None:
    """As Model.write does, but large parts, all zeros but for their ends, are left out of the file."""
    with open(path, "wb") as file:
        for part in writer.chunks(model):
            view = memoryview(part).cast("B")
            if len(view) > 1 << 20:
                file.write(view[:4096])
                file.seek(len(view) - 8192, os.SEEK_CUR)
                file.write(view[-4096:])
            else:
                file.write(view)


@pytest.mark.parametrize("sizes", [[3 * GB], [GB, GB, GB // 2]], ids=["one", "several"])
def test_over_2_gb(sizes, tmp_path):
    """The sum alone makes the writer put them behind; each is found where it was put, and the rest is as it was."""
    model = add_model()
    for i, size in enumerate(sizes):
        data = np.zeros(size, np.uint8)  # not touched, so not there
        data[:3], data[-3:] = i + 1, i + 7
        model.buffers.append(objects.Buffer(data=data))
    sparse_write(model, tmp_path / "large.tflite")
    assert os.path.getsize(tmp_path / "large.tflite") > sum(sizes)
    tracemalloc.start()
    start = time.perf_counter()
    again = Model.read(tmp_path / "large.tflite")
    assert time.perf_counter() - start < 0.5
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    again.verify()
    for i, size in enumerate(sizes):
        data = again.buffers[3 + i].data
        assert data.nbytes == size
        assert data[:4].tolist() == [i + 1] * 3 + [0]
        assert data[-4:].tolist() == [0] + [i + 7] * 3
        assert data.__array_interface__["data"][0] % 16 == 0
    assert again.subgraphs == model.subgraphs
    assert again.buffers[1].data.tobytes() == model.buffers[1].data.tobytes()
    sparse_write(again, tmp_path / "again.tflite")
    assert os.path.getsize(tmp_path / "again.tflite") == os.path.getsize(tmp_path / "large.tflite")


def test_structure_alone_over_2_gb_is_refused():
    model = add_model()
    model.subgraphs[0].tensors[1].quantization = objects.QuantizationParameters(scale=np.zeros(2**29, np.float32))
    with pytest.raises(errors.ResourceExhaustedError, match="does not fit a FlatBuffer"):
        model.to_bytes()


def test_reading_100_mb_copies_no_weights(tmp_path):
    model = add_model()
    model.buffers.append(objects.Buffer(data=np.zeros(100 << 20, np.uint8)))
    model.write(tmp_path / "m.tflite")
    tracemalloc.start()
    again = Model.read(tmp_path / "m.tflite")
    again.verify()
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert again.buffers[3].data.nbytes == 100 << 20
    times = []
    for _ in range(5):
        start = time.perf_counter()
        Model.read(tmp_path / "m.tflite").verify()
        times.append(time.perf_counter() - start)
    assert min(times) < 0.02


def test_verifying_megabytes_of_strings_is_cheap():
    from opwright.lite.format import pack_strings, schema

    model = add_model()
    words = [b"a word of ten"] * 100_000
    model.buffers.append(objects.Buffer(data=pack_strings(words)))
    tensor = objects.Tensor(shape=[len(words)], type=schema.TensorType.STRING, buffer=3, name="words")
    model.subgraphs[0].tensors += [tensor] * 50
    again = Model.read(model.to_bytes())
    times = []
    for _ in range(3):
        start = time.perf_counter()
        again.verify()
        times.append(time.perf_counter() - start)
    assert min(times) < 0.05
