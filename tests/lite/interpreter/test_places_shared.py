"""Outputs that lie where inputs died: smaller arenas, equal bits, and none where a clause forbids it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright import lite
from opwright.core.errors import PermissionDeniedError
from thorough import examples

N = 1024
SPEC = ow.TensorSpec([N], ow.float32)


def converted(function: Any, *specs: ow.TensorSpec) -> bytes:
    concrete = ow.function(function).get_concrete_function(*specs)
    content: bytes = lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
    return content


def run(content: bytes, inputs: list[np.ndarray], inplace: bool, **options: Any) -> tuple[list[np.ndarray], int]:
    """The outputs, and the bytes of the arena."""
    with ow.flags(inplace=inplace):
        interpreter = lite.Interpreter(model_content=content, **options)
        interpreter.allocate_tensors()
    for _ in range(2):  # the second run starts from what the first left
        for details, x in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(details["index"], x)
        interpreter.invoke()
    for details, x in zip(interpreter.get_input_details(), inputs):
        assert interpreter.get_tensor(details["index"]).tobytes() == x.tobytes(), "an input was written"
    outputs = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    return outputs, interpreter._subgraphs[0].memory_usage.arena


def numbers(seed: int = 0, shape: Any = (N,)) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 2.0, shape).astype(np.float32)


# name: function, bytes of arena with shared places and without, in tensors
CASES: dict[str, tuple[Any, float, float]] = {
    "a chain": (lambda x: ow.sqrt(ow.exp(ow.sin(x * 2.0) + 1.0)), 2, 4),
    "reshaped": (lambda x: ow.reshape(ow.reshape(ow.sin(x), [2, -1]) * 2.0, [-1]), 2, 4),
    "read again later": (lambda x: (t := ow.sin(x)) * ow.exp(t), 3, 4),
    "occurs twice": (lambda x: (t := ow.sin(x)) * t, 3, 3),
    "an input": (lambda x: ow.sin(x), 2, 2),
    "another dtype": (lambda x: ow.cast(ow.cast(ow.sin(x), ow.int32), ow.float32), 4, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_the_arena(name: str) -> None:
    function, shared, apart = CASES[name]
    content = converted(function, SPEC)
    on, on_bytes = run(content, [numbers()], True)
    off, off_bytes = run(content, [numbers()], False)
    for a, b in zip(on, off, strict=True):
        assert a.tobytes() == b.tobytes()
    assert on_bytes <= shared * N * 4
    assert off_bytes <= apart * N * 4
    assert on_bytes <= off_bytes


def test_tensors_that_must_be_preserved_have_places_of_their_own() -> None:
    content = converted(CASES["a chain"][0], SPEC)
    _, on = run(content, [numbers()], True, experimental_preserve_all_tensors=True)
    _, off = run(content, [numbers()], False, experimental_preserve_all_tensors=True)
    assert on == off


STEPS: list[Any] = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: ow.maximum(a, b) - b,
    lambda a, b: ow.nn.relu(a - 1.0),
    lambda a, b: ow.tanh(a),
    lambda a, b: ow.transpose(a) * b,
    lambda a, b: ow.reshape(ow.reshape(a, [-1]) + 1.0, [8, 8]),
    lambda a, b: ow.matmul(a, b) * 0.1,
    lambda a, b: ow.concat(ow.split(a, 2), 0) + b,
    lambda a, b: a / (b * b + 1.0),
]


PROGRAMS = st.lists(
    st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=10
)


@given(PROGRAMS, st.integers(0, 20))
@settings(deadline=None, max_examples=examples(15))
def test_generated_models(program: list[tuple[int, int, int]], kept: int) -> None:
    def f(x: Any, y: Any) -> Any:
        values = [x, y]
        for step, a, b in program:
            values.append(STEPS[step](values[a % len(values)], values[b % len(values)]))
        return values[-1], values[kept % len(values)] + 0.5

    content = converted(f, *[ow.TensorSpec([8, 8], ow.float32)] * 2)
    inputs = [numbers(0, (8, 8)), numbers(1, (8, 8))]
    on, on_bytes = run(content, inputs, True)
    off, off_bytes = run(content, inputs, False)
    for a, b in zip(on, off, strict=True):
        assert a.tobytes() == b.tobytes()
    assert on_bytes <= off_bytes
    with ow.flags(check_inputs=True):
        watched, _ = run(content, inputs, True)
    assert watched[0].tobytes() == on[0].tobytes()


def test_the_switch_finds_a_registration_that_writes_its_input() -> None:
    def prepare(context: Any, node: Any) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def invoke(context: Any, node: Any) -> None:
        node.inputs[0].tensor.array[...] = 7.0  # past the read-only view
        node.outputs[0].data[...] = 1.0

    @ow.operator(name="Writes")
    class Writes:
        """x   .. math:: y = x"""

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op, x: Any) -> Any:
            return x + 0.0

    concrete = ow.function(lambda x: Writes(ow.sin(x))).get_concrete_function(SPEC)
    converter = lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.allow_custom_ops = True
    content = converter.convert()
    custom = {"Writes": lite.Registration(prepare=prepare, invoke=invoke)}
    run(content, [numbers()], True, custom_ops=custom)
    with ow.flags(check_inputs=True), pytest.raises(RuntimeError) as excinfo:
        run(content, [numbers()], True, custom_ops=custom)
    assert "Writes" in str(excinfo.value)
    assert "writes its input" in str(excinfo.value)
    assert isinstance(excinfo.value, PermissionDeniedError)
