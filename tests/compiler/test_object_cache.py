"""Compiled kernels are kept between processes: found again, whole or not at all, within a limit, in a shared folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opwright.compiler.cache import _UNITS_A_SWEEP, SUFFIX, WRITTEN, Objects
from opwright.compiler.native.image import runs_images
from opwright.core.private_files import MAC_BYTES, PrivateFolder
from thorough import THOROUGH

CODE = b"\x7fELF" + bytes(range(256)) * 4
DIGEST = "ab" * 32

PROGRAM = """
import numpy as np
import opwright as ow
from opwright.compiler.kernel import Kernel

class Call:
    class operator:
        name = "Wave"

with ow.flags(show="time"):
    print(Kernel(lambda x: ow.sin(x) * 2.0)(Call(), np.float32([0.5, 1.0]))[0])
"""


def run(folder: Path, program: str = PROGRAM) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"OPWRIGHT_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_a_second_process_finds_what_the_first_compiled(tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path)
    assert first[1].startswith("compile Wave.f32")
    assert second[1].startswith("found Wave.f32")
    assert first[0] == second[0] == "0.9588511\n"


OTHER_SOURCES = f"""
from opwright.compiler.native import store
store.sources = lambda: "a changed tree"
{PROGRAM}
store.sources = lambda: "another tree"
store.code_generator = lambda: "another compiler"
{PROGRAM}
"""


def test_sources_that_write_the_same_kernel_need_no_llvm(tmp_path: Path) -> None:
    first, (result, lines) = run(tmp_path), run(tmp_path, OTHER_SOURCES)
    assert re.findall(r"^(\w+) Wave.f32", lines, flags=re.M) == ["staged" if runs_images() else "compile", "compile"]
    assert result == 2 * first[0]


DAMAGE = {
    "empty": lambda code: b"",
    "cut": lambda code: code[:-1],
    "changed": lambda code: code[:40] + bytes([code[40] ^ 1]) + code[41:],
    "longer": lambda code: code + b"\0",
}


def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    run(tmp_path)
    files = (tmp_path / "kernels").glob(f"*{SUFFIX}")
    file = max(files, key=lambda f: f.stat().st_size)  # the other says which host this is
    whole = file.read_bytes()
    for name, damage in DAMAGE.items() if THOROUGH else [("changed", DAMAGE["changed"])]:
        file.write_bytes(damage(whole))
        assert run(tmp_path)[1].startswith("compile Wave.f32"), name
        assert file.read_bytes() == whole, name


def test_a_folder_that_cannot_be_written_is_told_of_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    objects = Objects(PrivateFolder(tmp_path / "file" / "kernels"))
    with pytest.warns(RuntimeWarning, match="OPWRIGHT_CACHE_DIR"):
        objects.keep(DIGEST, CODE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objects.keep(DIGEST, CODE)
        assert objects.find(DIGEST) is None
    assert run(tmp_path / "file")[0] == "0.9588511\n"


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    objects = Objects(PrivateFolder(tmp_path), most_bytes=4 * (len(CODE) + MAC_BYTES))
    names = [f"{i:064x}" for i in range(5)]
    for age, name in enumerate(names[:4]):
        objects.keep(name, CODE)
        os.utime(tmp_path / f"{name}{SUFFIX}", (1000 + age, 1000 + age))
    assert objects.find(names[0]) == CODE  # used just now
    objects.keep(names[4], CODE)
    assert [objects.find(name) is not None for name in names] == [True, False, False, True, True]


def test_the_folder_is_not_listed_at_each_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listings, over all processes, follow what is written and not how much is there."""
    listings: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (listings.append(os.fspath(path)), scandir(path))[1])
    for i in range(3000):
        if i % 100 == 0:
            objects = Objects(PrivateFolder(tmp_path))  # as in a new process
        objects.keep(f"{i:064x}", CODE)
    assert len(listings) <= 1 + 2 * (3000 // _UNITS_A_SWEEP + 1)  # a sweep lists leftovers, and then objects
    assert len(listings) >= 3000 // _UNITS_A_SWEEP


def test_the_limit_holds_over_processes_that_write_little(tmp_path: Path) -> None:
    limit = 64 * 1024
    for i in range(400):
        Objects(PrivateFolder(tmp_path), limit).keep(f"{i:064x}", CODE)
        assert sum(p.stat().st_size for p in tmp_path.glob(f"*{SUFFIX}")) <= limit * 17 // 16 + 2 * len(CODE)
    kept = {p.stem for p in tmp_path.glob(f"*{SUFFIX}")}
    assert kept == {f"{i:064x}" for i in range(400 - len(kept), 400)}


@pytest.mark.skipif(os.name != "posix", reason="locks on files are POSIX's")
def test_leftovers_of_killed_writers_are_swept(tmp_path: Path) -> None:
    objects = Objects(PrivateFolder(tmp_path))
    objects.keep(DIGEST, CODE)
    left = [tmp_path / f"{DIGEST}{SUFFIX}.tmp-1234abcd", tmp_path / f"{DIGEST}{SUFFIX}.tmp-opwright-1234abcd"]
    for path in left:
        path.write_bytes(b"half")
        os.utime(path, (1000, 1000))
    recent = tmp_path / f"{DIGEST}{SUFFIX}.tmp-1234abce"
    recent.write_bytes(b"half")
    objects.sweep(str(tmp_path))
    assert [path.exists() for path in left] == [False, False]
    assert recent.exists()
    assert objects.find(DIGEST) == CODE


FUNCTION = """
import opwright as ow
f = ow.function(lambda a, b: ow.tanh(ow.matmul(a, b)) * 0.5 + a, jit_compile=True)
print(f(ow.ones([4, 4]), ow.ones([4, 4])).numpy().tolist())
with ow.flags(show="time"):
    g = ow.function(lambda a: ow.exp(a) * 2.0, jit_compile=True)
    print(g(ow.ones([3])).numpy().tolist())
"""


@pytest.mark.slow
def test_files_under_the_name_of_another_count_as_missing(tmp_path: Path) -> None:
    """As after a wrong restore: each file is whole, and none is what its name says."""
    answer, _ = run(tmp_path, FUNCTION)
    files = sorted((tmp_path / "kernels").glob(f"*{SUFFIX}"))
    contents = [file.read_bytes() for file in files]
    assert len(files) >= 3
    for file, content in zip(files, contents[1:] + contents[:1]):
        file.write_bytes(content)
    again, said = run(tmp_path, FUNCTION)
    assert again == answer
    assert "compile" in said


def test_processes_share_the_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: run(tmp_path)[0], range(4)))
    assert set(answers) == {"0.9588511\n"}
    files = sorted(f.suffix or f.name for f in (tmp_path / "kernels").iterdir())
    kernel = [SUFFIX] * (2 if runs_images() else 1)  # and its text
    assert files == [*kernel, SUFFIX, WRITTEN]  # which host this is, and how much was written
