"""Public functions of operators: real Python functions with true signatures.

Lives here: `public_function`.  Not here: functions that do more than call one operator (the families write these).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import dispatch, registry

if TYPE_CHECKING:
    from .definition import Operator


def public_function(op: Operator, name: str) -> Callable[..., Any]:
    """A function of the inputs, then the attributes with their defaults, then `name=None`.

    Written out and compiled once (25 us), so that a call costs no argument juggling and help() shows the true
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
