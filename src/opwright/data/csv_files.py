"""Datasets of CSV files: `CsvDataset`, `make_csv_dataset`.

Lives here: records of files, types of columns found in the first rows.
Not here: fields and their conversion (io/text.py).
"""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from ..io.records import open_decompressed
from ..io.text import CsvColumns, csv_dtypes, csv_fields
from ..ops import dispatch
from .buffers import AUTOTUNE
from .dataset import Dataset
from .files import FilesDataset
from .functions import Failure


def csv_records(file: IO[bytes], quotes: bool) -> Iterator[bytes]:
    """Yield the records of a file, without line ends; those with a quoted line end are several lines."""
    record = b""
    for line in file:
        record += line
        if quotes and record.count(b'"') % 2:
            continue
        yield record.removesuffix(b"\n").removesuffix(b"\r")
        record = b""
    if record:
        yield record


class CsvDataset(FilesDataset):
    """The records of CSV files (RFC 4180), each a tuple of scalars, one for each column.

    filenames: a name, several, or a dataset of names. record_defaults: for each column a dtype, for a column that is
    required, or a list with its default. header: whether files have a first line of names. field_delim,
    use_quote_delim, na_value: as of `io.decode_csv`. select_cols: increasing positions of the columns to return;
    exclude_cols: or those to leave out.
    Iterating raises InvalidArgumentError for records of another form.
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: Any = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: Any = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        if select_cols is not None and exclude_cols is not None:
            raise ValueError("Either select_cols or exclude_cols should be empty.")
        out = csv_dtypes(record_defaults, "CsvDataset")
        self._header, self._quotes, self._exclude = bool(header), use_quote_delim, exclude_cols
        defaults = [[] if isinstance(d, DType) else dispatch.to_tensor(d).numpy() for d in record_defaults]
        self._parts = defaults, out, field_delim, use_quote_delim, na_value
        self._columns = CsvColumns(*self._parts, select_cols)
        specs = tuple(TensorSpec([], dtype) for dtype in out)
        super().__init__(filenames, compression_type, element_spec=specs)

    def items(self, file: IO[bytes], name: str) -> Iterator[Any]:
        """Yield the records of one file as columns."""
        records = csv_records(file, self._quotes)
        if self._header:
            next(records, None)
        columns = self._columns
        for i, record in enumerate(records):
            if self._exclude is not None and i == 0:
                width = len(csv_fields(record, self._parts[2].encode(), self._quotes))
                columns = CsvColumns(*self._parts, [k for k in range(width) if k not in self._exclude])
            try:
                values = columns.row(record, i)
            except InvalidArgumentError as error:
                yield Failure(error)
                continue
            item = []
            for value, dtype in zip(values, self._parts[1]):
                array = np.empty((), dtype.np)
                with np.errstate(over="ignore"):  # of float32: infinity, as in TensorFlow
                    array[()] = value
                item.append(array)
            yield tuple(item)


_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


def _holds(dtype: DType, text: bytes) -> bool:
    """Return whether a dtype represents what a field says."""
    if dtype is dtypes.string:
        return True
    try:
        if dtype.is_floating:
            number = float(text)
            return bool(np.isinf(number) or abs(number) <= float(np.finfo(dtype.np).max))
        limits = np.iinfo(dtype.np)
        return bool(limits.min <= int(text) <= limits.max)
    except ValueError:
        return False


def _column_types(rows: Iterator[list[bytes]], count: int, na_value: bytes, limit: int | None) -> list[DType]:
    """Return the first type of int32, int64, float32, float64, string that holds the fields of each column."""
    kinds = [-1] * count
    for i, row in enumerate(rows):
        if limit is not None and i >= limit:
            break
        if len(row) != count:
            raise ValueError(
                f"Problem inferring types: CSV row {i + 1} has {len(row)} number of fields. Expected: {count}."
            )
        for k, text in enumerate(row):
            if text and text != na_value:
                while not _holds(_TYPES[max(kinds[k], 0)], text):
                    kinds[k] = max(kinds[k], 0) + 1
                kinds[k] = max(kinds[k], 0)
    return [dtypes.string if k < 0 else _TYPES[k] for k in kinds]


class _FileForm(NamedTuple):
    """The form of CSV files. delimiter: of fields; quotes: whether fields may be quoted; header: whether the first
    record has the names of the columns; compression: as `open_decompressed` takes it."""

    delimiter: bytes
    quotes: bool
    header: bool
    compression: str

    def header_of(self, path: str) -> list[str]:
        """Return the names of a file's columns. Raises ValueError for files without a header."""
        if not self.header:
            raise ValueError("Cannot infer column names without a header line.")
        with open_decompressed(path, self.compression) as file:
            first = next(csv_records(file, self.quotes), b"")
        return [text.decode() for text in csv_fields(first, self.delimiter, self.quotes)]

    def rows_of(self, path: str) -> Iterator[list[bytes]]:
        """Yield the fields of each record of a file, without its header."""
        with open_decompressed(path, self.compression) as file:
            records = csv_records(file, self.quotes)
            if self.header:
                next(records, None)
            for record in records:
                yield csv_fields(record, self.delimiter, self.quotes)


def _chosen_columns(columns: list[str], select_columns: Sequence[Any] | None) -> list[int]:
    """Return the ascending indices of the columns that are read. Raises ValueError for names that do not match."""
    if len(set(columns)) != len(columns):
        raise ValueError(f"Cannot have duplicate column names: {columns}")
    if select_columns is None:
        return list(range(len(columns)))
    unknown = [c for c in select_columns if isinstance(c, str) and c not in columns]
    if unknown:
        raise ValueError(f"`select_columns` has names that are not columns: {unknown}. Columns are {columns}")
    return sorted({columns.index(c) if isinstance(c, str) else int(c) for c in select_columns})


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: Any = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: Any = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Return batches of the records of CSV files: dicts of columns, or with label_name pairs of a dict and the labels.

    file_pattern: a path or glob pattern, or several. column_names: by default those of the first file's header.
    column_defaults: for each column (of select_columns) a dtype or a list with its default; by default types follow
    from the first num_rows_for_inference rows of the files, None for all, and what is missing is 0 or empty.
    num_epochs: passes, without end by default. batch_size: of all batches but the last of a number of passes.
    raises ValueError for names that do not match, InvalidArgumentError where no file matches
    """
    if encoding.lower().replace("-", "") != "utf8":
        raise ValueError(f"files are read as UTF-8; found encoding={encoding!r}")
    patterns = list(file_pattern) if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    names = sorted({name for p in patterns for name in glob.glob(os.fspath(p))})
    if not names:
        raise InvalidArgumentError(op="make_csv_dataset", what=f"No files matched {file_pattern!r}")
    if shuffle:
        np.random.RandomState(shuffle_seed).shuffle(names)
    form = _FileForm(field_delim.encode(), use_quote_delim, header, compression_type or "")
    columns = form.header_of(names[0]) if column_names is None else list(column_names)
    chosen = _chosen_columns(columns, select_columns)
    if column_defaults is None:
        rows = itertools.chain.from_iterable(map(form.rows_of, names))
        kinds = _column_types(rows, len(columns), na_value.encode(), num_rows_for_inference)
        column_defaults = [["" if kinds[k] is dtypes.string else kinds[k].np.type(0)] for k in chosen]
    kept = [columns[k] for k in chosen]
    if len(column_defaults) != len(kept):
        raise ValueError(f"`column_defaults` has {len(column_defaults)} entries for {len(kept)} columns")
    if label_name is not None and label_name not in kept:
        raise ValueError("`label_name` provided must be one of the columns.")

    def as_dict(*values: Any) -> Any:
        features = dict(zip(kept, values))
        return features if label_name is None else (features, features.pop(label_name))

    dataset: Any = CsvDataset(
        names,
        column_defaults,
        compression_type,
        header=header,
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=chosen,
    )
    if ignore_errors:
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(as_dict)
    result: Dataset = dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
    return result
