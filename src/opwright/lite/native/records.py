"""The structs of the TensorFlow Lite C API as ctypes structures, and its constants.

Lives here: layouts (64-bit), element types, kinds of memory, statuses, arrays of numbers.
Not here: filling them (c_context.py, registration.py), interpreting an operator's record (custom_ops.py).

The opaque types of the API are these structures under other names. Fields were only ever appended: a record from an
older compiler is a prefix of a newer one.
"""

from __future__ import annotations

import ctypes as C
from collections.abc import Sequence
from typing import Any

STATUS = {
    0: "kTfLiteOk",
    1: "kTfLiteError",
    2: "kTfLiteDelegateError",
    3: "kTfLiteApplicationError",
    4: "kTfLiteDelegateDataNotFound",
    5: "kTfLiteDelegateDataWriteError",
    6: "kTfLiteDelegateDataReadError",
    7: "kTfLiteUnresolvedOps",
    8: "kTfLiteCancelled",
    9: "kTfLiteOutputShapeNotKnown",
}
OK, ERROR, CANCELLED, SHAPE_NOT_KNOWN = 0, 1, 8, 9

TYPES = {
    "FLOAT32": 1,
    "INT32": 2,
    "UINT8": 3,
    "INT64": 4,
    "STRING": 5,
    "BOOL": 6,
    "INT16": 7,
    "COMPLEX64": 8,
    "INT8": 9,
    "FLOAT16": 10,
    "FLOAT64": 11,
    "COMPLEX128": 12,
    "UINT64": 13,
    "RESOURCE": 14,
    "VARIANT": 15,
    "UINT32": 16,
    "UINT16": 17,
    "INT4": 18,
    "BFLOAT16": 19,
    "INT2": 20,
    "UINT4": 21,
    "FLOAT8_E4M3FN": 22,
    "FLOAT8_E5M2": 23,
}
"""Numbers of element types in C, which differ from the schema's, by the schema's names."""
TYPE_NAMES = {number: name for name, number in TYPES.items()}

MEM_NONE, MMAP_RO, ARENA_RW, ARENA_RW_PERSISTENT, MEM_DYNAMIC, PERSISTENT_RO, MEM_CUSTOM, VARIANT_OBJECT, NON_CPU = (
    range(9)
)
"""Kinds of memory of a tensor."""

NO_QUANTIZATION, AFFINE, BLOCKWISE = 0, 1, 2

CUSTOM_CODE = 32
"""The builtin code of custom operators."""

INIT_FAILED = 2**64 - 1
"""The state that a failed init returns, (void*)-1."""


class CQuantizationParams(C.Structure):
    """TfLiteQuantizationParams: one scale and zero point; zeros if there are none, or several."""

    _fields_ = (("scale", C.c_float), ("zero_point", C.c_int32))


class CQuantization(C.Structure):
    """TfLiteQuantization: the kind of quantization, and its record."""

    _fields_ = (("type", C.c_int), ("params", C.c_void_p))


class CAffineQuantization(C.Structure):
    """TfLiteAffineQuantization. scale: a FloatArray. zero_point: an IntArray. Both have one element, or one for each
    slice of the dimension."""

    _fields_ = (("scale", C.c_void_p), ("zero_point", C.c_void_p), ("quantized_dimension", C.c_int32))


class CBlockwiseQuantization(C.Structure):
    """TfLiteBlockwiseQuantization: indices of the tensors with scales and zero points."""

    _fields_ = (
        ("scale", C.c_int32),
        ("zero_point", C.c_int32),
        ("blocksize", C.c_int32),
        ("quantized_dimension", C.c_int32),
    )


class CTensor(C.Structure):
    """TfLiteTensor. allocation: used by the host; equal to `data` if Python owns that memory."""

    _fields_ = (
        ("type", C.c_int),
        ("data", C.c_void_p),
        ("dims", C.c_void_p),
        ("params", CQuantizationParams),
        ("allocation_type", C.c_int),
        ("bytes", C.c_size_t),
        ("allocation", C.c_void_p),
        ("name", C.c_void_p),
        ("delegate", C.c_void_p),
        ("buffer_handle", C.c_int),
        ("data_is_stale", C.c_bool),
        ("is_variable", C.c_bool),
        ("quantization", CQuantization),
        ("sparsity", C.c_void_p),
        ("dims_signature", C.c_void_p),
    )


class CNode(C.Structure):
    """TfLiteNode."""

    _fields_ = (
        ("inputs", C.c_void_p),
        ("outputs", C.c_void_p),
        ("intermediates", C.c_void_p),
        ("temporaries", C.c_void_p),
        ("user_data", C.c_void_p),
        ("builtin_data", C.c_void_p),
        ("custom_initial_data", C.c_void_p),
        ("custom_initial_data_size", C.c_int),
        ("delegate", C.c_void_p),
        ("might_have_side_effect", C.c_bool),
    )


class CContext(C.Structure):
    """TfLiteContext. The provider sets the functions."""

    _fields_ = (
        ("tensors_size", C.c_size_t),
        ("GetExecutionPlan", C.c_void_p),
        ("tensors", C.c_void_p),
        ("impl_", C.c_void_p),
        ("ResizeTensor", C.c_void_p),
        ("ReportError", C.c_void_p),
        ("AddTensors", C.c_void_p),
        ("GetNodeAndRegistration", C.c_void_p),
        ("ReplaceNodeSubsetsWithDelegateKernels", C.c_void_p),
        ("recommended_num_threads", C.c_int),
        ("GetExternalContext", C.c_void_p),
        ("SetExternalContext", C.c_void_p),
        ("allow_fp32_relax_to_fp16", C.c_bool),
        ("profiler", C.c_void_p),
        ("AllocatePersistentBuffer", C.c_void_p),
        ("AllocateBufferForEval", C.c_void_p),
        ("RequestScratchBufferInArena", C.c_void_p),
        ("GetScratchBuffer", C.c_void_p),
        ("ResizeTensorExplicit", C.c_void_p),
        ("PreviewDelegatePartitioning", C.c_void_p),
        ("GetTensor", C.c_void_p),
        ("GetEvalTensor", C.c_void_p),
        ("GetModelMetadata", C.c_void_p),
        ("AcquireSubgraphContext", C.c_void_p),
        ("ReleaseSubgraphContext", C.c_void_p),
    )


class CRegistration(C.Structure):
    """TfLiteRegistration."""

    _fields_ = (
        ("init", C.c_void_p),
        ("free", C.c_void_p),
        ("prepare", C.c_void_p),
        ("invoke", C.c_void_p),
        ("profiling_string", C.c_void_p),
        ("builtin_code", C.c_int32),
        ("custom_name", C.c_void_p),
        ("version", C.c_int),
        ("registration_external", C.c_void_p),
        ("async_kernel", C.c_void_p),
        ("inplace_operator", C.c_uint64),
    )


COMMON_BYTES = CRegistration.registration_external.offset
"""Bytes of a registration that are common to all versions of the headers."""


class COperator(C.Structure):
    """TfLiteOperator, created by the provider."""

    _fields_ = (
        ("custom_name", C.c_char_p),
        ("version", C.c_int),
        ("init", C.c_void_p),
        ("free", C.c_void_p),
        ("prepare", C.c_void_p),
        ("invoke", C.c_void_p),
        ("async_kernel", C.c_void_p),
        ("builtin_code", C.c_int32),
        ("node_index", C.c_int),
        ("inplace_operator", C.c_uint64),
        ("user_data", C.c_void_p),
        ("init_with_data", C.c_void_p),
        ("free_with_data", C.c_void_p),
        ("prepare_with_data", C.c_void_p),
        ("invoke_with_data", C.c_void_p),
        ("async_kernel_with_data", C.c_void_p),
    )


class CAdded(C.Structure):
    """OwAdded: an operator that a function added to a resolver."""

    _fields_ = (
        ("name", C.c_char_p),
        ("builtin_code", C.c_int32),
        ("version", C.c_int32),
        ("source", C.c_void_p),
        ("registration", CRegistration),
    )


METHODS = ("init", "free", "prepare", "invoke")


class CHost(C.Structure):
    """OwHost: data shared between the provider and the interpreter (provider/provider.h)."""

    _fields_ = (
        ("resize", C.c_void_p),
        ("add_tensors", C.c_void_p),
        ("get_metadata", C.c_void_p),
        ("tensors_capacity", C.c_size_t),
        ("inputs", C.c_void_p),
        ("outputs", C.c_void_p),
        ("variables", C.c_void_p),
        ("inputs_size", C.c_int32),
        ("outputs_size", C.c_int32),
        ("variables_size", C.c_int32),
        ("step", C.c_int32),
        ("nodes_size", C.c_size_t),
        ("name", C.c_void_p),
        ("external_contexts", C.c_void_p * 5),
        ("report", C.c_void_p),
        ("report_size", C.c_size_t),
        ("report_used", C.c_size_t),
        ("misuse", C.c_int32),
        ("resized", C.c_int32),
        ("thrown", C.c_int32),
        ("node", C.c_void_p),
        ("backends", C.c_void_p),
    )


INIT, PREPARE, INVOKE, FREE = 1, 2, 3, 4
"""Values of CHost.step: the running method."""

Resize = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p, C.c_void_p)
AddTensors = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_int, C.POINTER(C.c_int))
Metadata = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_char_p, C.POINTER(C.c_void_p), C.POINTER(C.c_size_t))


class CTensorState(C.Structure):
    """OwPlace: the state of one of a node's tensors before a run."""

    _fields_ = (
        ("index", C.c_int32),
        ("type", C.c_int32),
        ("bytes", C.c_size_t),
        ("rank", C.c_int32),
        ("sizes", C.c_void_p),
    )


class CCall(C.Structure):
    """OwCall: a node's run."""

    _fields_ = (
        ("registration", C.c_void_p),
        ("context", C.c_void_p),
        ("node", C.c_void_p),
        ("places", C.c_void_p),
        ("places_size", C.c_size_t),
    )


class CCalls(C.Structure):
    """OwCalls: consecutive runs of nodes."""

    _fields_ = (("calls", C.c_void_p), ("size", C.c_size_t), ("done", C.c_size_t))


class Arrays:
    """TfLiteIntArrays and TfLiteFloatArrays on the provider's heap, where operators may free them."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    def ints(self, values: Sequence[int]) -> int:
        """Return the address of a new array. Raises MemoryError."""
        return _fill(C.c_int32, self._provider.TfLiteIntArrayCreate(len(values)), values)

    def floats(self, values: Sequence[float]) -> int:
        """Return the address of a new array. Raises MemoryError."""
        return _fill(C.c_float, self._provider.TfLiteFloatArrayCreate(len(values)), values)

    def free(self, address: int | None) -> None:
        """Free an array of integers."""
        if address:
            self._provider.TfLiteIntArrayFree(address)

    def free_floats(self, address: int | None) -> None:
        """Free an array of floats."""
        if address:
            self._provider.TfLiteFloatArrayFree(address)


def _fill(element: Any, address: int | None, values: Sequence[Any]) -> int:
    if address is None:
        raise MemoryError(f"no memory for {len(values)} elements")
    (element * len(values)).from_address(address + 4)[:] = values
    return address


def read_int_array(address: int | None, most: int) -> list[int] | None:
    """Return the elements of a TfLiteIntArray; empty for a null pointer, None for a size outside 0 to `most`."""
    if not address:
        return []
    size = C.c_int32.from_address(address).value
    if not 0 <= size <= most:
        return None
    return list((C.c_int32 * size).from_address(address + 4))
