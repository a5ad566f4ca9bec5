"""The ONNX standard's own test suite: a sample here, all of it in `make test-all`."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("onnx")
import onnx_backend

REMAINING = {
    r"test_affine_grid_2d": "the rank of a branch depends on a shape that is an input",
    r"tree_ensemble": "trees of ai.onnx.ml are not imported",
    r"test_attention_.*(bf16|fp16)": "results of 16 bits are rounded at other places than by the suite's NumPy",
}
"""Patterns of cases in scope that fail, with the reason."""


def remains(name):
    """Return whether a case is in the table."""
    return any(re.search(pattern, name) for pattern in REMAINING)


@pytest.mark.parametrize("kind", ["simple", "pytorch-operator"])
def test_a_sample_of_the_suite(kind):
    selected = [c for c in onnx_backend.cases(kind) if not remains(c.name)][::4]
    assert len(selected) >= 5
    assert onnx_backend.failures(selected) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", onnx_backend.KINDS)
def test_the_suite(kind):
    selected = onnx_backend.cases(kind)
    failed = onnx_backend.failures(selected)
    assert {name: error for name, error in failed.items() if not remains(name)} == {}
    assert len(failed) <= 0.02 * len(selected)


@pytest.mark.slow
def test_backend_scope():
    """Each reason to leave cases out has some, and they are fewer than 300 of 2000."""
    from onnx.backend.test.loader import load_model_tests

    names = [c.name for kind in onnx_backend.KINDS for c in load_model_tests(kind=kind)]
    reasons = [r for n in names if (r := onnx_backend.reason(n))]
    assert set(onnx_backend.OUT_OF_SCOPE.values()) == set(reasons)
    assert len(reasons) < 300
