"""The check of unexpected skips, on made-up reports and on a run of pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

from expected_skips import EXPECTED, unexpected

HERE = Path(__file__).parent
TILES = ("tests/compiler/kernels/test_gemm_amx.py::test_sums[3]", "this processor has no tiles, or may not use them")


def test_skips_that_no_row_covers_are_unexpected():
    assert unexpected([TILES]) == []
    assert unexpected([("tests/nn/test_layers.py::test_x", TILES[1])]) == [
        f"tests/nn/test_layers.py::test_x: {TILES[1]}"
    ]
    wheel = (TILES[0], "could not import 'ai_edge_litert.interpreter'")
    assert unexpected([wheel, TILES]) == [": ".join(wheel)]


def test_more_than_a_row_allows_are_unexpected():
    row = next(row for row in EXPECTED if "tiles" in row.reason)
    assert unexpected([TILES] * row.most) == []
    (line,) = unexpected([TILES] * (row.most + 1))
    assert line.startswith(f"{row.most + 1} tests")


def test_a_run_with_an_unexpected_skip_fails(tmp_path):
    """A test that skips for a reason of its own: exit code 0 without the check, 1 with it."""
    (tmp_path / "conftest.py").write_text(f"exec(open({str(HERE / 'conftest.py')!r}).read())")
    (tmp_path / "test_one.py").write_text("import pytest\ndef test_one():\n    pytest.skip('no reason')\n")
    for check, code in (("", 0), ("1", 1)):
        environment = {**os.environ, "CHECK_SKIPS": check, "PYTHONPATH": f"{HERE}:{HERE.parent / 'src'}"}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout
        assert ("test_one: Skipped: no reason" in done.stdout) == bool(check)
