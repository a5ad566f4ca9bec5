"""Files that are written whole or not at all.

Lives here: `replacing`.  Not here: what is in them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import BinaryIO


def temporary(path: str) -> str:
    """A name beside `path` that nobody uses."""
    return f"{path}.tmp-{secrets.token_hex(4)}"


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], sync: bool = False) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` when the `with` ends well and vanishes otherwise.

    sync: wait until the contents are on the disk, so that they outlast a loss of power. Raises OSError.
    """
    inside = temporary(os.fspath(path))
    try:
        with open(inside, "wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(inside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(inside)
        raise
