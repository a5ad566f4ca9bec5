"""Public functions of operators: real Python functions with true signatures.

Lives here: `public_function`.  Not here: functions that do more than call one operator (the families write these).
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import dispatch, registry

if TYPE_CHECKING:
    from .definition import Operator

# Operators with nothing but inputs share these, under other names: compiling each from text would take 90 us, and
# there are more than a hundred. The globals are those of each function made.
_op: Any = None
_call: Any = None
_bound: Any = None


def _plain1(x: Any, name: Any = None) -> Any:
    return _call(_op, (x,), _bound, name)


def _plain2(x: Any, y: Any, name: Any = None) -> Any:
    return _call(_op, (x, y), _bound, name)


def _plain3(x: Any, y: Any, z: Any, name: Any = None) -> Any:
    return _call(_op, (x, y, z), _bound, name)


_PLAIN = {1: _plain1, 2: _plain2, 3: _plain3}


def public_function(op: Operator, name: str) -> Callable[..., Any]:
    """A function of the inputs, then the attributes with their defaults, then `name=None`.

    Written out and compiled once, so that a call costs no argument juggling and help() shows the true signature.
    """
    required = [*op.input_names, *(k for k, a in op.attr_defs.items() if a.required)]
    optional = [k for k, a in op.attr_defs.items() if not a.required]
    may_lack = {i.name for i in op.inputs if i.optional}
    if may_lack:
        optional = [n for n in op.input_names if n in may_lack] + optional
        required = [k for k in required if k not in may_lack]
    origin = f"{__file__}:{name}"  # traces take a frame of such a file name for ours, not the user's
    scope: dict[str, Any] = {"_op": op, "_call": dispatch.call, "_bound": None if op.attr_defs else op.bind({})}
    if not op.attr_defs and not optional and len(op.inputs) in _PLAIN:
        code = _PLAIN[len(op.inputs)].__code__.replace(
            co_name=name, co_qualname=name, co_filename=origin, co_varnames=(*op.input_names, "name")
        )
        function: Any = types.FunctionType(code, scope, name, (None,))
    else:
        scope["_defaults"] = {k: op.attr_defs[k].default if k in op.attr_defs else None for k in optional}
        signature = ", ".join((*required, *(f"{k}=_defaults[{k!r}]" for k in optional), "name=None"))
        inputs = "".join(f"{n}, " for n in op.input_names)
        attrs = ", ".join(f"{n!r}: {n}" for n in op.attr_defs)
        bound = f"_op.bind({{{attrs}}})" if attrs else "_bound"
        source = f"def {name}({signature}):\n    return _call(_op, ({inputs}), {bound}, name)\n"
        exec(compile(source, origin, "exec"), scope)
        function = scope[name]
    function.__doc__, function.__module__, function.operator = op.doc, op.__module__, op
    registry.name_function(name, op)
    return function
