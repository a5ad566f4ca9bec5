"""Arguments of a call of one trace: which of them are its tensors, and errors where they do not fit.

Lives here: the ways a ConcreteFunction may be called.  Not here: the trace (concrete.py).

    nested and complete    f(model, {"a": x}, 2)      every argument, as the Python function takes them
    without fixed values   f({"a": x})                what was a Python value when it was traced may be left out
    flat                   f(x)                       the tensors alone, in order
    by name                f(d={"a": x})              arguments by the parameters' names
    by the tensors' names  f(x=x)                      each tensor by the name of its TensorSpec, or of its input
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.errors import SignatureError
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..ops.tensor import Tensor
from .container_type import ContainerType
from .signature import CastContext
from .trace_type import Literal, VariableReference

if TYPE_CHECKING:
    from .concrete import ConcreteFunction


class _Unfit(Exception):
    """The arguments do not fit this way of calling. rank: how far it came, to tell which error to show."""

    def __init__(self, error: Exception, rank: int) -> None:
        self.error, self.rank = error, rank


def flat_arguments(concrete: ConcreteFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The tensors of a call, in the order of the trace's inputs.

    raises SignatureError (InvalidArgumentError and TypeError) for tensors of another type, TypeError for other Python
    values, unknown or missing arguments
    """
    slots = concrete.slots
    free = [(n, k) for n, k in slots if k.flatten()]
    worst: _Unfit | None = None
    ways = [slots, free] if len(free) < len(slots) else [slots]
    for order in ways:
        try:
            return _bound(concrete, slots, order, args, kwargs)
        except _Unfit as unfit:
            if worst is None or unfit.rank > worst.rank:
                worst = unfit
    specs = concrete.kind.flatten()
    if kwargs:
        leaves = [(t.value_in_graph.name, s) for t, s in zip(concrete.program.trace.inputs, specs)]
        if kwargs.keys() <= {n for n, _ in leaves}:
            try:
                return _bound(concrete, leaves, leaves, args, kwargs)
            except _Unfit as unfit:
                if worst is None or unfit.rank >= worst.rank:
                    worst = unfit
    if not kwargs and len(args) == len(specs) and any(type(k) is ContainerType for _, k in free):
        leaves = [(f"#{i}", s) for i, s in enumerate(specs)]
        try:
            return _bound(concrete, leaves, leaves, args, kwargs)
        except _Unfit as unfit:
            if worst is None or unfit.rank >= worst.rank:
                worst = unfit
    assert worst is not None
    raise worst.error


def _bound(
    concrete: ConcreteFunction,
    slots: Sequence[tuple[str, Any]],
    order: Sequence[tuple[str, Any]],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> list[Any]:
    head = f"{concrete.name}({', '.join(n for n, _ in concrete.slots)})"
    if len(args) > len(order):
        raise _Unfit(TypeError(f"{head} takes {len(order)} positional arguments, got {len(args)}."), 1)
    given = dict(zip((n for n, _ in order), args))
    known = {n for n, _ in slots}
    for key, value in kwargs.items():
        if key in given:
            raise _Unfit(TypeError(f"{head} got two values for {key!r}."), 1)
        if key not in known:
            raise _Unfit(TypeError(f"{head} got unexpected keyword arguments: {key}."), 2)
        given[key] = value
    missing = [n for n, k in slots if n not in given and k.flatten()]
    if missing:
        raise _Unfit(TypeError(f"{head} missing required arguments: {', '.join(missing)}."), 1)
    flat: list[Any] = []
    context = _Cast(concrete.name, head)
    for i, (name, kind) in enumerate(slots):
        if name in given:
            context.argument, context.number = name, i
            value = given[name]
            if type(kind) is TensorSpec:
                flat.append(context.tensor(value, kind))
            elif type(kind) is Literal:
                context.literal(value, kind)
            elif type(kind) is VariableReference and value is kind.placeholder_value(None):
                continue
            else:
                flat += context.structured(value, kind)
    return flat


class _Cast(CastContext):
    def __init__(self, function: str, head: str) -> None:
        super().__init__()
        self.function, self.head = function, head
        self.argument, self.number = "", 0

    def tensor(self, value: Any, spec: TensorSpec) -> Tensor:
        """`value` as a tensor of this spec, or _Unfit."""
        try:
            tensor = value if isinstance(value, Tensor) else dispatch.to_tensor(value, spec.dtype)
        except (TypeError, ValueError) as error:
            what = f"{self.function}: argument {self.argument!r}: {error}"
            raise _Unfit(SignatureError(what), 3) from None
        if tensor.dtype is spec.dtype and tensor.shape.is_compatible_with(spec.shape):
            return tensor
        what = (
            f"cannot compute {self.function} as input #{self.number}(zero-based) {self.argument!r} was expected to be "
            f"a {spec.dtype.name} tensor of shape {spec.shape} but is a {tensor.dtype.name} tensor of shape "
            f"{tensor.shape}"
        )
        unfit = SignatureError(
            what=what,
            found=TensorSpec(tensor.shape, tensor.dtype).short(),
            wanted=spec.short(),
            do="call the Function itself, which traces anew where it must",
        )
        raise _Unfit(unfit, 4 if isinstance(value, Tensor) else 3)

    def literal(self, value: Any, kind: Literal) -> None:
        """Nothing, or _Unfit where it is another value."""
        bound = kind.value
        try:
            kind.cast(value, self)
        except TypeError:
            text = (
                f"ConcreteFunction {self.head} was constructed with {type(bound).__name__} value {bound!r} in "
                f"{self.argument}, but was called with {type(value).__name__} value {value!r}."
            )
            raise _Unfit(TypeError(text), 0 if isinstance(value, Tensor) else 5) from None

    def structured(self, value: Any, kind: Any) -> list[Any]:
        """The tensors of a value of any other kind, or _Unfit."""
        try:
            return list(kind.to_tensors(kind.cast(value, self)))
        except (TypeError, ValueError) as error:
            text = f"{self.head}: argument {self.argument!r} does not fit the trace: {error}"
            raise _Unfit(TypeError(text), 0 if isinstance(value, Tensor) else 3) from None
