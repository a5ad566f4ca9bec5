"""Staging: what turns Python control flow into calls that decide by the value they meet.

Lives here: AutoGraph's front end, shared by `function` and the kernel language. It knows neither graphs nor kernels:
they register a `Stage` for their values.

    source.py      a function's syntax tree          names.py, liveness.py   what its statements read, write, need
    jumps.py       break, continue, return           rewriting.py, expressions.py   the rewriting
    operators.py, builtins.py   what it calls        stages.py   whose values are staged
    conversion.py, rules.py   what is converted      api.py      the public face
    tracebacks.py  errors shown at the user's lines
"""

from .api import converted, converting, do_not_convert, here, requested, set_loop_options, to_code, to_graph
from .conversion import keep_in
from .rules import convert_module, reset_modules, skip_module
from .stages import Stage, State, Undefined, register_stage, stage_of
from .tracebacks import users_frames

__all__ = [
    "Stage",
    "State",
    "Undefined",
    "convert_module",
    "converted",
    "converting",
    "do_not_convert",
    "here",
    "keep_in",
    "register_stage",
    "requested",
    "reset_modules",
    "set_loop_options",
    "skip_module",
    "stage_of",
    "to_code",
    "to_graph",
    "users_frames",
]
