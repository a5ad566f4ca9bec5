"""Builds in the object cache: the same files without planning; other settings, models and damage are built again."""

import json

import numpy as np
import pytest

import opwright as ow
from opwright import aot
from opwright.aot import libraries
from opwright.core import terminal_progress
from thorough import sampled


def network(factor=2.0):
    @ow.function(input_signature=[ow.TensorSpec([None, 4], ow.float32, name="x")])
    def model(x):
        return {"y": ow.tanh(factor * x) @ np.arange(12, dtype=np.float32).reshape(4, 3)}

    return ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model).convert()


@pytest.fixture
def planned(monkeypatch, tmp_path):
    """The targets of plans, as they are made. The cache is empty."""
    targets = []
    real = libraries.plan_model

    def plan_model(content, target, *arguments):
        targets.append(target.name)
        return real(content, target, *arguments)

    monkeypatch.setattr(libraries, "plan_model", plan_model)
    with ow.flags(cache_dir=tmp_path / "cache"):
        yield targets


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "settings",
    sampled(
        [{}, {"format": "zephyr"}, {"weights": "file", "threads": True}, {"target": "wasm32-simd128"}, {"cpu": "v2,v3"}]
    ),
    ids=str,
)
def test_a_second_build_plans_nothing_and_writes_the_same(settings, planned, tmp_path):
    content = network()
    first = aot.build(content, out=tmp_path / "a", name="net", **settings)
    count = len(planned)
    assert count >= 1
    second = aot.build(content, out=tmp_path / "b", name="net", **settings)
    assert len(planned) == count
    assert second._replace(folder=first.folder) == first
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_each_setting_names_a_build_of_its_own(planned, tmp_path):
    content = network()
    variants = [
        {},
        {"name": "other"},
        {"bounds": {"batch": (1, 2)}},
        {"bounds": {"batch": (1, 3)}},
        {"format": "object"},
        {"weights": "file"},
        {"threads": True},
        {"target": "x86-64-v2"},
    ]
    for number, settings in enumerate(variants):
        aot.build(content, out=tmp_path / str(number), **settings)
        assert len(planned) == number + 1, settings
    aot.build(network(3.0), out=tmp_path / "changed")
    assert len(planned) == len(variants) + 1
    with ow.flags(cache_dir=tmp_path / "empty"):
        aot.build(content, out=tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "0")


def test_damage_and_reports_are_built_again(planned, tmp_path):
    content = network()
    aot.build(content, out=tmp_path / "a", name="net")
    for file in (tmp_path / "cache").rglob("*.kernel"):
        damaged = bytearray(file.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        file.write_bytes(damaged)
    aot.build(content, out=tmp_path / "b", name="net")
    assert len(planned) == 2
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert aot.build(content, out=tmp_path / "c", name="net", report=True).report is not None
    assert len(planned) == 3


@ow.operator
class BuildCacheScale:
    x = ow.Input(dtypes=[ow.float32])
    y = ow.Output(like="x")

    def compute(op, x):
        return x * np.float32(3.0)

    @ow.kernel
    def kernel(x):
        return x * 3.0


def test_custom_operators_are_compiled_each_time(planned, tmp_path):
    """The code of a custom operator may change without the model."""

    @ow.function(input_signature=[ow.TensorSpec([2], ow.float32, name="x")])
    def model(x):
        return BuildCacheScale(x)

    for _ in range(2):
        aot.build(model, out=tmp_path, name="net", custom_ops=[BuildCacheScale])
    assert len(planned) == 2
    (y,) = aot.load(tmp_path)(np.ones(2, np.float32)).values()
    assert y.tolist() == [3.0, 3.0]


def test_progress_of_a_build_ends_with_it(planned, monkeypatch, tmp_path):
    shown = []

    class Bar:
        def add_task(self, text, total):
            assert total == 100

        def start(self):
            shown.append(("start", 0))

        def update(self, task, completed, description):
            shown.append((description, completed))

        def stop(self):
            shown.append(("stop", 100))

    clock = iter(np.arange(0.0, 1000.0, 0.6))
    monkeypatch.setattr(terminal_progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(terminal_progress.TerminalProgress, "_created_bar", lambda self: Bar())
    monkeypatch.setattr(terminal_progress.sys.stderr, "isatty", lambda: True, raising=False)
    aot.build(network(), out=tmp_path / "a", name="net")
    assert [text for text, _ in shown][:2] == ["start", "building net: machine code"]
    assert shown[-1] == ("stop", 100)
    done = [count for _, count in shown]
    assert done == sorted(done)
    assert json.loads((tmp_path / "a" / "net.json").read_text())["name"] == "net"
