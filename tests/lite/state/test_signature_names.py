"""Test the names of arguments and results in files, which are TensorFlow's, and sharing between signatures.

TensorFlow 2.21 gave the same functions and Keras models the expected names.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from state_harness import assert_agree, converted, official, ours

import opwright as ow

X = ow.TensorSpec([2], ow.float32)
layers = ow.keras.layers
x, y = np.float32([1, 2]), np.float32([5, -7])


def scaled(x: Any, scale: float = 2.0, flag: bool = True) -> Any:
    return x * scale if flag else x


def twice(x: Any) -> Any:
    result = x + 1.0
    return result, result


Row = tuple[Callable[..., Any], tuple[Any, ...], str, str]
FUNCTIONS: dict[str, Row] = {  # function, specs, names of inputs, names of outputs
    "one": (lambda x: x + 1.0, (X,), "x", "output_0"),
    "spec_with_a_name": (lambda x: x + 1.0, (ow.TensorSpec([2], ow.float32, "foo"),), "foo", "output_0"),
    "tuple": (lambda x, y: (x + y, x - y), (X, X), "x y", "output_0 output_1"),
    "list": (lambda x: [x + 1.0, x - 1.0], (X,), "x", "output_0 output_1"),
    "dict": (lambda x: {"b": x + 1.0, "a": x - 1.0}, (X,), "x", "a b"),
    "dict_argument": (lambda d: d["b"] - d["a"], ({"b": X, "a": X},), "d d_1", "output_0"),
    "list_argument": (lambda d: d[0] - d[1], ([X, X],), "d d_1", "output_0"),
    "unused": (lambda x, y: x + 1.0, (X, X), "x y", "output_0"),
    "arguments_given_back": (lambda x, y: (y, x), (X, X), "x y", "output_0 output_1"),
    "argument_given_back_twice": (lambda x: (x, x), (X,), "x", "output_0 output_1"),
    "constant": (lambda x: (x + 1.0, ow.constant(3.0)), (X,), "x", "output_0 output_1"),
    "same_twice": (twice, (X,), "x", "output_0 output_1"),
    "defaults": (scaled, (X,), "x", "output_0"),
    "python_values": (scaled, (X, 3.0, False), "x", "output_0"),
    "variadic": (lambda *a: a[0] - a[1], (X, X), "a_0 a_1", "output_0"),
    "no_arguments": (lambda: ow.constant(1.0), (), "", "output_0"),
}


@pytest.mark.parametrize(("function", "specs", "inputs", "outputs"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_names_of_arguments_and_results(function: Any, specs: Any, inputs: str, outputs: str) -> None:
    content = converted(ow.function(function).get_concrete_function(*specs))
    names = {"inputs": inputs.split(), "outputs": outputs.split()}
    for interpreter in (ours(content), official(content)):
        (result,) = interpreter.get_signature_list().values()
        assert {side: sorted(n) for side, n in result.items()} == names
    assert_agree(content, [("serving_default", dict(zip(inputs.split(), (x, y))))] * 2)


class Two(ow.Module):
    """Two functions of one weight."""

    def __init__(self) -> None:
        self.w = ow.constant(np.random.default_rng(1).normal(size=[64, 64]).astype(np.float32))

    @ow.function(input_signature=[ow.TensorSpec([None, 64], ow.float32)])
    def go(self, x: Any) -> Any:
        return ow.matmul(x, self.w)

    @ow.function(input_signature=[ow.TensorSpec([None, 64], ow.float32)])
    def stop(self, x: Any) -> Any:
        return {"z": ow.matmul(x, self.w) * 2.0 + 1.0, "y": ow.matmul(x, self.w)}


def test_functions_become_signatures_that_share_weights() -> None:
    m = Two()
    one = converted(m.go.get_concrete_function())
    both = converted(m.go.get_concrete_function(), m.stop.get_concrete_function())
    assert set(ours(both).get_signature_list()) == {"go", "stop"}
    assert len(both) < len(one) + 64 * 64 * 4 + 2000  # the scaled weight is another one
    value = np.ones([3, 64], np.float32)
    assert_agree(both, [("go", {"x": value}), ("stop", {"x": value[:1]}), ("go", {"x": value})])


def test_saved_signatures_keep_their_keys(tmp_path: pathlib.Path) -> None:
    m = Two()
    ow.saved_model.save(m, str(tmp_path), signatures={"zig": m.go, "alpha": m.stop})
    value = np.ones([2, 64], np.float32)
    content = ow.lite.TFLiteConverter.from_saved_model(str(tmp_path)).convert()
    assert ours(content).get_signature_list() == {
        "zig": {"inputs": ["x"], "outputs": ["output_0"]},
        "alpha": {"inputs": ["x"], "outputs": ["y", "z"]},
    }
    assert_agree(content, [("zig", {"x": value}), ("alpha", {"x": value})])
    content = ow.lite.TFLiteConverter.from_saved_model(str(tmp_path), signature_keys=["zig"]).convert()
    assert list(ours(content).get_signature_list()) == ["zig"]


def test_saved_signatures_share_their_variables(tmp_path: pathlib.Path) -> None:
    m = ow.Module()
    m.count = ow.Variable(3.0)
    m.up = ow.function(lambda x: m.count.assign_add(x).value(), input_signature=[ow.TensorSpec([], name="x")])
    m.now = ow.function(lambda: m.count.read_value(), input_signature=[])
    ow.saved_model.save(m, str(tmp_path), signatures={"up": m.up, "now": m.now})
    content = ow.lite.TFLiteConverter.from_saved_model(str(tmp_path)).convert()
    calls: Any = [("now", {}), ("up", {"x": np.float32(2)}), ("now", {})]
    assert_agree(content, calls, lambda: [{"output_0": np.array(v, np.float32)} for v in (3, 5, 5)])


# ---- Keras -----------------------------------------------------------------------------------------------------------


def two_ends(outputs: Any, by_name: bool = False) -> Any:
    left, right = layers.Input((3,), name="left"), layers.Input((4,), name="right")
    total = layers.Dense(2, name="total")(layers.Concatenate()([left, right]))
    other = layers.Dense(1, name="other")(left)
    ends = {"left": left, "right": right}
    return ow.keras.Model(ends if by_name else [left, right], outputs(total, other))


class ByCall(ow.keras.Model):
    """Laid out by its call."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, inputs: Any, training: bool = False) -> Any:
        if isinstance(inputs, dict):
            return {"y": self.dense(inputs["a"]) + inputs["b"], "z": inputs["b"]}
        return self.dense(inputs)


def called(value: Any) -> Any:
    model = ByCall()
    model(value)
    return model


ones = lambda *shape: np.ones(shape, np.float32)  # noqa: E731
MODELS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "sequential": (lambda: ow.keras.Sequential([layers.Input((3,), name="img"), layers.Dense(2)]), "img", "output_0"),
    "functional": (lambda: two_ends(lambda a, b: [a, b]), "left right", "output_0 output_1"),
    "functional_one": (lambda: two_ends(lambda a, b: a), "left right", "output_0"),
    "functional_dict": (lambda: two_ends(lambda a, b: {"p": a, "q": b}, True), "left right", "p q"),
    "by_call": (lambda: called(ones(1, 3)), "args_0", "output_0"),
    "by_call_of_dict": (lambda: called({"a": ones(1, 3), "b": ones(1, 2)}), "a b", "y z"),
}


@pytest.mark.parametrize(("make", "inputs", "outputs"), MODELS.values(), ids=MODELS)
def test_names_of_keras_models(make: Callable[[], Any], inputs: str, outputs: str) -> None:
    content = ow.lite.TFLiteConverter.from_keras_model(make()).convert()
    (result,) = ours(content).get_signature_list().values()
    assert {side: sorted(n) for side, n in result.items()} == {"inputs": inputs.split(), "outputs": outputs.split()}


LAYERS: dict[str, tuple[tuple[Any, ...], Any, list[Any]]] = {
    "batch_norm_dropout": ((6, 6, 3), "float32", [layers.Conv2D, layers.BatchNormalization, layers.Dropout]),
    "embedding": ((5,), "int32", [layers.Embedding, layers.GlobalAveragePooling1D]),
    "lstm": ((4, 3), "float32", [layers.LSTM]),
    "bidirectional": ((4, 3), "float32", [layers.Bidirectional]),
}
ARGUMENTS: dict[Any, Callable[[], Any]] = {
    layers.Conv2D: lambda: layers.Conv2D(4, 3, activation="relu"),
    layers.Dropout: lambda: layers.Dropout(0.5),
    layers.Embedding: lambda: layers.Embedding(9, 4),
    layers.LSTM: lambda: layers.LSTM(5),
    layers.Bidirectional: lambda: layers.Bidirectional(layers.GRU(3, return_sequences=True)),
}


@pytest.mark.parametrize(("shape", "dtype", "stack"), LAYERS.values(), ids=LAYERS)
def test_keras_models_of_many_layers(shape: Any, dtype: str, stack: list[Any]) -> None:
    ow.random.set_seed(3)
    result = [ARGUMENTS.get(kind, kind)() for kind in stack]
    model = ow.keras.Sequential([layers.Input(shape, dtype=dtype, name="x"), *result])
    rng = np.random.default_rng(2)
    value = (rng.normal(size=(2, *shape)) if dtype == "float32" else rng.integers(0, 9, (2, *shape))).astype(dtype)
    content = ow.lite.TFLiteConverter.from_keras_model(model).convert()
    expected = {"output_0": np.asarray(model(value, training=False).numpy())}
    assert_agree(content, [("serving_default", {"x": value})] * 2, lambda: [expected] * 2)
