"""`ow.autograph`: what AutoGraph makes of Python, and how to keep it from doing so.

Lives here: TensorFlow's names for what staging/ offers.  Not here: any of it (staging/, tracing/staged/).
"""

from __future__ import annotations

from types import SimpleNamespace as _SimpleNamespace
from typing import Any

from . import staging as _staging
from .staging import do_not_convert, set_loop_options, to_code, to_graph
from .staging.api import Feature

__all__ = ["convert_module", "experimental", "set_verbosity", "skip_module", "to_code", "to_graph", "trace"]

experimental = _SimpleNamespace(do_not_convert=do_not_convert, set_loop_options=set_loop_options, Feature=Feature)
"""`do_not_convert`, `set_loop_options` and `Feature`, where TensorFlow has them."""

convert_module, skip_module = _staging.convert_module, _staging.skip_module


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """How much AutoGraph tells: 0 warns of functions it cannot convert, 3 and more also print converted code.

    alsologtostdout: whether that goes to stdout rather than to stderr.
    """
    _staging.conversion.verbosity[:] = [int(level), bool(alsologtostdout)]


def trace(*args: Any) -> None:
    """Print the arguments while tracing: names the place where a trace passes."""
    print(*args)
