"""Arrays in `.npy` and `.npz` files, for every command that takes some.

Lives here: `read_arrays`, `read_array`. Not here: what a command makes of the arrays, files of results
(distribute/sinks.py), members of other archives (core/archives.py has the errors of damaged ones).
"""

from __future__ import annotations

import tokenize

import numpy as np

from ..core.archives import DAMAGED_ZIP
from ..core.introspection import retry_conversion
from .report import BadFile

_DAMAGED = (*DAMAGED_ZIP, SyntaxError, tokenize.TokenError, MemoryError)
"""Errors of `np.load`: those of an archive, of a header, and of a header that asks for more memory than there is."""


def read_arrays(path: str) -> np.ndarray | dict[str, np.ndarray]:
    """Return the array of an `.npy` file, or the arrays of an `.npz` file by name. Pickled objects are not read.

    raises OSError for a file that cannot be opened, ValueError for one that is damaged or has another form
    """
    with open(path, "rb"):  # an error of the file system is reported as it is
        pass
    try:
        return retry_conversion(_load, path)  # NumPy parses the header of each array as a literal of Python
    except _DAMAGED as error:  # NumPy's message would suggest to allow pickles
        raise ValueError(f"{path} is not an .npy or .npz file as np.save and np.savez write them") from error


def _load(path: str) -> np.ndarray | dict[str, np.ndarray]:
    content = np.load(path, allow_pickle=False)
    if isinstance(content, np.ndarray):
        return content
    with content:
        return dict(content)


def read_array(path: str) -> np.ndarray:
    """Return the array of an `.npy` file. Raises BadFile."""
    content = checked_arrays(path)
    if not isinstance(content, np.ndarray):
        raise BadFile(f"{path}: several arrays in one file; wanted an .npy file as np.save writes it")
    return content


def checked_arrays(path: str) -> np.ndarray | dict[str, np.ndarray]:
    """Return what `read_arrays` does. Raises BadFile."""
    try:
        return read_arrays(path)
    except OSError as error:
        raise BadFile(f"{path}: {error}") from error
    except ValueError as error:
        raise BadFile(str(error)) from error
