"""Caches of elements: in memory, or in a file that outlives the process.

Lives here: the transformation, and the file format.  Not here: the elements.

    file    = magic b"OWCACHE1", then one record per element, then the end
    record  = b"E", then for each component: rank and sizes as int64, and the bytes (a string: its length and bytes)
    end     = b".", the number of elements as int64

The file is replaced atomically when it is complete. Numbers are little-endian. An iteration that is abandoned or has a
Failure caches nothing.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from ..core.dtypes import DType
from ..core.errors import DataLossError
from ..core.files import Replacement
from ..eager.tensor import convert_to_tensor
from ..tracing.symbolic import SymbolicTensor
from .context import IteratorContext
from .dataset import Dataset
from .functions import Failure
from .structure import operand

_MAGIC = b"OWCACHE1"


class _CacheDataset(Dataset):
    def __init__(self, input_dataset: Any, filename: Any) -> None:
        name = operand(convert_to_tensor(filename, "string"))
        if any(d.is_handle for d in input_dataset._form.dtypes) and (type(name) is SymbolicTensor or name[()]):
            raise TypeError(f"datasets of datasets cannot be cached in a file: {input_dataset.element_spec!r}")
        super().__init__(input_dataset.element_spec, (input_dataset,), (name,))
        self.begin()

    def begin(self) -> None:
        self._cached: list[Any] | None = None

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        name = self._operands[0][()]
        if name:
            path = name.decode()
            if os.path.exists(path):
                return _read_cache(path, self._form.dtypes)
            return self._cache_in_file(path, context)
        return self._cache_in_memory(context) if self._cached is None else iter(self._cached)

    def _cache_in_memory(self, context: IteratorContext) -> Iterator[Any]:
        items: list[Any] = []
        complete = True
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                complete = False
            else:
                items.append(item)
            yield item
        if complete:
            self._cached = items

    def _cache_in_file(self, path: str, context: IteratorContext) -> Iterator[Any]:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        new = Replacement(path)
        try:
            file = new.file
            file.write(_MAGIC)
            header = json.dumps([d.name for d in self._form.dtypes]).encode()
            file.write(struct.pack("<q", len(header)) + header)
            count, complete = 0, True
            for item in self._inputs[0].flow(context.input()):
                if type(item) is Failure:
                    complete = False
                elif complete:
                    file.write(b"E")
                    for array in item:
                        _write_array(file, array)
                    count += 1
                yield item
            file.write(b"." + struct.pack("<q", count))
            if complete:
                new.commit(sync=True)
        finally:
            new.discard()

    def _cardinality(self) -> int:
        return int(self._inputs[0]._cardinality())


def _write_array(file: IO[bytes], array: np.ndarray) -> None:
    file.write(struct.pack(f"<{1 + array.ndim}q", array.ndim, *array.shape))
    if array.dtype == object:
        for text in array.ravel():
            file.write(struct.pack("<q", len(text)))
            file.write(text)
    else:
        file.write(np.ascontiguousarray(array).tobytes())


def _read_cache(path: str, dtypes: tuple[DType, ...]) -> Iterator[Any]:
    def damaged(what: str) -> DataLossError:
        return DataLossError(
            op="Dataset.cache",
            what=f"{path!r} is not a complete cache file of this dataset: {what}",
            do="delete it; the next iteration writes it again",
        )

    size = os.path.getsize(path)
    with open(path, "rb") as file:

        def exactly(n: int) -> bytes:
            if n < 0 or n > size:
                raise damaged(f"a length of {n} bytes")
            data = file.read(n)
            if len(data) != n:
                raise damaged("it ends early")
            return data

        def numbers(n: int) -> tuple[int, ...]:
            if not 0 <= n <= 64:
                raise damaged(f"a rank of {n}")
            return struct.unpack(f"<{n}q", exactly(8 * n))

        try:
            if exactly(len(_MAGIC)) != _MAGIC:
                raise damaged("unknown magic bytes")
            header = exactly(*numbers(1)).decode(errors="replace")
            if header != json.dumps([d.name for d in dtypes]):
                raise damaged(f"it contains elements of dtypes {header}")
            count = 0
            while (mark := exactly(1)) == b"E":
                item = []
                for dtype in dtypes:
                    shape = numbers(*numbers(1))
                    n = int(np.prod(shape, dtype=object)) if shape else 1
                    if min(shape, default=0) < 0 or n * (dtype.size or 8) > size:
                        raise damaged(f"a shape of {shape}")
                    if dtype.name == "string":
                        array = np.empty(n, object)
                        array[:] = [exactly(*numbers(1)) for _ in range(n)]
                    else:
                        array = np.frombuffer(exactly(n * dtype.size), dtype.np)
                    item.append(array.reshape(shape))
                count += 1
                yield tuple(item)
            if mark != b"." or numbers(1) != (count,):
                raise damaged("the end record is missing")
        except DataLossError as error:
            yield Failure(error)
