"""Headers under the paths that people include them by: files of one line that lead to the headers of ours.

Lives here: the table of paths, `forwarding_headers`; `python -m opwright.lite.native.headers` writes the files anew.
Not here: the headers themselves (include/opwright/lite/).
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
    "builtin_ops.h": ("builtin_ops.h",),
    "kernels/custom_ops_register.h": ("common.h",),
    "kernels/internal/common.h": ("tensor_ctypes.h",),
    "kernels/internal/compatibility.h": ("compatibility.h",),
    "kernels/internal/runtime_shape.h": ("tensor_ctypes.h",),
    "kernels/internal/tensor.h": ("tensor_ctypes.h",),
    "kernels/internal/tensor_ctypes.h": ("tensor_ctypes.h",),
    "kernels/internal/types.h": ("tensor_ctypes.h",),
    "kernels/kernel_util.h": ("kernel_util.h",),
    "kernels/op_macros.h": ("compatibility.h",),
    "string_type.h": ("string_util.h",),
    "string_util.h": ("string_util.h",),
}
"""Path -> which of ours it means."""


def forwarding_headers() -> Iterator[tuple[str, str]]:
    """The path under the include folder, and the text, of each."""
    for root in ROOTS:
        for tail, ours in TAILS.items():
            yield f"{root}/{tail}", "".join(f'#include "opwright/lite/{name}"\n' for name in ours)


def main() -> None:
    for path, text in forwarding_headers():
        (INCLUDE / path).parent.mkdir(parents=True, exist_ok=True)
        (INCLUDE / path).write_text(text)


if __name__ == "__main__":
    main()
