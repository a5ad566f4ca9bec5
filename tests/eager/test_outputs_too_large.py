"""Outputs that no memory holds are refused before a kernel works towards them."""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow


@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic", "area", "lanczos3", "gaussian"])
def test_an_image_resized_beyond_all_memory(method):
    with pytest.raises(ow.errors.ResourceExhaustedError, match="larger than any memory"):
        ow.image.resize(np.ones((1, 2, 2, 1), np.float32), [1610637938, 1610637938], method=method)


def test_other_outputs_beyond_all_memory():
    with pytest.raises(ow.errors.ResourceExhaustedError):
        ow.tile(np.ones((2, 2), np.float32), [2**30, 2**30])
    assert ow.tile(np.ones((2, 2), np.float32), [2, 3]).shape == (4, 6)


@pytest.mark.parametrize("sizes", [[60000, 60000, 60000], [2**40, 2**40]], ids=["no memory", "no address"])
def test_constants_beyond_all_memory(sizes):
    for function in (ow.zeros, ow.ones):
        with pytest.raises(ow.errors.ResourceExhaustedError, match="Fill"):
            function(sizes)
