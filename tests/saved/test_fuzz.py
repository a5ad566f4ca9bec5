"""Damaged files of saved models and checkpoints: every one loads or is refused in words, soon and in little memory.

Mutations keep the checksums right, so that they get past them.
"""

import contextlib
import json
import random
import re
import resource
import time
import zlib

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import OpError
from opwright.saved import safetensors
from replaced_files import replace_file

pytestmark = pytest.mark.ours
ODD = [
    None,
    True,
    -1,
    0,
    1,
    3,
    10**9,
    10**30,
    1.5,
    "",
    "x",
    "../x",
    "f32[2]",
    "f32[99999999999]",
    [],
    {},
    [0],
    {"a": 0},
]
WORDS = [
    "f32[]",
    "i32[?]",
    "str[...]",
    "resource[]",
    "None",
    "True",
    "-1",
    "1e400",
    "[]",
    "99999999999999999999",
    "graph",
    "return",
    "()",
    "=",
    "nan",
    "x",
    "Identity",
    "Fill",
    "While",
    "shape(?)",
    "dtype(i64)",
    "b'x'",
    "_",
    "stored(f32[2], 'q')",
]


def model():
    class Model(ow.Module):
        def __init__(self):
            super().__init__()
            self.w = ow.Variable([[1.0, 2.0], [3.0, 4.0]])
            self.parts = [ow.Variable(2), {"k": ow.Variable([b"a", b""])}, (ow.Variable([True]), 3)]
            self.c = ow.Variable(ow.cast([1, 2], ow.complex64))

        @ow.function(input_signature=[ow.TensorSpec([None, 2], ow.float32), ow.TensorSpec([], ow.int32)])
        def run(self, x, n):
            y = ow.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v @ self.w), (ow.constant(0), x))[1]
            y = ow.reshape(ow.concat([y, ow.fill([2, 2], 3.0)], 0), [-1, 2])
            return {"y": ow.cond(n > 1, lambda: special(y), lambda: y[:, ::-1]), "z": [ow.range(4), None]}

        @ow.function
        def other(self, x, flag=True, name="n"):
            return ow.random.uniform([2], seed=1) + ow.gather(ow.constant(np.arange(100.0, dtype=np.float32)), x)

    @ow.custom_gradient
    def special(x):
        return ow.exp(x), lambda dy: dy * x

    made = Model()
    made.other(ow.constant([1, 2]))
    return made


def mutate_json(rng, value, depth=0):
    """A value with one place changed."""
    if isinstance(value, dict) and value and (depth < 1 or rng.random() < 0.9):
        key = rng.choice(sorted(value))
        new = dict(value)
        how = rng.random()
        if how < 0.05:
            del new[key]
        elif how < 0.08:
            new["odd"] = new[key]
        else:
            new[key] = mutate_json(rng, value[key], depth + 1)
        return new
    if isinstance(value, list) and value and rng.random() < 0.9:
        i = rng.randrange(len(value))
        how = rng.random()
        if how < 0.08:
            return value[:i] + value[i + 1 :]
        if how < 0.16:
            return [*value, value[i]]
        return [*value[:i], mutate_json(rng, value[i], depth + 1), *value[i + 1 :]]
    if isinstance(value, int) and rng.random() < 0.5:
        return value + rng.choice([-1, 1])
    return rng.choice(ODD)


def mutate_text(rng, text):
    """Graph text with one place changed, mostly so that it still parses."""
    parts = re.findall(r"\w+|\s+|[^\w\s]", text)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        i = rng.randrange(len(parts))
        how = rng.random()
        if how < 0.2:
            parts[i] = ""
        elif how < 0.4:
            parts[i] = parts[rng.randrange(len(parts))]
        elif how < 0.6:
            parts[i] = rng.choice(WORDS)
        elif parts[i].isdigit():
            parts[i] = str(rng.choice([0, 1, 2, 3, 7, 10**6, 2**31, 2**63]))
        else:
            same = [p for p in parts if p.isidentifier()]
            if parts[i].isidentifier():
                parts[i] = rng.choice(same)
    return "".join(parts)


def mutate_bytes(rng, data):
    data = bytearray(data)
    how = rng.random()
    if how < 0.3:
        return bytes(data[: rng.randrange(len(data))])
    if how < 0.4:
        return bytes(data) + bytes(rng.randrange(1, 9))
    for _ in range(rng.choice([1, 1, 3])):
        data[rng.randrange(min(len(data), rng.choice([16, 400, len(data)])))] = rng.choice([0, 1, 34, 48, 57, 125, 255])
    return bytes(data)


def check(load):
    """Loads, or says why not, soon."""
    start = time.perf_counter()
    with contextlib.suppress(OpError):
        load()
    assert time.perf_counter() - start < 10


def fuzz_model(tmp_path, seed, count):
    rng = random.Random(seed)
    folder = tmp_path / "m"
    ow.saved_model.save(model(), folder)
    files = {n: (folder / n).read_bytes() for n in ("saved_model.json", "graphs.txt", "variables.safetensors")}
    content = json.loads(files["saved_model.json"])
    loaded = 0
    for _ in range(count):
        for name, data in files.items():
            replace_file(folder / name, data)
        what = rng.random()
        new = content
        if what < 0.45:
            new = mutate_json(rng, content)
            if rng.random() < 0.3:
                new = mutate_json(rng, new)
        elif what < 0.85:
            text = mutate_text(rng, files["graphs.txt"].decode()).encode()
            replace_file(folder / "graphs.txt", text)
            new = {**content, "graphs_crc32": zlib.crc32(text)}
        else:
            replace_file(folder / "variables.safetensors", mutate_bytes(rng, files["variables.safetensors"]))
            if rng.random() < 0.5:
                new = {**content, "tensors": {k: {"type": t["type"]} for k, t in content["tensors"].items()}}
        replace_file(folder / "saved_model.json", json.dumps(new))

        def load():
            nonlocal loaded
            ow.saved_model.load(folder)
            loaded += 1

        try:
            check(load)
        except BaseException:
            print(json.dumps(new), (folder / "graphs.txt").read_text())
            raise
    return loaded


def fuzz_checkpoint(tmp_path, seed, count):
    rng = random.Random(seed)
    result = model()
    result.optimizer = ow.optimizers.Adam(0.1)
    result.optimizer.build([result.w])
    ow.train.Checkpoint(m=result).write(tmp_path / "c")
    (data,) = tmp_path.glob("c.data-*")
    index = tmp_path / "c.index"
    first, second = index.read_bytes(), data.read_bytes()
    for _ in range(count):
        replace_file(index, first)
        replace_file(data, second)
        if rng.random() < 0.7:
            replace_file(index, json.dumps(mutate_json(rng, json.loads(first))))
        else:
            replace_file(data, mutate_bytes(rng, second))
        fresh = model()
        with contextlib.suppress(OpError, ValueError):  # ValueError: another shape
            ow.train.Checkpoint(m=fresh).read(tmp_path / "c").expect_partial()


def test_saved_models(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loaded = fuzz_model(tmp_path, 1, 150)
    assert 0 < loaded < 150
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes


def test_checkpoints(tmp_path):
    fuzz_checkpoint(tmp_path, 1, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_saved_models_long(tmp_path, seed):
    fuzz_model(tmp_path, 100 + seed, 500)


@pytest.mark.slow
def test_checkpoints_long(tmp_path):
    fuzz_checkpoint(tmp_path, 7, 1500)


@pytest.mark.parametrize("seed", range(3))
def test_tensor_files(tmp_path, seed):
    rng = random.Random(seed)
    path = tmp_path / "t.safetensors"
    with open(path, "wb") as file:
        safetensors.write(file, {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros(0, np.int8), "c": np.float16([1])})
    original = path.read_bytes()
    for _ in range(300):
        replace_file(path, mutate_bytes(rng, original))

        def load():
            file = safetensors.TensorFile(str(path))
            for name in file:
                file.read(name)

        check(load)
