"""Test control flow in files of the official converter: results equal those of the official interpreter.

Not here: how the files were made (tests/data/tflite/make_official.py).
"""

from __future__ import annotations

import numpy as np
import official
import pytest

from opwright import lite
from opwright.lite.format import Model, versions

RUNNING = {"IF", "WHILE", "CALL", "STABLEHLO_CASE", "CALL_ONCE"}


def _runs_subgraphs(case: official.Case) -> bool:
    names = {versions.op_name(code) for code in Model.read(case.bytes()).operator_codes}
    return bool(names & RUNNING) and bool(case.calls) and not any(n.startswith("Flex") for n in names)


CASES = [case for case in official.cases() if _runs_subgraphs(case)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answers_are_the_official_ones(case: official.Case) -> None:
    interpreter = lite.Interpreter(model_content=case.bytes())
    for call in case.calls:
        actual = interpreter.get_signature_runner(call.signature)(**call.inputs)
        assert actual.keys() == call.outputs.keys()
        for name, expected in call.outputs.items():
            if expected.dtype.kind == "S":
                assert np.asarray(actual[name]).tolist() == expected.tolist()
            else:
                np.testing.assert_allclose(actual[name], expected, rtol=1e-5, atol=1e-5)


def test_there_are_files_for_each() -> None:
    assert {"if_else", "switch_case", "while_loop", "while_growing", "nested_control"} <= {case.name for case in CASES}
