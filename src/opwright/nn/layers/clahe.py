"""Equalization of the histograms of images by tiles.

Lives here: ContrastLimitedAdaptiveHistogramEqualization.  Not here: of whole images (color_augmentation.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import float32, int32
from ...ops import array, math
from .categories import encode
from .color_augmentation import BYTES
from .image_layer import ImageLayer, rescaled

LEVELS = 256
"""The number of values of pixels that histograms distinguish."""


class ContrastLimitedAdaptiveHistogramEqualization(ImageLayer):
    """Equalization of the values of images in each tile of a grid, with bilinear transitions; in training and outside.

    See Zuiderveld 1994. value_range: of the pixels. clip_limit: how many times the mean a bin may have; what exceeds it
    is spread over all bins; 0: no limit. tile_grid_size: the numbers of tiles, rows and columns.
    """

    _draws = False
    _always = True

    def __init__(
        self,
        value_range: Any = BYTES,
        clip_limit: float = 4.0,
        tile_grid_size: Any = (8, 8),
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._init_image_layer(
            data_format=data_format, value_range=value_range, clip_limit=clip_limit, tile_grid_size=tile_grid_size
        )

    def _outside(self, images: Any) -> Any:
        return self.transform_images(images)

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Equalize images."""
        if images.shape.rank == 3:
            return array.squeeze(self.transform_images(array.expand_dims(images, 0)), [0])
        last = array.transpose(images, [0, 2, 3, 1]) if self.data_format == "channels_first" else images
        levels = rescaled(array.cast(last, float32), self.value_range, BYTES)
        result = array.cast(rescaled(self._equalized(levels), BYTES, self.value_range), images.dtype)
        result = array.ensure_shape(result, last.shape)
        return array.transpose(result, [0, 3, 1, 2]) if self.data_format == "channels_first" else result

    def _equalized(self, images: Any) -> Any:
        batch, height, width, channels = self._shape(images)
        rows, across = self.tile_grid_size
        tile_height, tile_width = -(-height // rows), -(-width // across)
        margins = array.stack(
            [
                [0, 0],
                array.stack([0, tile_height * rows - height]),
                array.stack([0, tile_width * across - width]),
                [0, 0],
            ]
        )
        padded = array.pad(images, margins, "symmetric")
        levels = math.clip_by_value(array.cast(padded, int32), 0, LEVELS - 1)
        tiles = array.reshape(levels, array.stack([batch, rows, tile_height, across, tile_width, channels]))
        tiles = array.transpose(tiles, [0, 1, 3, 5, 2, 4])
        area = tile_height * tile_width
        flat = array.reshape(tiles, array.stack([batch * (rows * across) * channels, area]))
        table = array.reshape(self._levels_of(encode(flat, "count", LEVELS, float32), area), [-1])
        down = _neighbours(tile_height * rows, tile_height, rows)
        right = _neighbours(tile_width * across, tile_width, across)
        image = array.reshape(array.range(batch), [-1, 1, 1, 1]) * rows

        def value(tile_row: Any, tile_column: Any) -> Any:
            tile = ((image + _column(tile_row)) * across + _row(tile_column)) * channels + array.range(channels)
            return array.gather(table, tile * LEVELS + levels)

        upper, lower = (
            value(y, right[0]) * (1.0 - _row(right[2])) + value(y, right[1]) * _row(right[2])
            for y in (down[0], down[1])
        )
        result = upper * (1.0 - _column(down[2])) + lower * _column(down[2])
        return result[:, :height, :width, :]

    def _levels_of(self, counts: Any, area: Any) -> Any:
        """Return the new level of each level, [tiles, LEVELS], from histograms of tiles."""
        area = array.cast(area, float32)
        if self.clip_limit > 0:
            kept = math.minimum(counts, self.clip_limit * area / LEVELS)
            counts = kept + math.reduce_sum(counts - kept, axis=-1, keepdims=True) / LEVELS
        total = math.cumsum(counts, axis=-1)
        least = math.reduce_min(total, axis=-1, keepdims=True)
        rest = area - least
        levels = (total - least) * float(LEVELS - 1) / array.where(math.equal(rest, 0.0), array.ones_like(rest), rest)
        return math.clip_by_value(levels, 0.0, float(LEVELS - 1))


def _column(values: Any) -> Any:
    return array.reshape(values, [1, -1, 1, 1])


def _row(values: Any) -> Any:
    return array.reshape(values, [1, 1, -1, 1])


def _neighbours(size: Any, tile: Any, count: int) -> tuple[Any, Any, Any]:
    """Return for each position along a side the tiles with middles before and after it, and the second's weight."""
    tile = array.cast(tile, float32)
    place = (array.range(array.cast(size, float32)) - tile / 2.0) / tile
    before = math.floor(place)
    ends = (array.cast(math.clip_by_value(v, 0.0, float(count - 1)), int32) for v in (before, before + 1.0))
    return (*ends, place - before)
