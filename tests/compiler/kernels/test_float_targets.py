"""Kernels of floats with code for AVX2 on a processor that has more: some of each module's own tests under that target.

All of them run so in `make test-avx2`. Kernels of bytes: test_int8_targets.py.
"""

from collections.abc import Callable

import numpy as np
import pytest
import test_attention_compiled as attention
import test_depthwise_f32 as depthwise
import test_gemm_f32 as gemm
import test_lstm_compiled as lstm
import test_matmul_f32 as matmul
import test_pools_compiled as pools
import test_reductions_compiled as reductions
import test_row_passes as rows

import opwright as ow
from opwright.compiler import target as processors
from opwright.compiler.loops.buffers import Window
from opwright.core.dtypes import float16, float32

PLAIN = gemm.PLAIN
STRIDED = Window((3, 3), (2, 2), padding=(1, 1, 1, 1))

TESTS: dict[str, Callable[[], object]] = {
    "rows by panels": lambda: gemm.test_sums((1, 5, 9, 33), 45, PLAIN, 1, float32, True),
    "few rows": lambda: gemm.test_sums((1, 1, 2, 37), 19, PLAIN, 1, float16, True),
    "windows": lambda: gemm.test_sums((1, 11, 13, 5), 27, STRIDED, 1, float32, False),
    "epilogues": lambda: [
        gemm.test_epilogues(name, kind, 45)
        for name, kind in (("hard_swish", "gemm"), ("residual", "convolution"), ("below", "gemv"))
    ],
    "slices": gemm.test_slices_of_buffers,
    "matmul": lambda: matmul.test_products(((2, 3, 17, 31), (2, 3, 31, 33)), "aB", False),
    "depthwise": lambda: [depthwise.test_channels(size, stride, 21) for size, stride in ((3, 1), (5, 2))],
    "depthwise, bias": depthwise.test_bias_activation_and_what_is_beside,
    "pools": lambda: [pools.test_channels(37, kind, np.float32) for kind in ("max", "sum")],
    "rows": lambda: [rows.test_rows_of_float32(kind, rows.SHAPES[-1]) for kind in rows.KINDS],
    "searches": reductions.test_searches_among_nan,
    "extremes": reductions.test_nan_is_left_out_of_extremes,
    "attention": lambda: attention.test_attention(attention.CASES[1]),
    "lstm": lambda: lstm.test_steps_of_an_lstm(lstm.CASES[3], False),
}


@pytest.mark.skipif(not processors.processor().has("avx512f"), reason="this processor has no more than AVX2")
@pytest.mark.parametrize("name", TESTS)
def test_with_avx2(name):
    with ow.flags(target="x86-64-v3"):
        TESTS[name]()
