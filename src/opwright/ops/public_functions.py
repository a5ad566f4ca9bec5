"""Public functions of operators: Python functions with explicit signatures and complete documentation.

Lives here: `public_function`, which derives one from an operator; `documented_by`, which completes the docstring of one
that is written by hand.
Not here: functions that do more than call one operator (the families define these).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from . import dispatch, registry

if TYPE_CHECKING:
    from .definition import Operator

F = TypeVar("F", bound=Callable[..., Any])


def documented_by(*operators: Operator) -> Callable[[F], F]:
    """Return a decorator that appends the documentation of operators to a function's docstring.

    The formula, shapes, dtypes and errors of an operator are in the docstring of its class; the function's own states
    its purpose and its further arguments. The attribute `documents` of the function lists the operators.
    """

    def decorate(function: Any) -> Any:
        details = [(op.__doc__ or "").partition("\n\n")[2] for op in operators]
        if len(operators) > 1:
            details = [f"    {op.name}: {(op.__doc__ or '').strip()}" for op in operators]
        own = (function.__doc__ or "").rstrip()
        function.__doc__ = "\n\n".join([own, *(text.rstrip() for text in details if text)])
        function.documents = operators
        return function

    return decorate


def public_function(op: Operator, name: str) -> Callable[..., Any]:
    """Return a function of the inputs, then the attributes with their defaults, then `name=None`.

    Its source is generated and compiled once (25 us), so that a call costs no argument processing and help() shows the
    signature.
    """
    required = [*op.input_names, *(k for k, a in op.attr_defs.items() if a.required)]
    optional = [k for k, a in op.attr_defs.items() if not a.required]
    may_lack = {i.name for i in op.inputs if i.optional}
    if may_lack:
        optional = [n for n in op.input_names if n in may_lack] + optional
        required = [k for k in required if k not in may_lack]
        parts: tuple[Any, ...] = (*op.inputs, *op.attr_defs.values())
        age = {p.name: p.since for p in parts}
        optional.sort(key=age.__getitem__)  # what later versions added stands behind what was there
    origin = f"{__file__}:{name}"  # traces take a frame of such a file name for ours, not the user's
    scope: dict[str, Any] = {"_op": op, "_call": dispatch.call, "_bound": None if op.attr_defs else op.bind({})}
    scope["_defaults"] = {k: op.attr_defs[k].default if k in op.attr_defs else None for k in optional}
    signature = ", ".join((*required, *(f"{k}=_defaults[{k!r}]" for k in optional), "name=None"))
    inputs = "".join(f"{n}, " for n in op.input_names)
    attrs = ", ".join(f"{n!r}: {n}" for n in op.attr_defs)
    bound = f"_op.bind({{{attrs}}})" if attrs else "_bound"
    source = f"def {name}({signature}):\n    return _call(_op, ({inputs}), {bound}, name)\n"
    exec(compile(source, origin, "exec"), scope)
    function = scope[name]
    function.__doc__, function.__module__, function.operator = op.__doc__, op.__module__, op
    registry.name_function(name, op)
    result: Callable[..., Any] = function
    return result
