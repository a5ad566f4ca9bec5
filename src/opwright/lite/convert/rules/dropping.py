"""Rules for operators that a model in a file does without.

Lives here: Assert, which checks and gives nothing; the official converter drops it too.
Not here: operators that only rename, which go before (../prepare.py).
"""

from __future__ import annotations

from ..lowering import Rule, table

DROPPING = table(
    Rule("drop_assert", "Assert", lambda node, low: (), "no result depends on it; files have no place for checks"),
)
