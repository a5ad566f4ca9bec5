"""Quantised files of awkward graphs: ranges that differ, weights of zeros, huge biases, constants, control flow, state.

Each runs in the official interpreter, on its usual kernels and on its reference kernels, near the float64 answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lite_kit import op_names
from quantize_harness import answers, convert, converter_of, litert, operators, run, snr

import opwright as ow
from opwright.core import terminal_progress
from opwright.lite.convert.export import export
from opwright.lite.convert.quantize import Mode, quantize
from opwright.lite.format import Model
from opwright.lite.importer import import_model
from thorough import crossed, examples

RANDOM = np.random.RandomState(3)
W = RANDOM.randn(16, 8).astype(np.float32)
W2 = RANDOM.randn(16, 16).astype(np.float32) * 0.2
B = RANDOM.randn(8).astype(np.float32)
TABLE = RANDOM.randn(64, 32).astype(np.float32)
FILTER = RANDOM.randn(3, 3, 4, 64).astype(np.float32) * 0.2
FLAT = (2, 16)


class Case(NamedTuple):
    """error: greatest, as a part of the greatest answer. reference: whether the reference kernels are asked, too."""

    call: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...] = (FLAT,)
    error: float = 0.02
    reference: bool = True


def loop(x: Any) -> Any:
    return ow.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, ow.matmul(v, W2) + x), (0, x))[1]


def branch(x: Any) -> Any:
    return ow.cond(ow.reduce_max(x) > 0.5, lambda: ow.matmul(x, W2), lambda: x * 2.0)


CASES = {
    "a channel of zeros": Case(lambda x: ow.matmul(x, W * np.array([0, 1, 1, 1, 1, 1, 1, 1], "f")) + B),
    "a channel of zeros, no bias": Case(
        lambda x: ow.matmul(x, W * np.array([0, 1, 1, 1, 1, 1, 1, 1], "f")), error=0.03
    ),
    "denormal channels": Case(lambda x: ow.matmul(x, W * np.array([1e-40, 1, 1e-8, 1e-20, 1, 1, 1, 1], "f")) + B),
    "weights of zeros": Case(lambda x: ow.matmul(x, W * 0) + B),
    "a bias beyond int32": Case(lambda x: ow.matmul(x, W * np.float32(1e-4)) + B * 1e6),
    "huge weights": Case(lambda x: ow.matmul(x, W * np.float32(1e20)) * 1e-20, error=0.03),
    "a sum that cancels": Case(lambda x: (x * 2.0 - x - x) + 1.0),
    "zeros alone": Case(lambda x: x * 0.0 + x),
    "concat of unlike ranges": Case(lambda x, y: ow.concat([x * 0.01, y * 10.0], -1), (FLAT, FLAT)),
    "concat beside another reader": Case(
        lambda x, y: (ow.concat([x * 0.1, y], -1), ow.tanh(x * 0.1)), (FLAT, FLAT), 0.05
    ),
    "concat of fixed outputs": Case(lambda x, y: ow.concat([ow.sigmoid(x), ow.sigmoid(y)], -1), (FLAT, FLAT)),
    "concat of unlike fixed outputs": Case(lambda x, y: ow.concat([ow.sigmoid(x), ow.tanh(y)], -1), (FLAT, FLAT)),
    "concat of concats": Case(
        lambda x, y: ow.concat([ow.concat([x, y * 3.0], -1), ow.reshape(x + y, [2, 16])], -1), (FLAT, FLAT)
    ),
    "concat of a slice": Case(lambda x, y: (ow.concat([x[:, :4], y * 0.01], -1), x + 1.0), (FLAT, FLAT)),
    "concat with itself": Case(lambda x: ow.concat([x, x * 2.0, x], -1)),
    "concat with a constant": Case(lambda x: ow.concat([x, W2[:2] * 5], -1)),
    "maximum with a constant far below": Case(lambda x: (ow.maximum(x, np.float32(-100)), x * x)),
    "maximum with a constant above": Case(lambda x: (ow.maximum(x, np.float32(0.5)), x * x)),
    "a choice": Case(lambda x, y: ow.where(x > y, x, y * 4.0), (FLAT, FLAT), 0.05),
    "one hot": Case(lambda x: ow.one_hot(ow.argmax(ow.abs(x) + np.arange(16, dtype="f"), -1), 16) + x),
    "fill": Case(lambda x: ow.fill([2, 16], x[0, 0]) + x),
    "shape of a quantised tensor": Case(lambda x: ow.reshape(x * 2.0, [-1, ow.shape(x)[0]])),
    "a constant divisor": Case(lambda x: x / np.float32(3)),
    "an output that is an input": Case(lambda x: (ow.identity(x), x + 1.0)),
    "an output that is constant": Case(lambda x: (x + 1.0, ow.constant(W2))),
    "one value twice": Case(lambda x: ((y := x * 2.0), y)),
    "an output read again": Case(lambda x: ((y := ow.nn.relu(x)), ow.matmul(y, W))),
    "float in between": Case(lambda x: ow.sin(x * 2.0) * 3.0),
    "float at both ends": Case(lambda x: ow.cos(ow.matmul(ow.sin(x), W) * 0.1)),
    "a table of constants": Case(lambda x: ow.gather(TABLE, ow.cast(ow.floor(x[:, 0] * 3.0 + 10.0), ow.int32))),
    "a product of constants": Case(
        lambda x: ow.matmul(ow.reshape(x, [2, 4, 4]), TABLE[:8, :4].reshape(2, 4, 4)), error=0.03
    ),
    "a convolution": Case(lambda x: ow.nn.relu6(ow.nn.conv2d(x, FILTER, 1, "SAME") * 2.0 + 1.0), ((1, 8, 8, 4),)),
    "a dilated convolution": Case(lambda x: ow.nn.conv2d(x, FILTER, 1, "SAME", dilations=2), ((1, 8, 8, 4),)),
    "numbers near nothing": Case(lambda x: ow.nn.relu6(ow.matmul(x * np.float32(1e-7), W)) * 1e7, error=0.03),
    "clamped numbers near nothing": Case(lambda x: ow.nn.relu6(x * np.float32(1e-5)) * 1e5, error=0.03),
    "resizing": Case(
        lambda x: ow.concat([ow.image.resize(x, [16, 16]), ow.image.resize(x, [16, 16], "nearest")], -1),
        ((1, 8, 8, 4),),
    ),
    "a loop": Case(loop, error=0.04),
    "a branch": Case(branch, error=0.04),
    "mean and variance": Case(lambda x: x - ow.reduce_mean(x, [-1], keepdims=True), error=0.03),
    "softmax of a product": Case(lambda x: ow.nn.softmax(ow.matmul(x, W2)), error=0.04),
    "nothing to quantise": Case(lambda x: ow.floor(x), error=1e-6),
}
KINDS = {"float16": 2e-3, "dynamic": 0.03, "int8": 0.0, "int16x8": 0.02}


@pytest.mark.parametrize(("name", "kind"), crossed(CASES, KINDS))
def test_answers_in_the_official_interpreter_are_near_float64(name: str, kind: str) -> None:
    case = CASES[name]
    random = np.random.RandomState(9)
    samples = [[random.uniform(-1, 1, s).astype(np.float32) for s in case.shapes] for _ in range(8)]
    content = convert(case.call, *case.shapes, kind=kind, samples=samples)
    function = ow.function(case.call)
    for reference in (False, True):
        interpreter = litert(content, reference=reference)
        for sample in samples[:4]:
            for expected, actual in zip(answers(function, sample), run(interpreter, sample), strict=True):
                assert actual.shape == expected.shape
                most = max(np.abs(expected).max(), 1e-3)
                assert np.abs(actual - expected).max() <= max(case.error, KINDS[kind]) * most


def test_operators_that_share_scales_share_them_without_requantizing() -> None:
    content = convert(CASES["concat of fixed outputs"].call, FLAT, FLAT)
    assert operators(content) == ["QUANTIZE", "LOGISTIC", "QUANTIZE", "LOGISTIC", "CONCATENATION", "DEQUANTIZE"]
    content = convert(CASES["concat of unlike ranges"].call, FLAT, FLAT)
    assert operators(content) == ["QUANTIZE", "MUL", "QUANTIZE", "MUL", "CONCATENATION", "DEQUANTIZE"]
    content = convert(CASES["concat of unlike fixed outputs"].call, FLAT, FLAT)
    assert operators(content).count("QUANTIZE") > 2


def test_subgraphs_are_quantised_inside_and_float_at_their_borders() -> None:
    content = convert(loop, FLAT)
    model = Model.read(content)
    assert all(
        "FULLY_CONNECTED" not in op_names(content, i) or "QUANTIZE" in op_names(content, i)
        for i in range(len(model.subgraphs))
    )
    assert any("FULLY_CONNECTED" in op_names(content, i) for i in range(1, len(model.subgraphs)))
    for subgraph in model.subgraphs[1:]:
        ends = [*subgraph.inputs, *subgraph.outputs]
        assert {subgraph.tensors[int(i)].type.name for i in ends} <= {"FLOAT32", "INT32", "BOOL"}


def test_a_branch_that_was_never_taken_stays_float() -> None:
    content = convert(branch, FLAT, samples=[[np.full(FLAT, 1.0, np.float32)]])
    interpreter = litert(content)
    for value in (0.9, -0.5):
        x = np.full(FLAT, value, np.float32)
        expected = x @ W2 if value > 0.5 else x * 2
        assert np.abs(run(interpreter, [x])[0] - expected).max() < 0.03 * np.abs(expected).max()


def test_small_weights_stay_float_in_dynamic_range() -> None:
    small, large = TABLE.reshape(-1)[:1023].reshape(31, 33), TABLE.reshape(-1)[:1024].reshape(32, 32)

    def product(weights: np.ndarray) -> Callable[..., Any]:
        return lambda x: ow.matmul(x, weights)

    for weights, kind in ((small, "FLOAT32"), (large, "INT8")):
        content = convert(product(weights), (1, weights.shape[0]), kind="dynamic")
        operator = Model.read(content).subgraphs[0].operators[-1]
        assert Model.read(content).subgraphs[0].tensors[int(operator.inputs[1])].type.name == kind


def test_float16_leaves_numbers_it_cannot_hold() -> None:
    content = convert(lambda x: x * np.float32(1e6) + np.float32(0.1), FLAT, kind="float16")
    result = run(litert(content), [np.ones(FLAT, np.float32)])[0]
    assert np.allclose(result, 1e6 + 0.1, rtol=1e-6)


def test_variables_that_are_written_stay_float() -> None:
    total = ow.Variable(np.zeros(FLAT, np.float32))

    @ow.function
    def accumulate(x: Any) -> Any:
        total.assign_add(ow.matmul(x, W2))
        return total * 1.0

    concrete = accumulate.get_concrete_function(ow.TensorSpec(FLAT, ow.float32))
    converter = ow.lite.TFLiteConverter.from_concrete_functions([concrete], accumulate)
    converter.optimizations = [ow.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([np.full(FLAT, v, np.float32)] for v in (1.0, -1.0, 1.0, 1.0))
    interpreter = litert(converter.convert())
    x = np.ones(FLAT, np.float32)
    for turn in (1, 2):
        actual, expected = run(interpreter, [x])[0], turn * (x @ W2)
        assert np.abs(actual - expected).max() < 0.05 * np.abs(expected).max()


UNARY = [
    ow.nn.relu,
    ow.nn.relu6,
    ow.sigmoid,
    ow.tanh,
    ow.abs,
    ow.identity,
    ow.floor,
    ow.sin,
    lambda x: x * 2.0,
    lambda x: ow.reshape(ow.reshape(x, [4, 8]), [2, 16]),
    lambda x: ow.matmul(x, W2),
    lambda x: ow.reverse(x, [1]),
    lambda x: x[:, ::-1] if False else ow.concat([x[:, 8:], x[:, :8]], -1),
    lambda x: ow.matmul(x, W2) + W2[0],
    lambda x: ow.maximum(x, np.float32(0.25)),
]
BINARY = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    ow.maximum,
    ow.minimum,
    lambda x, y: ow.concat([x[:, :8], y[:, 8:]], -1),
    lambda x, y: ow.where(x > y, x, y),
]


@st.composite
def graphs(draw: Any) -> list[tuple[int, int, int]]:
    """Nodes: number of the operator, numbers of its operands."""
    size = draw(st.integers(1, 7))
    many = len(UNARY) + len(BINARY)
    return [
        (draw(st.integers(0, many - 1)), draw(st.integers(0, i + 1)), draw(st.integers(0, i + 1))) for i in range(size)
    ]


def built(nodes: list[tuple[int, int, int]], outputs: int) -> Callable[..., Any]:
    def call(x: Any, y: Any) -> Any:
        values = [x, y]
        for op, a, b in nodes:
            unary = op < len(UNARY)
            values.append(UNARY[op](values[a]) if unary else BINARY[op - len(UNARY)](values[a], values[b]))
        return tuple(values[-outputs:])

    return call


@settings(max_examples=examples(40), deadline=None)
@given(nodes=graphs(), outputs=st.integers(1, 2), kind=st.sampled_from(["int8", "int16x8", "dynamic", "float16"]))
def test_random_graphs_are_valid_and_run_near_float(nodes: list[tuple[int, int, int]], outputs: int, kind: str) -> None:
    content = convert(built(nodes, outputs), FLAT, FLAT, kind=kind)
    Model.read(content).verify()
    sample = [np.random.RandomState(s).uniform(-0.9, 0.9, FLAT).astype(np.float32) for s in (1, 2)]
    function = ow.function(built(nodes, outputs))
    steps = {op for op, _, _ in nodes}
    stepped = bool(steps & {6, 7, len(UNARY) + 6})  # floor and choices: near a step any error is a whole one
    actual = run(litert(content), sample)
    for expected, value in zip(answers(function, sample), actual, strict=True):
        assert value.shape == expected.shape
        assert np.isfinite(value).all()
        if not stepped:
            most = max(np.abs(expected).max(), 0.1)
            assert np.abs(value - expected).max() <= 0.2 * most + 0.05


def test_a_float_model_from_elsewhere_is_quantised_and_left_as_it_was() -> None:
    content = convert(lambda x: ow.nn.relu(ow.matmul(x, W)), FLAT, kind="float", representative_dataset=None)
    model = Model.read(content)
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(FLAT)
    result = export(quantize(import_model(model), Mode("int8"), lambda: [[x]]))
    assert model.to_bytes() == content
    assert "FULLY_CONNECTED" in operators(result.to_bytes())
    expected = np.maximum(x @ W, 0)
    assert np.abs(run(litert(result.to_bytes()), [x])[0] - expected).max() < 0.02 * expected.max()


def test_custom_operators_run_in_calibration_and_stay_float() -> None:
    @ow.operator(name="QuantizeTestHalf")
    class Half:
        """Half of x."""

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op: Any, x: Any) -> Any:
            return x * np.float32(0.5)

    content = convert(lambda x: Half(ow.nn.relu(x)) + x, FLAT, allow_custom_ops=True)
    assert operators(content) == ["QUANTIZE", "RELU", "DEQUANTIZE", "QuantizeTestHalf", "QUANTIZE", "ADD", "DEQUANTIZE"]
    own = ow.lite.Interpreter(model_content=content, custom_ops=[Half])
    own.allocate_tensors()
    x = np.linspace(-0.9, 0.9, 32, dtype=np.float32).reshape(FLAT)
    assert np.abs(run(own, [x])[0] - (np.maximum(x, 0) / 2 + x)).max() < 0.03


def test_progress_is_shown_on_terminals_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []

    class Bar:
        def add_task(self, text: str, total: Any) -> int:
            return 7

        def start(self) -> None:
            shown.append(0)

        def update(self, task: int, completed: int, description: str) -> None:
            assert description == "calibrating"
            shown.append(completed)

        def stop(self) -> None:
            shown.append(-1)

    clock = iter(np.arange(0.0, 100.0, 0.4))
    monkeypatch.setattr(terminal_progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(terminal_progress.TerminalProgress, "_created_bar", lambda self: Bar())
    monkeypatch.setattr(terminal_progress.sys.stderr, "isatty", lambda: True, raising=False)
    convert(ow.nn.relu, FLAT)
    assert shown == [0, 3, 4, 5, 6, 7, 8, -1]
    shown.clear()
    monkeypatch.setattr(terminal_progress.sys.stderr, "isatty", lambda: False, raising=False)
    convert(ow.nn.relu, FLAT)
    assert shown == []


@pytest.mark.parametrize("name", ["a loop", "a branch"])
def test_integers_alone_hold_for_what_is_computed_not_for_what_is_passed(name: str) -> None:
    """IF and WHILE pass real numbers, as those of the official converter do at IF; what they call is on integers."""
    case = CASES[name]
    random = np.random.RandomState(9)
    samples = [[random.uniform(-m, m, s).astype(np.float32) for s in case.shapes] for m in (0.4, 1.0) * 4]
    content = convert(case.call, *case.shapes, kind="integers", samples=samples)
    assert {"IF", "WHILE"} & set(operators(content))
    interpreter = litert(content)
    expected = [answers(ow.function(case.call), sample)[0] for sample in samples]
    actual = [run(interpreter, sample)[0] for sample in samples]
    assert np.abs(np.array(actual) - expected).max() <= case.error * np.abs(expected).max()


@pytest.mark.parametrize(
    ("layer", "unroll", "kind"), crossed(["LSTM", "GRU"], [False, True], ["dynamic", "int8", "integers", "int16x8"])
)
def test_recurrent_layers(layer: str, unroll: bool, kind: str) -> None:
    ow.random.set_seed(1)
    layers = ow.keras.layers
    recurrent = getattr(layers, layer)(8, unroll=unroll, return_sequences=True)
    model = ow.keras.Sequential([ow.keras.Input((5, 6)), recurrent, layers.Flatten(), layers.Dense(4)])
    random = np.random.RandomState(3)
    samples = [[random.uniform(-1, 1, (1, 5, 6)).astype(np.float32)] for _ in range(16)]
    source = converter_of(ow.function(lambda x: model(x)), [(1, 5, 6)], samples, kind)
    converter = ow.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations, converter.target_spec = source.optimizations, source.target_spec
    converter.representative_dataset = source.representative_dataset
    content = converter.convert()
    assert "FULLY_CONNECTED" in operators(content)
    assert snr((answers(model, sample), run(litert(content), sample)) for sample in samples[:4]) > 20
