"""Crop, pad, flip, rotate and transpose images.

Lives here: crops and pads to a frame in pixels, random crops, flips and rotations, also random ones.
Not here: resizing (resize.py), boxes in relative units (regions.py), the operators of any array (array/permutation.py).

Images are [h, w, c], or [n, h, w, c].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import int32
from ...core.errors import InvalidArgumentError
from .. import array, dispatch, math
from ..array import cast, pad, reshape
from ..array.shaping import dims_tensor, shape_op
from ..array.slicing import slice_op
from ..math import mod
from ..random import stateless_uniform, uniform
from .sizes import batched, check_image, dims_of, is_known, known, larger, require, smaller, static_dims

if TYPE_CHECKING:
    from ..tensor import Tensor


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
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
    result: Tensor = unbatched(cropped)
    return result


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
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
    result: Tensor = unbatched(padded)
    return result


def central_crop(image: Any, central_fraction: Any) -> Tensor:
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
        raise InvalidArgumentError(
            op=op, what="`image` should either be a Tensor with rank = 3 or rank = 4.", found=image.spec.short()
        )
    sides = dims_of(image)[-3:-1]
    starts = [_start(side, fraction) for side in sides]
    kept = [side - 2 * start for side, start in zip(sides, starts)]
    lead = [0] * (image.shape.rank - 3)
    return slice_op(image, dims_tensor([*lead, *starts, 0]), dims_tensor([*(-1 for _ in lead), *kept, -1]))


def _start(side: Any, fraction: Any) -> int | Tensor:
    if is_known(side, fraction):
        return int((float(side) - float(side) * fraction) / 2)
    wide = cast(side, dtypes.float64)
    share = np.float64(fraction) if is_known(fraction) else cast(fraction, dtypes.float64)
    result: int | Tensor = cast((wide - wide * share) / 2, dtypes.int32)
    return result


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
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
    result: Tensor = unbatched(pad_to_bounding_box(cropped, *(larger(_half(m), 0) for m in more), *target))
    return result


def _half(value: Any) -> Tensor:
    return value // 2 if is_known(value) else math.floordiv(value, 2)


def _cropped(value: Any, size: Any, draw: Callable[[Any], Any], name: str | None) -> Tensor:
    value = dispatch.to_tensor(value)
    size = dims_tensor(list(size)) if isinstance(size, (list, tuple)) else dispatch.to_tensor(size)
    size = cast(size, int32)
    wanted, dims = size.constant, value.shape.dims
    if wanted is not None and dims is not None:
        fits = len(dims) == len(wanted) and all(d is None or d >= w for d, w in zip(dims, wanted.tolist()))
        if not fits:
            raise InvalidArgumentError(
                op="random_crop",
                node=name,
                what="Need value.shape >= size",
                found={"value": value.spec.short(), "size": wanted.tolist()},
            )
    # Where the value turns out smaller than the size, slicing says so.
    room = shape_op(value) - size + 1
    return slice_op(value, mod(draw(shape_op(size)), room), size, name=name)


def random_crop(value: Any, size: Any, seed: Any = None, name: str | None = None) -> Tensor:
    """A part of `value` of this size, at a place where each is as likely as any other.

    size: integers, one a dimension. raises InvalidArgumentError where the size is larger than the value
    """
    return _cropped(value, size, lambda n: uniform(n, 0, int32.max, int32, seed), name)


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """As random_crop, a function of `seed`, two integers.

    raises InvalidArgumentError where the size is larger than the value
    """
    return _cropped(value, size, lambda n: stateless_uniform(n, seed, 0, int32.max, int32), name)


HEIGHT, WIDTH = -3, -2


def _image(image: Any, op: str) -> Tensor:
    tensor = check_image(image, op)
    if tensor.shape.rank not in (None, 3, 4):
        raise InvalidArgumentError(op=op, what="'image' must have either 3 or 4 dimensions.", found=tensor.spec.short())
    return tensor


def flip_left_right(image: Any) -> Tensor:
    """The image with left and right exchanged. Raises InvalidArgumentError for another rank than 3 or 4."""
    return array.reverse(_image(image, "flip_left_right"), [WIDTH])


def flip_up_down(image: Any) -> Tensor:
    """The image upside down. Raises InvalidArgumentError for another rank than 3 or 4."""
    return array.reverse(_image(image, "flip_up_down"), [HEIGHT])


def transpose(image: Any, name: str | None = None) -> Tensor:
    """Rows and columns exchanged. Raises InvalidArgumentError for another rank than 3 or 4, or an unknown one."""
    image = _ranked(_image(image, "transpose"), "transpose")
    return array.transpose(image, _turned(image), name=name or "transpose")


def _ranked(image: Tensor, op: str) -> Tensor:
    if image.shape.rank is None:
        raise InvalidArgumentError(
            op=op,
            what="the image's rank must be known",
            found=image.spec.short(),
            do="image.set_shape([None, None, None])",
        )
    return image


def _turned(image: Any) -> list[int]:
    return [1, 0, 2] if image.shape.rank == 3 else [0, 2, 1, 3]


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """The image turned anticlockwise by k right angles. k: an integer or a scalar tensor.

    raises InvalidArgumentError for another rank than 3 or 4, or an unknown one
    """
    image, k = _ranked(_image(image, "rot90"), "rot90"), known(k)
    if not isinstance(k, int):
        return _rotated(image, math.floormod(k, 4), name)
    turns = k % 4
    if turns == 0:
        return array.identity(image, name=name)
    if turns == 2:
        return array.reverse(image, [HEIGHT, WIDTH], name=name)
    if turns == 1:
        return array.transpose(array.reverse(image, [WIDTH]), _turned(image), name=name or "transpose")
    return array.reverse(array.transpose(image, _turned(image)), [WIDTH], name=name)


def _rotated(image: Any, k: Any, name: str | None) -> Tensor:
    """As rot90, where the number of turns is known only when the program runs: by the number of each pixel."""
    shape = shape_op(image)
    high, wide = shape[HEIGHT], shape[WIDTH]
    odd = math.equal(math.floormod(k, 2), 1)
    rows, columns = array.where(odd, wide, high), array.where(odd, high, wide)
    i, j = array.range(rows)[:, None], array.range(columns)[None, :]
    i, j = i + array.zeros_like(j), j + array.zeros_like(i)
    row = array.gather(array.stack([i, j, high - 1 - i, high - 1 - j]), k)
    column = array.gather(array.stack([j, wide - 1 - i, wide - 1 - j, i]), k)
    lead = [shape[n] for n in range(image.shape.rank - 3)]
    flat = array.reshape(image, dims_tensor([*lead, high * wide, shape[-1]]))
    turned = array.gather(flat, row * wide + column, axis=len(lead), name=name)
    turned.set_shape([*image.shape.dims[:-3], None, None, image.shape[-1]])
    return turned


# ---- by chance ----------------------------------------------------------------------------------------------------

Draw = Callable[[Any], Any]  # a shape to numbers in [0, 1)


def _perhaps(image: Any, axis: int, draw: Draw, op: str) -> Tensor:
    """Each image turned over along an axis or left as it is, with equal chances."""
    image = _image(image, op)
    chance = draw([]) if image.shape.rank == 3 else draw(shape_op(image)[:-3])
    ones = dispatch.to_tensor([1, 1, 1])
    chance = array.reshape(chance, array.concat([shape_op(image)[:-3], ones], 0)) if image.shape.rank != 3 else chance
    turned = array.where(math.less(chance, 0.5), array.reverse(image, [axis]), image)
    turned.set_shape(image.shape)
    return turned


def random_flip_left_right(image: Any, seed: Any = None) -> Tensor:
    """Each image with left and right exchanged, or not. Raises InvalidArgumentError for another rank than 3 or 4."""
    return _perhaps(image, WIDTH, lambda shape: uniform(shape, seed=seed), "random_flip_left_right")


def random_flip_up_down(image: Any, seed: Any = None) -> Tensor:
    """Each image upside down, or not. Raises InvalidArgumentError for another rank than 3 or 4."""
    return _perhaps(image, HEIGHT, lambda shape: uniform(shape, seed=seed), "random_flip_up_down")


def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """Each image with left and right exchanged, or not: a function of `seed`, two integers.

    raises InvalidArgumentError for another rank than 3 or 4
    """
    return _perhaps(image, WIDTH, lambda shape: stateless_uniform(shape, seed), "stateless_random_flip_left_right")


def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """Each image upside down, or not: a function of `seed`, two integers.

    raises InvalidArgumentError for another rank than 3 or 4
    """
    return _perhaps(image, HEIGHT, lambda shape: stateless_uniform(shape, seed), "stateless_random_flip_up_down")
