"""Geometric transformations of images: sizes, crops, padding, flips, rotations.

Lives here: batching, and sizes, which are numbers if they are static, else scalar tensors; crops and padding in pixels,
flips and rotations, and random ones.
Not here: resizing (resize.py), boxes in relative units (crops.py), the operators of any array (array/permutation.py).

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
from ..array import cast, expand_dims, pad, reshape, squeeze
from ..array.shape_operators import dims_tensor, shape_op
from ..array.slices import slice_op
from ..math import mod
from ..random import stateless_uniform, uniform

if TYPE_CHECKING:
    from ..tensor import Tensor


def check_image(image: Any, op: str) -> Tensor:
    """Convert an image to a tensor. Raises InvalidArgumentError for fewer than 3 dimensions, or empty images."""
    tensor = dispatch.to_tensor(image)
    dims = tensor.shape.dims
    if dims is not None and len(dims) < 3:
        raise InvalidArgumentError(op=op, what="'image' must be at least three-dimensional.", found=tensor.spec.short())
    if dims is not None and 0 in dims[-3:]:
        raise InvalidArgumentError(op=op, what="inner 3 dims of 'image.shape' must be > 0", found=tensor.spec.short())
    return tensor


def batched(image: Any, op: str) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return an image of rank 3 (or unknown) or 4 as a batch, and the function that removes the batch dimension again.

    raises InvalidArgumentError for another rank
    """
    tensor = dispatch.to_tensor(image)
    rank = tensor.shape.rank
    if rank == 4:
        return tensor, lambda x: x
    if rank not in (None, 3):
        raise InvalidArgumentError(op=op, what="'image' must have either 3 or 4 dimensions.", found=tensor.spec.short())
    if rank is None:
        tensor.set_shape([None, None, None])
    return expand_dims(tensor, 0), lambda x: squeeze(x, [0])


def dims_of(tensor: Any) -> list[Any]:
    """Return the sizes of a tensor of known rank: ints, or scalar int32 tensors where unknown."""
    dims = tensor.shape.as_list()
    sizes = shape_op(tensor) if None in dims else dims
    return [sizes[i] if d is None else d for i, d in enumerate(dims)]


def static_or_tensor(value: Any) -> int | Tensor:
    """Return an integer if its value is known, else an int32 tensor."""
    constant = getattr(value, "constant", value)
    if constant is None:
        result: int | Tensor = cast(value, dtypes.int32)
        return result
    return int(constant.item() if hasattr(constant, "item") else constant)


def is_known(*values: Any) -> bool:
    """Return whether all values are numbers."""
    return all(isinstance(v, (int, float)) for v in values)


def larger(x: Any, y: Any) -> float | Tensor:
    """Return the maximum of two numbers, which may be tensors."""
    return max(x, y) if is_known(x, y) else math.maximum(x, y)


def smaller(x: Any, y: Any) -> float | Tensor:
    """Return the minimum of two numbers, which may be tensors."""
    return min(x, y) if is_known(x, y) else math.minimum(x, y)


def require(op: str, condition: Any, what: str, **values: Any) -> None:
    """Raise InvalidArgumentError if a condition on numbers is false; conditions on tensors are checked by operators."""
    if isinstance(condition, bool) and not condition:
        raise InvalidArgumentError(op=op, what=what, found=values)


def static_dims(*sizes: Any) -> list[int | None]:
    """Return static sizes, None for tensors."""
    return [s if isinstance(s, int) else None for s in sizes]


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Crop an image to the target's size, beginning at (offset_height, offset_width).

    image: [n, h, w, c] or [h, w, c]; the numbers may be scalar tensors.
    raises InvalidArgumentError for another rank, or a box that is not inside the image
    """
    op = "crop_to_bounding_box"
    image, unbatched = batched(check_image(image, op), op)
    top, left, high, wide = map(static_or_tensor, (offset_height, offset_width, target_height, target_width))
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
    """Pad an image with zeros to the target's size, placing it at (offset_height, offset_width).

    image: [n, h, w, c] or [h, w, c]; the numbers may be scalar tensors.
    raises InvalidArgumentError for another rank, or a target that is too small for the image
    """
    op = "pad_to_bounding_box"
    image, unbatched = batched(check_image(image, op), op)
    top, left, high, wide = map(static_or_tensor, (offset_height, offset_width, target_height, target_width))
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
    """Crop the central part of an image: a fraction of its height and width.

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
    sizes = [side - 2 * start for side, start in zip(sides, starts)]
    lead = [0] * (image.shape.rank - 3)
    return slice_op(image, dims_tensor([*lead, *starts, 0]), dims_tensor([*(-1 for _ in lead), *sizes, -1]))


def _start(side: Any, fraction: Any) -> int | Tensor:
    if is_known(side, fraction):
        return int((float(side) - float(side) * fraction) / 2)
    wide = cast(side, dtypes.float64)
    share = np.float64(fraction) if is_known(fraction) else cast(fraction, dtypes.float64)
    result: int | Tensor = cast((wide - wide * share) / 2, dtypes.int32)
    return result


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Crop an image or pad it with zeros, both centrally, to the target's size.

    image: [n, h, w, c] or [h, w, c]; an odd pixel is cropped or padded below and to the right.
    raises InvalidArgumentError for another rank or a target that is not positive
    """
    op = "resize_with_crop_or_pad"
    image, unbatched = batched(check_image(image, op), op)
    target: list[Any] = [static_or_tensor(target_height), static_or_tensor(target_width)]
    require(op, target[1] > 0, "target_width must be > 0.", target_width=target[1])
    require(op, target[0] > 0, "target_height must be > 0.", target_height=target[0])
    sides = dims_of(image)[1:3]
    growth = [t - side for t, side in zip(target, sides)]
    cropped = crop_to_bounding_box(image, *(larger(_half(-g), 0) for g in growth), *map(smaller, target, sides))
    return unbatched(pad_to_bounding_box(cropped, *(larger(_half(g), 0) for g in growth), *target))


def _half(value: Any) -> int | Tensor:
    return value // 2 if is_known(value) else math.floordiv(value, 2)


def _random_crop(value: Any, size: Any, random: Callable[[Any], Any], name: str | None) -> Tensor:
    value = dispatch.to_tensor(value)
    size = dims_tensor(list(size)) if isinstance(size, (list, tuple)) else dispatch.to_tensor(size)
    size = cast(size, int32)
    sizes, dims = size.constant, value.shape.dims
    if sizes is not None and dims is not None:
        fits = len(dims) == len(sizes) and all(d is None or d >= n for d, n in zip(dims, sizes.tolist()))
        if not fits:
            raise InvalidArgumentError(
                op="random_crop",
                node=name,
                what="Need value.shape >= size",
                found={"value": value.spec.short(), "size": sizes.tolist()},
            )
    # If the value is smaller than the size at run time, Slice raises the error.
    offsets = shape_op(value) - size + 1
    return slice_op(value, mod(random(shape_op(size)), offsets), size, name=name)


def random_crop(value: Any, size: Any, seed: Any = None, name: str | None = None) -> Tensor:
    """Crop a tensor to a size at a uniformly distributed random offset.

    size: integers, one per dimension. raises InvalidArgumentError if the size exceeds the value's
    """
    return _random_crop(value, size, lambda n: uniform(n, 0, int32.max, int32, seed), name)


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """Crop a tensor to a size at a pseudo-random offset, a function of `seed`, two integers.

    raises InvalidArgumentError if the size exceeds the value's
    """
    return _random_crop(value, size, lambda n: stateless_uniform(n, seed, 0, int32.max, int32), name)


HEIGHT, WIDTH = -3, -2


def _image(image: Any, op: str) -> Tensor:
    tensor = check_image(image, op)
    if tensor.shape.rank not in (None, 3, 4):
        raise InvalidArgumentError(op=op, what="'image' must have either 3 or 4 dimensions.", found=tensor.spec.short())
    return tensor


def flip_left_right(image: Any) -> Tensor:
    """Flip an image horizontally. Raises InvalidArgumentError for another rank than 3 or 4."""
    return array.reverse(_image(image, "flip_left_right"), [WIDTH])


def flip_up_down(image: Any) -> Tensor:
    """Flip an image vertically. Raises InvalidArgumentError for another rank than 3 or 4."""
    return array.reverse(_image(image, "flip_up_down"), [HEIGHT])


def transpose(image: Any, name: str | None = None) -> Tensor:
    """Exchange rows and columns of an image. Raises InvalidArgumentError unless its rank is known to be 3 or 4."""
    image = _check_rank_known(_image(image, "transpose"), "transpose")
    return array.transpose(image, _transposition(image), name=name or "transpose")


def _check_rank_known(image: Tensor, op: str) -> Tensor:
    if image.shape.rank is None:
        raise InvalidArgumentError(
            op=op,
            what="the image's rank must be known",
            found=image.spec.short(),
            do="image.set_shape([None, None, None])",
        )
    return image


def _transposition(image: Any) -> list[int]:
    return [1, 0, 2] if image.shape.rank == 3 else [0, 2, 1, 3]


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Rotate an image counter-clockwise by k quarter turns. k: an integer or a scalar tensor.

    raises InvalidArgumentError for another rank than 3 or 4, or an unknown one
    """
    image, k = _check_rank_known(_image(image, "rot90"), "rot90"), static_or_tensor(k)
    if not isinstance(k, int):
        return _rotate_dynamic(image, math.floormod(k, 4), name)
    quarter_turns = k % 4
    if quarter_turns == 0:
        return array.identity(image, name=name)
    if quarter_turns == 2:
        return array.reverse(image, [HEIGHT, WIDTH], name=name)
    if quarter_turns == 1:
        return array.transpose(array.reverse(image, [WIDTH]), _transposition(image), name=name or "transpose")
    return array.reverse(array.transpose(image, _transposition(image)), [WIDTH], name=name)


def _rotate_dynamic(image: Any, k: Any, name: str | None) -> Tensor:
    """Compute rot90 for k known only at run time: gather pixels by their flat indices."""
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
    rotated = array.gather(flat, row * wide + column, axis=len(lead), name=name)
    rotated.set_shape([*image.shape.dims[:-3], None, None, image.shape[-1]])
    return rotated


def _random_flip(image: Any, axis: int, random: Callable[[Any], Any], op: str) -> Tensor:
    """Flip each image along an axis with probability 1/2. random: maps a shape to numbers in [0, 1)."""
    image = _image(image, op)
    if image.shape.rank == 3:
        numbers = random([])
    else:
        numbers = random(shape_op(image)[:-3])
        numbers = array.reshape(numbers, array.concat([shape_op(image)[:-3], dispatch.to_tensor([1, 1, 1])], 0))
    flipped = array.where(math.less(numbers, 0.5), array.reverse(image, [axis]), image)
    flipped.set_shape(image.shape)
    return flipped


def random_flip_left_right(image: Any, seed: Any = None) -> Tensor:
    """Flip each image horizontally with probability 1/2. Raises InvalidArgumentError for another rank than 3 or 4."""
    return _random_flip(image, WIDTH, lambda shape: uniform(shape, seed=seed), "random_flip_left_right")


def random_flip_up_down(image: Any, seed: Any = None) -> Tensor:
    """Flip each image vertically with probability 1/2. Raises InvalidArgumentError for another rank than 3 or 4."""
    return _random_flip(image, HEIGHT, lambda shape: uniform(shape, seed=seed), "random_flip_up_down")


def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """Flip each image horizontally with probability 1/2, as a function of `seed`, two integers.

    raises InvalidArgumentError for another rank than 3 or 4
    """
    return _random_flip(image, WIDTH, lambda shape: stateless_uniform(shape, seed), "stateless_random_flip_left_right")


def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """Flip each image vertically with probability 1/2, as a function of `seed`, two integers.

    raises InvalidArgumentError for another rank than 3 or 4
    """
    return _random_flip(image, HEIGHT, lambda shape: stateless_uniform(shape, seed), "stateless_random_flip_up_down")
