"""Control flow, variables, random numbers and several signatures in libraries: the interpreter's bits, every call."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright import aot
from opwright.aot.size_bounds import parse_bounds
from opwright.core.errors import InvalidArgumentError, UnimplementedError
from opwright.lite.format import objects

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lite" / "convert"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lite" / "state"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from benchmarks import single_operators
from control_cases import CONTROL, LISTS
from convert_harness import Case, assert_same, converted, eager
from state_harness import Build
from test_libraries import HOST, has_compiler, interpreted

ROWS = [row for row in (*CONTROL, *LISTS) if "batch" not in str(row) and "unknown" not in str(row)]
REFUSED_AT_CALLS = ("dynamic_with_gaps", "until_large")
"""Lists with sizes within the bounds that the error of a build gives to try, which the library refuses: a fault."""
REFUSED = ("shapes are unknown", "strings", "str[", "without elements")


def conversion(*functions: Any) -> bytes:
    return ow.lite.TFLiteConverter.from_concrete_functions(list(functions)).convert()


def _refusal(content: bytes, folder: Path, **settings: Any) -> str:
    """Return the error of a build; empty if there is a library."""
    try:
        aot.build(content, out=folder, name="program", format="object", **settings)
    except UnimplementedError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "row", [pytest.param(r, marks=pytest.mark.slow if i % 20 else ()) for i, r in enumerate(ROWS)], ids=str
)
def test_branches_and_loops_run_in_machine_code(row: Case, tmp_path: Path) -> None:
    content, feeds = converted(row), [np.asarray(x) for x in row.inputs]
    refusal = _refusal(content, tmp_path)
    if "which has no limit" in refusal:  # of a loop's results: the error gives bounds to try
        proposed = re.findall(r"'([^']+)': \((\d+), (\d+)\)", refusal)
        assert proposed, refusal
        refusal = _refusal(content, tmp_path, bounds={place: (int(low), int(high)) for place, low, high in proposed})
    if refusal:
        assert any(reason in refusal for reason in REFUSED), refusal
        return
    run = aot.load(tmp_path)
    if str(row) in REFUSED_AT_CALLS:
        with pytest.raises(InvalidArgumentError, match="outside of its bounds"):
            run(*feeds)
        return
    run(*feeds)
    outputs = list(run(*feeds).values())
    for actual, expected in zip(outputs, interpreted(content, feeds, runs=2), strict=True):
        np.testing.assert_array_equal(actual, expected)
    assert_same(list(run(*feeds).values()), eager(row), row.rtol)


class Counter(ow.Module):
    """Variables, and functions that share them."""

    def __init__(self) -> None:
        self.count = ow.Variable(10.0, name="count")
        self.row = ow.Variable(np.arange(6, dtype=np.float32).reshape(2, 3), name="row")

    @ow.function(input_signature=[ow.TensorSpec([], ow.float32, "x")])
    def increment(self, x: Any) -> Any:
        self.count.assign_add(x)
        return {"scaled": self.count * self.row}

    @ow.function(input_signature=[ow.TensorSpec([], ow.int32, "n"), ow.TensorSpec([], ow.bool, "p")])
    def nested(self, n: Any, p: Any) -> Any:
        total = ow.constant(0.0)
        for i in ow.range(n):
            if p and i > 0:
                self.count.assign_add(1.0)
                self.row.assign(self.row * 0.5)
            total += self.count
        return {"total": total, "count": self.count.read_value(), "row": self.row.read_value()}

    @ow.function(input_signature=[])
    def read(self) -> Any:
        return {"count": self.count.read_value(), "one": ow.constant([1, 2])}


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read", {}),
    ("increment", {"x": np.float32(2.5)}),
    ("nested", {"n": np.int32(4), "p": np.bool_(True)}),
    ("nested", {"n": np.int32(3), "p": np.bool_(False)}),
    ("nested", {"n": np.int32(0), "p": np.bool_(True)}),
    ("increment", {"x": np.float32(-1)}),
    ("read", {}),
]


def counter() -> tuple[Counter, bytes]:
    model = Counter()
    return model, conversion(*(f.get_concrete_function() for f in (model.increment, model.nested, model.read)))


def test_signatures_share_variables(tmp_path: Path) -> None:
    model, content = counter()
    library = aot.build(content, out=tmp_path, name="counter")
    run = aot.load(tmp_path)
    assert set(run.signatures) == {"increment", "nested", "read"}
    interpreter = ow.lite.Interpreter(model_content=content)
    for _ in range(2):  # from the beginning again, once reset
        for key, inputs in CALLS:
            results = run.signatures[key](**inputs)
            expected = interpreter.get_signature_runner(key)(**inputs)
            assert results.keys() == expected.keys()
            for name, value in expected.items():
                np.testing.assert_array_equal(results[name], value, err_msg=f"{key} {name}")
        run.reset()
        interpreter = ow.lite.Interpreter(model_content=content)
    for key, inputs in CALLS:
        results = run.signatures[key](**inputs)
        for name, value in getattr(model, key)(**{k: ow.constant(v) for k, v in inputs.items()}).items():
            np.testing.assert_array_equal(results[name], value.numpy(), err_msg=f"{key} {name}")
    assert library.state == 4 + 4 * 6
    with pytest.raises(InvalidArgumentError, match="several signatures"):
        run(x=np.float32(1))


@has_compiler
def test_signatures_in_c(tmp_path: Path) -> None:
    _, content = counter()
    aot.build(content, out=tmp_path, name="counter")
    (tmp_path / "calls.c").write_text(
        """
        #include "counter.h"
        #include <stdio.h>
        static uint8_t memory[COUNTER_ARENA_SIZE + COUNTER_ARENA_ALIGN];
        int main(void) {
          uint8_t *arena = memory + (-(uintptr_t)memory & (COUNTER_ARENA_ALIGN - 1u));
          static struct counter_state state;
          float x = 2.5f, scaled[COUNTER_INCREMENT_SCALED_SIZE], total, count, row[COUNTER_NESTED_ROW_SIZE];
          int32_t n = 4;
          uint8_t p = 1;
          struct counter_increment_inputs in = {&x};
          struct counter_increment_outputs out = {scaled};
          struct counter_nested_inputs nested_in;
          struct counter_nested_outputs nested_out;
          int status[3];
          nested_in.n = &n;
          nested_in.p = &p;
          nested_out.total = &total;
          nested_out.count = &count;
          nested_out.row = row;
          counter_reset(&state);
          status[0] = counter_increment(&in, &out, &state, arena, COUNTER_ARENA_SIZE);
          status[1] = counter_nested(&nested_in, &nested_out, &state, arena, COUNTER_ARENA_SIZE);
          status[2] = counter_nested(&nested_in, &nested_out, 0, arena, COUNTER_ARENA_SIZE);
          printf("%d %d %d %.9g %.9g %.9g %.9g", status[0], status[1], status[2], scaled[5], total, count, row[5]);
          return 0;
        }
        """
    )
    warnings = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    command = [*HOST, *warnings, "calls.c", "libcounter.a", "-lm", "-o", "calls"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([*HOST, *warnings, "-fsyntax-only", "main.c"], cwd=tmp_path, check=True, capture_output=True)
    printed = subprocess.run([tmp_path / "calls"], check=True, capture_output=True, text=True).stdout
    assert printed == "0 0 4 62.5 56 15.5 0.625"  # 12.5 * 5; 12.5 + 13.5 + 14.5 + 15.5; 5 / 2 ** 3


def test_random_numbers_are_the_interpreters_stream(tmp_path: Path) -> None:
    @ow.function(input_signature=[ow.TensorSpec([], ow.int32, "n")])
    def noise(n: Any) -> Any:
        total = ow.zeros([3, 5])
        for _ in ow.range(n):
            total += ow.random.normal([3, 5], seed=7)
        return total, ow.random.uniform([6], seed=3)

    content = conversion(noise.get_concrete_function())
    aot.build(content, out=tmp_path, name="noise", format="object")
    run, interpreter = aot.load(tmp_path), ow.lite.Interpreter(model_content=content)
    for n in (0, 2, 3):
        expected = interpreter.get_signature_runner()(n=np.int32(n))
        for name, value in run(n=np.int32(n)).items():
            np.testing.assert_array_equal(value, expected[name])
    first = run(np.int32(1))
    run.reset()
    assert any((run(np.int32(1))[name] != value).any() for name, value in first.items())


def test_outputs_may_be_inputs_constants_and_equal(tmp_path: Path) -> None:
    @ow.function(input_signature=[ow.TensorSpec([2], ow.float32, "x"), ow.TensorSpec([2], ow.float32, "unused")])
    def passes(x: Any, unused: Any) -> Any:
        y = x + 1.0
        return {"x": x, "same": x, "one": ow.constant([1.0, 2.0]), "y": y, "again": y}

    aot.build(conversion(passes.get_concrete_function()), out=tmp_path, name="passes", format="object")
    results = aot.load(tmp_path)(x=np.float32([3, 4]), unused=np.float32([0, 0]))
    expected = {"x": [3, 4], "same": [3, 4], "one": [1, 2], "y": [4, 5], "again": [4, 5]}
    assert {name: value.tolist() for name, value in results.items()} == expected


def test_a_variable_without_a_value_is_a_status(tmp_path: Path) -> None:
    b = Build()
    b.subgraph("read").handle("h").tensor("y", (2,), "FLOAT32").op("READ_VARIABLE", "h", "y").ends("", "y")
    read = [objects.TensorMap(name="y", tensor_index=b.names["y"])]
    b.subgraph("write").handle("h").tensor("x", (2,), "FLOAT32").op("ASSIGN_VARIABLE", "h x").ends("x", "")
    write = [objects.TensorMap(name="x", tensor_index=b.names["x"])]
    b.model.signature_defs = [
        objects.SignatureDef(signature_key="read", subgraph_index=0, outputs=read),
        objects.SignatureDef(signature_key="write", subgraph_index=1, inputs=write),
    ]
    aot.build(b.done(), out=tmp_path, name="kept", format="object")
    run = aot.load(tmp_path)
    with pytest.raises(InvalidArgumentError, match="no run has assigned"):
        run.signatures["read"]()
    run.signatures["write"](np.float32([3, 4]))
    assert run.signatures["read"]()["y"].tolist() == [3, 4]
    run.reset()
    with pytest.raises(InvalidArgumentError, match="no run has assigned"):
        run.signatures["read"]()


@ow.operator
class Atan(ow.OperatorDefinition):
    """Inverse tangent, with a kernel.

    .. math:: y = \\arctan(x)
    """

    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    gradient = None

    def compute(op, x: np.ndarray) -> np.ndarray:
        return np.arctan(x)

    @ow.kernel
    def kernel(x):  # type: ignore[no-untyped-def]
        return ow.atan(x)


class Regression(ow.Module):
    """y = atan(x + offset), as `opwright demo` trains it."""

    X = np.float32([-8, 0.5, 2, 2.2, 201])
    Y = np.float32([-1.4288993, 0.98279375, 1.2490457, 1.2679114, 1.5658458])

    def __init__(self, optimizer: Any) -> None:
        self.offset, self.optimizer = ow.Variable(0.0, name="offset"), optimizer

    @ow.function(input_signature=[ow.TensorSpec([5], ow.float32, "x"), ow.TensorSpec([5], ow.float32, "y")])
    def train(self, x: Any, y: Any) -> Any:
        with ow.GradientTape() as tape:
            loss = ow.reduce_sum(ow.square(ow.atan(x + self.offset, name="Atan") - y))
        self.optimizer.apply_gradients([(tape.gradient(loss, self.offset), self.offset)])
        return {"loss": loss}

    @ow.function(input_signature=[ow.TensorSpec([5], ow.float32, "x")])
    def predict(self, x: Any) -> Any:
        return {"y": ow.atan(x + self.offset, name="Atan")}


@pytest.mark.parametrize(
    "optimizer",
    [pytest.param(ow.optimizers.SGD(0.05), marks=pytest.mark.slow), ow.optimizers.Adam(0.01)],
    ids=["sgd", "adam"],
)
def test_a_training_step_with_a_custom_operator_is_a_library(optimizer: Any, tmp_path: Path) -> None:
    model = Regression(optimizer)
    functions = {"train": model.train, "predict": model.predict}
    aot.build(functions, out=tmp_path, name="regression", custom_ops=[Atan])
    run = aot.load(tmp_path)
    losses = []
    for _ in range(300):
        losses.append(float(run.signatures["train"](x=model.X, y=model.Y)["loss"]))
        np.testing.assert_allclose(losses[-1], model.train(model.X, model.Y)["loss"].numpy(), rtol=1e-3, atol=1e-6)
    assert losses[-1] < 1e-3 < losses[0]
    np.testing.assert_allclose(run.signatures["predict"](model.X)["y"], model.Y, atol=0.02)
    np.testing.assert_allclose(run.signatures["predict"](model.X)["y"], model.predict(model.X)["y"].numpy(), rtol=1e-5)
    run.reset()
    assert float(run.signatures["train"](x=model.X, y=model.Y)["loss"]) == losses[0]
    assert "struct regression_train_inputs" in (tmp_path / "regression.h").read_text()


def test_functions_are_named_or_refused(tmp_path: Path) -> None:
    model = counter()[0]
    aot.build([model.increment, model.read], out=tmp_path, name="counter", format="object")
    assert set(aot.load(tmp_path).signatures) == {"increment", "read"}
    with pytest.raises(InvalidArgumentError, match="input_signature"):
        aot.build([print], out=tmp_path)


def open_sizes() -> tuple[Any, bytes]:
    """A model of open sizes in both axes of one input and the first of another, with weights and a loop."""
    weights = np.random.default_rng(1).normal(size=(6, 70)).astype(np.float32)

    @ow.function(
        input_signature=[ow.TensorSpec([None, None, 6], ow.float32, "x"), ow.TensorSpec([None], ow.float32, "scale")]
    )
    def model(x: Any, scale: Any) -> Any:
        y = ow.nn.relu(x @ weights)
        for _ in ow.range(2):
            y = y * 0.5
        return {"y": y * ow.reshape(scale, [-1, 1, 1]), "total": ow.reduce_sum(y, [0, 2])}

    return model, conversion(model.get_concrete_function())


def feeds_of(batch: int, length: int) -> list[np.ndarray]:
    rng = np.random.default_rng(batch * 10 + length)
    return [rng.normal(size=(batch, length, 6)).astype(np.float32), rng.normal(size=batch).astype(np.float32)]


def test_sizes_within_bounds(tmp_path: Path) -> None:
    """Every size has the interpreter's bits; those outside are a status; the plans share weights."""
    _, content = open_sizes()
    bounds = {"batch": (1, 2), "x:1": (2, 4)}
    library = aot.build(content, out=tmp_path, name="sized", bounds=bounds)
    run = aot.load(tmp_path)
    for batch in (2, 1):
        for length in (4, 2, 3):
            feeds = feeds_of(batch, length)
            with ow.flags(background=False):
                expected = ow.lite.Interpreter(model_content=content).get_signature_runner()(x=feeds[0], scale=feeds[1])
            for name, value in run(*feeds).items():
                np.testing.assert_array_equal(value, expected[name], err_msg=f"{batch} {length} {name}")
    assert library.weights < 2.5 * 4 * 6 * 70  # as floats and as a kernel packs them
    for batch, length in ((3, 2), (1, 1), (1, 5)):
        with pytest.raises(InvalidArgumentError, match="outside of its bounds"):
            run(*feeds_of(batch, length))
    with pytest.raises(InvalidArgumentError, match="does not match"):
        run(feeds_of(2, 2)[0], feeds_of(1, 2)[1])


@pytest.mark.slow
@has_compiler
def test_sizes_within_bounds_in_c(tmp_path: Path) -> None:
    aot.build(open_sizes()[1], out=tmp_path, name="sized", bounds={"batch": (1, 3), "x:1": (2, 5)})
    (tmp_path / "calls.c").write_text(
        """
        #include "sized.h"
        #include <stdio.h>
        static uint8_t memory[SIZED_ARENA_SIZE + SIZED_ARENA_ALIGN];
        static float x[SIZED_X_SIZE], scale[SIZED_BATCH_MAX], y[SIZED_Y_SIZE], total[SIZED_TOTAL_SIZE];
        int main(void) {
          uint8_t *arena = memory + (-(uintptr_t)memory & (SIZED_ARENA_ALIGN - 1u));
          struct sized_inputs in;
          struct sized_outputs out;
          int status[2];
          in.x = x;
          in.scale = scale;
          in.batch = 2;
          in.x_1 = 4;
          out.y = y;
          out.total = total;
          status[0] = sized_run(&in, &out, arena, SIZED_ARENA_SIZE);
          in.x_1 = SIZED_X_1_MAX + 1;
          status[1] = sized_run(&in, &out, arena, SIZED_ARENA_SIZE);
          printf("%d %d %d %d %d %d", status[0], status[1] == SIZED_OUT_OF_BOUNDS, (int)out.y_shape[0],
                 (int)out.y_shape[1], (int)out.y_shape[2], (int)out.total_shape[0]);
          return 0;
        }
        """
    )
    warnings = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    command = [*HOST, *warnings, "calls.c", "libsized.a", "-lm", "-o", "calls"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([*HOST, *warnings, "-fsyntax-only", "main.c"], cwd=tmp_path, check=True, capture_output=True)
    assert subprocess.run([tmp_path / "calls"], check=True, capture_output=True, text=True).stdout == "0 1 2 4 70 4"


@has_compiler
def test_complex_numbers_are_pairs(tmp_path: Path) -> None:
    single = next(single_operators.singles("RFFT2D FLOAT32"))
    aot.build(single.content, out=tmp_path, name="waves")
    (expected,) = interpreted(single.content, single.feeds)
    assert expected.dtype == np.complex64
    (result,) = aot.load(tmp_path)(*single.feeds).values()
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_allclose(result, np.fft.rfft2(single.feeds[0]), rtol=1e-4, atol=1e-4)
    warnings = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    command = [*HOST, *warnings, "main.c", "libwaves.a", "-lm", "-o", "example"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    paths = []
    for i, feed in enumerate(single.feeds):
        (tmp_path / f"{i}.bin").write_bytes(feed.tobytes())
        paths.append(f"{i}.bin")
    printed = subprocess.run([tmp_path / "example", *paths], cwd=tmp_path, check=True, capture_output=True, text=True)
    values = np.array(printed.stdout.split()[1:], np.float32)
    np.testing.assert_array_equal(values, expected.reshape(-1).view(np.float32)[: len(values)])


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"batch": (0, 4)}, "least"),
        ({"batch": (1, 9), "x:1": (1, 9)}, "at most 64"),
        ({"x:2": (1, 2)}, "x:1"),
        ({"time": (1, 2)}, "batch"),
    ],
)
def test_bounds_that_do_not_hold_are_named(bounds: dict[str, tuple[int, int]], words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        aot.build(open_sizes()[1], out=tmp_path, bounds=bounds)


def test_bounds_on_the_command_line() -> None:
    assert parse_bounds(["batch=1..8", "x:1=2..3"]) == {"batch": (1, 8), "x:1": (2, 3)}
    with pytest.raises(InvalidArgumentError, match="no bound"):
        parse_bounds(["batch=8"])
