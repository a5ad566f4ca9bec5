"""Resolvers that `opwright resolver` writes, with custom operators of every origin: Python, C, installed packages; and
what they save. Answers are NumPy's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lite_kit import Build
from tools_harness import opwright, result_of

import opwright as ow
from opwright import lite
from opwright.core.errors import UnavailableError
from opwright.lite.native import toolchain

NATIVE = Path(__file__).parents[1] / "lite" / "native" / "examples"
X = np.linspace(-2, 2, 5, dtype=np.float32)

PACKAGE = """
import opwright as ow

@ow.operator
class Tripled:
    x = ow.Input(ow.floating)
    y = ow.Output(like="x")

    def compute(op, x):
        return 3 * x
"""


@pytest.fixture
def packages(tmp_path):
    """A folder with an installed package that adds Tripled, for other processes."""
    folder = tmp_path / "site"
    about = folder / "tripled_ops-1.5.dist-info"
    about.mkdir(parents=True)
    (folder / "tripled_ops.py").write_text(PACKAGE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tripled-ops\nVersion: 1.5\n")
    (about / "entry_points.txt").write_text("[opwright.operators]\nTripled = tripled_ops:Tripled\n")
    return folder


def written(folder, content, *options):
    """The module for a model, as a file; and the model."""
    (folder / "m.tflite").write_bytes(content)
    opwright("resolver", folder / "m.tflite", "-o", folder / "my_resolver.py", *options)
    return folder / "my_resolver.py"


def loaded(path):
    scope = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope["Resolver"]


def answer(content, resolver):
    interpreter = lite.Interpreter(model_content=content, op_resolver=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_operators_of_a_library_in_c(tmp_path):
    try:
        toolchain.find_compiler("c")
    except UnavailableError as error:
        pytest.skip(f"no C compiler: {error}")
    ops = lite.build_custom_ops([NATIVE / "atan_opaque.c"], {"Atan": "AtanOpRegistrationExternal"})
    content = Build().custom("Atan", "x", "a").op("ADD", "a x", "y").done()
    resolver = loaded(written(tmp_path, content))
    with pytest.raises(ow.errors.InvalidArgumentError, match="not given: Atan"):
        resolver()
    np.testing.assert_allclose(answer(content, resolver(Atan=ops["Atan"])), np.arctan(X) + X, rtol=1e-6)


def test_operators_of_installed_packages_are_found_and_nothing_else_is_imported(tmp_path, packages):
    content = Build().custom("Tripled", "x", "a").op("ADD", "a x", "y").done()
    written(tmp_path, content)
    code = f"""
import sys
sys.path[:0] = [{str(tmp_path)!r}, {str(packages)!r}]
import numpy as np
import my_resolver
from opwright.lite import Interpreter
interpreter = Interpreter(model_path={str(tmp_path / "m.tflite")!r}, op_resolver=my_resolver.Resolver())
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.linspace(-2, 2, 5, dtype=np.float32))
interpreter.invoke()
y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
families = sorted(m.rpartition(".")[2] for m in sys.modules if m.startswith("opwright.lite.ops."))
import json
print(json.dumps([y.tolist(), families, "llvmlite" in sys.modules, "opwright.lite.flex" in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    y, families, compiler, flex = json.loads(done.stdout)
    np.testing.assert_allclose(y, 4 * X, rtol=1e-6)
    assert "elementwise" in families
    assert not {"convolution", "lstm", "matmul", "images", "recurrent"} & set(families)
    assert not compiler
    assert not flex


def test_of_an_installed_package_and_of_none(tmp_path, packages, monkeypatch):
    content = Build().custom("Tripled", "x", "a").custom("Nobodys", "a", "y").done()
    (tmp_path / "m.tflite").write_bytes(content)
    monkeypatch.syspath_prepend(str(packages))
    figures = result_of("resolver", tmp_path / "m.tflite", "--json")
    assert figures["installed"] == ["Tripled"]
    assert figures["customs"] == {"Nobodys": [1, 1], "Tripled": [1, 1]}
    assert figures["flex"] == []
    with pytest.raises(ow.errors.InvalidArgumentError, match="not given: Nobodys"):
        loaded(written(tmp_path, content))()


def test_one_that_is_given_goes_before_that_of_a_package(tmp_path, packages, monkeypatch):
    monkeypatch.syspath_prepend(str(packages))
    content = Build().custom("Tripled", "x", "y").done()

    @ow.operator(name="Tripled")
    class Mine:
        x = ow.Input(ow.floating)
        y = ow.Output(like="x")

        def compute(op, x):
            return 5 * x

    try:
        np.testing.assert_allclose(answer(content, loaded(written(tmp_path, content))(Tripled=Mine)), 5 * X)
    finally:
        from opwright.ops import registry

        registry._users.pop("Tripled", None)
        registry._scan_cache = registry._EntryScan(None, {}, {})


@pytest.mark.slow
def test_what_is_saved_is_measured(tmp_path):
    content = Build().custom("Tripled", "x", "a").op("ADD", "a x", "y").done()
    (tmp_path / "m.tflite").write_bytes(content)
    costs = {c["resolver"]: c for c in result_of("resolver", tmp_path / "m.tflite", "--measure", "--json")["costs"]}
    assert list(costs) == ["this", "default", "all"]
    this, everything = costs["this"], costs["all"]
    assert this["modules"] < everything["modules"] / 3
    assert 0 < this["seconds"] < everything["seconds"]
    assert this["bytes"] <= everything["bytes"]
    result = opwright("resolver", tmp_path / "m.tflite", "-o", tmp_path / "r.py", "--measure")
    assert "one of all operators" in result.stderr
    assert "import" not in result.stdout


def test_without_being_asked_nothing_is_measured(tmp_path):
    (tmp_path / "m.tflite").write_bytes(Build().op("ADD", "x x", "y").done())
    assert result_of("resolver", tmp_path / "m.tflite", "--json")["costs"] == []
