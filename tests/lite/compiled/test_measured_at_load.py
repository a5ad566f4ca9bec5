"""OPWRIGHT_TUNE=1: what a load measures is used, by it and by later loads without the switch, and nothing else is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_kit import answer, engine, plain

import opwright as ow
from opwright import lite
from opwright.compiler.cache import SUFFIX
from opwright.compiler.tuning import autotuner, choices
from opwright.compiler.tuning.choices import MeasuredRow
from opwright.core import flags

RNG = np.random.default_rng(5)
ROWS, DEPTH, FEATURES = 3, 40, 56
SIZES = (ROWS, DEPTH, FEATURES, 1)
X = RNG.standard_normal((ROWS, DEPTH)).astype(np.float32)


def model(name: str = "x") -> bytes:
    """Three rows by a constant: whose filter is packed by default, and may be read as it is."""
    weights = ow.constant(RNG.standard_normal((DEPTH, FEATURES)).astype(np.float32))

    @ow.function(input_signature=[ow.TensorSpec((ROWS, DEPTH), ow.float32, name=name)])
    def product(x: Any) -> Any:
        return ow.matmul(x, weights)

    return bytes(lite.TFLiteConverter.from_concrete_functions([product.get_concrete_function()]).convert())


MODEL, ANOTHER = model(), model("another")
PACKED, AS_IT_IS = ["gemm"], ["gemv"]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path) -> Iterator[None]:
    with engine(), flags.override(cache_dir=str(tmp_path / "cache")):
        yield


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The choices that are measured, of which the ways that are no defaults always win."""
    result: list[str] = []

    def row(question: Any, seconds: float) -> MeasuredRow:
        result.append(question.choice.name)
        return MeasuredRow({way: 100.0 + 900.0 * (way == question.default) for way in question.ways}, 0.01)

    monkeypatch.setattr(autotuner, "measured", row)
    return result


def kernels(source: bytes | str) -> list[str]:
    """The kernels that a newly opened model runs; its answer is looked at, too."""
    result = lite.Interpreter(source) if isinstance(source, str) else lite.Interpreter(model_content=source)
    y = answer(result, X)
    content = Path(source).read_bytes() if isinstance(source, str) else source
    np.testing.assert_allclose(y, plain(content, X), rtol=1e-4, atol=1e-5)
    if result._fast_path is not None:
        plan = result._fast_path._plan
    else:
        (node,) = result._subgraphs[0].execution_plan
        plan = node.registration.plan
    names = [step.name if hasattr(step, "name") else step.code.name for step in plan.steps]
    return [name.rpartition(".")[2] for name in names]


def test_a_kept_answer_is_used_by_later_loads(measured: list[str]) -> None:
    assert kernels(MODEL) == PACKED
    assert measured == []
    with flags.override(tune=True):
        assert kernels(MODEL) == AS_IT_IS
        assert measured == ["few_rows_f32"]
        assert kernels(MODEL) == AS_IT_IS
    choices._measured.clear()  # as in another process
    assert kernels(MODEL) == AS_IT_IS
    assert kernels(ANOTHER) == AS_IT_IS  # the sizes are the same
    with flags.override(tune=True):
        kernels(ANOTHER)
    assert measured == ["few_rows_f32"]


def test_the_short_way_to_a_file(measured: list[str], tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(MODEL)
    for _ in range(2):
        assert kernels(str(path)) == PACKED
    assert lite.Interpreter(str(path))._fast_path is not None
    with flags.override(tune=True):
        assert lite.Interpreter(str(path))._fast_path is None
        assert kernels(str(path)) == AS_IT_IS
        assert lite.Interpreter(str(path))._fast_path is not None
    assert lite.Interpreter(str(path))._fast_path is not None
    assert kernels(str(path)) == AS_IT_IS
    assert measured == ["few_rows_f32"]


def test_deterministic_is_the_same_before_and_after(measured: list[str]) -> None:
    with flags.override(deterministic=True):
        assert kernels(MODEL) == PACKED
    with flags.override(tune=True):
        assert kernels(MODEL) == AS_IT_IS
    with flags.override(tune=True, deterministic=True):
        assert kernels(MODEL) == PACKED
        assert kernels(ANOTHER) == PACKED
    assert measured == ["few_rows_f32"]


def test_damaged_rows_are_ignored(measured: list[str], tmp_path: Path) -> None:
    choices.keep_measured("few_rows_f32", SIZES, MeasuredRow({0: 9.0, 1: 1.0}, 0.0))
    choices._measured.clear()
    (file,) = (tmp_path / "cache" / "kernels").glob(f"{choices._digest('few_rows_f32', SIZES)}{SUFFIX}")
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:40] + b"7" + whole[41:], whole + b" "):
        file.write_bytes(damaged)
        assert choices.find_measured("few_rows_f32", SIZES) is None
        file.write_bytes(whole)
        assert choices.find_measured("few_rows_f32", SIZES) == MeasuredRow({0: 9.0, 1: 1.0}, 0.0)
    file.write_bytes(whole[::-1])
    assert kernels(MODEL) == PACKED


def test_nothing_is_begun_after_the_limit(measured: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with flags.override(tune=True):
        with monkeypatch.context() as patch:
            patch.setattr(autotuner, "MAX_S", -1.0)
            assert kernels(MODEL) == PACKED
        assert measured == []
        assert kernels(MODEL) == AS_IT_IS  # the next load goes on


def test_without_a_cache_the_process_remembers(measured: list[str]) -> None:
    with flags.override(tune=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(flags, "cache_dir", None)
        with pytest.warns(RuntimeWarning, match="nothing is cached"):
            assert kernels(ANOTHER) == AS_IT_IS


def test_writers_at_once_leave_a_whole_row() -> None:
    rows = [MeasuredRow({0: float(n), 1: float(n)}, 0.0) for n in range(1, 5)]
    seen: list[Any] = []

    def work(row: MeasuredRow) -> None:
        for _ in range(20):
            choices.keep_measured("few_rows_f32", SIZES, row)
            choices._measured.clear()
            seen.append(choices.find_measured("few_rows_f32", SIZES))

    threads = [threading.Thread(target=work, args=(row,)) for row in rows]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(seen) == 80
    assert all(row in rows for row in seen)


def test_measured_in_earnest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock decides, whatever it says the answer is right; all ways are in the row."""
    monkeypatch.setattr(autotuner, "EACH_S", 0.0)
    with flags.override(tune=True):
        assert kernels(MODEL) in (PACKED, AS_IT_IS)
    row = choices.find_measured("few_rows_f32", SIZES)
    assert row is not None
    assert set(row.ns) == {0, 1}
    assert all(10.0 < ns < 1e9 for ns in row.ns.values())
