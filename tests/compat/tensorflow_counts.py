"""Counts of TensorFlow's own tests: reasons of failures, sums and shares.

Lives here: tables of reasons.  Not here: running (peer_tests.py), the page (make_compatibility.py).
"""

from __future__ import annotations

import collections
import re

from keras_counts import share as share

REASONS = (
    (
        "graphs",
        r"GraphsUnavailable|graphs with placeholders|'EagerTensor' object has no attribute 'name'|'initializer'"
        r"|no attribute 'compute_gradient"
        r"|tf\.gradients is not supported when eager|Lists differ: \[None, \d+\] != \[\d+|Invalid pattern: A\[",
    ),
    ("private", r"is not part of opwright|no attribute '_|Expected 'warning' to have been called"),
    ("libraries", r"No module named|has no attribute 'random_integers'"),
    ("wording", r"does not match"),
    ("missing", r"public name that opwright lacks"),
)
"""Why tests fail, by name and message: the first that matches."""


def reason(text: str) -> str:
    """Return the reason of a failure, by the test's name and message."""
    return next((key for key, pattern in REASONS if re.search(pattern, text)), "other")


def total(rows: dict[str, dict[str, int]]) -> dict[str, int]:
    """Return the sums of the files' counts."""
    counts: collections.Counter[str] = collections.Counter()
    for row in rows.values():
        counts.update(row)
    return dict(sorted(counts.items()))
