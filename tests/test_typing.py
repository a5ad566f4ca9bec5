"""Type checkers on a user's program: mypy --strict and pyright accept it, and reject each of its mistakes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import opwright as ow

PROGRAM = Path(__file__).parent / "data" / "typing" / "user_program.py"
SOURCE = Path(ow.__file__).parents[1]


def expected(checker: str) -> dict[int, str]:
    """Return the code that a checker must report, by line."""
    lines = PROGRAM.read_text("utf-8").splitlines()
    codes = {i: re.search(rf"  # .*\b{checker} (\S+)", line) for i, line in enumerate(lines, 1)}
    return {i: match[1] for i, match in codes.items() if match}


def run(*command: str, cwd: Path, **environment: str) -> str:
    """Run a checker in a folder; return what it printed."""
    process = subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        timeout=280,
        cwd=cwd,
        env={**os.environ, **environment},
    )
    assert process.returncode == 1, process.stdout + process.stderr
    return process.stdout


@pytest.mark.slow
def test_mypy_rejects_only_the_mistakes(tmp_path: Path) -> None:
    options = ("--strict", "--config-file=", "--follow-imports=silent", f"--cache-dir={tmp_path}")
    printed = run("mypy", *options, str(PROGRAM), cwd=tmp_path, MYPYPATH=str(SOURCE))
    errors = [
        re.match(r"(.*):(\d+): error: .*\[([\w-]+)\]$", line) for line in printed.splitlines() if ": error:" in line
    ]
    assert {e[1] for e in errors} == {str(PROGRAM)}, printed
    assert {int(e[2]): e[3] for e in errors} == expected("mypy"), printed


@pytest.mark.slow
def test_pyright_rejects_only_the_mistakes(tmp_path: Path) -> None:
    (tmp_path / PROGRAM.name).write_text(PROGRAM.read_text("utf-8"), "utf-8")
    settings = {"include": [PROGRAM.name], "extraPaths": [str(SOURCE)], "reportSelfClsParameterName": False}
    settings |= {"reportUnusedExpression": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    printed = run("pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path), cwd=tmp_path)
    errors = [d for d in json.loads(printed)["generalDiagnostics"] if d["severity"] == "error"]
    assert {e["range"]["start"]["line"] + 1: e["rule"] for e in errors} == expected("pyright"), printed
