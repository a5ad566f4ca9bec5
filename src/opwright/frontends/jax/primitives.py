"""Primitives of JAX by their name: those of modules, and those with a rule of differentiation.

Lives here: `call_of_primitive`. Not here: equations of programs (execution.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from ...core.extras import optional_module
from ...core.lazy_imports import import_module
from ..missing_operators import ForeignCall, Required


def call_of_primitive(name: str, modules: Iterable[Any] = ()) -> ForeignCall | None:
    """Return the primitive of a name by the arguments of the function that computes it (`def_impl`); None if there is
    none."""
    primitive = next((p for p in _primitives(modules) if p.name == name), None)
    if primitive is None:
        return None
    inputs: list[tuple[str, str]] = []
    attributes: dict[str, Any] = {}
    for parameter in inspect.signature(primitive.impl).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            inputs.append((parameter.name, "Tensor[]"))
        elif parameter.kind is parameter.KEYWORD_ONLY:
            default = parameter.default
            attributes[parameter.name] = Required("object") if default is parameter.empty else default
        elif parameter.kind is not parameter.VAR_KEYWORD:
            inputs.append((parameter.name, "Tensor"))
    return ForeignCall(name, "", tuple(inputs), attributes)


def _primitives(modules: Iterable[Any]) -> Iterator[Any]:
    optional_module("jax")
    primitive: Any = import_module("jax.extend.core").Primitive
    for module in modules:
        yield from (value for value in vars(module).values() if isinstance(value, primitive))
    yield from import_module("jax.interpreters.ad").primitive_jvps
