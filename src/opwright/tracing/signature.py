"""Signatures of traced functions: binding arguments to parameters and to the tensors of one trace; their text.

Lives here: `FunctionSignature`, with the enforcement of an `input_signature`; `FunctionType`, `CastContext`;
`flat_arguments`, the calling conventions of a ConcreteFunction, and the errors for arguments that do not fit.
Not here: the types of arguments (trace_type.py), traces (function.py, concrete.py).

    f(x, n=3)
      Args:
        x: {'a': <1>, 'b': [<2>]}
          <1>: float32 Tensor, shape=(2,)
          <2>: int32 Tensor, shape=()
      Returns:
        float32 Tensor, shape=(2,)

A ConcreteFunction accepts arguments that are

    nested and complete    f(model, {"a": x}, 2)      every argument, as for the Python function
    without constants      f({"a": x})                values that were constants of the trace may be omitted
    flat                   f(x)                       the tensors alone, in order
    by name                f(d={"a": x})              arguments by the names of the parameters
    by the tensors' names  f(x=x)                     each tensor by the name of its TensorSpec or of its input
"""

from __future__ import annotations

import functools
import inspect
import pprint
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core import nest
from ..core.errors import SignatureError
from ..core.introspection import signature_of
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor, TraceType, TypeSpec
from ..ops import dispatch
from ..ops.tensor import Tensor, TensorLike
from .container_type import TUPLE, ContainerLayout, ContainerType, halves
from .trace_type import Literal, TracingContext, VariableReference, from_value

if TYPE_CHECKING:
    from .concrete import ConcreteFunction

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class FunctionType(inspect.Signature):
    """The parameters of a traced function, annotated with their trace types where these are fixed."""

    __slots__ = ()


class CastContext:
    """The conversion of arguments to the types of a signature. allow_specs: whether specs are accepted for tensors."""

    def __init__(self, allow_specs: bool = False) -> None:
        self.allow_specs = allow_specs

    def tensor(self, value: Any, spec: TensorSpec) -> Tensor:
        """Convert `value` to a tensor of this spec. Raises TypeError if it does not match."""
        tensor = value if isinstance(value, Tensor) else dispatch.to_tensor(value, spec.dtype)
        if tensor.dtype is spec.dtype:
            if tensor.shape.is_subtype_of(spec.shape):
                return tensor
            if not tensor.shape.is_fully_defined() and tensor.shape.is_compatible_with(spec.shape):
                return tensor  # while tracing: it may match, which is checked at run time
        raise TypeError(f"Can not cast {TensorSpec(tensor.shape, tensor.dtype)!r} to {spec!r}")


class SignatureContext(TracingContext):
    """The context of explicitly given types: specs keep their names."""

    is_legacy_signature = True


def kind_of(args: Sequence[Any], kwargs: Mapping[str, Any], context: TracingContext) -> ContainerType:
    """Return the type of a canonical call."""
    positional = ContainerType(TUPLE, [from_value(a, context) for a in args])
    if not kwargs:
        return ContainerType(TUPLE, (positional, _NO_KEYWORDS))
    names = tuple(sorted(kwargs))
    form = ContainerLayout("Dict", None, names, template=dict.fromkeys(names))
    return ContainerType(TUPLE, (positional, ContainerType(form, [from_value(kwargs[n], context) for n in names])))


_NO_KEYWORDS = ContainerType(ContainerLayout("Dict", None, (), template={}), ())


class FunctionSignature:
    """The parameters of a Python function, and its `input_signature`, if any.

    constraint: the type of every call under an input_signature.
    raises TypeError if input_signature does not match the parameters
    """

    def __init__(self, function: Callable[..., Any], input_signature: Any) -> None:
        named = function
        while isinstance(named, functools.partial):
            named = named.func
        self.name = getattr(named, "__name__", type(named).__name__)
        self.python = signature_of(function)
        self.parameters = list(self.python.parameters.values())
        self._plain = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in self.parameters)
        self._slots = [(p.name, p.default) for p in self.parameters]
        self._accepts = {p.name for p in self.parameters}
        self.input_signature: tuple[Any, ...] | None = None
        self.constraint: ContainerType | None = None
        if input_signature is not None:
            self._constrain(input_signature)

    # ---- input_signature --------------------------------------------------------------------------------------

    def _constrain(self, input_signature: Any) -> None:
        if not isinstance(input_signature, (list, tuple)):
            raise TypeError(f"input_signature must be either a tuple or a list, got {type(input_signature)}")
        invalid = [s for s in nest.flatten(list(input_signature)) if not isinstance(s, (TypeSpec, TraceType))]
        if invalid:
            raise TypeError(
                "input_signature must be a possibly nested sequence of TensorSpec objects, got invalid args "
                f"{invalid} with types {[type(spec) for spec in invalid]}"
            )
        specs = tuple(input_signature)
        context = SignatureContext()
        positional = [p for p in self.parameters if p.kind in _POSITIONAL]
        if positional and positional[0].name == "self" and positional[0].default is positional[0].empty:
            self.input_signature = specs  # an unbound method: enforced by the functions of its instances
            return
        keyword_only = [p for p in self.parameters if p.kind is p.KEYWORD_ONLY]
        variadic = any(p.kind is p.VAR_POSITIONAL for p in self.parameters)
        if len(specs) > len(positional) and not variadic:
            raise TypeError(
                f"input_signature contains {len(specs) - len(positional)} extra type constraints: it has {len(specs)} "
                f"entries, {self.name}{self.python} takes {len(positional)}"
            )
        kinds = [from_value(s, context) for s in specs]
        for p in positional[len(specs) :]:
            if p.default is p.empty:
                raise TypeError(
                    f"input_signature missing type constraint for {p.name}: it has {len(specs)} entries, "
                    f"{self.name}{self.python} needs {sum(q.default is q.empty for q in positional)}"
                )
            kinds.append(from_value(p.default, context))
        for p in keyword_only:
            if p.default is p.empty:
                raise TypeError(
                    f"Since input_signature is defined, keyword-only parameter `{p.name}` must have a default value"
                )
        names = tuple(sorted(p.name for p in keyword_only))
        defaults = {p.name: p.default for p in keyword_only}
        form = ContainerLayout("Dict", None, names, template=dict.fromkeys(names))
        by_name = ContainerType(form, [from_value(defaults[n], context) for n in names])
        self.input_signature = specs
        self.constraint = ContainerType(TUPLE, (ContainerType(TUPLE, kinds), by_name))

    def cast(self, args: tuple[Any, ...], kwargs: dict[str, Any], allow_specs: bool = False) -> Arguments:
        """Convert a canonical call to the types of the input_signature.

        raises SignatureError, a ValueError and TypeError, for arguments that do not match it
        """
        assert self.constraint is not None
        positional, by_name = halves(self.constraint)
        if len(args) != len(positional.parts):
            raise TypeError(
                f"{self.name} takes {len(positional.parts)} arguments by its input_signature, got {len(args)}"
            )
        if set(kwargs) != set(by_name.layout.names):
            extra = sorted(set(kwargs) - set(by_name.layout.names))
            raise TypeError(f"{self.name}: {', '.join(extra)}: not covered by input_signature")
        context = CastContext(allow_specs)

        def fit(name: str, kind: Any, value: Any) -> object:
            try:
                return kind.cast(value, context)
            except (TypeError, ValueError) as error:
                raise SignatureError(
                    f"Python inputs incompatible with input_signature of {self.name}: argument {name}: {error}\n"
                    f"  inputs: {_shown((*args, *kwargs.values()))}\n"
                    f"  input_signature: {_shown(self.input_signature or ())}"
                ) from None

        cast = tuple(map(fit, self.names(args), positional.parts, args))
        return cast, {n: fit(n, k, kwargs[n]) for n, k in zip(by_name.layout.names, by_name.parts)}

    # ---- binding ----------------------------------------------------------------------------------------------

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        """Return the arguments in canonical form: positional if the parameter permits it, with defaults.

        raises TypeError for arguments that do not match the parameters
        """
        if self._plain:
            if not kwargs and len(args) == len(self._slots):
                return args, {}
            if len(args) <= len(self._slots) and kwargs.keys() <= self._accepts:
                bound, used = list(args), 0
                for name, default in self._slots[len(args) :]:
                    if name in kwargs:
                        bound.append(kwargs[name])
                        used += 1
                    elif default is not inspect.Parameter.empty:
                        bound.append(default)
                    else:
                        break
                else:
                    if used == len(kwargs):
                        return tuple(bound), {}
        try:
            bound_arguments = self.python.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"Binding inputs to tf.function failed due to `{error}`. Received args: {_shown(args)} and "
                f"kwargs: {dict(kwargs)!r} for signature: {self.name}{self.python}"
            ) from None
        bound_arguments.apply_defaults()
        keywords = bound_arguments.kwargs
        return bound_arguments.args, {k: keywords[k] for k in sorted(keywords)} if keywords else keywords

    def names(self, args: Sequence[Any]) -> list[str]:
        """Return the parameter name of each positional argument; name_0, name_1 ... for *args."""
        result = []
        parameters = [p for p in self.parameters if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD]
        for i in range(len(args)):
            p = parameters[min(i, len(parameters) - 1)]
            result.append(f"{p.name}_{i - len(parameters) + 1}" if p.kind is p.VAR_POSITIONAL else p.name)
        return result

    @property
    def function_type(self) -> FunctionType:
        """The parameters, with the types of the input_signature as annotations."""
        parameters = self.parameters
        if self.constraint is not None:
            positional, by_name = halves(self.constraint)
            kinds = dict(zip(self.names(positional.parts), positional.parts))
            kinds.update(zip(by_name.layout.names, by_name.parts))
            parameters = [p.replace(annotation=kinds.get(p.name, p.empty)) for p in parameters]
        return FunctionType(parameters)

    def __repr__(self) -> str:
        return f"{self.name}{self.python}"


def _shown(values: Sequence[Any]) -> str:
    lines = ",\n".join(f"    {value}" for value in values)
    return f"(\n{lines})" if values else "()"


Named = Sequence[tuple[str, Any]]


class _Mark:
    def __init__(self, number: int) -> None:
        self.text = f"<{number}>"

    def __repr__(self) -> str:
        return self.text


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, (TypeSpec, TensorLike, CompositeTensor))


def summary(name: str, arguments: Named) -> str:
    """Return name(x, n=3): tensors by name, constants with their values."""
    shown = [n if any(map(_is_tensor, nest.flatten(v))) else f"{n}={v!r}" for n, v in arguments]
    return f"{name}({', '.join(shown)})"


def signature_text(name: str, arguments: Named, results: Any) -> str:
    """Return the complete signature: a line per argument that contains tensors, and the results."""
    lines = [summary(name, arguments)]
    details = [f"    {n}: {_described(v)}" for n, v in arguments if any(map(_is_tensor, nest.flatten(v)))]
    if details:
        lines += ["  Args:", *details]
    return "\n".join([*lines, "  Returns:", f"    {_described(results)}"])


def _described(value: Any) -> str:
    if isinstance(value, CompositeTensor):
        return repr(value._type_spec)
    if isinstance(value, (TensorSpec, TensorLike)):
        return f"{value.dtype.name} Tensor, shape={value.shape}"
    if not nest.is_nested(value):
        return repr(value)
    leaves = nest.flatten(value)
    marks = [_Mark(i + 1) for i in range(len(leaves))]
    text = pprint.pformat(nest.pack_sequence_as(value, marks), width=10000)
    return "".join([text, *(f"\n      {m}: {_described(leaf)}" for m, leaf in zip(marks, leaves))])


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
    conventions = [(slots, slots), (slots, free)] if len(free) < len(slots) else [(slots, slots)]
    specs = concrete.kind.flatten()
    leaves: list[tuple[str, Any]] = [
        (t.value_in_graph.name, s) for t, s in zip(concrete.program.trace.inputs if kwargs else (), specs)
    ]
    if kwargs and kwargs.keys() <= {n for n, _ in leaves}:
        conventions.append((leaves, leaves))
    if not kwargs and len(args) == len(specs) and any(type(k) is ContainerType for _, k in free):
        leaves = [(f"#{i}", s) for i, s in enumerate(specs)]
        conventions.append((leaves, leaves))
    for named, order in conventions:
        try:
            return _bound(concrete, named, order, args, kwargs)
        except _Mismatch as mismatch:
            if closest is None or mismatch.rank + (named is leaves) > closest.rank:
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
