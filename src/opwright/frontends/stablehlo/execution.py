"""Execution of StableHLO modules by rules: operations in order, regions, calls of functions.

Lives here: `RULES`, the table; `ModuleContext`, which rules receive; `load_rules`; `calls`, what needs a rule.
Not here: rules (rules/), reading (text.py, bytecode.py).

A rule of StableHLO says which primitive of JAX an operation is, with which parameters; `PRIMITIVES` has its rule. That
receives this context in place of a `JaxprContext`, and regions in place of jaxprs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError, OpError
from ...core.lazy_imports import import_module
from ..importing import RuleTable, is_known, tensor_of
from ..jax import execution as jaxprs
from ..jax.operands import broadcast, dims
from ..missing_operators import ForeignCall, MissingOperators, spec_text
from .module import MAX_DEPTH, HloFunction, HloModule, HloValue, Operation, Region, TensorType

RULES = RuleTable("stablehlo")
PRIMITIVES = jaxprs.RULES
FAMILIES = (
    "arrays",
    "collectives",
    "control_flow",
    "custom_calls",
    "elementwise",
    "indexing",
    "linear_algebra",
    "reduction",
    "sorting",
)
SCALAR_MOVES = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose"})
"""Operations that leave a scalar as it is, and so each element of what a region of scalars is executed on."""


def load_rules() -> RuleTable:
    """Return the table, complete."""
    jaxprs.load_rules()
    for family in FAMILIES:
        import_module(f".rules.{family}", __package__)
    return RULES


def primitive(name: str, context: ModuleContext, inputs: Sequence[Any], **params: Any) -> Any:
    """Return what a primitive of JAX computes, by its rule."""
    rule: Any = PRIMITIVES.find(name)
    return rule(context, inputs, params)


def window_numbers(attributes: Mapping[str, Any], name: str, rank: int) -> list[int]:
    """Return the numbers of an attribute of windows by axis, ones without it."""
    values = attributes.get(name)
    return [1] * rank if values is None else [int(v) for v in np.broadcast_to(values, [rank])]


def padding_pairs(padding: Any, rank: int) -> list[tuple[int, int]]:
    """Return an attribute of paddings as (before, after) by axis, zeros without it."""
    return [(0, 0)] * rank if padding is None else [(int(a), int(b)) for a, b in np.reshape(padding, [-1, 2])]


def operator_name(operation: Operation) -> str:
    """Return the name under which a rule of an operation stands: the target of a custom call, a composite's name."""
    if operation.name == "stablehlo.custom_call":
        return str(operation.attributes.get("call_target_name", ""))
    return operation.name


def calls(module: HloModule, function: HloFunction, custom: Mapping[str, Any] | None) -> Iterator[ForeignCall]:
    """Yield the calls that need a rule, of a function and of all functions that it calls.

    raises InvalidArgumentError for functions that call themselves or are absent
    """
    done: set[str] = set()

    def of_region(region: Region, path: tuple[str, ...]) -> Iterator[ForeignCall]:
        for operation in region.operations:
            callee = _callee(operation, custom)
            if callee is not None:
                yield from of_function(callee, path)
            elif operation.name != "stablehlo.composite":
                yield _foreign_call(module, operation)
            for inner in operation.regions:
                yield from of_region(inner, path)

    def of_function(name: str, path: tuple[str, ...]) -> Iterator[ForeignCall]:
        if name not in module.functions:
            raise InvalidArgumentError(
                op="from_stablehlo",
                what="a function is called that the module does not have",
                found=f"@{name}",
                wanted=", ".join(f"@{n}" for n in module.functions),
            )
        if name in path or len(path) > MAX_DEPTH:
            raise InvalidArgumentError(op="from_stablehlo", what="a function calls itself", found=f"@{name}")
        if name not in done:
            yield from of_region(module.functions[name].body, (*path, name))
            done.add(name)

    yield from of_function(function.name, ())


def _callee(operation: Operation, custom: Mapping[str, Any] | None) -> str | None:
    """Return the function that an operation calls: calls, and composites that no rule computes."""
    if operation.name == "func.call":
        return str(operation.attributes.get("callee"))
    if operation.name == "stablehlo.composite":
        name = str(operation.attributes.get("name"))
        return None if RULES.find(name, custom) is not None else str(operation.attributes.get("decomposition"))
    return None


def _foreign_call(module: HloModule, operation: Operation) -> ForeignCall:
    name, file, line = module.place(operation.location)
    label = " ".join(p for p in (name, f"({file}:{line})" if file else f"(line {operation.line})") if p)
    plain = {k: v for k, v in operation.attributes.items() if isinstance(v, (bool, int, float, str))}
    plain.pop("call_target_name", None)
    inputs = tuple((f"x{i}", type_text(v.type)) for i, v in enumerate(operation.operands))
    return ForeignCall(operator_name(operation), label, inputs, plain, max(1, len(operation.results)))


def type_text(kind: Any) -> str:
    """Return a type as errors show it."""
    tensor = isinstance(kind, TensorType) and kind.dtype is not None
    return spec_text(kind.dtype, kind.shape) if tensor else "token"


class ModuleContext:
    """A module while it is executed; what rules receive.

    custom: the user's rules. operation: the current one. lifted: the shape of which each element is one execution of
    the current region of scalars.
    """

    def __init__(self, module: HloModule, custom: Mapping[str, Any] | None = None) -> None:
        self.module, self.custom = module, dict(custom or {})
        self.values: dict[HloValue, Any] = {}
        self.operation: Any = None
        self.label = ""
        self.lifted: tuple[int, ...] = ()
        self.sizes: tuple[int, ...] | None = None
        self.prefix = ""

    # ---- what rules ask ------------------------------------------------------------------------------------------

    def value(self, value: HloValue) -> Any:
        """Return the array or tensor of a value. Raises InvalidArgumentError for one that nothing executed defines."""
        if value not in self.values:
            raise InvalidArgumentError(op="from_stablehlo", what="a region reads a value of another function or region")
        return self.values[value]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the current operation's first result; sizes that its type leaves open follow from operands."""
        if self.sizes is not None:
            return self.sizes
        declared = self.operation.results[0].type.shape
        if None in declared:
            shapes = [dims(self.value(v)) for v in self.operation.operands]
            declared = np.broadcast_shapes(*(s for s in shapes if len(s) == len(declared)))
        return (*self.lifted, *declared)

    @property
    def dtype(self) -> Any:
        """The dtype of the current operation's first result."""
        return self.operation.results[0].type.dtype

    @property
    def outputs(self) -> int:
        """How many results the current operation has."""
        return len(self.operation.results)

    def run(self, region: Region, inputs: Sequence[Any]) -> list[Any]:
        """Execute a region of the current operation on values; return what it returns."""
        before = self.operation, self.label, self.sizes
        self.sizes = None
        try:
            return self.execute(region, inputs)
        finally:
            self.operation, self.label, self.sizes = before

    def mapped(self, region: Region, inputs: Sequence[Any], shape: Sequence[int]) -> list[Any]:
        """Execute a region of scalars for each element of inputs of one shape; return arrays of its results."""
        before, self.lifted = self.lifted, (*shape, *self.lifted)
        try:
            results = self.run(region, inputs)
            return [broadcast(tensor_of(v), self.lifted) for v in results]
        finally:
            self.lifted = before

    def call(self, name: str, inputs: Sequence[Any]) -> list[Any]:
        """Execute a function of the module."""
        before, self.prefix = self.prefix, self.label
        try:
            return self.run(self.module.functions[name].body, inputs)
        finally:
            self.prefix = before

    # ---- execution -----------------------------------------------------------------------------------------------

    def execute(self, region: Region, inputs: Sequence[Any]) -> list[Any]:
        """Execute the operations of a region in order; return what it returns."""
        if len(region.arguments) != len(inputs):
            raise InvalidArgumentError(
                op="from_stablehlo",
                what="a region takes another number of inputs",
                found=len(inputs),
                wanted=len(region.arguments),
            )
        self.values.update(zip(region.arguments, inputs))
        for operation in region.operations:
            results = self._execute(operation)
            if len(results) != len(operation.results):
                raise InvalidArgumentError(
                    op=operation.name, what="the rule returned another number of results", found=len(results)
                )
            self.values.update(zip(operation.results, results))
        results = [self.value(v) for v in region.outputs]
        for operation in region.operations:  # arrays computed at import are not kept
            for value in operation.results:
                self.values.pop(value, None)
        return results

    def _execute(self, operation: Operation) -> list[Any]:
        name, file, line = self.module.place(operation.location)
        self.operation, self.label, self.sizes = operation, scope_of(self.prefix, name), None
        inputs = [self.value(v) for v in operation.operands]
        call = functools.partial(self._by_rule, operation, inputs)
        try:
            return list(call() if not file else jaxprs.at_line(file, line)(call))
        except MissingOperators:
            raise
        except OpError as error:
            if error.at:
                raise
            at = f"{file}:{line}" if file else f"line {operation.line}" if operation.line else None
            raise type(error)(op=operation.name, at=at, what=str(error)) from error

    def _by_rule(self, operation: Operation, inputs: list[Any]) -> list[Any]:
        callee = _callee(operation, self.custom)
        if callee is not None:
            return self.call(callee, inputs)
        name = operator_name(operation)
        if operation.name == "stablehlo.composite":
            name = str(operation.attributes["name"])
        if self.lifted and operation.name in SCALAR_MOVES and not operation.results[0].type.shape:
            return inputs
        if self.lifted and any(r.type.shape for r in operation.results):
            raise InvalidArgumentError(op=operation.name, what="a region of scalars computes a tensor")
        captured = [self.value(v) for region in operation.regions for v in region.captures()]
        attributes = operation.attributes
        if name in self.custom or operation.name == "stablehlo.composite":
            attributes = {k: v for k, v in attributes.items() if k not in CALL_ATTRIBUTES}
            more = operation.attributes.get("composite_attributes") or {}
            if not isinstance(more, dict):
                raise InvalidArgumentError(what="composite_attributes are not a dictionary", found=type(more).__name__)
            attributes |= more
        return RULES.apply(
            name, self, inputs, attributes, node=self.label, custom=self.custom, traced=not is_known(captured)
        )


CALL_ATTRIBUTES = frozenset(
    {
        "api_version",
        "call_target_name",
        "called_computations",
        "composite_attributes",
        "decomposition",
        "name",
        "operand_layouts",
        "output_operand_aliases",
        "result_layouts",
        "version",
    }
)
"""Attributes of custom calls and composites that say how they are called, not what they compute."""


def scope_of(prefix: str, name: str) -> str:
    """Return the scope of an operation named "jit(f)/Dense_0/dot_general": "Dense_0"."""
    parts = [p for p in name.split("/")[:-1] if p and "(" not in p and ")" not in p]
    return "/".join(p for p in (prefix, *parts) if p)
