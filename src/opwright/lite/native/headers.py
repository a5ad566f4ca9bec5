"""The folder of headers for operators in C, with forwarding headers under the paths that programs include.

Lives here: the table of paths, the text of each header, `include_folder`, which writes them for compilers.
Not here: the headers themselves (include/opwright/). Public custom operators include these paths.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from ...core import flags
from ...core.errors import UnavailableError
from ...core.files import replacing_folder
from ...core.private_files import cache_folder
from . import build_cache

INCLUDE = Path(__file__).parent / "include"
"""The headers that are not generated."""

ROOTS = ("tensorflow/lite", "tflite", "third_party/tensorflow/lite")
"""Path prefixes: TensorFlow's tree, LiteRT's, and those in documents of their own trees."""

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
"""Path -> our headers that it includes."""

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


def forwarding_headers() -> dict[str, str]:
    """Return the text of each forwarding header, by its path in the include folder."""
    table = {
        f"{root}/{tail}": "".join(f'#include "opwright/lite/{name}"\n' for name in ours)
        for root in ROOTS
        for tail, ours in TAILS.items()
    }
    return {**table, "flatbuffers/flexbuffers.h": FLEXBUFFERS}


def include_folder() -> Path:
    """Write all headers to a folder and return it; the folder of the same headers is found again.

    The folder is in the cache, or belongs to this process if the cache is not writable.
    raises UnavailableError where neither can be written
    """
    files = forwarding_headers()
    files.update({path.relative_to(INCLUDE).as_posix(): path.read_text("utf-8") for path in INCLUDE.rglob("*.h")})
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    failure: OSError | None = None
    for cache in (cache_folder(flags.cache_dir, "headers"), build_cache.own_folder()):
        try:
            root = cache.real(make=True)
            if root is not None:
                return _written(Path(root) / f"include-{digest}", files)
        except OSError as error:
            failure = error
    raise UnavailableError(
        what="the headers of operators in C have no folder to be written to",
        found=str(failure),
        do="TMPDIR=FOLDER, or OPWRIGHT_CACHE_DIR=FOLDER",
    ) from failure


def _written(folder: Path, files: dict[str, str]) -> Path:
    """Return the folder once it holds these files. Raises OSError."""
    if _holds(folder, files):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with replacing_folder(folder) as inside:
            for path, text in files.items():
                target = Path(inside, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text.encode())
    except OSError:
        if not _holds(folder, files):  # another process has not written it meanwhile
            raise
    return folder


def _holds(folder: Path, files: dict[str, str]) -> bool:
    try:
        return all(Path(folder, path).read_bytes() == text.encode() for path, text in files.items())
    except OSError:
        return False
