"""`check_operator`: all checks of an operator on several calls, as one line of a test file.

Lives here: the forms of cases.  Not here: the checks of one call (checks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core import dtypes
from ..core.specs import TensorSpec, spec_of_short
from ..ops import registry
from .checks import CheckError, Report, call_outcome, check_names, outcomes_of
from .operator_call import CheckedCall, generate_call, numbers

PARTS = ("inputs", "attrs", "expect", "rtol", "atol")


def check_operator(
    op: Any,
    cases: Iterable[Mapping[str, Any]] | None = None,
    *,
    expect: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    without: Iterable[str] = (),
    against: Any = None,
) -> Report:
    """Check an operator on several calls, each in every way of `ow.testing.CHECKS`.

    cases: a dict for each call, {"inputs": {"x": ...}, "attrs": {...}, "expect": ..., "rtol": ..., "atol": ...}, or
    only inputs and attributes by name, {"x": ..., "limit": 0.3}. An input is an array, tensor or list as for `check`,
    or a type, for which numbers are generated: ow.TensorSpec([2, 3]) or "float32[2,3]"; a tuple or list of them for a
    repeated input. By default the definition's `example`, or small arrays for which a call works. expect, rtol, atol:
    defaults for the cases. without, against: as for `check`.

    >>> def test_leaky_clip():
    ...     ow.testing.check_operator(LeakyClip, [{"x": "float32[2,3]"}, {"x": [-1.0, 2.0], "limit": 0.5}])

    returns every Outcome, with the operator's name, and the case's number if there are several: a list that prints as a
    table raises CheckError as `check` does, after all cases; ValueError for an invalid case or an unknown name
    """
    operator = registry.operator_of(op)
    excluded = check_names(without)
    calls = [{}] if cases is None else list(cases)
    if not calls:
        raise ValueError(f"{operator.name}: there are no cases; leave them out, and inputs are made up")
    report = Report()
    for number, case in enumerate(calls):
        inputs, options = _parts(operator, number, case)
        options = {"expect": expect, "rtol": rtol, "atol": atol} | options
        call = generate_call(operator) if cases is None else CheckedCall.of(operator, inputs)
        name = operator.name if len(calls) == 1 else f"{operator.name}, case {number} ({_summary(call)})"
        outcomes = [call_outcome(call)]
        if outcomes[0].state != "failed":  # else every check fails, with the same words
            outcomes = outcomes_of(call, excluded, against=against if number == 0 else None, **options)
        report += [o._replace(operator=name) for o in outcomes]
    if any(o.state == "failed" for o in report):
        raise CheckError(operator.name, report)
    return report


def _parts(op: Any, number: int, case: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the inputs and attributes by name, and the options. Raises ValueError."""
    names = {*op.input_names, *op.attr_defs}
    if not isinstance(case, Mapping):
        raise ValueError(f"{op.name}: case {number} is {type(case).__name__}, wanted a dict of inputs and attributes")
    if case.keys() & names:
        arguments, options = dict(case), {}
    else:
        wrong = case.keys() - set(PARTS)
        if wrong:
            raise ValueError(
                f"{op.name}: case {number} has {sorted(map(str, wrong))[0]!r}; wanted {', '.join(PARTS)}, "
                f"or inputs and attributes: {', '.join((*op.input_names, *op.attr_defs))}"
            )
        inputs = case.get("inputs", {})
        if not isinstance(inputs, Mapping):
            inputs = dict(zip(op.input_names, inputs))
        arguments = {**inputs, **case.get("attrs", {})}
        options = {k: v for k, v in case.items() if k not in ("inputs", "attrs")}
    for seed, declared in enumerate(op.inputs):
        if declared.name in arguments:
            arguments[declared.name] = _value(op, declared, arguments[declared.name], seed)
    return arguments, options


def _value(op: Any, declared: Any, value: Any, seed: int) -> object:
    if declared.repeated and isinstance(value, Sequence) and not isinstance(value, str):
        return [_generated(op, declared, member, seed + 7 * i) for i, member in enumerate(value)]
    return _generated(op, declared, value, seed)


def _generated(op: Any, declared: Any, value: Any, seed: int) -> object:
    """Return generated numbers for a type; any other value unchanged."""
    if isinstance(value, str):
        spec = _spec(value)
        if spec is None and dtypes.string not in declared.dtypes:
            raise ValueError(
                f"{op.name}: input {declared.name!r} is the text {value!r}; wanted an array, or a type "
                "such as 'float32[2,3]'"
            )
        value = value if spec is None else spec
    if not isinstance(value, TensorSpec):
        return value
    if not value.shape.is_fully_defined():
        raise ValueError(f"{op.name}: input {declared.name!r} has unknown sizes, {value}; wanted numbers")
    return numbers(tuple(int(n or 0) for n in value.shape.as_list()), value.dtype, seed)


def _spec(text: str) -> TensorSpec | None:
    """Parse float32[2,3] or f32[2,3]; return None for other text."""
    head, bracket, sizes = text.partition("[")
    try:
        return TensorSpec(spec_of_short(f"f32[{sizes}").shape, dtypes.as_dtype(head)) if bracket else None
    except (TypeError, ValueError):
        pass
    try:
        return spec_of_short(text)
    except ValueError:
        return None


def _summary(call: CheckedCall) -> str:
    return ", ".join(
        [*(f"{name} {t.spec.short()}" for name, t in call.parts()), *(f"{k}={v!r}"[:40] for k, v in call.attrs.items())]
    )
