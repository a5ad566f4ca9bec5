"""Datasets of file contents: lines of text, TFRecords, fixed-length records.

Lives here: the datasets.
Not here: the format of TFRecords and their writer (io/records.py), parsing of records (io/examples.py), CSV
(csv_files.py).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from ..core.errors import DataLossError, InvalidArgumentError, NotFoundError
from ..core.specs import TensorSpec
from ..eager.tensor import convert_to_tensor
from ..io.records import compression_name, open_decompressed, read_records
from .base import int_operand
from .dataset import Dataset
from .functions import Failure, IteratorContext
from .structure import operand


class FilesDataset(Dataset):
    """Elements from files, read one after the other; a subclass reads one file.

    element_spec: of elements that are not strings.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, operands: Any = (), element_spec: Any = None
    ) -> None:
        if isinstance(filenames, Dataset):
            spec = filenames.element_spec
            if not isinstance(spec, TensorSpec) or spec.dtype.name != "string":
                raise TypeError(f"The `filenames` argument must contain `tf.string` elements. Got `{spec!r}`.")
            inputs, names = [filenames], []
        else:
            if hasattr(filenames, "__fspath__"):
                filenames = os.fspath(filenames)
            if isinstance(filenames, (list, tuple)):
                filenames = [os.fspath(f) if hasattr(f, "__fspath__") else f for f in filenames]
            if isinstance(filenames, list) and not filenames:
                filenames = np.empty(0, object)
            tensor = convert_to_tensor(filenames)
            if tensor.dtype.name != "string":
                raise TypeError(
                    f"The `filenames` argument must contain `tf.string` elements. Got `{tensor.dtype.name}` elements."
                )
            inputs, names = [], [operand(tensor)]
        self._compression = compression_name(compression_type, type(self).__name__)
        spec = TensorSpec((), "string") if element_spec is None else element_spec
        super().__init__(spec, inputs, [*names, *operands])

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        if self._inputs:
            names: Any = self._inputs[0].flow(context.input())
        else:
            names = ((n,) for n in np.asarray(self._operands[0], object).reshape(-1))
        for item in names:
            if type(item) is Failure:
                yield item
                continue
            for name in np.asarray(item[0], object).reshape(-1):
                try:
                    with open_decompressed(name.decode(), self._compression) as file:
                        yield from self.items(file, name.decode())
                except FileNotFoundError:
                    what = f"{name.decode()}; No such file or directory"
                    yield Failure(NotFoundError(op=type(self).__name__, what=what))
                except (OSError, EOFError, zlib.error) as error:
                    yield Failure(DataLossError(op=type(self).__name__, what=f"cannot read {name.decode()}: {error}"))
                except (DataLossError, InvalidArgumentError) as error:
                    yield Failure(error)

    def items(self, file: IO[bytes], name: str) -> Iterator[Any]:
        """Yield the elements of one file."""
        for record in self.records(file, name):
            yield (np.array(record, object),)

    def records(self, file: IO[bytes], name: str) -> Iterator[bytes]:
        """Yield the strings of one file."""
        raise TypeError(f"{type(self).__name__} must define records(file, name)")


class TextLineDataset(FilesDataset):
    """Lines of text files as strings, without line endings.

    filenames: a name, several, or a dataset of names. compression_type: None, "GZIP" or "ZLIB". buffer_size,
    num_parallel_reads: accepted; files are read sequentially.
    Iterating raises NotFoundError for a missing file.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(filenames, compression_type)

    def records(self, file: IO[bytes], name: str) -> Iterator[bytes]:
        """Yield the lines."""
        for line in file:
            line = line.removesuffix(b"\n")
            yield line.removesuffix(b"\r")


class TFRecordDataset(FilesDataset):
    """Records of TFRecord files as strings.

    filenames: a name, several, or a dataset of names. compression_type: None, "GZIP" or "ZLIB". buffer_size,
    num_parallel_reads: accepted; files are read sequentially.
    Iterating raises NotFoundError for a missing file, DataLossError for a corrupt one.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(filenames, compression_type)

    def records(self, file: IO[bytes], name: str) -> Iterator[bytes]:
        """Yield the records after verifying their checksums."""
        return read_records(file, name)


class FixedLengthRecordDataset(FilesDataset):
    """Records of `record_bytes` bytes of files, after `header_bytes` and before `footer_bytes`.

    Iterating raises NotFoundError for a missing file, InvalidArgumentError if its size does not match.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        numbers = [
            int_operand(0 if v is None else v, n)
            for v, n in ((record_bytes, "record_bytes"), (header_bytes, "header_bytes"), (footer_bytes, "footer_bytes"))
        ]
        super().__init__(filenames, compression_type, numbers)

    def records(self, file: IO[bytes], name: str) -> Iterator[bytes]:
        """Yield the records."""
        size, header, footer = map(int, self._operands[-3:])
        data = file.read()
        body = len(data) - header - footer
        if size < 1 or body < 0 or body % size:
            what = f"Excess bytes: {name} has {len(data)}, which is not {header} + n * {size} + {footer}"
            raise InvalidArgumentError(op="FixedLengthRecordDataset", what=what)
        for offset in range(header, header + body, size):
            yield data[offset : offset + size]
