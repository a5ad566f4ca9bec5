"""Test that caches writable by other users are never read: attacks on folders, files, names and bytes."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import opwright
from opwright.core import flags, private_files
from opwright.core.private_files import MAC_BYTES, SECRET, PrivateFolder, cache_folder, fault_of_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and permissions are POSIX's")
needs_root = pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root acts as several users")

USER, OTHER = 54321, 6666
CONTENT = bytes(range(256)) * 3


@contextlib.contextmanager
def acting_as(user: int) -> Iterator[None]:
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can reach (pytest's own are for one user alone)."""
    folder = Path(tempfile.mkdtemp(prefix="opwright-trust-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _warned_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_files, "_warned", set())


# ---- folders --------------------------------------------------------------------------------------------------------


FOLDERS = {  # permissions of: the folder's parent, the folder; which of the two is at fault
    "the user's alone": (0o755, 0o700, None),
    "others may read it": (0o755, 0o755, None),
    "its group writes": (0o755, 0o770, "cache"),
    "all write": (0o755, 0o777, "cache"),
    "all write, sticky": (0o755, 0o1777, "cache"),
    "the parent's group writes": (0o775, 0o700, "above"),
    "all write to the parent": (0o777, 0o700, "above"),
    "all write to the parent, sticky": (0o1777, 0o700, None),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_permissions_of_folders(case: str, tmp_path: Path) -> None:
    above, own, wrong = FOLDERS[case]
    cache = tmp_path / "above" / "cache"
    cache.mkdir(parents=True)
    cache.chmod(own)
    cache.parent.chmod(above)
    fault = fault_of_folder(cache)
    assert (None if fault is None else Path(fault.path).name) == wrong
    files = PrivateFolder(cache)
    if wrong is None:
        assert files.write("name", [CONTENT])
        assert files.read("name", 1000) == CONTENT
    else:
        with pytest.warns(
            RuntimeWarning,
            match=rf"{cache} is not used: .*{wrong} can be written to by other users.*"
            rf"chmod go-w .*{wrong}.*OPWRIGHT_CACHE_DIR",
        ):
            assert not files.write("name", [CONTENT])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert files.read("name", 1000) is None
            assert not PrivateFolder(cache).write("name", [CONTENT])
        assert list(cache.iterdir()) == []


OWNERS = {  # owners of: the folder's parent, the folder; which is at fault
    "the user's, root's parent": (0, USER, None),
    "the user's, the user's parent": (USER, USER, None),
    "another's": (0, OTHER, "cache"),
    "root's": (0, 0, "cache"),
    "the user's, another's parent": (OTHER, USER, "above"),
}


@needs_root
@pytest.mark.parametrize("case", OWNERS)
def test_owners_of_folders(case: str, place: Path) -> None:
    above, own, wrong = OWNERS[case]
    cache = place / "above" / "cache"
    cache.mkdir(parents=True)
    os.chown(cache, own, -1)
    os.chown(cache.parent, above, -1)
    with acting_as(USER):
        fault = fault_of_folder(cache)
    assert (None if fault is None else Path(fault.path).name) == wrong
    if fault is not None:
        assert f"this process is user {USER}'s" in fault.found


@needs_root
def test_a_user_who_changes_is_judged_again(place: Path) -> None:
    cache = place / "cache"
    cache.mkdir()
    files = PrivateFolder(cache)
    assert files.write("name", [CONTENT])
    with acting_as(USER):
        with pytest.warns(RuntimeWarning, match="belongs to user 0"):
            assert files.read("name", 1000) is None
        assert not files.write("name", [CONTENT])
    assert files.read("name", 1000) == CONTENT


@needs_root
def test_a_folder_that_somebody_made_first_in_tmp(place: Path) -> None:
    """As /tmp: a sticky folder of root's, in which another user was quicker."""
    place.chmod(0o1777)
    with acting_as(OTHER):
        PrivateFolder(place / "cache").write("name", [b"foreign"])
        (place / "cache").chmod(0o777)
    with acting_as(USER):
        with pytest.warns(RuntimeWarning, match=f"belongs to user {OTHER}"):
            assert not PrivateFolder(place / "cache").write("name", [CONTENT])
        assert PrivateFolder(place / "cache").read("name", 1000) is None
        assert PrivateFolder(place / "own").write("name", [CONTENT])


def test_missing_folders_are_made_for_the_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files = PrivateFolder(tmp_path / "a" / "b" / "c")
        assert files.read("name", 1000) is None
        assert not (tmp_path / "a").exists()
        assert files.write("name", [CONTENT])
    finally:
        os.umask(before)
    for folder in ("a", "a/b", "a/b/c"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700
    assert {p.name: p.stat().st_mode & 0o777 for p in (tmp_path / "a/b/c").iterdir()} == {"name": 0o600, SECRET: 0o600}


def test_links_to_folders_are_judged_by_where_they_lead(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "cache").mkdir(0o700)
    (tmp_path / "good").mkdir(0o700)
    for name, target, trusted in (("one", "open/cache", False), ("two", "good", True)):
        (tmp_path / name).symlink_to(tmp_path / target)
        assert (fault_of_folder(tmp_path / name) is None) == trusted


def test_a_user_without_a_home_has_no_cache_unless_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as it is for such a user
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert flags._user_cache() is None
    with pytest.warns(RuntimeWarning, match="no home directory.*OPWRIGHT_CACHE_DIR"):
        assert not cache_folder(None, "kernels").write("name", [CONTENT])
    assert cache_folder(None).read("name", 1000) is None
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert flags._user_cache() == str(tmp_path / "opwright")


# ---- files ----------------------------------------------------------------------------------------------------------


def _replace_by_link(file: Path) -> None:
    target = file.with_name("elsewhere")
    file.rename(target)
    file.symlink_to(target)


def _replace_by_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _replace_by_device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def _signed_by(secret: bytes, name: str = "name") -> Callable[[Path], None]:
    def replace(file: Path) -> None:
        with tempfile.TemporaryDirectory() as other:
            (Path(other) / SECRET).write_bytes(secret)
            (Path(other) / SECRET).chmod(0o600)
            PrivateFolder(Path(other)).write(name, [CONTENT])
            file.write_bytes((Path(other) / name).read_bytes())

    return replace


FILES: dict[str, Callable[[Path], object]] = {
    "empty": lambda f: f.write_bytes(b""),
    "cut in the digest": lambda f: f.write_bytes(f.read_bytes()[:20]),
    "only the digest": lambda f: f.write_bytes(f.read_bytes()[:MAC_BYTES]),
    "cut": lambda f: f.write_bytes(f.read_bytes()[:-1]),
    "longer": lambda f: f.write_bytes(f.read_bytes() + b"\0"),
    "a bit of the digest": lambda f: f.write_bytes(bytes([f.read_bytes()[0] ^ 1]) + f.read_bytes()[1:]),
    "a bit of the content": lambda f: f.write_bytes(f.read_bytes()[:-1] + bytes([f.read_bytes()[-1] ^ 128])),
    "without a digest": lambda f: f.write_bytes(CONTENT),
    "another's file": lambda f: f.write_bytes(f.with_name("other").read_bytes()),
    "another secret": _signed_by(bytes(32)),
    "a link": _replace_by_link,
    "a pipe": _replace_by_pipe,
    "a link to a device": _replace_by_device,
    "others may write": lambda f: f.chmod(0o666),
    "the group may write": lambda f: f.chmod(0o660),
    "too large": lambda f: os.truncate(f, 1 << 40),
    "gone": lambda f: f.unlink(),
    "a folder": lambda f: (f.unlink(), f.mkdir()),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_were_not_written_here(case: str, tmp_path: Path) -> None:
    files = PrivateFolder(tmp_path)
    files.write("name", [CONTENT[:100], CONTENT[100:]])
    files.write("other", [b"other"])
    assert files.read("name", len(CONTENT)) == CONTENT
    FILES[case](tmp_path / "name")
    assert files.read("name", len(CONTENT)) is None
    if case != "a folder":
        assert not os.path.lexists(tmp_path / "name")
        files.write("name", [CONTENT])
        assert PrivateFolder(tmp_path).read("name", len(CONTENT)) == CONTENT


@needs_root
def test_another_users_file(place: Path) -> None:
    os.chown(place, USER, -1)
    with acting_as(USER):
        files = PrivateFolder(place)
        files.write("name", [CONTENT])
    os.chown(place / "name", OTHER, -1)
    (place / "name").chmod(0o644)
    with acting_as(USER):
        assert files.read("name", 1000) is None


SECRETS: dict[str, Callable[[Path], object]] = {
    "others may read it": lambda f: f.chmod(0o644),
    "short": lambda f: f.write_bytes(b"12345"),
    "empty": lambda f: f.write_bytes(b""),
    "a link": _replace_by_link,
    "a device": _replace_by_device,
    "gone": lambda f: f.unlink(),
}


@pytest.mark.parametrize("case", SECRETS)
def test_a_secret_that_is_none_is_replaced(case: str, tmp_path: Path) -> None:
    PrivateFolder(tmp_path).write("name", [CONTENT])
    before = (tmp_path / SECRET).read_bytes()
    SECRETS[case](tmp_path / SECRET)
    later = PrivateFolder(tmp_path)
    assert later.read("name", 1000) is None
    assert later.write("name", [CONTENT])
    assert PrivateFolder(tmp_path).read("name", 1000) == CONTENT
    result = (tmp_path / SECRET).read_bytes()
    assert len(result) == 32
    assert result != before
    assert (tmp_path / SECRET).stat().st_mode & 0o777 == 0o600


def test_a_cache_that_is_removed_meanwhile_is_made_again(tmp_path: Path) -> None:
    files = PrivateFolder(tmp_path / "cache" / "kernels", tmp_path / "cache")
    files.write("name", [CONTENT])
    shutil.rmtree(tmp_path / "cache")
    assert files.read("name", 1000) is None
    assert files.write("name", [CONTENT])
    assert PrivateFolder(tmp_path / "cache" / "kernels", tmp_path / "cache").read("name", 1000) == CONTENT


WRITE = """
import pathlib, sys
from opwright.core.private_files import PrivateFolder
folder = PrivateFolder(pathlib.Path(sys.argv[1]))
for i in range(20):
    folder.write(f"{sys.argv[2]} {i}", [b"content"])
"""


def test_a_secret_that_another_process_has_just_created_stays(tmp_path: Path) -> None:
    path = str(tmp_path / SECRET)
    key = private_files._make_secret(path)  # between the look for one and the creation
    assert private_files._make_secret(path) == key == Path(path).read_bytes()
    Path(path).write_bytes(b"damaged")
    assert private_files._make_secret(path) not in (None, key)


def test_processes_agree_on_one_secret(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, tmp_path, str(n)]) for n in range(3)]
    assert [writer.wait(60) for writer in writers] == [0] * 3
    reader = PrivateFolder(tmp_path)
    assert [reader.read(f"{n} {i}", 100) for n in range(3) for i in range(20)] == [b"content"] * 60
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(SECRET)) == [SECRET]


# ---- what runs ------------------------------------------------------------------------------------------------------

KERNEL = """
import numpy as np
import opwright as ow
from opwright import language as kl

@ow.kernel
def scale(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n"), factor: kl.f32):
    for i in kl.parallel(x.shape[0]):
        y[i] = x[i] * factor

x, y = np.arange(5, dtype=np.float32), np.empty(5, np.float32)
scale(x, y, 2.0)
print(y.tolist())
"""
ANSWER = "[0.0, 2.0, 4.0, 6.0, 8.0]\n"


def test_a_program_runs_without_a_cache_that_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(KERNEL)
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    done = subprocess.run(
        [sys.executable, program],
        env=os.environ | {"OPWRIGHT_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ANSWER
    assert done.stderr.count("RuntimeWarning") == 1
    assert "is not used" in done.stderr
    assert list(cache.iterdir()) == []


@needs_root
@pytest.mark.parametrize("named", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_code_of_another_user_runs(named: bool, place: Path) -> None:
    """A user without a home, for whom another one made /tmp/opwright-USER, or a cache that is named, with kernels."""
    package, libraries = Path(opwright.__file__).parents[1], Path(np.__file__).parents[1]
    environ = {"PATH": os.defpath, "PYTHONPATH": f"{package}{os.pathsep}{libraries}"}
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = place / "program.py"
    program.write_text(KERNEL)

    def run(python: str, user: int, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-B", *map(str, arguments)],
            env=environ | more,
            capture_output=True,
            text=True,
            user=user,
            group=user,
            extra_groups=[],
            cwd="/",
        )

    def works(python: str) -> bool:
        with contextlib.suppress(OSError):
            return run(python, USER, "-c", "import numpy, llvmlite").returncode == 0
        return False

    pythons = [p for p in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}") if works(p)]
    if not pythons:
        pytest.skip("there is no Python of this version that other users can run")
    cache = place / "named" if named else Path(tempfile.gettempdir()) / f"opwright-{USER}"
    if cache.exists():
        shutil.rmtree(cache)
    try:
        cache.mkdir()
        os.chown(cache, OTHER, OTHER)
        planted = run(pythons[0], OTHER, program, OPWRIGHT_CACHE_DIR=str(cache))
        assert planted.stdout == ANSWER, planted
        assert list((cache / "kernels").glob("*.kernel"))
        for path in (cache, *cache.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
        content = {p: p.read_bytes() for p in cache.rglob("*") if p.is_file()}
        victim = run(pythons[0], USER, program, **({"OPWRIGHT_CACHE_DIR": str(cache)} if named else {}))
        assert victim.stdout == ANSWER, victim
        assert ("is not used" if named else "no home directory") in victim.stderr
        assert {p: p.read_bytes() for p in cache.rglob("*") if p.is_file()} == content
    finally:
        shutil.rmtree(cache)
