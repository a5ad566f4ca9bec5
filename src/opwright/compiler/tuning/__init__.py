"""Autotuning: the choice among kernels by measurement, if several alternatives are close.

    choices.py    the choices and their sizes, queries by selectors, measured rows and the decisions they imply
    autotuner.py  timing of alternatives on this machine
    tables/       rows that ship with the package

A selector passes the valid alternatives, a default and the sizes that the answer depends on. The answer is always one
of the alternatives: tables affect times, never results (floats are rounded in another order).
"""

from __future__ import annotations

from ...core import flags


def is_on() -> bool:
    """Return whether models are measured when they are loaded."""
    return bool(flags.tune and not flags.deterministic)
