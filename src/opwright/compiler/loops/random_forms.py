"""Forms of random numbers: the words of counter-based generators, and what is made of words.

Lives here: `RandomWords`, `Advanced`, `NormalPairs`, `Classes`.
Not here: other forms (forms.py), kernels (../kernels/random_numbers.py), where states are kept
(lite/runtime/resources.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .forms import Buffer, Form


@dataclass(frozen=True, eq=False)
class RandomWords(Form):
    """The words of the blocks that a state stands before, uint32, as many as the output has.

    state: uint64, the key, the lower and, if it has three, the upper half of the first block's number; with two the
    upper half is the key. carries: whether the lower half carries into the upper one from block to block.
    """

    state: Buffer
    algorithm: Literal["philox", "threefry"]
    carries: bool


@dataclass(frozen=True, eq=False)
class Advanced(Form):
    """The state that stands so many blocks further on."""

    state: Buffer
    blocks: int
    carries: bool


@dataclass(frozen=True, eq=False)
class NormalPairs(Form):
    """Standard normal float32, two of each two numbers in [0, 1): sqrt(-2 log u) sin(2 pi v) and the same with cos.

    Of an odd number of results the last cosine is left out.
    """

    uniform: Buffer


@dataclass(frozen=True, eq=False)
class Classes(Form):
    """The class that each float64 in [0, 1) falls into, int32 or int64 [rows, n].

    Class c of a row of logits [rows, classes] has the weight exp(l_c - max l), 0 where l_c is not finite; capped: what
    falls behind the last class is in it, else it has the number behind.
    """

    logits: Buffer
    numbers: Buffer
    capped: bool
