"""Converted kernels are kept between processes: found where nothing changed, made again where anything did."""

from __future__ import annotations

import linecache
import marshal
import shutil
import textwrap
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from opwright.autograph import conversion
from opwright.autograph.conversion import set_store
from opwright.compiler.cache import objects
from opwright.compiler.language import trace
from opwright.compiler.native import sources as native_sources
from opwright.core import flags, introspection

BRANCHES = """
    def kernel(n, limit=3):
        '''A loop with everything that conversion moves.'''
        total = 0
        for i in range(n):
            if i > limit:
                break
            total = total + i if i % 2 else total
        def twice(x):
            while x < 5:
                x = 2 * x
            return x
        class Holder:
            def method(self, x):
                return [y for y in range(x) if y != 1]
        return total, twice(1), Holder().method(3), 1 / (n - 7)
"""


class Workplace:
    """A source file, and processes that load it one after the other. compiled: how often its kernel was converted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = folder / "sample.py"
        self.cache = folder / "cache"
        self.compiled = 0
        original = conversion._compile

        def counted(function: types.FunctionType) -> Any:
            self.compiled += function.__name__ == "kernel"
            return original(function)

        monkeypatch.setattr(conversion, "_compile", counted)

    def process(self, source: str) -> Callable[..., Any]:
        """The converted kernel of a new process that imports this source."""
        store = trace.Conversions()
        set_store(store)
        self.file.write_text(textwrap.dedent(source))
        linecache.checkcache(str(self.file))
        module: dict[str, Any] = {"__name__": "opwright.compiler.kernels.sample"}
        exec(compile(self.file.read_text(), str(self.file), "exec"), module)
        self.digest = trace._digest_of(module["kernel"].__code__)
        converted: Callable[..., Any] = conversion.convert(module["kernel"])
        store.write()
        return converted

    @property
    def object(self) -> Path:
        """The one file that is kept."""
        (path,) = (self.cache / "kernels").glob("*.kernel")
        return path


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    with flags.override(cache_dir=tmp_path / "cache"):
        yield Workplace(tmp_path, monkeypatch)
    set_store(trace.CONVERSIONS)


def codes(code: types.CodeType) -> list[types.CodeType]:
    """Code and all that is inside it."""
    return [code, *(c for const in code.co_consts if isinstance(const, types.CodeType) for c in codes(const))]


def noted(function: Any) -> dict[str, bool]:
    """Return for each code object whether it is marked as converted."""
    return {
        c.co_qualname: conversion._conversions.get(id(c), (None, None))[1] is conversion.AS_IS
        for c in codes(function.__code__)
    }


def test_what_is_kept_is_what_was_made(workplace: Workplace) -> None:
    first, second = workplace.process(BRANCHES), workplace.process(BRANCHES)
    assert workplace.compiled == 1
    assert first.__code__ == second.__code__
    assert first.__code__ is not second.__code__
    assert noted(first) == noted(second)
    assert first(6) == second(6) == (4, 8, [0, 2], -1.0)
    assert second(2, limit=0) == (0, 8, [0, 2], -0.2)
    with pytest.raises(ZeroDivisionError) as raised:
        second(7)
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert (last.filename, last.line) == (str(workplace.file), BRANCHES.splitlines()[-1].strip())


def test_another_source_is_converted_again(workplace: Workplace) -> None:
    assert workplace.process(BRANCHES)(6)[0] == 4
    assert workplace.process(BRANCHES.replace("i > limit", "i >= limit"))(6)[0] == 1
    assert workplace.process("\n" + BRANCHES)(6)[0] == 4  # the same text on other lines
    assert workplace.compiled == 3


@pytest.mark.parametrize("what", ["converter", "_FORMAT"])
def test_another_converter_converts_again(workplace: Workplace, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    workplace.process(BRANCHES)
    monkeypatch.setattr(trace, what, (lambda: "others") if what == "converter" else "others")
    workplace.process(BRANCHES)
    assert workplace.compiled == 2


def test_other_sources_convert_nothing_again(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of one kernel's file leaves the conversions of all others; all kernels are staged again."""
    workplace.process(BRANCHES)
    monkeypatch.setattr(trace, "sources", lambda: "others")
    assert workplace.process(BRANCHES)(6)[0] == 4
    assert workplace.compiled == 1
    monkeypatch.setattr(trace, "converter", lambda: None)  # which cannot be read: all sources count
    workplace.process(BRANCHES)
    monkeypatch.setattr(trace, "sources", lambda: "yet others")
    workplace.process(BRANCHES)
    assert workplace.compiled == 3


def test_the_converter_is_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed or added module of autograph/ is another converter, in any folder with any times of its files."""
    folders = [tmp_path / name for name in ("compiler", "core", "autograph")]
    monkeypatch.setattr(native_sources, "_folders", lambda: [*map(str, folders)])
    shutil.copytree(Path(conversion.__file__).parent, folders[2])
    digest: Any = native_sources.converter.__wrapped__
    assert digest() is None  # without core/introspection.py
    shutil.copytree(Path(introspection.__file__).parent, folders[1])
    assert digest() == native_sources.converter()
    for file in ("autograph/statements.py", "autograph/more.py", "core/introspection.py"):
        before = digest()
        with (tmp_path / file).open("a") as text:
            text.write("# changed\n")
        assert None is not digest() != before


def test_another_python_converts_again(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    workplace.process(BRANCHES)
    monkeypatch.setattr(trace.importlib.util, "MAGIC_NUMBER", b"\0\0\r\n")
    workplace.process(BRANCHES)
    assert workplace.compiled == 2


@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "replaced", "unsigned"])
def test_a_file_that_was_tampered_with_is_not_run(workplace: Workplace, how: str) -> None:
    workplace.process(BRANCHES)
    path = workplace.object
    content = path.read_bytes()
    changed = bytearray(content)
    changed[len(changed) // 2] ^= 1
    harm = marshal.dumps({workplace.digest: compile("raise SystemExit", "harm", "exec")})
    path.write_bytes(
        {
            "flipped": bytes(changed),
            "cut": content[:-1],
            "empty": b"",
            "unsigned": harm,
            "replaced": content[:32] + harm,
        }[how]
    )
    assert workplace.process(BRANCHES)(6)[0] == 4
    assert workplace.compiled == 2
    assert path.read_bytes() not in (changed, harm)
    assert workplace.process(BRANCHES)(6)[0] == 4
    assert workplace.compiled == 2, "it was kept again"


def test_an_object_of_another_format_is_not_used(workplace: Workplace) -> None:
    """Authentic, but not what this version writes."""
    workplace.process(BRANCHES)
    objects(flags.cache_dir).keep(workplace.object.stem, b"\xff no marshal")
    assert workplace.process(BRANCHES)(6)[0] == 4
    assert workplace.compiled == 2


def test_users_functions_are_not_kept(workplace: Workplace) -> None:
    """Only the package's own kernels are: their sources are part of what an object is found by."""
    workplace.file.write_text(textwrap.dedent(BRANCHES))
    module: dict[str, Any] = {"__name__": "users"}
    exec(compile(workplace.file.read_text(), str(workplace.file), "exec"), module)
    store = trace.Conversions()
    set_store(store)
    assert conversion.convert(module["kernel"])(6)[0] == 4
    store.write()
    assert not list(workplace.cache.glob("kernels/*"))
