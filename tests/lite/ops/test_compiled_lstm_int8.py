"""LSTMs of int8 as machine code, over several runs: the bits of the official kernels, however long they run; of the
reference kernels where gates are int8, which official kernels compute in float32."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_kit import compiled_gaps
from drawn_table import ROWS
from recurrent_models import integer_lstm, narrow_lstm

from opwright import lite
from opwright.core import flags
from opwright.lite.interpreter import OpResolverType

INT8 = [row for row in ROWS if "LSTM" in row.name and row.kinds == ("INT8",)]


@pytest.mark.parametrize("seeds", [1, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("row", INT8, ids=lambda row: row.label.replace(" ", "_"))
def test_drawn_layers(row, seeds):
    pytest.importorskip("ai_edge_litert.interpreter")
    result = [compiled_gaps(row, "INT8", seed) for seed in range(seeds)]
    assert all(gap <= row.within and whole for gap, whole, _ in result), result


def longer(make, seed: int) -> tuple[bytes, np.ndarray]:
    """A layer that the rule takes, and inputs for many runs: the state stays between them."""
    model = make(seed, "integer")
    t = model.subgraphs[0].tensors[int(model.subgraphs[0].inputs[0])]
    shape = (200, *(int(n) for n in t.shape))
    return model.to_bytes(), np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def outputs(interpreter: lite.Interpreter, xs: np.ndarray) -> np.ndarray:
    interpreter.allocate_tensors()
    inputs, result = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    actual = []
    for x in xs:
        interpreter.set_tensor(inputs, x)
        interpreter.invoke()
        actual.append(interpreter.get_tensor(result))
    return np.array(actual, np.int64)


@pytest.mark.parametrize("layers", [1, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [integer_lstm, narrow_lstm], ids=["gates_of_int16", "gates_of_int8"])
def test_two_hundred_runs_are_the_same(make, layers):
    for seed in range(layers):
        content, xs = longer(make, seed)
        with flags.override(compiled=True, background=False):
            interpreter = lite.Interpreter(model_content=content)
            result = outputs(interpreter, xs)
        assert [node.name for node in interpreter._subgraphs[0].execution_plan] == ["Opwright"]
        reference = lite.Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        np.testing.assert_array_equal(result, outputs(reference, xs), err_msg=f"seed {seed}")
