"""Arguments of traced functions: binding them to parameters, and the key under which a trace is kept.

Lives here: `Signature` and `key_of`.  Not here: tracing (function.py).
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import dtypes, nest
from ..core.errors import SignatureError
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..ops import dispatch
from ..ops.tensor import Tensor


class Signature:
    """The parameters of a Python function, and its `input_signature` if it has one.

    raises TypeError where input_signature does not fit the parameters
    """

    def __init__(self, function: Callable[..., Any], input_signature: Any) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self.python = inspect.signature(function)
        self.parameters = list(self.python.parameters.values())
        self.input_signature: tuple[Any, ...] | None = None
        if input_signature is not None:
            if not isinstance(input_signature, (list, tuple)):
                raise TypeError(
                    f"input_signature must be either a tuple or a list, found {type(input_signature).__name__}"
                )
            for spec in nest.flatten(list(input_signature)):
                if not isinstance(spec, TensorSpec):
                    raise TypeError(f"input_signature holds TensorSpecs, found {spec!r}")
            self.input_signature = tuple(input_signature)
            positional = [p for p in self.parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            variadic = any(p.kind is p.VAR_POSITIONAL for p in self.parameters)
            needed = sum(p.default is p.empty for p in positional)
            given = len(self.input_signature)
            if (given > len(positional) and not variadic) or given < needed:
                raise TypeError(
                    f"input_signature of {self.name}{self.python} has {given} entries, "
                    f"wanted {needed if needed == len(positional) else f'{needed} to {len(positional)}'}"
                )

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in canonical form: positional where a parameter allows it, defaults filled in.

        raises TypeError for arguments that do not fit the parameters, SignatureError for those that do not fit
        the input_signature
        """
        if self.input_signature is not None:
            return self._bind_specs(args, kwargs)
        try:
            bound = self.python.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}{self.python}: {error}") from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _bind_specs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        specs = self.input_signature
        assert specs is not None
        try:
            bound = self.python.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}{self.python}: {error}") from None
        bound.apply_defaults()
        positional = list(bound.args)
        if len(positional) < len(specs):
            raise TypeError(f"{self.name} takes {len(specs)} arguments by its input_signature, got {len(positional)}")
        cast = [self._fit(spec, value, f"argument {i}") for i, (spec, value) in enumerate(zip(specs, positional))]
        return (*cast, *positional[len(specs) :]), dict(bound.kwargs)

    def _fit(self, spec: Any, value: Any, what: str) -> Any:
        if not isinstance(spec, TensorSpec):
            return self._fit_nested(spec, value, what)
        if isinstance(value, TensorSpec):
            tensor: Any = value
        else:
            try:
                tensor = value if isinstance(value, Tensor) else dispatch.to_tensor(value, spec.dtype)
            except (TypeError, ValueError) as error:
                raise SignatureError(
                    f"Python inputs incompatible with input_signature of {self.name}: {what}: {error}"
                ) from None
        if tensor.dtype is not spec.dtype or not tensor.shape.is_subtype_of(spec.shape):
            found = TensorSpec(tensor.shape, tensor.dtype)
            if not (
                tensor.dtype is spec.dtype
                and isinstance(value, Tensor)
                and tensor.shape.is_compatible_with(spec.shape)
                and not tensor.shape.is_fully_defined()
            ):
                raise SignatureError(
                    f"Python inputs incompatible with input_signature of {self.name}: "
                    f"{what} is {found!r}, wanted {spec!r}"
                )
        return tensor

    def _fit_nested(self, spec: Any, value: Any, what: str) -> Any:
        """A value for a nesting of specs: the nesting is the specs', so that a list may stand for a tensor."""
        if isinstance(spec, Mapping):
            if not isinstance(value, Mapping) or spec.keys() != value.keys():
                found = sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
                raise SignatureError(f"{self.name}: {what} does not have the structure of input_signature: "
                                     f"found {found}, wanted the keys {sorted(map(str, spec))}")  # fmt: skip
            flat = [self._fit(spec[k], value[k], f"{what}[{k!r}]") for k in sorted(spec)]
        else:
            if not isinstance(value, (list, tuple)) or len(value) != len(spec):
                found = f"{len(value)} items" if isinstance(value, (list, tuple)) else type(value).__name__
                raise SignatureError(f"{self.name}: {what} does not have the structure of input_signature: "
                                     f"found {found}, wanted {len(spec)} items")  # fmt: skip
            flat = [self._fit(s, v, f"{what}[{i}]") for i, (s, v) in enumerate(zip(spec, value))]
        return nest.pack_sequence_as(spec, [leaf for part in flat for leaf in nest.flatten(part)])

    def names(self, args: Sequence[Any]) -> list[str]:
        """The parameter name of each positional argument; name_0, name_1 ... for *args."""
        result = []
        parameters = [p for p in self.parameters if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD]
        for i in range(len(args)):
            p = parameters[min(i, len(parameters) - 1)]
            result.append(f"{p.name}_{i - len(parameters) + 1}" if p.kind is p.VAR_POSITIONAL else p.name)
        return result


def key_of(value: Any) -> Any:
    """A hashable description of an argument: equal keys share a trace.

    Tensors by dtype and shape, variables by identity, Python values by type and value, containers by their items,
    anything else by its own equality if it is hashable, through a weak reference.
    raises TypeError for what is neither hashable nor weakly referable
    """
    kind = type(value)
    if kind is EagerTensor:
        return (value._dtype, value._array.shape)
    if value is None or kind in (bool, int, float, complex, str, bytes):
        return (kind, value if value == value else "nan")
    if isinstance(value, Tensor):
        return (value.dtype, value.shape.dims)
    if isinstance(value, Variable):
        return ("variable", id(value))
    if isinstance(value, TensorSpec):
        return (value.dtype, value.shape.dims)
    if isinstance(value, (np.ndarray, np.generic)):
        return (dtypes.of_numpy(value.dtype), value.shape)
    if isinstance(value, (list, tuple)):
        return (kind, *map(key_of, value))
    if isinstance(value, Mapping):
        try:
            return (dict, *((k, key_of(value[k])) for k in sorted(value)))
        except TypeError:
            raise TypeError(f"the keys of a dictionary given to a function must sort, found {list(value)!r}") from None
    if nest.is_nested(value):
        return (kind, *((path, key_of(v)) for path, v in nest.flatten_with_paths(value)))
    try:
        return ("object", weakref.ref(value))
    except TypeError:
        hash(value)
        return ("object", kind, value)
