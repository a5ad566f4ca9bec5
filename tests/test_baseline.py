"""The record of what a redesign must not change: that it is the same twice, and that no difference passes unnoticed.

Oracles: numbers whose distance is known beforehand, and a kind of the test's own, whose processes die when told to.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from baseline import machine, outcomes, values
from baseline.__main__ import main
from baseline.comparison import Comparison, Reviewed, compared, report, summary
from baseline.kinds import KINDS
from baseline.outcomes import Entry, entry
from baseline.records import Record
from baseline.workers import ProcessEnded, Workers

TREE = Path(__file__).resolve().parents[1]
BITS = KINDS["bits"]

# ---- results ---------------------------------------------------------------------------------------------------------


def told(before, after):
    return values.difference(values.packed(before), values.packed(after))


def moved(x, at, ulps):
    result = x.copy()
    for _ in range(ulps):
        result[at] = np.nextafter(result[at], x.dtype.type(np.inf))
    return result


def test_differences_are_reported_in_units_of_the_last_place():
    x = np.float32([[1, -2], [3, -0.0]])
    text = told([x, x], [x, moved(x, (0, 1), 3)])
    assert text.splitlines() == [
        "output 1, float32[2, 2]: 1 of 4 elements differ, 3 ulp at most; "
        "first at [0, 1]: was -2 (0xc0000000), now -1.99999964 (0xbffffffd)"
    ]
    assert "0.0 for -0.0" in told([np.float64([-0.0])], [np.float64([0.0])])
    tiny = np.float64([5e-324])
    assert "2 ulp at most" in told([tiny], [-tiny])  # through zero
    assert "1 of them NaN in one or both" in told([np.float32([1, 2])], [np.float32([1, np.nan])])
    half = np.array([1, 2], ml_dtypes.bfloat16)
    assert "1 of 2 elements differ, 4 ulp" in told([half], [half + np.array([0, 0.0625], ml_dtypes.bfloat16)])
    assert "2 ulp at most" in told([np.complex64([1 + 1j])], [np.complex64([1 + 1j * moved(np.float32([1]), 0, 2)[0]])])


def test_other_differences_are_reported():
    assert "2 of 3 elements differ, by 7 at most; first at [1]: was 1, now 8" in told(
        [np.int8([0, 1, 2])], [np.int8([0, 8, 3])]
    )
    assert told([np.zeros(2, np.float32)], [np.zeros((2, 1), np.float32)]) == "was float32[2]\nnow float32[2, 1]"
    assert told([np.array([b"a"], object)], [np.array([b"b"], object)]).endswith("first at [0]: was a, now b")
    failed = values.failure(ValueError("no such axis"))
    assert values.difference(failed, values.packed([np.int32(1)])) == "was ValueError: no such axis\nnow int32[]"


def test_results_differ_by_their_bits():
    """-0.0, the payloads of NaN, dtypes and shapes are told apart; where elements lie in memory is not."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    nans = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    different = [
        [x],
        [x.T],
        [x.reshape(6)],
        [x.astype(np.float64)],
        [np.float32([0])],
        [np.float32([-0.0])],
        [nans],
        [nans[::-1]],
        [x, x],
        [],
    ]
    assert len({values.packed(r) for r in different}) == len(different)
    assert values.packed([np.asfortranarray(x)]) == values.packed([x])


def test_errors_do_not_hang_on_where_things_lie():
    first = ValueError("<f at 0x7f12345678>, /home/a/tree/src/x.py:12, line 7")
    second = ValueError("<f at 0x7fabcdef01>, /tmp/other/src/x.py:340, line 9")
    assert values.failure(first) == values.failure(second)
    assert values.failure(first) != values.failure(TypeError(str(first)))


# ---- records ---------------------------------------------------------------------------------------------------------


def of(key, *numbers, inputs="same"):
    return entry(key, values.packed([np.float32(numbers)]), inputs)


def recorded(folder, *entries):
    record = Record(folder)
    record.write("bits", entries)
    record.describe({"machine": machine.identity(), "kinds": {}})
    return record


def test_a_record_is_sorted_text_and_keeps_results(tmp_path):
    record = recorded(tmp_path, of("b/1/eager", 2), of("a/1/eager", 1))
    lines = (tmp_path / "bits.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["key"] for line in lines] == ["a/1/eager", "b/1/eager"]
    kept = record.read("bits")["a/1/eager"]
    assert record.data("bits", kept.digest) == values.packed([np.float32([1])])
    with pytest.raises(ValueError, match="two entries of bits have the key 'a'"):
        record.write("bits", [of("a", 1), of("a", 2)])


def test_results_too_large_to_keep_are_still_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(outcomes, "MOST_KEPT", 10)
    before, after = recorded(tmp_path / "a", of("a/1/x", 1)), recorded(tmp_path / "b", of("a/1/x", 2))
    assert "too large to be kept" in compared(BITS, before, after, Reviewed()).differing["a/1/x"]


def test_each_kind_of_difference_is_distinguished(tmp_path):
    before = recorded(
        tmp_path / "a", of("f/g/same", 1), of("f/g/other", 1), of("f/h/meant", 1), of("f/h/gone", 1), of("f/g/row", 1)
    )
    after = recorded(
        tmp_path / "b",
        of("f/g/same", 1),
        of("f/g/other", 1.5),
        of("f/h/meant", 3),
        of("f/i/more", 1),
        of("f/g/row", 1, inputs="others"),
    )
    reviewed = Reviewed("# a comment\n\nbits f/h/mea* now exact\nbits f/z/* never\nloops f/* another kind\n", "list")
    result = compared(BITS, before, after, reviewed)
    assert (result.equal, result.missing, result.new) == (1, ["f/h/gone"], ["f/i/more"])
    assert result.reviewed == {"f/h/meant": "now exact"}
    assert set(result.differing) == {"f/g/other", "f/g/row"}
    assert "the inputs differ: the row itself was changed" in result.differing["f/g/row"]
    assert not result.clean
    assert "unused   bits f/z/*: nothing that this reviewed line is for differs" in list(report([result], reviewed))
    short = list(summary([result], 1))
    assert short[0] == "bits: 1 equal, 0 moved, 2 differ, 1 reviewed, 1 missing, 1 new"
    assert "  ... f/g (1)" in short
    assert "  missing: f/h (1)" in short


def test_a_result_under_a_new_key_of_its_unit_has_moved(tmp_path):
    before = recorded(tmp_path / "a", of("f/g/1", 1), of("f/h/1", 2))
    after = recorded(tmp_path / "b", of("f/g/2", 1), of("f/i/1", 2))
    result = compared(BITS, before, after, Reviewed())
    assert (result.moved, result.missing) == (1, ["f/h/1"])


def test_figures_may_become_better_or_worse_by_the_tolerance():
    def figure(value, unit="s"):
        return json.dumps({"figure": value, "unit": unit, "error": None}).encode()

    same = KINDS["bench"].same
    assert same(figure(1.0), figure(1.019))
    assert same(figure(1.0), figure(0.5))
    assert not same(figure(1.0), figure(1.021))
    assert same(figure(1.0, "x"), figure(0.981, "x"))
    assert not same(figure(1.0, "x"), figure(0.979, "x"))
    assert not same(figure(1.0), figure(None))
    assert KINDS["bench"].difference(figure(2.0), figure(3.0)) == "was 2.0 s, now 3.0 s: 1.500 times"


def test_files_and_texts_that_differ_are_reported():
    assert KINDS["files"].difference(b"abcd", b"abXY") == "2 of 4 bytes differ, the first at 2: was 0x63, now 0x58"
    assert KINDS["files"].difference(b"abcd", b"abc") == "was 4 bytes, now 3"
    lines = KINDS["loops"].difference(b"a\nb\nc", b"a\nx\nc").splitlines()
    assert lines[-4:] == [" a", "-b", "+x", " c"]


def test_new_keys_are_no_difference():
    assert Comparison(BITS, new=["a/b/c"]).clean
    assert not Comparison(BITS, missing=["a/b/c"]).clean


def test_a_line_that_reviews_nothing_is_refused():
    for line in ("bits f/g", "bit f/g reason", "f/g"):
        with pytest.raises(ValueError, match=r"list:1: .* is not a kind"):
            Reviewed(line, "list")


# ---- the command line ------------------------------------------------------------------------------------------------


def test_two_records_are_compared_and_a_difference_fails(tmp_path, capsys):
    out, now = tmp_path / "out", tmp_path / "now"
    recorded(out, of("f/g/a", 1))
    arguments = ["compare", "--kinds", "bits", "--out", str(out), "--with", str(now)]
    recorded(now, of("f/g/a", 1))
    assert main(arguments) == 0
    recorded(now, of("f/g/a", 2))
    assert main(arguments) == 1
    assert "1 of 1 elements differ" in capsys.readouterr().out
    (tmp_path / "list").write_text("bits f/*/a meant", "utf-8")
    assert main([*arguments, "--reviewed", str(tmp_path / "list")]) == 0


def test_records_of_other_machines_are_refused(tmp_path, capsys):
    recorded(tmp_path, of("f/g/a", 1))
    other = Record(tmp_path / "other")
    other.write("bits", [of("f/g/a", 1)])
    other.describe({"machine": {**machine.identity(), "processor": "another"}, "kinds": {}})
    arguments = ["compare", "--kinds", "bits", "--out", str(tmp_path), "--with", str(other.folder)]
    assert main(arguments) == 2
    assert "another processor" in capsys.readouterr().err
    assert main([*arguments, "--anyway"]) == 0


def test_what_was_not_recorded_is_not_compared(tmp_path, capsys):
    assert main(["compare", "--kinds", "bits", "--out", str(tmp_path)]) == 2
    assert "no record of bits" in capsys.readouterr().err
    assert main(["record", "--kinds", "bit", "--out", str(tmp_path)]) == 2
    assert "no such kind: bit" in capsys.readouterr().err


# ---- processes -------------------------------------------------------------------------------------------------------

KIND = """
import os
from baseline.outcomes import entry

def prepare(tree, folder):
    print("a row that prints does no harm")

def units():
    return ["good", "dies", "last"]

def run(unit):
    yield entry(f"{unit}/1", unit.encode())
    if unit == "dies":
        os.kill(os.getpid(), 9)
    if unit == "bad":
        raise ValueError("the table is wrong")
"""


def test_a_sample_is_compared_with_the_same_units(tmp_path, capsys, monkeypatch):
    """A sample of one unit in two has the names of an even checksum."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "tiny_kind.py").write_text(KIND, "utf-8")
    monkeypatch.setitem(KINDS, "bits", dataclasses.replace(BITS, module="tiny_kind", depth=1))
    arguments = ["--kinds", "bits", "--out", str(tmp_path / "out"), "--tree", str(tmp_path), "--processes", "1"]
    sampled = {unit for unit in ("good", "dies", "last") if zlib.crc32(unit.encode()) % 2 == 0}
    assert 0 < len(sampled) < 3
    assert main(["record", *arguments, "--sample", "2"]) == 0
    entries = Record(tmp_path / "out").read("bits")
    assert {BITS.unit(key).split("/")[0] for key in entries} == sampled
    assert main(["compare", *arguments]) == 0
    assert f"bits: {len(entries)} equal, 0 moved" in capsys.readouterr().out
    recorded(tmp_path / "all", *(entry(f"{unit}/1", unit.encode()) for unit in ("good", "last")))
    assert main(["compare", *arguments, "--with", str(tmp_path / "all")]) == ("dies" in sampled)


def test_a_unit_that_dies_is_an_entry_and_the_others_are_computed(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "tiny_kind.py").write_text(KIND, "utf-8")
    with Workers("tiny_kind", tmp_path, tmp_path / "work", 1) as workers:
        units = workers.units()
        assert units == ["good", "dies", "last"]
        good, dies, last, bad = workers.run([*units, "bad"])
    assert [e.data for e in good] == [b"good"]
    assert [e.key for e in dies] == ["dies/1", "dies/process"]
    assert b"status -9" in dies[1].data
    assert [e.key for e in last] == ["last/1"]
    assert b"the table is wrong" in bad[1].data


def test_a_tree_that_does_not_load_is_an_error(tmp_path):
    with (
        Workers("no_such_kind", tmp_path, tmp_path / "work", 1) as workers,
        pytest.raises(ProcessEnded, match="No module named 'no_such_kind'"),
    ):
        workers.units()


# ---- the kinds -------------------------------------------------------------------------------------------------------

FEW = {
    "bits": [
        "functions/negative",
        "fixed/RELU",
        "drawn/ADD-INT8-REF",
        "catalogue/RandomUniform",
        "converter/abs-float32",
    ],
    "loops": ["host/fixed/RELU", "neoverse-n1/drawn/ADD-INT8-REF", "x86-64-v3/catalogue/Tanh"],
    "files": ["convert/test_convert_sorts"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FEW)
def test_the_same_tree_returns_the_same_record(kind, tmp_path):
    records: list[list[Entry]] = []
    for _ in range(2):
        with Workers(KINDS[kind].module, TREE, tmp_path / "work", 1) as workers:
            assert set(FEW[kind][:3]) <= set(workers.units())
            records.append([e for result in workers.run(FEW[kind]) for e in result])
    assert [(e.key, e.digest, e.of) for e in records[0]] == [(e.key, e.digest, e.of) for e in records[1]]
    assert len(records[0]) > 20
    assert not [e.key for e in records[0] if e.key.endswith("/process")]
