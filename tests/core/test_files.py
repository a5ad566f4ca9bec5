"""Files that are written whole or not at all; what killed writers leave is removed, what others write is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import opwright as ow
from opwright.core import files
from opwright.core.files import Replacement, remove_leftovers, replacing, replacing_folder

LONG_AGO = files.UNLOCKED_SECONDS + 60
posix = pytest.mark.skipif(os.name != "posix", reason="locks on files are POSIX's")


@pytest.fixture(autouse=True)
def _cleaned_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_cleaned", set())


def aged(path: Path, seconds: float = LONG_AGO) -> Path:
    for p in (*path.glob("*"), path) if path.is_dir() else (path,):
        os.utime(p, (time.time() - seconds,) * 2)
    return path


def test_a_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path, sync=True) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"half %d" % (1 // 0))
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_replacement_that_is_discarded(tmp_path: Path) -> None:
    new = Replacement(tmp_path / "file")
    new.file.write(b"half")
    new.discard()
    new.discard()
    assert list(tmp_path.iterdir()) == []
    new = Replacement(tmp_path / "file")
    new.commit()
    new.discard()
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_permissions_are_the_process_masks(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "file"):
            pass
        with replacing(tmp_path / "private", mode=0o600):
            pass
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("file", "private")] == [0o640, 0o600]


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with replacing_folder(tmp_path / "folder") as inside:
        (Path(inside) / "file").write_text("")
        assert not (tmp_path / "folder").exists()
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["file"]
    with pytest.raises(OSError, match=r"not empty|exists"), replacing_folder(tmp_path / "folder") as inside:
        (Path(inside) / "other").write_text("")
    with pytest.raises(ZeroDivisionError), replacing_folder(tmp_path / "another"):
        raise ZeroDivisionError
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["file"]


# ---- leftovers ------------------------------------------------------------------------------------------------------

WRITERS = {
    "a file": """
from opwright.core.files import replacing
with replacing(path) as file:
    file.write(b"half"); file.flush()
    wait()
""",
    "a folder": """
import os
from opwright.core.files import replacing_folder
with replacing_folder(path) as inside:
    open(os.path.join(inside, "file"), "wb").close()
    wait()
""",
    "a checkpoint": """
import opwright as ow
from opwright.saved import safetensors
safetensors.write = lambda file, *more: (file.write(b"half"), file.flush(), wait())
ow.train.Checkpoint(v=ow.Variable([1.0])).write(path)
""",
    "a saved model": """
import opwright as ow
from opwright.saved import safetensors
safetensors.write = lambda file, *more: (file.write(b"half"), file.flush(), wait())
module = ow.Module(); module.v = ow.Variable([1.0])
ow.saved_model.save(module, path)
""",
    "a dataset's cache": """
import opwright as ow
for i, element in enumerate(ow.data.Dataset.range(5).cache(path)):
    if i == 2: wait()
""",
    "a model": """
from opwright.lite.format import model, writer
def chunks(*_):
    yield b"half"
    wait()
writer.chunks = chunks
model.Model().write(path)
""",
}
WAIT = """
import sys, time
path = sys.argv[1]
def wait():
    print("writing", flush=True)
    time.sleep(60)
"""


@posix
@pytest.mark.parametrize("writer", [w if w == "a file" else pytest.param(w, marks=pytest.mark.slow) for w in WRITERS])
def test_a_killed_writer_leaves_what_the_next_one_removes(writer: str, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", WAIT + WRITERS[writer], tmp_path / "target"], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"writing\n"
    (half,) = tmp_path.iterdir()
    aged(half)
    assert remove_leftovers(tmp_path) == []  # it is alive
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with replacing(tmp_path / "other"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["other"]


def leftover(folder: Path, name: str = "target") -> Path:
    path = Path(files.temporary(str(folder / name)))
    path.write_bytes(b"half")
    return aged(path)


KEPT: dict[str, Callable[[Path], Path]] = {
    "it was written just now": lambda folder: aged(leftover(folder), 5),
    "another program's name": lambda folder: aged(leftover(folder).rename(folder / "target.tmp-1234abcd")),
    "a name around it": lambda folder: aged(leftover(folder).rename(folder / "x.tmp-opwright-1234abcd.txt")),
    "no target": lambda folder: aged(leftover(folder).rename(folder / ".tmp-opwright-1234abcd")),
    "a link": lambda folder: _link(folder),
}


def _link(folder: Path) -> Path:
    target = aged(folder.parent / "target") if (folder.parent / "target").exists() else leftover(folder.parent)
    path = Path(files.temporary(str(folder / "link")))
    path.symlink_to(target)
    os.utime(path, (0, 0), follow_symlinks=False)
    return path


@pytest.mark.parametrize("case", KEPT)
def test_what_may_be_anothers_stays(case: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = KEPT[case](folder)
    assert remove_leftovers(folder) == []
    assert path.is_symlink() or path.read_bytes() == b"half"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root has files of several users")
def test_another_users_leftover_stays(tmp_path: Path) -> None:
    path = leftover(tmp_path)
    os.chown(path, 6666, -1)
    aged(path)
    assert remove_leftovers(tmp_path) == []


def test_without_locks_a_day_has_to_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_lock", lambda handle: None)
    path = leftover(tmp_path)
    assert remove_leftovers(tmp_path) == []
    aged(path, files.LOCKLESS_SECONDS + 60)
    assert remove_leftovers(tmp_path) == [str(path)]


def test_a_folder_is_looked_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(files, "remove_leftovers", lambda folder: looked.append(folder))
    for i in range(5):
        with replacing(tmp_path / f"{i}"):
            pass
    assert looked == [str(tmp_path)]


def test_a_datasets_cache_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    elements = iter(ow.data.Dataset.range(5).cache(str(tmp_path / "cache")))
    next(elements)
    del elements
    assert list(tmp_path.iterdir()) == []
    assert [int(x) for x in ow.data.Dataset.range(5).cache(str(tmp_path / "cache"))] == [0, 1, 2, 3, 4]
    assert [p.name for p in tmp_path.iterdir()] == ["cache"]
