"""What the README and docs/ promise: the example runs as it stands, links and commands are real, so is the core."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opwright.tools.cli import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.M | re.S)


def run(file, folder=None, *arguments):
    command = [sys.executable, file, *arguments]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=folder)
    assert found.returncode == 0, found.stderr
    return found


EACH_IN_A_CHILD = """
import os, runpy, sys, traceback
import opwright
for folder in sys.argv[1:]:
    child = os.fork()
    if not child:
        os.chdir(folder)
        try:
            runpy.run_path("page.py", run_name="__main__")
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{os.path.basename(folder)} fails")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("part", range(3))
def test_blocks_of_the_docs_run(part, tmp_path):
    """Each page in a process of its own, a child of one that has imported the package."""
    folders = []
    for page in sorted((ROOT / "docs").glob("*.md"))[part::3]:
        text, folder = page.read_text("utf-8"), tmp_path / page.stem
        blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
        if not blocks or (any("build_custom_ops" in block for block in blocks) and shutil.which("cc") is None):
            continue
        folder.mkdir()
        for source, name in re.findall(r"^```c\n(/\* (\w+\.c) \*/\n.*?)^```", text, flags=re.M | re.S):
            (folder / name).write_text(source, "utf-8")
        (folder / "page.py").write_text("\n".join(blocks), "utf-8")
        folders.append(folder)
    assert folders
    (tmp_path / "pages.py").write_text(EACH_IN_A_CHILD, "utf-8")
    run(tmp_path / "pages.py", tmp_path, *folders)


def test_there_is_an_example():
    assert len(BLOCKS) == 1


def test_the_example_prints_what_its_model_means(tmp_path):
    (tmp_path / "example.py").write_text(BLOCKS[0], "utf-8")
    found = run(tmp_path / "example.py")
    printed = np.fromstring(found.stdout.strip().strip("[]"), sep=" ")
    np.testing.assert_allclose(printed, np.arctan(np.array([-8, 0.5, 2, 2.2, 201]) + 1.0), atol=1e-6)
    assert found.stderr == ""


def test_the_example_is_short():
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert len(lines) <= 22
    assert max(map(len, lines)) <= 120


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_the_index_has_every_page():
    folder = ROOT / "docs"
    index = (folder / "index.md").read_text("utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", index)
    assert {p.name for p in folder.iterdir() if p.is_file()} - {"index.md"} <= set(targets)
    for target in targets:
        assert (folder / target).exists(), target


def test_commands_are_real():
    (listed,) = re.findall(r"`opwright (demo \|.*?)`", README)
    for command in listed.split(" | "):
        group = cli
        for word in command.split():
            assert word in group.commands, command
            group = group.commands[word]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    for target in re.findall(r"\bmake ([a-z]+)\b", README):
        assert target in targets, target


# ---- docs/ -----------------------------------------------------------------------------------------------------------

FROM_SCRATCH = ROOT / "docs" / "from_scratch.py"


def test_the_core_from_scratch_runs():
    found = run(FROM_SCRATCH)
    assert found.stdout.endswith("the four interpreters agree\n")
    assert "add_3 = Add(mul_2, 1.0)" in found.stdout


HOMES = {
    "Operator": "ops.definition",
    "Tensor": "ops.tensor",
    "call": "ops.dispatch",
    "state": "ops.dispatch",
    "EagerTensor": "eager.tensor",
    "execute": "eager.execute",
    "Value": "graph.ir",
    "Node": "graph.ir",
    "Graph": "graph.ir",
    "FuncTrace": "tracing.trace",
    "OpRecord": "ops.autodiff",
    "GradientTape": "eager.tape",
    "LOWER": "compiler.language.operators",
    "emit_elements": "compiler.language.elements",
    "compile_elementwise": "compiler.elementwise",
}


@pytest.mark.parametrize("name", list(HOMES))
def test_the_core_from_scratch_has_the_real_names(name):
    tree = ast.parse(FROM_SCRATCH.read_text("utf-8"))
    defined = {n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    defined |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    assert name in defined
    assert hasattr(importlib.import_module(f"opwright.{HOMES[name]}"), name)


def test_the_glossary_is_in_order_and_names_real_places():
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    words = re.findall(r"^- \*\*(.+?)\*\*", text, flags=re.M)
    assert words == sorted(words, key=str.casefold)
    assert len(words) == len(set(words))
    for place in re.findall(r"`((?:\w+/)+\w*\.?\w*)`", text):
        assert (ROOT / "src" / "opwright" / place).exists(), place
