"""Files that a test writes again and again.

Lives here: `replace_file`.
"""

from __future__ import annotations

from pathlib import Path


def replace_file(path: Path, content: bytes | str) -> None:
    """Write a file in place of the one of that name: ext4 writes the content of one that was truncated to the disk when
    it is closed, which takes 3 ms, that of a new one takes 0.05."""
    path.unlink(missing_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
