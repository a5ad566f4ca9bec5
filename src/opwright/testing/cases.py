"""`check_operator`: an operator's every check on several calls, one line of a test file.

Lives here: what cases may look like.  Not here: the checks of one call (checking.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core import dtypes
from ..core.specs import TensorSpec, spec_of_short
from ..ops import registry
from .checking import CheckError, Report, called, known_checks, outcomes_of
from .trial import Trial, made_up, numbers

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
    """Check an operator on several calls, each in every way there is: `ow.testing.CHECKS`.

    cases: a dict for each call, {"inputs": {"x": ...}, "attrs": {...}, "expect": ..., "rtol": ..., "atol": ...}, or
    inputs and attributes by name alone, {"x": ..., "limit": 0.3}. An input is an array, tensor or list as `check` takes
    it, or a type, for which numbers are made up: ow.TensorSpec([2, 3]) or "float32[2,3]"; a tuple or list of them where
    it is repeated. By default the definition's `example`, or small arrays for which a call works.
    expect, rtol, atol: for the cases that have none of their own. without, against: as `check` takes them.

    >>> def test_leaky_clip():
    ...     ow.testing.check_operator(LeakyClip, [{"x": "float32[2,3]"}, {"x": [-1.0, 2.0], "limit": 0.5}])

    gives every Outcome, under the operator's name and the case's number where there are several: a list that prints as
    a table
    raises CheckError as `check` does, after all cases; ValueError for a case that is none, or has a name there is not
    """
    chosen = registry.operator_of(op)
    left_out = known_checks(without)
    given = [{}] if cases is None else list(cases)
    if not given:
        raise ValueError(f"{chosen.name}: there are no cases; leave them out, and inputs are made up")
    found = Report()
    for number, case in enumerate(given):
        inputs, how = _parts(chosen, number, case)
        how = {"expect": expect, "rtol": rtol, "atol": atol} | how
        trial = made_up(chosen) if cases is None else Trial.of(chosen, inputs)
        name = chosen.name if len(given) == 1 else f"{chosen.name}, case {number} ({_words(trial)})"
        outcomes = [called(trial)]
        if outcomes[0].state != "failed":  # else every check fails, with the same words
            outcomes = outcomes_of(trial, left_out, against=against if number == 0 else None, **how)
        found += [o._replace(operator=name) for o in outcomes]
    if any(o.state == "failed" for o in found):
        raise CheckError(chosen.name, found)
    return found


def _parts(op: Any, number: int, case: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and attributes by name, and what is expected. Raises ValueError."""
    names = {*op.input_names, *op.attr_defs}
    if not isinstance(case, Mapping):
        raise ValueError(f"{op.name}: case {number} is {type(case).__name__}, wanted a dict of inputs and attributes")
    if case.keys() & names:
        given, how = dict(case), {}
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
        given = {**inputs, **case.get("attrs", {})}
        how = {k: v for k, v in case.items() if k not in ("inputs", "attrs")}
    for seed, declared in enumerate(op.inputs):
        if declared.name in given:
            given[declared.name] = _value(op, declared, given[declared.name], seed)
    return given, how


def _value(op: Any, declared: Any, value: Any, seed: int) -> Any:
    if declared.repeated and isinstance(value, Sequence) and not isinstance(value, str):
        return [_made(op, declared, member, seed + 7 * i) for i, member in enumerate(value)]
    return _made(op, declared, value, seed)


def _made(op: Any, declared: Any, value: Any, seed: int) -> Any:
    """Numbers for a type; any other value as it is."""
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
    """float32[2,3] or f32[2,3]; None for a text that is no type."""
    head, bracket, sizes = text.partition("[")
    try:
        return TensorSpec(spec_of_short(f"f32[{sizes}").shape, dtypes.as_dtype(head)) if bracket else None
    except (TypeError, ValueError):
        pass
    try:
        return spec_of_short(text)
    except ValueError:
        return None


def _words(trial: Trial) -> str:
    return ", ".join(
        [
            *(f"{name} {t.spec.short()}" for name, t in trial.parts()),
            *(f"{k}={v!r}"[:40] for k, v in trial.attrs.items()),
        ]
    )
