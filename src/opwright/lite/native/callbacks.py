"""Calls between Python and the provider: the provider's functions, the Python functions that it calls back, and the
tensor state that C writes.

Lives here: `provider` and the types of its functions; `native_context_of`; callbacks that resize tensors, add tensors
and read the model's metadata; cleanup when the process exits; `sync_type_from_c` and `sync_from_c`, which read types,
kinds of memory, shapes and elements back after a method of an operator.
Not here: requests about tensors alone, which the provider answers from the records; the provider's source (provider/)
and its build (toolchain.py); the records that C reads (c_context.py).

Each call releases the interpreter lock, and a callback acquires it. An exception cannot pass through C: it is stored, C
receives kTfLiteError, and the exception is raised when the method returns, whatever its status. An operator that
continued after a refused resize would write out of bounds.
"""

from __future__ import annotations

import atexit
import ctypes as C
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from ...core.forks import once
from ..ops import types
from ..runtime.tensor import ARENA, CONSTANT, DYNAMIC, OWN, Tensor
from . import records, toolchain
from .c_context import EVERY, MOST_DIMENSIONS, OLD_HEADERS, READABLE, NativeContext, from_c, is_converted
from .records import CTensor

if TYPE_CHECKING:
    from ..runtime.subgraph import Subgraph


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


_POINTER = C.c_void_p
_PROVIDER_FUNCTIONS = {
    # name                      result     arguments
    "ow_context_init": (None, (_POINTER, _POINTER)),
    "ow_context_end": (None, (_POINTER,)),
    "ow_init": (_POINTER, (_POINTER, _POINTER, _POINTER, C.c_size_t)),
    "ow_free": (None, (_POINTER, _POINTER, _POINTER)),
    "ow_prepare": (C.c_int, (_POINTER, _POINTER, _POINTER)),
    "ow_invoke": (C.c_int, (_POINTER, _POINTER, _POINTER)),
    "ow_run": (C.c_int, (_POINTER,)),
    "ow_run_all": (C.c_int, (_POINTER,)),
    "ow_has_invoke": (C.c_int, (_POINTER,)),
    "ow_is_operator": (C.c_int, (_POINTER,)),
    "ow_operator_registration": (None, (_POINTER, _POINTER)),
    "ow_call_by_value": (C.c_int, (_POINTER, _POINTER, _POINTER)),
    "ow_added_begin": (None, ()),
    "ow_added": (C.c_int, (_POINTER,)),
    "ow_added_end": (None, ()),
    "ow_size_of": (C.c_size_t, (C.c_int,)),
    "ow_blocks": (C.c_int64, ()),
    "TfLiteIntArrayCreate": (_POINTER, (C.c_int,)),
    "TfLiteIntArrayFree": (None, (_POINTER,)),
    "TfLiteFloatArrayCreate": (_POINTER, (C.c_int,)),
    "TfLiteFloatArrayFree": (None, (_POINTER,)),
    "TfLiteTensorDataFree": (None, (_POINTER,)),
}
_RECORDS = (records.CHost, records.CContext, records.CTensor, records.CNode, records.CRegistration)


@once
def provider() -> C.CDLL:
    """Return the provider, loaded so that libraries of operators find its symbols.

    raises UnavailableError if it must be built and there is no compiler
    """
    library = toolchain.provider()
    for name, (result, arguments) in _PROVIDER_FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    for i, record in enumerate(_RECORDS):
        if library.ow_size_of(i) != C.sizeof(record):
            raise InternalError(
                what=f"{record.__name__} is laid out in another way than in C",
                found=C.sizeof(record),
                wanted=library.ow_size_of(i),
            )
    return library


_contexts: weakref.WeakValueDictionary[int, NativeContext] = weakref.WeakValueDictionary()  # by address of the context


def native_context_of(subgraph: Subgraph, provider: Any) -> NativeContext:
    """Return the C view of a subgraph, created for its first operator in C."""
    if subgraph.native is None:
        c_context = NativeContext(subgraph, provider)
        host = c_context.host
        host.resize, host.add_tensors, host.get_metadata = (C.cast(f, C.c_void_p).value for f in _FUNCTIONS)
        if not _contexts:
            atexit.unregister(_free_all)
            atexit.register(_free_all)
        _contexts[c_context.address] = c_context
        subgraph.native = c_context
    result: NativeContext = subgraph.native
    return result


def _free_all() -> None:
    """Free the state of all nodes of live interpreters when the process exits."""
    for c_context in list(_contexts.values()):
        ownership = c_context.subgraph.ownership
        if not (ownership.running or ownership.thread):  # otherwise a daemon thread may be using it
            c_context.subgraph.close()


def _status_of(context: int, function: Callable[[NativeContext], None]) -> int:
    """Return the status of a callback; its exception is stored for the caller of the method."""
    c_context = _contexts.get(context)
    if c_context is None:
        return records.ERROR
    try:
        function(c_context)
    except BaseException as error:
        c_context.failure = c_context.failure or error
        c_context.host.misuse += 1
        return records.ERROR
    return records.OK


def _resize(context: int, tensor: int | None, shape: int | None) -> int:
    c_context = _contexts.get(context)
    if c_context is None:
        return records.ERROR
    own: list[int] = []  # the shape, once the tensor owns it
    status = _status_of(context, lambda c_context: own.append(resize(c_context, c_context.index_of(tensor), shape)))
    if not own and shape and not c_context.has_shape(shape):
        c_context.arrays.free(shape)
    return status


def _add_tensors(context: int, count: int, first: Any) -> int:
    def add(c_context: NativeContext) -> None:
        native = c_context.current
        if c_context.host.step not in (records.INIT, records.PREPARE, records.INVOKE) or native is None:
            raise FailedPreconditionError(what="tensors are added outside of init, prepare and invoke")
        start = c_context.add(count)
        native.added += range(start, start + count)
        if first:
            first[0] = start

    return _status_of(context, add)


def _metadata(context: int, name: bytes | None, address: Any, size: Any) -> int:
    c_context = _contexts.get(context)
    entry = None if c_context is None or not name else c_context.metadata(name)
    if entry is None:
        return records.ERROR  # not a failure: operators may query optional metadata
    if address:
        address[0] = entry[0]
    if size:
        size[0] = entry[1]
    return records.OK


_FUNCTIONS: Any = (records.Resize(_resize), records.AddTensors(_add_tensors), records.Metadata(_metadata))


def resize(c_context: NativeContext, i: int, shape: int | None) -> int:
    """Set the shape of a tensor to a TfLiteIntArray, which becomes its `dims`, as C may continue to read it; return the
    array.

    raises InvalidArgumentError, FailedPreconditionError, ResourceExhaustedError; the caller then still owns the array
    """
    t, subgraph, native = c_context.tensors[i], c_context.subgraph, c_context.current
    phase, file = c_context.host.step, i < subgraph.file_tensors
    if phase not in (records.PREPARE, records.INVOKE) or native is None:
        raise FailedPreconditionError(what=f"tensor {t.name!r} is resized outside of prepare and invoke")
    if not shape:
        raise InvalidArgumentError(
            what=f"tensor {t.name!r} was resized without sizes",
            found="a null pointer",
            wanted="a TfLiteIntArray from TfLiteIntArrayCreate",
        )
    sizes = records.read_int_array(shape, MOST_DIMENSIONS)
    if sizes is None:
        raise InvalidArgumentError(
            what=f"tensor {t.name!r} was resized to an invalid number of dimensions",
            found=C.c_int32.from_address(shape).value,
            wanted=f"0 to {MOST_DIMENSIONS}",
        )
    if any(c_context.array[other].dims == shape for other in native.touched() if other != i):
        raise InvalidArgumentError(
            what=f"tensor {t.name!r} was resized to another tensor's sizes: both would free them",
            wanted="an array of its own",
            do="TfLiteIntArrayCopy(sizes)",
        )
    if t.kind != CONSTANT:
        if not native.may_resize(i):
            raise InvalidArgumentError(
                what=f"tensor {i} {t.name!r} must not be resized by this node",
                found=repr(t),
                wanted="an output, or a tensor that it added",
                do=f"ResizeTensor of these alone; if it means to, {OLD_HEADERS}",
            )
        sync_type_from_c(c_context, i)
        if t.type is None:
            raise InvalidArgumentError(
                what=f"tensor {i} was added and has no type yet", do="set its type before its shape"
            )
        if phase == records.INVOKE and file and tuple(sizes) != t.shape and not c_context.is_dynamic(t):
            raise FailedPreconditionError(
                what=f"tensor {t.name!r} got another shape in invoke",
                found=sizes,
                wanted=list(t.shape),
                do="ResizeTensor in prepare; or make it dynamic there: "
                "SetTensorToDynamic, allocation_type = kTfLiteDynamic",
            )
    subgraph.context.resize(t, sizes)
    c_context.sized_tensors.add(i)
    native.resized.add(i)
    if t.kind == DYNAMIC and t.array is None:
        subgraph.allocate_own(t)
    c_context.push(i, *(EVERY if subgraph.running else (*READABLE, DYNAMIC)))
    c_context.adopt_shape(i, shape)
    return shape
