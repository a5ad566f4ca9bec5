"""Quantised files beside those of TensorFlow's converter, of the same weights and data: scales, sizes, answers.

The official converter's results stand in quantize_official.json, made by quantize_official.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from quantize_harness import OFFICIAL, answers, content_of, function_of, litert, operators, run, snr
from quantize_networks import NETWORKS, OPERATORS, samples_of

from opwright.lite.format import Model
from thorough import sampled

KINDS = ("float16", "dynamic", "int8", "int16x8")
CASES = [(name, kind) for name in NETWORKS for kind in (("int8",) if name in OPERATORS else KINDS)]
UNSEEN = 2  # seed of samples that calibration has not seen


@pytest.mark.parametrize(("name", "kind"), sampled(CASES, 3))
def test_answers_are_as_near_the_float_function_as_the_official_ones(name: str, kind: str) -> None:
    interpreter = litert(content_of(name, kind))
    samples = samples_of(name, seed=UNSEEN)
    result = snr((answers(function_of(name), sample), run(interpreter, sample)) for sample in samples)
    assert result > min(OFFICIAL[name][kind]["snr"], 60.0) - 3.0


@pytest.mark.parametrize(("name", "kind"), [(n, k) for n, k in CASES if n not in OPERATORS])
def test_files_are_no_larger_than_the_official_ones(name: str, kind: str) -> None:
    assert len(content_of(name, kind)) <= OFFICIAL[name][kind]["size"]


def scales_of(content: bytes) -> list[tuple[str, tuple[float, ...], int]]:
    tables = [(t.type.name.lower(), t.quantization) for t in Model.read(content).subgraphs[0].tensors]
    return [(kind, tuple(map(float, q.scale)), int(q.zero_point[0])) for kind, q in tables if q and len(q.scale)]


# Networks whose float graph differs from the official converter's, so that some tensors have no counterpart: there
# batch norm's offset stands behind the sum; there products with a state of zeros are folded, though 0 * inf is not 0.
OTHER_GRAPHS = {"residual": 1, "lstm": 9}


@pytest.mark.parametrize("name", NETWORKS)
def test_scales_and_zero_points_are_the_official_ones(name: str) -> None:
    mine, theirs = scales_of(content_of(name, "int8")), OFFICIAL[name]["int8"]["scales"]
    unmatched = []
    for kind, scales, point in mine:
        match = next(
            (
                t
                for t in theirs
                if t[0] == kind
                and t[2] == point
                and len(t[1]) == len(scales)
                and np.allclose(t[1], scales, rtol=1e-5, atol=0)
            ),
            None,
        )
        if match is None:
            unmatched.append((kind, scales[:2], point))
    assert len(unmatched) <= OTHER_GRAPHS.get(name, 0), (unmatched, theirs)


# The official delegate takes SPLIT, and leaves UNPACK (lite/convert/parts.py).
INSTEAD = {"UNPACK": ["SPLIT", "RESHAPE"]}


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "lstm"])
def test_operators_are_the_official_ones(name: str) -> None:
    expected = [other for op in OFFICIAL[name]["int8"]["operators"] for other in INSTEAD.get(op, [op])]
    assert sorted(operators(content_of(name, "int8"))) == sorted(expected)
