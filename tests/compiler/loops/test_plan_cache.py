"""Cached plans give what the plans that were kept give, in later processes, without planning; damage is found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from new_process import forget_code

from opwright.compiler import cache, plan_cache, plan_serialization
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import Expr, apply, arg
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.indexing_ops import Gather
from opwright.compiler.loops.ops import Contract, Map
from opwright.compiler.loops.planner import plan_of
from opwright.compiler.loops.plans import LoopPlan
from opwright.compiler.native.executor import PlanImage, StepFailed
from opwright.compiler.native.image import runs_images
from opwright.core import flags
from opwright.core.dtypes import float32, int32
from opwright.core.private_files import PrivateFolder

pytestmark = pytest.mark.skipif(not runs_images(), reason="LLVM's own loader is used on this system")

rng = np.random.default_rng(3)
WEIGHTS, BIAS, SCALE, MORE = (
    rng.normal(size=n).astype(np.float32) for n in ((24, 1, 1, 16), (24,), (24,), (1, 5, 7, 24))
)


def F(i: int) -> Expr:
    return arg(i, float32)


SUM = apply("maximum", apply("add", F(0), F(1)), F(2))


def model() -> LoopPlan:
    """max(x @ weights + bias, scale) * scale + more: packed weights, constants of the file and others, the arena."""
    x, y = Buffer("t0", float32, (1, 5, 7, 16)), Buffer("h", float32, (1, 5, 7, 24))
    z = Buffer("t4", float32, (1, 5, 7, 24))
    b, s = Buffer("t2", float32, (24,), BIAS), Buffer("computed", float32, (24,), SCALE)
    more = Buffer("t3", float32, MORE.shape, MORE)
    w = Buffer("t1", float32, WEIGHTS.shape, WEIGHTS)
    forms = (
        Contract(y, x, w, (b, s), SUM, Window((1, 1)), origin=("CONV_2D 0",)),
        Map(z, (y, s, more), apply("fma", *map(F, range(3))), origin=("MUL 1", "ADD 2")),
    )
    plan = plan_of(LoopGraph("model", (x,), (z,), forms))
    plan.pack()
    return plan


def meaning(x: np.ndarray) -> np.ndarray:
    sums = x.astype(np.float64) @ WEIGHTS.reshape(24, 16).T.astype(np.float64)
    return np.maximum(sums + BIAS, SCALE) * SCALE + MORE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of its own, and a process that has loaded nothing."""
    forget_code(monkeypatch)
    with flags.override(cache_dir=tmp_path):
        yield tmp_path


def keep(key: str = "key", **more: Any) -> LoopPlan:
    plan = model()
    tensors = {1: WEIGHTS, 2: BIAS, 3: MORE, 4: np.zeros(0, np.float32)}
    plan_serialization.save(key, [plan], {"nodes": [0, 1]}, tensors, **more)
    return plan


def found(key: str = "key") -> PlanImage:
    result = plan_cache.find(key)
    assert result is not None
    return result.plans[0]


def run(plan: PlanImage, x: np.ndarray, threads: int = 1) -> np.ndarray:
    running = plan.bind(threads, {3: MORE.ctypes.data}.__getitem__)
    out = np.zeros((1, 5, 7, 24), np.float32)
    running.connect({0: x.ctypes.data, 4: out.ctypes.data})
    running.run()
    return out


@pytest.mark.parametrize("threads", [1, 2])
def test_a_cached_plan_gives_what_the_plan_gives(folder: Path, threads: int) -> None:
    plan = keep()
    x = rng.normal(size=(1, 5, 7, 16)).astype(np.float32)
    out = np.zeros((1, 5, 7, 24), np.float32)
    running = plan.bind(threads)
    running.connect(dict(zip((*plan.graph.inputs, *plan.graph.outputs), (x.ctypes.data, out.ctypes.data))))
    running.run()
    np.testing.assert_allclose(out, meaning(x), rtol=1e-5, atol=1e-5)
    same = found()
    assert (list(same.outside), list(same.inside), same.arena) == ([0, 4], [3], plan.arena)
    np.testing.assert_array_equal(run(same, x, threads), out)


def test_inputs_may_move(folder: Path) -> None:
    keep()
    running = found().bind(1, {3: MORE.ctypes.data}.__getitem__)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(1, 5, 7, 16)).astype(np.float32)
        out = np.zeros((1, 5, 7, 24), np.float32)
        running.connect({0: x.ctypes.data, 4: out.ctypes.data})
        running.run()
        np.testing.assert_allclose(out, meaning(x), rtol=1e-5, atol=1e-5)


def test_two_run_concurrently(folder: Path) -> None:
    keep()
    first, second = (rng.normal(size=(1, 5, 7, 16)).astype(np.float32) for _ in range(2))
    plan = found()
    a, b = run(plan, first), run(plan, second)
    np.testing.assert_allclose(a, meaning(first), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(b, meaning(second), rtol=1e-5, atol=1e-5)


def test_notes_come_back(folder: Path) -> None:
    keep()
    result = plan_cache.find("key")
    assert result is not None
    assert result.note == {"nodes": [0, 1]}
    steps = result.plans[0].steps
    assert [s.op.origin if s.op else None for s in steps] == [("CONV_2D 0",), ("MUL 1", "ADD 2")]
    running = result.plans[0].bind(1, {3: MORE.ctypes.data}.__getitem__)
    x, out = np.zeros((1, 5, 7, 16), np.float32), np.zeros((1, 5, 7, 24), np.float32)
    running.connect({0: x.ctypes.data, 4: out.ctypes.data})
    times = running.profile()
    assert [step.name for step, _ in times] == [step.name for step in steps]
    assert all(0 <= seconds < 1 for _, seconds in times)


def test_keys_are_apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep()
    assert plan_cache.find("another") is None
    monkeypatch.setattr(plan_cache, "_own_sources", lambda: "another version")
    assert plan_cache.find("key") is None


def test_a_plan_without_steps_is_kept(folder: Path) -> None:
    x = Buffer("t0", float32, (3,))
    plan = plan_of(LoopGraph("nothing", (x,), (), ()))
    plan.pack()
    plan_serialization.save("nothing", [plan, plan], None, {})
    result = plan_cache.find("nothing")
    assert result is not None
    for same in result.plans:
        same.bind(1, int).run()


def test_a_guard_names_its_operator(folder: Path) -> None:
    table, at, y = Buffer("t0", float32, (4, 2)), Buffer("t1", int32, (3,)), Buffer("t2", float32, (3, 2))
    plan = plan_of(LoopGraph("look", (table, at), (y,), (Gather(y, table, at, 0, origin=("GATHER 7",)),)))
    plan.pack()
    plan_serialization.save("look", [plan], None, {})
    running = found("look").bind(1, int)
    arrays = np.zeros((4, 2), np.float32), np.int32([0, 9, 1]), np.zeros((3, 2), np.float32)
    running.connect({i: a.ctypes.data for i, a in enumerate(arrays)})
    with pytest.raises(StepFailed, match="GATHER 7"):
        running.run()
    with pytest.raises(StepFailed, match="GATHER 7"):
        running.profile()


def test_too_many_constants_are_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_serialization, "MOST_CONSTANTS", 1000)
    keep()
    assert plan_cache.find("key") is None


# ---- damage ----------------------------------------------------------------------------------------------------------


def file_of(folder: Path, key: str = "key") -> Path:
    return folder / "kernels" / f"{plan_cache.digest_of(key)}{cache.SUFFIX}"


def test_every_byte_counts(folder: Path) -> None:
    """A bit that is turned anywhere but in the gap before the body is found, and the file is gone."""
    x = rng.normal(size=(1, 5, 7, 16)).astype(np.float32)
    keep()
    expected = run(found(), x)
    path = file_of(folder)
    whole = path.read_bytes()
    head = 72 + int.from_bytes(whole[64:72], "little")  # two keyed digests, the length
    body = -(-head // cache.PAGE) * cache.PAGE
    for at in (*range(96), *rng.integers(96, head, 100), *rng.integers(body, len(whole), 100), len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        assert plan_cache.find("key") is None, at
        assert not path.exists()
    path.write_bytes(whole)
    np.testing.assert_array_equal(run(found(), x), expected)


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda b: b"",
    "10 bytes": lambda b: b[:10],
    "40 bytes": lambda b: b[:40],
    "1 less": lambda b: b[:-1],
    "64 less": lambda b: b[:-64],
    "64 more": lambda b: b + bytes(64),
    "ends exchanged": lambda b: b[:-128] + b[-64:] + b[-128:-64],
}


@pytest.mark.parametrize("seen", [False, True])
def test_a_file_of_another_length_is_found(folder: Path, seen: bool) -> None:
    keep()
    path = file_of(folder)
    whole, mark = path.read_bytes(), path.with_suffix(cache.SEEN)
    for name, change in CHANGES.items():
        path.write_bytes(whole)
        mark.unlink(missing_ok=True)
        if seen:
            found()
            assert mark.exists(), name
        path.write_bytes(change(whole))
        assert plan_cache.find("key") is None, name


def test_all_is_looked_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep()
    looked: list[int] = []
    whole = PrivateFolder.mac
    monkeypatch.setattr(
        PrivateFolder,
        "mac",
        lambda self, name, *more, **options: (
            looked.append(1) if name.endswith("body") else None,
            whole(self, name, *more, **options),
        )[1],
    )
    for _ in range(3):
        found()
    assert len(looked) == 1
    file_of(folder).with_suffix(cache.SEEN).write_bytes(b"something else")
    for _ in range(3):
        found()
    assert len(looked) == 2
    os.utime(file_of(folder))
    found()
    assert len(looked) == 3


def test_what_is_used_stays(tmp_path: Path) -> None:
    objects = cache.Objects(PrivateFolder(tmp_path), most_bytes=50_000)
    for age, name in enumerate("abcd"):
        objects.keep_mapped(name, b"head", bytes(8192))
        found = objects.find_mapped(name)
        assert found is not None
        assert objects.verify(name, found)
        for path in tmp_path.glob(f"{name}.*"):
            os.utime(path, (1000 + age, 1000 + age))
    state = objects.find_mapped("a")
    assert state is not None
    assert not state.checked  # its times were changed
    assert objects.verify("a", state)  # used just now
    objects.keep_mapped("e", b"head", bytes(8192))
    assert {p.stem for p in tmp_path.iterdir() if p.suffix} == {"a", "d", "e"}
    assert objects.find_mapped("b") is None


def test_files_and_bytes_have_keys(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"one")
    first = plan_cache.key_of_file(path)
    assert first == plan_cache.key_of_file(str(path)) is not None
    path.write_bytes(b"two")
    assert plan_cache.key_of_file(path) != first
    assert plan_cache.key_of_file(tmp_path / "nothing") is None
    key = plan_cache.key_of_bytes(b"one")
    assert key == plan_cache.key_of_bytes(bytearray(b"one")) != plan_cache.key_of_bytes(b"two")
    assert plan_cache.key_of_bytes(bytes((64 << 20) + 1)) is None


LATER = """
import sys
from opwright.compiler import plan_cache, plan_serialization
result = plan_cache.find("key")
print(len(result.plans), "llvmlite" in sys.modules, "opwright.compiler.loops.planner" in sys.modules)
"""


def test_a_later_process_plans_nothing(folder: Path) -> None:
    keep()
    for _ in range(2):  # the first may have to compile what runs plans, for this new folder
        done = subprocess.run(
            [sys.executable, "-c", LATER],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"OPWRIGHT_CACHE_DIR": str(folder)},
        )
    assert done.stdout == "1 False False\n"


EDITED = (
    "ops/a.py",
    "graph/passes/a.py",
    "lite/runtime/a.py",
    "lite/format/a.py",
    "lite/ops/a.py",
    "lite/compiled/a.py",
    "lite/importer.py",
    "lite/registration.py",
    "lite/custom_options.py",
)


def test_plans_do_not_survive_an_edit_of_sources_they_depend_on(tmp_path: Path) -> None:
    for name in (*EDITED, "lite/convert/a.py", "tools/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    before = plan_cache.source_digest(str(tmp_path))
    for name in EDITED:
        (tmp_path / name).write_text("edited")
        assert plan_cache.source_digest(str(tmp_path)) != before, name
        before = plan_cache.source_digest(str(tmp_path))
    for name in ("lite/convert/a.py", "tools/a.py"):
        (tmp_path / name).write_text("edited")
        assert plan_cache.source_digest(str(tmp_path)) == before, name
