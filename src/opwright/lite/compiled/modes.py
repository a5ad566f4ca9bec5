"""The ways a plan may have been made, which its key says: measured (OPWRIGHT_TUNE=1), deterministic, or neither.

Lives here: which keys serve a process by its switches, which key a new plan gets.
Not here: the rest of a key (delegate.py), measuring (compiler/tuning/).

Once a model was measured every process takes that plan. Under `deterministic` none does, nor a plan that was made when
another model had been measured: both round differently than before the measurement.
"""

from __future__ import annotations

from ...compiler import tuning
from ...core import flags

MEASURED, DETERMINISTIC = " measured", " deterministic"


def keys_of(key: str) -> tuple[str, ...]:
    """The keys of plans that serve this process, the best first."""
    if flags.deterministic:
        return (key + DETERMINISTIC,)
    return (key + MEASURED,) if tuning.is_on() else (key + MEASURED, key)


def key_of(key: str, measured: bool) -> str:
    """The key of a plan that this process made. measured: whether all its choices were."""
    return key + (DETERMINISTIC if flags.deterministic else MEASURED if measured else "")


def serves(key: str) -> bool:
    """Whether the plan of such a key serves this process."""
    if flags.deterministic or tuning.is_on():
        return key.endswith(DETERMINISTIC if flags.deterministic else MEASURED)
    return not key.endswith(DETERMINISTIC)
