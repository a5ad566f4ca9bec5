"""`Finding`: one thing wrong with a model, as the rules of verify.py and constants.py report it.

Lives here: `Finding`.  Not here: the rules, and the error made of the first finding (verify.py).
"""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """at: path of the field from the model's root. what: the sentence. found, wanted: as errors print them."""

    at: str
    what: str
    found: object = None
    wanted: object = None
