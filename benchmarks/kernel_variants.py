"""Kernels that networks of other widths and image sizes need, besides those of the networks that were compiled.

Lives here: `compile_variants`: for each family of convolutions, the geometries that were compiled and the usual others,
each with all epilogues that were compiled.
Not here: which networks are compiled, and the file of their kernels (prebuild.py).

A kernel's constants are a geometry, such as the rows of its tiles, and an epilogue with its operands. Networks of the
same kind have the same epilogues; the geometry follows from channels and image sizes. A tile has at most as many rows
as registers allow; an image with many tiles has those, or a row less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from opwright.compiler.kernels.convolution_int8 import convolution_int8
from opwright.compiler.kernels.depthwise import depthwise_f32
from opwright.compiler.kernels.depthwise_int8 import depthwise_int8
from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.gemm_f32 import gemm
from opwright.compiler.kernels.gemm_int8 import gemm_int8
from opwright.compiler.kernels.gemv_f32 import gemv
from opwright.compiler.kernels.grouped_convolution_f32 import convolution_grouped, group_tile
from opwright.compiler.kernels.tiling import row_tiles
from opwright.compiler.kernels.weight_packing_f32 import pack, panels_of
from opwright.compiler.kernels.weight_packing_int8 import pack_int8
from opwright.compiler.language.compilation import KernelFamily
from opwright.compiler.loops.expressions import arg
from opwright.compiler.target import host
from opwright.core.dtypes import float32

Constants = dict[str, Any]
WIDTHS = (48, 56, 64, 80, 96, 112, 120, 128, 160)
"""Widths of the results of first convolutions: half of an image's."""
FEATURES = (16, 24, 32)
"""Channels of the results of first convolutions."""


def _heights(most: int) -> Iterator[Constants]:
    """Yield the heights of tiles of at most that many rows: few images have tiles of less than three fifths of it."""
    for rows in range(3 * most // 5, most + 1):
        yield {"rows": rows, "short": False}
        if rows >= most - 1:
            yield {"rows": rows, "short": True}


def _line_heights(most: int) -> Iterator[Constants]:
    """Yield the heights of tiles of at most that many pixels of a line."""
    for width in WIDTHS:
        cut = row_tiles(width, most)
        yield {"rows": cut.height, "short": cut.short}


def _products(geometry: Constants) -> Iterator[Constants]:
    """Yield the layouts of float32 filters, and the heights of their tiles."""
    width = panels_of(host(), 1, 1).width
    for features in range(width // 4, 2 * width + 1, width // 4):  # a part of a panel, and a panel with a part
        panels = panels_of(host(), features, 1)
        for height in _heights(panels.rows):
            is_most = height["rows"] == panels.rows
            if (panels.wide or is_most) and (height["short"] or not is_most):
                yield {**geometry, **height, "wide": panels.wide, "halves": panels.halves}


def _products_int8(geometry: Constants) -> Iterator[Constants]:
    for height in _heights(geometry["rows"]):
        yield {**geometry, **height}


def _first_layers(geometry: Constants) -> Iterator[Constants]:
    """Yield the tiles of first convolutions of other widths."""
    for features in FEATURES:
        tile = group_tile(host(), geometry["tile"].channels, features, 1)
        if tile is not None and geometry["tile"].dense:
            for height in _line_heights(geometry["rows"]):
                yield {**geometry, **height, "tile": tile._replace(dense=True)}


def _first_layers_int8(geometry: Constants) -> Iterator[Constants]:
    if geometry["rows"] > 1:
        for height in _line_heights(geometry["rows"]):
            yield {**geometry, **height}


def _narrow_images(geometry: Constants) -> Iterator[Constants]:
    """Yield the tile of two rows whose epilogue is computed one by one: of images of few pixels."""
    yield {**geometry, "tile": geometry["tile"]._replace(rows=2), "together": 0}


def _unbiased(geometry: Constants) -> Iterator[Constants]:
    yield {**geometry, "biased": not geometry["biased"]}


def _same(geometry: Constants) -> Iterator[Constants]:
    yield geometry


FAMILIES: tuple[tuple[KernelFamily, Callable[[Constants], Iterator[Constants]]], ...] = (
    (gemm, _products),
    (gemm_int8, _products_int8),
    (convolution_grouped, _first_layers),
    (convolution_int8, _first_layers_int8),
    (depthwise_f32, _same),
    (depthwise_int8, _narrow_images),
    (pack, _unbiased),
    (pack_int8, _unbiased),
)
PRODUCTS = (gemm, gemm_int8)
EPILOGUE = ("epilogue", "more")


def last_layers() -> Iterator[Constants]:
    """Yield the products of one row without an epilogue: converters differ in where they add a last layer's bias."""
    plain = Epilogue(arg(0, float32), (), (), finite=True, small=True)
    for dtype in dict.fromkeys(constants["dtype"] for constants in gemv.compiled_constants()):
        yield {"more": 0, "dtype": dtype, "epilogue": plain}


def compile_variants() -> int:
    """Compile further kernels of the families; return their number."""
    count = 0
    for constants in last_layers():
        gemv.code(**constants)
        count += 1
    for family, others in FAMILIES:
        present = family.compiled_constants()
        if family in PRODUCTS:  # those of one row are of vectors, whose epilogues images do not have
            present = [constants for constants in present if constants["rows"] > 1]
        for constants in variants(present, others):
            family.code(**constants)
            count += 1
    return count


def variants(present: list[Constants], others: Callable[[Constants], Iterator[Constants]]) -> list[Constants]:
    """Return the geometries that are present and the others, each with all epilogues, without those present."""
    geometries: list[Constants] = []
    epilogues: list[Constants] = []
    for constants in present:
        geometry = {name: value for name, value in constants.items() if name not in EPILOGUE}
        epilogue = {name: value for name, value in constants.items() if name in EPILOGUE}
        if epilogue not in epilogues:
            epilogues.append(epilogue)
        for candidate in (geometry, *others(geometry)):
            if candidate not in geometries:
                geometries.append(candidate)
    whole = [geometry | epilogue for geometry in geometries for epilogue in epilogues]
    return [constants for constants in whole if constants not in present]
