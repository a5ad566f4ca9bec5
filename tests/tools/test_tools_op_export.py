"""`opwright op export`: files, words, exit codes."""

import json

import pytest
from click.testing import CliRunner

from opwright.tools.cli import cli

OPERATOR = '''
import math
import numpy as np
import opwright as ow

@ow.operator
class ExportedByHand:
    """Twice x, and more.   .. math:: y = 2 x + more"""
    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    more = ow.Attr(float, default=0.0)
    of = ow.Attr(float, default=4.0)
    def compute(op, x): return 2 * x + op.more
    @ow.kernel
    def kernel(x, *, more, of): return x * math.sqrt(of) + more

@ow.operator
class WithoutAKernel:
    """x.   .. math:: y = x"""
    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    def compute(op, x): return x
'''


def run(*arguments):
    return CliRunner().invoke(cli, ["op", "export", *map(str, arguments)])


@pytest.fixture
def file(tmp_path):
    (tmp_path / "mine.py").write_text(OPERATOR)
    return tmp_path / "mine.py"


def test_the_files_are_named_and_written(file, tmp_path):
    result = run("ExportedByHand", "--custom", file, "-o", tmp_path / "c", "--attr", "of=4.0", "--attr", "of=9")
    assert result.exit_code == 0, result.output
    names = ["ExportedByHand.h", "ExportedByHand.c", "README.md"]
    assert result.stdout.split() == [str(tmp_path / "c" / n) for n in names]
    assert "x * 3.0f + (float)more" in (tmp_path / "c" / names[1]).read_text()


def test_json_and_an_operator_of_the_catalogue(tmp_path):
    result = run("Atan", "-o", tmp_path, "--api", "struct", "--json")
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert (said["operator"], said["api"], len(said["files"])) == ("Atan", "struct", 3)
    assert "TfLiteOperatorCreate" not in (tmp_path / "Atan.c").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["ExportedByHand"], 1, "attrs={'of': [...]}"),
        (["WithoutAKernel"], 1, "it has no kernel"),
        (["NobodyMadeThis"], 3, "no operator 'NobodyMadeThis'"),
        (["ExportedByHand", "--attr", "of"], 2, "NAME=VALUE"),
        (["ExportedByHand", "--attr", "beta=1"], 1, "no attribute 'beta'"),
        (["ExportedByHand", "--attr", "of=word"], 1, "attribute 'of' cannot be that"),
        (["ExportedByHand", "--api", "rust"], 2, "rust"),
    ],
)
def test_exit_codes(arguments, code, words, file, tmp_path):
    result = run(*arguments, "--custom", file, "-o", tmp_path / "c")
    assert result.exit_code == code, result.output
    assert words in result.output
    assert not (tmp_path / "c").exists()


def test_a_folder_that_cannot_be_written(file, tmp_path):
    (tmp_path / "c").write_text("a file")
    result = run("Atan", "-o", tmp_path / "c")
    assert result.exit_code == 3
    assert "cannot be written" in result.output


def test_no_such_operator():
    result = run("Atn")
    assert result.exit_code == 3
    assert "did you mean Atan" in result.output
