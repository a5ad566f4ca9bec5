"""Names of files by patterns.

Lives here: `matching_files`.  Not here: what the files hold (files.py).
"""

from __future__ import annotations

import glob
import os
from typing import Any

from ..core.errors import InvalidArgumentError


def matching_files(patterns: Any) -> list[bytes]:
    """Return the files that match glob patterns, sorted. Raises InvalidArgumentError if there are none."""
    texts = [p.decode() if isinstance(p, bytes) else os.fspath(p) for p in patterns]
    found = sorted({name for text in texts for name in glob.glob(text)})
    if not found:
        raise InvalidArgumentError(op="Dataset.list_files", what=f"No files matched pattern: {', '.join(texts)}")
    return [name.encode() for name in found]
