"""`pattern`: a decorator for Python functions whose trace becomes one operator of the user's own.

    @lite.pattern(MyLayerNorm)
    def layer_norm(x, gamma, beta, *, epsilon):
        centred = x - ow.reduce_mean(x, -1, keepdims=True)
        variance = ow.reduce_mean(ow.square(centred), -1, keepdims=True)
        return centred * ow.math.rsqrt(variance + epsilon) * gamma + beta

    converter.patterns = [layer_norm]

Lives here: the decorator, declarations of a pattern.
Not here: captures and the check of templates (capture.py), matching (fusion.py), trials (testing/cases.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from types import GenericAlias
from typing import Any

from ....core.dtypes import DType, float32
from ....core.errors import InvalidArgumentError, OpError
from ....core.specs import TensorSpec
from ....eager.variable import Variable
from ....graph import Graph
from ....graph.matcher import Template
from ....ops.attributes import Check
from ....ops.definition import Operator
from ....tracing.function import Function
from ..errors import ConverterError
from ..freeze import freeze
from ..passes import merge, prepare
from .capture import Capture, InferFailed, check_template, stand_ins, template_of

Where = Callable[[Any], bool | str]
Form = Callable[..., Any]
Stage = Callable[[Graph], Graph]
_Templates = dict[Stage, Template]

STAGES: tuple[Stage, ...] = (merge, prepare)
"""Passes that run before patterns are matched, on the patterns' graphs, too: first on graphs as written, which still
compute values from weights; then with constants folded, so that a model's numbers are constants."""


def pattern(
    operator: Operator | str,
    *,
    attrs: Mapping[str, Any] | None = None,
    where: Where | None = None,
    samples: Mapping[str, Sequence[Any]] | None = None,
) -> Callable[[Form], Pattern]:
    """Declare that a Python function computes one operator.

    Converters with the pattern replace subgraphs of this form by `operator`.

    operator: an @ow.operator class, whose inputs have the names of the function's parameters; or the name of a custom
    operator, which takes them in order. A parameter matches any tensor with the dtype and shape of the TensorSpec that
    annotates it. Without annotation it matches every shape, and all parameters have one dtype: float32, or another that
    the operator's inputs accept and the function can be traced in; for a custom operator's name, float32. Keyword-only
    parameters are attributes, whose values are taken from the matched subgraph.
    attrs: fixed attributes. where: a predicate of each match, called with the parameters (objects with `spec`, `dtype`,
    `shape` and `constant`) and the attributes by value; False, or a reason as text, declines the match.
    samples: by attribute, two or more values to trace the function with, if none can be derived from its type.

    Calling the pattern computes the unfused form. `also` adds an alternative form.
    raises InvalidArgumentError for a pattern that no model can match, with attributes that do not occur in it, or whose
    operator has other outputs than the function; errors of tracing the function
    """
    if not isinstance(operator, Operator) and not (isinstance(operator, str) and operator):
        raise InvalidArgumentError(
            what="a pattern is of an operator",
            found=repr(operator),
            wanted="an @ow.operator class, or a custom operator's name",
            do='@lite.pattern("MyLayerNorm")',
        )

    def pattern_of(function: Form) -> Pattern:
        return Pattern(operator, function, dict(attrs or {}), where, dict(samples or {}))

    return pattern_of


class Pattern:
    """A subgraph pattern with the fused operator that replaces its matches; see `pattern`.

    name: the fused operator's; operator: its definition, None for a custom operator's name; parameters: the names of
    its tensors; captures: attributes taken from matches; attrs: fixed attributes; forms: the functions.
    """

    def __init__(
        self,
        operator: Operator | str,
        function: Form,
        attrs: dict[str, Any],
        where: Where | None,
        samples: dict[str, Sequence[Any]],
    ) -> None:
        self.operator = operator if isinstance(operator, Operator) else None
        self.name: str = operator.name if isinstance(operator, Operator) else operator
        self.attrs, self.where = attrs, where
        self.forms: list[Form] = []
        self._templates: list[dict[DType | None, _Templates | None]] = []  # for each form, by dtype; None: the first
        self._samples = samples
        parameters, captures = self._declared(function)
        self.parameters, self.captures = tuple(parameters), captures
        unknown = [n for n in samples if n not in {c.name for c in captures}]
        if unknown:
            raise self.wrong(
                f"samples are given for {unknown[0]!r}",
                found=unknown[0],
                wanted=f"keyword-only parameters: {', '.join(c.name for c in captures) or 'none'}",
            )
        self._add(function, parameters)
        functools.update_wrapper(self, function, updated=())

    def also(self, function: Form) -> Pattern:
        """Add an alternative form, with the parameter and attribute names of the first.

        >>> @layer_norm.also
        ... def with_moments(x, gamma, beta, *, epsilon): ...
        """
        parameters, captures = self._declared(function)
        for what, mine, others in (
            ("parameters", self.parameters, tuple(parameters)),
            ("attributes", {c.name for c in self.captures}, {c.name for c in captures}),
        ):
            if mine != others:
                raise self.wrong(
                    f"{getattr(function, '__name__', 'the function')} has other {what} than the pattern",
                    found=", ".join(others) or "none",
                    wanted=", ".join(mine) or "none",
                )
        self._add(function, parameters)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the unfused form, by the first function."""
        return self.forms[0](*args, **kwargs)

    def __repr__(self) -> str:
        return f"<pattern of {self.name}({', '.join((*self.parameters, *(c.name for c in self.captures)))})>"

    def templates(self, stage: Stage, dtypes: Set[DType]) -> Iterator[tuple[Template, bool]]:
        """Yield the templates to match in a graph with these dtypes, and whether each has the declared dtypes."""
        for form, by_dtype in zip(self.forms, self._templates):
            declared = by_dtype[None]
            assert declared is not None
            yield declared[stage], True
            parameters = None
            for dtype in sorted(dtypes, key=lambda d: d.name):
                if dtype not in by_dtype:
                    parameters = parameters or self._declared(form)[0]
                    by_dtype[dtype] = self._in_dtype(form, parameters, dtype)
                if (in_dtype := by_dtype[dtype]) is not None:
                    yield in_dtype[stage], False

    # ---- reading a function --------------------------------------------------------------------------------------

    def wrong(self, what: str, **parts: Any) -> InvalidArgumentError:
        """Return an error about a pattern."""
        return InvalidArgumentError(op=self.name, what=f"pattern: {what}", **parts)

    def _declared(self, function: Form) -> tuple[dict[str, TensorSpec], list[Capture]]:
        """Return the declarations of a function's parameters: tensors with their types, and attributes."""
        try:
            parameters = inspect.signature(function, eval_str=True).parameters.values()
        except NameError as error:
            raise self.wrong(
                f"an annotation cannot be read: {error}", do="annotate with what the module has"
            ) from error
        odd = [p for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        if odd:
            raise self.wrong(f"{odd[0]} stands for any number of parameters", wanted="a parameter for each tensor")
        tensors = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
        if not tensors:
            raise self.wrong("the function takes no tensor", do="(x, ..., *, attribute)")
        captures = [self._capture(p) for p in parameters if p.kind is p.KEYWORD_ONLY]
        twice = [c.name for c in captures if c.name in self.attrs]
        if twice:
            raise self.wrong(f"{twice[0]} is given by attrs and by the function's parameter", wanted="one of them")
        return {p.name: self._spec(p) for p in tensors}, captures

    def _spec(self, parameter: inspect.Parameter) -> TensorSpec:
        declared = None
        if self.operator is not None:
            single = {i.name: i for i in self.operator.inputs if not i.repeated}
            declared = single.get(parameter.name)
            if declared is None:
                raise self.wrong(
                    f"the operator has no input {parameter.name!r} of one tensor",
                    wanted=f"parameters among {', '.join(single) or 'none'}",
                )
        annotated = parameter.annotation
        if isinstance(annotated, TensorSpec):
            return TensorSpec(annotated.shape, annotated.dtype, name=parameter.name)
        dtypes = (float32,) if declared is None else declared.dtypes
        return TensorSpec(None, float32 if float32 in dtypes else dtypes[0], name=parameter.name)

    def _capture(self, parameter: inspect.Parameter) -> Capture:
        name, default, annotated = parameter.name, parameter.default, parameter.annotation
        check: Check | None = None
        kind: Any = float
        if annotated is not inspect.Parameter.empty:
            kind = [*annotated.__args__] if isinstance(annotated, GenericAlias) else annotated
        elif default is not inspect.Parameter.empty and default is not None:
            kind = type(default)
        if self.operator is not None:
            attr = self.operator.attr_defs.get(name)
            if attr is None:
                raise self.wrong(
                    f"the operator has no attribute {name!r}",
                    wanted=f"keyword-only parameters among {', '.join(self.operator.attr_defs) or 'none'}",
                )
            kind, check = attr.type, attr.check
        samples = self._samples.get(name)
        if samples is not None and (not isinstance(samples, list | tuple) or len(samples) < 2):
            raise self.wrong(f"samples of {name} are not two values or more", found=repr(samples))
        form = check.form if check is not None else ()
        choices = [tuple(v) if isinstance(v, list) else v for v in samples or ()] or (
            form[1:] if form[:1] == ("one_of",) else ()
        )
        values = stand_ins(kind, check.holds if check is not None else lambda _: True, choices)
        if len(values) < 2:
            raise self.wrong(f"no values can be made up for {name}", do=f'samples={{"{name}": (one, another)}}')
        return Capture(name, kind, values)

    def _add(self, function: Form, specs: Mapping[str, TensorSpec]) -> None:
        self._templates.append({None: self._templates_of(function, specs)})
        self.forms.append(function)

    def _templates_of(self, function: Form, specs: Mapping[str, TensorSpec]) -> _Templates:
        traced = functools.lru_cache(lambda given: self._traced(function, specs, dict(given)))

        def trace(stage: Stage, values: Mapping[str, Any]) -> Graph:
            return stage(traced(tuple(values.items())))

        found = {s: template_of(self.name, functools.partial(trace, s), self.captures) for s in STAGES}
        for template in found.values():
            check_template(self, template)
        return found

    def _in_dtype(self, function: Form, specs: Mapping[str, TensorSpec], dtype: DType) -> _Templates | None:
        """Return the templates with undeclared parameters of a dtype; None if the operators do not take it."""
        inputs = {} if self.operator is None else {i.name: i for i in self.operator.inputs}
        fixed = {
            p.name
            for p in inspect.signature(function, eval_str=True).parameters.values()
            if isinstance(p.annotation, TensorSpec)
        }
        others = {
            name: TensorSpec(spec.shape, dtype, name=name)
            for name, spec in specs.items()
            if name in inputs and name not in fixed and dtype in inputs[name].dtypes
        }
        if all(others[name].dtype is specs[name].dtype for name in others):
            return None
        try:
            return self._templates_of(function, {**specs, **others})
        except Exception:  # the user's function may raise anything for a dtype that it does not support
            return None

    def _traced(self, function: Form, specs: Mapping[str, TensorSpec], values: Mapping[str, Any]) -> Graph:
        """Trace the function as a converter would."""
        concrete = Function(function).get_concrete_function(*specs.values(), **values)
        held = [x.name for x in concrete.captured_inputs if isinstance(x, Variable)]
        if held:
            raise self.wrong(f"it reads the variable {held[0]}, which may have any value", do="make it a parameter")
        if isinstance(concrete.structured_outputs, Mapping):
            raise self.wrong("the function returns a dict", wanted="a tensor, or a tuple in the order of the outputs")
        try:
            return freeze([concrete]).graphs[0]
        except ConverterError as error:
            raise self.wrong(error.message) from error

    def specs_of(self, attrs: Mapping[str, Any], values: Mapping[str, Any]) -> list[TensorSpec]:
        """Return the types of the operator's outputs for these operands, without intermediate outputs.

        raises InvalidArgumentError as the operator does, `InferFailed` where its rule raises something else
        """
        operator = self.operator
        assert operator is not None
        if any(o.repeated for o in operator.outputs):
            raise self.wrong("the operator has an output of any number of tensors", wanted="one output for each result")
        try:
            bound = operator.bind(dict(attrs))
            inferred = operator.infer(bound, [values.get(i.name) for i in operator.inputs])
        except OpError as error:
            cause = error.__cause__
            if cause is not None and not isinstance(cause, OpError):  # raised by the user's rule
                text = f"{type(cause).__name__}: {cause}"
                raise InferFailed(op=self.name, what=f"pattern: the operator's `infer` raises {text}") from cause
            raise self.wrong(f"the operator does not take what the pattern gives it: {error.message}") from error
        return [spec for o, spec in zip(operator.outputs, inferred) if not o.intermediate]
