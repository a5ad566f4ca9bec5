"""Test README and docs/: blocks run and print their outputs; links, commands, paths and names exist."""

import ast
import doctest
import importlib
import math
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
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=folder)
    assert process.returncode == 0, process.stderr
    return process


EACH_IN_A_CHILD = """
import gc, os, runpy, sys, traceback
import opwright
import opwright.lite.compiled.engine, opwright.lite.compiled.partition_plans, opwright.lite.convert
from opwright.core.lazy_imports import import_homes
import_homes(opwright)
gc.freeze()  # collections in a child would copy its pages
for folder in sys.argv[1:]:
    child = os.fork()
    if not child:
        os.chdir(folder)
        sys.stdout = open("stdout.txt", "w", encoding="utf-8")
        try:
            runpy.run_path("page.py", run_name="__main__")
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.stdout.close()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{os.path.basename(folder)} fails")
"""

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", flags=re.M | re.S)
"""A code block of a page and, where it prints, the block of its output."""
END_OF_BLOCK = "\x1e"
LONG = {"c_operators", "convert", "custom_operators", "devices", "distribute", "libraries", "quantization", "tutorial"}
"""Pages whose blocks take a second or more."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["short", "long"])
def test_blocks_of_the_docs_print_their_outputs(long, tmp_path):
    """Each page runs in a process of its own, a child of one that has imported the package."""
    outputs = {}
    for page in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]:
        if (page.stem in LONG) != long:
            continue
        text, folder = page.read_text("utf-8"), tmp_path / page.stem
        blocks = BLOCK.findall(text)
        if not blocks or (any("build_custom_ops" in block for block, _ in blocks) and shutil.which("cc") is None):
            continue
        folder.mkdir()
        for source, name in re.findall(r"^```c\n(/\* (\w+\.c) \*/\n.*?)^```", text, flags=re.M | re.S):
            (folder / name).write_text(source, "utf-8")
        source = "".join(f"{block}\nprint({END_OF_BLOCK!r}, end='')\n" for block, _ in blocks)
        (folder / "page.py").write_text(source, "utf-8")
        outputs[folder] = [output for _, output in blocks]
    assert outputs
    (tmp_path / "pages.py").write_text(EACH_IN_A_CHILD, "utf-8")
    run(tmp_path / "pages.py", tmp_path, *outputs)
    for folder, expected in outputs.items():
        printed = (folder / "stdout.txt").read_text("utf-8").split(END_OF_BLOCK)[:-1]
        for number, (actual, text) in enumerate(zip(printed, expected, strict=True)):
            assert same_output(text, actual), f"{folder.name}, block {number} prints:\n{actual}"


def same_output(expected, actual):
    """Return whether a block prints what the page shows: `...` matches any text, a source location any other, a number
    of seven digits or more one that differs in its last bits, as NumPy's functions do from processor to processor."""
    expected, actual = (re.sub(r"[\w./-]+\.py:\d+", "model.py:1", text) for text in (expected, actual))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    long_numbers = re.compile(r"-?\d\.\d{6,}(?:e[+-]\d+)?")
    pairs = zip(long_numbers.findall(expected), long_numbers.findall(actual), strict=False)
    if all(math.isclose(float(a), float(b), rel_tol=5e-7) for a, b in pairs):
        expected, actual = (long_numbers.sub("0.0", text) for text in (expected, actual))
    return doctest.OutputChecker().check_output(expected, actual, flags)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("[1. 2.]\n", "[1. 2.]\n", True),
        ("[1. ...]\n", "[1. 2.]\n", True),
        ("x  # model.py:3\n", "x  # /tmp/page.py:17\n", True),
        ("", "1\n", False),
        ("1\n", "2\n", False),
        ("[1.565846  2.]\n", "[1.5658458 2.]\n", True),
        ("[1.565846]\n", "[1.565849]\n", False),
        ("[1.565846]\n", "[1.565846 1.565846]\n", False),
    ],
)
def test_outputs_are_compared(expected, actual, same):
    assert same_output(expected, actual) is same


def test_there_is_an_example():
    assert len(BLOCKS) == 1


def test_the_example_prints_what_its_model_means(tmp_path):
    (tmp_path / "example.py").write_text(BLOCKS[0], "utf-8")
    result = run(tmp_path / "example.py")
    printed = np.fromstring(result.stdout.strip().strip("[]"), sep=" ")
    np.testing.assert_allclose(printed, np.arctan(np.array([-8, 0.5, 2, 2.2, 201]) + 1.0), atol=1e-6)
    assert result.stderr == ""


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
PAGES = [page for page in (ROOT / "docs").glob("*.md") if page.stem != "renamed"]  # which maps paths of older trees


def test_the_core_from_scratch_runs():
    result = run(FROM_SCRATCH)
    assert result.stdout.endswith("the four interpreters agree\n")
    assert "add_3 = Add(mul_2, 1.0)" in result.stdout


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


@pytest.mark.parametrize("page", sorted(["README.md", *(f"docs/{p.name}" for p in PAGES)]))
def test_commands_on_pages_have_their_options(page):
    for command in re.findall(r"(?:^    |`)opwright ([a-z][^`\n#|]*)", (ROOT / page).read_text("utf-8"), flags=re.M):
        group, words = cli, command.split()
        while words and hasattr(group, "commands"):
            assert words[0] in group.commands, f"{page}: opwright {command}"
            group = group.commands[words.pop(0)]
        options = {name for parameter in group.params for name in (*parameter.opts, *parameter.secondary_opts)}
        for word in words:
            name = word.partition("=")[0].rstrip(",.;)")
            assert not name.startswith("-") or name in options, f"{page}: opwright {command}: {name}"


@pytest.mark.parametrize("page", sorted({"README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in PAGES)}))
def test_paths_on_pages_exist(page):
    text = (ROOT / page).read_text("utf-8")
    folders = (ROOT, ROOT / "src" / "opwright", ROOT / "src" / "opwright" / "lite", ROOT / "docs")
    for path in re.findall(r"(?<![\w./<-])((?:\w+/)+\w+\.(?:py|json|ll|md))\b", text):
        assert any((folder / path).exists() for folder in folders), f"{page} names {path}, which does not exist"


def test_where_to_find_things_names_what_is_there():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = text.partition("## Where to find things")[2].partition("\n## ")[0]
    rows = [row.split(" | ") for row in section.splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        modules, names = (re.findall(r"`(.+?)`", cell) for cell in row[1:])
        assert modules, row
        sources = [(ROOT / "src" / "opwright" / module).read_text("utf-8") for module in modules]
        for name in (name for name in names[:1] if not name.endswith(".py")):
            assert any(name.rpartition(".")[2] in source for source in sources), f"{name} is not in {modules}"


def test_the_glossary_is_in_order_and_names_real_places():
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    words = re.findall(r"^- \*\*(.+?)\*\*", text, flags=re.M)
    assert words == sorted(words, key=str.casefold)
    assert len(words) == len(set(words))
    for place in re.findall(r"`((?:\w+/)+\w*\.?\w*)`", text):
        assert (ROOT / "src" / "opwright" / place).exists(), place
