"""Official files with variables, tables, strings and signatures: the recorded answers, and again after a reset."""

from __future__ import annotations

from typing import Any

import numpy as np
import official as corpus
import pytest
from state_harness import answers, assert_equal, official, ours

NAMES = ("variables", "variable_in_loop", "hashtable_ids", "hashtable_words", "strings", "several_signatures")
CASES = [case for case in corpus.cases() if case.name in NAMES]


def plain(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Strings as object arrays."""
    return {k: x.astype(object) if x.dtype.kind == "S" else x for k, x in values.items()}


def test_all_are_there() -> None:
    assert len(CASES) == len(NAMES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_recorded_answers_again_after_a_reset(case: Any) -> None:
    calls = [(call.signature, plain(call.inputs)) for call in case.calls]
    result = []
    for make in (ours, official):
        interpreter = make(case.bytes())
        first = answers(interpreter, calls)
        assert_equal(first, [plain(call.outputs) for call in case.calls])
        interpreter.reset_all_variables()
        result.append(answers(interpreter, calls))
    assert_equal(*result)
