"""All checks on one call of an operator: `check` for tests, `outcomes` for the command line.

Lives here: the table of checks, their execution, the report.
Not here: the checks (value_checks.py, scope_checks.py, gradient_check.py, model_files.py), several calls (cases.py).
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
from ..ops.definition_lint import lint
from ..ops.spec_changes import compatibility
from ..ops.specification import spec as specification
from . import gradient_check, model_files, scope_checks, value_checks
from .operator_call import CheckedCall, NotApplicable, generate_call


class Outcome(NamedTuple):
    """The outcome of a check of an operator. state: "ok", "failed" or "not tried". detail: the reason or a summary."""

    operator: str
    check: str
    state: str
    detail: str = ""


class Report(list[Outcome]):
    """Outcomes, printed one per line."""

    def __repr__(self) -> str:
        counts = Counter(o.state for o in self)
        lines = [", ".join(f"{counts[state]} {state}" for state in ("ok", "failed", "not tried") if counts[state])]
        width = max((len(o.check) for o in self), default=0)
        for name, group in itertools.groupby(self, lambda o: o.operator):
            lines += [name, *(f"  {o.check:{width}}  {o.state}{f': {o.detail}' if o.detail else ''}" for o in group)]
        return "\n".join(lines)


class CheckError(AssertionError):
    """Some checks of an operator failed. outcomes: those of all checks."""

    def __init__(self, operator: str, outcomes: list[Outcome]) -> None:
        self.outcomes = outcomes
        failed = [_line(operator, o) for o in outcomes if o.state == "failed"]
        super().__init__("\n".join([f"{operator}: {len(failed)} of {len(outcomes)} checks failed", *failed]))


def _line(operator: str, o: Outcome) -> str:
    case = o.operator.removeprefix(operator).removeprefix(", ")
    return "  " + ": ".join(part for part in (case, o.check, o.detail) if part)


def _on_each_place(call: CheckedCall) -> str:
    """Check that it runs on scopes on each place like the eager call, reads each input, and writes to none."""
    on_cpu = scope_checks.on_scopes(call, "cpu", unused=True)
    on_simulated = scope_checks.on_scopes(call, "sim:0")
    return f"cpu: {on_cpu.branch}, sim: {on_simulated.branch}"


def _gradient_on_graph(call: CheckedCall) -> None:
    """Check that `append_backward` computes the same bits as the tape."""
    gradient_check.backward_is_tape(*gradient_check.as_function(gradient_check.widened(call.plain())))


def _in_place(call: CheckedCall) -> str:
    """Check that reusing memory, forward and backward twice, changes no bit."""
    call = call.plain()
    with contextlib.suppress(NotApplicable):
        call = gradient_check.widened(call)
    return (
        f"{scope_checks.reuse_changes_no_bits(lambda values: call.flat(values), call.tensors())} results in used memory"
    )


def _gradient_reads(call: CheckedCall) -> str:
    """Check that the gradient reads only the tensors that it keeps."""
    return f"{gradient_check.gradient_reads_no_more(call)} inputs and outputs need not be there"


def _lods(call: CheckedCall) -> str:
    """Check that LoD levels are as declared, traced and run, forward and backward."""
    return f"{scope_checks.lod_as_declared(call)} calls"


def _empty_sequences(call: CheckedCall) -> str:
    """Check that sequences without rows work in any position, and so does a batch of one."""
    count = scope_checks.edge_cases(call)
    if not count:
        raise NotApplicable("other inputs have a row for each sequence")
    return f"{count} layouts"


CHECKS: dict[str, Callable[[CheckedCall], Any]] = {
    "pickles": value_checks.pickles,
    "inference": value_checks.inference,
    "inputs stay": value_checks.inputs_stay,
    "every dtype": value_checks.every_dtype,
    "kernel is compute": value_checks.kernel_is_compute,
    "traces": value_checks.traces,
    "places": _on_each_place,
    "gradient is slope": gradient_check.gradient_is_slope,
    "second gradient is slope": gradient_check.second_gradient_is_slope,
    "gradient on graphs": _gradient_on_graph,
    "gradient reads no more": _gradient_reads,
    "in place": _in_place,
    "lod": _lods,
    "empty sequences": _empty_sequences,
    "same again": model_files.same_again,
    "interpreted": model_files.interpreted,
    "compiled": model_files.compiled,
    "versions": model_files.versions,
    "exported": model_files.exported,
    "official run time": model_files.official,
}
"""The checks of every call, by name."""

OF_NUMBERS = ("float32", "float64")
"""The dtypes in which results are compared with an oracle, in addition to the inputs' own."""

OF_FORMULAS = ("float16", "bfloat16", "int8", "int32", "int64")
"""The dtypes for which the oracle must be a formula, which sees the rounded inputs."""


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
    """Check an operator by one call of it, in every supported way.

    op: an operator or its name. inputs: inputs and attributes by name: arrays, tensors, LoDTensors, lists of them for a
    repeated input; by default the definition's `example`, or small arrays, tried until a call works. expect: an
    independent formula, called with the inputs as arrays in the order of the definition (floating ones as float64), or
    its result; several outputs as a tuple; a pair (array, LoD) specifies the offsets too. rtol, atol: of the comparison
    with `expect`; by default the tolerance of the dtype. without: names of checks (`ow.testing.CHECKS`) to leave out.
    against: an older specification, a result of `ow.ops.spec` or a file of it, that the operator must be compatible
    with.

    The checks: results equal those of `expect`, for the given inputs, in float32 and in float64, and, if it is a
    formula, in the narrow floating dtypes and integers that the operator takes; inference agrees with the results for
    any subset of known sizes; inputs are unchanged; every declared dtype is computed; it traces, prints and parses; on
    scopes on each place it computes the same; the gradient equals central differences in float64, and so does the
    gradient of the gradient; the gradient is the same on a graph and by the tape, and reads only tensors that it keeps;
    memory reuse changes no bit of the call, its gradient and the gradient of that; LoD levels are as declared; empty
    sequences work; the same call computes the same bits; as a model file it computes the same: interpreted, compiled,
    as C if there is a compiler, by the official run time if it is installed; its attributes survive a file, older files
    use defaults, newer ones are refused by name.

    returns every Outcome; checks that do not apply to this operator are "not tried", with the reason. The list prints
    as a table raises CheckError (an AssertionError) naming each check that failed, KeyError for an unknown operator,
    ValueError for an unknown input, attribute or check
    """
    operator = registry.get(op) if isinstance(op, str) else op
    excluded = check_names(without)
    call = CheckedCall.of(operator, inputs) if inputs is not None else generate_call(operator)
    report = Report(outcomes_of(call, excluded, expect, rtol, atol, against))
    if any(o.state == "failed" for o in report):
        raise CheckError(operator.name, report)
    return report


def check_names(names: Iterable[str]) -> set[str]:
    """Return the names as a set. Raises ValueError for an unknown check."""
    unknown = set(names) - CHECKS.keys()
    if unknown:
        raise ValueError(f"there is no check {sorted(unknown)[0]!r}; there are {', '.join(CHECKS)}")
    return set(names)


def call_outcome(call: CheckedCall) -> Outcome:
    """Return the outcome of the call itself."""
    return _outcome(call.op, "calls", call.call)


def outcomes_of(
    call: CheckedCall,
    without: Iterable[str] = (),
    expect: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    against: Any = None,
) -> list[Outcome]:
    """Return every outcome of one call; see `check`."""
    results = list(run_checks(call, without))
    if expect is not None:
        results += _against_oracle(call, expect, rtol, atol)
    if against is not None:
        results.append(_outcome(call.op, "compatible", lambda: compatible(call.op, against)))
    return results


def run_checks(call: CheckedCall, without: Iterable[str] = ()) -> Iterator[Outcome]:
    """Yield the outcome of every check of CHECKS on one call."""
    left_out = set(without)
    for name, one in CHECKS.items():
        if name not in left_out:
            yield _outcome(call.op, name, functools.partial(one, call))


def _against_oracle(call: CheckedCall, expect: Any, rtol: float | None, atol: float | None) -> list[Outcome]:
    op = call.op
    found = [_outcome(op, "outputs", lambda: value_checks.matches_oracle(call, expect, rtol, atol))]
    given = {t.dtype.name for t in call.tensors() if t.dtype.is_floating}
    for name in OF_NUMBERS:
        if {name} == given:
            continue
        found.append(_outcome(op, f"outputs in {name}", functools.partial(_in_dtype, call, name, expect, rtol, atol)))
    for name in OF_FORMULAS if callable(expect) else ():
        if {name} != given:
            one = functools.partial(value_checks.matches_formula, call, name, expect, rtol, atol)
            found.append(_outcome(op, f"outputs in {name}", one))
    return found


def _in_dtype(call: CheckedCall, name: str, expect: Any, rtol: float | None, atol: float | None) -> None:
    value_checks.matches_oracle(value_checks.converted_call(call, name), expect, rtol, atol)


def _outcome(op: Any, name: str, run: Callable[[], Any]) -> Outcome:
    try:
        detail = run()
    except NotApplicable as error:
        return Outcome(op.name, name, "not tried", str(error))
    except Exception as error:  # a failing check, or a rule of the operator that fails
        text = " ".join(str(error).split())  # untruncated: the reason is often at the end, after names and paths
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        return Outcome(op.name, name, "failed", kind + text)
    return Outcome(op.name, name, "ok", detail if isinstance(detail, str) else "")


def compatible(op: Any, against: Any) -> str:
    """Check that no change since an older specification breaks programs or files. against: a result of `spec`, or a
    file.
    """
    old = json.loads(Path(against).read_text("utf-8")) if isinstance(against, (str, Path)) else against
    operators = old.get("operators", old)
    if op.name not in operators:
        return "it is new"
    changes = compatibility({op.name: operators[op.name]}, specification([op]))
    broken = [str(c) for c in changes if not c.allowed]
    if broken:
        raise AssertionError("; ".join(broken))
    return f"{len(changes)} changes, all allowed"


def outcomes(op: Any) -> Iterator[Outcome]:
    """Yield the outcomes of the lint and of every check on generated inputs."""
    for sentence in lint(op):
        yield Outcome(op.name, "lint", "failed", sentence)
    try:
        call = generate_call(op)
    except NotApplicable as error:
        yield _outcome(op, "pickles", lambda: value_checks.pickles(CheckedCall(op, (), {})))
        yield Outcome(op.name, "calls", "not tried", str(error))
        return
    shown = ", ".join(f"{name} {t.spec.short()}" for name, t in call.parts())
    yield Outcome(op.name, "calls", "ok", ", ".join([shown, *(f"{k}={v!r}" for k, v in call.attrs.items())]))
    yield from run_checks(call)
