"""Files of builds, shared between processes: the cache of built libraries, and the folder of headers.

Lives here: `find`, `store`: a library by its key, valid as long as its sources are unchanged; `include_folder`, which
writes forwarding headers under the paths that public custom operators include.
Not here: building (toolchain.py), the headers themselves (include/opwright/), kernels of models (compiler/cache.py).

A note, under the key, holds the library's name and digest, and the digests of the files that it was built from. The
note is authenticated (core/private_files.py), so a damaged or foreign library, or one of another key, counts as missing
and is never loaded. A library's name contains its digest, since a loader that has loaded a name once does not read the
file again. Both files are replaced atomically: processes may share the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ...core import flags, forks
from ...core.errors import UnavailableError
from ...core.files import remove_leftovers, replacing_folder
from ...core.private_files import PrivateFolder, cache_folder, warn_not_kept

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
    for cache in (cache_folder(flags.cache_dir, "headers"), own_folder()):
        try:
            root = cache.real(make=True)
            if root is not None:
                return _write_headers(Path(root) / f"include-{digest}", files)
        except OSError as error:
            failure = error
    raise UnavailableError(
        what="the headers of operators in C have no folder to be written to",
        found=str(failure),
        do="TMPDIR=FOLDER, or OPWRIGHT_CACHE_DIR=FOLDER",
    ) from failure


def _write_headers(folder: Path, files: dict[str, str]) -> Path:
    """Return the folder after writing these files to it, if it lacks any. Raises OSError."""
    if _has_files(folder, files):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with replacing_folder(folder) as inside:
            for path, text in files.items():
                target = Path(inside, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text.encode())
    except OSError:
        if not _has_files(folder, files):  # another process has not written it meanwhile
            raise
    return folder


def _has_files(folder: Path, files: dict[str, str]) -> bool:
    try:
        return all(Path(folder, path).read_bytes() == text.encode() for path, text in files.items())
    except OSError:
        return False


MOST_BYTES = 256 << 20  # the least recently used libraries beyond this are removed
MOST_LIBRARY, MOST_NOTE = 1 << 31, 1 << 24  # maximum bytes of a file
_NOTE = ".note"
_LIBRARIES = (".so", ".dylib", ".dll")


def find(key: str) -> Path | None:
    """Return the library of a key; None if it is missing, damaged, or its sources have changed."""
    own = [own_folder()] if _temporary is not None else []
    for files in (_folder(), *own):
        folder = files.real()
        if folder is None:
            continue
        try:
            note = json.loads(files.read(f"{key}{_NOTE}", MOST_NOTE) or b"null")
            name = os.path.basename(note["library"])
            if _digest_in(files, name) == note["digest"] and all(_digest(p) == d for p, d in note["made_of"].items()):
                library = Path(folder) / name
                _mark_used(library)
                result: Path | None = library
                return result
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
    return None


def _mark_used(library: Path) -> None:
    """Record the last use of a library in its access time. Changing its modification time would make processes that
    loaded it load it again (library.py)."""
    os.utime(library, ns=(time.time_ns(), library.stat().st_mtime_ns))


def store(key: str, name: str, content: bytes, made_of: Sequence[Path]) -> Path:
    """Write a library; if that fails, to a folder of this process, with one warning for each library.

    name: prefix and suffix of its file name, for readability
    """
    files = _folder()
    try:
        library = _write(files, key, name, content, made_of)
        if library is not None:
            return library
    except OSError as error:
        warn_not_kept("compiled operators", files.path, error, stacklevel=6)
    library = _write(own_folder(), key, name, content, made_of)
    if library is None:
        raise UnavailableError(
            what="a library that was built has no folder to be loaded from",
            found=str(own_folder().path),
            wanted="a folder for temporary files that other users cannot change",
            do="TMPDIR=FOLDER, or OPWRIGHT_CACHE_DIR=FOLDER",
        )
    return library


def _write(files: PrivateFolder, key: str, name: str, content: bytes, made_of: Sequence[Path]) -> Path | None:
    """Write a library and its note; return None if the folder is refused. Raises OSError."""
    digest = hashlib.sha256(content).hexdigest()
    stem, suffix = os.path.splitext(name)
    file = f"{stem}-{digest[:16]}-{key[:16]}{suffix}"
    note = {"library": file, "digest": digest, "made_of": {os.fspath(p): _digest(p) for p in made_of}}
    if not (files.write_plain(file, [content]) and files.write(f"{key}{_NOTE}", [json.dumps(note).encode()])):
        return None
    folder = Path(files.real() or "")
    _shrink(folder, folder / file)
    return folder / file


def _shrink(folder: Path, current: Path) -> None:
    """Remove leftovers of killed writers, and the oldest libraries above the size limit.

    A process that has loaded a library does not need its name. There are a few dozen, each built by a compiler, so the
    cost of this is negligible.
    """
    remove_leftovers(folder)
    libraries = [(path.stat(), path) for path in folder.iterdir() if path.suffix in _LIBRARIES and path != current]
    total = sum(stat.st_size for stat, _ in libraries)
    for stat, path in sorted(libraries, key=lambda item: max(item[0].st_atime, item[0].st_mtime)):
        if total <= MOST_BYTES:
            break
        for stale in (path, *folder.glob(f"{path.stem.rsplit('-', 1)[-1]}*{_NOTE}")):
            with contextlib.suppress(OSError):
                stale.unlink()
        total -= stat.st_size


def _folder() -> PrivateFolder:
    return cache_folder(flags.cache_dir, "operators")


_temporary: tempfile.TemporaryDirectory[str] | None = None  # for libraries that the cache folder refuses
_lock = forks.lock()


def own_folder() -> PrivateFolder:
    """Return a folder of this process, which is removed at exit."""
    global _temporary
    with _lock:
        if _temporary is None:
            _temporary = tempfile.TemporaryDirectory(prefix="opwright-operators-")
        return cache_folder(Path(_temporary.name))


def _digest_in(files: PrivateFolder, name: str) -> str | None:
    """Return the digest of a library; None if it is missing or refused."""
    handle = files.open(name, MOST_LIBRARY)
    if handle is None:
        return None
    with os.fdopen(handle, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(path: str | os.PathLike[str]) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
