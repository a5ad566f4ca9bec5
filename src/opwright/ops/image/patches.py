"""Patches of images on a grid.

Lives here: ExtractImagePatches.  Not here: windows as convolutions slide them (nn/windows.py), boxes (regions.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import any_dtype, string
from ...core.errors import InvalidArgumentError
from .. import beside
from ..array import range as range_
from ..array import reshape, transpose
from ..array.shaping import dims_tensor, shape_op
from ..attributes import Attr, one_of
from ..definition import Input, Output, operator
from ..math import reduce_prod, unsorted_segment_sum
from ..windows import Window, out_size, pad, taps, window


def _check(op: Any) -> None:
    for name in ("sizes", "strides", "rates"):
        found = getattr(op, name)
        if len(found) != 4 or min(found) < 1 or found[0] != 1 or found[3] != 1:
            raise InvalidArgumentError(what=f"{name} must be [1, rows, columns, 1]", found=list(found),
                                       wanted="positive, and 1 for batch and depth")  # fmt: skip


def _windows(op: Any, shape: Any) -> list[Window]:
    return [window(shape[i], op.sizes[i], op.strides[i], op.rates[i], op.padding) for i in (1, 2)]


@operator
class ExtractImagePatches:
    """The patches of images that windows on a grid see, each flattened into the depth.

    .. math:: patches_{n,p,q,(i,j,c)} = images_{n,\\; p\\,s_1 + i\\,r_1 - before,\\; q\\,s_2 + j\\,r_2 - before,\\; c}

    images: [n, h, w, c]; sizes, strides, rates: [1, rows, columns, 1]: of a patch, from patch to patch, from pixel to
    pixel in a patch. padding: "VALID", or "SAME" with zeros around. patches: [n, rows, columns, sizes_1 sizes_2 c].
    raises InvalidArgumentError for sizes, strides or rates of another form
    """

    images = Input(tuple(d for d in any_dtype if d is not string), rank=4)
    patches = Output(like="images")
    sizes = Attr([int])
    strides = Attr([int])
    rates = Attr([int])
    padding = Attr(str, check=one_of("VALID", "SAME"))
    no_need_buffer = ("images",)
    lod = "as images"

    def infer(op) -> Any:
        _check(op)
        dims = op.images.spec.shape.dims or [None] * 4
        out = [out_size(dims[i], op.sizes[i], op.strides[i], op.rates[i], op.padding) for i in (1, 2)]
        depth = None if dims[3] is None else dims[3] * op.sizes[1] * op.sizes[2]
        return op.images.spec.with_shape([dims[0], *out, depth])

    def compute(op, images) -> Any:
        windows = _windows(op, images.shape)
        n, depth = images.shape[0], images.shape[3]
        padded = pad(images, windows)
        out = beside.empty(images, (n, windows[0].out, windows[1].out, op.sizes[1], op.sizes[2], depth), images.dtype)
        for (i, j), (rows, columns) in taps(windows):
            out[:, :, :, i, j] = padded[:, rows, columns]
        return out.reshape(*out.shape[:3], op.sizes[1] * op.sizes[2] * depth)

    def gradient(op, dpatches) -> Any:
        shape = shape_op(op.images)
        n, pixels, depth = shape[0], reduce_prod(shape[1:3]), shape[3]
        numbers = reshape(range_(1, pixels + 1), dims_tensor([1, shape[1], shape[2], 1]))  # 0 is the padding
        seen = ExtractImagePatches(numbers, **op.attrs)
        parts = transpose(reshape(dpatches, dims_tensor([n, -1, depth])), [1, 0, 2])
        total = unsorted_segment_sum(parts, reshape(seen, [-1]), pixels + 1)[1:]
        return reshape(transpose(total, [1, 0, 2]), shape)


def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Any:
    """See ExtractImagePatches."""
    return ExtractImagePatches(images, sizes, strides, rates, padding, name=name)
