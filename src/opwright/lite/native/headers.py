"""Headers under the paths that people include them by: files of one line that lead to the headers of ours.

Lives here: the table of paths, `forwarding_headers`; `python -m opwright.lite.native.headers` writes the files anew.
Not here: the headers themselves (include/opwright/lite/). Paths are those that public custom operators include.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

INCLUDE = Path(__file__).parent / "include"

ROOTS = ("tensorflow/lite", "tflite", "third_party/tensorflow/lite")
"""What stands in front: TensorFlow's tree, LiteRT's, and what documents print of their own trees."""

CORE_AND_C = {  # under c/ and core/c/
    "builtin_op_data.h": ("builtin_op_data.h",),
    "c_api.h": ("c_api.h", "opaque.h"),
    "c_api_experimental.h": ("c_api_experimental.h", "opaque.h"),
    "c_api_opaque.h": ("opaque.h",),
    "c_api_types.h": ("types.h",),
    "common.h": ("common.h",),
    "operator.h": ("operator.h",),
    "registration_external.h": ("operator.h",),
}

TAILS = {
    **{f"{folder}/{name}": ours for folder in ("c", "core/c") for name, ours in CORE_AND_C.items()},
    **{f"core/async/c/{name}": ("async.h",) for name in ("async_kernel.h", "task.h", "types.h")},
    **{f"core/async/interop/c/{name}": ("async.h",) for name in ("attribute_map.h", "constants.h", "types.h")},
    "c/c_api_internal.h": ("common.h",),
    "array.h": ("int_arrays.h",),
    "builtin_op_data.h": ("builtin_op_data.h",),
    "builtin_ops.h": ("builtin_ops.h",),
    "context.h": ("common.h",),
    "context_util.h": ("int_arrays.h",),
    "core/api/op_resolver.h": ("resolver.h",),
    "core/kernels/register.h": ("resolver.h",),
    "kernels/custom_ops_register.h": ("common.h",),
    "kernels/internal/common.h": ("tensor_ctypes.h", "arithmetic.h", "lookup.h"),
    "kernels/internal/compatibility.h": ("compatibility.h",),
    "kernels/internal/portable_tensor.h": ("writers.h",),
    "kernels/internal/quantization_util.h": ("arithmetic.h",),
    "kernels/internal/reference/integer_ops/lut.h": ("lookup.h",),
    "kernels/internal/runtime_shape.h": ("tensor_ctypes.h",),
    "kernels/internal/tensor.h": ("writers.h",),
    "kernels/internal/tensor_ctypes.h": ("tensor_ctypes.h",),
    "kernels/internal/types.h": ("tensor_ctypes.h",),
    "kernels/kernel_util.h": ("kernel_util.h",),
    "kernels/op_macros.h": ("compatibility.h",),
    "kernels/padding.h": ("padding.h",),
    "kernels/register.h": ("resolver.h",),
    "minimal_logging.h": ("logging.h",),
    "mutable_op_resolver.h": ("resolver.h",),
    "op_resolver.h": ("resolver.h",),
    "portable_type_to_tflitetype.h": ("type_of.h",),
    "schema/schema_generated.h": ("schema.h",),
    "string_type.h": ("string_util.h",),
    "string_util.h": ("string_util.h",),
    "type_to_tflitetype.h": ("type_of.h",),
    "util.h": ("int_arrays.h",),
}
"""Path -> which of ours it means."""

FLEXBUFFERS = """/* FlatBuffers' own header where it is installed, which also builds; else ours, which reads. */
#pragma GCC system_header
#ifdef __has_include_next
#if __has_include_next("flatbuffers/flexbuffers.h")
#include_next "flatbuffers/flexbuffers.h"
#define OW_FLEXBUFFERS_ARE_THERE
#endif
#endif
#ifndef OW_FLEXBUFFERS_ARE_THERE
#include "opwright/lite/flexbuffers.h"
#endif
"""


def forwarding_headers() -> Iterator[tuple[str, str]]:
    """The path under the include folder, and the text, of each."""
    for root in ROOTS:
        for tail, ours in TAILS.items():
            yield f"{root}/{tail}", "".join(f'#include "opwright/lite/{name}"\n' for name in ours)
    yield "flatbuffers/flexbuffers.h", FLEXBUFFERS


def main() -> None:
    for path, text in forwarding_headers():
        (INCLUDE / path).parent.mkdir(parents=True, exist_ok=True)
        (INCLUDE / path).write_text(text)


if __name__ == "__main__":
    main()
