"""Forms of pools that find where the greatest element is, and of their inverse; float32.

Lives here: `MaxPlaces`, `PutInWindows`.  Not here: other pools (forms.py), their kernels (../kernels/pooling.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .expressions import Expr
from .forms import Buffer, Form, Window


@dataclass(frozen=True, eq=False)
class MaxPlaces(Form):
    """Each window's greatest element, of equal ones the first, then expr of it; and which tap that is, plus `more`.

    input [N, H, W, C]; results: both [N, OH, OW, C], and the byte in `output` where each begins. What is outside of the
    image, and NaN, is never the greatest; where nothing else is there, it is the least finite number, at tap 0.
    """

    input: Buffer
    results: tuple[tuple[Buffer, int], ...]
    expr: Expr
    window: Window
    more: float = 0.0


@dataclass(frozen=True, eq=False)
class PutInWindows(Form):
    """Zeros, and each element of the input [N, P, Q, C] at a tap of its window over the output [N, H, W, C]: the whole
    part of places [N, P, Q, C]; those outside are left out, and of several at one place the last counts."""

    input: Buffer
    places: Buffer
    window: Window
