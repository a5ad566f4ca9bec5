"""`ow.debugging`: assertions, and flags that help to locate a wrong number, under TensorFlow's names.

Lives here: the functions.  Not here: the assertions (ops/debugging/), the flags (core/flags.py), the check of each
operator (execute.py).
"""

from __future__ import annotations

from ..core import flags
from ..ops import debugging as _assertions
from ..ops.debugging import *  # noqa: F403

__all__ = [*_assertions.__all__, "disable_check_numerics", "enable_check_numerics"]


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Raise InvalidArgumentError at the first operator whose result has a NaN or an infinity, from now on.

    The limits, which apply to TensorFlow's longer messages, are ignored.
    For a section of a program, use `with ow.flags(check_numerics=True)`.
    """
    flags.configure(check_numerics=True)


def disable_check_numerics() -> None:
    """Allow NaN and infinity again."""
    flags.configure(check_numerics=False)
