"""Mutants of .tflite files, the first 5,000: `make fuzz` tries 200,000. What was found has a test of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("resource", reason="limits of memory and time are those of Unix")

import fuzz_mutants
import fuzz_target

CASES, GROUPS = 3000, 10


@pytest.mark.parametrize("group", range(GROUPS))
def test_mutants_are_read_or_refused(group):
    fuzz_target.warm()
    found = {}
    for number in range(group, CASES, GROUPS):
        try:
            fuzz_target.outcome(fuzz_mutants.mutant(number), thorough=False)
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            found[number] = f"{type(error).__name__}: {error}"[:300]
    assert not found, "one again: python tests/lite/fuzz/run_fuzz.py --case NUMBER"


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
    with pytest.raises(fuzz_target.TookTooLong), fuzz_target.limits(0):
        forever()


def test_the_seeds_themselves_run():
    outcomes = [fuzz_target.outcome(data) for data in fuzz_mutants.seeds()]
    assert outcomes.count("ran") > len(outcomes) / 3
    assert not [o for o in outcomes if o.startswith(("read", "verify"))]
