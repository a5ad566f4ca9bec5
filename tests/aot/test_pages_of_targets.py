"""The commands of the pages on targets, in a shell, from the page's Python to the printed answer."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", flags=re.M | re.S)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["devices", "libraries", "microcontrollers"])
def test_commands_of_a_page_print_their_outputs(page, tmp_path, monkeypatch):
    """Commands whose tools are missing are left out; then the test is skipped."""
    monkeypatch.chdir(tmp_path)
    names, missing, ran = {}, set(), 0
    for kind, source, expected in BLOCK.findall((DOCS / f"{page}.md").read_text("utf-8")):
        if kind == "python":
            exec(source, names)
            continue
        tools = {line.split()[0] for line in source.splitlines() if not line.startswith("./")}
        if absent := {tool for tool in tools if not shutil.which(tool)}:
            missing |= absent
            continue
        done = subprocess.run(["sh", "-ec", source], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout == expected
        ran += 1
    if missing:
        pytest.skip(f"needs {', '.join(sorted(missing))}")
    assert ran
