"""LSTMs of int8 as machine code, over several runs: a step at most from the official kernels, however long they run."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_kit import compiled_gaps
from drawn_table import ROWS
from recurrent_models import integer_lstm

from opwright import lite
from opwright.core import flags
from opwright.lite.interpreter import OpResolverType

INT8 = [row for row in ROWS if "LSTM" in row.name and row.kinds == ("INT8",) and "gates of int8" not in row.label]


@pytest.mark.parametrize("seeds", [24, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("row", INT8, ids=lambda row: row.label.replace(" ", "_"))
def test_drawn_layers(row, seeds):
    pytest.importorskip("ai_edge_litert.interpreter")
    found = [compiled_gaps(row, "INT8", seed) for seed in range(seeds)]
    assert max(gap for gap, _, _ in found) <= 1
    assert sum(whole for _, whole, _ in found) >= seeds // 8  # without peepholes and normalisation


def longer(seed: int) -> tuple[bytes, np.ndarray]:
    """A layer that the rule takes, and inputs for many runs: the state stays between them."""
    model = integer_lstm(seed, "integer")
    t = model.subgraphs[0].tensors[int(model.subgraphs[0].inputs[0])]
    shape = (200, *(int(n) for n in t.shape))
    return model.to_bytes(), np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def outputs(interpreter: lite.Interpreter, xs: np.ndarray) -> np.ndarray:
    interpreter.allocate_tensors()
    given, result = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    found = []
    for x in xs:
        interpreter.set_tensor(given, x)
        interpreter.invoke()
        found.append(interpreter.get_tensor(result))
    return np.array(found, np.int64)


@pytest.mark.parametrize("layers", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_two_hundred_runs_stay_near(layers):
    """What a rounding decides otherwise does not add up."""
    taken = 0
    for seed in range(100):
        content, xs = longer(seed)
        with flags.override(compiled=True, background=False):
            interpreter = lite.Interpreter(model_content=content)
            found = outputs(interpreter, xs)
        if [node.name for node in interpreter._subgraphs[0].execution_plan] != ["Opwright"]:
            continue
        taken += 1
        reference = lite.Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        gaps = np.abs(found - outputs(reference, xs))
        assert gaps.max() <= 2, f"seed {seed}: {gaps.max()} steps"
        assert (gaps > 1).mean() < 0.005
        if taken == layers:
            return
    pytest.fail(f"{taken} of the layers were compiled")
