"""Views of tensors that a program holds: as long as one lives, the elements must not move.

Lives here: `lend`, `check_lent`.  Not here: copies (values.py).

A view's base is a memoryview, and NumPy makes a slice's base the array before that: so the array dies only with the
last slice of it, and a weak reference to it tells. The official interpreter counts references for the same end, and
refuses runs, too, which move nothing here.
"""

from __future__ import annotations

import weakref

import numpy as np

from ...core.errors import FailedPreconditionError
from .errors import also
from .tensor import CONSTANT, Tensor

Lent = dict[int, tuple[np.ndarray, "weakref.ref[np.ndarray]"]]  # by tensor: its elements, and what was lent of them

HELD = ("There is at least 1 reference to internal data in the interpreter in the form of a numpy array or slice. Be "
        "sure to only hold the function returned from tensor() if you are using raw data access.")  # fmt: skip


def lend(lent: Lent, t: Tensor, array: np.ndarray) -> np.ndarray:
    """The elements of a tensor, as an array whose life is watched. Constants and strings never move and are as is."""
    if t.kind == CONSTANT or array.dtype.kind == "O":
        return array
    known = lent.get(t.index)
    if known is not None and known[0] is array and (held := known[1]()) is not None:
        return held.view(array.dtype).reshape(array.shape)
    watched = np.asarray(array.reshape(-1).view(np.uint8).data)
    lent[t.index] = array, weakref.ref(watched)
    return watched.view(array.dtype).reshape(array.shape)


def check_lent(lent: Lent, subgraph_index: int) -> None:
    """Raises the error for views that are still held, where the elements of the main subgraph are about to move."""
    if lent and subgraph_index == 0:
        held = [index for index, (_, view) in lent.items() if view() is not None]
        if held:
            raise also(FailedPreconditionError, RuntimeError)(
                what=HELD, found=f"views of tensors {', '.join(map(str, held))}", wanted="none while elements move"
            )
        lent.clear()
