"""Convolutions of 8 bits over images of few columns, as convolutions over a line whose pixels are whole rows of them.

Lives here: `over_rows`.  Not here: the maker that asks (contractions_int8.py).

    x [N, H, W, C], filter [F, KH, KW, C]  ->  x [N, 1, H, W C], filter [OW F, 1, KH, W C]

The memory is the same. A tile then has many pixels of the line, where one of the image has at most W, and what lies
left and right of the image needs no copies: its weights are not there. Weights of columns that a window does not see
are their zero point.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..loops.forms import Buffer, Contract, SameMemory, Window
from .expression import tables

NARROW, FEW = 4, 64
"""Columns of the image, and channels of a row of the output, up to which rows are taken as pixels."""


def over_rows(form: Contract) -> Contract | None:
    """The same convolution over rows as pixels; None where images are wide or not dense, or something is not known."""
    (n, height, width, channels), (_, out_height, out_width, features) = form.input.shape, form.output.shape
    filters, window = form.filter.constant, form.window
    if filters is None or form.groups > 1 or form.rounding or form.input.pitch != channels \
            or form.output.pitch != features:
        return None
    if not (width <= NARROW and out_width * features <= FEW and window.size[0] > 1 and width < out_height):
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
    turned = Window((1, window.size[0]), (1, down), (1, step), (0, 0, top, bottom))
    return replace(
        form, window=turned, operands=operands,
        input=SameMemory(form.input.name, form.input.dtype, (n, 1, height, width * channels), of=form.input),
        output=SameMemory(form.output.name, form.output.dtype, (n, 1, out_height, shape[0]), of=form.output),
        filter=Buffer(form.filter.name, form.filter.dtype, shape, rows.reshape(shape)))


def _repeated(form: Contract, times: int) -> tuple[Buffer, ...] | None:
    """The operands for each column of the output; None where one is neither a table nor a constant for each channel."""
    found, lookups = [], tables(form.expr)
    for i, operand in enumerate(form.operands, 1):
        known = operand.constant
        if i in lookups or operand.size == 1:
            found.append(operand)
        elif known is not None and operand.size == form.output.shape[-1]:
            repeated = np.tile(known.reshape(-1), times)
            found.append(Buffer(operand.name, operand.dtype, repeated.shape, repeated))
        else:
            return None
    return tuple(found)
