"""Operators that installed packages add by entry points: found by name, lazily; broken packages; two of one name.

A package here is a module and the folder of metadata that an installer leaves beside it.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.lite import BuiltinOpResolver, Interpreter, TFLiteConverter
from opwright.ops import registry

pytestmark = pytest.mark.any_engine

X = np.float32([-1.0, 0.5, 3.0])
MODULE = '''
import numpy as np
import opwright as ow

@ow.operator(version={version})
class {name}:
    """Times a number.   .. math:: y = {factor} x"""
    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    def version_needed(op): return 1
    def compute(op, x): return {factor} * x
'''


class Packages:
    """A folder on sys.path that packages are put into, as an installer does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: list[str] = []

    def add(self, package: str, entries: dict[str, str], source: str = "", metadata: str | None = None) -> None:
        module = package.replace("-", "_")
        self.modules.append(module)
        (self.folder / f"{module}.py").write_text(source)
        about = self.folder / f"{module}-1.5.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(metadata or f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
        lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
        (about / "entry_points.txt").write_text(f"[opwright.operators]\n{lines}")

    def clip(self, package: str, name: str, factor: float = 2.0, version: int = 1) -> None:
        source = MODULE.format(name=name, factor=factor, version=version)
        self.add(package, {name: f"{package.replace('-', '_')}:{name}"}, source)


@pytest.fixture
def packages(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_warned", set())
    users = registry.users()
    result = Packages(tmp_path)
    yield result
    for module in result.modules:
        sys.modules.pop(module, None)
    for name in registry.users().keys() - users.keys():
        del registry._users[name]
    registry._scan_cache = registry._EntryScan(None, {}, {})


def model(name: str, version: int = 1) -> bytes:
    """A model of one custom operator of that name."""
    body = {"__doc__": "Stands in.", "x": ow.Input(ow.floating), "y": ow.Output(like="x"), "compute": lambda op, x: x}
    before = registry.users().get(name)
    op = ow.operator(name=name, version=version)(type(name, (), body))
    function = ow.function(lambda x: op(x)).get_concrete_function(ow.TensorSpec([3]))
    registry._users.pop(name)
    if before is not None:
        registry._users[name] = before
    converter = TFLiteConverter.from_concrete_functions([function])
    converter.allow_custom_ops = True
    return converter.convert()


def run(content: bytes, **options: Any) -> Any:
    interpreter = Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_found_by_name(packages):
    packages.clip("my-doubling", "PackDouble")
    content = model("PackDouble")
    assert "my_doubling" not in sys.modules
    np.testing.assert_array_equal(run(content), 2 * X)
    assert ow.ops.get("PackDouble")(X).numpy().tolist() == (2 * X).tolist()
    assert BuiltinOpResolver().custom_versions("PackDouble") == [(1, 1)]


def test_what_is_given_goes_before(packages):
    packages.clip("my-doubling", "PackDouble")
    kernel = ow.lite.Registration(
        prepare=lambda c, n: c.resize_tensor(n.outputs[0], n.inputs[0].shape),
        invoke=lambda c, n: np.negative(n.inputs[0].data, out=n.outputs[0].data),
    )
    np.testing.assert_array_equal(run(model("PackDouble"), custom_ops={"PackDouble": kernel}), -X)
    assert "my_doubling" not in sys.modules


def test_a_definition_of_this_process_stays_what_get_finds(packages):
    packages.clip("my-doubling", "PackDouble")
    content = model("PackDouble")
    mine = ow.operator(name="PackDouble")(
        type("PackDouble", (), {"x": ow.Input(ow.floating), "y": ow.Output(like="x"), "compute": lambda op, x: 7 * x})
    )
    np.testing.assert_array_equal(run(content), 2 * X)  # a definition that is not passed serves no model
    assert ow.ops.get("PackDouble") is mine


def test_versions_of_the_package_count(packages):
    packages.clip("my-doubling", "PackDouble", version=2)
    np.testing.assert_array_equal(run(model("PackDouble", version=2)), 2 * X)
    with pytest.raises(RuntimeError, match=r"PackDouble version 3(.|\n)*wanted *PackDouble version 1\.\.2"):
        run(model("PackDouble", version=3))


OTHERS = """
from opwright import lite
REG = lite.Registration(prepare=lambda c, n: c.resize_tensor(n.outputs[0], n.inputs[0].shape),
                        invoke=lambda c, n: np.multiply(n.inputs[0].data, 5, out=n.outputs[0].data))
TABLE = {"PackMap": REG}
"""


def test_other_things_that_an_entry_may_name(packages):
    entries = {
        "PackMap": "my_others:TABLE",
        "PackModule": "my_others",
        "PackAlias": "my_others:PackModule",
        "PackReg": "my_others:REG",
    }
    packages.add("my-others", entries, MODULE.format(name="PackModule", factor=3.0, version=1) + OTHERS)
    for name, factor in (("PackMap", 5), ("PackModule", 3), ("PackAlias", 3), ("PackReg", 5)):
        np.testing.assert_array_equal(run(model(name)), factor * X)
    assert ow.ops.get("PackModule") is ow.ops.get("PackAlias")
    with pytest.raises(KeyError, match="no operator is named 'PackReg'"):
        ow.ops.get("PackReg")


BROKEN = {
    "raises": ("1 / 0", "{module}:{name}", "ZeroDivisionError: division by zero"),
    "leaves": ("raise SystemExit(3)", "{module}:{name}", "SystemExit: 3"),
    "lacks the name": ("x = 1", "{module}:{name}", "AttributeError"),
    "is not there": ("", "no_such_module:{name}", "No module named 'no_such_module'"),
    "is not an operator": ("{name} = 3", "{module}:{name}", "is a int, and no operator or registration"),
    "a table without it": ("T = dict(a=1)", "{module}:T", "KeyError"),
}


@pytest.mark.parametrize("how", list(BROKEN))
def test_a_broken_package_is_named_and_harms_no_other(packages, how):
    source, value, words = BROKEN[how]
    fill = {"module": "my_broken", "name": "PackBroken"}
    packages.add("my-broken", {"PackBroken": value.format(**fill)}, source.format(**fill))
    packages.clip("my-doubling", "PackDouble")
    np.testing.assert_array_equal(run(model("PackDouble")), 2 * X)
    with pytest.warns(registry.PackageWarning, match="package my-broken 1.5: my_broken|no_such_module"):
        interpreter = Interpreter(model_content=model("PackBroken"))
    with pytest.raises(RuntimeError, match=f"my-broken 1.5(.|\n)*{words}(.|\n)*mend or remove it"):
        interpreter.allocate_tensors()
    with pytest.raises(KeyError, match=f"my-broken 1.5(.|\n)*{words}"):
        ow.ops.get("PackBroken")


@pytest.mark.parametrize("metadata", ["", "Version: 2\n", "\xff\x00"])
def test_damaged_metadata_harms_no_other(packages, metadata):
    packages.add("my-damaged", {}, metadata=metadata or " ")
    (packages.folder / "my_damaged-1.5.dist-info" / "entry_points.txt").write_bytes(b"[opwright.operators\nx\n=\n\xff")
    packages.clip("my-doubling", "PackDouble")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", registry.PackageWarning)
        np.testing.assert_array_equal(run(model("PackDouble")), 2 * X)


def test_two_packages_of_one_operator_serve_neither(packages):
    packages.clip("my-doubling", "PackTwice", 2.0)
    packages.clip("my-tripling", "PackTwice", 3.0)
    content = model("PackTwice")
    says = r"PackTwice is added by 2 installed packages: my-(.|\n)*my-(.|\n)*remove one"
    with pytest.warns(registry.PackageWarning, match=says), pytest.raises(RuntimeError, match=says):
        run(content)
    with pytest.raises(KeyError, match=says):
        ow.ops.get("PackTwice")
    import my_tripling

    np.testing.assert_array_equal(run(content, custom_ops=[my_tripling.PackTwice]), 3 * X)


def test_two_names_for_one_object_are_no_conflict(packages):
    packages.clip("my-doubling", "PackDouble")
    packages.add("my-collection", {"PackDouble": "my_collection:PackDouble"}, "from my_doubling import PackDouble")
    np.testing.assert_array_equal(run(model("PackDouble")), 2 * X)


def test_of_two_one_of_which_is_broken_the_other_serves(packages):
    packages.clip("my-doubling", "PackDouble")
    packages.add("my-broken", {"PackDouble": "my_broken:PackDouble"}, "1 / 0")
    with pytest.warns(registry.PackageWarning, match="my-broken 1.5"):
        np.testing.assert_array_equal(run(model("PackDouble")), 2 * X)


def test_a_package_that_comes_while_the_process_runs(packages):
    content = model("PackLate")
    with pytest.raises(RuntimeError, match="unresolved custom op: PackLate"):
        run(content)
    packages.clip("my-late", "PackLate")
    np.testing.assert_array_equal(run(content), 2 * X)


def test_shipped_operators_and_the_catalogues_are_not_taken_over(packages):
    packages.add("my-taker", {"Roll": "my_taker:X", "Atan": "my_taker:X", "FlexAtan": "my_taker:X"}, "1 / 0")
    resolver = BuiltinOpResolver()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolver.find_custom("Roll") is not None
        assert resolver.find_custom("FlexAtan") is not None
        assert ow.ops.get("Atan").name == "Atan"


LAZY = """
import importlib.metadata as metadata, sys
def refuse(*args, **kwargs): raise AssertionError("packages were looked through")
metadata.distributions = metadata.entry_points = refuse
import opwright as ow
f = ow.function(lambda x: ow.sin(x) + 1.0).get_concrete_function(ow.TensorSpec([3]))
content = ow.lite.TFLiteConverter.from_concrete_functions([f]).convert()
interpreter = ow.lite.Interpreter(model_content=content)
interpreter.allocate_tensors(); interpreter.invoke()
assert ow.ops.get("Atan") and "opwright_never" not in sys.modules
"""


def test_nothing_is_looked_through_before_it_is_needed():
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
