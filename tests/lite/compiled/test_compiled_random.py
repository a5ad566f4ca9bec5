"""Random numbers in compiled plans: the official interpreter's streams, wherever a node goes on from run to run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_kit import engine, names
from foreign import HERE
from lite_kit import Build

from opwright import lite
from opwright.core import flags

SEEDS = {"seed": 5, "seed2": -7}
LOGITS = np.float32([[0.5, -1, 2, -np.inf], [np.nan, 0, 0, 3]])


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Plans of earlier runs are not found."""
    with flags.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


def filled(name: str, shape: tuple[int, ...] = (3, 7), chain: tuple[str, ...] = ("RELU",), **options: Any) -> Build:
    """y: random numbers of that shape; z: a chain of operators on x."""
    b = Build().tensor("sizes", type="INT32", data=np.int32(shape)).tensor("y", shape).tensor("x", (5,))
    b.op(name, "sizes", "y", **(options or SEEDS))
    for i, op in enumerate(chain):
        b.tensor(f"z{i}", (5,)).op(op, "x" if i == 0 else f"z{i - 1}", f"z{i}")
    return b


def model(name: str, chain: tuple[str, ...] = ("RELU",), **options: Any) -> bytes:
    result: bytes = filled(name, chain=chain, **options).done("x", f"y z{len(chain) - 1}")
    return result


def sampled() -> bytes:
    b = Build().tensor("x", LOGITS.shape).tensor("n", type="INT32", data=np.int32(9)).tensor("y", (2, 9), "INT32")
    result: bytes = b.op("MULTINOMIAL", "x n", "y", output_type="INT32", **SEEDS).done()
    return result


def run(interpreter: Any, x: np.ndarray, times: int = 1) -> list[np.ndarray]:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    result = []
    for _ in range(times):
        interpreter.invoke()
        result.append(np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])))
    return result


def started(interpreter: Any) -> Any:
    interpreter.allocate_tensors()
    return interpreter


def official(content: bytes) -> Any:
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    return started(peer.Interpreter(model_content=content))


def whole(interpreter: Any) -> bool:
    return all(node.delegate is not None for node in interpreter._subgraphs[0].execution_plan)


X = np.float32([1, -2, 3, -4, 5])
MODELS = {
    "RANDOM_UNIFORM": (model("RANDOM_UNIFORM"), X, 0),
    "MULTINOMIAL": (sampled(), LOGITS, 0),
    "RANDOM_STANDARD_NORMAL": (model("RANDOM_STANDARD_NORMAL"), X, 2e-6),
}


@pytest.mark.parametrize("name", MODELS)
def test_streams_are_the_official_ones_from_run_to_run(name: str, tmp_path: Path) -> None:
    content, x, within = MODELS[name]
    expected = run(official(content), x, 4)
    assert not np.array_equal(expected[0], expected[1])
    path = tmp_path / "random.tflite"
    path.write_bytes(content)
    for target in HERE:
        with engine(target=target):
            result = started(lite.Interpreter(model_content=content))
            assert whole(result)
            np.testing.assert_allclose(run(result, x, 4), expected, atol=within)
    with engine():
        for _ in range(3):  # planned, then found in the cache, without the file
            actual = run(started(lite.Interpreter(str(path))), x, 4)
            np.testing.assert_allclose(actual, expected, atol=within)
        short = started(lite.Interpreter(str(path)))
        assert short._fast_path is not None
        actual = run(short, x, 2)
        short.get_signature_list(), short._leave_fast_path()
        np.testing.assert_allclose([*actual, *run(short, x, 2)], expected, atol=within)


def test_a_sequence_goes_on_when_the_compiler_is_done() -> None:
    content = model("RANDOM_UNIFORM", chain=tuple(names()))  # whose kernels nobody has compiled
    expected = run(official(content), X, 5)
    with engine(background=True):
        interpreter = started(lite.Interpreter(model_content=content))
        actual = run(interpreter, X, 2)
        interpreter._engine.wait()
        actual += run(interpreter, X, 3)
        assert whole(interpreter)
    np.testing.assert_array_equal(actual, expected)


def test_a_sequence_goes_on_where_a_guard_stops_the_plan() -> None:
    """The nodes run one by one then, and draw what the plan would have drawn."""
    b = filled("RANDOM_UNIFORM", (4,), ()).tensor("x", (2,), "INT32").tensor("z", (2,))
    content = b.op("GATHER", "y x", "z").done("x", "y z")
    expected = run(official(content), np.int32([0, 3]), 4)
    with engine():
        interpreter = started(lite.Interpreter(model_content=content))
        actual = run(interpreter, np.int32([0, 3]), 2)
        assert whole(interpreter)
        with pytest.raises(Exception, match="GATHER"):
            run(interpreter, np.int32([0, 4]))  # which has drawn before it fails
        actual += run(interpreter, np.int32([0, 3]))
    np.testing.assert_array_equal(actual, [expected[0], expected[1], expected[3]])


def test_sequences_begin_again_with_new_tensors_and_differ_without_seeds() -> None:
    content = model("RANDOM_UNIFORM")
    with engine():
        interpreter = started(lite.Interpreter(model_content=content))
        first = run(interpreter, X, 2)
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [6])
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(run(interpreter, np.zeros(6, np.float32), 2), first)
        unseeded = model("RANDOM_UNIFORM", seed=0, seed2=0)
        drawn = [run(started(lite.Interpreter(model_content=unseeded)), X)[0] for _ in range(2)]
    assert not np.array_equal(*drawn)


def test_custom_operators_draw_the_same_in_both_engines() -> None:
    sizes = {"type": "INT32", "data": np.int32([4, 5])}
    limits = [("low", np.int32(-3)), ("high", np.int32(40))]
    created = [
        ("RandomUniform", "FLOAT32", []),
        ("RandomStandardNormal", "FLOAT32", []),
        ("RandomUniform", "FLOAT64", []),
        ("RandomStandardNormal", "FLOAT64", []),
        ("RandomUniformInt", "INT32", limits),
    ]
    for name, kind, constants in created:
        b = Build().tensor("sizes", **sizes).tensor("x", (5,)).tensor("z", (5,)).tensor("y", (4, 5), kind)
        for word, value in constants:
            b.tensor(word, type="INT32", data=value)
        b.custom(name, " ".join(["sizes", *(word for word, _ in constants)]), "y", seed=3, seed2=4).op("RELU", "x", "z")
        content = b.done("x", "y z")
        with flags.override(compiled=False):
            expected = run(started(lite.Interpreter(model_content=content)), X, 3)
        with engine():
            interpreter = started(lite.Interpreter(model_content=content))
            actual = run(interpreter, X, 3)
            assert whole(interpreter), interpreter._engine.delegate.refused
        np.testing.assert_allclose(actual, expected, rtol=1e-7, atol={"FLOAT32": 2e-6, "FLOAT64": 1e-14}.get(kind, 0))
    b = Build().tensor("x", LOGITS.shape).tensor("n", type="INT32", data=np.int32(9)).tensor("y", (2, 9), "INT64")
    content = b.custom("Multinomial", "x n", "y", seed=3, seed2=4).done()
    with flags.override(compiled=False):
        expected = run(started(lite.Interpreter(model_content=content)), LOGITS, 3)
    with engine():
        interpreter = started(lite.Interpreter(model_content=content))
        np.testing.assert_array_equal(run(interpreter, LOGITS, 3), expected)
        assert whole(interpreter), interpreter._engine.delegate.refused
