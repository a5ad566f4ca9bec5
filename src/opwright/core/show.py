"""`ow.show`: printing of compilation stages within a context.

Lives here: the function.  Not here: the flag that it sets (flags.py), printing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from . import flags
from .errors import InvalidArgumentError


def show(*stages: str) -> AbstractContextManager[None]:
    """Print these stages to stderr within the context: graph, passes, kernel, llvm, asm, time, plan.

    with ow.show("graph", "passes"):
        f(x)

    raises InvalidArgumentError listing the stages, for an unknown name or none
    """
    if not stages:
        raise InvalidArgumentError(op="show", what="no stage is named", do='ow.show("passes")')
    return flags.override(show=",".join(stages))
