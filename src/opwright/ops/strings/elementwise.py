"""Element-wise operators on strings.

Lives here: StringJoin, StringLower, StringUpper, StringStrip, StringLength, Substr, RegexReplace, RegexFullMatch.
Not here: strings and numbers (conversion.py), splitting and joining along axes (split_join.py).

A string is any sequence of bytes. Operators on code points decode UTF-8 and preserve invalid bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from ...core.shapes import SCALAR, broadcast
from ...core.specs import TensorSpec
from ..attributes import Attr, one_of
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from .regular_expressions import compile_pattern

if TYPE_CHECKING:
    from .. import signatures

UNIT = one_of("BYTE", "UTF8_CHAR")

S = TypeVar("S", bytes, str)


def each(function: Callable[..., Any], *arrays: np.ndarray, dtype: Any = object) -> np.ndarray:
    """Apply a function to each element of arrays, which broadcast."""
    arrays = np.broadcast_arrays(*arrays)
    result = np.empty(arrays[0].shape, dtype)
    flat = result.reshape(-1)
    for i, items in enumerate(zip(*(a.reshape(-1).tolist() for a in arrays))):
        flat[i] = function(*items)
    return result


def text_of(value: bytes) -> str:
    """Decode UTF-8; invalid bytes become lone surrogates, which `bytes_of` restores."""
    return value.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Encode text decoded by `text_of`."""
    return text.encode("utf-8", "surrogateescape")


@operator
class StringJoin(OperatorDefinition):
    """Join strings of several tensors element by element, with a separator. Scalars broadcast.

    .. math:: output_i = inputs_{0,i} + separator + inputs_{1,i} + ...

    raises InvalidArgumentError if shapes other than scalars differ
    """

    inputs = Input(dtypes.string, repeated=True)
    output = Output(dtype=dtypes.string)
    separator = Attr(str, default="")

    def infer(op) -> TensorSpec:
        shape = SCALAR
        for i, x in enumerate(op.inputs):
            other = x.spec.shape
            if other.rank != 0 and shape.rank != 0 and not shape.is_compatible_with(other):
                raise InvalidArgumentError(
                    what=f"input shapes do not match: input {i} is not a scalar and differs from those before",
                    found=[y.spec.short() for y in op.inputs],
                )
            if other.rank != 0:
                shape = other if shape.rank == 0 else broadcast(shape, other)
        return TensorSpec(shape, dtypes.string)

    def compute(op, inputs: Any) -> np.ndarray:
        separator = op.separator.encode()
        return each(lambda *parts: separator.join(parts), *inputs) if inputs else np.array(b"", object)


join: signatures.StringJoin = StringJoin.as_function("join")


@operator
class StringLower(OperatorDefinition):
    """Convert strings to lower case: ASCII letters, or with encoding "utf-8" all letters.

    .. math:: output_i = lower(input_i)
    """

    input = Input(dtypes.string)
    output = Output(like="input")
    encoding = Attr(str, default="", check=one_of("", "utf-8"))

    def compute(op, input: Any) -> np.ndarray:
        return each((lambda s: bytes_of(text_of(s).lower())) if op.encoding else bytes.lower, input)


@operator
class StringUpper(OperatorDefinition):
    """Convert strings to upper case: ASCII letters, or with encoding "utf-8" all letters.

    .. math:: output_i = upper(input_i)
    """

    input = Input(dtypes.string)
    output = Output(like="input")
    encoding = Attr(str, default="", check=one_of("", "utf-8"))

    def compute(op, input: Any) -> np.ndarray:
        return each((lambda s: bytes_of(text_of(s).upper())) if op.encoding else bytes.upper, input)


@operator
class StringStrip(OperatorDefinition):
    """Remove leading and trailing ASCII white space of strings.

    .. math:: output_i = strip(input_i)
    """

    input = Input(dtypes.string)
    output = Output(like="input")

    def compute(op, input: Any) -> np.ndarray:
        return each(bytes.strip, input)


@operator
class StringLength(OperatorDefinition):
    """Return the length of each string, in bytes or in code points of UTF-8.

    .. math:: output_i = |input_i|
    """

    input = Input(dtypes.string)
    output = Output(dtype=dtypes.int32)
    unit = Attr(str, default="BYTE", check=UNIT)

    def infer(op) -> TensorSpec:
        return op.input.spec.with_dtype(dtypes.int32)

    def compute(op, input: Any) -> np.ndarray:
        return each(len if op.unit == "BYTE" else _code_points, input, dtype=np.int32)


def _code_points(value: bytes) -> int:
    return sum(byte & 0xC0 != 0x80 for byte in value)


lower: signatures.StringLower = StringLower.as_function("lower")
upper: signatures.StringUpper = StringUpper.as_function("upper")
strip: signatures.StringStrip = StringStrip.as_function("strip")
length: signatures.StringLength = StringLength.as_function("length")


@operator
class Substr(OperatorDefinition):
    """Extract substrings of up to `len` bytes or code points, beginning at `pos`.

    .. math:: output_i = input_i[pos_i : pos_i + len_i]

    pos, len: int32 or int64 of one shape, which broadcasts with input. A negative pos counts from the end; a negative
    len extends to the end.
    raises InvalidArgumentError for a pos outside the string, and for pos and len of different shapes
    """

    input = Input(dtypes.string)
    pos = Input(dtypes.index)
    len = Input(dtypes.index, like="pos")
    output = Output(like="input")
    unit = Attr(str, default="BYTE", check=UNIT)

    def infer(op) -> TensorSpec:
        pos, size = op.pos.spec.shape, op.len.spec.shape
        if not pos.is_compatible_with(size):
            raise InvalidArgumentError(what="pos and len should have the same shape", found={"pos": pos, "len": size})
        return op.input.spec.with_shape(broadcast(broadcast(op.input.spec.shape, pos), size))

    def compute(op, input: Any, pos: Any, len: Any) -> np.ndarray:
        if pos.shape != len.shape:
            raise InvalidArgumentError(
                what="pos and len should have the same shape", found={"pos": list(pos.shape), "len": list(len.shape)}
            )
        return each(_substring if op.unit == "BYTE" else _substring_of_code_points, input, pos, len)


def _substring(value: S, pos: int, size: int) -> S:
    if not -len(value) <= pos <= len(value):
        raise InvalidArgumentError(what=f"pos {pos} out of range for a string of length {len(value)}")
    start = pos + len(value) if pos < 0 else pos
    return value[start:] if size < 0 else value[start : start + size]


def _substring_of_code_points(value: bytes, pos: int, size: int) -> bytes:
    return bytes_of(_substring(text_of(value), pos, size))


substr: signatures.Substr = Substr.as_function("substr")


def _compiled(pattern: Any) -> re.Pattern[str]:
    try:
        return compile_pattern(text_of(pattern.item()))
    except re.error as error:
        raise InvalidArgumentError(what=f"Invalid pattern: {text_of(pattern.item())}, error: {error}") from None


@operator
class RegexReplace(OperatorDefinition):
    """Replace the first match, or all matches, of a regular expression.

    .. math:: output_i = input_i[pattern \\to rewrite]

    In rewrite \\\\1 to \\\\9 are the groups, \\\\0 is the match, two backslashes are one.
    Patterns have the syntax of Python and the classes of RE2 (\\\\p{L}); \\\\d, \\\\s, \\\\w match ASCII only.
    raises InvalidArgumentError for an invalid pattern or rewrite
    """

    input = Input(dtypes.string)
    pattern = Input(dtypes.string, rank=0)
    rewrite = Input(dtypes.string, rank=0)
    output = Output(like="input")
    replace_global = Attr(bool, default=True, doc="whether every match is replaced, or the first")

    def compute(op, input: Any, pattern: Any, rewrite: Any) -> np.ndarray:
        compiled = _compiled(pattern)
        pieces = re.split(r"\\(.)", text_of(rewrite.item()), flags=re.DOTALL)  # text, escaped, text, escaped ... text
        for escaped in pieces[1::2]:
            if not (escaped == "\\" or (escaped in "0123456789" and int(escaped) <= compiled.groups)):
                raise InvalidArgumentError(
                    what=f"Invalid rewrite: \\{escaped} is neither a group of the pattern nor a backslash"
                )

        def expand(match: re.Match[str]) -> str:
            return "".join((match[int(p)] or "") if i % 2 and p != "\\" else p for i, p in enumerate(pieces))

        return each(lambda s: bytes_of(compiled.sub(expand, text_of(s), 0 if op.replace_global else 1)), input)


regex_replace: signatures.RegexReplace = RegexReplace.as_function("regex_replace")


@operator
class RegexFullMatch(OperatorDefinition):
    """Test whether strings match a regular expression completely.

    .. math:: output_i = input_i \\in L(pattern)

    Patterns have the syntax of Python and the classes of RE2 (\\\\p{L}); \\\\d, \\\\s, \\\\w match ASCII only.
    raises InvalidArgumentError for an invalid pattern
    """

    input = Input(dtypes.string)
    pattern = Input(dtypes.string, rank=0)
    output = Output(dtype=dtypes.bool)

    def infer(op) -> TensorSpec:
        return op.input.spec.with_dtype(dtypes.bool)

    def compute(op, input: Any, pattern: Any) -> np.ndarray:
        compiled = _compiled(pattern)
        return each(lambda s: compiled.fullmatch(text_of(s)) is not None, input, dtype=np.bool_)


regex_full_match: signatures.RegexFullMatch = RegexFullMatch.as_function("regex_full_match")
