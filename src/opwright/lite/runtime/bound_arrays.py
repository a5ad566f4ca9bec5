"""Tensors in memory of the caller: inputs that a run reads and outputs that it writes without a copy.

Lives here: `check_array` and `check_apart`, which arrays tensors may be; `attach`; `works_in_place`, whether an output
may be in the memory of an input.
Not here: the arrays of a subgraph and their place in its plan (subgraph.py), the runner that takes them
(introspection.py).

As SetCustomAllocationForTensor in C++: a cache of a language model that is bound as an input and as an output is
updated in place. There the caller answers for that; here an input whose elements are needed after the output is written
gets memory of its own, and is copied before a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError, also
from ..ops import types
from .memory import may_overwrite
from .node import Node
from .tensor import ARENA, OWN, Tensor


def check_array(t: Tensor, array: Any, output: bool) -> None:
    """Raise InvalidArgumentError unless a tensor's elements may be in an array. output: whether a run writes it."""
    name = f"tensor {t.name!r}"
    if t.kind not in (ARENA, OWN) or t.is_variable or t.is_object or t.type.name in types.IN_BYTES:
        raise InvalidArgumentError(
            what=f"{name} cannot be an array of the caller",
            found=repr(t),
            wanted="an input or output of a shape that is known before a run, of a type of whole bytes",
        )
    wanted = f"a contiguous, aligned{' and writable' if output else ''} array, {t.dtype.name}{list(t.shape)}"
    if not isinstance(array, np.ndarray):
        raise InvalidArgumentError(what=f"{name} can be an array alone", found=type(array).__name__, wanted=wanted)
    flags = array.flags
    fits = array.dtype == t.dtype.np and array.shape == t.shape
    if not fits or not (flags.c_contiguous and flags.aligned and (flags.writeable or not output)):
        kind = "" if flags.c_contiguous else ", not contiguous"
        raise InvalidArgumentError(
            what=f"{name} cannot be this array",
            found=f"{array.dtype.name}{list(array.shape)}{kind}{'' if flags.writeable else ', read-only'}",
            wanted=wanted,
        )


def attach(t: Tensor, array: np.ndarray) -> None:
    """Let a tensor's elements be in a bound array. Raises InvalidArgumentError if it has another shape by now."""
    if t.shape != array.shape:
        raise also(InvalidArgumentError, RuntimeError)(
            what=f"tensor {t.name!r} has another shape than the array that it is bound to",
            found=list(t.shape),
            wanted=list(array.shape),
            do="bind another array, or None",
        )
    t.set_kind(OWN)
    t.bind(array)


def check_apart(tensors: Sequence[Tensor], arrays: Mapping[int, np.ndarray], outputs: Iterable[int]) -> None:
    """Raise InvalidArgumentError if an output shares memory with another tensor, unless it is all of an input's."""
    written = set(outputs)
    for index in written & arrays.keys():
        for other, array in arrays.items():
            if other == index or not np.may_share_memory(arrays[index], array):
                continue
            if other in written or not is_same(arrays[index], array):
                raise InvalidArgumentError(
                    what=f"the arrays of {tensors[index].name!r} and {tensors[other].name!r} share memory",
                    wanted="an output that has memory of its own, or all of that of an input",
                )


def is_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays are all of the same memory."""
    return a.nbytes == b.nbytes and a.__array_interface__["data"] == b.__array_interface__["data"]


def works_in_place(nodes: Iterable[Node], source: Tensor, target: Tensor) -> bool:
    """Return whether nodes in this order have the same results if `target`, an output, is in the memory of `source`."""
    is_written = False
    for node in nodes:
        if any(t is source for t in node.tensors_in):
            if is_written:
                return False
            if any(t is target for t in node.tensors_out):
                plan = getattr(node.registration, "works_in_place", None)
                if not (may_overwrite(node, source, target) if plan is None else plan(source, target)):
                    return False
                if not works_in_place(node.replaced, source, target):  # which run instead if a guard stops the plan
                    return False
        is_written |= any(t is target for t in node.tensors_out)
    return True
