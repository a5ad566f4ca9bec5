"""AutoGraph: rewrite Python control flow into calls that dispatch on the type of the value they depend on.

Lives here: the front end that `function`, datasets and the kernel language share, and TensorFlow's public names for it.
It knows neither graphs nor kernels: they register a `ControlFlowHandler` for the types of their values.

    source.py           a function's syntax tree            static_analysis.py  variables read, written, live
    jumps.py            break, continue, return             statements.py, expressions.py   the rewriting
    operators.py        the calls in rewritten code         handlers.py         who handles a type's control flow
    conversion.py       which functions are converted       api.py              conversion by hand and by traces
"""

from __future__ import annotations

from types import SimpleNamespace as _SimpleNamespace
from typing import Any

from . import conversion as _conversion
from .api import Feature, do_not_convert, set_loop_options, to_code, to_graph
from .conversion import convert_module, skip_module

__all__ = ["convert_module", "experimental", "set_verbosity", "skip_module", "to_code", "to_graph", "trace"]

experimental = _SimpleNamespace(do_not_convert=do_not_convert, set_loop_options=set_loop_options, Feature=Feature)
"""`do_not_convert`, `set_loop_options` and `Feature`, where TensorFlow has them."""


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Set how much AutoGraph reports: 0 warns of functions it cannot convert, 3 and more also print converted code.

    alsologtostdout: print to stdout instead of stderr.
    """
    _conversion.verbosity[:] = [int(level), bool(alsologtostdout)]


def trace(*args: Any) -> None:
    """Print the arguments while tracing, to show where a trace passes."""
    print(*args)
