"""Arrays and dictionaries from pickles, as old data sets have them, without running code of the file.

Lives here: `load_pickle`, `load_npz`.  Not here: which files there are (the modules of the data sets).
"""

from __future__ import annotations

import os
import pickle
import zipfile
from typing import Any, BinaryIO

import numpy as np

from ...core.archives import DAMAGED_ZIP
from ...core.errors import DataLossError

ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}
"""Names that a pickle may use: those of arrays, and of bytes in pickles of Python 2."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise DataLossError(
                op="keras.datasets", what="a pickle with more in it than arrays is not read", found=f"{module}.{name}"
            )
        return super().find_class(module, name)


def load_pickle(file: BinaryIO) -> Any:
    """Return the arrays, numbers, lists and dictionaries of a pickle. Raises DataLossError for anything else."""
    try:
        return _Unpickler(file, encoding="bytes").load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        raise DataLossError(op="keras.datasets", what=f"a pickle is damaged: {error}") from None


def load_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name, those of objects by `load_pickle`. Raises DataLossError if damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy"): _read(archive, name) for name in archive.namelist()}
    except DAMAGED_ZIP as error:
        raise DataLossError(op="keras.datasets", what=f"{os.fspath(path)} is damaged: {error}") from None


def _read(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        _, _, dtype = read_header(file)
        if dtype.hasobject:
            return np.asarray(load_pickle(file))  # type: ignore[arg-type]
    with archive.open(name) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
