"""The functions of the interface by their descriptions: a program of checks (provider_checks.c), run."""

from __future__ import annotations

import pathlib
import subprocess

import pytest
from abi_kit import SANITIZED, needs_compiler, program_of

CHECKS = pathlib.Path(__file__).parent / "provider_checks.c"
STRICT = ["-Wall", "-Wextra", "-Werror"]  # of the provider's own sources too


@needs_compiler
@pytest.mark.parametrize(
    "flags", [["-O0", *STRICT], pytest.param(SANITIZED, marks=pytest.mark.slow)], ids=["plain", "sanitized"]
)
def test_every_check_holds(tmp_path, flags):
    done = subprocess.run([program_of(CHECKS, tmp_path, *flags)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "142 checks, 0 failures" in done.stdout
