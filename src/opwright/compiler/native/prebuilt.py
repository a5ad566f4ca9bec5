"""Prebuilt kernels: machine code that is part of an installed package, a file for each target.

Lives here: `find`; `write`, which makes a file, for `make kernels` (benchmarks/prebuild.py).
Not here: code that was compiled on this machine (store.py).

`TARGET.kernels`, next to this module, contains kernels of common networks for a target of `NAMED`. A process that lacks
a kernel in its cache takes it from the file of a target that generates the same instructions as its own
(`Target.serves`), if this package has the sources that the file was built from, to the byte; otherwise it compiles the
kernel. The repository has no such file: it is built for a release.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import struct
from collections.abc import Mapping

from ...core import files, flags
from ..target import NAMED, Target
from .sources import FORMAT, contents

Identity = tuple[str, str]
"""The name and the constants of a kernel, on any processor."""
Kernels = Mapping[str, memoryview]
FOLDER, SUFFIX = os.path.dirname(__file__), ".kernels"
_MAGIC = b"OWK1"
_DIGEST_BYTES = 64  # in hexadecimal
_HEADER = struct.Struct(f"<4s{_DIGEST_BYTES}s{_DIGEST_BYTES}sQ")  # magic, stamp, digest of the rest, bytes of the index


def find(identity: Identity, target: Target) -> bytes | None:
    """Return the image of a prebuilt kernel for a target, or None."""
    if not flags.prebuilt:
        return None
    image = _kernels(target).get(_key(identity))
    return None if image is None else bytes(image)


def is_available(target: Target) -> bool:
    """Return whether this package has prebuilt kernels for a target."""
    return bool(_kernels(target))


def write(target: str, kernels: Mapping[Identity, bytes]) -> str:
    """Write the file of a target of `NAMED`; return its path."""
    offset, index = 0, {}
    ordered = sorted(kernels.items())
    for identity, image in ordered:
        index[_key(identity)] = offset, len(image)
        offset += len(image)
    head = json.dumps(index).encode()
    rest = b"".join((head, *(image for _, image in ordered)))
    path = os.path.join(FOLDER, f"{target}{SUFFIX}")
    with files.replacing(path) as file:
        file.write(_HEADER.pack(_MAGIC, _stamp(target).encode(), files.digest(rest).encode(), len(head)) + rest)
    return path


@functools.cache
def _kernels(target: Target) -> Kernels:
    """Return the images of the file that serves a target, by key."""
    for name, named in NAMED.items():
        if named.serves(target):
            with contextlib.suppress(OSError):
                return _read(name, os.path.join(FOLDER, f"{name}{SUFFIX}"))
    return {}


def _read(name: str, path: str) -> Kernels:
    """Return the images of a file; none if it is damaged or of other sources. Raises OSError."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < _HEADER.size:
        return {}
    magic, stamp, digest, size = _HEADER.unpack_from(data)
    rest = data[_HEADER.size :]
    if magic != _MAGIC or stamp != _stamp(name).encode() or digest != files.digest(rest).encode():
        return {}
    images = memoryview(rest)[size:]
    return {key: images[start : start + length] for key, (start, length) in json.loads(rest[:size]).items()}


def _stamp(name: str) -> str:
    """Return the digest of what all kernels of a file depend on: sources, their format, the target."""
    return files.digest("\0".join((str(FORMAT), str(contents()), *map(str, NAMED[name]))).encode())


def _key(identity: Identity) -> str:
    return files.digest("\0".join(identity).encode())
