"""Weights in several HDF5 files with a list in JSON, as Keras 3 writes them for large models.

Lives here: `save`, `open_all`.  Not here: one file (hdf5_weights.py), the choice by name (weights_io.py).

NAME.weights.json has the bytes of all weights and, by group, the file or files next to it that hold its weights:
NAME_00000.weights.h5 and so on.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import DataLossError
from ..core.files import replacing
from .hdf5_weights import WeightGroup, file_of, open_weights, rows_of
from .layer import Layer

SUFFIX = ".weights.json"
GIGABYTE = 1 << 30


def save(model: Any, path: str, max_shard_size: float, skip: Sequence[Layer] = ()) -> None:
    """Write the weights of a model to files of at most `max_shard_size` GB. Raises ValueError for a larger weight."""
    limit = float(max_shard_size) * GIGABYTE
    if not path.endswith(SUFFIX):
        wanted = path.removesuffix(".h5") + ".json"
        warnings.warn(f"Saving sharded weights requires `*.json` as the extension: {path} is {wanted}", stacklevel=4)
        path = wanted
    stem = path.removesuffix(SUFFIX)
    shards: list[list[tuple[str, np.ndarray]]] = [[]]
    names: dict[str, list[str]] = {}
    total = filled = 0
    for key, array in rows_of(model, skip=skip):
        if array.nbytes > limit:
            raise ValueError(
                f"The size of {key} is {array.nbytes} bytes, which exceeds the maximum shard size of {limit:.0f} "
                "bytes. Increase `max_shard_size`"
            )
        filled += array.nbytes
        total += array.nbytes
        if filled > limit:
            shards.append([])
            filled = array.nbytes
        shards[-1].append((key, array))
        file = os.path.basename(_shard(stem, len(shards) - 1))
        files = names.setdefault("/" + key.rpartition("/")[0], [])
        if file not in files:
            files.append(file)
    for i, rows in enumerate(shards):
        with replacing(_shard(stem, i)) as opened:
            opened.write(file_of(rows))
    weight_map = {group: files[0] if len(files) == 1 else files for group, files in names.items()}
    with replacing(path) as opened:
        text = json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=4)
        opened.write(text.encode())


def _shard(stem: str, index: int) -> str:
    return f"{stem}_{index:05}.weights.h5"


class JoinedGroup(WeightGroup):
    """Groups of one name in several files, as one. groups: at least one."""

    def __init__(self, groups: Sequence[WeightGroup]) -> None:
        self._groups = groups
        self.path = groups[0].path

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for group in self._groups for name in group))

    def __contains__(self, path: object) -> bool:
        return any(path in group for group in self._groups)

    def group(self, name: str) -> JoinedGroup:
        """Return the group of a name. Raises DataLossError if there is none."""
        return JoinedGroup([group.group(name) for group in self._groups if name in group] or [self._first(name)])

    def array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return the elements of a dataset of a shape. Raises DataLossError for another one."""
        return next((g for g in self._groups if name in g), self._groups[0]).array(name, shape)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all datasets of the groups."""
        return {name: array for group in self._groups for name, array in group.arrays().items()}

    def _first(self, name: str) -> WeightGroup:
        return self._groups[0].group(name)


def open_all(content: bytes, path: str) -> JoinedGroup:
    """Return the root of the files that a .weights.json names, which lie next to it.

    raises DataLossError for another file, and names that leave its folder
    """
    try:
        listed = json.loads(content)["weight_map"]
        files = sorted({f for each in listed.values() for f in ([each] if isinstance(each, str) else each)})
        if not files or any(not isinstance(f, str) or f != os.path.basename(f) or "\\" in f for f in files):
            raise ValueError("its names are not those of files next to it")
        folder = os.path.dirname(path)
        roots = []
        for file in files:
            with open(os.path.join(folder, file), "rb") as opened:
                roots.append(open_weights(opened.read(), os.path.join(folder, file)))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise DataLossError(what=f"{path} is not a list of files of weights, or is damaged: {error}") from error
    except OSError as error:
        raise DataLossError(what=f"{path} names a file that cannot be read: {error}") from error
    return JoinedGroup(roots)
