"""`check_operator` and `check_pattern`: checks of an operator, and of a pattern, on several calls, for test files.

Lives here: the forms of cases; comparing a fused operator with the operators that it replaces.
Not here: the checks of one call (checks.py), patterns (lite/convert/patterns/).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.specs import TensorSpec, spec_of_short
from ..eager.tensor import EagerTensor
from ..lite.convert.converter import TFLiteConverter
from ..lite.convert.patterns.pattern import Form, Pattern
from ..lite.interpreter import Interpreter
from ..ops import dispatch, registry
from ..tracing.function import Function
from .checks import CheckError, Outcome, Report, call_outcome, check_names, outcomes_of
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


def check_pattern(
    pattern: Pattern, cases: Iterable[Any], *, custom_ops: Any = (), rtol: float = 1e-5, atol: float = 1e-6
) -> list[Outcome]:
    """Run a pattern's forms on each case, fused and unfused: eagerly, and converted, in the interpreter.

    cases: each is a dict of tensors and attributes by name, or a tuple of its tensors. custom_ops: kernels as for an
    Interpreter, if the pattern has a name and no definition. rtol, atol: the tolerances between fused and unfused
    numbers; dtypes and shapes must be equal. raises CheckError (an AssertionError) with every failed check; ValueError
    if there is no case
    """
    results: list[Outcome] = []
    for number, case in enumerate(cases):
        tensors, attrs = _split_case(pattern, case)
        for form in pattern.forms:
            label = f"case {number}, {getattr(form, '__name__', 'form')}"
            results += _PatternCase(pattern, form, tensors, attrs, custom_ops, (rtol, atol)).outcomes(label)
    if not results:
        raise ValueError(f"{pattern.name}: there is no case to check the pattern with")
    if any(o.state == "failed" for o in results):
        raise CheckError(pattern.name, results)
    return results


def _split_case(pattern: Pattern, case: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a case's tensors and attributes. Raises TypeError if they are not the pattern's."""
    arguments = dict(case) if isinstance(case, Mapping) else dict(zip(pattern.parameters, case, strict=True))
    attrs = {c.name: arguments.pop(c.name) for c in pattern.captures if c.name in arguments}
    if arguments.keys() != set(pattern.parameters):
        raise TypeError(f"{pattern.name}: a case has {', '.join(arguments)}; wanted {', '.join(pattern.parameters)}")
    return {name: dispatch.to_tensor(arguments[name], None) for name in pattern.parameters}, attrs


class _PatternCase:
    """One form on one case."""

    def __init__(
        self,
        pattern: Pattern,
        form: Form,
        tensors: dict[str, Any],
        attrs: dict[str, Any],
        custom_ops: Any,
        tolerances: tuple[float, float],
    ) -> None:
        self.pattern, self.form, self.tensors, self.attrs, self.tolerances = pattern, form, tensors, attrs, tolerances
        self.custom_ops = [custom_ops, *([] if pattern.operator is None else [pattern.operator])]

    def outcomes(self, label: str) -> list[Outcome]:
        name = self.pattern.name
        expected = _arrays(self.form(*self.tensors.values(), **self.attrs))
        results = []
        for what, run in (("called", self.called), ("converted", self.converted)):
            try:
                detail = run(expected)
                results.append(
                    Outcome(name, f"{label}, {what}", "not tried" if detail.startswith("no ") else "ok", detail)
                )
            except AssertionError as error:
                results.append(Outcome(name, f"{label}, {what}", "failed", str(error)))
            except Exception as error:  # any error of the operator is an outcome
                results.append(Outcome(name, f"{label}, {what}", "failed", f"{type(error).__name__}: {error}"))
        return results

    def called(self, expected: list[np.ndarray]) -> str:
        """Check the operator, eagerly."""
        operator = self.pattern.operator
        if operator is None:
            return "no definition to call"
        return self.compare(_arrays(operator(**self.tensors, **self.pattern.attrs, **self.attrs)), expected)

    def converted(self, expected: list[np.ndarray]) -> str:
        """Check a fused model of the form."""
        specs = [TensorSpec(x.shape, x.dtype, name=name) for name, x in self.tensors.items()]
        concrete = Function(self.form).get_concrete_function(*specs, **self.attrs)
        converter = TFLiteConverter.from_concrete_functions([concrete])
        converter.patterns = [self.pattern]
        content = converter.convert()
        if converter.patterns_found[0].count != 1:
            raise AssertionError(f"not fused as one: {converter.patterns_found[0]}")
        interpreter = Interpreter(model_content=content, custom_ops=self.custom_ops)
        interpreter.allocate_tensors()
        for detail, tensor in zip(interpreter.get_input_details(), self.tensors.values()):
            interpreter.set_tensor(detail["index"], tensor.numpy())
        interpreter.invoke()
        return self.compare([interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()], expected)

    def compare(self, actual: list[np.ndarray], expected: list[np.ndarray]) -> str:
        """Compare the results with those of the unfused form; return the largest difference. Raises AssertionError."""
        if len(actual) != len(expected):
            raise AssertionError(f"{len(actual)} results, the unfused form has {len(expected)}")
        worst = 0.0
        for i, (a, b) in enumerate(zip(actual, expected)):
            kinds = [f"{array.dtype}{list(array.shape)}" for array in (a, b)]
            if kinds[0] != kinds[1]:
                raise AssertionError(f"result {i} is {kinds[0]}, unfused {kinds[1]}")
            if a.dtype.kind in "biuOSU":
                if not (a == b).all():
                    raise AssertionError(f"result {i} differs in {int((a != b).sum())} of {a.size} elements")
                continue
            wide = np.complex128 if a.dtype.kind == "c" else np.float64  # bfloat16 and similar dtypes have kind V
            x, y = a.astype(wide), b.astype(wide)
            same = np.isclose(x, y, *self.tolerances, equal_nan=True)
            if not same.all():
                count, largest = int((~same).sum()), _largest_difference(x, y)
                raise AssertionError(f"result {i} differs in {count} of {a.size} elements, by {largest:.3g}")
            worst = max(worst, _largest_difference(x, y))
        return f"largest difference {worst:.3g}"


def _largest_difference(x: np.ndarray, y: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        difference = np.abs(x - y)
    return float(np.nanmax(difference, initial=0.0))


def _arrays(results: Any) -> list[np.ndarray]:
    several = results if isinstance(results, list | tuple) else [results]
    return [r.numpy() if isinstance(r, EagerTensor) else np.asarray(r) for r in several]
