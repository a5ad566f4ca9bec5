"""The step that binds NumPy arrays to a plan: it reads their addresses from the Python objects.

Lives here: the kernel `connected`, the layout of its table.
Not here: the layout of the objects and its checks (../native/builtins.py), the caller (../calls.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import language as kl
from ..language import i64, ptr
from ..native.builtins import CONTIGUOUS, DATA, DTYPE, FLAGS, RANK, SIZES

if TYPE_CHECKING:
    from ..language import Value, Work

ROW = 4
"""Words of an array in the table: its dtype object, its rank, the number of its uses; then sizes, then uses."""


@kl.family
def connected(work: Work, items: ptr[i64], table: ptr[i64], count: i64, kind: i64) -> Value:
    """Write the addresses of arrays to the words of a plan; return the number of arrays that differ from the table.

    items: of a tuple of arrays; kind: the array type of NumPy.
    """
    wrong = kl.full(i64, 0, 0)
    row = table
    for a in range(count):
        array = kl.pointer(items[a], i64)
        dtype, rank, uses = row[0], row[1], row[2]
        fits = kl.full(i64, 0, 0)
        if array[1] == kind:
            flat = array[FLAGS] & CONTIGUOUS
            if (array[DTYPE] == dtype) & ((array[RANK] & 0xFFFFFFFF) == rank) & (flat == CONTIGUOUS):
                sizes = kl.pointer(array[SIZES], i64)
                fits = fits + 1
                for k in range(rank):
                    fits = kl.select(sizes[k] == row[ROW + k], fits, fits - 1)
                if fits == 1:
                    data = array[DATA]
                    use = row + ROW + rank
                    for p in range(uses):
                        word = kl.pointer(use[2 * p], i64)
                        word[0] = data + use[2 * p + 1]
        wrong = wrong + kl.select(fits == 1, kl.full(i64, 0, 0), kl.full(i64, 0, 1))
        row = row + ROW + rank + 2 * uses
    return wrong
