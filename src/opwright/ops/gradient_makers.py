"""Declarations of gradients, and the values of a call that a gradient needs.

Lives here: `DefaultGradient` and `SingleGradient`, for gradients that are operators of their own; `maker_of`, the maker
of every kind of declaration; `GradientNeeds`; `reads`, the analysis of a gradient rule's bytecode.
Not here: execution of gradients (autodiff.py).

In the body of an `@operator` class

    def gradient(op, dy): ...             "custom": written in operators
    gradient = None                       "empty": differentiation ends here, silently
    (nothing)                             "none": differentiation is an error that advises ow.stop_gradient
    gradient = DefaultGradient()          the operator <Name>Grad, of all inputs, outputs and gradients of outputs
    gradient = SingleGradient("MyGrad")   that operator, of the inputs that it declares

The inputs of a gradient operator have the names of the forward operator's inputs and outputs, and `<output>_grad`; its
outputs are `<input>_grad`. Values that a gradient needs stay alive from forward to backward: fewer needs, less memory.

A rule is a Python function of the call and the arriving gradients. After each load of the call, the analysis expects an
attribute: an input or output that is read, an attribute of the operator, or a helper of its class, which is analysed
too; or the call is the first argument of a function, which is also analysed. Any other use of the call, and any unknown
construct, counts as reading everything: a wrong answer would cause a wrong gradient.
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import NotFoundError, SignatureError
from . import dispatch, registry

if TYPE_CHECKING:
    from .definition import Operator

BY_SHAPE = frozenset({"shape", "dtype", "spec", "rank", "ndim", "get_shape"})  # of a tensor, without its elements
_CALL_ATTRIBUTES = frozenset({"attrs", "needs_gradient", "operator"})  # of a call, besides the attributes
_REFLECTION = frozenset({"locals", "vars", "eval", "exec", "globals", "sys", "inspect"})
_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_CLOSURE")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


class _Unanalyzable(Exception):
    """Raised for a use of the call that the analysis does not follow."""


def reads(
    rule: Any, parts: Collection[str], attrs: Collection[str], methods: Mapping[str, Any]
) -> tuple[set[str], set[str]] | None:
    """Return the inputs and outputs that a rule reads by value, and those of which it reads only shape or dtype.

    rule: called with the call first. parts: names of inputs and outputs. methods: helper functions of the class.
    None if the rule may read anything.
    """
    reader = _Reader(frozenset(parts), frozenset(attrs) | _CALL_ATTRIBUTES, methods)
    try:
        reader.analyze(rule)
    except _Unanalyzable:
        return None
    return reader.values, reader.shapes - reader.values


class _Reader:
    def __init__(self, parts: frozenset[str], other_names: frozenset[str], methods: Mapping[str, Any]) -> None:
        self.parts, self.other_names, self.methods = parts, other_names, methods
        self.values: set[str] = set()
        self.shapes: set[str] = set()
        self._seen: set[types.CodeType] = set()

    def analyze(self, function: Any) -> None:
        """Collect the names that a function reads from its first argument."""
        if not isinstance(function, types.FunctionType) or not function.__code__.co_argcount:
            raise _Unanalyzable
        code = function.__code__
        if code not in self._seen:
            self._seen.add(code)
            self._walk(code, code.co_varnames[0], function)

    def _walk(self, code: types.CodeType, call: str, function: types.FunctionType) -> None:
        steps = list(_steps(code))
        shared = code.co_cellvars + code.co_freevars
        for i, (step, name, arg) in enumerate(steps):
            if name.startswith(("STORE_", "DELETE_")) and arg == call:
                raise _Unanalyzable
            if name in ("LOAD_GLOBAL", "LOAD_NAME") and arg in _REFLECTION:
                raise _Unanalyzable
            if not name.startswith(_VARIABLES) or arg != call:
                continue
            if name == "LOAD_CLOSURE" or (name.startswith("LOAD_FAST") and call in shared):
                continue  # captured by an inner function, which is analysed below
            following = steps[i + 1]
            if following[1] in ("LOAD_ATTR", "LOAD_METHOD"):
                self._attribute(following[2], steps[i + 2])
            elif step is not None and _is_first_argument(steps, i, code):
                self.analyze(_callee(steps, i, function))
            else:
                raise _Unanalyzable
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType) and call in inner.co_freevars:
                self._walk(inner, call, function)

    def _attribute(self, name: str, following: tuple[Any, str, Any]) -> None:
        if name in self.parts:
            alone = following[1] in ("LOAD_ATTR", "LOAD_METHOD") and following[2] in BY_SHAPE
            (self.shapes if alone else self.values).add(name)
        elif name in self.methods:
            method = self.methods[name]
            if isinstance(method, property):
                method = method.fget
            if isinstance(method, types.FunctionType):
                self.analyze(method)
            elif hasattr(type(method), "__get__") and not isinstance(method, staticmethod):
                raise _Unanalyzable
        elif name not in self.other_names:
            raise _Unanalyzable


def _steps(code: types.CodeType) -> Iterator[tuple[Any, str, Any]]:
    """Yield instructions as (instruction, name, argument); an instruction for two variables as two."""
    for step in dis.get_instructions(code):
        name, arg = step.opname, step.argval
        if name in ("CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN"):  # no effect
            continue
        if isinstance(arg, tuple) and "_FAST" in name:
            first, second = (
                ("STORE_FAST", "STORE_FAST")
                if name.count("STORE") == 2
                else ("STORE_FAST", "LOAD_FAST")
                if "STORE" in name
                else ("LOAD_FAST", "LOAD_FAST")
            )
            yield step, first, arg[0]
            yield step, second, arg[1]
        else:
            yield step, name, arg
    yield None, "END", None
    yield None, "END", None


def _is_first_argument(steps: Sequence[tuple[Any, str, Any]], i: int, code: types.CodeType) -> bool:
    """Return whether the value loaded at step i is the first positional argument of a call, without branches."""
    depth = 1  # values on the stack, from this one on
    names: Any = ()  # arguments of the next call that are given by name
    for index in range(i + 1, len(steps)):
        step, name, _ = steps[index]
        if step is None:  # the end
            return False
        if step.opcode in _JUMPS or name in ("YIELD_VALUE", "SEND", "RETURN_GENERATOR"):
            return False
        if name == "KW_NAMES":
            names = code.co_consts[step.arg]
        else:
            if name in ("PRECALL", "CALL_KW") or (name == "CALL" and sys.version_info >= (3, 12)):
                if name == "CALL_KW":  # the names lie on top
                    names = steps[index - 1][2]
                    if not isinstance(names, tuple):
                        return False
                position = depth - (name == "CALL_KW")
                if step.arg >= position:
                    result: bool = step.arg == position and len(names) < step.arg
                    return result
            if name == "CALL":
                names = ()
            if name.startswith((*_VARIABLES, "STORE_FAST")):  # pairs were split into two steps
                depth += -1 if name.startswith("STORE") else 1
            else:
                depth += dis.stack_effect(step.opcode, step.arg, jump=False)
        if depth < 1:
            return False
    return False


def _callee(steps: Sequence[tuple[Any, str, Any]], i: int, function: types.FunctionType) -> object:
    """Return the function loaded just before step i for a call. Raises _Unanalyzable if it is unknown."""
    index = i - 1
    ready = False  # whether what is loaded is going to be called
    if index >= 0 and steps[index][1] == "PUSH_NULL":
        ready, index = True, index - 1
    path: list[str] = []
    while index >= 0:
        step, name, arg = steps[index]
        if step is None:
            break
        flagged = step.arg is not None and bool(step.arg & 1)
        if name in ("LOAD_METHOD", "LOAD_ATTR") and (
            path or ready or name == "LOAD_METHOD" or (flagged and sys.version_info >= (3, 12))
        ):
            ready = True
            path.append(arg)
            index -= 1
            continue
        before = steps[index - 1][1] if index else ""
        ready = ready or before == "PUSH_NULL" or (name == "LOAD_GLOBAL" and flagged)
        if not ready:
            break
        if name == "LOAD_GLOBAL":
            value = function.__globals__.get(arg, None)
        elif name == "LOAD_DEREF" and arg in function.__code__.co_freevars:
            cell = (function.__closure__ or ())[function.__code__.co_freevars.index(arg)]
            try:
                value = cell.cell_contents
            except ValueError:
                break
        else:
            break
        for part in reversed(path):
            if not isinstance(value, types.ModuleType):
                raise _Unanalyzable
            value = getattr(value, part, None)
        return value
    raise _Unanalyzable


SUFFIX = "_grad"
VALUE, SHAPE, NOTHING = "value", "shape", "nothing"


@dataclass(frozen=True)
class GradientNeeds:
    """The needs of a gradient by input and output of the call: "value", "shape" or "nothing".

    kept_inputs, kept_outputs: whether each is needed by value, in the order of the definition; None if all are.
    keeps_no_input: whether no input is needed by value.
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs"):
            mask = tuple(need == VALUE for need in getattr(self, name).values())
            object.__setattr__(self, f"kept_{name}", None if all(mask) else mask)
        object.__setattr__(self, "keeps_no_input", not any(need == VALUE for need in self.inputs.values()))

    if TYPE_CHECKING:  # no fields: they follow from the others

        @property
        def kept_inputs(self) -> tuple[bool, ...] | None: ...
        @property
        def kept_outputs(self) -> tuple[bool, ...] | None: ...
        @property
        def keeps_no_input(self) -> bool: ...

    def __str__(self) -> str:
        needs = {**self.inputs, **self.outputs}
        return ", ".join(f"{name}: {need}" for name, need in needs.items())


class GradientMaker:
    """A declaration of a gradient. Prints as a word: none, empty, custom, default, single."""

    word = "custom"

    def __init__(self, operator: Any = None) -> None:
        self._operator = operator

    def rule(self, forward: Operator) -> Callable[..., Any] | None:
        """Return the gradient as a rule, a function of the call and the gradients of its outputs; None without one."""
        return None  # subclasses return a function

    def __str__(self) -> str:
        return self.word

    def __repr__(self) -> str:
        name = self._operator if isinstance(self._operator, str) else getattr(self._operator, "name", None)
        return f"{type(self).__name__}({'' if name is None else repr(name)})"

    def __eq__(self, other: object) -> bool:
        return self.word == other if isinstance(other, str) else self is other

    def __hash__(self) -> int:
        return hash(self.word)


class _ByOperator(GradientMaker):
    """A gradient by operator. operator: the gradient operator, or its name, resolved at the first use."""

    def operator(self, forward: Operator) -> Operator:
        """Return the gradient operator of `forward`, checked for compatibility.

        raises NotFoundError where there is none, SignatureError naming both and the slot that does not fit
        """
        name = self._operator if self._operator is not None else f"{forward.name}Grad"
        if isinstance(name, str):
            try:
                gradient_operator = registry.get(name)
            except KeyError:
                raise NotFoundError(
                    op=forward.name,
                    what=f"its gradient operator {name!r} is not defined",
                    wanted=f"an operator with the inputs {', '.join(self.expected(forward))}",
                    do=f'define {name}, or give another: {type(self).__name__}("...")',
                ) from None
        else:
            gradient_operator = registry.operator_of(name)
        self._check(forward, gradient_operator)
        result: Operator = gradient_operator
        return result

    def expected(self, forward: Operator) -> dict[str, Any]:
        """Return the possible inputs of a gradient operator by name: inputs, outputs and gradients of outputs."""
        slots: dict[str, Any] = {i.name: i for i in forward.inputs} | {o.name: o for o in forward.outputs}
        slots.update((output.name + SUFFIX, output) for output in forward.outputs)
        return slots

    def _check(self, forward: Operator, backward: Operator) -> None:
        slots = self.expected(forward)

        def fail(what: str, wanted: str) -> SignatureError:
            return SignatureError(
                op=forward.name,
                what=f"its gradient operator {backward.name} does not fit: {what}",
                found=backward.signature(),
                wanted=wanted,
            )

        for slot in backward.inputs:
            part = slots.get(slot.name)
            if part is None:
                raise fail(
                    f"its input {slot.name!r} is no input, output or gradient of an output of {forward.name}",
                    f"among {', '.join(slots)}",
                )
            if slot.repeated != part.repeated:
                raise fail(
                    f"its input {slot.name!r} is {'' if slot.repeated else 'not '}repeated",
                    f"as in {forward.name}, where {part.name!r} is{'' if part.repeated else ' not'}",
                )
            if getattr(part, "optional", False) and not slot.optional:
                raise fail(
                    f"its input {slot.name!r} is required",
                    f"optional=True: {forward.name} may be called without {slot.name!r}",
                )
        for result in backward.outputs:
            source = next((i for i in forward.inputs if i.name + SUFFIX == result.name), None)
            if source is None and not result.intermediate:
                raise fail(
                    f"its output {result.name!r} is the gradient of no input of {forward.name}",
                    f"among {', '.join(i.name + SUFFIX for i in forward.inputs)}",
                )
            if source is not None and source.repeated != result.repeated:
                raise fail(
                    f"its output {result.name!r} is {'' if result.repeated else 'not '}repeated",
                    f"as {source.name!r} of {forward.name} is{'' if source.repeated else ' not'}",
                )
        for attr in backward.attr_defs.values():
            own = forward.attr_defs.get(attr.name)
            if own is None and attr.required:
                raise fail(
                    f"its attribute {attr.name!r} is required, and {forward.name} has none of this name",
                    "a default, or the same attribute there",
                )
            if own is not None and own.type_name() != attr.type_name():
                raise fail(f"its attribute {attr.name!r} is {attr.type_name()}", f"{own.type_name()}, as there")
        missing = self._missing(forward, backward)
        if missing:
            raise fail(f"it does not take {missing[0]!r}", f"the inputs {', '.join(slots)}, or SingleGradient")

    def _missing(self, forward: Operator, backward: Operator) -> Sequence[str]:
        return ()

    def rule(self, forward: Operator) -> Callable[..., Any]:
        """Return a function that calls the gradient operator."""
        resolved: list[Operator] = []

        def gradient(call: Any, *dys: Any) -> object:
            if not resolved:
                resolved.append(self.operator(forward))
            backward = resolved[0]
            arriving = {name + SUFFIX: dy for name, dy in zip(forward.output_names, dys)}
            inputs = [arriving[n] if n in arriving else getattr(call, n) for n in backward.input_names]
            attrs = {n: getattr(call, n) for n in backward.attr_defs if n in forward.attr_defs}
            flat = dispatch.call(backward, inputs, backward.bind(attrs))
            shown = [o.name for o in backward.outputs if not o.intermediate]
            results = dict(zip(shown, flat if len(shown) > 1 else [flat]))
            grads = tuple(results.get(name + SUFFIX) for name in forward.input_names)
            return grads[0] if len(grads) == 1 and forward.inputs[0].repeated else grads

        return gradient

    def reads(self, forward: Operator) -> tuple[set[str], set[str]]:
        """Return the inputs and outputs that the gradient operator takes, by value and by shape."""
        backward = self.operator(forward)
        read = {n for n in backward.input_names if n in forward.input_names or n in forward.output_names}
        by_shape = read & set(backward.shape_only)
        return read - by_shape, by_shape


class DefaultGradient(_ByOperator):
    """The gradient is an operator that takes every input, every output and the gradient of every output.

    operator: the gradient operator, or its name; by default the operator's name with `Grad`. Its inputs have the
    forward names: `x`, `y`, and `y_grad` for the gradient that arrives at `y`; its outputs are `x_grad`. Inputs without
    such an output get no gradient. Attributes that both declare are passed on. All values are stored from forward to
    backward, except inputs that the gradient operator declares `shape_only` or the operator itself `no_need_buffer`.
    raises NotFoundError or SignatureError, at the first use, where there is none or a slot does not fit
    """

    word = "default"

    def _missing(self, forward: Operator, backward: Operator) -> Sequence[str]:
        from .autodiff import is_trainable

        return [
            name
            for name, part in self.expected(forward).items()
            if name not in backward.input_names
            and not (name.endswith(SUFFIX) and getattr(part, "dtype", None) and not is_trainable(part.dtype))
        ]


class SingleGradient(_ByOperator):
    """The gradient is one operator, which takes any of the inputs, outputs and their gradients.

    operator: the gradient operator, or its name; by default the operator's name with `Grad`. Names as for
    DefaultGradient. Only its inputs are stored from forward to backward, unless it reads only their shapes.
    raises NotFoundError or SignatureError, at the first use, where there is none or a slot does not fit
    """

    word = "single"


class _Plain(GradientMaker):
    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    def __repr__(self) -> str:
        return self.word


NONE, EMPTY, CUSTOM = _Plain("none"), _Plain("empty"), _Plain("custom")


def maker_of(declared: bool, gradient: Any) -> GradientMaker:
    """Return the maker that a class body declares. declared: whether it has `gradient = ...` at all."""
    if isinstance(gradient, GradientMaker):
        return gradient
    return NONE if not declared else EMPTY if gradient is None else CUSTOM


def needs_of(op: Operator, helpers: Mapping[str, Any]) -> GradientNeeds:
    """Return the needs of an operator's gradient. helpers: functions of the class that a rule may call."""
    maker = op.gradient_maker
    dependencies: tuple[set[str], set[str]] | None
    if maker in (NONE, EMPTY):
        dependencies = set(), set()
    elif isinstance(maker, _ByOperator):
        dependencies = maker.reads(op)
    else:
        parts = (*op.input_names, *op.output_names)
        dependencies = reads(op.gradient_rule, parts, op.attr_defs, helpers)
        if dependencies is None:
            dependencies = set(parts), set()
    values, shapes = dependencies
    shapes = shapes | (values & set(op.no_need_buffer))
    values = values - set(op.no_need_buffer)

    def need(name: str) -> str:
        return VALUE if name in values else SHAPE if name in shapes else NOTHING

    return GradientNeeds({n: need(n) for n in op.input_names}, {n: need(n) for n in op.output_names})
