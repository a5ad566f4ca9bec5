"""Images cut and padded to a frame.

Lives here: crop_to_bounding_box, pad_to_bounding_box, central_crop, resize_with_crop_or_pad.
Not here: resizing (resize_functions.py), cropping at random (random_crops.py), boxes in relative units (regions.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from .. import dispatch, math
from ..array import cast, pad, reshape
from ..array.shaping import dims_tensor
from ..array.slicing import slice_op
from .sizes import batched, check_image, dims_of, is_known, known, larger, require, smaller, static_dims


def crop_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
                         ) -> Any:  # fmt: skip
    """The part of the image that begins at (offset_height, offset_width) and has the target's size.

    image: [n, h, w, c] or [h, w, c]; the numbers may be scalar tensors.
    raises InvalidArgumentError for another rank, or a frame that does not lie inside the image
    """
    op = "crop_to_bounding_box"
    image, unbatched = batched(check_image(image, op), op)
    top, left, high, wide = map(known, (offset_height, offset_width, target_height, target_width))
    n, rows, columns, depth = dims_of(image)
    require(op, left >= 0, "offset_width must be >= 0.", offset_width=left)
    require(op, top >= 0, "offset_height must be >= 0.", offset_height=top)
    require(op, wide > 0, "target_width must be > 0.", target_width=wide)
    require(op, high > 0, "target_height must be > 0.", target_height=high)
    require(op, columns >= wide + left, "width must be >= target + offset.", width=columns, target=wide, offset=left)
    require(op, rows >= high + top, "height must be >= target + offset.", height=rows, target=high, offset=top)
    cropped = slice_op(image, dims_tensor([0, top, left, 0]), dims_tensor([n, high, wide, depth]))
    cropped.set_shape([image.shape[0], *static_dims(high, wide), image.shape[3]])
    return unbatched(cropped)


def pad_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
                        ) -> Any:  # fmt: skip
    """The image in a frame of zeros of the target's size, at (offset_height, offset_width).

    image: [n, h, w, c] or [h, w, c]; the numbers may be scalar tensors.
    raises InvalidArgumentError for another rank, or a frame that the image does not fit into
    """
    op = "pad_to_bounding_box"
    image, unbatched = batched(check_image(image, op), op)
    top, left, high, wide = map(known, (offset_height, offset_width, target_height, target_width))
    _, rows, columns, _ = dims_of(image)
    below, right = high - top - rows, wide - left - columns
    require(op, top >= 0, "offset_height must be >= 0", offset_height=top)
    require(op, left >= 0, "offset_width must be >= 0", offset_width=left)
    require(op, right >= 0, "width must be <= target - offset", width=columns, target=wide, offset=left)
    require(op, below >= 0, "height must be <= target - offset", height=rows, target=high, offset=top)
    ends = dims_tensor([0, 0, top, below, left, right, 0, 0])
    padded = pad(image, reshape(ends, [4, 2]))
    padded.set_shape([image.shape[0], *static_dims(high, wide), image.shape[3]])
    return unbatched(padded)


def central_crop(image: Any, central_fraction: Any) -> Any:
    """The middle of the image: this fraction of its height and width.

    image: [n, h, w, c] or [h, w, c]; central_fraction: in (0, 1], a number or a scalar tensor.
    raises InvalidArgumentError for a fraction out of range or another rank
    """
    op = "central_crop"
    constant = getattr(central_fraction, "constant", central_fraction)
    fraction = central_fraction if constant is None else float(constant)
    if is_known(fraction):
        require(op, 0.0 < fraction <= 1.0, "central_fraction must be within (0, 1]", central_fraction=fraction)
        if fraction == 1.0:
            return dispatch.to_tensor(image)
    image = dispatch.to_tensor(image)
    if image.shape.rank not in (3, 4):
        raise InvalidArgumentError(op=op, what="`image` should either be a Tensor with rank = 3 or rank = 4.",
                                   found=image.spec.short())  # fmt: skip
    sides = dims_of(image)[-3:-1]
    starts = [_start(side, fraction) for side in sides]
    kept = [side - 2 * start for side, start in zip(sides, starts)]
    lead = [0] * (image.shape.rank - 3)
    return slice_op(image, dims_tensor([*lead, *starts, 0]), dims_tensor([*(-1 for _ in lead), *kept, -1]))


def _start(side: Any, fraction: Any) -> Any:
    if is_known(side, fraction):
        return int((float(side) - float(side) * fraction) / 2)
    wide = cast(side, dtypes.float64)
    share = np.float64(fraction) if is_known(fraction) else cast(fraction, dtypes.float64)
    return cast((wide - wide * share) / 2, dtypes.int32)


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Any:
    """Images of the target's size around the same middle: what is too much is cut off, what is missing is 0.

    image: [n, h, w, c] or [h, w, c]; an odd pixel is cut and added below and to the right.
    raises InvalidArgumentError for another rank or a target that is not positive
    """
    op = "resize_with_crop_or_pad"
    image, unbatched = batched(check_image(image, op), op)
    target = [known(target_height), known(target_width)]
    require(op, target[1] > 0, "target_width must be > 0.", target_width=target[1])
    require(op, target[0] > 0, "target_height must be > 0.", target_height=target[0])
    sides = dims_of(image)[1:3]
    more = [t - side for t, side in zip(target, sides)]
    cropped = crop_to_bounding_box(image, *(larger(_half(-m), 0) for m in more), *map(smaller, target, sides))
    return unbatched(pad_to_bounding_box(cropped, *(larger(_half(m), 0) for m in more), *target))


def _half(value: Any) -> Any:
    return value // 2 if is_known(value) else math.floordiv(value, 2)
