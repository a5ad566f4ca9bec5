"""Conversion between strings and numbers; string hashes; text of tensors.

Lives here: AsString, StringToNumber, StringToHashBucket, its fast and strong forms, StringFormat; the text of one
element and of a summarized array, in the formats of `print` and of assertions.
Not here: strings from strings (elementwise.py), printing (ops/host.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import dispatch
from ..attributes import Attr, at_least, length, one_of
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from .elementwise import each
from .fingerprints import fingerprint64

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor

_ESCAPES = {b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t", b'"': b'\\"', b"'": b"\\'", b"\\": b"\\\\"}


def escaped(value: bytes) -> bytes:
    """Escape control characters and quotes as in a C string literal; UTF-8 is preserved."""
    out = bytearray()
    for code in value:
        character = bytes((code,))
        out += _ESCAPES.get(character) or (character if 32 <= code != 127 else b"\\%03o" % code)
    return bytes(out)


def _float_text(value: Any, parse: Callable[[str], Any], digits: int, max_digits: int) -> str:
    """Format a number with `digits` digits if they identify it, else with `max_digits`."""
    if value != value:
        return "nan"
    text = f"{float(value):.{digits}g}"
    return text if parse(text) == value else f"{float(value):.{max_digits}g}"


def element(kind: str, dtype: np.dtype, quoted: bool) -> Callable[[Any], bytes]:
    """Return the formatter of elements of an array of this kind. quoted: quote and escape strings."""
    if kind == "b":
        return lambda v: b"1" if v else b"0"
    if kind == "O":
        return (lambda v: b'"' + escaped(v) + b'"') if quoted else bytes
    if kind == "c":
        part = element("f", np.dtype(np.float32 if dtype.itemsize == 8 else np.float64), quoted)
        return lambda v: b"(" + part(v.real) + b"," + part(v.imag) + b")"
    if kind in "iu" or "int" in dtype.name:
        return lambda v: b"%d" % int(v)
    if dtype == np.float64:
        return lambda v: _float_text(v, float, 15, 17).encode()
    return lambda v: _float_text(np.float32(v), np.float32, 6, 9).encode()


def summary(array: np.ndarray, summarize: int, quoted: bool = True) -> bytes:
    """Format an array as `[1 2 3]` or `[[1 2]\\n [3 4]]`. summarize: elements at each end of each axis; -1 for all."""
    show = element(array.dtype.kind, array.dtype, quoted)
    rank = array.ndim
    ends = array.size if summarize < 0 else min(summarize, array.size)

    def spacing(axis: int) -> bytes:
        return b" " if axis == rank - 1 else b"\n" * (rank - axis - 1) + b" " * (axis + 1)

    def write(part: Any, axis: int) -> bytes:
        if axis == rank:
            return show(part[()] if isinstance(part, np.ndarray) else part)
        n = len(part)
        pieces = [write(part[i], axis + 1) for i in range(min(ends, n))]
        if n > 2 * ends:
            pieces.append(b"...")
        pieces += [write(part[i], axis + 1) for i in range(max(ends, n - ends), n)]
        text = spacing(axis).join(pieces)
        return b"[" + (spacing(axis) if pieces == [b"..."] else b"") + text + b"]"

    return write(array, 0)


def first_elements(array: np.ndarray, limit: int) -> str:
    """Format the first elements as assertions list them, without outer brackets: `1 2 3...`, `[1 2][3...]`."""
    show = element(array.dtype.kind, array.dtype, False)
    limit = array.size if limit < 0 else min(limit, array.size)
    shown = (
        [show(v).decode("utf-8", "replace") for v in array.reshape(-1)[:limit].tolist()]
        if array.dtype.kind in "biuO"
        else [show(v).decode() for v in array.reshape(-1)[:limit]]
    )
    ellipsis = "..." if array.size > limit else ""
    if array.ndim < 2:
        return " ".join(shown) + ellipsis
    position = 0

    def write(axis: int) -> str:
        nonlocal position
        if position >= limit:
            return ""
        text = ""
        if axis == array.ndim - 1:
            for i in range(array.shape[axis]):
                if position >= limit:
                    return text + "..."
                text += (" " if i else "") + shown[position]
                position += 1
            return text
        for _ in range(array.shape[axis]):
            if position < limit:
                text += "[" + write(axis + 1) + "]"
        return text

    return write(0) + ellipsis


@operator
class StringFormat(OperatorDefinition):
    """Format tensors into a template, each as `print` writes it.

    .. math:: output = template \\text{ with the } i\\text{-th placeholder replaced by } inputs_i

    summarize: elements shown at each end of each axis, -1 for all. Output: a scalar.
    """

    inputs = Input(dtypes.any_dtype, repeated=True, mixed=True)
    output = Output(dtype=dtypes.string)
    template = Attr(str, default="%s")
    placeholder = Attr(str, default="%s")
    summarize = Attr(int, default=3)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return TensorSpec((), dtypes.string)

    def compute(op, inputs: Any) -> np.ndarray:
        parts = [p.encode("utf-8", "surrogateescape") for p in op.template.split(op.placeholder)]
        text = parts[0]
        for array, part in zip(inputs, parts[1:]):
            text += summary(np.asarray(array), op.summarize) + part
        return np.array(text, object)


def format(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None) -> Tensor:
    """Replace each placeholder of a template by a tensor, as `print` writes it; return a scalar string.

    inputs: one tensor or a list of them. summarize: elements shown at each end of each axis, -1 for all.
    raises ValueError if the numbers of placeholders and tensors differ
    """
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    placeholders = template.count(placeholder)
    if placeholders != len(values):
        raise ValueError(
            f"The template expects {placeholders} tensors, but the inputs only has {len(values)}. Please ensure the "
            "number of placeholders in template matches inputs length."
        )
    tensors = [dispatch.to_tensor(v) for v in values]
    return StringFormat(
        tensors, template=template, placeholder=placeholder, summarize=-1 if summarize is None else summarize, name=name
    )


@operator
class AsString(OperatorDefinition):
    """Convert numbers to strings: integers in decimals, floats by C's %f, %e (scientific) or %g (shortest).

    .. math:: output_i = text(input_i)

    precision: digits after the decimal point, -1 for 6. width: minimum number of characters, -1 for none.
    fill: "" or " " (align right), "-" (align left), "0" (zeros), "+" (always a sign). A complex number is
    (real,imaginary), each part of that width; bool is true or false.
    raises InvalidArgumentError for scientific and shortest together, or these options with integers or bool
    """

    input = Input((*dtypes.numeric, dtypes.bool, dtypes.string))
    output = Output(dtype=dtypes.string)
    precision = Attr(int, default=-1)
    scientific = Attr(bool, default=False)
    shortest = Attr(bool, default=False)
    width = Attr(int, default=-1)
    fill = Attr(str, default="", check=one_of("", " ", "-", "0", "+"))
    gradient = None

    def infer(op) -> TensorSpec:
        dtype = op.input.spec.dtype
        if op.scientific and op.shortest:
            raise InvalidArgumentError(
                what="Cannot select both scientific and shortest notation", wanted="one of the two"
            )
        if (op.scientific or op.shortest or op.precision >= 0) and not (dtype.is_floating or dtype.is_complex):
            raise InvalidArgumentError(
                what=f"scientific, shortest and precision do not go with {dtype.name}",
                wanted="floating or complex numbers",
            )
        return op.input.spec.with_dtype(dtypes.string)

    def compute(op, input: np.ndarray) -> np.ndarray:
        kind = input.dtype.kind
        if kind == "O":
            return input
        if kind == "b":
            return each(lambda v: b"true" if v else b"false", input)
        real = "e" if op.scientific else "g" if op.shortest else "f"
        form = "%" + op.fill.strip() + ("" if op.width < 0 else str(op.width))
        form += "" if op.precision < 0 else f".{op.precision}"
        if kind in "iu" or input.dtype.name == "int4":
            return each(lambda v: ((form + "d") % int(v)).encode(), input)
        if kind == "c":
            return each(lambda v: f"({(form + real) % v.real},{(form + real) % v.imag})".encode(), input)
        return each(lambda v: ((form + real) % float(v)).encode(), input)


as_string: signatures.AsString = AsString.as_function("as_string")

_NUMBER: dict[DType, Callable[[str], Any]] = {
    dtypes.float32: float,
    dtypes.float64: float,
    **dict.fromkeys((dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64), int),
}


@operator
class StringToNumber(OperatorDefinition):
    """Parse strings as numbers.

    .. math:: output_i = value(input_i)

    raises InvalidArgumentError for a string that is not a number, or out of the range of out_type
    """

    input = Input(dtypes.string)
    output = Output()
    out_type = Attr(DType, default=dtypes.float32, check=one_of(*_NUMBER))

    def infer(op) -> TensorSpec:
        return op.input.spec.with_dtype(op.out_type)

    def compute(op, input: Any) -> np.ndarray:
        def parse(value: bytes) -> np.generic:
            try:
                if b"_" in value:  # valid in Python only
                    raise ValueError
                text = value.decode("ascii")
                is_hex = op.out_type.is_floating and "x" in text.lower()
                number = float.fromhex(text) if is_hex else _NUMBER[op.out_type](text)
                result: np.generic = op.out_type.as_numpy_dtype(number)
                return result
            except (ValueError, OverflowError, UnicodeDecodeError):
                shown = value[:40].decode("utf-8", "replace")
                raise InvalidArgumentError(
                    what=f"could not correctly convert string: {shown}", wanted=f"a number of {op.out_type.name}"
                ) from None

        return each(parse, input, dtype=op.out_type.np)


to_number: signatures.StringToNumber = StringToNumber.as_function("to_number")


@operator
class StringToHashBucket(OperatorDefinition):
    """Hash strings to [0, num_buckets), reproducibly on every machine.

    .. math:: output_i = MurmurHash64A(input_i, \\text{0xDECAFCAFFE}) \\bmod num\\_buckets

    Not cryptographic: collisions are easy to construct.
    """

    input = Input(dtypes.string)
    output = Output(dtype=dtypes.int64)
    num_buckets = Attr(int, check=at_least(1))

    def infer(op) -> TensorSpec:
        return op.input.spec.with_dtype(dtypes.int64)

    def compute(op, input: Any) -> np.ndarray:
        return each(lambda s: murmur_hash_64a(s, MURMUR_SEED) % op.num_buckets, input, dtype=np.int64)


MURMUR_SEED, MURMUR_FACTOR = 0xDECAFCAFFE, 0xC6A4A7935BD1E995
"""The seed of TensorFlow's hashes, and the factor of MurmurHash64A."""


def murmur_hash_64a(key: bytes, seed: int) -> int:
    """Compute MurmurHash64A of a key. Source: Austin Appleby, MurmurHash2.cpp (public domain)."""
    m, word = MURMUR_FACTOR, (1 << 64) - 1
    h = seed ^ (len(key) * m & word)
    aligned = len(key) & ~7
    for offset in range(0, aligned, 8):
        k = int.from_bytes(key[offset : offset + 8], "little") * m & word
        h = (h ^ ((k ^ k >> 47) * m & word)) * m & word
    if aligned < len(key):
        h = (h ^ int.from_bytes(key[aligned:], "little")) * m & word
    h = (h ^ h >> 47) * m & word
    return h ^ h >> 47


to_hash_bucket: signatures.StringToHashBucket = StringToHashBucket.as_function("to_hash_bucket")


@operator
class StringToHashBucketFast(OperatorDefinition):
    """Hash strings to [0, num_buckets) by a fingerprint, which is stable across versions.

    .. math:: output_i = FarmHashFingerprint64(input_i) \\bmod num\\_buckets

    Not cryptographic: collisions are easy to construct.
    """

    input = Input(dtypes.string)
    output = Output(dtype=dtypes.int64)
    num_buckets = Attr(int, check=at_least(1))

    def infer(op) -> TensorSpec:
        return op.input.spec.with_dtype(dtypes.int64)

    def compute(op, input: Any) -> np.ndarray:
        return each(lambda s: fingerprint64(s) % op.num_buckets, input, dtype=np.int64)


to_hash_bucket_fast: signatures.StringToHashBucketFast
to_hash_bucket_fast = StringToHashBucketFast.as_function("to_hash_bucket_fast")


@operator
class StringToHashBucketStrong(OperatorDefinition):
    """Hash strings to [0, num_buckets) by a keyed hash, which resists collision attacks.

    .. math:: output_i = SipHash_{key}(input_i) \\bmod num\\_buckets

    key: two integers of 64 bits.
    """

    input = Input(dtypes.string)
    output = Output(dtype=dtypes.int64)
    num_buckets = Attr(int, check=at_least(1))
    key = Attr([int], check=length(2))

    def infer(op) -> TensorSpec:
        return op.input.spec.with_dtype(dtypes.int64)

    def compute(op, input: Any) -> np.ndarray:
        return each(lambda s: siphash_2_4(s, *op.key) % op.num_buckets, input, dtype=np.int64)


def siphash_2_4(message: bytes, k0: int, k1: int) -> int:
    """Compute SipHash-2-4 of a message. Source: Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012."""
    word = (1 << 64) - 1
    k0, k1 = k0 & word, k1 & word
    a, b, c, d = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def rotl(x: int, n: int) -> int:
        return (x << n | x >> 64 - n) & word

    def rounds(a: int, b: int, c: int, d: int, n: int) -> tuple[int, int, int, int]:
        for _ in range(n):
            a, c = a + b & word, c + d & word
            b, d = rotl(b, 13) ^ a, rotl(d, 16) ^ c
            a, c = rotl(a, 32) + d & word, c + b & word
            b, d = rotl(b, 17) ^ c, rotl(d, 21) ^ a
            c = rotl(c, 32)
        return a, b, c, d

    padded = message + bytes(7 - len(message) % 8) + bytes((len(message) & 255,))
    for offset in range(0, len(padded), 8):
        m = int.from_bytes(padded[offset : offset + 8], "little")
        a, b, c, d = rounds(a, b, c, d ^ m, 2)
        a ^= m
    a, b, c, d = rounds(a, b, c ^ 255, d, 4)
    return a ^ b ^ c ^ d


to_hash_bucket_strong: signatures.StringToHashBucketStrong
to_hash_bucket_strong = StringToHashBucketStrong.as_function("to_hash_bucket_strong")
