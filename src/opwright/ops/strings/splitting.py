"""Split one string into several, join several into one.

Lives here: StringSplit, BytesSplit, ReduceJoin, StringNGrams and ngrams.
Not here: element-wise changes of strings (editing.py).

There are no ragged tensors: splitting more than one string into a ragged tensor is an error that says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from .. import dispatch, lod_rules
from ..array import reshape, run_time_axes
from ..attributes import Attr, at_least
from ..attributes import each as each_item
from ..definition import operator
from ..inference import axes_in, is_static, static_axes
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .editing import each


@operator
class StringSplit(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """The pieces of each string of a vector between separators; an empty separator means runs of white space (ASCII).

    .. math:: values = pieces(input_0) + pieces(input_1) + ...

    input: [n]; sep: a scalar. indices: int64 [m, 2], string and piece of each value; values: [m];
    shape: int64 [2], n and the largest number of pieces. maxsplit: at most so many cuts a string, -1 for all.
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
    places = [(i, j) for i, row in enumerate(pieces) for j in range(len(row))]
    values = np.empty(len(places), object)
    values[:] = [piece for row in pieces for piece in row]
    most = max(map(len, pieces), default=0)
    return np.array(places, np.int64).reshape(-1, 2), values, np.array([len(pieces), most], np.int64)


def _one(input: Any, name: str) -> Tensor:
    """The input as a vector of its one string. Raises UnimplementedError for more."""
    input = dispatch.to_tensor(input)
    count = input.shape.num_elements()
    if input.shape.rank not in (0, 1) or (input.shape.rank == 1 and count != 1):
        raise UnimplementedError(
            op=name,
            what="more than one string would give rows of different lengths, and there are no ragged tensors",
            found=input.spec.short(),
            wanted="one string",
            do="StringSplit, which gives indices and values",
        )
    return reshape(input, [1])


@documented_by(StringSplit)
def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Split one string into a vector of substrings. sep: None for runs of white space.

    raises UnimplementedError for more than one string
    """
    pieces: Any = StringSplit(_one(input, "strings.split"), "" if sep is None else sep, maxsplit=maxsplit, name=name)
    return pieces[1]


@operator
class BytesSplit(OperatorDefinition):
    """The bytes of a string, each a string.

    .. math:: output_i = input[i : i + 1]
    """

    input = Input(dtypes.string, rank=0)
    output = Output(dtype=dtypes.string)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return TensorSpec([None], dtypes.string)

    def compute(op, input: Any) -> np.ndarray:
        whole = input.item()
        made = np.empty(len(whole), object)
        made[:] = [whole[i : i + 1] for i in range(len(whole))]
        return made


@documented_by(BytesSplit)
def bytes_split(input: Any, name: str | None = None) -> Tensor:
    """Split one string into bytes. Raises UnimplementedError for more than one string."""
    return BytesSplit(reshape(_one(input, "strings.bytes_split"), []), name=name)


@operator
class ReduceJoin(OperatorDefinition):
    """Strings joined along dimensions: along the first of `axis`, then what that gave along the next.

    .. math:: output_i = inputs_{i,0} + separator + inputs_{i,1} + ...

    raises InvalidArgumentError for an axis given twice or out of range
    """

    inputs = Input(dtypes.string)
    output = Output(like="inputs")
    axis = Attr([int])
    keep_dims = Attr(bool, default=False)
    separator = Attr(str, default="")
    views = {"output": "inputs"}
    lod = lod_rules.along("axis", "inputs")

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
        kept = [i for i in range(inputs.ndim) if i not in axes]
        rows = inputs.transpose(*kept, *reversed(axes))
        count = int(np.prod([inputs.shape[i] for i in axes]))
        heads = rows.shape[: len(kept)]
        flat = rows.reshape(int(np.prod(heads)), count)
        numbers = np.arange(len(flat))
        made = each(lambda k: op.separator.encode().join(flat[k].tolist()), numbers).reshape(heads)
        return np.expand_dims(made, axes) if op.keep_dims else made


@documented_by(ReduceJoin)
def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Any:
    """Join strings over axes. axis: None for all dimensions, the last first.

    raises ValueError for that where the rank is unknown
    """
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
class StringNGrams(OperatorDefinition):
    """Strings along the last axis joined with their neighbours: all n-grams of one width, then of the next.

    .. math:: output_i = \\text{join}(padded_i, ..., padded_{i + width - 1})

    data: [..., n]; pad_width: how many left_pad and right_pad stand before and behind a row, at most width - 1, and
    with -1 just these. preserve_short_sequences: a row too short for any n-gram is one as it is.
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
        for place in np.ndindex(data.shape[:-1]):
            row, found = data[place].tolist(), []
            for width, count, pad in widths:
                padded = [left] * pad + row + [right] * pad
                found += [separator.join(padded[i : i + width]) for i in range(count)]
            output[place] = found
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
