"""Functions as people write them: both interpreters give what the function gives, twice the same file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from networks_harness import official, own, run
from programs import PROGRAMS

import opwright as ow
from opwright.core import nest
from thorough import sampled


def concrete(name: str) -> Any:
    row = PROGRAMS[name]
    kinds = [x.dtype if x.dtype != object else "string" for x in row.inputs]
    specs = [ow.TensorSpec(shape, kind, name=f"x{i}") for i, (shape, kind) in enumerate(zip(row.shapes, kinds))]
    return ow.function(row.function).get_concrete_function(*specs)


@pytest.mark.parametrize("name", sampled(PROGRAMS, 4))
def test_answers(name: str) -> None:
    row = PROGRAMS[name]
    reference = [np.asarray(y.numpy()) for y in nest.flatten(row.function(*map(ow.constant, row.inputs)))]
    converter = ow.lite.TFLiteConverter.from_concrete_functions([concrete(name)])
    content = converter.convert()
    assert converter.convert() == content
    for interpreter in (own(content), official(content)):
        actual = [y for y, _ in run(interpreter, list(row.inputs))]
        for y, expected in zip(actual, reference, strict=True):
            assert (y.dtype, y.shape) == (expected.dtype, expected.shape)
            if y.dtype.kind == "f":
                np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(expected).max()))
            else:
                np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    "name", sampled(["mapped_rows", "every_other_row", "best_of_scores", "preprocessing", "slices"], 3)
)
def test_older_run_times(name: str) -> None:
    row = PROGRAMS[name]
    reference = [np.asarray(y.numpy()) for y in nest.flatten(row.function(*map(ow.constant, row.inputs)))]
    converter = ow.lite.TFLiteConverter.from_concrete_functions([concrete(name)])
    converter.target_spec.runtime = "2.8"
    content = converter.convert()
    for interpreter in (own(content), official(content)):
        for (y, _), expected in zip(run(interpreter, list(row.inputs)), reference, strict=True):
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
