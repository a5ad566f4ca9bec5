"""The batch of sequences that rows on sequences are about. Standard library only, as peers' Pythons read it too."""

from __future__ import annotations

import random

WIDTH = 128
_draw = random.Random(4)
LENGTHS = (*(max(1, min(200, round(_draw.expovariate(1 / 40)))) for _ in range(63)), 200)
"""64 lengths from 1 to 200, most of them short: a fifth of what padding makes of them."""
ROWS, LONGEST = sum(LENGTHS), max(LENGTHS)
