"""Neighbouring strings joined.

Lives here: StringNGrams and ngrams.  Not here: joining in general (editing.py), ragged tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from .. import dispatch
from ..attributes import Attr, at_least, each
from ..definition import Input, Output, operator


def _pad(op: Any, width: int) -> int:
    """How many pads stand at each end for n-grams of a width: never a whole n-gram of them."""
    return width - 1 if op.pad_width < 0 else min(op.pad_width, width - 1)


def _widths(op: Any, n: int) -> list[tuple[int, int, int]]:
    """For n strings in a row: the width of n-grams, their number and the pads at each end, in the order of output."""
    if n == 0:
        return []
    found = [(w, max(0, n + 2 * _pad(op, w) - w + 1), _pad(op, w)) for w in op.ngram_widths]
    if op.preserve_short_sequences and not any(count for _, count, _ in found):
        pad = max(op.pad_width, 0)
        return [(n + 2 * pad, 1, pad)]
    return found


@operator
class StringNGrams:
    """Strings along the last axis joined with their neighbours: all n-grams of one width, then of the next.

    .. math:: output_i = \\text{join}(padded_i, ..., padded_{i + width - 1})

    data: [..., n]; pad_width: how many left_pad and right_pad stand before and behind a row, at most width - 1, and
    with -1 just these. preserve_short_sequences: a row too short for any n-gram is one as it is.
    raises InvalidArgumentError for a scalar, or widths below 1
    """

    data = Input(dtypes.string)
    ngrams = Output(like="data", doc="the joined words, row after row")
    separator = Attr(str, default=" ")
    ngram_widths = Attr([int], check=each(at_least(1)), doc="how many words to join, each number in turn")  # fmt: skip
    left_pad = Attr(str, default="")
    right_pad = Attr(str, default="")
    pad_width = Attr(int, default=0)
    preserve_short_sequences = Attr(bool, default=False)
    lod = "vanishes"

    def infer(op) -> Any:
        spec = op.data.spec
        if spec.shape.dims is None:
            return spec
        if not spec.shape.dims:
            raise InvalidArgumentError(what="Data must have rank>0", found=spec.short())
        *batch, n = spec.shape.dims
        return spec.with_shape([*batch, None if n is None else sum(count for _, count, _ in _widths(op, n))])

    def compute(op, data) -> Any:
        widths, separator = _widths(op, data.shape[-1]), op.separator.encode()
        left, right = op.left_pad.encode(), op.right_pad.encode()
        output = np.empty((*data.shape[:-1], sum(count for _, count, _ in widths)), object)
        for place in np.ndindex(data.shape[:-1]):
            row, found = data[place].tolist(), []
            for width, count, pad in widths:
                padded = [left] * pad + row + [right] * pad
                found += [separator.join(padded[i : i + width]) for i in range(count)]
            output[place] = found
        return output


def ngrams(data: Any, ngram_width: Any, separator: str = " ", pad_values: Any = None, padding_width: int | None = None,
           preserve_short_sequences: bool = False, name: str | None = None) -> Any:  # fmt: skip
    """See StringNGrams. ngram_width: an int, or several. pad_values: the string that pads, or one for each end.

    padding_width: how many pads stand at each end; by default as many as give each string every place in an n-gram.
    raises ValueError for scalars, widths below 1, or a padding_width without pad_values
    """
    data = dispatch.to_tensor(data, dtypes.string)
    widths = (ngram_width,) if isinstance(ngram_width, int) else tuple(ngram_width)
    if data.shape.rank == 0:
        raise ValueError("Data must have rank>0")
    if any(w < 1 for w in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    if pad_values is None and padding_width is not None:
        raise ValueError("pad_values must be provided if padding_width is set.")
    if padding_width is not None and padding_width < 1:
        raise ValueError("padding_width must be greater than 0.")
    if pad_values is None:
        left, right, pad = "", "", 0
    else:
        left, right = (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else tuple(pad_values)[:2]
        pad = -1 if padding_width is None else padding_width
    return StringNGrams(data, separator=separator, ngram_widths=widths, left_pad=left, right_pad=right, pad_width=pad,
                        preserve_short_sequences=preserve_short_sequences, name=name)  # fmt: skip
