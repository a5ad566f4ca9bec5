"""Files of Keras 3: .keras archives, a ZIP of a configuration (JSON) and weights (HDF5).

Lives here: `Archive`: its contents, checked: nothing in them is executed.
Not here: what they mean (configurations.py, nn/hdf5_weights.py).
"""

from __future__ import annotations

import json
import os
import zipfile
from types import TracebackType
from typing import Any, BinaryIO

from ...core.archives import DAMAGED_ZIP
from ...core.errors import DataLossError
from ...nn.hdf5_weights import MOST_RATIO, WeightGroup, open_weights

CONFIGURATION, WEIGHTS = "config.json", "model.weights.h5"
MOST_TEXT = 1 << 28
"""Most bytes of a configuration."""


class Archive:
    """An open .keras file. configuration: its model as Keras serializes it."""

    def __init__(self, path: str | os.PathLike[str] | BinaryIO) -> None:
        self.path = os.fspath(path) if isinstance(path, str | os.PathLike) else "the file"
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError:  # no such file
            raise
        except DAMAGED_ZIP as error:
            raise DataLossError(what=f"{self.path} is not a .keras file: {error}") from error
        try:
            text = self._read(CONFIGURATION, MOST_TEXT)
            self.configuration: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            self._zip.close()
            raise DataLossError(what=f"the {CONFIGURATION} of {self.path} is damaged: {error}") from error
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def weights(self) -> WeightGroup:
        """Return the root of the weights. Raises FailedPreconditionError without h5py."""
        return open_weights(self._read(WEIGHTS, 1 << 62), f"the {WEIGHTS} of {self.path}")

    def files(self) -> dict[str, bytes]:
        """Return the files that layers stored."""
        names = [name for name in self._zip.namelist() if name.startswith("assets/") and not name.endswith("/")]
        return {name: self._read(name, MOST_TEXT) for name in names}

    def _read(self, name: str, most: int) -> bytes:
        try:
            member = self._zip.getinfo(name)
        except KeyError:
            raise DataLossError(what=f"{self.path} has no {name}", found=self._zip.namelist()[:5]) from None
        if member.file_size > min(most, MOST_RATIO * member.compress_size + (1 << 20)):
            raise DataLossError(
                what=f"{name} of {self.path} expands to {member.file_size:,} bytes", found=member.compress_size
            )
        try:
            with self._zip.open(member) as stream:
                return stream.read(member.file_size)
        except DAMAGED_ZIP as error:
            raise DataLossError(what=f"{name} of {self.path} is damaged: {error}") from error
