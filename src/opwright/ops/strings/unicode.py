"""Text in encodings: strings to code points and back, from one encoding to another.

Lives here: UnicodeTranscode, UnicodeEncode, UnicodeDecode, UnicodeScript, and the functions on them.
Not here: strings as bytes (editing.py), the table of scripts (scripts.py).

There are no ragged tensors: what would be one for more than one string is an error that says so.
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
from .. import array, dispatch
from ..attributes import Attr, one_of
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .editing import each

if TYPE_CHECKING:
    from .. import signatures

ERRORS = one_of("strict", "replace", "ignore")
OUTPUT = one_of("UTF-8", "UTF-16-BE", "UTF-32-BE")


def _codec(encoding: str) -> str:
    """Python's name of an encoding. Raises InvalidArgumentError for one that is not known."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        what = f"Could not create converter for input encoding: {encoding}"
        raise InvalidArgumentError(what=what) from None


def _points(value: bytes, op: Any) -> list[tuple[int, int]]:
    """Code points with the byte each begins at; wrong bytes as `errors` says, control characters too if wanted."""
    codec, found, at = _codec(op.input_encoding), [], 0

    def bad(place: int) -> None:
        if op.errors == "strict":
            raise InvalidArgumentError(
                what="Invalid formatting on input string",
                wanted=f"text in {op.input_encoding}",
                do="errors='replace' or errors='ignore'",
            )
        if op.errors == "replace":
            found.append((op.replacement_char, place))

    while at < len(value):
        try:
            text, end = value[at:].decode(codec), len(value)
        except UnicodeDecodeError as error:
            text, end = value[at : at + error.start].decode(codec), at + error.start
        for sign in text:
            point = ord(sign)
            control = op.replace_control_characters and (point < 32 or 127 <= point < 160)
            found.append((op.replacement_char if control else point, at))
            at += len(sign.encode(codec)) if codec not in ("utf-16", "utf-32") else 2 * (1 + (point > 0xFFFF))
        at = min(at, end)
        if end < len(value):
            start = end
            try:
                value[start:].decode(codec)
            except UnicodeDecodeError as error:
                at = start + max(1, error.end - error.start)
            bad(start)
    return found


def _encoded(points: list[int], op: Any) -> bytes:
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
    """Each string in another encoding.

    .. math:: output_i = encode(decode(input_i))

    errors: what becomes of bytes that are not in the input's encoding: "strict" raises, "replace" puts
    replacement_char, "ignore" drops them. replace_control_characters: whether these count as wrong, U+00 to U+1F.
    raises InvalidArgumentError for an unknown encoding, and for wrong bytes where errors is "strict"
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
        return each(lambda s: _encoded([p for p, _ in _points(s, op)], op), input)


unicode_transcode: signatures.UnicodeTranscode = UnicodeTranscode.as_function("unicode_transcode")


@operator
class UnicodeEncode(OperatorDefinition):
    """Code points along the last axis as strings.

    .. math:: output_i = encode(input_{i, :})

    raises InvalidArgumentError for what is no code point, where errors is "strict"
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
        for place in np.ndindex(output.shape):
            output[place] = _encoded(input[place].tolist(), op)
        return output


unicode_encode: signatures.UnicodeEncode = UnicodeEncode.as_function("unicode_encode")


@operator
class UnicodeDecode(OperatorDefinition[tuple[Tensor, Tensor]]):
    """The code points of one string, and the byte at which each begins.

    .. math:: char\\_values = decode(input)

    errors, replacement_char, replace_control_characters: as in UnicodeTranscode.
    """

    input = Input(dtypes.string, rank=0)
    char_values = Output(dtype=dtypes.int32)
    offsets = Output(dtype=dtypes.int64, doc="the byte each code point begins at")
    input_encoding = Attr(str)
    errors = Attr(str, default="replace", check=ERRORS)
    replacement_char = Attr(int, default=65533)
    replace_control_characters = Attr(bool, default=False)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        return TensorSpec([None], dtypes.int32), TensorSpec([None], dtypes.int64)

    def compute(op, input: Any) -> tuple[np.ndarray, np.ndarray]:
        found = _points(input.item(), op)
        points, places = [p for p, _ in found], [at for _, at in found]
        return np.array(points, np.int32), np.array(places, np.int64)


def _decode(function: str, input: Any, *attrs: Any, name: str | None) -> tuple[Tensor, Tensor]:
    input = dispatch.to_tensor(input)
    if input.shape.rank != 0:
        raise UnimplementedError(
            op=function,
            what="of more than one string there would be a ragged tensor, which there is not",
            found=input.spec.short(),
            wanted="a scalar",
        )
    return UnicodeDecode(input, *attrs, name=name)


@documented_by(UnicodeDecode)
def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the code points of a string, int32 [n].

    raises UnimplementedError for more than one string
    """
    return _decode(
        "unicode_decode", input, input_encoding, errors, replacement_char, replace_control_characters, name=name
    )[0]


def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The code points of a string, and the byte at which each begins, int64. See `unicode_decode`."""
    return _decode(
        "unicode_decode_with_offsets",
        input,
        input_encoding,
        errors,
        replacement_char,
        replace_control_characters,
        name=name,
    )


def unicode_split(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Tensor:
    """The characters of a string, each a string, [n]. See `unicode_decode`."""
    return unicode_split_with_offsets(input, input_encoding, errors, replacement_char, name)[0]


def unicode_split_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> tuple[Tensor, Any]:
    """The characters of a string, and the byte at which each begins, int64. See `unicode_decode`."""
    points, places = _decode("unicode_split", input, input_encoding, errors, replacement_char, False, name=name)
    return unicode_encode(array.expand_dims(points, -1), input_encoding, errors, replacement_char), places


@functools.cache
def _scripts() -> tuple[np.ndarray, np.ndarray]:
    """Where ranges of code points begin, and the script of each range: the whole line of integers."""
    from .scripts import SCRIPTS

    ranges = []
    for script, text in SCRIPTS.items():
        for item in text.split():
            first, _, last = item.partition("-")
            ranges.append((int(first, 16), int(last or first, 16) + 1, script))
    starts, scripts = [-(2**31), 0], [-1, 103]
    for begin, end, script in sorted(ranges):
        if begin == starts[-1]:  # right behind the range before
            scripts[-1] = script
        else:
            starts.append(begin)
            scripts.append(script)
        starts.append(end)
        scripts.append(103)
    return np.array([*starts, 0x110000]), np.array([*scripts, -1], np.int32)


@operator
class UnicodeScript(OperatorDefinition):
    """The script that each code point belongs to, by ICU's numbers: 25 Latin, 8 Cyrillic, 0 common to several.

    .. math:: output_i = script(input_i)

    103 where no script is known, -1 for what is no code point.
    """

    input = Input(("int32",))
    output = Output(like="input")

    def compute(op, input: np.ndarray) -> np.ndarray:
        starts, scripts = _scripts()
        return scripts[np.searchsorted(starts, input, "right") - 1]


unicode_script: signatures.UnicodeScript = UnicodeScript.as_function("unicode_script")


@operator
class UnsortedSegmentJoin(OperatorDefinition):
    """Strings of one segment joined, for each segment.

    .. math:: output_i = \\text{join}(inputs_j : segment\\_ids_j = i)

    segment_ids: its shape is the beginning of that of inputs. Output: [num_segments, the rest of inputs' shape].
    raises InvalidArgumentError for numbers that are no segment's
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
        n, rest = int(num_segments), inputs.shape[segment_ids.ndim :]
        ids = segment_ids.reshape(-1)
        if ids.size and (ids.min() < 0 or ids.max() >= n):
            what = "segment_ids are not allowed to exceed num_segments or to have negative values."
            raise InvalidArgumentError(what=what)
        rows = inputs.reshape(ids.size, -1) if ids.size else inputs.reshape(0, int(np.prod(rest)))
        output = np.empty((n, rows.shape[1]), object)
        for i in range(n):
            mine = rows[ids == i]
            output[i] = [op.separator.encode().join(column) for column in mine.T.tolist()]
        return output.reshape(n, *rest)


unsorted_segment_join: signatures.UnsortedSegmentJoin = UnsortedSegmentJoin.as_function("unsorted_segment_join")
