"""Apply transforms: copy an input to the layout, dtype and place that its kernel requires.

Lives here: the copies, in variables of the run's inner scope. Not here: which transforms a call needs
(ops/kernel_selection.py), copies between devices (devices/).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import flags
from ..core.places import Place
from ..ops.kernel_operands import InputTransform, KernelOperand
from .scope import Scope
from .scope_tensor import moved, place_of_tensor, tensor_of
from .variable import unique

_PERMUTE = {("NHWC", "NCHW"): (0, 3, 1, 2), ("NCHW", "NHWC"): (0, 2, 3, 1)}


class TemporaryScope:
    """The scope of a run's temporaries, created for the first one and dropped at the end of the `with`."""

    __slots__ = ("_outer", "scope")

    def __init__(self, outer: Scope) -> None:
        self._outer = outer
        self.scope: Scope | None = None

    def put(self, name: str, tensor: Any, layout: str) -> Any:
        """Store a tensor under a unique name until the end of the run; return it."""
        if self.scope is None:
            self.scope = self._outer.new_scope()
        self.scope.var(unique(name)).take(tensor, layout=layout)
        return tensor

    def __enter__(self) -> TemporaryScope:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.scope is not None:
            self.scope.drop()


def transformed(
    tensor: Any, operand: KernelOperand, steps: Sequence[InputTransform], temporaries: TemporaryScope
) -> Any:
    """Return the tensor after these transforms; the original and its variable are unchanged."""
    if not steps:
        return tensor
    array, dtype, place, layout = tensor._array, tensor.dtype, place_of_tensor(tensor), operand.layout
    for step in steps:
        if step.what == "layout":
            array = np.transpose(array, _PERMUTE[step.found, step.wanted])
            array = np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array
            layout = step.wanted
        elif step.what == "dtype":
            array, dtype = array.astype(step.wanted.np), step.wanted
        else:
            array, place = moved(array, place, step.wanted), step.wanted
    return temporaries.put(operand.name, tensor_of(array, dtype, place), layout)


def report(op: str, line: str | None, place: Place, steps: Sequence[InputTransform]) -> None:
    """Print a line to stderr for each transform, if the switch `log_transforms` is on."""
    if flags.log_transforms:
        for step in steps:
            print(f"{op}{f' ({line})' if line else ''} at {place}: {step}", file=sys.stderr)
