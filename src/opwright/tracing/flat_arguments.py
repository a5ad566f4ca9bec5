"""Binding of a call's arguments to the tensors of one trace, and the errors for arguments that do not fit.

Lives here: the calling conventions of a ConcreteFunction.  Not here: the trace (concrete.py).

    nested and complete    f(model, {"a": x}, 2)      every argument, as for the Python function
    without constants      f({"a": x})                values that were constants of the trace may be omitted
    flat                   f(x)                       the tensors alone, in order
    by name                f(d={"a": x})              arguments by the names of the parameters
    by the tensors' names  f(x=x)                     each tensor by the name of its TensorSpec or of its input
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


class _Mismatch(Exception):
    """The arguments do not fit one calling convention. rank: its progress, which selects the error to report."""

    def __init__(self, error: Exception, rank: int) -> None:
        self.error, self.rank = error, rank


def flat_arguments(concrete: ConcreteFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the tensors of a call, in the order of the trace's inputs.

    raises SignatureError (InvalidArgumentError and TypeError) for tensors of another type, TypeError for other Python
    values and for unknown or missing arguments
    """
    slots = concrete.slots
    free = [(n, k) for n, k in slots if k.flatten()]
    closest: _Mismatch | None = None
    for order in [slots, free] if len(free) < len(slots) else [slots]:
        try:
            return _bound(concrete, slots, order, args, kwargs)
        except _Mismatch as mismatch:
            if closest is None or mismatch.rank > closest.rank:
                closest = mismatch
    specs = concrete.kind.flatten()
    if kwargs:
        leaves = [(t.value_in_graph.name, s) for t, s in zip(concrete.program.trace.inputs, specs)]
        if kwargs.keys() <= {n for n, _ in leaves}:
            try:
                return _bound(concrete, leaves, leaves, args, kwargs)
            except _Mismatch as mismatch:
                if closest is None or mismatch.rank >= closest.rank:
                    closest = mismatch
    if not kwargs and len(args) == len(specs) and any(type(k) is ContainerType for _, k in free):
        leaves = [(f"#{i}", s) for i, s in enumerate(specs)]
        try:
            return _bound(concrete, leaves, leaves, args, kwargs)
        except _Mismatch as mismatch:
            if closest is None or mismatch.rank >= closest.rank:
                closest = mismatch
    assert closest is not None
    raise closest.error


def _bound(
    concrete: ConcreteFunction,
    slots: Sequence[tuple[str, Any]],
    order: Sequence[tuple[str, Any]],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> list[Any]:
    head = f"{concrete.name}({', '.join(n for n, _ in concrete.slots)})"
    if len(args) > len(order):
        raise _Mismatch(TypeError(f"{head} takes {len(order)} positional arguments, got {len(args)}."), 1)
    bound = dict(zip((n for n, _ in order), args))
    names = {n for n, _ in slots}
    for key, value in kwargs.items():
        if key in bound:
            raise _Mismatch(TypeError(f"{head} got two values for {key!r}."), 1)
        if key not in names:
            raise _Mismatch(TypeError(f"{head} got unexpected keyword arguments: {key}."), 2)
        bound[key] = value
    missing = [n for n, k in slots if n not in bound and k.flatten()]
    if missing:
        raise _Mismatch(TypeError(f"{head} missing required arguments: {', '.join(missing)}."), 1)
    flat: list[Any] = []
    context = _ArgumentCast(concrete.name, head)
    for i, (name, kind) in enumerate(slots):
        if name in bound:
            context.argument, context.number = name, i
            value = bound[name]
            if type(kind) is TensorSpec:
                flat.append(context.tensor(value, kind))
            elif type(kind) is Literal:
                context.literal(value, kind)
            elif type(kind) is VariableReference and value is kind.placeholder_value(None):
                continue
            else:
                flat += context.structured(value, kind)
    return flat


class _ArgumentCast(CastContext):
    def __init__(self, function: str, head: str) -> None:
        super().__init__()
        self.function, self.head = function, head
        self.argument, self.number = "", 0

    def tensor(self, value: Any, spec: TensorSpec) -> Tensor:
        """Convert `value` to a tensor of this spec. Raises _Mismatch if it does not fit."""
        try:
            tensor = value if isinstance(value, Tensor) else dispatch.to_tensor(value, spec.dtype)
        except (TypeError, ValueError) as error:
            what = f"{self.function}: argument {self.argument!r}: {error}"
            raise _Mismatch(SignatureError(what), 3) from None
        if tensor.dtype is spec.dtype and tensor.shape.is_compatible_with(spec.shape):
            return tensor
        what = (
            f"cannot compute {self.function} as input #{self.number}(zero-based) {self.argument!r} was expected to be "
            f"a {spec.dtype.name} tensor of shape {spec.shape} but is a {tensor.dtype.name} tensor of shape "
            f"{tensor.shape}"
        )
        signature_error = SignatureError(
            what=what,
            found=TensorSpec(tensor.shape, tensor.dtype).short(),
            wanted=spec.short(),
            do="call the Function itself, which traces again if necessary",
        )
        raise _Mismatch(signature_error, 4 if isinstance(value, Tensor) else 3)

    def literal(self, value: Any, kind: Literal) -> None:
        """Check that `value` equals a constant of the trace. Raises _Mismatch if not."""
        bound = kind.value
        try:
            kind.cast(value, self)
        except TypeError:
            text = (
                f"ConcreteFunction {self.head} was constructed with {type(bound).__name__} value {bound!r} in "
                f"{self.argument}, but was called with {type(value).__name__} value {value!r}."
            )
            raise _Mismatch(TypeError(text), 0 if isinstance(value, Tensor) else 5) from None

    def structured(self, value: Any, kind: Any) -> list[Any]:
        """Return the tensors of a value of any other type. Raises _Mismatch if it does not fit."""
        try:
            return list(kind.to_tensors(kind.cast(value, self)))
        except (TypeError, ValueError) as error:
            text = f"{self.head}: argument {self.argument!r} does not fit the trace: {error}"
            raise _Mismatch(TypeError(text), 0 if isinstance(value, Tensor) else 3) from None
