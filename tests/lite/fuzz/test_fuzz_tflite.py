"""Mutants of .tflite files, the first of them: `make fuzz` tries 200,000. What was found has a test of its own."""

from __future__ import annotations

import os
import threading
import time

import pytest

pytest.importorskip("resource", reason="limits of memory and time are those of Unix")

pytest.importorskip("ml_dtypes")

import fuzz_engines
import fuzz_mutants
import fuzz_options
import fuzz_target
import run_fuzz

from thorough import THOROUGH, examples

CASES, GROUPS = 1000 if THOROUGH else 100, 4
ENGINE_CASES = examples(60)


@pytest.mark.parametrize("group", range(GROUPS))
def test_mutants_are_read_or_refused(group):
    fuzz_target.warm()
    result = {}
    for number in range(group, CASES, GROUPS):
        try:
            fuzz_target.outcome(fuzz_mutants.mutant(number), thorough=False)
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            result[number] = f"{type(error).__name__}: {error}"[:300]
    assert not result, "one again: python tests/lite/fuzz/run_fuzz.py --case NUMBER"


def test_mutants_of_operators_are_read_or_refused():
    """Models of one operator in one session, which runs equal models once."""
    fuzz_target.warm()
    files = fuzz_mutants.operator_seeds()
    result, outcomes = {}, []
    with fuzz_target.session() as tried:
        for number in range(examples(250)):
            try:
                outcomes.append(tried(fuzz_mutants.mutant(number, files)))
            except (Exception, fuzz_target.TookTooLong) as error:
                result[number] = f"{type(error).__name__}: {error}"[:300]
        assert tried(files[0]) == "ran"
        assert tried(files[0]) == "seen"
    assert not result, "one again: python tests/lite/fuzz/run_fuzz.py --what operators --case NUMBER"
    assert len({outcome.split(":")[0] for outcome in outcomes}) >= 4


def test_a_case_is_the_same_every_time():
    assert [fuzz_mutants.mutant(n) for n in range(40)] == [fuzz_mutants.mutant(n) for n in range(40)]
    assert len({fuzz_mutants.mutant(n) for n in range(40)}) > 30


def forever():
    while True:
        pass


def test_the_limits_are_there(monkeypatch):
    with pytest.raises(MemoryError), fuzz_target.limits(0):
        bytearray(2 * fuzz_target.ROOM)
    monkeypatch.setattr(fuzz_target, "SECONDS", 0.05)
    for action in (forever, threading.Event().wait):
        with pytest.raises(fuzz_target.TookTooLong), fuzz_target.limits(0):
            action()


def test_the_seeds_themselves_run():
    seeds = fuzz_mutants.seeds()[:: 1 if THOROUGH else 3]
    outcomes = [fuzz_target.outcome(data) for data in seeds]
    assert outcomes.count("ran") > len(outcomes) / 3
    assert not [o for o in outcomes if o.startswith(("read", "verify"))]


@pytest.mark.parametrize("group", range(4))
def test_the_engines_agree_on_mutants(group):
    numbers = range(group, ENGINE_CASES, 4)
    result = {n: finding for n in numbers if (finding := run_fuzz.try_case(n, "engines")[1]) is not None}
    assert not result, "one again: python tests/lite/fuzz/run_fuzz.py --what engines --case NUMBER"


def test_a_case_of_the_engines_is_the_same_every_time():
    first, again = ([fuzz_options.case(n) for n in range(40)] for _ in range(2))
    assert [c.data for c in first] == [c.data for c in again]
    assert {c.mode for c in first} == set(fuzz_options.MODES)
    assert {c.target for c in first} == set(fuzz_options.TARGETS)


def test_engines_that_disagree_are_a_finding(monkeypatch):
    number = next(n for n in range(200) if fuzz_engines.outcome(n) == "options ran")
    real = fuzz_engines._run

    def other(case, compiled):
        verdict, outputs, quantised = real(case, compiled)
        return (verdict, [x + 2 for x in outputs], quantised) if compiled else (verdict, outputs, quantised)

    monkeypatch.setattr(fuzz_engines, "_run", other)
    with pytest.raises(fuzz_engines.Different, match="numbers"):
        fuzz_engines.outcome(number)
    monkeypatch.setattr(fuzz_engines, "_run", lambda case, c: ("refuses", None, []) if c else real(case, c))
    with pytest.raises(fuzz_engines.Different, match="verdict"):
        fuzz_engines.outcome(number)


def dying(number, what="files", mode=None, outcome=None):
    if number == 3:
        os._exit(7)
    if number == 5:
        time.sleep(60)
    return "ran", None


def test_a_process_that_dies_or_hangs_is_a_finding_and_the_rest_is_tried(monkeypatch):
    monkeypatch.setattr(run_fuzz, "try_case", dying)
    monkeypatch.setattr(run_fuzz, "SILENT", 1.5)
    result = run_fuzz.run(0, 9, 1)
    assert result == {"case 3: process died (7)": [3], "case 5 hangs": [5]}


WINDOWS = ("DEPTHWISE_CONV_2D", "CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "TRANSPOSE_CONV")
SIZES = ("stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor", "filter_width", "filter_height")


def test_a_windows_numbers_are_never_unrolled_without_end():
    """A stride of 2**20 was as many copies of a loop's body."""
    cases = {}  # one for each operator, type and field
    for n, (row, kind, name, value) in enumerate(fuzz_options.sweep()):
        if row.name in WINDOWS and kind in ("FLOAT32", "INT8") and name in SIZES and value == 2**20:
            cases.setdefault((row.name, kind, name), n)
    assert len(cases) > 30
    result = {
        case: finding
        for case, n in list(cases.items())[:: 1 if THOROUGH else 3]  # of the types two, of the fields six
        if (finding := run_fuzz.try_case(n, "engines", "sweep")[1]) is not None
    }
    assert not result
