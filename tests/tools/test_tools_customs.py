"""`--custom`: which texts are libraries, with which names; modules and what they hold; what is no use."""

import pytest

import opwright as ow
from opwright import lite
from opwright.tools import model_runner
from opwright.tools.model_runner import custom_operators, operators_for
from opwright.tools.report import BadFile

MODULE = '''
import numpy as np
import opwright as ow
@ow.operator
class CustomsOne:
    """One.   .. math:: y = x"""
    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    def compute(op, x): return x
@ow.operator
class CustomsTwo:
    """Two.   .. math:: y = 2 x"""
    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    def compute(op, x): return 2 * x
TABLE = {"InTable": ow.lite.Registration(invoke=lambda c, n: None)}
NUMBER = 3
'''


@pytest.fixture
def loaded(monkeypatch):
    """Record the arguments of `lite.load_custom_ops`, which returns a table."""
    calls = []

    def load(path, ops=None):
        calls.append((path, ops))
        if "broken" in path:
            raise ow.errors.InvalidArgumentError(what="no ELF file")
        return {"Atan": lite.Registration(invoke=lambda context, node: None)}

    monkeypatch.setattr(lite, "load_custom_ops", load, raising=False)
    return calls


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("libatan.so", ("libatan.so", None)),
        ("lib/libatan.so.2.1", ("lib/libatan.so.2.1", None)),
        ("libatan.dylib", ("libatan.dylib", None)),
        ("C:/atan.dll", ("C:/atan.dll", None)),
        ("libatan.so:Atan=AtanRegistration", ("libatan.so", {"Atan": "AtanRegistration"})),
        ("libatan.so:Atan=A,acme:Sin=B", ("libatan.so", {"Atan": "A", "acme:Sin": "B"})),
        ("libatan.so:", ("libatan.so", None)),
    ],
)
def test_libraries(loaded, text, call):
    (table,) = custom_operators([text])
    assert loaded == [call]
    assert list(table) == ["Atan"]


def test_a_library_by_its_first_bytes(loaded, tmp_path):
    (tmp_path / "atan_ops").write_bytes(b"\x7fELF\x02\x01")
    custom_operators([str(tmp_path / "atan_ops")])
    assert loaded == [(str(tmp_path / "atan_ops"), None)]


def test_modules(tmp_path, monkeypatch):
    (tmp_path / "customs_here.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    assert [op.name for op in custom_operators(["customs_here"])] == ["CustomsOne", "CustomsTwo"]
    assert [op.name for op in custom_operators(["customs_here:CustomsTwo"])] == ["CustomsTwo"]
    assert [list(table) for table in custom_operators(["customs_here:TABLE"])] == [["InTable"]]
    assert [op.name for op in custom_operators(["customs_here.py", "customs_here:CustomsTwo"])] == [
        "CustomsOne",
        "CustomsTwo",
        "CustomsTwo",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("libbroken.so", "no ELF file"),
        ("libatan.so:Atan", "wanted libatan.so:Name=EntryPoint"),
        ("libatan.so:=A", "wanted libatan.so:Name"),
        ("none.py", "no such file"),
        ("no_such_module", "ModuleNotFoundError"),
        ("json", "has no operator made by"),
        ("json:loads", "has no operator loads"),
        ("json:nothing", "has no operator"),
        ("", "--custom"),
    ],
)
def test_what_is_no_use(loaded, text, words):
    with pytest.raises(BadFile, match=words):
        custom_operators([text])


def _code(name):
    class Code:
        custom_code, version = name, 1

    return Code


def test_what_a_model_needs_of_the_catalogue():
    def names(*given, customs=()):
        class Made:
            operator_codes = [_code(name) for name in given]

        return [getattr(op, "name", op) for op in operators_for(Made, customs)]

    assert names("Atan", None, "BesselI0") == ["Atan", "BesselI0"]
    assert names("Roll", "NobodyHasIt", "FlexAtan", "While") == []  # shipped; nowhere; by the framework; no kernel
    assert model_runner.in_catalogue("Atan") is ow.ops.get("Atan")


def test_what_is_named_goes_before_the_catalogue(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE.replace("CustomsOne", "Atan"))

    class Made:
        operator_codes = [_code("Atan")]

    result = operators_for(Made, [str(tmp_path / "mine.py")])
    assert sorted(op.name for op in result) == ["Atan", "CustomsTwo"]
    assert ow.ops.get("Atan") not in result
