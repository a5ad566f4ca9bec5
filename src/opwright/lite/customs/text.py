"""Words of text: tftext:WhitespaceTokenizer, tftext:Ngrams.

Lives here: the two operators, of models that read text.  Not here: tokenizers with a vocabulary, whose data files hold.

A list of lists of words is one tensor, filled up with empty strings, or ragged: all words in a row, and for each
dimension but the last the places where its rows begin, and the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import int64, string
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from ..ops.definition import LiteDefinition
from ..ops.shapes import refuse, spec, text
from .definition import custom_operator

SPACES = frozenset(
    map(chr, (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000))
)
"""The characters with Unicode's property White_Space."""


def words_of(raw: bytes) -> list[bytes]:
    """Return the words of a UTF-8 text, up to the first invalid sequence or U+FFFD."""
    text = raw.decode("utf-8", "replace").partition("\ufffd")[0]
    return "".join(" " if c in SPACES else c for c in text).encode().split(b" ")


def _strings(elements: list[bytes], shape: Any) -> np.ndarray:
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(shape)


@custom_operator("tftext:WhitespaceTokenizer", counted_by="outputs")
class WhitespaceTokenizer(LiteDefinition):
    """The words of each text, as white space parts them.

    .. math:: words_{i} = split(x_i)

    x: strings of any shape; words: x.shape + [most words], filled up with empty strings, where there is one output;
    else all words in a row, and for each dimension of x int64 [number of rows + 1], where the rows begin.
    """

    x = Input((string,))
    ys = Output(repeated=True)
    outputs = Attr(int, default=1)

    def infer(op: Any) -> list[TensorSpec]:
        dims = op.x.spec.shape.dims
        if op.outputs == 1:
            return [spec(None if dims is None else (*dims, None), string)]
        if dims is not None and len(dims) != op.outputs - 1:
            raise refuse("there is not one output of rows for each dimension", found=op.outputs - 1, wanted=len(dims))
        sizes: list[Any] = [None] * (op.outputs - 1)
        for i, d in enumerate(dims or ()):
            before = sizes[i - 1] if i else 1
            sizes[i] = None if d is None or before is None else before * d
        return [spec((None,), string), *(spec((None if n is None else n + 1,), int64) for n in sizes)]

    def compute(op: Any, x: np.ndarray) -> list[np.ndarray]:
        lists = [[w for w in words_of(raw) if w] for raw in x.reshape(-1).tolist()]
        if op.outputs == 1:
            longest = max(map(len, lists), default=0)
            flat = [w for words in lists for w in (*words, *[b""] * (longest - len(words)))]
            return [_strings(flat, (*x.shape, longest))]
        rows, count = [], 1
        for i, d in enumerate(x.shape[:-1]):
            count *= d
            rows.append(np.arange(count + 1, dtype=np.int64) * x.shape[i + 1])
        ends = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        return [_strings([w for words in lists for w in words], (-1,)), *rows, ends]


@custom_operator("tftext:Ngrams")
class Ngrams(LiteDefinition):
    """Each run of `width` words of a row, joined.

    .. math:: y_{...i} = x_{...i} + separator + ... + x_{...,i + width - 1}

    x: strings [..., words], y: [..., words - width + 1]; or ragged: all words in a row, then int64 rows, and the same
    comes out. axis is -1, reduction_type STRING_JOIN.
    """

    x = Input((string,))
    rows = Input((int64,), repeated=True)
    ys = Output(repeated=True)
    width = Attr(int, default=0)
    axis = Attr(int, default=0)
    reduction_type = Attr(str, default="")
    string_separator = Attr(str, default="")

    def infer(op: Any) -> list[TensorSpec]:
        if op.width < 1 or op.axis != -1 or op.reduction_type != "STRING_JOIN":
            raise refuse(
                "n-grams of this kind are not supported",
                found=f"width {op.width}, axis {op.axis}, {op.reduction_type!r}",
                wanted="a width of at least 1, axis -1, 'STRING_JOIN'",
            )
        if op.rows:
            return [spec((None,), string), *(TensorSpec(r.spec.shape, int64) for r in op.rows)]
        dims = op.x.spec.shape.dims
        if dims == ():
            raise refuse("x is one word", found=text(dims), wanted="[..., words]")
        last = None if dims is None or dims[-1] is None else max(0, dims[-1] - op.width + 1)
        return [spec(None if dims is None else (*dims[:-1], last), string)]

    def compute(op: Any, x: np.ndarray, rows: Sequence[np.ndarray]) -> list[np.ndarray]:
        separator = op.string_separator.encode()
        words = x.reshape(-1).tolist()
        if rows:
            ends = rows[-1].tolist()
        else:
            ends = list(range(0, len(words) + 1, x.shape[-1])) if x.shape[-1] else [0]
        if any(a > b for a, b in itertools.pairwise(ends)) or (ends and (ends[0] < 0 or ends[-1] > len(words))):
            raise refuse("the rows are not within the words", found=ends[:8], wanted=f"rising, 0 to {len(words)}")
        joined, offsets = [], [0]
        for a, b in itertools.pairwise(ends):
            joined += [separator.join(words[i : i + op.width]) for i in range(a, b - op.width + 1)]
            offsets.append(len(joined))
        if rows:
            return [_strings(joined, (-1,)), *rows[:-1], np.array(offsets[: len(ends)], np.int64)]
        return [_strings(joined, (*x.shape[:-1], max(0, x.shape[-1] - op.width + 1)))]
