"""Checking a pattern: the fused operator gives what the operators give that it stands for.

Lives here: `check_pattern`.  Not here: patterns (lite/convert/patterns/), other checks of the operator (checking.py).
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
from .checking import CheckError, Outcome


def check_pattern(
    pattern: Pattern, cases: Iterable[Any], *, custom_ops: Any = (), rtol: float = 1e-5, atol: float = 1e-6
) -> list[Outcome]:
    """Run a pattern's forms on each case, fused and not: eagerly, and converted, in the interpreter.

    cases: of each its tensors and attributes by name, as a dict; or its tensors alone, as a tuple. custom_ops: kernels
    as an Interpreter takes them, where the pattern has a name and no definition. rtol, atol: how far fused numbers may
    be from unfused ones; dtypes and shapes are equal.
    raises CheckError (an AssertionError) with every check that failed; InvalidArgumentError where there is no case
    """
    found: list[Outcome] = []
    for number, case in enumerate(cases):
        tensors, attrs = _taken_apart(pattern, case)
        for form in pattern.forms:
            label = f"case {number}, {getattr(form, '__name__', 'form')}"
            found += _Trial(pattern, form, tensors, attrs, custom_ops, (rtol, atol)).outcomes(label)
    if not found:
        raise ValueError(f"{pattern.name}: there is no case to check the pattern with")
    if any(o.state == "failed" for o in found):
        raise CheckError(pattern.name, found)
    return found


def _taken_apart(pattern: Pattern, case: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A case's tensors and attributes. Raises TypeError where they are not the pattern's."""
    given = dict(case) if isinstance(case, Mapping) else dict(zip(pattern.parameters, case, strict=True))
    attrs = {c.name: given.pop(c.name) for c in pattern.captures if c.name in given}
    if given.keys() != set(pattern.parameters):
        raise TypeError(f"{pattern.name}: a case has {', '.join(given)}; wanted {', '.join(pattern.parameters)}")
    return {name: dispatch.to_tensor(given[name], None) for name in pattern.parameters}, attrs


class _Trial:
    """One form on one case."""

    def __init__(
        self,
        pattern: Pattern,
        form: Form,
        tensors: dict[str, Any],
        attrs: dict[str, Any],
        custom_ops: Any,
        near: tuple[float, float],
    ) -> None:
        self.pattern, self.form, self.tensors, self.attrs, self.near = pattern, form, tensors, attrs, near
        self.custom_ops = [custom_ops, *([] if pattern.operator is None else [pattern.operator])]

    def outcomes(self, label: str) -> list[Outcome]:
        name = self.pattern.name
        wanted = _arrays(self.form(*self.tensors.values(), **self.attrs))
        found = []
        for what, run in (("called", self.called), ("converted", self.converted)):
            try:
                detail = run(wanted)
                found.append(
                    Outcome(name, f"{label}, {what}", "not tried" if detail.startswith("no ") else "ok", detail)
                )
            except AssertionError as error:
                found.append(Outcome(name, f"{label}, {what}", "failed", str(error)))
            except Exception as error:  # whatever the operator raises is what was found
                found.append(Outcome(name, f"{label}, {what}", "failed", f"{type(error).__name__}: {error}"))
        return found

    def called(self, wanted: list[np.ndarray]) -> str:
        """The operator, eagerly."""
        operator = self.pattern.operator
        if operator is None:
            return "no definition to call"
        return self.compare(_arrays(operator(**self.tensors, **self.pattern.attrs, **self.attrs)), wanted)

    def converted(self, wanted: list[np.ndarray]) -> str:
        """A model of the form, fused."""
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
        return self.compare([interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()], wanted)

    def compare(self, found: list[np.ndarray], wanted: list[np.ndarray]) -> str:
        """How far the results are from those of the unfused form. Raises AssertionError where that is too far."""
        assert len(found) == len(wanted), f"{len(found)} results, the unfused form has {len(wanted)}"
        worst = 0.0
        for i, (a, b) in enumerate(zip(found, wanted)):
            kinds = [f"{array.dtype}{list(array.shape)}" for array in (a, b)]
            assert kinds[0] == kinds[1], f"result {i} is {kinds[0]}, unfused {kinds[1]}"
            if a.dtype.kind in "biuOSU":
                assert (a == b).all(), f"result {i} differs in {int((a != b).sum())} of {a.size} elements"
                continue
            wide = np.complex128 if a.dtype.kind == "c" else np.float64  # bfloat16 and its kin are of kind V
            x, y = a.astype(wide), b.astype(wide)
            same = np.isclose(x, y, *self.near, equal_nan=True)
            assert same.all(), f"result {i} differs in {int((~same).sum())} of {a.size} elements, by {_most(x, y):.3g}"
            worst = max(worst, _most(x, y))
        return f"largest difference {worst:.3g}"


def _most(x: np.ndarray, y: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        apart = np.abs(x - y)
    return float(np.nanmax(apart, initial=0.0))


def _arrays(results: Any) -> list[np.ndarray]:
    several = results if isinstance(results, list | tuple) else [results]
    return [r.numpy() if isinstance(r, EagerTensor) else np.asarray(r) for r in several]
