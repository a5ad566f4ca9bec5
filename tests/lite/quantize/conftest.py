"""Quantized files are run by reference kernels unless thorough."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def engine(reference_unless_thorough):
    """The engine of every module of this folder."""
