"""Unicode: conversion between encodings and code points; scripts.

Lives here: UnicodeTranscode, UnicodeEncode, UnicodeDecode, UnicodeScript, UnsortedSegmentJoin, and functions over them.
Not here: operators on bytes (elementwise.py), the table of scripts (scripts.py).

Code points and offsets of more than one string raise UnimplementedError; see `unicode_split` of split_join.py.
"""

from __future__ import annotations

import codecs
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from .. import array, dispatch, math
from ..attributes import Attr, one_of
from ..definition import operator
from ..ragged.ragged_tensor import RaggedTensor
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .elementwise import each

if TYPE_CHECKING:
    from .. import signatures

ERRORS = one_of("strict", "replace", "ignore")
OUTPUT = one_of("UTF-8", "UTF-16-BE", "UTF-32-BE")


def _codec(encoding: str) -> str:
    """Return Python's name of an encoding. Raises InvalidArgumentError for an unknown one."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        what = f"Could not create converter for input encoding: {encoding}"
        raise InvalidArgumentError(what=what) from None


def _points(value: bytes, op: Any) -> list[tuple[int, int]]:
    """Decode bytes; return code points with their byte offsets. Invalid bytes are handled according to `errors`."""
    codec, points, offset = _codec(op.input_encoding), [], 0

    def on_error(start: int) -> None:
        if op.errors == "strict":
            raise InvalidArgumentError(
                what="Invalid formatting on input string",
                wanted=f"text in {op.input_encoding}",
                do="errors='replace' or errors='ignore'",
            )
        if op.errors == "replace":
            points.append((op.replacement_char, start))

    while offset < len(value):
        try:
            text, end = value[offset:].decode(codec), len(value)
        except UnicodeDecodeError as error:
            text, end = value[offset : offset + error.start].decode(codec), offset + error.start
        for character in text:
            point = ord(character)
            control = op.replace_control_characters and (point < 32 or 127 <= point < 160)
            points.append((op.replacement_char if control else point, offset))
            offset += len(character.encode(codec)) if codec not in ("utf-16", "utf-32") else 2 * (1 + (point > 0xFFFF))
        offset = min(offset, end)
        if end < len(value):
            start = end
            try:
                value[start:].decode(codec)
            except UnicodeDecodeError as error:
                offset = start + max(1, error.end - error.start)
            on_error(start)
    return points


def _encode(points: list[int], op: Any) -> bytes:
    out = []
    for point in points:
        if 0 <= point < 0x110000 and not 0xD800 <= point < 0xE000:
            out.append(chr(point))
        elif op.errors == "strict":
            raise InvalidArgumentError(
                what="Code point is out of range for Unicode, or is a surrogate.",
                found=point,
                wanted="0 to 0x10FFFF without 0xD800 to 0xDFFF",
            )
        elif op.errors == "replace":
            out.append(chr(op.replacement_char))
    return "".join(out).encode(_codec(op.output_encoding))


@operator
class UnicodeTranscode(OperatorDefinition):
    """Convert strings to another encoding.

    .. math:: output_i = encode(decode(input_i))

    errors: handling of bytes that are invalid in the input's encoding: "strict" raises, "replace" inserts
    replacement_char, "ignore" drops them. replace_control_characters: also replace U+00 to U+1F.
    raises InvalidArgumentError for an unknown encoding, and for invalid bytes if errors is "strict"
    """

    input = Input(dtypes.string)
    output = Output(like="input")
    input_encoding = Attr(str)
    output_encoding = Attr(str, check=OUTPUT)
    errors = Attr(str, default="replace", check=ERRORS)
    replacement_char = Attr(int, default=65533)
    replace_control_characters = Attr(bool, default=False)

    def compute(op, input: Any) -> np.ndarray:
        _codec(op.input_encoding)
        return each(lambda s: _encode([p for p, _ in _points(s, op)], op), input)


unicode_transcode: signatures.UnicodeTranscode = UnicodeTranscode.as_function("unicode_transcode")


@operator
class UnicodeEncode(OperatorDefinition):
    """Encode code points along the last axis as strings.

    .. math:: output_i = encode(input_{i, :})

    raises InvalidArgumentError for an invalid code point if errors is "strict"
    """

    input = Input(("int32",))
    output = Output(dtype=dtypes.string)
    output_encoding = Attr(str, check=OUTPUT)
    errors = Attr(str, default="replace", check=ERRORS)
    replacement_char = Attr(int, default=65533)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        shape = op.input.spec.shape
        if shape.rank == 0:
            raise InvalidArgumentError(what="a scalar has no axis of code points", wanted="rank 1 or more")
        return TensorSpec(UNKNOWN if shape.rank is None else shape[:-1], dtypes.string)

    def compute(op, input: Any) -> np.ndarray:
        output = np.empty(input.shape[:-1], object)
        for batch in np.ndindex(output.shape):
            output[batch] = _encode(input[batch].tolist(), op)
        return output


unicode_encode: signatures.UnicodeEncode = UnicodeEncode.as_function("unicode_encode")


@operator
class UnicodeDecode(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Decode one string into code points and their byte offsets.

    .. math:: char\\_values = decode(input)

    errors, replacement_char, replace_control_characters: as in UnicodeTranscode.
    """

    input = Input(dtypes.string, rank=0)
    char_values = Output(dtype=dtypes.int32)
    offsets = Output(dtype=dtypes.int64, doc="the byte offset of each code point")
    input_encoding = Attr(str)
    errors = Attr(str, default="replace", check=ERRORS)
    replacement_char = Attr(int, default=65533)
    replace_control_characters = Attr(bool, default=False)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        return TensorSpec([None], dtypes.int32), TensorSpec([None], dtypes.int64)

    def compute(op, input: Any) -> tuple[np.ndarray, np.ndarray]:
        pairs = _points(input.item(), op)
        return np.array([point for point, _ in pairs], np.int32), np.array([offset for _, offset in pairs], np.int64)


@operator
class UnicodeDecodeRows(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Decode strings into code points, one string after the other, and their byte offsets.

    .. math:: char\\_values = decode(input_0), decode(input_1) \\ldots

    row_lengths: how many code points each string has. errors, replacement_char, replace_control_characters: as in
    UnicodeTranscode.
    """

    input = Input(dtypes.string, rank=1)
    row_lengths = Output(dtype=dtypes.int64)
    char_values = Output(dtype=dtypes.int32)
    offsets = Output(dtype=dtypes.int64, doc="the byte offset of each code point in its string")
    input_encoding = Attr(str)
    errors = Attr(str, default="replace", check=ERRORS)
    replacement_char = Attr(int, default=65533)
    replace_control_characters = Attr(bool, default=False)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        lengths = TensorSpec(op.input.spec.shape, dtypes.int64)
        return lengths, TensorSpec([None], dtypes.int32), TensorSpec([None], dtypes.int64)

    def compute(op, input: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = [_points(text, op) for text in input.tolist()]
        pairs = [pair for row in rows for pair in row]
        lengths = np.array([len(row) for row in rows], np.int64)
        points = np.array([point for point, _ in pairs], np.int32)
        return lengths, points, np.array([offset for _, offset in pairs], np.int64)


def _decode(input: Any, *attrs: Any, name: str | None) -> tuple[Any, Any]:
    """Return code points and offsets: of a string vectors, of others RaggedTensors with one more dimension."""
    input = input if isinstance(input, RaggedTensor) else dispatch.to_tensor(input)
    if input.shape.rank == 0:
        return UnicodeDecode(input, *attrs, name=name)
    if input.shape.rank is None:
        raise UnimplementedError(op="unicode_decode", what="the rank of the strings must be known", found=input.shape)
    flat = input.flat_values if isinstance(input, RaggedTensor) else input
    lengths, *parts = UnicodeDecodeRows(array.reshape(flat, [-1]), *attrs, name=name)
    points, offsets = (RaggedTensor.from_row_lengths(part, lengths, validate=False) for part in parts)
    shape = array.shape(flat, dtypes.int64)
    for axis in range(flat.shape.rank - 1, 0, -1):
        count = math.reduce_prod(shape[:axis])
        points, offsets = (
            RaggedTensor.from_uniform_row_length(part, shape[axis], count, validate=False) for part in (points, offsets)
        )
    if isinstance(input, RaggedTensor):
        return input.with_flat_values(points), input.with_flat_values(offsets)
    return points, offsets


@documented_by(UnicodeDecode)
def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Return the code points of a string, int32 [n]; of others a RaggedTensor with one more dimension."""
    return _decode(input, input_encoding, errors, replacement_char, replace_control_characters, name=name)[0]


@documented_by(UnicodeDecode)
def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Return the code points of strings, as `unicode_decode`, and their byte offsets, int64."""
    return _decode(input, input_encoding, errors, replacement_char, replace_control_characters, name=name)


def unicode_split_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> tuple[Any, Any]:
    """Split strings into characters, and return them with their byte offsets, int64; shapes are `unicode_decode`'s.

    errors, replacement_char: as in `unicode_transcode`
    """
    points, offsets = _decode(input, input_encoding, errors, replacement_char, False, name=name)
    flat = points.flat_values if isinstance(points, RaggedTensor) else points
    characters = unicode_encode(array.expand_dims(flat, -1), input_encoding, errors, replacement_char)
    return points.with_flat_values(characters) if isinstance(points, RaggedTensor) else characters, offsets


@functools.cache
def _scripts() -> tuple[np.ndarray, np.ndarray]:
    """Return the first code points of ranges that partition the integers, and the script of each range."""
    from .scripts import SCRIPTS

    ranges = []
    for script, text in SCRIPTS.items():
        for item in text.split():
            first, _, last = item.partition("-")
            ranges.append((int(first, 16), int(last or first, 16) + 1, script))
    starts, scripts = [-(2**31), 0], [-1, 103]
    for begin, end, script in sorted(ranges):
        if begin == starts[-1]:  # adjacent to the previous range
            scripts[-1] = script
        else:
            starts.append(begin)
            scripts.append(script)
        starts.append(end)
        scripts.append(103)
    return np.array([*starts, 0x110000]), np.array([*scripts, -1], np.int32)


@operator
class UnicodeScript(OperatorDefinition):
    """Return the script of each code point, by ICU's numbers: 25 Latin, 8 Cyrillic, 0 common to several.

    .. math:: output_i = script(input_i)

    103 for an unknown script, -1 for an invalid code point.
    """

    input = Input(("int32",))
    output = Output(like="input")

    def compute(op, input: np.ndarray) -> np.ndarray:
        starts, scripts = _scripts()
        return scripts[np.searchsorted(starts, input, "right") - 1]


unicode_script: signatures.UnicodeScript = UnicodeScript.as_function("unicode_script")


@operator
class UnsortedSegmentJoin(OperatorDefinition):
    """Join the strings of each segment.

    .. math:: output_i = \\text{join}(inputs_j : segment\\_ids_j = i)

    segment_ids: its shape is a prefix of inputs'. Output: [num_segments, *inputs.shape[rank(segment_ids):]].
    raises InvalidArgumentError for ids out of range
    """

    inputs = Input(dtypes.string)
    segment_ids = Input(("int32", "int64"))
    num_segments = Input(("int32", "int64"), rank=0)
    output = Output(like="inputs")
    separator = Attr(str, default="")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        shape, ids, n = op.inputs.spec.shape, op.segment_ids.spec.shape, op.num_segments.constant
        if shape.rank is None or ids.rank is None:
            return TensorSpec(UNKNOWN, dtypes.string)
        if not shape[: ids.rank].is_compatible_with(ids):
            raise InvalidArgumentError(
                what="segment_ids do not number the strings", found={"inputs": shape, "segment_ids": ids}
            )
        return TensorSpec([None if n is None else int(n), *shape[ids.rank :]], dtypes.string)

    def compute(op, inputs: Any, segment_ids: Any, num_segments: Any) -> np.ndarray:
        n, slice_shape = int(num_segments), inputs.shape[segment_ids.ndim :]
        ids = segment_ids.reshape(-1)
        if ids.size and (ids.min() < 0 or ids.max() >= n):
            what = "segment_ids are not allowed to exceed num_segments or to have negative values."
            raise InvalidArgumentError(what=what)
        rows = inputs.reshape(ids.size, -1) if ids.size else inputs.reshape(0, int(np.prod(slice_shape)))
        output = np.empty((n, rows.shape[1]), object)
        for i in range(n):
            segment = rows[ids == i]
            output[i] = [op.separator.encode().join(column) for column in segment.T.tolist()]
        return output.reshape(n, *slice_shape)


unsorted_segment_join: signatures.UnsortedSegmentJoin = UnsortedSegmentJoin.as_function("unsorted_segment_join")
