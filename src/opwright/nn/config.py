"""`keras.config`: global defaults.

Lives here: limits of `fit`, and re-exports of the settings.
Not here: the settings themselves (backend.py, dtype_policies.py).
"""

from __future__ import annotations

from .backend import LIMITS
from .backend import backend as backend
from .backend import epsilon as epsilon
from .backend import floatx as floatx
from .backend import image_data_format as image_data_format
from .backend import set_epsilon as set_epsilon
from .backend import set_floatx as set_floatx
from .backend import set_image_data_format as set_image_data_format
from .dtype_policies import dtype_policy as dtype_policy
from .dtype_policies import set_dtype_policy as set_dtype_policy
from .function_code import enable_unsafe_deserialization as enable_unsafe_deserialization
from .messages import disable_interactive_logging as disable_interactive_logging
from .messages import enable_interactive_logging as enable_interactive_logging
from .messages import is_interactive_logging_enabled as is_interactive_logging_enabled


def max_epochs() -> int | None:
    """Return the limit that `set_max_epochs` sets."""
    return LIMITS["epochs"]


def set_max_epochs(max_epochs: int | None) -> None:
    """Set the most epochs that any `fit` runs, to try a program out; None for no limit."""
    LIMITS["epochs"] = max_epochs


def max_steps_per_epoch() -> int | None:
    """Return the limit that `set_max_steps_per_epoch` sets."""
    return LIMITS["steps_per_epoch"]


def set_max_steps_per_epoch(max_steps_per_epoch: int | None) -> None:
    """Set the most steps that an epoch of any `fit`, `evaluate` and `predict` runs; None for no limit."""
    LIMITS["steps_per_epoch"] = max_steps_per_epoch


_SWITCHES = {"flash_attention": True, "traceback_filtering": False}


def enable_flash_attention() -> None:
    """Set what `is_flash_attention_enabled` returns. Attention has one implementation, which sizes choose."""
    _SWITCHES["flash_attention"] = True


def disable_flash_attention() -> None:
    """Set what `is_flash_attention_enabled` returns."""
    _SWITCHES["flash_attention"] = False


def is_flash_attention_enabled() -> bool:
    """Return what was set last; True at the beginning."""
    return _SWITCHES["flash_attention"]


def enable_traceback_filtering() -> None:
    """Set what `is_traceback_filtering_enabled` returns. Tracebacks are whole in any case."""
    _SWITCHES["traceback_filtering"] = True


def disable_traceback_filtering() -> None:
    """Set what `is_traceback_filtering_enabled` returns."""
    _SWITCHES["traceback_filtering"] = False


def is_traceback_filtering_enabled() -> bool:
    """Return what was set last; False at the beginning."""
    return _SWITCHES["traceback_filtering"]
