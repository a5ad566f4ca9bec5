"""Neural networks: the operators of `ow.nn`, and Module.

Lives here: re-exports of the operators (ops/nn), modules.  Not here: the operators' definitions.
"""

from ..ops.nn import *  # noqa: F403  the whole family, whose own __all__ lists it
from ..ops.nn import __all__ as _operators
from .module import Module

__all__ = [*_operators, "Module"]
