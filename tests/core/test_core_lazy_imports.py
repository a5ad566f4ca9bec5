"""Importing the package leaves the garbage collector as it was."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("before", ["enable", "disable"])
def test_the_collector_is_left_as_it_was(before: str) -> None:
    code = f"import gc; gc.{before}(); import opwright; assert gc.isenabled() == {before == 'enable'}"
    subprocess.run([sys.executable, "-c", code], check=True)
