"""Fused operators of onnxruntime against its own results."""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow

pytest.importorskip("onnx")
record = pytest.importorskip("record_contrib_operators")


@pytest.fixture(scope="module")
def recorded():
    with np.load(record.FILE) as arrays:
        return {name: arrays[name] for name in arrays.files}


@pytest.mark.parametrize("name", sorted(record.ROWS))
def test_fused_operators(name, recorded):
    model, feeds = record.model_of(name)
    results = ow.from_onnx(model)(*feeds.values())
    results = results if isinstance(results, (list, tuple)) else [results]
    assert len(results) == len(model.graph.output)
    assert f"{name}.0" in recorded
    for n, y in enumerate(results):
        if f"{name}.{n}" not in recorded:
            continue
        np.testing.assert_allclose(y.numpy(), recorded[f"{name}.{n}"], rtol=2e-5, atol=2e-5)
