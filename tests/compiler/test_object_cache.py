"""Compiled kernels are kept between processes: found again, whole or not at all, within a limit, in a shared folder."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opwright.compiler.cache import SUFFIX, Objects

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
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"OPWRIGHT_CACHE_DIR": str(folder)},
                          capture_output=True, text=True, check=True)  # fmt: skip
    return done.stdout, done.stderr


def test_a_second_process_finds_what_the_first_compiled(tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path)
    assert first[1].startswith("compile Wave.f32")
    assert second[1].startswith("found Wave.f32")
    assert first[0] == second[0] == "0.9588511\n"


DAMAGE = {
    "empty": lambda code: b"",
    "cut": lambda code: code[:-1],
    "changed": lambda code: code[:40] + bytes([code[40] ^ 1]) + code[41:],
    "longer": lambda code: code + b"\0",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: str) -> None:
    run(tmp_path)
    file = max((tmp_path / "kernels").iterdir(), key=lambda f: f.stat().st_size)  # beside what says which host this is
    whole = file.read_bytes()
    file.write_bytes(DAMAGE[damage](whole))
    assert run(tmp_path)[1].startswith("compile Wave.f32")
    assert file.read_bytes() == whole


def test_a_folder_that_cannot_be_written_is_told_of_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    objects = Objects(tmp_path / "file" / "kernels")
    with pytest.warns(RuntimeWarning, match="OPWRIGHT_CACHE_DIR"):
        objects.keep(DIGEST, CODE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objects.keep(DIGEST, CODE)
        assert objects.find(DIGEST) is None
    assert run(tmp_path / "file")[0] == "0.9588511\n"


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    objects = Objects(tmp_path, most_bytes=4 * (len(CODE) + 32))
    names = [f"{i:064x}" for i in range(5)]
    for age, name in enumerate(names[:4]):
        objects.keep(name, CODE)
        os.utime(tmp_path / f"{name}{SUFFIX}", (1000 + age, 1000 + age))
    assert objects.find(names[0]) == CODE  # used just now
    objects.keep(names[4], CODE)
    assert [objects.find(name) is not None for name in names] == [True, False, False, True, True]


def test_processes_share_the_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: run(tmp_path)[0], range(4)))
    assert set(answers) == {"0.9588511\n"}
    assert [f.suffix for f in (tmp_path / "kernels").iterdir()] == [SUFFIX] * 2  # the kernel, and which host this is
