"""Images of few columns as one line, whose pixels are their rows.

    x [N, H, W, C], filter [F, KH, KW, C]  ->  x [N, 1, H, W C], filter [OW F, 1, KH, W C]

Lives here: `columns_as_channels`.  Not here: the convolutions (contractions_int8.py, contractions_f32.py).

The memory is the same. A tile then holds many pixels of the line, instead of at most W, and padding on the left and
right needs no copies because its weights are absent. Weights of columns outside a window are their zero point.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..loops.buffers import Buffer, SameMemory, Window
from .expression import tables

if TYPE_CHECKING:
    from ..loops.ops import Contract

FEW_COLUMNS, FEW_CHANNELS = 4, 64
"""Columns of the image, and channels of a row of the output, up to which rows are treated as pixels."""


def columns_as_channels(form: Contract) -> Contract | None:
    """Return the convolution with rows as pixels; None for images that are wide or not dense, and computed filters."""
    (n, height, width, channels), (_, out_height, out_width, features) = form.input.shape, form.output.shape
    filters, window = form.filter.constant, form.window
    if (
        filters is None
        or form.groups > 1
        or form.rounding
        or form.input.pitch != channels
        or form.output.pitch != features
    ):
        return None
    few = width == out_width == 1 or (width <= FEW_COLUMNS and out_width * features <= FEW_CHANNELS)
    if not few or window.size[0] == 1 or width >= out_height:
        return None
    operands = _repeated(form, out_width)
    if operands is None:
        return None
    (down, across), (step, apart), (top, bottom, left, _) = window.strides, window.dilations, window.padding
    rows = np.full((out_width, features, 1, window.size[0], width, channels), form.filter_zero, filters.dtype)
    for x in range(out_width):
        for kx in range(window.size[1]):
            column = x * across + kx * apart - left
            if 0 <= column < width:
                rows[x, :, 0, :, column] = filters[:, :, kx]
    shape = (out_width * features, 1, window.size[0], width * channels)
    along_rows = Window((1, window.size[0]), (1, down), (1, step), (0, 0, top, bottom))
    return replace(
        form,
        window=along_rows,
        operands=operands,
        input=SameMemory(form.input.name, form.input.dtype, (n, 1, height, width * channels), of=form.input),
        output=SameMemory(form.output.name, form.output.dtype, (n, 1, out_height, shape[0]), of=form.output),
        filter=Buffer(form.filter.name, form.filter.dtype, shape, rows.reshape(shape)),
    )


def _repeated(form: Contract, times: int) -> tuple[Buffer, ...] | None:
    """Return the operands for each column of the output; None if one is neither a table nor a constant by channel."""
    repeated, lookups = [], tables(form.expr)
    for i, operand in enumerate(form.operands, 1):
        constant = operand.constant
        if i not in lookups and constant is not None and operand.size == form.output.shape[-1]:
            elements = np.tile(constant.reshape(-1), times)
            repeated.append(Buffer(operand.name, operand.dtype, elements.shape, elements))
        elif i in lookups or operand.size == 1:
            repeated.append(operand)
        else:
            return None
    return tuple(repeated)
