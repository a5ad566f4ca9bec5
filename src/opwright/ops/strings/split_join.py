"""Splitting of strings; joins and n-grams along axes.

Lives here: StringSplit, BytesSplit, ReduceJoin, StringNGrams and ngrams.
Not here: element-wise operators on strings (elementwise.py).

Pieces of more than one string are a RaggedTensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from .. import array, dispatch, lod_propagation, math
from ..array import reshape, run_time_axes
from ..attributes import Attr, at_least
from ..attributes import each as each_item
from ..definition import operator
from ..ragged import functions
from ..ragged.ragged_tensor import RaggedTensor
from ..ragged.rows import range_in_rows, ranges
from ..registry import documented_by
from ..shape_inference import axes_in, is_static, static_axes
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .elementwise import each, join, length, regex_replace, substr
from .unicode import unicode_split_with_offsets, unicode_transcode, unsorted_segment_join


@operator
class StringSplit(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Split each string of a vector at a separator; an empty separator matches runs of ASCII white space.

    .. math:: values = pieces(input_0) + pieces(input_1) + ...

    input: [n]; sep: a scalar. indices: int64 [m, 2], string and piece of each value; values: [m];
    shape: int64 [2], n and the maximum number of pieces. maxsplit: maximum number of splits per string, -1 for all.
    """

    input = Input(dtypes.string, rank=1)
    sep = Input(dtypes.string, rank=0)
    indices = Output(dtype=dtypes.int64)
    values = Output(dtype=dtypes.string)
    shape = Output(dtype=dtypes.int64)
    maxsplit = Attr(int, default=-1)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        return TensorSpec([None, 2], dtypes.int64), TensorSpec([None], dtypes.string), TensorSpec([2], dtypes.int64)

    def compute(op, input: Any, sep: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        separator = sep.item() or None
        pieces = [s.split(separator, op.maxsplit) for s in input.tolist()]
        return _sparse(pieces)


def _sparse(pieces: list[list[bytes]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    indices = [(i, j) for i, row in enumerate(pieces) for j in range(len(row))]
    values = np.fromiter((piece for row in pieces for piece in row), object, len(indices))
    max_pieces = max(map(len, pieces), default=0)
    return np.array(indices, np.int64).reshape(-1, 2), values, np.array([len(pieces), max_pieces], np.int64)


def _of_each(function: Callable[[Any], RaggedTensor], input: Any) -> RaggedTensor:
    """Return what a function of a vector of strings returns, in the shape of the strings with one more dimension."""
    if isinstance(input, RaggedTensor):
        return cast("RaggedTensor", input.with_flat_values(_of_each(function, input.flat_values)))
    shape, rank = array.shape(input, dtypes.int64), input.shape.rank
    if rank is None:
        raise ValueError("the rank of the strings must be known")
    result = function(reshape(input, [-1]))
    for axis in range(rank - 1, 0, -1):
        rows = math.reduce_prod(shape[:axis])
        result = RaggedTensor.from_uniform_row_length(result, shape[axis], rows, validate=False)
    return result


@documented_by(StringSplit)
def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Split strings into substrings: a string to a vector, others to a RaggedTensor with one more dimension.

    sep: None for runs of white space
    """

    def pieces(strings: Any) -> RaggedTensor:
        indices, values, _ = StringSplit(strings, "" if sep is None else sep, maxsplit=maxsplit, name=name)
        rows = array.shape(strings, dtypes.int64)[0]
        return cast("RaggedTensor", RaggedTensor.from_value_rowids(values, indices[:, 0], rows, validate=False))

    input = input if isinstance(input, RaggedTensor) else dispatch.to_tensor(input)
    if input.shape.rank == 0:
        return pieces(reshape(input, [1])).flat_values
    return _of_each(pieces, input)


@operator
class BytesSplit(OperatorDefinition):
    """Split a string into strings of one byte.

    .. math:: output_i = input[i : i + 1]
    """

    input = Input(dtypes.string, rank=0)
    output = Output(dtype=dtypes.string)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return TensorSpec([None], dtypes.string)

    def compute(op, input: Any) -> np.ndarray:
        value = input.item()
        return np.fromiter((value[i : i + 1] for i in range(len(value))), object, len(value))


@documented_by(BytesSplit)
def bytes_split(input: Any, name: str | None = None) -> Any:
    """Split strings into bytes: a string to a vector, others to a RaggedTensor with one more dimension."""

    def pieces(strings: Any) -> RaggedTensor:
        lengths = array.cast(length(strings), dtypes.int64)
        rows = RaggedTensor.from_row_lengths(range_in_rows(lengths), lengths, validate=False)
        each_byte = substr(array.gather(strings, rows.value_rowids()), rows.values, array.ones_like(rows.values))
        return cast("RaggedTensor", rows.with_values(each_byte))

    input = input if isinstance(input, RaggedTensor) else dispatch.to_tensor(input)
    return BytesSplit(input, name=name) if input.shape.rank == 0 else _of_each(pieces, input)


_BETWEEN = b"\xff"
"""A byte that no UTF-8 has."""


def unicode_split(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """Split strings into characters: a string to a vector, others to a RaggedTensor with one more dimension.

    errors, replacement_char: as in `unicode_transcode`
    """
    input = input if isinstance(input, RaggedTensor) else dispatch.to_tensor(input)
    if input.shape.rank == 0:
        return unicode_split_with_offsets(input, input_encoding, errors, replacement_char, name)[0]
    valid = unicode_transcode(input, input_encoding, "UTF-8", errors, replacement_char)
    pieces = split(regex_replace(valid, "(?s)(.)(?=.)", b"\\1" + _BETWEEN), _BETWEEN)
    characters = cast(
        "RaggedTensor", functions.boolean_mask(pieces, math.not_equal(pieces, b""))
    )  # an empty string has one
    if input_encoding.upper().replace("-", "") == "UTF8":
        return characters
    return unicode_transcode(characters, "UTF-8", input_encoding)


@operator
class ReduceJoin(OperatorDefinition):
    """Join strings along axes: along the first of `axis`, then the results along the next.

    .. math:: output_i = inputs_{i,0} + separator + inputs_{i,1} + ...

    raises InvalidArgumentError for a repeated axis or one out of range
    """

    inputs = Input(dtypes.string)
    output = Output(like="inputs")
    axis = Attr([int])
    keep_dims = Attr(bool, default=False)
    separator = Attr(str, default="")
    views = {"output": "inputs"}
    lod = lod_propagation.along("axis", "inputs")

    def infer(op) -> TensorSpec:
        spec = op.inputs.spec
        if spec.shape.rank is None:
            return spec.with_shape(UNKNOWN)
        axes = axes_in(op.axis, spec.shape.rank)
        if op.keep_dims:
            return spec.with_shape([1 if i in axes else d for i, d in enumerate(spec.shape)])
        return spec.with_shape([d for i, d in enumerate(spec.shape) if i not in axes])

    def compute(op, inputs: np.ndarray) -> np.ndarray:
        axes = axes_in(op.axis, inputs.ndim)
        if not axes:
            return inputs
        batch_axes = [i for i in range(inputs.ndim) if i not in axes]
        rows = inputs.transpose(*batch_axes, *reversed(axes))
        count = int(np.prod([inputs.shape[i] for i in axes]))
        heads = rows.shape[: len(batch_axes)]
        flat = rows.reshape(int(np.prod(heads)), count)
        row_indices = np.arange(len(flat))
        output = each(lambda k: op.separator.encode().join(flat[k].tolist()), row_indices).reshape(heads)
        return np.expand_dims(output, axes) if op.keep_dims else output


@documented_by(ReduceJoin)
def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Tensor:
    """Join strings over axes. axis: None for all dimensions, the last first.

    raises ValueError for axis None and an unknown rank
    """
    if isinstance(inputs, RaggedTensor):
        joined_rows: Tensor = _joined_rows(inputs, axis, keepdims, separator)
        return joined_rows
    inputs = dispatch.to_tensor(inputs)
    if not is_static(axis):

        def joined(x: Any, count: int) -> Tensor:
            return ReduceJoin(x, tuple(range(count)), False, separator, name=name)

        return run_time_axes.reduce_along_axes(joined, inputs, axis, keepdims)
    axes = static_axes(axis)
    if axes is None:
        if inputs.shape.rank is None:
            raise ValueError("reduce_join: the rank must be known where axis is None")
        axes = tuple(reversed(range(inputs.shape.rank)))
    return ReduceJoin(inputs, axes, keepdims, separator, name=name)


def _joined_rows(x: RaggedTensor, axis: Any, keepdims: bool, separator: str) -> Any:
    """Return the strings of each innermost row as one. Raises UnimplementedError for other axes."""
    if axis not in (-1, x.ragged_rank) or (isinstance(x.shape.rank, int) and x.shape.rank != x.ragged_rank + 1):
        raise UnimplementedError(
            op="strings.reduce_join", what="of ragged strings only the innermost rows are joined", wanted="axis=-1"
        )
    if x.ragged_rank > 1:
        return x.with_values(_joined_rows(x.values, -1, keepdims, separator))
    joined = unsorted_segment_join(x.values, x.value_rowids(), x.nrows(), separator)
    return array.expand_dims(joined, 1) if keepdims else joined


def _pad(op: Any, width: int) -> int:
    """Return the padding at each end for n-grams of a width; less than the width."""
    return width - 1 if op.pad_width < 0 else min(op.pad_width, width - 1)


def _widths(op: Any, n: int) -> list[tuple[int, int, int]]:
    """Return width, number and padding of the n-grams of a row of n strings, in the order of the output."""
    if n == 0:
        return []
    widths = [(w, max(0, n + 2 * _pad(op, w) - w + 1), _pad(op, w)) for w in op.ngram_widths]
    if op.preserve_short_sequences and not any(count for _, count, _ in widths):
        pad = max(op.pad_width, 0)
        return [(n + 2 * pad, 1, pad)]
    return widths


@operator
class StringNGrams(OperatorDefinition):
    """Compute the n-grams of strings along the last axis, for each width in turn.

    .. math:: output_i = \\text{join}(padded_i, ..., padded_{i + width - 1})

    data: [..., n]; pad_width: the numbers of left_pad and right_pad around a row, at most width - 1; -1 for width - 1.
    preserve_short_sequences: a row too short for any n-gram becomes one.
    raises InvalidArgumentError for a scalar, or widths below 1
    """

    data = Input(dtypes.string)
    ngrams = Output(like="data", doc="the joined words, row after row")
    separator = Attr(str, default=" ")
    ngram_widths = Attr([int], check=each_item(at_least(1)), doc="numbers of words to join, each in turn")
    left_pad = Attr(str, default="")
    right_pad = Attr(str, default="")
    pad_width = Attr(int, default=0)
    preserve_short_sequences = Attr(bool, default=False)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        spec = op.data.spec
        if spec.shape.dims is None:
            return spec
        if not spec.shape.dims:
            raise InvalidArgumentError(what="Data must have rank>0", found=spec.short())
        *batch, n = spec.shape.dims
        return spec.with_shape([*batch, None if n is None else sum(count for _, count, _ in _widths(op, n))])

    def compute(op, data: Any) -> np.ndarray:
        widths, separator = _widths(op, data.shape[-1]), op.separator.encode()
        left, right = op.left_pad.encode(), op.right_pad.encode()
        output = np.empty((*data.shape[:-1], sum(count for _, count, _ in widths)), object)
        for batch in np.ndindex(data.shape[:-1]):
            row, row_ngrams = data[batch].tolist(), []
            for width, count, pad in widths:
                padded = [left] * pad + row + [right] * pad
                row_ngrams += [separator.join(padded[i : i + width]) for i in range(count)]
            output[batch] = row_ngrams
        return output


@documented_by(StringNGrams)
def ngrams(
    data: Any,
    ngram_width: Any,
    separator: str = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the n-grams of rows of strings. ngram_width: an int, or several. pad_values: the padding string, or
    one for each end.

    padding_width: the padding at each end; by default width - 1, so that each string occurs at every position.
    raises ValueError for scalars, widths below 1, or a padding_width without pad_values
    """
    data = data if isinstance(data, RaggedTensor) else dispatch.to_tensor(data, dtypes.string)
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
    if isinstance(data, RaggedTensor):
        if preserve_short_sequences:
            raise UnimplementedError(
                op="strings.ngrams",
                what="short rows of ragged strings are not preserved",
                wanted="preserve_short_sequences=False",
            )
        ragged: Tensor = _ragged_ngrams(data, widths, separator, (left, right), pad)
        return ragged
    return StringNGrams(
        data,
        separator=separator,
        ngram_widths=widths,
        left_pad=left,
        right_pad=right,
        pad_width=pad,
        preserve_short_sequences=preserve_short_sequences,
        name=name,
    )


def _ragged_ngrams(data: Any, widths: Any, separator: str, pads: tuple[Any, Any], pad_width: int) -> Any:
    """Return the n-grams of ragged rows, of each width in turn."""
    if data.ragged_rank > 1:
        return data.with_values(_ragged_ngrams(data.values, widths, separator, pads, pad_width))
    of_widths = []
    for width in widths:
        rows, count = data, width - 1 if pad_width < 0 else min(pad_width, width - 1)
        if count:
            ends = [array.fill([data.nrows(), count], array.cast(p, dtypes.string)) for p in pads]
            rows = array.concat([ends[0], data, ends[1]], 1)
        counts = math.maximum(rows.row_lengths() - (width - 1), array.cast(0, dtypes.int64))
        starts = ranges(rows.row_starts(), counts)
        words = [array.gather(rows.values, starts + k) for k in range(width)]
        of_widths.append(RaggedTensor.from_row_lengths(join(words, separator=separator), counts, validate=False))
    return of_widths[0] if len(of_widths) == 1 else array.concat(of_widths, 1)
