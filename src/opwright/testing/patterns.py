"""Check a pattern: the fused operator computes the same as the operators that it replaces.

Lives here: `check_pattern`.  Not here: patterns (lite/convert/patterns/), other checks of the operator (checks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..lite.convert.converter import TFLiteConverter
from ..lite.convert.patterns.pattern import Form, Pattern
from ..lite.interpreter import Interpreter
from ..ops import dispatch
from ..tracing.function import Function
from .checks import CheckError, Outcome


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
        assert converter.patterns_found[0].count == 1, f"not fused as one: {converter.patterns_found[0]}"
        interpreter = Interpreter(model_content=content, custom_ops=self.custom_ops)
        interpreter.allocate_tensors()
        for detail, tensor in zip(interpreter.get_input_details(), self.tensors.values()):
            interpreter.set_tensor(detail["index"], tensor.numpy())
        interpreter.invoke()
        return self.compare([interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()], expected)

    def compare(self, actual: list[np.ndarray], expected: list[np.ndarray]) -> str:
        """Compare the results with those of the unfused form; return the largest difference. Raises AssertionError."""
        assert len(actual) == len(expected), f"{len(actual)} results, the unfused form has {len(expected)}"
        worst = 0.0
        for i, (a, b) in enumerate(zip(actual, expected)):
            kinds = [f"{array.dtype}{list(array.shape)}" for array in (a, b)]
            assert kinds[0] == kinds[1], f"result {i} is {kinds[0]}, unfused {kinds[1]}"
            if a.dtype.kind in "biuOSU":
                assert (a == b).all(), f"result {i} differs in {int((a != b).sum())} of {a.size} elements"
                continue
            wide = np.complex128 if a.dtype.kind == "c" else np.float64  # bfloat16 and similar dtypes have kind V
            x, y = a.astype(wide), b.astype(wide)
            same = np.isclose(x, y, *self.tolerances, equal_nan=True)
            assert same.all(), (
                f"result {i} differs in {int((~same).sum())} of {a.size} elements, by {_largest_difference(x, y):.3g}"
            )
            worst = max(worst, _largest_difference(x, y))
        return f"largest difference {worst:.3g}"


def _largest_difference(x: np.ndarray, y: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        difference = np.abs(x - y)
    return float(np.nanmax(difference, initial=0.0))


def _arrays(results: Any) -> list[np.ndarray]:
    several = results if isinstance(results, list | tuple) else [results]
    return [r.numpy() if isinstance(r, EagerTensor) else np.asarray(r) for r in several]
