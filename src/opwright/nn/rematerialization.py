"""Rematerialization: layers whose intermediate values are computed again for gradients instead of kept.

Lives here: `RematScope`, `remat`, calls of layers that were created inside a scope.
Not here: the gradient that computes again (tracing/derivatives.py).

A layer's second run draws the random numbers of its first, and leaves statistics as the first left them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..core import nest
from ..ops import array
from ..ops.tensor import TensorLike
from ..tracing.derivatives import recompute_grad
from .keras_tensor import KerasTensor
from .random import SeedGenerator

if TYPE_CHECKING:
    from ..eager.variable import Variable
    from .layer import Layer

MODES = ("full", "activations", "larger_than", "list_of_layers", None)


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.stack: list[RematScope] = []


_scopes = _Scopes()


class RematScope:
    """Context manager: calls of layers that are created inside compute again, for gradients, what they would keep.

    mode: "full" for all layers, "activations" for the layers' `activation` only, "larger_than" for layers whose outputs
    have more than output_size_threshold elements (without the batch, if its size is unknown), "list_of_layers" for
    those with names in layer_names, None for none. The innermost scope counts.
    raises ValueError for another mode
    """

    def __init__(
        self, mode: str | None = "full", output_size_threshold: int = 1024, layer_names: Sequence[str] | None = None
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"Invalid mode {mode!r}. Supported modes are: {', '.join(map(repr, MODES))}")
        self.mode, self.output_size_threshold, self.layer_names = mode, output_size_threshold, layer_names or []

    def __enter__(self) -> Self:
        _scopes.stack.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _scopes.stack.pop()

    def applies_to(self, layer: Layer, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Return whether the whole call of a layer is computed again."""
        if self.mode == "larger_than":
            symbols = nest.map_structure(_symbol, (arguments, named))
            outputs = nest.flatten(layer.compute_output_spec(*symbols[0], **symbols[1]))
            return sum(int(np.prod([d or 1 for d in y.shape])) for y in outputs) > self.output_size_threshold
        return self.mode == "full" or (self.mode == "list_of_layers" and layer.name in self.layer_names)


def _symbol(value: object) -> object:
    return KerasTensor(value.shape, value.dtype) if isinstance(value, TensorLike) else value


def current_scope() -> RematScope | None:
    """Return the innermost scope of this thread, or None without one."""
    return _scopes.stack[-1] if _scopes.stack else None


def remat(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that gradients compute its intermediate values again. Arguments by name may be tensors.

    A function that draws random numbers or changes variables does so twice; layers in a `RematScope` do not.
    """
    return _again(f, list)


def _again(f: Callable[..., Any], variables: Callable[[], Sequence[Variable]]) -> Callable[..., Any]:
    """Wrap a function; its second run finds and leaves variables as the first did."""

    @functools.wraps(f, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        before: list[Any] | None = None
        names = list(kwargs)

        def run(*arguments: Any) -> Any:
            nonlocal before
            count = len(args)
            named = dict(zip(names, arguments[count:]))
            state = variables()
            if before is None:
                before = [array.identity(v.value()) for v in state]
                return f(*arguments[:count], **named)
            after = [array.identity(v.value()) for v in state]
            _assign(state, before)
            try:
                return f(*arguments[:count], **named)
            finally:
                _assign(state, after)

        return recompute_grad(run)(*args, *kwargs.values())

    return wrapped


def _assign(variables: Sequence[Variable], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values):
        variable.assign(value)


def state_of(layer: Layer) -> list[Variable]:
    """Return what a call of a layer may change: weights that are not trained, and states of generators of seeds."""
    state = {id(v): v for each in layer._flatten_layers() for v in getattr(each, "non_trainable_weights", ())}
    for each in layer._flatten_layers():
        for value in vars(each).values():
            for seeds in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(seeds, SeedGenerator):
                    state[id(seeds.state)] = seeds.state
    return list(state.values())


def rematerialized(layer: Any, scope: RematScope, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a layer's `call` as a scope wants it."""

    def called(*args: Any, **kwargs: Any) -> Any:
        if scope.mode == "activations" and getattr(layer, "activation", None) is not None:
            kept, layer.activation = layer.activation, remat(layer.activation)
            try:
                return call(*args, **kwargs)
            finally:
                layer.activation = kept
        if scope.applies_to(layer, args, kwargs):
            return _again(call, lambda: state_of(layer))(*args, **kwargs)
        return call(*args, **kwargs)

    return called
