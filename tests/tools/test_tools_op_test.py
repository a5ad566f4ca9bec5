"""`opwright op test`: operators of a file, good and bad, and of the catalogue; `op spec --file`."""

import json

import pytest
from tools_harness import opwright, result_of

from opwright.testing import CHECKS

GOOD = '''
import numpy as np
import opwright as ow

@ow.operator
class TrialGood:
    """Leaky clip.

    .. math:: y = \\\\min(x, limit) + alpha \\\\max(x - limit, 0)
    """
    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    alpha = ow.Attr(float, default=0.25)
    limit = ow.Attr(float)

    def compute(op, x):
        return np.minimum(x, op.limit) + op.alpha * np.maximum(x - op.limit, 0)

    def gradient(op, dy):
        return dy * ow.where(op.x < op.limit, ow.ones_like(op.x), op.alpha * ow.ones_like(op.x))
'''
RULES = {  # what is put in place of a line of the good one, and the check that fails
    "gradient": ("return dy * ow.where", "return 2.0 * dy * ow.where", "gradient is slope"),
    "written inputs": ("        return np.minimum(x,", "        x[...] = 0\n        return np.minimum(x,", "calls"),
    "inference": (
        "    def compute",
        "    def infer(op): return ow.TensorSpec([7], op.x.dtype)\n    def compute",
        "calls",
    ),
    "words": ("    .. math::", "    ::", "lint"),
    "one dtype alone": ("ow.Input(ow.floating)", 'ow.Input("float32")', "lint"),
}


@pytest.fixture
def file_of(tmp_path):
    def write(source, name="mine.py"):
        (tmp_path / name).write_text(source)
        return tmp_path / name

    return write


def states(result):
    return {(o["check"], o["state"]) for o in result}


def test_a_good_operator(file_of):
    result = result_of("op", "test", file_of(GOOD), "--json")
    assert {o["operator"] for o in result} == {"TrialGood"}
    not_tried = {"kernel is compute", "empty sequences", "compiled", "exported"}
    not_tried |= {o["check"] for o in result if "ai-edge-litert" in o["detail"]}  # where it is not installed
    assert states(result) == {("calls", "ok"), *((n, "not tried" if n in not_tried else "ok") for n in CHECKS)}
    text = opwright("op", "test", file_of(GOOD))
    assert "TrialGood" in text.stdout
    assert f"1 operators, {len(CHECKS) + 1} checks, 0 failed" in text.stderr


@pytest.mark.parametrize("rule", RULES)
def test_a_bad_operator(file_of, rule):
    old, new, check = RULES[rule]
    assert old in GOOD
    source = file_of(GOOD.replace(old, new))
    if check == "calls":  # refused at the first call already: no inputs are found with which it works
        assert ("calls", "not tried") in states(result_of("op", "test", source, "--json"))
        return
    result = result_of("op", "test", source, "--json", exit_code=1)
    assert check in {o["check"] for o in result if o["state"] == "failed"}


def test_an_example_of_its_own(file_of):
    """Inputs with constraints come from the `example` of the definition."""
    need = "        if x.shape != (5, 7): raise ValueError('five by seven')\n"
    source = GOOD.replace("        return np.minimum", need + "        return np.minimum")
    result = result_of("op", "test", file_of(source), "--json")
    detail = next(o["detail"] for o in result if o["check"] == "calls")
    assert "no inputs could be made up" in detail
    assert "def example" in detail
    example = "    def example():\n        return dict(x=np.linspace(0.05, 0.95, 35).reshape(5, 7), limit=0.51)\n\n"
    result = result_of("op", "test", file_of(source.replace("    def compute", example + "    def compute")), "--json")
    assert ("calls", "ok") in states(result)
    assert ("gradient is slope", "ok") in states(result)


def test_the_catalogues():
    result = result_of("op", "test", "Tanh", "MatMul", "Sum", "--json")
    assert {o["operator"] for o in result} == {"Tanh", "MatMul", "Sum"}
    assert not [o for o in result if o["state"] == "failed"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("x = 1", "defines no operator"),
        ("def", "SyntaxError"),
        ("raise SystemExit(5)", "SystemExit"),
    ],
)
def test_files_that_are_no_use(file_of, source, words):
    assert words in opwright("op", "test", file_of(source), exit_code=3).stderr


def test_what_is_not_there(tmp_path):
    assert "no such file" in opwright("op", "test", tmp_path / "none.py", exit_code=3).stderr
    assert "did you mean Atan" in opwright("op", "test", "Attan", exit_code=3).stderr
    assert opwright("op", "test", exit_code=2)


def test_the_specification_of_a_file(file_of, tmp_path):
    result = json.loads(opwright("op", "spec", "--file", file_of(GOOD)).stdout)
    assert list(result["operators"]) == ["TrialGood"]
    old = tmp_path / "old.json"
    old.write_text(json.dumps(result))
    assert opwright("op", "compat", old, old)
    grown = GOOD.replace("@ow.operator\n", "@ow.operator(version=2)\n").replace(
        "    limit =", "    floor = ow.Attr(float, default=0.0, since=2)\n    limit ="
    )
    new = tmp_path / "new.json"
    new.write_text(opwright("op", "spec", "--file", file_of(grown, "grown.py")).stdout)
    assert "attributes\n    'floor' is new, default 0.0" in opwright("op", "compat", old, new).stdout
    assert opwright("op", "compat", old, new, "--strict", exit_code=1)
    assert opwright("op", "compat", new, old, exit_code=1)
    (change,) = [c for c in result_of("op", "compat", old, new, "--json") if c["part"] == "attribute"]
    assert (change["name"], change["rule"], change["allowed"]) == ("floor", "added", True)
    assert "no operator is named" in opwright("op", "spec", "Nope", exit_code=3).stderr
