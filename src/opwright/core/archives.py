"""Errors of damaged zip files, of which `zipfile` raises those of its parts as they are."""

from __future__ import annotations

import struct
import zipfile
import zlib

try:
    from lzma import LZMAError
except ImportError:  # a Python built without it, whose zipfile refuses such members
    LZMAError = zipfile.BadZipFile  # type: ignore[assignment, misc]

DAMAGED_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
    struct.error,
    OSError,
    OverflowError,  # an offset beyond ssize_t
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""Errors of opening a zip file and reading its members, whatever its bytes are."""
