"""Quantised files in Opwright's interpreter: the official reference kernels' answers, within one step of the output,
four by the compiled engine, each of whose operators may be a step away."""

from __future__ import annotations

import numpy as np
import pytest
from lite_kit import one_step
from quantize_harness import content_of, litert, run
from quantize_networks import NETWORKS, OPERATORS, samples_of

import opwright as ow
from thorough import sampled

KINDS = ("float16", "dynamic", "int8", "int16x8")
CASES = [(name, kind) for name in NETWORKS for kind in (("int8",) if name in OPERATORS else KINDS)]
# Of these the reference kernels are missing, or read int8 as uint8 (SUM): the usual ones are asked.
NOT_REFERENCE = {"reduce_sum", "tile", "depth_to_space", "two_inputs"}
ROUNDING = {"float16": 1e-5, "dynamic": 2e-5}  # of the greatest answer, where outputs are computed in float


@pytest.mark.parametrize(("compiled", "steps"), [(False, 1), (True, 4)])
@pytest.mark.parametrize(("name", "kind"), sampled(CASES, 12))
def test_answers_are_near_the_official_ones(name: str, kind: str, compiled: bool, steps: int) -> None:
    content = content_of(name, kind)
    official = litert(content, reference=name not in NOT_REFERENCE)
    with ow.flags(compiled=compiled):
        own = ow.lite.Interpreter(model_content=content)
        own.allocate_tensors()
    for sample in samples_of(name, seed=2)[:4]:
        for actual, expected in zip(run(own, sample), run(official, sample), strict=True):
            assert actual.shape == expected.shape
            step = ROUNDING[kind] * np.abs(expected).max() if kind in ROUNDING else one_step(expected)
            assert np.abs(actual.astype(np.float64) - expected).max() <= 1.01 * steps * step
