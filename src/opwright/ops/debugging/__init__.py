"""Assertions on values, shapes and dtypes, and flags that help to locate a wrong number: `ow.debugging`.

Lives here: the family's public names, under TensorFlow's names; the functions that set flags.
Not here: the flags (core/flags.py), the check of each operator (eager/execute.py).
"""

from __future__ import annotations

from ...core import flags
from ...core.lazy_imports import lazily

__getattr__, __dir__, _assertions = lazily(__name__)
__all__ = [
    *_assertions,
    "disable_check_numerics",
    "disable_traceback_filtering",
    "enable_check_numerics",
    "enable_traceback_filtering",
    "get_log_device_placement",
    "is_traceback_filtering_enabled",
    "set_log_device_placement",
]


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Raise InvalidArgumentError at the first operator whose result has a NaN or an infinity, from now on.

    The limits, which apply to TensorFlow's longer messages, are ignored.
    For a section of a program, use `with ow.flags(check_numerics=True)`.
    """
    flags.configure(check_numerics=True)


def disable_check_numerics() -> None:
    """Allow NaN and infinity again."""
    flags.configure(check_numerics=False)


def get_log_device_placement() -> bool:
    """Return False: no placements are logged."""
    return False


def set_log_device_placement(enabled: bool) -> None:
    """Accept whether placements are logged: every operator runs on the CPU, the only device."""


def enable_traceback_filtering() -> None:
    """Raise RuntimeError: tracebacks show the lines of the program first, and are never filtered."""
    raise RuntimeError("Tracebacks are never filtered; they show the lines of the program first")


def disable_traceback_filtering() -> None:
    """Accept that tracebacks are not filtered: they never are."""


def is_traceback_filtering_enabled() -> bool:
    """Return False: tracebacks are never filtered."""
    return False
