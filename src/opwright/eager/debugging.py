"""`ow.debugging`: assertions, and switches that help to find a wrong number, under TensorFlow's names.

Lives here: names only.  Not here: the assertions (ops/debugging/), the switches (core/flags.py), the check of every
operator (execute.py).
"""

from __future__ import annotations

from ..core import flags
from ..ops import debugging as _assertions
from ..ops.debugging import *  # noqa: F403

__all__ = [*_assertions.__all__, "disable_check_numerics", "enable_check_numerics"]


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """From here on, the first operator whose result has a NaN or an infinity raises InvalidArgumentError.

    The limits are TensorFlow's, for its longer messages; ours name the operator, and take no notice of them.
    For a stretch of a program: `with ow.flags(check_numerics=True)`.
    """
    flags.configure(check_numerics=True)


def disable_check_numerics() -> None:
    """NaN and infinity are results like others again."""
    flags.configure(check_numerics=False)
