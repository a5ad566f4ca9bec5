"""Rules of known inputs, executed at import: their results are constants.

Lives here: `FOLDING`, which executes them within a limit of memory. Not here: which rules those are (importing.py).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core import flags, nest
from ..eager.execute import constants_too_large
from ..ops import dispatch
from ..ops.tensor import TensorLike
from ..tracing.trace import init_scope


class FoldingMemory(threading.local):
    """Bytes that constants computed at import may still take more than their operands, in this thread; None outside of
    imports. A file of a few bytes could ask for any number, by a fill or by repeated doubling.
    """

    left: int | None = None

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Return a context of one import, which may use as much as the flag max_activation_bytes."""
        before, self.left = self.left, int(flags.get("max_activation_bytes"))
        try:
            yield
        finally:
            self.left = before

    def reserve(self, *sizes: int, itemsize: int = 8) -> None:
        """Raise ResourceExhaustedError if an array of this shape takes more than what is left."""
        nbytes = itemsize * math.prod(sizes)
        left = int(flags.get("max_activation_bytes")) if self.left is None else self.left
        if nbytes > left:
            raise constants_too_large(f"{list(sizes)}: {nbytes} bytes", left)

    def fold(self, rule: Callable[[], Any], inputs: Sequence[Any]) -> Any:
        """Return the result of a rule of known inputs, with arrays in place of tensors.

        raises ResourceExhaustedError before an operator computes more than what is left
        """
        operands = _nbytes(inputs)
        before = dispatch.state.output_limit
        dispatch.state.output_limit = None if self.left is None else self.left + operands
        try:
            with init_scope():
                result = _evaluated(rule())
        finally:
            dispatch.state.output_limit = before
        if self.left is not None:
            self.left -= min(max(0, _nbytes(result) - operands), self.left)
        return result


def _nbytes(structure: Any) -> int:
    """Return the bytes of the different arrays of a structure."""
    arrays = {id(v): v.nbytes for v in nest.flatten(structure) if isinstance(v, np.ndarray)}
    return sum(arrays.values())


def _evaluated(value: Any) -> Any:
    """Return a result of eager operators with arrays in place of tensors."""
    return nest.map_structure(lambda leaf: np.asarray(leaf.numpy()) if isinstance(leaf, TensorLike) else leaf, value)


FOLDING = FoldingMemory()
