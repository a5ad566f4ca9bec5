"""Every file of the official corpus runs here, with the answers that the official interpreter gave.

The official interpreter's answers are those of its optimised kernels. Its reference kernels
(OpResolverType.BUILTIN_REF) differ from these in one place: LOCAL_RESPONSE_NORMALIZATION of spatial.tflite, where they
leave out the last channel of each window; ours and TensorFlow's have it.
"""

from __future__ import annotations

import re

import numpy as np
import official
import pytest
from lite_kit import one_step

from opwright.core import flags
from opwright.lite import Interpreter

STEPS = 4
"""How many steps of the output the compiled engine's answer of a network of integers may be away."""


AGAIN = (
    "cnn_int16_io",
    "cnn_uint8_io",
    "layer_activations_int16x8",
    "layer_attention",
    "layer_gru_unrolled_int16x8",
    "layer_norms_int8",
    "layer_transposed_int16x8",
    "lstm_int8",
)
"""Networks that others are of the same layers as, in other types: these are slow."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(case.name, marks=pytest.mark.slow if case.name in AGAIN else ())
        for case in official.cases()
        if case.calls
    ],
)
def test_answers_are_the_official_ones(name):
    case = official.case(name)
    interpreter = Interpreter(model_path=str(case.path))
    for call in case.calls:
        result = interpreter.get_signature_runner(call.signature)(**call.inputs)
        assert set(result) == set(call.outputs)
        for output, want in call.outputs.items():
            got = np.asarray(result[output])
            assert got.shape == want.shape, output
            if want.dtype.kind == "S":
                assert got.astype("S").tolist() == want.tolist(), output
            else:
                assert got.dtype == want.dtype, output
                if flags.compiled and re.search("int(8|16)", name) and want.dtype.kind in "fiu":
                    gap = np.abs(got.astype(np.float64) - want).max(initial=0)
                    assert gap <= 1.01 * STEPS * one_step(want), output
                else:
                    tolerance = 0.0 if want.dtype.kind in "biu" else 1e-5
                    np.testing.assert_allclose(got, want, tolerance, tolerance, err_msg=output)


def test_there_are_files_of_control_flow():
    names = {case.name for case in official.cases() if case.calls} - set(AGAIN)
    assert {"if_else", "switch_case", "while_loop", "while_growing", "nested_control"} <= names
