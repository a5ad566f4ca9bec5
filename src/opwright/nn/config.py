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
