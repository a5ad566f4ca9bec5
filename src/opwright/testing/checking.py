"""All checks on one call of an operator: `check` for tests, `outcomes` for the command line.

Lives here: the table of checks, who runs them, the report.  Not here: the checks (running.py, places.py, slopes.py,
places.py, sequences.py, files.py, elsewhere.py), several calls (cases.py).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..ops import registry
from ..ops.changes import compatibility
from ..ops.linting import lint
from ..ops.specification import spec as specification
from . import elsewhere, files, places, running, sequences, slopes
from .trial import NotTried, Trial, made_up


class Outcome(NamedTuple):
    """One check of one operator. state: "ok", "failed" or "not tried". detail: why, or what was found."""

    operator: str
    check: str
    state: str
    detail: str = ""


class Report(list[Outcome]):
    """Outcomes; printed, a line for each."""

    def __repr__(self) -> str:
        counts = Counter(o.state for o in self)
        lines = [", ".join(f"{counts[state]} {state}" for state in ("ok", "failed", "not tried") if counts[state])]
        width = max((len(o.check) for o in self), default=0)
        for name, found in itertools.groupby(self, lambda o: o.operator):
            lines += [name, *(f"  {o.check:{width}}  {o.state}{f': {o.detail}' if o.detail else ''}" for o in found)]
        return "\n".join(lines)


class CheckError(AssertionError):
    """Some checks of an operator failed. outcomes: all of them, those that did not fail too."""

    def __init__(self, operator: str, outcomes: list[Outcome]) -> None:
        self.outcomes = outcomes
        failed = [_line(operator, o) for o in outcomes if o.state == "failed"]
        super().__init__("\n".join([f"{operator}: {len(failed)} of {len(outcomes)} checks failed", *failed]))


def _line(operator: str, o: Outcome) -> str:
    case = o.operator.removeprefix(operator).removeprefix(", ")
    return "  " + ": ".join(part for part in (case, o.check, o.detail) if part)


def _at_each_place(trial: Trial) -> str:
    """It runs on scopes at each place as it runs eagerly, reads each input, and writes none."""
    here = places.on_scopes(trial, "cpu", unused=True)
    there = places.on_scopes(trial, "sim:0")
    return f"cpu: {here.branch}, sim: {there.branch}"


def _by_graph(trial: Trial) -> None:
    """`append_backward` gives what the tape gives, bit for bit."""
    slopes.backward_is_tape(*slopes.of_floats(slopes.wide(trial.plain())))


def _in_place(trial: Trial) -> str:
    """With memory used again, forward and backward twice, every bit stays."""
    trial = trial.plain()
    with contextlib.suppress(NotTried):
        trial = slopes.wide(trial)
    return f"{places.reuse_changes_no_bits(lambda values: trial.flat(values), trial.tensors())} results in used memory"


def _no_more(trial: Trial) -> str:
    """The gradient does not read what it does not keep."""
    return f"{slopes.gradient_reads_no_more(trial)} inputs and outputs need not be there"


def _lods(trial: Trial) -> str:
    """LoD levels are those that are declared, traced and run, forward and backward."""
    return f"{sequences.lod_as_declared(trial)} calls"


def _edges(trial: Trial) -> str:
    """Sequences without rows anywhere, and a batch of one."""
    made = sequences.edges(trial)
    if not made:
        raise NotTried("other inputs have a row for each sequence")
    return f"{made} layouts"


CHECKS: dict[str, Callable[[Trial], Any]] = {
    "pickles": running.pickles,
    "inference": running.inference,
    "inputs stay": running.inputs_stay,
    "every dtype": running.every_dtype,
    "kernel is compute": running.kernel_is_compute,
    "traces": running.traces,
    "places": _at_each_place,
    "gradient is slope": slopes.gradient_is_slope,
    "second gradient is slope": slopes.second_gradient_is_slope,
    "gradient on graphs": _by_graph,
    "gradient reads no more": _no_more,
    "in place": _in_place,
    "lod": _lods,
    "empty sequences": _edges,
    "same again": files.same_again,
    "interpreted": files.interpreted,
    "compiled": files.compiled,
    "versions": files.versions,
    "exported": elsewhere.exported,
    "official run time": elsewhere.official,
}
"""The checks that every call gets, by name."""

OF_NUMBERS = ("float32", "float64")
"""The dtypes in which results are compared with an oracle, besides the one that is given."""

OF_FORMULAS = ("float16", "bfloat16", "int8", "int32", "int64")
"""Those in which they are compared where the oracle is a formula: its result follows the rounded inputs."""


def check(
    op: Any,
    inputs: Mapping[str, Any] | None = None,
    expect: Any = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    without: Iterable[str] = (),
    against: Any = None,
) -> Report:
    """Check an operator by one call of it, in every way there is.

    op: an operator or its name. inputs: inputs and attributes by name: arrays, tensors, LoDTensors, lists of them for
    a repeated input; by default the definition's `example`, or small arrays that are tried until a call works.
    expect: an independent formula, called with the inputs as arrays in the order of the definition (floating ones as
    float64), or its result; several outputs as a tuple; a pair (array, LoD) says the offsets too.
    rtol, atol: of the comparison with `expect`; by default the tolerance of the dtype.
    without: names of checks (`ow.testing.CHECKS`) that are left out. against: an older specification, as `ow.ops.spec`
    gave it or a file of it, which the operator must be compatible with.

    The checks: results are those of `expect`, as given, in float32 and in float64, and where it is a formula in the
    narrow floating dtypes and integers that the operator takes; inference promises what comes out, whatever of the
    sizes it knows; inputs stay as they are; every dtype that is declared is computed; it traces, prints and reads back;
    on scopes at each place it gives the same; the gradient is the slope by central differences in float64, and so is
    the gradient of the gradient; it is the same on a graph and by the tape, and reads nothing it does not keep; memory
    that is used again changes no bit of the call, its gradient and the gradient of that; LoD levels are as declared;
    empty sequences work; the same call gives the same bits; as a model file it gives the same: interpreted, compiled,
    as C where there is a compiler, by the official run time where that is installed; its attributes come back from a
    file, older files give defaults, newer ones are refused by name.

    gives every Outcome; those that are not for this operator are "not tried", with the reason. The list prints as a
    table
    raises CheckError (an AssertionError) naming each check that failed, KeyError for an operator that there is not,
    ValueError for an input, attribute or check that there is not
    """
    chosen = registry.get(op) if isinstance(op, str) else op
    left_out = known_checks(without)
    trial = Trial.of(chosen, inputs) if inputs is not None else made_up(chosen)
    found = Report(outcomes_of(trial, left_out, expect, rtol, atol, against))
    if any(o.state == "failed" for o in found):
        raise CheckError(chosen.name, found)
    return found


def known_checks(names: Iterable[str]) -> set[str]:
    """The names as a set. Raises ValueError for a check that there is not."""
    unknown = set(names) - CHECKS.keys()
    if unknown:
        raise ValueError(f"there is no check {sorted(unknown)[0]!r}; there are {', '.join(CHECKS)}")
    return set(names)


def called(trial: Trial) -> Outcome:
    """Whether it can be called at all."""
    return _outcome(trial.op, "calls", trial.call)


def outcomes_of(
    trial: Trial,
    without: Iterable[str] = (),
    expect: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    against: Any = None,
) -> list[Outcome]:
    """Every outcome of one call; see `check`."""
    found = list(run_checks(trial, without))
    if expect is not None:
        found += _against_oracle(trial, expect, rtol, atol)
    if against is not None:
        found.append(_outcome(trial.op, "compatible", lambda: compatible(trial.op, against)))
    return found


def run_checks(trial: Trial, without: Iterable[str] = ()) -> Iterator[Outcome]:
    """Every check of CHECKS on one call."""
    left_out = set(without)
    for name, one in CHECKS.items():
        if name not in left_out:
            yield _outcome(trial.op, name, functools.partial(one, trial))


def _against_oracle(trial: Trial, expect: Any, rtol: float | None, atol: float | None) -> list[Outcome]:
    op = trial.op
    found = [_outcome(op, "outputs", lambda: running.matches_oracle(trial, expect, rtol, atol))]
    given = {t.dtype.name for t in trial.tensors() if t.dtype.is_floating}
    for name in OF_NUMBERS:
        if {name} == given:
            continue
        found.append(_outcome(op, f"outputs in {name}", functools.partial(_in_dtype, trial, name, expect, rtol, atol)))
    for name in OF_FORMULAS if callable(expect) else ():
        if {name} != given:
            one = functools.partial(running.matches_formula, trial, name, expect, rtol, atol)
            found.append(_outcome(op, f"outputs in {name}", one))
    return found


def _in_dtype(trial: Trial, name: str, expect: Any, rtol: float | None, atol: float | None) -> None:
    running.matches_oracle(running.in_dtype(trial, name), expect, rtol, atol)


def _outcome(op: Any, name: str, one: Callable[[], Any]) -> Outcome:
    try:
        detail = one()
    except NotTried as error:
        return Outcome(op.name, name, "not tried", str(error))
    except Exception as error:  # a failing check, or a rule of the operator that fails
        words = " ".join(str(error).split())  # whole: the reason is often at the end, behind names and paths
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        return Outcome(op.name, name, "failed", kind + words)
    return Outcome(op.name, name, "ok", detail if isinstance(detail, str) else "")


def compatible(op: Any, against: Any) -> str:
    """No change since an older specification breaks programs or files. against: what `spec` gave, or a file of it."""
    old = json.loads(Path(against).read_text("utf-8")) if isinstance(against, (str, Path)) else against
    known = old.get("operators", old)
    if op.name not in known:
        return "it is new"
    changes = compatibility({op.name: known[op.name]}, specification([op]))
    broken = [str(c) for c in changes if not c.allowed]
    assert not broken, "; ".join(broken)
    return f"{len(changes)} changes, all allowed"


def outcomes(op: Any) -> Iterator[Outcome]:
    """The lint, and every check on inputs that are made up."""
    for sentence in lint(op):
        yield Outcome(op.name, "lint", "failed", sentence)
    try:
        trial = made_up(op)
    except NotTried as error:
        yield _outcome(op, "pickles", lambda: running.pickles(Trial(op, (), {})))
        yield Outcome(op.name, "calls", "not tried", str(error))
        return
    shown = ", ".join(f"{name} {t.spec.short()}" for name, t in trial.parts())
    yield Outcome(op.name, "calls", "ok", ", ".join([shown, *(f"{k}={v!r}" for k, v in trial.attrs.items())]))
    yield from run_checks(trial)
