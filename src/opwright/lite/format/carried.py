"""The version of a custom operator's node, which a file may carry in the node's options instead of the operator code.

Lives here: `VERSION_KEY`, `custom_version`.
Not here: what is wrong with a version (lite/written.py), versions of builtin operators (versions.py).
"""

from __future__ import annotations

from typing import Any

from opwright.core.errors import OpError
from opwright.lite.format.flex import decode_options

VERSION_KEY = "_version"  # the operator's version, in files whose operator code must say 1 for other run times
_STORED = VERSION_KEY.encode() + b"\0"  # as FlexBuffers keep it: most options lack it and need not be decoded


def custom_version(code_version: int, options: Any) -> int:
    """The version in a custom node's options where they carry one and the operator code says 1, else the code's.

    options: bytes, a uint8 array or None; what is no FlexBuffers map, or holds no version, carries none.
    """
    raw = b"" if options is None else bytes(options)
    if code_version != 1 or _STORED not in raw:
        return code_version
    try:
        found = decode_options(raw).get(VERSION_KEY)
    except OpError:
        return code_version
    return found if type(found) is int and found >= 1 else code_version
