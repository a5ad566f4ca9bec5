"""Sweeps: the merged report, failing jobs, jobs that kill their worker."""

from __future__ import annotations

import json
import os
import signal

import distribute_kit as kit
import pytest

import opwright as ow
from opwright import distribute


def quotient(a, b):
    return {"quotient": a / b}


def dies(n):
    if n == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return n * n


def test_a_grid_has_all_combinations():
    assert distribute.grid(a=[1, 2], b="xy") == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    assert distribute.grid() == [{}]


@pytest.mark.parametrize("executor", [None, "threads:3", kit.forked])
def test_one_report_of_all_trials(executor):
    seen = []
    jobs = distribute.grid(a=[6, 7, 8], b=[0, 1, 2])
    report = distribute.sweep(quotient, jobs, executor, on_trial=seen.append)
    assert [trial.parameters for trial in report] == jobs
    assert [trial.number for trial in report] == list(range(9))
    assert sorted(trial.number for trial in seen) == list(range(9))
    assert [t.value and t.value["quotient"] for t in report] == [None, 6, 3, None, 7, 3.5, None, 8, 4]
    assert {t.error.type for t in report.failures} == {"ZeroDivisionError"}
    assert len(report.failures) == 3
    assert report.best("quotient").parameters == {"a": 6, "b": 2}
    assert report.best(lambda value: value["quotient"], largest=True).parameters == {"a": 8, "b": 1}
    rows = json.loads(report.to_json())
    assert rows[1] == {**report[1]._asdict(), "error": None}
    assert rows[0]["error"]["type"] == "ZeroDivisionError"


def function_of(n):
    return (lambda: n) if n == 1 else n


def exits(status):
    raise SystemExit(status)


def test_an_exit_is_a_failed_trial():
    report = distribute.sweep(exits, distribute.grid(status=[3]), "threads:1")
    assert report.failures[0].error.type == "SystemExit"


def test_a_result_that_cannot_be_sent_is_a_failed_trial():
    report = distribute.sweep(function_of, distribute.grid(n=range(4)), kit.forked)
    assert [trial.value for trial in report] == [0, None, 2, 3]
    assert "pickle" in report[1].error.message


def test_a_report_without_values_has_no_best():
    with pytest.raises(ow.errors.NotFoundError, match="1 trials"):
        distribute.sweep(quotient, [{"a": 1, "b": 0}]).best("quotient")
    report = [*distribute.sweep(float, [{}]), distribute.Trial(1, {}, float("nan"), None, 0.0)]
    assert distribute.SweepReport(report).best().number == 0


def test_jobs_are_mappings():
    with pytest.raises(ow.errors.InvalidArgumentError, match="not a mapping"):
        distribute.sweep(quotient, [(1, 2)])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_job_that_kills_its_worker_is_a_failed_trial():
    report = distribute.sweep(dies, distribute.grid(n=range(12)), kit.forked)
    assert [t.number for t in report.failures] == [5]
    assert report.failures[0].error.type == "WorkerLost"
    assert [t.value for t in report if t.number != 5] == [n * n for n in range(12) if n != 5]
