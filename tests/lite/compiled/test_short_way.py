"""The short way to a model that was planned before: the same answers, details and errors as by reading the file."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_kit import Build

import opwright as ow
from opwright import lite
from opwright.compiler import plan_cache
from opwright.compiler.cache import objects
from opwright.lite.compiled import fast_path

RNG = np.random.default_rng(3)
DATA = Path(__file__).parents[2] / "data" / "networks"
FILTER = ow.constant(RNG.standard_normal((3, 3, 2, 5)).astype(np.float32))
TABLE = ow.constant(RNG.standard_normal((7, 6)).astype(np.float32))
X = RNG.standard_normal((1, 6, 5, 2)).astype(np.float32)


@ow.function(input_signature=[ow.TensorSpec((1, 6, 5, 2), ow.float32, name="image")])
def network(image: Any) -> Any:
    return ow.nn.relu(ow.nn.conv2d(image, FILTER, strides=1, padding="SAME")) + 0.5


@ow.function(input_signature=[ow.TensorSpec((3,), ow.int32, name="rows")])
def rows_of(rows: Any) -> Any:
    return ow.gather(TABLE, rows) * 2.0


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all tests: kernels that a process has loaded are not written to another."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _compiled(cache: Path) -> Iterator[None]:
    with ow.flags(compiled=True, background=False, cache_dir=str(cache)):
        yield


def files_of(cache: Path) -> list[Path]:
    return sorted(f for f in cache.rglob("*") if f.is_file() and f.stat().st_size)


def written(path: Path, function: Any = network) -> str:
    content = lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()]).convert()
    path.write_bytes(content)
    return str(path)


def ready(path: str) -> lite.Interpreter:
    """An interpreter that goes the short way."""
    interpreter = lite.Interpreter(path)
    if interpreter._fast_path is None:
        interpreter.allocate_tensors()
        interpreter = lite.Interpreter(path)
    assert interpreter._fast_path is not None
    return interpreter


def run(interpreter: lite.Interpreter, x: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    result: np.ndarray = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result


def reference(path: str, x: np.ndarray) -> np.ndarray:
    """By the interpreter's own kernels."""
    plain = lite.Interpreter(path, experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF)
    plain.allocate_tensors()
    return run(plain, x)


def test_answers(tmp_path: Path) -> None:
    path = written(tmp_path / "m.tflite")
    interpreter = ready(path)
    interpreter.allocate_tensors()
    for scale in (1.0, -2.0):
        np.testing.assert_allclose(
            run(interpreter, X * np.float32(scale)), reference(path, X * np.float32(scale)), rtol=1e-5, atol=1e-6
        )
    assert interpreter._fast_path is not None


def test_details_are_those_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "m.tflite")
    short = ready(path)
    plain = lite.Interpreter(path, experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF)
    for one, other in (
        (short.get_input_details(), plain.get_input_details()),
        (short.get_output_details(), plain.get_output_details()),
    ):
        assert str(one) == str(other)
        assert [{k: type(v) for k, v in d.items()} for d in one] == [{k: type(v) for k, v in d.items()} for d in other]
    assert short._fast_path is not None


def test_bytes_go_it_as_files_do(tmp_path: Path) -> None:
    rows = np.asarray([6, 0, 3], np.int32)
    for function, x in ((network, X), (rows_of, rows)):
        path = written(tmp_path / "m.tflite", function)
        content = Path(path).read_bytes()
        lite.Interpreter(model_content=content).allocate_tensors()
        again = bytes(bytearray(content))  # known by what they hold
        short = lite.Interpreter(model_content=again)
        assert short._fast_path is not None
        assert short._fast_path.mapping is again
        short.allocate_tensors()
        correct = reference(path, x)
        np.testing.assert_allclose(run(short, x), correct, rtol=1e-5, atol=1e-6)
        assert short.get_tensor_details()
        assert short._fast_path is None  # opened, with the memory as it was
        np.testing.assert_allclose(
            short.get_tensor(short.get_output_details()[0]["index"]), correct, rtol=1e-5, atol=1e-6
        )
        short.invoke()
        changed = bytearray(content)
        assert lite.Interpreter(model_content=changed)._fast_path is None  # its owner may write to it


LEAVING = {
    "tensor details": lambda i: i.get_tensor_details(),
    "view": lambda i: i.tensor(i.get_input_details()[0]["index"])(),
    "signatures": lambda i: i.get_signature_list(),
    "profile": lambda i: i.profile(runs=2),
    "subgraphs": lambda i: i.num_subgraphs(),
    "another tensor": lambda i: i.get_tensor(1),
}


@pytest.mark.parametrize("what", sorted(LEAVING))
def test_what_needs_the_file_opens_it(what: str, tmp_path: Path) -> None:
    path = written(tmp_path / "m.tflite")
    interpreter = ready(path)
    interpreter.allocate_tensors()
    before = run(interpreter, X)
    os.unlink(path)  # it was opened, as far as anybody can tell
    LEAVING[what](interpreter)
    assert interpreter._fast_path is None
    index = interpreter.get_input_details()[0]["index"]
    np.testing.assert_array_equal(interpreter.get_tensor(index), X)
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), before)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), before)


@pytest.mark.parametrize("name", ["both_ways_float", "lstms_int8"])
def test_variable_tensors_go_it_and_come_back(name: str, tmp_path: Path) -> None:
    path = str(shutil.copy(DATA / f"{name}.tflite", tmp_path))
    short, plain = ready(path), lite.Interpreter(path, experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF)
    state = [t.index for t in short._fast_path._state]  # type: ignore[union-attr]
    x = RNG.standard_normal((2, *plain.get_input_details()[0]["shape"])).astype(np.float32)
    tolerance = 0 if "int8" in name else 1e-5
    for one in (short, plain):
        one.allocate_tensors()

    def check(x: np.ndarray) -> np.ndarray:
        answer = run(short, x)
        np.testing.assert_allclose(answer, run(plain, x), rtol=tolerance, atol=tolerance)
        return answer

    first = check(x[0])
    check(x[1])
    short.reset_all_variables()
    plain.reset_all_variables()
    np.testing.assert_array_equal(check(x[0]), first)
    assert state
    assert short._fast_path is not None
    for index in state:
        kept, wanted = short.get_tensor(index), plain.get_tensor(index)
        np.testing.assert_allclose(kept, wanted, rtol=tolerance, atol=tolerance)
    short.get_tensor_details()
    assert short._fast_path is None
    check(x[1])  # with the state so far


def test_outputs_get_the_shape_that_follows_from_the_inputs(tmp_path: Path) -> None:
    path = str(shutil.copy(DATA / "detector_float.tflite", tmp_path))
    plain = lite.Interpreter(path, experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF)
    short = ready(path)
    assert str(short.get_output_details()) == str(plain.get_output_details())  # with the shapes in the file
    for one in (short, plain):
        one.allocate_tensors()
    assert str(short.get_output_details()) == str(plain.get_output_details())
    details = plain.get_input_details()
    values = [RNG.standard_normal(d["shape"]).astype(d["dtype"]) for d in details]
    for one in (short, plain):
        for d, value in zip(details, values):
            one.set_tensor(d["index"], value)
        one.invoke()
    for d in plain.get_output_details():
        np.testing.assert_allclose(short.get_tensor(d["index"]), plain.get_tensor(d["index"]), rtol=1e-5, atol=1e-6)
    assert short._fast_path is not None


def test_resizing_opens_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "m.tflite")
    interpreter = ready(path)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [2, 6, 5, 2])
    interpreter.allocate_tensors()
    two = np.concatenate([X, -X])
    np.testing.assert_allclose(run(interpreter, two)[1:], reference(path, -X), rtol=1e-5, atol=1e-6)


ERRORS = [
    (lambda i: i.invoke(), RuntimeError, "allocate_tensors"),
    (lambda i: i.set_tensor(i.get_input_details()[0]["index"], X), ValueError, "allocate_tensors"),
    (lambda i: i.get_tensor(i.get_output_details()[0]["index"]), ValueError, "allocate_tensors"),
    (lambda i: (i.allocate_tensors(), i.set_tensor(i.get_input_details()[0]["index"], X[0])), ValueError, "Dimension"),
    (
        lambda i: (i.allocate_tensors(), i.set_tensor(i.get_input_details()[0]["index"], X.astype(int))),
        ValueError,
        "Got value of type",
    ),
    (lambda i: i.get_tensor(999), ValueError, "999"),
    (lambda i: i.set_tensor(-1, X), ValueError, "-1"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors_are_the_same(case: int, tmp_path: Path) -> None:
    does, kind, says = ERRORS[case]
    path = written(tmp_path / "m.tflite")
    plain = lite.Interpreter(path, experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF)
    with pytest.raises(kind, match=says) as expected:
        does(plain)
    with pytest.raises(kind, match=says) as excinfo:
        does(ready(path))
    assert str(excinfo.value) == str(expected.value)


def test_a_guard_that_fails_is_reported_by_the_operator(tmp_path: Path) -> None:
    path = written(tmp_path / "g.tflite", rows_of)
    interpreter = ready(path)
    interpreter.allocate_tensors()
    right = np.array([0, 6, 3], np.int32)
    np.testing.assert_allclose(run(interpreter, right), TABLE.numpy()[right] * 2, rtol=1e-6)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([0, 7, 3], np.int32))
    with pytest.raises(RuntimeError, match="GATHER"):
        interpreter.invoke()
    np.testing.assert_allclose(run(interpreter, right), TABLE.numpy()[right] * 2, rtol=1e-6)


def test_another_file_under_the_name_is_another_model(tmp_path: Path) -> None:
    path = written(tmp_path / "m.tflite")
    ready(path)
    written(tmp_path / "m.tflite", rows_of)
    interpreter = lite.Interpreter(path)
    assert interpreter._fast_path is None
    assert interpreter.get_input_details()[0]["dtype"] is np.int32


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path / "m.tflite")
    ready(path)
    os.unlink(path)
    with pytest.raises(ValueError, match="Could not open"):
        lite.Interpreter(path)


def test_options_that_need_the_file_have_it_read(tmp_path: Path) -> None:
    path = written(tmp_path / "m.tflite")
    ready(path)
    for options in (
        {"experimental_preserve_all_tensors": True},
        {"experimental_delegates": [lite.SimpleDelegate()]},
        {"experimental_op_resolver_type": lite.OpResolverType.BUILTIN_REF},
        {"op_resolver": lite.BuiltinOpResolver()},
    ):
        assert lite.Interpreter(path, **options)._fast_path is None


@pytest.mark.parametrize("is_file", [True, False])
def test_limits_of_memory_hold(is_file: bool, tmp_path: Path) -> None:
    path = written(tmp_path / "model.tflite")
    model: dict[str, Any] = {"model_path": path} if is_file else {"model_content": Path(path).read_bytes()}
    lite.Interpreter(**model).allocate_tensors()
    interpreter = lite.Interpreter(**model)
    assert interpreter._fast_path is not None
    with ow.flags(max_model_bytes=100), pytest.raises(ow.errors.ResourceExhaustedError, match="max_model_bytes"):
        lite.Interpreter(**model)
    interpreter.allocate_tensors()
    for index in (1.0, "1", None):
        with pytest.raises(TypeError):
            interpreter.get_tensor(index)


def test_interpreters_are_freed_and_closed(tmp_path: Path) -> None:
    path = written(tmp_path / "m.tflite")
    interpreter = ready(path)
    interpreter.allocate_tensors()
    interpreter.close()
    with pytest.raises(RuntimeError):
        interpreter.invoke()
    before = len([o for o in gc.get_objects() if isinstance(o, lite.Interpreter)])
    for _ in range(20):
        other = ready(path)
        other.allocate_tensors()
        del other
    assert len([o for o in gc.get_objects() if isinstance(o, lite.Interpreter)]) <= before


@pytest.fixture
def damaged(cache: Path) -> Iterator[Path]:
    """The cache, which is whole again afterwards."""
    whole = {f: f.read_bytes() for f in files_of(cache)}
    yield cache
    for file, content in whole.items():
        file.write_bytes(content)


@pytest.mark.parametrize("change", ["flip", "cut", "empty"])
def test_damaged_caches_are_made_again(change: str, tmp_path: Path, damaged: Path) -> None:
    path = written(tmp_path / "m.tflite")
    expected = reference(path, X)
    ready(path)
    assert files_of(damaged)
    for file in files_of(damaged):
        content = bytearray(file.read_bytes())
        if change == "flip":
            content[len(content) // 2] ^= 0x55
        file.write_bytes({"flip": content, "cut": content[: len(content) // 2], "empty": b""}[change])
    interpreter = lite.Interpreter(path)
    assert interpreter._fast_path is None
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter, X), expected, rtol=1e-5, atol=1e-6)


def test_every_byte_of_the_cache_counts(tmp_path: Path, damaged: Path) -> None:
    """A byte that is changed anywhere in any file never changes an answer."""
    path = written(tmp_path / "m.tflite")
    expected = reference(path, X)
    ready(path)
    rng = np.random.default_rng(0)
    for _ in range(30):
        files = files_of(damaged)
        file = files[rng.integers(len(files))]
        before = file.read_bytes()
        content = bytearray(before)
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        file.write_bytes(content)
        interpreter = lite.Interpreter(path)
        interpreter.allocate_tensors()
        np.testing.assert_allclose(run(interpreter, X), expected, rtol=1e-5, atol=1e-6)
        file.write_bytes(before)


@ow.function(input_signature=[ow.TensorSpec((None, 4), ow.float32, name="x")])
def any_rows(x: Any) -> Any:
    return ow.nn.relu(x) + 0.25


def test_other_sizes_leave_no_trace(tmp_path: Path) -> None:
    """A process that gives an input another size first does not change what the next one begins with."""
    path = written(tmp_path / "any.tflite", any_rows)
    expected = lite.Interpreter(path).get_input_details()[0]["shape"].tolist()
    for _ in range(2):
        interpreter = lite.Interpreter(path)
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [7, 4])
        interpreter.allocate_tensors()
        assert run(interpreter, np.ones((7, 4), np.float32)).shape == (7, 4)
        after = lite.Interpreter(path)
        assert after.get_input_details()[0]["shape"].tolist() == expected
    assert ready(path).get_input_details()[0]["shape"].tolist() == expected


def test_a_note_for_a_plan_that_is_gone_is_replaced(tmp_path: Path, cache: Path) -> None:
    """As after a change of cache keys: otherwise no call would take the fast path again."""
    path = written(tmp_path / "model.tflite")
    key = fast_path.digest_of(str(plan_cache.key_of_file(path)))
    ready(path)
    store = objects(cache)
    note = json.loads(bytes(store.find(key)))
    store.keep(key, json.dumps(note | {"plan": "another"}).encode())
    assert lite.Interpreter(path)._fast_path is None
    interpreter = ready(path)
    interpreter.allocate_tensors()
    assert run(interpreter, X).shape == (1, 6, 5, 5)
    assert json.loads(bytes(store.find(key)))["plan"] == note["plan"]


def test_custom_operators_go_it_where_the_shipped_ones_serve_them(tmp_path: Path) -> None:
    def file(name: str) -> str:
        built = Build().tensor("x", (2, 3)).tensor("h", (2, 3)).tensor("y", (2, 3))
        path = tmp_path / name
        path.write_bytes(built.op("TANH", "x", "h").custom("Sign", "h", "y").done())
        return str(path)

    x = np.array([[1, -2, 0], [0.5, -0.0, 3]], np.float32)
    shipped = ready(file("shipped.tflite"))
    shipped.allocate_tensors()
    np.testing.assert_array_equal(run(shipped, x), np.sign(x))

    @ow.operator
    class Sign:
        """The opposite. .. math:: y = -x"""

        x = ow.Input(dtypes=ow.float32)
        y = ow.Output(like="x")

        def compute(op: Any, x: Any) -> Any:
            return -x

        @ow.kernel
        def kernel(x: Any) -> Any:
            return -x

    path = file("ours.tflite")
    for customs, expected in (([Sign], -np.tanh(x)), ([], np.sign(x))):
        actual = lite.Interpreter(path, custom_ops=customs)
        assert actual._fast_path is None
        actual.allocate_tensors()
        np.testing.assert_allclose(run(actual, x), expected, rtol=1e-5)


NEEDED = """
import sys
import numpy as np
from opwright.lite import Interpreter
interpreter = Interpreter(sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.float32([[0.5]]))
interpreter.invoke()
assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist() == [[1.0]]
assert interpreter._fast_path is not None
print(*sys.modules)
"""
NOT_NEEDED = {
    "llvmlite",
    "ml_dtypes",
    "dataclasses",
    "hashlib",
    "pathlib",
    "opwright.eager",
    "opwright.graph",
    "opwright.ops",
    "opwright.autograph",
    "opwright.tracing",
    "opwright.compiler.language",
    "opwright.lite.format.model",
    "opwright.lite.ops.definition",
    "opwright.lite.resolver",
    "opwright.lite.runtime.subgraph",
}


def test_a_process_imports_what_it_needs(tmp_path: Path, cache: Path) -> None:
    @ow.function(input_signature=[ow.TensorSpec((1, 1), ow.float32, name="x")])
    def double(x: Any) -> Any:
        return x + x

    path = written(tmp_path / "m.tflite", double)
    environ = os.environ | {"OPWRIGHT_CACHE_DIR": str(cache), "OPWRIGHT_COMPILED": "1", "OPWRIGHT_BACKGROUND": "0"}
    code = "import sys; from opwright.lite import Interpreter; Interpreter(sys.argv[1]); print(*sys.modules)"
    with_nothing = environ | {"OPWRIGHT_CACHE_DIR": str(tmp_path / "empty"), "OPWRIGHT_BACKGROUND": "1"}
    done = subprocess.run([sys.executable, "-c", code, path], env=with_nothing, capture_output=True, text=True)
    assert "opwright.lite.interpreter" in done.stdout, done.stderr
    assert "llvmlite" not in done.stdout.split()  # a first answer does not wait for it
    # by a process of its own: this one may have loaded the kernels from another folder, and would not keep them again
    first = NEEDED.replace("assert interpreter._fast_path is not None\n", "")
    subprocess.run([sys.executable, "-c", first, path], env=environ, check=True, capture_output=True)
    done = subprocess.run([sys.executable, "-c", NEEDED, path], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = set(done.stdout.split())
    assert not result & NOT_NEEDED
    assert len([name for name in result if name.startswith("opwright")]) < 60


# ---- several interpreters of one file --------------------------------------------------------------------------------

SHARED = """
import sys, time
from opwright import lite
def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))

def ready():
    start = time.perf_counter()
    made = lite.Interpreter(sys.argv[1], num_threads=1)
    made.allocate_tensors()
    made.invoke()
    return made, time.perf_counter() - start

before = resident()
first, slow = ready()
assert first._fast_path is not None
one = resident()
more = [ready() for _ in range(4)]
print((one - before) / 1e6, (resident() - one) / 4e6, slow, min(seconds for _, seconds in more))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell a process's memory")
def test_interpreters_of_one_file_share_its_weights_and_plan(tmp_path: Path, cache: Path) -> None:
    """4 MiB of weights, packed in a plan."""
    weights = ow.constant(RNG.standard_normal((1024, 1024)).astype(np.float32))

    @ow.function(input_signature=[ow.TensorSpec((8, 1024), ow.float32, name="x")])
    def dense(x: Any) -> Any:
        return ow.matmul(x, weights)

    path = written(tmp_path / "m.tflite", dense)
    ready(path)
    environ = os.environ | {"OPWRIGHT_CACHE_DIR": str(cache), "OPWRIGHT_COMPILED": "1"}
    done = subprocess.run([sys.executable, "-c", SHARED, path], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, another, slow, quick = map(float, done.stdout.split())
    assert first > 4
    assert another < 1
    assert quick < slow / 2


def test_what_interpreters_share_lives_as_long_as_one_of_them(tmp_path: Path) -> None:
    path = written(tmp_path / "m.tflite")
    first, second = ready(path), ready(path)
    assert first._fast_path is not None
    assert second._fast_path is not None
    assert first._fast_path._cached is second._fast_path._cached
    assert first._fast_path.mapping is second._fast_path.mapping
    for one in (first, second):
        one.allocate_tensors()
    expected = [reference(path, X * np.float32(i)) for i in (1, 2)]
    actual = [run(one, X * np.float32(i)) for i, one in ((1, first), (2, second))]
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    kept = weakref.ref(first._fast_path._cached)
    del first, one
    gc.collect()
    np.testing.assert_allclose(run(second, X), expected[0], rtol=1e-5, atol=1e-6)
    assert kept() is not None
    second.close()
    del second
    gc.collect()
    assert kept() is None


def test_a_plan_whose_note_lacks_constants_is_described_again(tmp_path: Path, cache: Path) -> None:
    """As of another target, whose kernels read other weights in the file: loading the model was a KeyError."""
    path = written(tmp_path / "m.tflite", rows_of)
    ready(path)
    key = plan_cache.key_of_file(path)
    assert key is not None
    name = fast_path.digest_of(key)
    with ow.flags(target="x86-64-v2"):
        assert fast_path.digest_of(key) != name
    note = json.loads(objects(str(cache)).find(name) or b"")
    assert note["places"]
    objects(str(cache)).keep(name, json.dumps(note | {"places": {}}).encode())
    assert fast_path.find(path) is None
    interpreter = ready(path)
    interpreter.allocate_tensors()
    rows = np.int32([1, 6, 0])
    np.testing.assert_array_equal(run(interpreter, rows), TABLE.numpy()[rows] * 2)


def test_constants_that_the_file_does_not_align_go_it(tmp_path: Path) -> None:
    """As 64-bit biases of official int16x8 files, of which the interpreter has an aligned copy."""
    numbers = np.array([1 << 40, -7, 3])
    build = Build().tensor("x", (3,), "INT64").tensor("c", data=numbers, type="INT64").tensor("y", (3,), "INT64")
    content = bytearray(build.op("ADD", "x c", "y").done())
    vector = numbers.nbytes.to_bytes(4, "little") + numbers.tobytes()
    place = content.index(vector)
    (link,) = (i for i in range(0, place, 4) if i + int.from_bytes(content[i : i + 4], "little") == place)
    content += bytes(-len(content) % 8)
    content[link : link + 4] = (len(content) - link).to_bytes(4, "little")
    path = tmp_path / "m.tflite"
    path.write_bytes(content + vector)
    interpreter = ready(str(path))
    interpreter.allocate_tensors()
    for x in (np.array([1, 2, 3]), -numbers):
        np.testing.assert_array_equal(run(interpreter, x), x + numbers)
    assert interpreter._fast_path is not None
