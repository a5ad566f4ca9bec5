"""Random numbers in files: the official run time draws the same ones as our interpreter, of the right law."""

from __future__ import annotations

import numpy as np
import pytest
from convert_harness import converter
from lite_kit import op_names

import opwright as ow

N = 4000


def content_of(function: object, *specs: ow.TensorSpec) -> bytes:
    return converter(ow.function(function).get_concrete_function(*specs)).convert()


def draws(content: bytes, kind: str, times: int = 3) -> list[np.ndarray]:
    """Return the results of several runs of one interpreter."""
    if kind == "official":
        from ai_edge_litert.interpreter import Interpreter
    else:
        Interpreter = ow.lite.Interpreter
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    result = []
    for _ in range(times):
        interpreter.invoke()
        result.append(np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])))
    return result


ROWS = {
    "uniform": (lambda: ow.random.uniform([N], seed=5), ["RANDOM_UNIFORM"], 0.5, 1 / 12**0.5),
    "normal": (lambda: ow.random.normal([N], seed=5), ["RANDOM_STANDARD_NORMAL"], 0.0, 1.0),
    "scaled": (lambda: ow.random.normal([N], 3.0, 2.0, seed=5), ["RANDOM_STANDARD_NORMAL", "MUL", "ADD"], 3.0, 2.0),
    "integers": (
        lambda: ow.random.uniform([N], 2, 12, ow.int32, seed=5),
        ["RANDOM_UNIFORM", "MUL", "FLOOR", "CAST", "ADD"],
        6.5,
        (99 / 12) ** 0.5,
    ),
    "classes": (
        lambda: ow.random.categorical(np.log(np.float32([[0.1, 0.6, 0.3]])), N, seed=5),
        ["MULTINOMIAL"],
        1.2,
        0.6,
    ),
    "shuffle": (
        lambda: ow.random.shuffle(ow.range(N), seed=5),
        ["RANDOM_UNIFORM", "TOPK_V2", "GATHER"],
        (N - 1) / 2,
        N / 12**0.5,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_numbers_have_the_law_and_go_on_from_run_to_run(name: str) -> None:
    function, ops, mean, deviation = ROWS[name]
    content = content_of(function)
    assert op_names(content) == ops
    actual = draws(content, "ours")
    for y in actual:
        assert abs(y.mean() - mean) < 5 * deviation / N**0.5
        assert abs(y.std() - deviation) < 0.1 * deviation
    assert not np.array_equal(actual[0], actual[1])
    for y, expected in zip(actual, draws(content, "official")):
        assert y.dtype == expected.dtype
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_a_sequence_begins_again_when_tensors_are_allocated() -> None:
    content = content_of(ROWS["uniform"][0])
    interpreter = ow.lite.Interpreter(model_content=content)
    result = []
    for _ in range(2):
        interpreter.allocate_tensors()
        interpreter.invoke()
        result.append(np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])))
    np.testing.assert_array_equal(result[0], draws(content, "ours", 1)[0])


def test_without_seeds_two_interpreters_draw_differently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opwright.ops.random.state._global_seed", None)  # which other tests may have set
    content = content_of(lambda: ow.random.uniform([8]))
    assert not np.array_equal(draws(content, "ours", 1)[0], draws(content, "ours", 1)[0])
    assert not np.array_equal(draws(content, "official", 1)[0], draws(content, "official", 1)[0])


def test_two_operators_draw_from_sequences_of_their_own() -> None:
    content = content_of(lambda: ow.stack([ow.random.uniform([8], seed=5), ow.random.uniform([8], seed=6)]))
    (y,) = draws(content, "ours", 1)
    assert not np.array_equal(y[0], y[1])
    np.testing.assert_allclose(y, draws(content, "official", 1)[0], rtol=1e-6)
