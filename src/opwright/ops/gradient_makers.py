"""Declarations of gradients, and the values of a call that a gradient needs.

Lives here: `DefaultGradient` and `SingleGradient`, for gradients that are operators of their own; `maker_of`, the maker
of every kind of declaration; `GradientNeeds`.
Not here: the analysis of a gradient rule's bytecode (gradient_reads.py), execution of gradients (autodiff.py).

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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import NotFoundError, SignatureError
from . import dispatch, registry
from .gradient_reads import reads

if TYPE_CHECKING:
    from .definition import Operator


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
                    f"its input {slot.name!r} is not an input, output or gradient of an output of {forward.name}",
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
