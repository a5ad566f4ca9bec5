"""Whole files as strings: `read_file`, `write_file`, `matching_files`, `match_filenames_once`.

Lives here: the functions, eager and in graphs.
Not here: Python's file objects (gfile.py), records (records.py).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..eager.python_functions import call_on_arrays
from ..eager.variable import Variable
from ..ops.tensor import Tensor
from .host_calls import scalar, string_operand, string_spec, strings
from .local_files import local_path, translated


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """Return the contents of a file as a string of shape (). filename: a path, a string of shape ().

    raises NotFoundError for a missing file, PermissionDeniedError, FailedPreconditionError for a folder
    """

    def read(path: np.ndarray) -> bytes:
        text = local_path(scalar(path, "io.read_file"))
        with translated("io.read_file", text), open(text, "rb") as file:
            return file.read()

    # Files change, so each read is made: a call in a graph is stateful.
    operand = string_operand(filename, "io.read_file", 0)
    result: Tensor = call_on_arrays(read, [operand], string_spec(), name, stateful=True)
    return result


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write a string of shape () to a file; missing folders are created, an existing file is replaced.

    raises PermissionDeniedError, FailedPreconditionError for a folder
    """

    def write(path: np.ndarray, data: np.ndarray) -> list[Any]:
        text = local_path(scalar(path, "io.write_file"))
        with translated("io.write_file", text):
            os.makedirs(os.path.dirname(text) or ".", exist_ok=True)
            with open(text, "wb") as file:
                file.write(scalar(data, "io.write_file"))
        return []

    operands = [string_operand(v, "io.write_file", 0) for v in (filename, contents)]
    call_on_arrays(write, operands, [], name, stateful=True)


def match_paths(patterns: Iterable[Any]) -> list[str]:
    """Return the paths that match glob patterns, sorted, each once."""
    texts = [local_path(pattern) for pattern in patterns]
    return sorted({path for text in texts for path in glob.glob(text, include_hidden=True)})


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """Return the paths that match one or several glob patterns, sorted: strings[n], n = 0 if there are none.

    pattern: a string of shape () or [m]; `*`, `?` and `[a-z]` match within one folder's names
    """

    def match(array: np.ndarray) -> np.ndarray:
        if array.ndim > 1:
            raise InvalidArgumentError(
                op="io.matching_files", what="pattern must have rank 0 or 1", found=f"shape {array.shape}"
            )
        paths = [os.fsencode(path) for path in match_paths(array.reshape(-1).tolist())]
        return strings(paths, (len(paths),))

    operand = string_operand(pattern, "io.matching_files")
    result: Tensor = call_on_arrays(match, [operand], string_spec([None]), name, stateful=True)
    return result


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """Return a Variable of the paths that match glob patterns now, as `matching_files`."""
    return Variable(matching_files(pattern), trainable=False, name=name, validate_shape=False)
