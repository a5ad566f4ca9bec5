"""Tensor state written by C: types, kinds of memory, shapes and elements, read back after a method of an operator.

Lives here: `sync_type_from_c`, `check_shape`, `sync_from_c`.
Not here: the records that C reads (c_context.py), when they are read back (registration.py).
"""

from __future__ import annotations

import ctypes as C
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from ..ops import types
from ..runtime.tensor import ARENA, CONSTANT, DYNAMIC, OWN, Tensor
from . import records
from .c_context import MOST_DIMENSIONS, NativeContext
from .element_conversion import from_c, is_converted
from .records import CTensor


def sync_type_from_c(c_context: NativeContext, i: int) -> None:
    """Update type and kind of memory from C, for an output or an added tensor."""
    t, c = c_context.tensors[i], c_context.array[i]
    if c.type != records.TYPES.get(getattr(t.type, "name", ""), 0):
        name = records.TYPE_NAMES.get(c.type)
        dtype = types.BY_NAME.get(name or "")
        if dtype is None or (dtype.np.kind == "O" and name != "STRING"):
            raise InvalidArgumentError(
                what=f"tensor {i} {t.name!r} has an invalid new type, {c.type}",
                found=name or "no type",
                wanted="a TfLiteType of numbers, or strings",
            )
        t.set_dtype(dtype)
    if t.type is None:
        return
    kind, running = c.allocation_type, c_context.subgraph.running
    if kind == records.MEM_DYNAMIC:
        if i >= c_context.subgraph.file_tensors:
            t.set_kind(DYNAMIC)
        elif not c_context.is_dynamic(t) and not (t.is_object and t.kind == OWN):
            if t.kind == DYNAMIC:  # of a node that is prepared while the model runs
                c_context.subgraph._dynamic.add(t.index)
            else:
                c_context.subgraph.make_dynamic(t)
    elif kind in (records.ARENA_RW_PERSISTENT, records.PERSISTENT_RO):
        if t.kind not in (OWN, CONSTANT):
            t.set_kind(OWN)
    elif kind == records.ARENA_RW:
        if i >= c_context.subgraph.file_tensors:
            t.set_kind(OWN if t.is_object else DYNAMIC if running else ARENA)
        elif t.kind == OWN and not t.is_object and not t.is_variable:
            t.set_kind(ARENA)
    elif not (kind == records.MMAP_RO and t.kind == CONSTANT) and kind != records.MEM_NONE:
        raise InvalidArgumentError(
            what=f"tensor {i} {t.name!r} has an invalid new kind of memory",
            found=f"TfLiteAllocationType {kind}",
            wanted="kTfLiteArenaRw, kTfLiteArenaRwPersistent, kTfLitePersistentRo or kTfLiteDynamic",
        )


def check_shape(c_context: NativeContext, i: int) -> None:
    """Raise InvalidArgumentError if C changed a shape without ResizeTensor."""
    t = c_context.tensors[i]
    sizes = records.read_int_array(c_context.array[i].dims, MOST_DIMENSIONS)
    if sizes is None or (tuple(sizes) != t.shape and c_context.array[i].dims):
        raise InvalidArgumentError(
            what=f"the sizes of tensor {i} {t.name!r} were changed in place",
            found=sizes,
            wanted=list(t.shape),
            do="context->ResizeTensor(context, tensor, sizes)",
        )


def sync_from_c(c_context: NativeContext, i: int) -> None:
    """Update shape and elements from C, for a tensor with memory of C's own or in C's encoding."""
    t, c = c_context.tensors[i], c_context.array[i]
    elsewhere = c_context.is_elsewhere(i)
    try:
        if elsewhere:
            sizes = records.read_int_array(c.dims, MOST_DIMENSIONS)
            if sizes is not None and (tuple(sizes) != t.shape or t.array is None):
                c_context.subgraph.context.resize(t, sizes)
                if t.array is None:
                    c_context.subgraph.allocate_own(t)
        check_shape(c_context, i)
        if is_converted(t):
            _take_converted(t, c)
        elif elsewhere:
            _take_allocated(t, c)
    finally:
        c_context.discard(i)


def _take_converted(t: Tensor, c: CTensor) -> None:
    if t.array is None:
        return
    if c.data is None and t.array.size:
        raise InvalidArgumentError(
            what=f"output {t.name!r} got no elements", found=t.short(), wanted="one for each place of the tensor"
        )
    if c.data is not None and t.array.size:
        content = np.ctypeslib.as_array((C.c_uint8 * c.bytes).from_address(c.data))
        t.array[...] = from_c(t, content)


def _take_allocated(t: Tensor, c: CTensor) -> None:
    array: Any = t.array
    if c.bytes < array.nbytes:
        raise InvalidArgumentError(
            what=f"the memory for tensor {t.name!r} is too small",
            found=f"{c.bytes} bytes",
            wanted=f"{array.nbytes} for {t.short()}",
        )
    if array.nbytes:
        C.memmove(array.__array_interface__["data"][0], c.data, array.nbytes)
