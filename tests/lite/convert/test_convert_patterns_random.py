"""Patterns in models by chance: whatever is fused, the model computes what it did. Two patterns, one of two results."""

from __future__ import annotations

import warnings

import numpy as np
from convert_harness import converter
from hypothesis import given, settings
from hypothesis import strategies as st
from lite_kit import op_names

import opwright as ow
from opwright import lite
from thorough import examples


@ow.operator
class RandomGate:
    x = ow.Input("float32")
    y = ow.Input("float32")
    z = ow.Output(like="x")
    by = ow.Attr(float)

    def compute(op, x, y):
        return np.tanh(x * y + np.float32(op.by)) * x


@ow.operator
class RandomPair:
    x = ow.Input("float32")
    y = ow.Input("float32")
    a = ow.Output(like="x")
    b = ow.Output(like="x")

    def infer(op):
        return op.x.spec, op.x.spec

    def compute(op, x, y):
        return x + np.sin(y), np.sin(y) - x


@lite.pattern(RandomGate)
def gate(x, y, *, by):
    return ow.tanh(x * y + by) * x


@lite.pattern(RandomPair)
def pair(x, y):
    s = ow.sin(y)
    return x + s, s - x


OPERATORS = {
    "add": lambda x, y: [x + y],
    "sub": lambda x, y: [x - y],
    "mul": lambda x, y: [x * y],
    "sin": lambda x, y: [ow.sin(x)],
    "tanh": lambda x, y: [ow.tanh(x)],
    "shift": lambda x, y: [x + 0.5],
    "gate": lambda x, y: [gate(x, y, by=0.25)],
    "turned": lambda x, y: [x * ow.tanh(0.5 + y * x)],
    "pair": lambda x, y: list(pair(x, y)),
    "parts": lambda x, y: [ow.sin(y), ow.sin(y) + x, ow.sin(y) - x],
}
STEP = st.tuples(st.sampled_from(sorted(OPERATORS)), st.integers(0, 99), st.integers(0, 99))


@settings(max_examples=examples(60))
@given(st.lists(STEP, min_size=1, max_size=8), st.lists(st.integers(0, 99), min_size=1, max_size=3), st.booleans())
def test_fused_is_unfused(steps, results, backwards):
    def model(x, y):
        values = [x, y]
        for name, i, j in steps:
            values += OPERATORS[name](values[i % len(values)], values[j % len(values)])
        return [ow.identity(values[-1 - k % len(values)]) for k in results]

    spec = ow.TensorSpec([3], "float32")
    concrete = ow.function(model).get_concrete_function(spec, spec)
    arrays = np.float32([0.5, -1.25, 2.0]), np.float32([1.5, 0.75, -0.5])
    result = []
    for patterns in ([], [pair, gate] if backwards else [gate, pair]):
        made = converter(concrete, patterns=patterns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # not all models have both
            content = made.convert()
        interpreter = lite.Interpreter(model_content=content, custom_ops=[RandomGate, RandomPair])
        interpreter.allocate_tensors()
        for detail, array in zip(interpreter.get_input_details(), arrays):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        result.append([interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()])
    fused = sum(op_names(content).count(name) for name in ("RandomGate", "RandomPair"))
    assert fused == sum(f.count for f in made.patterns_found)
    for a, b in zip(*result, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
