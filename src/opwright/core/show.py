"""`ow.show`: printing stages of compiling for a while.

Lives here: the function.  Not here: the flag that it sets (flags.py), what prints a stage.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from . import flags
from .errors import InvalidArgumentError


def show(*stages: str) -> AbstractContextManager[None]:
    """Prints these stages to stderr while in the `with`: graph, passes, kernel, llvm, asm, time, plan.

    with ow.show("graph", "passes"):
        f(x)

    raises InvalidArgumentError listing the stages there are, for another name or none
    """
    if not stages:
        raise InvalidArgumentError(op="show", what="no stage is named", do='ow.show("passes")')
    return flags.override(show=",".join(stages))
