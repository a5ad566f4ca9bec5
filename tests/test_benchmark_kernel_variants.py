"""Variants of kernels for a package: they contain the tiles that selectors choose for networks of other sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.kernel_variants import FAMILIES, last_layers, variants

import opwright as ow
from opwright.compiler.kernels.gemv_f32 import gemv
from opwright.compiler.kernels.tiling import has_two_heights, row_tiles
from opwright.compiler.kernels.weight_packing_f32 import panels_of
from opwright.compiler.target import host

WIDTHS = {4: (16, 24, 120, 144), 8: (32, 40, 184, 240), 16: (56, 72, 112, 416), 32: (96, 160, 320, 1280)}
"""Channels at a stride, in MobileNets and EfficientNets of several widths."""
OTHERS = {family.name: others for family, others in FAMILIES}


def _gemm(pixels: int, features: int) -> dict[str, object]:
    """Return the geometry of the kernel of a convolution by single pixels."""
    panels = panels_of(host(), features, 1)
    cut = row_tiles(pixels, panels.rows)
    short = has_two_heights(cut, panels.rows)
    return {"rows": cut.height, "short": short, "wide": panels.wide, "halves": panels.halves}


@pytest.mark.parametrize("image", [128, 160, 192, 240, 256])
def test_products_of_other_images_and_widths_are_among_the_variants(image: int) -> None:
    present = [{"epilogue": "none", "more": 0, **_gemm(7 * 7, 64)}, {"epilogue": "sum", "more": 2, **_gemm(7 * 7, 64)}]
    compiled = variants(present, OTHERS["gemm"])
    assert not any(constants in present for constants in compiled)
    for stride, channels in WIDTHS.items():
        for features in channels:
            constants = {"epilogue": "sum", "more": 2, **_gemm(math.ceil(image / stride) ** 2, features)}
            assert constants in present + compiled, (stride, features)


def test_every_geometry_has_every_epilogue() -> None:
    present = [{"size": 3, "epilogue": "a", "more": 0}, {"size": 5, "epilogue": "b", "more": 1}]
    expected = [{"size": 3, "epilogue": "b", "more": 1}, {"size": 5, "epilogue": "a", "more": 0}]
    assert variants(present, OTHERS["depthwise_f32"]) == expected


def test_a_last_layer_without_a_bias_is_among_the_variants() -> None:
    weights = np.ones((64, 1000), np.float32)

    @ow.function(jit_compile=True)
    def last(x: ow.Tensor) -> ow.Tensor:
        return ow.matmul(x, weights)

    np.testing.assert_array_equal(last(ow.ones([1, 64])), np.full((1, 1000), 64, np.float32))
    assert any(constants in gemv.compiled_constants() for constants in last_layers())
