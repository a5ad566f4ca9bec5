"""Choosing kernels by measure, where several ways to compute one form are close.

    choices.py       what is chosen, by which sizes; how a selector asks
    tables.py        the measured rows that come with Opwright, by micro-architecture (tables/*.json)
    measurements.py  rows of times, and those that this machine has measured, in the cache
    racing.py        the clock: candidates of one question in turn; OPWRIGHT_TUNE=1, the questions of a model

A selector asks with the ways that are right, a default and the sizes that the answer depends on. What a selector is
told is a way that it offered: tables change times, never results (floats are rounded in another order).
"""

from __future__ import annotations

from ...core import flags


def is_on() -> bool:
    """Whether models are measured when they are loaded."""
    return bool(flags.tune and not flags.deterministic)
