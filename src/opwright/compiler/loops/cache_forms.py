"""Forms of caches of keys and values.

Lives here: `PutEntries`.  Not here: other updates (forms.py, slice_forms.py), its kernel (../kernels/scatter.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .forms import Buffer, Form


@dataclass(frozen=True, eq=False)
class PutEntries(Form):
    """The input [entries, ...] with update[i] at positions[i], int32 [n], in their order. The first position below the
    one before it ends the list; one outside of the entries before that is a failed guard."""

    input: Buffer
    update: Buffer
    positions: Buffer
