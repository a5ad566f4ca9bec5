"""Running what has a result: the same random numbers each time, no warnings.

Lives here: `outcome`.  Not here: what is run (sources/).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from . import values
from .outcomes import Entry, entry, failed
from .seams import begin_random_numbers


def outcome(key: str, run: Callable[[], Sequence[Any]], of: str = "") -> Entry:
    """The entry of a run: the bits of its arrays, or the error that it raises."""
    begin_random_numbers()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = values.packed(list(run()))
    except Exception as error:
        return failed(key, error, of)
    return entry(key, data, of)
