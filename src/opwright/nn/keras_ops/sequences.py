"""`keras.ops` on sequences of labels without alignment, and axes named by a pattern.

Lives here: the CTC loss and decoding, `rearrange`.  Not here: their formulas (ops/nn/ctc.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...core.dtypes import float32, int32
from ...ops import array, dispatch
from ...ops import nn as ops_nn
from ...ops.nn import ctc_beam_search
from .promotion import as_floating

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def _single(x: Any) -> Tensor:
    """Return a tensor of float32 or float64."""
    x = as_floating(x)
    widened: Tensor = array.cast(x, float32) if x.dtype.size < 4 else x
    return widened


def ctc_loss(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Tensor:
    """Return the loss of label sequences without alignment, [batch] (Graves et al., 2006).

    target: classes [batch, length], of which target_length count. output: logits [batch, time, classes], of which
    output_length steps count. mask_index: the class of no label.
    raises ValueError for other ranks
    """
    labels, logits = array.cast(dispatch.to_tensor(target), int32), _single(output)
    if labels.shape.rank != 2 or logits.shape.rank != 3:
        raise ValueError(
            "Targets have the shape (batch, length), outputs (batch, time, classes). Received: target.shape="
            f"{labels.shape}, output.shape={logits.shape}"
        )
    if not labels.shape[:1].is_compatible_with(logits.shape[:1]):
        raise ValueError(
            f"The first dimension of target and output must match. Received: {labels.shape[0]} and {logits.shape[0]}"
        )
    counts, steps = (array.cast(dispatch.to_tensor(n), int32) for n in (target_length, output_length))
    return ops_nn.ctc_loss(labels, logits, counts, steps, logits_time_major=False, blank_index=mask_index)


def ctc_decode(
    inputs: Any,
    sequence_lengths: Any,
    strategy: str = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int = 0,
) -> tuple[Tensor, Tensor]:
    """Return label sequences, [1, batch, time], -1 where there is no label, and scores [batch, 1].

    inputs: logits [batch, time, classes], of which sequence_lengths steps count. strategy: "greedy", the most probable
    class of each step; merge_repeated: whether equal ones in a row are one label; or "beam_search", the top_paths
    most probable sequences of beam_width that are kept at each step: [top_paths, batch, time] and [batch, top_paths].
    mask_index: the class of no label.
    raises ValueError for other strategies
    """
    if strategy not in ("greedy", "beam_search"):
        raise ValueError(f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'.")
    logits = _single(inputs)
    lengths = array.cast(dispatch.to_tensor(sequence_lengths), int32)
    if strategy == "beam_search":
        paths, _, probabilities = ctc_beam_search.CTCBeamSearch(
            array.transpose(logits, [1, 0, 2]), lengths, beam_width, top_paths, mask_index
        )
        return array.transpose(array.cast(paths, int32), [1, 0, 2]), probabilities
    (sparse,), scores = ops_nn.ctc_greedy_decoder(
        array.transpose(logits, [1, 0, 2]), lengths, merge_repeated, blank_index=mask_index
    )
    empty = array.fill(array.shape(logits)[:2], -1)
    labels = array.tensor_scatter_nd_update(empty, sparse.indices, array.cast(sparse.values, int32))
    return array.expand_dims(array.ensure_shape(labels, logits.shape[:2]), 0), scores


def _groups(side: str) -> list[list[str]]:
    """Return the names of axes of one side of a pattern, those in parentheses as one group."""
    return [(inner or name).split() for inner, name in re.findall(r"\(([^()]*)\)|(\S+)", side)]


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Tensor:
    """Return a tensor whose axes are permuted, split and merged by a pattern of names.

    pattern: the names of the axes, "->", their new order; names in parentheses are one axis. axes_lengths: sizes of
    names on the left within parentheses, all but one.
    raises ValueError if pattern and shape do not match

    >>> rearrange(ow.zeros([2, 6, 3]), "b (h w) c -> (b h) w c", h=2).shape
    TensorShape([4, 3, 3])
    """
    x = dispatch.to_tensor(tensor)
    left, arrow, right = pattern.partition("->")
    before, after = _groups(left), _groups(right)
    names, wanted = [n for group in before for n in group], [n for group in after for n in group]
    if not arrow or sorted(names) != sorted(wanted) or len(set(names)) != len(names):
        raise ValueError(f"Both sides of the pattern must have the same names, each once. Received: {pattern!r}")
    if len(before) != x.shape.rank:
        raise ValueError(f"The pattern {pattern!r} is of {len(before)} axes. Received a tensor of shape {x.shape}")
    lengths: dict[str, Any] = dict(axes_lengths)
    for axis, group in enumerate(before):
        size = x.shape[axis]
        size = array.shape(x)[axis] if size is None else size
        missing = [n for n in group if n not in lengths]
        if len(missing) > 1:
            raise ValueError(f"The sizes of {missing[1:]} are needed as arguments of rearrange for {pattern!r}")
        product: Any = _product([lengths[n] for n in group if n in lengths])
        if missing:
            lengths[missing[0]] = size // product
        if isinstance(size, int) and isinstance(product, int) and (size % product if missing else size != product):
            raise ValueError(f"Axis {axis} of size {size} is not {group} of sizes {lengths} of {pattern!r}")
    split = array.reshape(x, _sizes([lengths[n] for n in names]))
    moved = array.transpose(split, [names.index(n) for n in wanted])
    return array.reshape(moved, _sizes([_product([lengths[n] for n in group]) for group in after]))


def _product(sizes: list[Any]) -> Any:
    """Return the product of sizes, of which some may be tensors."""
    product: Any = 1
    for size in sizes:
        product = size * product
    return product


def _sizes(sizes: list[Any]) -> Any:
    """Return a shape for `reshape`, with one unknown size as -1."""
    unknown = [i for i, size in enumerate(sizes) if not isinstance(size, int)]
    if len(unknown) == 1:
        return [-1 if i in unknown else size for i, size in enumerate(sizes)]
    parts = [array.cast(size, int32) if i in unknown else size for i, size in enumerate(sizes)]
    return array.stack(parts) if unknown else sizes
