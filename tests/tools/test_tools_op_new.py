"""`opwright op new`: the package works as it is written, in place and installed; names and folders that cannot be."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from tools_harness import opwright, result_of

import opwright as ow

SOURCES = Path(ow.__file__).parents[1]


def run(*command, cwd=None, **environment):
    done = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        cwd=cwd,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_tests_pass_in_place(tmp_path):
    created = result_of("op", "new", "BentLine", "-o", tmp_path / "bent", "--json")
    assert (created["package"], created["module"], created["operator"]) == ("bent-line", "bent_line", "BentLine")
    assert sorted(created["files"]) == [
        "README.md",
        "pyproject.toml",
        "src/bent_line/__init__.py",
        "src/bent_line/operator.py",
        "tests/test_bent_line.py",
    ]
    result = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert result == sorted(f"bent/{name}" for name in created["files"])
    said = run(sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", cwd=tmp_path / "bent")
    assert "2 passed, 1 skipped" in said
    assert "not installed" in said


def test_what_it_writes_is_as_an_operator_should_be(tmp_path):
    opwright("op", "new", "BentRule", "-o", tmp_path / "bent")
    result = result_of("op", "test", tmp_path / "bent/src/bent_rule/operator.py", "--json")
    assert {o["operator"] for o in result} == {"BentRule"}
    states = {o["check"]: o["state"] for o in result}
    assert set(states.values()) == {"ok", "not tried"}
    not_tried = {name for name, state in states.items() if state == "not tried"}
    assert not_tried - {"exported", "official run time"} == {"empty sequences"}  # these two as far as there is what for
    if (Path(sys.executable).parent / "ruff").exists():
        run(
            Path(sys.executable).parent / "ruff",
            "check",
            "--isolated",
            "--select",
            "E,F,I,W,B,UP",
            "--line-length",
            "120",
            "src",
            "tests",
            cwd=tmp_path / "bent",
        )


NAMES = {
    "leaky": "not in CamelCase, as operators are; try Leaky",
    "my-op": "try MyOp",
    "3d": "try D",
    "": "try LeakyClip",
    "LeakyClipé": "not in CamelCase",
    "Leaky.Clip": "try LeakyClip",
    "../Evil": "try Evil",
    "Atan": "in the catalogue (`opwright op show Atan`); try MyAtan",
    "ADD": "builtin operator of .tflite files; try MyADD",
    "Resampler": "shipped with Opwright; try MyResampler",
    "FlexThing": "begins with Flex",
    "ThingV2": "ends with a version",
    "None": "word of Python",
    "Lambda": "word of Python",
    "Json": "would be the module json",
    "NumPy": None,  # module num_py: nobody's
    "Numpy": "would be the module numpy",
    "Opwright": "would be the module opwright",
}


@pytest.mark.parametrize("name", list(NAMES))
def test_names_that_cannot_be(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    words = NAMES[name]
    result = opwright("op", "new", name, exit_code=0 if words is None else 2)
    assert (words or "") in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ([] if words else ["num-py"])


def test_folders_that_cannot_be(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for place in ("full", "file"):
        assert "is there already" in opwright("op", "new", "BentLine", "-o", tmp_path / place, exit_code=3).stderr
    assert (tmp_path / "full" / "mine.txt").read_text() == "mine"
    assert "cannot be written" in opwright("op", "new", "BentLine", "-o", tmp_path / "file/x", exit_code=3).stderr
    assert "cannot be written" in opwright("op", "new", "BentLine", "-o", tmp_path / ("n" * 300), exit_code=3).stderr
    assert "cannot be written" in opwright("op", "new", "B" + "e" * 300, "-o", tmp_path / "long", exit_code=3).stderr
    (tmp_path / "empty").mkdir()
    opwright("op", "new", "BentLine", "-o", tmp_path / "empty")
    assert (tmp_path / "empty" / "pyproject.toml").is_file()


def test_all_files_or_none(tmp_path, monkeypatch):
    whole, count = Path.write_text, iter(range(100))

    def fails_at_the_third(self, *arguments, **options):
        if next(count) == 2:
            raise OSError(28, "No space left on device", str(self))
        return whole(self, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", fails_at_the_third)
    assert "No space left" in opwright("op", "new", "BentLine", "-o", tmp_path / "bent", exit_code=3).stderr
    assert list(tmp_path.iterdir()) == []


def test_the_template_is_shipped():
    """All of its files are in the package's folder, which is what a wheel holds."""
    from opwright.tools import catalogue

    assert {p.name for p in catalogue.TEMPLATE.iterdir()} == set(catalogue.PACKAGE_FILES.values())


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    """A fresh environment that sees the packages of this one; its python. Skips where hatchling cannot be had."""
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())
    (site / "others.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{SOURCES}\n")
    install = [python, "-m", "pip", "install", "-q", "hatchling"]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"hatchling cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    return python


@pytest.mark.slow
def test_installed_it_is_found_by_name(tmp_path, venv):
    opwright("op", "new", "BentLine", "-o", tmp_path / "bent")
    run(venv, "-m", "pip", "install", "-q", "-e", ".", "--no-build-isolation", "--no-deps", cwd=tmp_path / "bent")
    said = run(venv, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path / "bent")
    assert "3 passed" in said
    for arguments, words in {
        ("op", "list", "BentLine"): "BentLine",
        ("op", "show", "BentLine"): "BentLine(x, *, limit: float = 6.0, slope: float = 0.1)",
        ("op", "test", "BentLine"): "interpreted",
        ("doctor",): "bent-line 0.1.0 (bent_line:BentLine)",
        ("op", "model", "BentLine", "--shape", "2,3", "-o", "one.tflite"): "BentLine",
        ("check", "one.tflite", "--strict"): "yes",
        ("run", "one.tflite"): "float32[2, 3]",
        ("bench", "one.tflite", "--ops", "--runs", "3"): "BentLine",
    }.items():
        assert words in run(venv, "-m", "opwright", *arguments, cwd=tmp_path, OPWRIGHT_COMPILED="0"), arguments
    y = run(venv, "-c", "import opwright as ow; print(ow.ops.get('BentLine')(ow.constant([1.0, 16.0])).numpy())")
    np.testing.assert_allclose(np.fromstring(y.strip("[]\n "), sep=" "), [1.0, 7.0])
    again = [venv, "-m", "opwright", "op", "new", "BentLine"]
    refused = subprocess.run(again, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (refused.returncode, "package that is installed: bent-line 0.1.0" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_installed_as_anybody_would(tmp_path, venv):
    """A plain install, with a build environment of its own and the dependencies resolved."""
    opwright("op", "new", "BentWheel", "-o", tmp_path / "bent")
    run(venv, "-m", "pip", "install", "-q", ".", cwd=tmp_path / "bent")
    y = run(venv, "-c", "import opwright as ow; print(ow.ops.get('BentWheel')(ow.constant([1.0, 16.0])).numpy())")
    np.testing.assert_allclose(np.fromstring(y.strip("[]\n "), sep=" "), [1.0, 7.0])
