"""Code is made once a machine: found by later processes without LLVM, whole or not at all, from packs at once."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from images_kit import ANSWER, function

from opwright.compiler import cache
from opwright.compiler.native import host as hosts
from opwright.compiler.native import sources, store
from opwright.core import flags
from thorough import examples

Make = Callable[[], tuple[str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of its own, and a process that has loaded nothing."""
    monkeypatch.setattr(store, "_loaded", {})
    with flags.override(cache_dir=tmp_path):
        yield tmp_path


def answer(number: int, made: list[int]) -> Make:
    def make() -> tuple[str, str]:
        made.append(number)
        return ANSWER.replace("VALUE", str(number)), "k"

    return make


def find(number: int, made: list[int]) -> int:
    """Return the result of the kernel of that number."""
    code = store.find_or_make(f"answer {number}", "", None, answer(number, made))
    assert code.name == f"answer {number}"
    return function(code.address)(None, 0, 0, None)


def forget() -> None:
    """As a new process has it."""
    store._loaded.clear()


def test_code_is_made_once(folder: Path) -> None:
    made: list[int] = []
    assert [find(n, made) for n in (1, 2, 1)] == [1, 2, 1]
    forget()
    assert [find(n, made) for n in (1, 2, 1)] == [1, 2, 1]
    assert made == [1, 2]


def test_code_hangs_on_constants_and_on_our_own_sources(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    for constants in ("a", "b", "a"):
        store.find_or_make("answer", constants, None, answer(1, made))
    assert len(made) == 2
    monkeypatch.setattr(store, "sources", lambda: "another version")
    store.find_or_make("answer", "a", None, answer(1, made))
    assert len(made) == 3


def test_sources_are_those_of_the_compiler() -> None:
    found: list[str] = []
    sources.list_sources(str(Path(store.__file__).parents[1]), found)
    names = {line.split()[0] for line in found}
    assert {"store.py", "executor.ll", "compilation.py", "target.py"} <= names
    assert len(sources.sources()) == 64


WARM = """
import sys
from opwright.compiler.native import sources, store
from opwright.compiler.native.executor import Executor, Step

def make():
    assert sys.argv[1] == "cold", "made again"
    return TEXT, "k"

with store.pack("model"):
    code = store.find_or_make("answer", "", None, make)
Executor([Step(code.address, [], 1)]).run()
Executor([Step(code.address, [], 1)] * 3, threads=2).run()
print("llvmlite" in sys.modules)
"""


def start(folder: Path, *arguments: str) -> str:
    program = WARM.replace("TEXT", repr(ANSWER.replace("VALUE", "0")))
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OPWRIGHT_CACHE_DIR": str(folder)},
    )
    return done.stdout.strip()


def test_a_warm_process_runs_without_llvm(tmp_path: Path) -> None:
    assert start(tmp_path, "cold") == "True"
    assert start(tmp_path, "warm") == "False"


@pytest.mark.slow
def test_processes_race(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        assert "True" in list(pool.map(lambda _: start(tmp_path, "cold"), range(3)))  # who is late may find it
    assert start(tmp_path, "warm") == "False"


def test_threads_race(folder: Path) -> None:
    made: list[int] = []
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: find(n % 5, made), range(200)))
    assert found == [n % 5 for n in range(200)]
    assert sorted(made) == [0, 1, 2, 3, 4]
    assert not store._compiling


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
@given(st.integers(0, 999), st.integers(0, 9999), st.sampled_from(["cut", "longer", "changed", "empty"]))
def test_a_damaged_file_is_made_anew(folder: Path, which: int, place: int, how: str) -> None:
    made: list[int] = []
    forget()
    with store.pack("model"):
        find(1, made)
        find(2, made)
    files = sorted((folder / "kernels").iterdir())
    path = files[which % len(files)]
    content = path.read_bytes()
    at = place % len(content)
    changed = content[:at] + bytes([content[at] ^ 1 << place % 8]) + content[at + 1 :]
    damaged = {"cut": content[:at], "longer": content + b"\0", "changed": changed, "empty": b""}[how]
    path.write_bytes(damaged)
    forget()
    with store.pack("model"):
        assert [find(n, made) for n in (1, 2)] == [1, 2]
    path.write_bytes(content)


def test_a_file_that_is_whole_and_no_image_is_made_again(folder: Path) -> None:
    made: list[int] = []
    find(1, made)
    for path in (folder / "kernels").iterdir():
        cache.objects(folder).keep(path.stem, b"whole, but of another make")
    forget()
    assert find(1, made) == 1
    assert made == [1, 1]


def test_a_folder_that_cannot_be_written_is_told_of_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_loaded", {})
    (tmp_path / "file").write_text("no folder")
    made: list[int] = []
    with flags.override(cache_dir=tmp_path / "file"):
        with pytest.warns(RuntimeWarning, match="OPWRIGHT_CACHE_DIR") as told, store.pack("model"):
            assert [find(n, made) for n in (1, 2, 1)] == [1, 2, 1]
        assert len(told) == 1
        with warnings.catch_warnings(), store.pack("model"):
            warnings.simplefilter("error")
            assert [find(n, made) for n in (2, 3)] == [2, 3]
    assert made == [1, 2, 3]


def test_a_pack_is_one_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    with store.pack("model"):
        for n in range(10):
            find(n, made)
    forget()
    read: list[str] = []
    whole = cache.Objects.find
    monkeypatch.setattr(cache.Objects, "find", lambda self, digest: (read.append(digest), whole(self, digest))[1])
    with store.pack("model"):
        assert [find(n, made) for n in range(10)] == list(range(10))
    assert len(read) == 1
    assert made == list(range(10))


def test_a_pack_follows_its_model(folder: Path) -> None:
    made: list[int] = []
    for used in ([1, 2, 3], [2, 3, 4], [2, 3, 4]):
        forget()
        with store.pack("model"):
            assert [find(n, made) for n in used] == used
    forget()
    with store.pack("model"):
        assert len(store._loaded) == 3
    assert made == [1, 2, 3, 4]


def test_a_pack_may_go_to_another_folder(folder: Path, tmp_path: Path) -> None:
    made: list[int] = []
    find(1, made)
    with flags.override(cache_dir=tmp_path / "other"):
        with store.pack("model"):
            find(1, made)
        forget()
        with store.pack("model"):
            assert find(1, made) == 1
    assert made == [1]


def test_packs_nest_and_raise(folder: Path) -> None:
    made: list[int] = []
    with store.pack("outer"):
        find(1, made)
        with store.pack("inner"):
            find(2, made)
        with contextlib.suppress(ZeroDivisionError), store.pack("broken"):
            find(3, made)
            raise ZeroDivisionError
    sizes = []
    for name in ("outer", "inner", "broken"):
        forget()
        with store.pack(name):
            sizes.append(len(store._loaded))
            find(1, made)  # a pack that is used for nothing is written again
    assert sizes == [3, 1, 0]


def test_code_that_is_not_cached_can_be_refused(folder: Path) -> None:
    made: list[int] = []
    find(1, made)
    forget()
    with store.only_cached():
        assert find(1, made) == 1
        with pytest.raises(store.NotCached, match="answer 2"):
            find(2, made)
    assert find(2, made) == 2
    assert made == [1, 2]


def test_kernels_are_compiled_beside(folder: Path) -> None:
    made: list[int] = []
    find(3, made)
    forget()
    with store.pack("model"), store.compiling_in_background():
        for n in (1, 2, 1, 3):
            code = store.find_or_make(f"answer {n}", "", None, answer(n, made))
            assert code.address == 0 or made.count(n) == 1  # where it is compiled by now
    assert sorted(made) == [1, 2, 3]
    assert [find(n, made) for n in (1, 2, 3)] == [1, 2, 3]
    forget()
    with store.pack("model"):
        assert len(store._loaded) == 3
    assert len(made) == 3


def test_background_compilation_may_fail(folder: Path) -> None:
    with pytest.raises(RuntimeError), store.compiling_in_background():
        store.find_or_make("broken", "", None, lambda: ("no text of LLVM's", "k"))
    with pytest.raises(ZeroDivisionError), store.compiling_in_background():
        store.find_or_make("broken", "", None, lambda: (1 // 0, "k"))
    assert find(1, []) == 1


def test_a_maker_that_fails_leaves_nothing_behind(folder: Path) -> None:
    def broken() -> tuple[str, str]:
        raise ValueError("no text")

    with pytest.raises(ValueError, match="no text"):
        store.find_or_make("answer 1", "", None, broken)
    with pytest.raises(RuntimeError):
        store.find_or_make("answer 1", "", None, lambda: ("no text of LLVM's", "k"))
    assert find(1, []) == 1


# --- which processor this is -----------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts how often LLVM is asked."""
    count: list[int] = []
    whole = hosts._from_llvm
    monkeypatch.setattr(hosts, "_from_llvm", lambda: (count.append(1), whole())[1])
    return count


def test_the_host_is_described_once(folder: Path, asked: list[int]) -> None:
    first = hosts.host_words()
    assert hosts.host_words() == first
    assert len(asked) == 1
    assert first == hosts._from_llvm()


@pytest.mark.parametrize("damage", [b"", b"x", b"a\0b\0c\0d", b"a\0b\0c\0" + b"1" * 30, b"\xff\0\xff\0\0"])
def test_a_damaged_description_is_asked_for_again(folder: Path, asked: list[int], damage: bytes) -> None:
    first = hosts.host_words()
    (file,) = (folder / "kernels").glob(f"*{cache.SUFFIX}")
    cache.objects(folder).keep(file.stem, damage)
    assert hosts.host_words() == first
    assert len(asked) == 2


def test_another_processor_is_another_description(
    folder: Path, asked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(hosts, "_CPUINFO", cpuinfo)
    hosts.host_words()  # where the system does not say: not kept
    for text, more in (
        ("model : 1\ncpu MHz : 2\n\nmodel : 3", 1),
        ("model : 1\ncpu MHz : 9\n\nmodel : 4", 0),
        ("model : 2\n", 1),
        ("bogus\n", 1),
        ("", 1),
    ):
        cpuinfo.write_text(text)
        before = len(asked)
        hosts.host_words()
        assert len(asked) - before == more, text
