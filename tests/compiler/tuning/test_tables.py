"""Which rows answer a question: of whose table, for which sizes, and what is more than noise."""

import json

import pytest

from opwright.compiler.target import NAMED, Target
from opwright.compiler.tuning import choices
from opwright.compiler.tuning.choices import (
    CHOICES,
    COPIES,
    DEPTHWISE_ROWS,
    FEW_ROWS,
    WINOGRAD,
    MeasuredRow,
    decided,
    from_json,
    to_json,
)

LINUX = "x86_64-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("ns", "noise", "ways", "default", "taken"),
    [
        ({0: 100, 1: 50}, 0.01, (0, 1), 0, 1),
        ({0: 100, 1: 98}, 0.0, (0, 1), 0, 0),  # 3 % at least
        ({0: 100, 1: 80}, 0.25, (0, 1), 0, 0),  # more than noise
        ({0: 100, 1: 80}, 0.15, (0, 1), 0, 1),
        ({0: 100, 1: 50}, 0.0, (0,), 0, 0),  # a way that is not right here
        ({1: 100, 2: 50}, 0.0, (0, 1, 2), 0, 0),  # the default was not measured
        ({0: 50, 1: 100}, 0.0, (0, 1), 1, 0),
    ],
)
def test_what_saves_more_than_noise_is_taken(ns, noise, ways, default, taken):
    assert decided(MeasuredRow(ns, noise), ways, default) == taken
    row = MeasuredRow({way: float(n) for way, n in ns.items()}, noise)
    assert from_json(json.loads(json.dumps(to_json(row)))) == row


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        {"ns": {}, "noise": 0},
        {"ns": {"a": 1}, "noise": 0},
        {"ns": {"0": -1}, "noise": 0},
        {"ns": {"0": "x"}, "noise": 0},
        {"ns": {"0": 1}},
        {"ns": {"0": 1}, "noise": 9},
        {"ns": {"0": 1e999}, "noise": 0},
        {"ns": 5, "noise": 0},
        {"ns": {"0": 1}, "noise": []},
    ],
)
def test_what_is_no_row_is_refused(content):
    with pytest.raises(ValueError, match=r"no measured row|times that cannot be|could not convert|invalid literal"):
        from_json(content)


def table(name, target, cache=1 << 20, **rows):
    """A table in which way 1 takes `name`'s number of characters."""
    result = {
        c: {sizes: MeasuredRow({0: 1000.0, 1: float(len(name))}, 0.0) for sizes in places} for c, places in rows.items()
    }
    return choices.TuningTable(target, target.cpu, cache, name, result)


ZEN = Target("z", LINUX, "znver5", "", 64)
AVX2 = NAMED["x86-64-v3"]


@pytest.fixture
def some(monkeypatch):
    """Replace the shipped tables with those of three processors; return the lookup of the nearest one."""
    result = (table("zen 5", ZEN), table("avx2", AVX2), table("avx2, small cache", AVX2, cache=1 << 18))
    monkeypatch.setattr(choices, "tables", lambda: result)
    monkeypatch.setattr(choices, "cache_bytes", lambda: 1 << 18)
    choices.nearest.cache_clear()
    yield lambda target, of_bytes=False: getattr(choices.nearest(target, of_bytes), "machine", None)
    choices.nearest.cache_clear()


def test_the_nearest_table(some):
    assert some(ZEN) == some(ZEN, True) == "zen 5"
    for cpu in ("haswell", "znver3", "skylake"):
        assert some(Target("h", LINUX, cpu, "", 32)) == "avx2, small cache"
    for cpu in ("znver4", "sapphirerapids", "skylake-avx512"):
        assert some(Target("h", LINUX, cpu, "", 64)) == "zen 5"
    assert some(Target("h", LINUX, "znver4", "", 64), True) == "zen 5"
    assert some(Target("h", LINUX, "sapphirerapids", "", 64), True) is None  # it has tiles for bytes
    assert some(Target("h", LINUX, "skylake-avx512", "", 64), True) is None  # it has no products of bytes
    assert some(Target("h", LINUX, "alderlake", "", 32), True) is None
    assert some(NAMED["aarch64"]) is some(NAMED["x86-64-v2"]) is None


def test_near_sizes(monkeypatch):
    here = table(
        "t",
        ZEN,
        winograd=[(1, 56, 56, 64, 64), (1, 14, 14, 256, 256)],
        few_rows_f32=[(2, 100, 1000, 1)],
        depthwise_rows_f32=[(1, 14, 14, 0, 3, 3, 1)],
    )
    near = MeasuredRow({0: 1000.0, 1: 920.0}, 0.0)
    here.rows["winograd"][1, 28, 28, 128, 128] = near
    monkeypatch.setattr(choices, "nearest", lambda *_: here)

    def answer(choice, *sizes):
        return choices.table_answer(choice, sizes, (0, 1), 0, ZEN)

    assert answer(WINOGRAD, 1, 56, 56, 64, 64) == 1
    assert answer(WINOGRAD, 1, 48, 60, 64, 72) == 1
    assert answer(WINOGRAD, 1, 40, 56, 64, 64) == 0  # 56 / 40 is more than 1.3
    assert answer(WINOGRAD, 2, 56, 56, 64, 64) == 0
    assert answer(WINOGRAD, 1, 28, 28, 128, 128) == 1
    assert answer(WINOGRAD, 1, 28, 28, 128, 129) == 0  # 8 % of a row of other sizes are not enough
    assert answer(FEW_ROWS, 2, 110, 900, 1) == 1
    assert answer(FEW_ROWS, 3, 110, 900, 1) == 0  # rows are to be the same
    assert answer(DEPTHWISE_ROWS, 1, 14, 14, 0, 3, 3, 1) == 1
    assert answer(DEPTHWISE_ROWS, 1, 14, 14, 8, 3, 3, 1) == 0
    assert answer(COPIES, 1, 7, 7, 8, 8, 3, 3, 1) == 0


def test_tables_that_come_with_opwright():
    for result in choices.tables():
        assert result.machine
        assert result.cache > 0
        assert choices.nearest(result.target, True) is result
        for name, rows in result.rows.items():
            for sizes in rows:
                assert len(sizes) == len(CHOICES[name].sizes), (result.target.name, name, sizes)
