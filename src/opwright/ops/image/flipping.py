"""Images turned over and round.

Lives here: flip_left_right, flip_up_down, rot90, transpose, and flips by chance.
Not here: the operators, which are those of any array (array/moving.py).

Images are [h, w, c], or [n, h, w, c].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.errors import InvalidArgumentError
from .. import array, dispatch, math
from ..array.shaping import dims_tensor, shape_op
from ..random import stateless_uniform, uniform
from .sizes import check_image, known

HEIGHT, WIDTH = -3, -2


def _image(image: Any, op: str) -> Any:
    tensor = check_image(image, op)
    if tensor.shape.rank not in (None, 3, 4):
        raise InvalidArgumentError(op=op, what="'image' must have either 3 or 4 dimensions.", found=tensor.spec.short())
    return tensor


def flip_left_right(image: Any) -> Any:
    """The image with left and right exchanged. Raises InvalidArgumentError for another rank than 3 or 4."""
    return array.reverse(_image(image, "flip_left_right"), [WIDTH])


def flip_up_down(image: Any) -> Any:
    """The image upside down. Raises InvalidArgumentError for another rank than 3 or 4."""
    return array.reverse(_image(image, "flip_up_down"), [HEIGHT])


def transpose(image: Any, name: str | None = None) -> Any:
    """Rows and columns exchanged. Raises InvalidArgumentError for another rank than 3 or 4, or an unknown one."""
    image = _ranked(_image(image, "transpose"), "transpose")
    return array.transpose(image, _turned(image), name=name or "transpose")


def _ranked(image: Any, op: str) -> Any:
    if image.shape.rank is None:
        raise InvalidArgumentError(op=op, what="the image's rank must be known", found=image.spec.short(),
                                   do="image.set_shape([None, None, None])")  # fmt: skip
    return image


def _turned(image: Any) -> list[int]:
    return [1, 0, 2] if image.shape.rank == 3 else [0, 2, 1, 3]


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Any:
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


def _rotated(image: Any, k: Any, name: str | None) -> Any:
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


def _perhaps(image: Any, axis: int, draw: Draw, op: str) -> Any:
    """Each image turned over along an axis or left as it is, with equal chances."""
    image = _image(image, op)
    chance = draw([]) if image.shape.rank == 3 else draw(shape_op(image)[:-3])
    ones = dispatch.to_tensor([1, 1, 1])
    chance = array.reshape(chance, array.concat([shape_op(image)[:-3], ones], 0)) if image.shape.rank != 3 else chance
    turned = array.where(math.less(chance, 0.5), array.reverse(image, [axis]), image)
    turned.set_shape(image.shape)
    return turned


def random_flip_left_right(image: Any, seed: Any = None) -> Any:
    """Each image with left and right exchanged, or not. Raises InvalidArgumentError for another rank than 3 or 4."""
    return _perhaps(image, WIDTH, lambda shape: uniform(shape, seed=seed), "random_flip_left_right")


def random_flip_up_down(image: Any, seed: Any = None) -> Any:
    """Each image upside down, or not. Raises InvalidArgumentError for another rank than 3 or 4."""
    return _perhaps(image, HEIGHT, lambda shape: uniform(shape, seed=seed), "random_flip_up_down")


def stateless_random_flip_left_right(image: Any, seed: Any) -> Any:
    """Each image with left and right exchanged, or not: a function of `seed`, two integers.

    raises InvalidArgumentError for another rank than 3 or 4
    """
    return _perhaps(image, WIDTH, lambda shape: stateless_uniform(shape, seed), "stateless_random_flip_left_right")


def stateless_random_flip_up_down(image: Any, seed: Any) -> Any:
    """Each image upside down, or not: a function of `seed`, two integers.

    raises InvalidArgumentError for another rank than 3 or 4
    """
    return _perhaps(image, HEIGHT, lambda shape: stateless_uniform(shape, seed), "stateless_random_flip_up_down")
