"""What a measurement of the ways to compute one thing found.

Lives here: `Measured`.  Not here: measuring (tuning.py), the file of what was found (tuning_file.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Measured(NamedTuple):
    """What was found: the way chosen, seconds by way, and why others fell out."""

    chosen: str
    seconds: dict[str, float]
    out: Mapping[str, str] = MappingProxyType({})

    def __str__(self) -> str:
        times = [f"{name} {s * 1e6:.3g} us" for name, s in sorted(self.seconds.items(), key=lambda pair: pair[1])]
        return ", ".join(times + [f"{name} out: {why}" for name, why in self.out.items()])
