"""Forms of hashes.

Lives here: `Projection`.  Not here: other forms (forms.py), its kernel (../kernels/lsh_projection.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .forms import Buffer, Form


@dataclass(frozen=True, eq=False)
class Projection(Form):
    """Bits of locality-sensitive hashing, int32: [sum_r weight_r fingerprint(hash_ij, x_r) > 0].

    hash: float32 [functions, bits]; x: [rows, n] bytes; weights: float32 [rows], or none, which are all 1. sparse: the
    bits of each function are a number, the first the highest, plus i 2^bits for function i; the output is [functions].
    Else it is [functions bits].
    """

    hash: Buffer
    x: Buffer
    weights: tuple[Buffer, ...]
    sparse: bool
