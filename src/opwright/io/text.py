"""Text and raw bytes as tensors: `decode_csv`, `decode_raw`, `decode_compressed`, base64.

Lives here: the functions, and the fields of a line of CSV.
Not here: datasets of CSV files (data/csv_files.py).
"""

from __future__ import annotations

import base64
import binascii
import sys
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import dtypes, flags
from ..core.dtypes import DType, as_dtype
from ..core.errors import DataLossError, InvalidArgumentError
from ..core.specs import TensorSpec
from ..eager.python_functions import call_on_arrays
from ..ops import dispatch
from ..ops.tensor import Tensor
from .host_calls import check_size, string_operand, string_spec, strings
from .records import compression_name

# ---- CSV (RFC 4180) --------------------------------------------------------------------------------------------------

CSV_DTYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)


def csv_fields(line: bytes, delimiter: bytes, use_quotes: bool) -> list[bytes]:
    """Return the fields of a record, quotes removed.

    raises InvalidArgumentError for quotes and line ends where RFC 4180 has none
    """
    if not line:
        return []
    if not use_quotes or b'"' not in line:
        if use_quotes and (b"\n" in line or b"\r" in line):
            raise _csv_error("Unquoted fields cannot have quotes/CRLFs inside")
        return line.split(delimiter)
    result, offset, end = [], 0, len(line)
    while True:
        if line[offset : offset + 1] == b'"':
            stop, parts = offset + 1, []
            while True:
                quote = line.find(b'"', stop)
                if quote < 0:
                    raise _csv_error("Quoted field has to end with quote followed by delim, CRLF, or end")
                parts.append(line[stop:quote])
                stop = quote + 1
                if line[stop : stop + 1] != b'"':
                    break
                parts.append(b'"')
                stop += 1
            if stop < end and line[stop : stop + 1] != delimiter:
                raise _csv_error("Quote inside a string has to be escaped by another quote")
            result.append(b"".join(parts))
        else:
            stop = line.find(delimiter, offset)
            stop = end if stop < 0 else stop
            value = line[offset:stop]
            if b'"' in value or b"\n" in value or b"\r" in value:
                raise _csv_error("Unquoted fields cannot have quotes/CRLFs inside")
            result.append(value)
        if stop >= end:
            return result
        offset = stop + 1


def _csv_error(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(op="io.decode_csv", what=what)


class CsvColumns:
    """Conversion of records to columns.

    defaults: arrays of 0 or 1 elements, one per column; an empty one requires a value. select: the positions of the
    columns in the record, increasing; all by default.
    """

    def __init__(
        self, defaults: Sequence[Any], out: Sequence[DType], delimiter: str, quotes: bool, na: Any, select: Any
    ) -> None:
        self._delimiter, self._quotes = delimiter.encode(), quotes
        self._na = na.encode() if isinstance(na, str) else bytes(na)
        self._select = None if select is None else [int(i) for i in select]
        if len(self._delimiter) != 1:
            raise ValueError(f"field_delim should be only 1 char, found {delimiter!r}")
        if self._select is not None and (
            len(self._select) != len(out) or any(a >= b for a, b in zip([-1, *self._select], self._select))
        ):
            raise ValueError(
                f"select_cols must increase and have an index for each of the {len(out)} columns, found {select!r}"
            )
        self._readers = [self._reader(i, d, dtype) for i, (d, dtype) in enumerate(zip(defaults, out))]

    def _reader(self, column: int, default: Any, dtype: DType) -> Any:
        default = np.asarray(default, dtype.np).reshape(-1)
        if len(default) > 1:
            raise _csv_error(f"There should only be 1 default per field but field {column} has {len(default)}")
        required = not len(default)
        substitute = None if required else default[0]
        is_string, parse = dtype is dtypes.string, float if dtype.is_floating else int
        limits: tuple[Any, Any] | None = None if is_string or dtype.is_floating else (dtype.min, dtype.max)

        def read(value: bytes, record: int) -> Any:
            if not value or value == self._na:
                if required:
                    raise _csv_error(f"Field {column} is required but missing in record {record}!")
                return substitute
            if is_string:
                return value
            try:
                number = parse(value)
                if b"_" in value or (limits is not None and not limits[0] <= number <= limits[1]):
                    raise ValueError
            except ValueError:
                shown = value[:80].decode("utf-8", "replace")
                text = f"Field {column} in record {record} is not a valid {dtype.name}: {shown}"
                raise _csv_error(text) from None
            return number

        return read

    def row(self, line: bytes, record: int = 0) -> list[Any]:
        """Return the values of one record. record: its number, for errors."""
        fields = csv_fields(line, self._delimiter, self._quotes)
        if self._select is not None:
            if self._select and self._select[-1] >= len(fields):
                raise _csv_error(f"Expect {self._select[-1] + 1} fields but have {len(fields)} in record {record}")
            fields = [fields[i] for i in self._select]
        elif len(fields) != len(self._readers):
            raise _csv_error(f"Expect {len(self._readers)} fields but have {len(fields)} in record {record}")
        return [read(field, record) for read, field in zip(self._readers, fields)]


def csv_dtypes(record_defaults: Sequence[Any], op: str) -> list[DType]:
    """Return the dtypes of columns: of their defaults. Raises InvalidArgumentError for others than CSV_DTYPES."""
    result = []
    for default in record_defaults:
        dtype = default if isinstance(default, DType) else dispatch.to_tensor(default).dtype
        if dtype not in CSV_DTYPES:
            wanted = ", ".join(d.name for d in CSV_DTYPES)
            raise InvalidArgumentError(op=op, what="no column can have this dtype", found=dtype.name, wanted=wanted)
        result.append(dtype)
    return result


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: Any = "",
    select_cols: Sequence[int] | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Return the columns of CSV records (RFC 4180), each in the shape of `records`.

    records: strings, one record each. record_defaults: for each column a tensor or list with its default, of dtype
    float32, float64, int32, int64 or string; an empty one requires a value. field_delim: one character.
    use_quote_delim: whether double quotes enclose fields. na_value: another text for a missing value. select_cols:
    increasing positions of the columns to return.
    raises InvalidArgumentError for records of another number of fields, missing or invalid values; ValueError for
    select_cols that do not match

    >>> [column.numpy() for column in ow.io.decode_csv(["1,a", "2,"], [[0], ["-"]])]
    [array([1, 2], dtype=int32), array([b'a', b'-'], dtype=object)]
    """
    out = csv_dtypes(record_defaults, "io.decode_csv")
    operand = string_operand(records, "io.decode_csv")
    defaults = [dispatch.to_tensor(default) for default in record_defaults]

    def read(lines: np.ndarray, *default_arrays: np.ndarray) -> list[np.ndarray]:
        columns = CsvColumns(default_arrays, out, field_delim, use_quote_delim, na_value, select_cols)
        rows = [columns.row(line, i) for i, line in enumerate(lines.reshape(-1).tolist())]
        values = zip(*rows) if rows else [()] * len(out)
        return [
            strings(column, lines.shape) if dtype is dtypes.string else np.array(column, dtype.np).reshape(lines.shape)
            for column, dtype in zip(values, out)
        ]

    CsvColumns([[] for _ in out], out, field_delim, use_quote_delim, na_value, select_cols)  # checks the arguments
    specs = [TensorSpec(operand.shape, dtype) for dtype in out]
    result: list[Tensor] = call_on_arrays(read, [operand, *defaults], specs, name)
    return result


# ---- raw bytes -------------------------------------------------------------------------------------------------------


def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the bytes of strings as numbers, in a new last dimension.

    input_bytes: strings[...] of one length, a multiple of the dtype's size. out_type: a dtype of numbers.
    fixed_length: bytes of each string to read; shorter ones are padded with zeros, longer ones cut.
    raises InvalidArgumentError for other lengths or dtypes

    >>> ow.io.decode_raw(b"\\x01\\x00\\x02\\x00", ow.int16).numpy()
    array([1, 2], dtype=int16)
    """
    dtype = as_dtype(out_type)
    if dtype is dtypes.string or dtype.is_handle or not dtype.size:
        raise InvalidArgumentError(op="io.decode_raw", what="out_type is not a dtype of numbers", found=dtype.name)
    if fixed_length is not None and (fixed_length <= 0 or fixed_length % dtype.size):
        what = f"fixed_length ({fixed_length}) must be a positive multiple of the size of out_type ({dtype.size})"
        raise InvalidArgumentError(op="io.decode_raw", what=what)

    def read(array: np.ndarray) -> np.ndarray:
        values = array.reshape(-1).tolist()
        if fixed_length is not None:
            check_size(fixed_length * len(values), "io.decode_raw")
            values = [value[:fixed_length].ljust(fixed_length, b"\0") for value in values]
        length = len(values[0]) if values else 0
        for value in values:
            if len(value) != length or length % dtype.size:
                raise InvalidArgumentError(
                    op="io.decode_raw",
                    what="the strings must have one length, a multiple of the size of out_type",
                    found=f"{len(value)} and {length} bytes, {dtype.name}",
                    do="fixed_length=" if len(value) != length else None,
                )
        flat = np.frombuffer(b"".join(values), dtype.np)
        swap = dtype.size > 1 and little_endian != (sys.byteorder == "little")
        if swap and dtype.is_complex:
            parts = np.float32 if dtype is dtypes.complex64 else np.float64
            flat = flat.view(parts).byteswap().view(dtype.np)
        elif swap:
            flat = flat.view(f"u{dtype.size}").byteswap().view(dtype.np)
        return flat.reshape(*array.shape, length // dtype.size).copy()

    operand = string_operand(input_bytes, "io.decode_raw")
    dims = operand.shape.dims
    last = None if fixed_length is None else fixed_length // dtype.size
    spec = TensorSpec(None if dims is None else [*dims, last], dtype)
    result: Tensor = call_on_arrays(read, [operand], spec, name)
    return result


def decode_compressed(bytes: Any, compression_type: Any = "", name: str | None = None) -> Tensor:
    """Return strings decompressed, in their shape. compression_type: "", "ZLIB" or "GZIP".

    raises DataLossError for damaged strings, ResourceExhaustedError for results above the flag max_activation_bytes
    """
    kind = compression_name(compression_type, "io.decode_compressed")

    def decompress(value: Any) -> Any:
        if not kind:
            return value
        stream, limit = zlib.decompressobj({"GZIP": 31, "ZLIB": 15}[kind]), flags.get("max_activation_bytes")
        try:
            result = stream.decompress(value, limit)
        except zlib.error as error:
            raise DataLossError(op="io.decode_compressed", what=f"a damaged string: {error}") from None
        if stream.unconsumed_tail:
            check_size(limit + 1, "io.decode_compressed")
        if not stream.eof:
            raise DataLossError(op="io.decode_compressed", what="a truncated string")
        return result

    def read(array: np.ndarray) -> np.ndarray:
        return strings([decompress(value) for value in array.reshape(-1).tolist()], array.shape)

    operand = string_operand(bytes, "io.decode_compressed")
    result: Tensor = call_on_arrays(read, [operand], string_spec(operand.shape), name)
    return result


# ---- base64 (RFC 4648, section 5: the alphabet of URLs) --------------------------------------------------------------

_URL_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Return strings in web-safe base64, in their shape. pad: whether to append `=` up to a multiple of 4."""

    def encode(array: np.ndarray) -> np.ndarray:
        texts = [base64.urlsafe_b64encode(value) for value in array.reshape(-1).tolist()]
        return strings(texts if pad else [text.rstrip(b"=") for text in texts], array.shape)

    operand = string_operand(input, "io.encode_base64")
    result: Tensor = call_on_arrays(encode, [operand], string_spec(operand.shape), name)
    return result


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """Return strings decoded from web-safe base64, with or without padding, in their shape.

    raises InvalidArgumentError for other characters and lengths
    """

    def one(text: Any) -> Any:
        body = text.rstrip(b"=")
        if len(body) % 4 == 1 or not _URL_ALPHABET.issuperset(body) or len(text) - len(body) not in (0, -len(body) % 4):
            raise InvalidArgumentError(op="io.decode_base64", what="Invalid base64 string", found=repr(text[:40]))
        try:
            return base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4))
        except binascii.Error as error:
            raise InvalidArgumentError(op="io.decode_base64", what=f"Invalid base64 string: {error}") from None

    def decode(array: np.ndarray) -> np.ndarray:
        return strings([one(text) for text in array.reshape(-1).tolist()], array.shape)

    operand = string_operand(input, "io.decode_base64")
    result: Tensor = call_on_arrays(decode, [operand], string_spec(operand.shape), name)
    return result
