"""A case run by both engines: the same verdict, and the same numbers.

Lives here: `outcome`, its limits.  Not here: the cases (fuzz_options.py), running many (run_fuzz.py).

A finding is an exception that is no OpError, a case that takes longer or needs more memory than it may, a file that one
engine runs and the other refuses, and numbers further apart than rounding explains: floats by 1e-4 of the greatest,
numbers that stand for real ones by a step more than the row of the table allows, other integers at all.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import warnings
from typing import Any

import fuzz_options
import numpy as np
from drawn import gap_of
from fuzz_target import ACTIVATIONS, TookTooLong, said

from opwright import lite
from opwright.core import errors, flags
from opwright.lite.format import Model

SECONDS = 12.0  # of the processor: kernels are compiled, two times
ROOM = 2 << 30  # LLVM needs some
FLOATS = {2: 1e-2, 4: 1e-4, 8: 1e-4, 16: 1e-4}  # by bytes of a number
RANDOM = ("RANDOM", "MULTINOMIAL")
STATE = ("LSTM", "RNN", "GRU", "SVDF", "VARIABLE", "CALL_ONCE", *RANDOM)
TURNS = (0, 0, 1, 0)
"""Of each run of a model without state, by how much its numbers are rolled: plans for sizes that a run decides are made
after the first, are right for the second, may not be for the third."""


class Different(AssertionError):
    """The engines do not agree."""


def _ring(*_: object) -> None:
    raise TookTooLong


@contextlib.contextmanager
def limits():
    """Within it, the processor's time and memory are bounded."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, hard))
    before = signal.signal(signal.SIGPROF, _ring)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def outcome(number: int, mode: str | None = None) -> str:
    """How far a case came: "options ran", "bytes refused" ... Raises whatever is a finding."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        case = fuzz_options.case(number, mode)
        with limits(), flags.override(max_activation_bytes=ACTIVATIONS, background=False, target=case.target):
            try:
                return f"{case.mode} {_both(case)}"
            except TookTooLong as error:
                if _loops(case.data):
                    return f"{case.mode} loops"
                raise TookTooLong(f"{case.label}: {'; '.join(case.changed)}") from error


def _loops(data: bytes) -> bool:
    from fuzz_target import has_loop

    return has_loop(Model.read(data))


def _both(case: fuzz_options.Case) -> str:
    reference, expected, kinds = _run(case, False)
    compiled, actual, _ = _run(case, True)
    what = f"{case.label}, {case.mode}: {'; '.join(case.changed)}"
    if (actual is None) != (expected is None):
        raise Different(f"verdict: {what}: reference {reference}, compiled {compiled}")
    if expected is None or actual is None:
        return "refused"
    if any(word in case.label for word in RANDOM):
        return "ran"
    for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise Different(f"shape: {what}: {a.dtype}{list(a.shape)}, {b.dtype}{list(b.shape)}")
        allowed = (
            case.within + (1 if kinds[i] else 0)
            if a.dtype.kind not in "fcV"
            else max(FLOATS.get(a.dtype.itemsize, 1e-4), case.within)
        )
        gap = float(np.max(gap_of(a, b), initial=0))
        if gap > allowed:
            raise Different(f"numbers: {what}: {gap:.3g} apart in output {i}")
    return "ran"


def _run(case: fuzz_options.Case, compiled: bool) -> tuple[str, list[np.ndarray] | None, list[bool]]:
    """The verdict in words, the outputs, and which of them are quantised."""
    stage = "open"
    try:
        with flags.override(compiled=compiled), lite.Interpreter(model_content=case.data, num_threads=1) as interpreter:
            stage = "allocate"
            details = interpreter.get_input_details()
            if case.larger > 1:
                stage = "resize"
                for detail in details:
                    shape = [int(n) for n in detail["shape"]]
                    if shape:
                        shape[case.axis] *= case.larger
                        interpreter.resize_tensor_input(detail["index"], shape)
            interpreter.allocate_tensors()
            stage, result = "invoke", []
            turns = TURNS[:1] if any(word in case.label for word in STATE) else TURNS
            for turn in turns:
                for i, detail in enumerate(interpreter.get_input_details()):
                    fed = _fitting(case.feeds, i, detail)
                    interpreter.set_tensor(detail["index"], np.roll(fed, turn) if fed.ndim else fed)
                interpreter.invoke()
                outputs = interpreter.get_output_details()
                result += [np.array(interpreter.get_tensor(d["index"])) for d in outputs]
            quantised = [d["quantization_parameters"]["scales"].size > 0 for d in outputs]
            return "runs", result, quantised * len(turns)
    except errors.OpError as error:
        return f"{stage}: {said(error)}: {str(error)[:200]}", None, []


def _fitting(feeds: list[np.ndarray], i: int, detail: dict[str, Any]) -> np.ndarray:
    """The numbers of a feed as an array of the shape and dtype wanted."""
    shape, dtype = tuple(detail["shape"]), detail["dtype"]
    if dtype is np.bytes_ or dtype is object:
        inputs = feeds[i] if i < len(feeds) and feeds[i].dtype.kind in "OSU" else np.array([b"a"], object)
        return np.resize(inputs, shape)
    inputs = feeds[i] if i < len(feeds) else np.ones(1)
    if inputs.dtype.kind in "OSU":
        inputs = np.arange(7)
    return np.resize(inputs, shape).astype(dtype)
