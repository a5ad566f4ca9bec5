"""Files of Keras 3: .keras archives, a ZIP of a configuration (JSON) and weights (HDF5).

Lives here: `Archive`, `WeightGroup`: their contents, checked: nothing in them is executed, no other file is read.
Not here: what they mean (configurations.py, weights.py).
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np

from ...core.errors import DataLossError
from ...core.extras import optional_module

CONFIGURATION, WEIGHTS = "config.json", "model.weights.h5"
MOST_TEXT = 1 << 28
"""Most bytes of a configuration."""
MOST_RATIO = 2000
"""Most times that a member may be larger than it is compressed: constant weights reach 1,000."""


class Archive:
    """An open .keras file. configuration: its model as Keras serializes it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            self._zip = zipfile.ZipFile(self.path)
        except zipfile.BadZipFile as error:
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
        h5py = optional_module("h5py")
        content = self._read(WEIGHTS, 1 << 62)
        try:
            return WeightGroup(h5py.File(io.BytesIO(content), "r"), "")
        except OSError as error:
            raise DataLossError(what=f"the {WEIGHTS} of {self.path} are damaged: {error}") from error

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
        except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise DataLossError(what=f"{name} of {self.path} is damaged: {error}") from error


class WeightGroup:
    """A group of an HDF5 file of weights: members behind hard links only, which lie in the same file. path: its name,
    for errors."""

    def __init__(self, group: Any, path: str) -> None:
        self._group = group
        self.path = path

    def __iter__(self) -> Iterator[str]:
        return iter(self._group)

    def __contains__(self, name: str) -> bool:
        return name in self._group

    def group(self, name: str) -> WeightGroup:
        """Return a group in this one. Raises DataLossError if there is none."""
        return WeightGroup(self._member(name, "Group"), f"{self.path}/{name}")

    def array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return the elements of a dataset of a shape. Raises DataLossError for another one."""
        dataset = self._member(name, "Dataset")
        where = f"{self.path}/{name}"
        if tuple(dataset.shape or ()) != shape or dataset.dtype.kind not in "biufcV":
            raise DataLossError(
                what=f"the weight {where} does not fit its layer",
                found=f"{dataset.dtype}{list(dataset.shape or ())}",
                wanted=list(shape),
            )
        if dataset.external or dataset.is_virtual:
            raise DataLossError(what=f"the weight {where} lies in another file")
        try:
            return np.asarray(dataset[()])
        except OSError as error:
            raise DataLossError(what=f"the weight {where} is damaged: {error}") from error

    def _member(self, name: str, kind: str) -> Any:
        h5py = optional_module("h5py")
        where = f"{self.path}/{name}"
        try:
            link = self._group.get(name, getlink=True)
            member = self._group.get(name) if isinstance(link, h5py.HardLink) else None
        except (KeyError, OSError, RuntimeError, ValueError) as error:
            raise DataLossError(what=f"{where} is damaged: {error}") from error
        if not isinstance(member, getattr(h5py, kind)):
            raise DataLossError(
                what=f"there is no {kind.lower()} {where}", found=", ".join(list(self._group)[:5]) or "nothing"
            )
        return member
