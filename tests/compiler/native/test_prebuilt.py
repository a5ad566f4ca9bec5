"""Kernels of the package: used if sources and target equal the ones that they were built from, otherwise compiled."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from images_kit import ANSWER, function

from opwright.compiler.native import prebuilt, store
from opwright.compiler.target import NAMED, Target, host
from opwright.core import flags

NAME = "here"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for files of prebuilt kernels, and a target that this processor is."""
    monkeypatch.setattr(prebuilt, "FOLDER", str(tmp_path))
    monkeypatch.setattr(prebuilt, "NAMED", {NAME: host()})
    monkeypatch.setattr(store, "_loaded", {})
    with flags.override(prebuilt=True):
        yield tmp_path
    prebuilt._kernels.cache_clear()


def answers(cache: Path, *constants: str) -> tuple[list[int], list[str]]:
    """Return the results of a new process with that cache, and the kernels that it compiles: their constants."""
    compiled = []

    def make(text: str) -> tuple[str, str]:
        compiled.append(text)
        return ANSWER.replace("VALUE", text), "k"

    store._loaded.clear()
    prebuilt._kernels.cache_clear()
    with flags.override(cache_dir=cache):
        codes = [store.find_or_make("answer", c, None, lambda c=c: make(c)) for c in constants]  # type: ignore[misc]
        return [function(code.address)(None, 0, 0, None) for code in codes], compiled


def write(tmp_path: Path) -> Path:
    """Write the file with the kernels 1 and 2."""
    with store.recording() as kernels:
        answers(tmp_path / "builder", "1", "2")
    return Path(prebuilt.write(NAME, kernels))


def test_a_process_with_an_empty_cache_takes_them_and_keeps_them(folder: Path) -> None:
    path = write(folder)
    assert answers(folder / "one", "1", "2", "3") == ([1, 2, 3], ["3"])
    path.unlink()
    assert answers(folder / "one", "1", "2", "3") == ([1, 2, 3], [])


def test_they_are_available_where_nothing_may_be_compiled(folder: Path) -> None:
    write(folder)
    answers(folder / "one", "3")  # describes the processor
    with store.only_cached():
        assert answers(folder / "one", "1") == ([1], [])
        with pytest.raises(store.NotCached):
            answers(folder / "one", "4")


def test_other_sources_damage_and_the_switch_let_them_be_compiled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(folder)
    whole = path.read_bytes()
    for i, damaged in enumerate((whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b"", b"OWK2" + whole[4:])):
        path.write_bytes(damaged)
        assert answers(folder / f"damaged{i}", "1") == ([1], ["1"])
    path.write_bytes(whole)
    with flags.override(prebuilt=False):
        assert answers(folder / "off", "1") == ([1], ["1"])
    with monkeypatch.context() as patch:
        patch.setattr(prebuilt, "contents", lambda: "other sources")
        assert answers(folder / "other", "1") == ([1], ["1"])
    assert answers(folder / "same", "1") == ([1], [])


ZEN3 = Target("zen3", "x86_64-unknown-linux-gnu", "znver3", "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,-avx512f", 32)
SERVED = [
    ("x86-64-v3", ZEN3, True),
    ("x86-64-v3", ZEN3._replace(features=ZEN3.features.replace("+movbe", "-movbe")), False),  # cannot run all of it
    ("x86-64-v3", ZEN3._replace(features=ZEN3.features + ",+avxvnni"), False),  # has kernels of its own
    ("x86-64-v3", NAMED["x86-64-v4"], False),
    ("x86-64-v4", ZEN3, False),
    ("x86-64-v2", ZEN3, False),
    ("aarch64", NAMED["aarch64"], True),
    ("aarch64", NAMED["aarch64-dotprod"], False),
    ("aarch64", NAMED["x86-64-v2"], False),
]


@pytest.mark.parametrize(("name", "other", "serves"), SERVED)
def test_a_file_serves_targets_with_the_same_kernels(name: str, other: Target, serves: bool) -> None:
    assert NAMED[name].serves(other) is serves


class _Hook:
    """Hatchling's base class of hooks, as far as ours uses it."""

    root = str(Path(__file__).parents[3])

    def __class_getitem__(cls, _: object) -> type[_Hook]:
        return cls

    def __init__(self) -> None:
        self.app, self.warnings = self, list[str]()

    def display_warning(self, text: str) -> None:
        self.warnings.append(text)


def test_a_build_from_sources_asks_for_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("hatchling.builders.hooks.plugin.interface")
    module.BuildHookInterface = _Hook  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.syspath_prepend(_Hook.root)
    monkeypatch.delenv("OPWRIGHT_BUILD_KERNELS", raising=False)
    hooks = importlib.import_module("hatch_build")
    asked: list[tuple[str, ...]] = []
    failing = subprocess.CompletedProcess((), 1, "", "Traceback\nImportError: no LLVM\n")

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        asked.append(tuple(command[1:]))
        return failing

    monkeypatch.setattr(hooks.subprocess, "run", run)
    hook = hooks.KernelBuildHook()
    hook.initialize("editable", {})
    monkeypatch.setenv("OPWRIGHT_BUILD_KERNELS", "0")
    hook.initialize("standard", {})
    assert asked == []
    monkeypatch.delenv("OPWRIGHT_BUILD_KERNELS")
    hook.initialize("standard", {})
    assert asked == [("-m", "benchmarks.prebuild", "--missing")]
    assert hook.warnings == ["no kernels are compiled: ImportError: no LLVM"]  # and the build goes on


def test_kernels_that_are_there_are_not_built_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(_Hook.root)
    for name in importlib.import_module("benchmarks.measure").QUIET:  # which prebuild sets for its process
        monkeypatch.setenv(name, "1")
    prebuild = importlib.import_module("benchmarks.prebuild")
    monkeypatch.setattr(prebuild, "processor", host)
    monkeypatch.setattr(prebuild, "prebuild", lambda paths: paths)
    monkeypatch.setattr(prebuild, "mobile_networks", lambda _: ["mobile.tflite"])
    assert prebuild.prebuild_missing() == ["mobile.tflite"]
    prebuilt._kernels.cache_clear()
    write(folder)
    prebuilt._kernels.cache_clear()
    assert prebuild.prebuild_missing() is None
