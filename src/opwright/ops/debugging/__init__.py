"""Assertions on values, shapes and dtypes, and flags that help to locate a wrong number: `ow.debugging`.

Lives here: the family's public names, under TensorFlow's names; the functions that set flags.
Not here: the flags (core/flags.py), the check of each operator (eager/execute.py).
"""

from __future__ import annotations

from ...core import flags
from ...core.lazy_imports import lazily

__getattr__, __dir__, _assertions = lazily(__name__)
__all__ = [*_assertions, "disable_check_numerics", "enable_check_numerics"]


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Raise InvalidArgumentError at the first operator whose result has a NaN or an infinity, from now on.

    The limits, which apply to TensorFlow's longer messages, are ignored.
    For a section of a program, use `with ow.flags(check_numerics=True)`.
    """
    flags.configure(check_numerics=True)


def disable_check_numerics() -> None:
    """Allow NaN and infinity again."""
    flags.configure(check_numerics=False)
