"""Rows of convolutions and pools.

Oracles: window_oracles.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import bad, case, f32, f64, i8, i32, u8
from window_oracles import (
    argmax_pool,
    avg_pool,
    avg_pool_grad,
    conv,
    conv_by_filter,
    conv_by_input,
    depthwise,
    depthwise_by_filter,
    depthwise_by_input,
    max_pool,
    max_pool_grad,
    max_pool_grad_grad,
)

import opwright as ow


def windows(oracle: Any, *inputs: Any, **attrs: Any) -> Any:
    """A row whose oracle needs the attributes too."""
    extra = {k: attrs.pop(k) for k in ("grad", "static", "half") if k in attrs}
    return case(*inputs, expect=lambda *a: oracle(*a, **attrs), **attrs, **extra)


def sizes(*dims: int) -> Any:
    return np.array(dims, np.int32)


VALID = {"strides": [1, 1, 1, 1], "padding": "VALID"}
SAME = {"strides": [1, 1, 1, 1], "padding": "SAME"}
STRIDED = {"strides": [1, 2, 3, 1], "padding": "SAME"}
HOLES = {"strides": [1, 1, 2, 1], "padding": "SAME", "dilations": [1, 2, 3, 1]}
EXPLICIT = {"strides": [1, 2, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 3, 0, 0]}
NCHW = {"strides": [1, 1, 2, 1], "padding": "SAME", "data_format": "NCHW"}
CUBE = {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}
CUBE_VALID = {"strides": [1, 1, 1, 1, 1], "padding": "VALID", "dilations": [1, 1, 2, 1, 1]}
CUBE_FIRST = {"strides": [1, 1, 1, 2, 1], "padding": "SAME", "data_format": "NCDHW"}

CASES = {
    "Conv2D": [
        windows(conv, f32(2, 5, 6, 3), f32(3, 2, 3, 4), **VALID),
        windows(conv, f64(2, 5, 6, 3), f64(3, 3, 3, 2), **SAME),
        windows(conv, f64(1, 7, 8, 2), f64(3, 4, 2, 3), **STRIDED),
        windows(conv, f64(1, 7, 9, 2), f64(2, 3, 2, 2), **HOLES),
        windows(conv, f64(1, 4, 3, 2), f64(3, 2, 2, 2), **EXPLICIT),
        windows(conv, f64(1, 2, 5, 4), f64(2, 3, 2, 3), **NCHW),
        windows(conv, f64(2, 4, 4, 4), f64(2, 2, 2, 6), **SAME),  # two groups
        windows(conv, f64(1, 4, 4, 3), f64(2, 2, 1, 6), **VALID),  # depthwise, as groups
        windows(conv, f32(1, 5, 5, 1), f32(5, 5, 1, 1), **VALID),
        windows(conv, f64(1, 3, 3, 2), f64(1, 1, 2, 3), strides=[1, 2, 2, 1], padding="SAME"),
        windows(conv, i32(1, 4, 4, 2), i32(2, 2, 2, 3), **SAME),
        case(f32(0, 5, 5, 2), f32(3, 3, 2, 4), expect=np.zeros((0, 3, 3, 4)), **VALID),
        case(f32(2, 0, 5, 2), f32(3, 3, 2, 4), expect=np.zeros((2, 0, 5, 4)), **SAME),
        case(f32(2, 5, 5, 2), f32(3, 3, 2, 0), expect=np.zeros((2, 5, 5, 0)), **SAME),
        bad(
            f32(1, 4, 4, 3),
            f32(2, 2, 2, 1),
            says="input depth must be evenly divisible by filter depth: 3 vs 2",
            **SAME,
        ),
        bad(f32(1, 4, 4, 4), f32(2, 2, 2, 3), says="output depth must be evenly divisible by number of groups", **SAME),
        bad(f32(1, 2, 5, 1), f32(3, 3, 1, 1), says=("subtracting 3 from 2", "larger than the image"), **VALID),
        bad(f32(4, 4, 1), f32(2, 2, 1, 1), says="rank 4", **SAME),
        bad(f32(1, 4, 4, 1), f32(2, 2, 1), says="rank 4", **SAME),
        bad(f32(1, 4, 4, 1), f64(2, 2, 1, 1), says="differ in dtype", **SAME),
        bad(u8(1, 4, 4, 1), u8(2, 2, 1, 1), says="dtype", **SAME),
        bad(f32(1, 4, 4, 1), f32(2, 2, 1, 1), says="strides", strides=[1, 1, 1], padding="SAME"),
        bad(f32(1, 4, 4, 1), f32(2, 2, 1, 1), says="positive", strides=[1, 0, 1, 1], padding="SAME"),
        bad(f32(1, 4, 4, 1), f32(2, 2, 1, 1), says="batch and depth", strides=[2, 1, 1, 1], padding="SAME"),
        bad(f32(1, 4, 4, 1), f32(2, 2, 1, 1), says="padding", strides=[1, 1, 1, 1], padding="FULL"),
        bad(f32(1, 4, 4, 1), f32(2, 2, 1, 1), says="data_format", data_format="CHWN", **SAME),
        bad(
            f32(1, 4, 4, 1),
            f32(2, 2, 1, 1),
            says="nonnegative",
            strides=[1, 1, 1, 1],
            padding="EXPLICIT",
            explicit_paddings=[0, 0, -1, 0, 0, 0, 0, 0],
        ),
        bad(
            f32(1, 4, 4, 1),
            f32(2, 2, 1, 1),
            says="explicit_paddings has 2",
            strides=[1, 1, 1, 1],
            padding="EXPLICIT",
            explicit_paddings=[0, 0],
        ),
        bad(
            f32(1, 4, 4, 1),
            f32(2, 2, 1, 1),
            says="batch or depth",
            strides=[1, 1, 1, 1],
            padding="EXPLICIT",
            explicit_paddings=[1, 0, 0, 0, 0, 0, 0, 0],
        ),
        bad(f32(1, 4, 4, 1), f32(0, 2, 1, 1), says="the window is empty", **SAME),
    ],
    "Conv2DBackpropInput": [
        windows(conv_by_input, sizes(2, 5, 6, 3), f32(3, 2, 3, 4), f32(2, 3, 5, 4), **VALID),
        windows(conv_by_input, sizes(1, 7, 8, 2), f64(3, 4, 2, 3), f64(1, 4, 3, 3), **STRIDED),
        windows(conv_by_input, sizes(1, 7, 9, 2), f64(2, 3, 2, 2), f64(1, 7, 5, 2), **HOLES),
        windows(conv_by_input, sizes(1, 4, 3, 2), f64(3, 2, 2, 2), f64(1, 3, 5, 2), **EXPLICIT),
        windows(
            conv_by_input,
            sizes(1, 2, 5, 4),
            f64(2, 3, 2, 3),
            f64(1, 3, 5, 2),
            strides=[1, 1, 1, 2],
            padding="SAME",
            data_format="NCHW",
        ),
        windows(conv_by_input, sizes(2, 4, 4, 4), f64(2, 2, 2, 6), f64(2, 4, 4, 6), **SAME),
        windows(conv_by_input, sizes(-1, 4, 4, 2), f64(2, 2, 2, 3), f64(3, 4, 4, 3), **SAME),
        bad(
            sizes(1, 5, 5, 2),
            f32(2, 2, 2, 3),
            f32(1, 5, 5, 3),
            says="Size of out_backprop doesn't match computed",
            **VALID,
        ),
        bad(sizes(1, 5, 5), f32(2, 2, 2, 3), f32(1, 5, 5, 3), says="rank", **SAME),
    ],
    "Conv2DBackpropFilter": [
        windows(conv_by_filter, f32(2, 5, 6, 3), sizes(3, 2, 3, 4), f32(2, 3, 5, 4), **VALID),
        windows(conv_by_filter, f64(1, 7, 8, 2), sizes(3, 4, 2, 3), f64(1, 4, 3, 3), **STRIDED),
        windows(conv_by_filter, f64(1, 7, 9, 2), sizes(2, 3, 2, 2), f64(1, 7, 5, 2), **HOLES),
        windows(conv_by_filter, f64(1, 4, 3, 2), sizes(3, 2, 2, 2), f64(1, 3, 5, 2), **EXPLICIT),
        windows(conv_by_filter, f64(2, 4, 4, 4), sizes(2, 2, 2, 6), f64(2, 4, 4, 6), **SAME),
        case(f32(0, 4, 4, 2), sizes(2, 2, 2, 3), f32(0, 4, 4, 3), expect=np.zeros((2, 2, 2, 3)), **SAME),
        bad(f32(1, 5, 5, 2), sizes(2, 2, 2, 3), f32(1, 5, 5, 3), says="doesn't match computed", **VALID),
    ],
    "Conv3D": [
        windows(conv, f64(1, 3, 4, 3, 2), f64(2, 3, 2, 2, 2), **CUBE),
        windows(conv, f32(2, 3, 5, 3, 2), f32(2, 2, 1, 2, 3), **CUBE_VALID),
        windows(conv, f64(1, 2, 2, 3, 3), f64(2, 1, 2, 2, 2), **CUBE_FIRST),
        bad(
            f32(1, 2, 3, 3, 1), f32(3, 1, 1, 1, 1), says="subtracting 3 from 2", **{**CUBE_VALID, "dilations": [1] * 5}
        ),
        bad(i32(1, 2, 3, 3, 1), i32(1, 1, 1, 1, 1), says="dtype", **CUBE),
    ],
    "Conv3DBackpropInput": [
        windows(conv_by_input, sizes(1, 3, 4, 3, 2), f64(2, 3, 2, 2, 2), f64(1, 3, 2, 3, 2), **CUBE),
        windows(conv_by_input, sizes(1, 2, 2, 3, 3), f64(2, 1, 2, 2, 2), f64(1, 2, 2, 2, 3), **CUBE_FIRST),
        bad(sizes(1, 3, 4, 3, 2), f32(2, 3, 2, 2, 2), f32(1, 3, 4, 3, 2), says="doesn't match computed", **CUBE),
    ],
    "Conv3DBackpropFilter": [
        windows(conv_by_filter, f64(1, 3, 4, 3, 2), sizes(2, 3, 2, 2, 2), f64(1, 3, 2, 3, 2), **CUBE),
        windows(conv_by_filter, f64(1, 2, 2, 3, 3), sizes(2, 1, 2, 2, 2), f64(1, 2, 2, 2, 3), **CUBE_FIRST),
        bad(f32(1, 3, 4, 3, 2), sizes(2, 3, 2, 2, 2), f32(1, 3, 4, 3, 2), says="doesn't match computed", **CUBE),
    ],
    "DepthwiseConv2dNative": [
        windows(depthwise, f32(2, 5, 6, 3), f32(3, 2, 3, 2), **VALID),
        windows(depthwise, f64(1, 7, 8, 2), f64(3, 4, 2, 1), **STRIDED),
        windows(depthwise, f64(1, 7, 9, 2), f64(2, 3, 2, 2), **HOLES),
        windows(depthwise, f64(1, 4, 3, 2), f64(3, 2, 2, 2), **EXPLICIT),
        windows(depthwise, f64(1, 2, 5, 4), f64(2, 3, 2, 2), **NCHW),
        case(f32(0, 4, 4, 2), f32(2, 2, 2, 3), expect=np.zeros((0, 4, 4, 6)), **SAME),
        bad(f32(1, 4, 4, 3), f32(2, 2, 2, 1), says="same depth: 3 vs 2", **SAME),
        bad(f32(1, 2, 2, 2), f32(3, 2, 2, 1), says="larger than the image", **VALID),
    ],
    "DepthwiseConv2dNativeBackpropInput": [
        windows(depthwise_by_input, sizes(2, 5, 6, 3), f32(3, 2, 3, 2), f32(2, 3, 5, 6), **VALID),
        windows(depthwise_by_input, sizes(1, 7, 9, 2), f64(2, 3, 2, 2), f64(1, 7, 5, 4), **HOLES),
        windows(depthwise_by_input, sizes(1, 2, 5, 4), f64(2, 3, 2, 2), f64(1, 4, 3, 4), **NCHW),
        bad(sizes(1, 5, 5, 2), f32(2, 2, 2, 1), f32(1, 5, 5, 2), says="doesn't match computed", **VALID),
    ],
    "DepthwiseConv2dNativeBackpropFilter": [
        windows(depthwise_by_filter, f32(2, 5, 6, 3), sizes(3, 2, 3, 2), f32(2, 3, 5, 6), **VALID),
        windows(depthwise_by_filter, f64(1, 7, 9, 2), sizes(2, 3, 2, 2), f64(1, 7, 5, 4), **HOLES),
        bad(f32(1, 5, 5, 2), sizes(2, 2, 2, 1), f32(1, 5, 5, 2), says="doesn't match computed", **VALID),
    ],
}

# ---- pools --------------------------------------------------------------------------------------------------------

P_VALID = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
P_SAME = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"}  # overlapping
P_NCHW = {"ksize": [1, 1, 2, 3], "strides": [1, 1, 1, 2], "padding": "SAME", "data_format": "NCHW"}
P_EXPLICIT = {
    "ksize": [1, 3, 3, 1],
    "strides": [1, 2, 2, 1],
    "padding": "EXPLICIT",
    "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0],
}
P_DEPTH = {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2], "padding": "VALID"}
P_CUBE = {"ksize": [1, 2, 3, 1, 1], "strides": [1, 1, 2, 1, 1], "padding": "SAME"}
P_CUBE_FIRST = {"ksize": [1, 1, 2, 1, 2], "strides": [1, 1, 2, 1, 1], "padding": "VALID", "data_format": "NCDHW"}
TIES = np.zeros((1, 3, 3, 1), np.float32)
NOTHING = np.full((1, 2, 2, 1), -np.inf, np.float32)

CASES |= {
    "MaxPool": [
        windows(max_pool, f32(2, 4, 6, 3), **P_VALID),
        windows(max_pool, f64(2, 5, 4, 2), **P_SAME),
        windows(max_pool, f64(1, 2, 3, 5), **P_NCHW),
        windows(max_pool, f64(1, 5, 4, 2), **P_EXPLICIT),
        windows(max_pool, f64(1, 2, 2, 6), **P_DEPTH),
        windows(max_pool, -5 - f64(1, 3, 3, 1), **P_SAME),  # padding never wins
        windows(max_pool, i8(1, 4, 4, 2), **P_SAME),
        windows(max_pool, u8(1, 4, 4, 2), **P_SAME),
        windows(max_pool, i32(1, 4, 4, 2), **P_SAME),
        case(f32(0, 4, 4, 2), expect=np.zeros((0, 2, 2, 2)), **P_VALID),
        case(NOTHING, expect=np.full((1, 1, 2, 1), -np.inf), grad=False, **P_SAME),
        bad(f32(1, 1, 4, 1), says=("subtracting 2 from 1", "larger than the image"), **P_VALID),
        bad(f32(4, 4, 1), says="rank 4", **P_VALID),
        bad(f32(1, 4, 4, 1), says="batch", ksize=[2, 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID"),
        bad(f32(1, 4, 4, 1), says="ksize has 2", ksize=[2, 2], strides=[1, 1, 1, 1], padding="VALID"),
        bad(f32(1, 4, 4, 1), says="positive", ksize=[1, 0, 2, 1], strides=[1, 1, 1, 1], padding="VALID"),
        bad(
            f32(1, 4, 4, 1),
            says="smaller than the window size 2",
            ksize=[1, 2, 2, 1],
            strides=[1, 1, 1, 1],
            padding="EXPLICIT",
            explicit_paddings=[0, 0, 2, 2, 0, 0, 0, 0],
        ),
    ],
    "MaxPoolGrad": [
        windows(max_pool_grad, (x := f32(2, 4, 6, 3)), max_pool(x, **P_VALID), f32(2, 2, 3, 3), grad=[2], **P_VALID),
        windows(max_pool_grad, (x := f64(2, 5, 4, 2)), max_pool(x, **P_SAME), f64(2, 3, 4, 2), grad=[2], **P_SAME),
        windows(
            max_pool_grad, (x := f64(1, 5, 4, 2)), max_pool(x, **P_EXPLICIT), f64(1, 3, 2, 2), grad=[2], **P_EXPLICIT
        ),
        windows(max_pool_grad, TIES, TIES[:, :2], f32(1, 2, 3, 1), grad=[2], **P_SAME),  # the first in row-major order
        case(
            NOTHING,
            NOTHING[:, :1],
            np.array([[[[1], [2]]]], np.float32),
            expect=np.array([[[[1], [2]], [[0], [0]]]]),
            grad=False,
            **P_SAME,
        ),
        bad(f32(1, 4, 4, 1), f32(1, 2, 2, 1), f32(1, 3, 2, 1), says="Expected grad shape", **P_VALID),
    ],
    "MaxPoolGradGrad": [
        windows(
            max_pool_grad_grad, (x := f32(2, 4, 6, 3)), max_pool(x, **P_VALID), f32(2, 4, 6, 3), grad=[2], **P_VALID
        ),
        windows(max_pool_grad_grad, (x := f64(2, 5, 4, 2)), max_pool(x, **P_SAME), f64(2, 5, 4, 2), grad=[2], **P_SAME),
        bad(f32(1, 4, 4, 1), f32(1, 2, 2, 1), f32(1, 3, 2, 1), says="Expected grad shape", **P_VALID),
    ],
    "MaxPool3D": [
        windows(max_pool, f64(1, 3, 4, 2, 2), **P_CUBE),
        windows(max_pool, f32(1, 2, 4, 2, 3), **P_CUBE_FIRST),
    ],
    "MaxPool3DGrad": [
        bad(f32(1, 3, 4, 2, 2), f32(1, 3, 2, 2, 2), f32(1, 3, 4, 2, 2), says="Expected grad shape", **P_CUBE),
        windows(
            max_pool_grad, (x := f64(1, 3, 4, 2, 2)), max_pool(x, **P_CUBE), f64(1, 3, 2, 2, 2), grad=[2], **P_CUBE
        ),
    ],
    "MaxPool3DGradGrad": [
        bad(f32(1, 3, 4, 2, 2), f32(1, 3, 2, 2, 2), f32(1, 3, 2, 2, 2), says="Expected grad shape", **P_CUBE),
        windows(
            max_pool_grad_grad, (x := f64(1, 3, 4, 2, 2)), max_pool(x, **P_CUBE), f64(1, 3, 4, 2, 2), grad=[2], **P_CUBE
        ),
    ],
    "MaxPoolWithArgmax": [
        case(f64(2, 4, 6, 3), expect=argmax_pool(False, **P_VALID), **P_VALID),
        case(f64(2, 5, 4, 2), expect=argmax_pool(True, **P_SAME), **P_SAME, include_batch_in_index=True),
        case(TIES, expect=argmax_pool(False, **P_SAME), **P_SAME, grad=False),
        bad(f32(1, 4, 4, 1), says="output_dtype", output_dtype="float32", **P_VALID),
    ],
    "AvgPool": [
        windows(avg_pool, f32(2, 4, 6, 3), **P_VALID),
        windows(avg_pool, f64(2, 5, 4, 2), **P_SAME),
        windows(avg_pool, f64(1, 2, 3, 5), **P_NCHW),
        case(f32(0, 4, 4, 2), expect=np.zeros((0, 2, 2, 2)), **P_VALID),
        bad(f32(1, 1, 4, 1), says="larger than the image", **P_VALID),
        bad(i32(1, 4, 4, 1), says="dtype", **P_VALID),
    ],
    "AvgPoolGrad": [
        windows(avg_pool_grad, sizes(2, 5, 4, 2), f32(2, 3, 4, 2), **P_SAME),
        windows(avg_pool_grad, sizes(1, 5, 5, 2), f64(1, 2, 2, 2), **P_VALID),
        bad(sizes(1, 4, 4, 1), f32(1, 3, 2, 1), says="Expected grad shape", **P_VALID),
    ],
    "AvgPool3D": [
        windows(avg_pool, f64(1, 3, 4, 2, 2), **P_CUBE),
        windows(avg_pool, f32(1, 2, 4, 2, 3), **P_CUBE_FIRST),
    ],
    "AvgPool3DGrad": [
        windows(avg_pool_grad, sizes(1, 3, 4, 2, 2), f64(1, 3, 2, 2, 2), **P_CUBE),
        bad(sizes(1, 3, 4, 2, 2), f32(1, 3, 4, 2, 2), says="Expected grad shape", **P_CUBE),
    ],
}

# ---- functions ----------------------------------------------------------------------------------------------------


def _conv1d(x: Any, w: Any, **attrs: Any) -> Any:
    return conv(x[:, None], w[None], **attrs)[:, 0]


def _transpose_of_rows(dy: Any, w: Any) -> Any:
    return conv_by_input([2, 6, 5, 3], w, dy, strides=[1, 2, 1, 1], padding="SAME")


CASES |= {
    "nn.conv2d": [
        windows(conv, f32(1, 5, 5, 2), f32(3, 3, 2, 3), strides=[1, 1, 1, 1], padding="SAME"),
        case(
            f64(1, 5, 6, 2),
            f64(3, 2, 2, 2),
            strides=(2, 1),
            padding=[[0, 0], [1, 0], [2, 1], [0, 0]],
            dilations=2,
            expect=lambda x, w: conv(
                x,
                w,
                strides=[1, 2, 1, 1],
                padding="EXPLICIT",
                dilations=[1, 2, 2, 1],
                explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0],
            ),
        ),
        case(
            f64(2, 3, 4, 4, 2),
            f64(2, 2, 2, 2),
            strides=1,
            padding="VALID",
            expect=lambda x, w: conv(x.reshape(6, 4, 4, 2), w, **VALID).reshape(2, 3, 3, 3, 2),
        ),
        bad(
            f32(1, 5, 5, 2),
            f32(3, 3, 2, 3),
            strides=[1, 2, 3],
            padding="SAME",
            says="length 1, 2 or 4",
            raises=ValueError,
        ),
        bad(f32(1, 5, 5, 2), f32(3, 3, 2, 3), strides=1, padding="SAME", data_format="HWC", says="data_format"),
        bad(f32(1, 5, 5, 2), f32(3, 3, 2, 3), strides=1, padding="EXPLICIT", says="pairs", raises=ValueError),
        bad(f32(1, 5, 5, 2), f32(3, 3, 2, 3), strides=1, padding=[1, 1], says="pairs", raises=ValueError),
    ],
    "nn.conv1d": [
        case(
            f64(2, 6, 3),
            f64(3, 3, 2),
            stride=2,
            padding="SAME",
            expect=lambda x, w: _conv1d(x, w, strides=[1, 1, 2, 1], padding="SAME"),
        ),
        case(
            f64(2, 3, 6),
            f64(2, 3, 2),
            stride=1,
            padding="VALID",
            data_format="NCW",
            dilations=2,
            expect=lambda x, w: _conv1d(x.mT, w, **VALID | {"dilations": [1, 1, 2, 1]}).mT,
        ),
        case(
            f64(2, 6, 3),
            f64(3, 3, 2),
            stride=1,
            padding=[[0, 0], [2, 0], [0, 0]],  # causal
            expect=lambda x, w: _conv1d(np.pad(x, [(0, 0), (2, 0), (0, 0)]), w, **VALID),
        ),
    ],
    "nn.conv3d": [windows(conv, f64(1, 3, 3, 2, 2), f64(2, 2, 1, 2, 2), strides=[1, 1, 2, 1, 1], padding="SAME")],
    "nn.convolution": [
        case(f64(2, 6, 3), f64(3, 3, 2), expect=lambda x, w: _conv1d(x, w, **VALID)),
        case(
            f64(1, 5, 5, 2),
            f64(3, 2, 2, 3),
            strides=2,
            padding="SAME",
            expect=lambda x, w: conv(x, w, strides=[1, 2, 2, 1], padding="SAME"),
        ),
        case(
            f64(1, 2, 5, 5),
            f64(3, 2, 2, 3),
            data_format="NCHW",
            dilations=[1, 2],
            expect=lambda x, w: conv(x, w, **VALID | {"dilations": [1, 1, 1, 2], "data_format": "NCHW"}),
        ),
        case(f64(1, 3, 3, 3, 1), f64(2, 2, 2, 1, 2), expect=lambda x, w: conv(x, w, strides=[1] * 5, padding="VALID")),
        bad(f32(2, 3), f32(2, 3), says="number of spatial dimensions"),
    ],
    "nn.atrous_conv2d": [
        case(
            f64(1, 6, 6, 2),
            f64(2, 2, 2, 2),
            2,
            "SAME",
            expect=lambda x, w, r, p: conv(x, w, **SAME | {"dilations": [1, 2, 2, 1]}),
        )
    ],
    "nn.conv2d_transpose": [
        case(f64(2, 3, 5, 2), f64(3, 2, 3, 2), output_shape=[2, 6, 5, 3], strides=(2, 1), expect=_transpose_of_rows),
        case(
            f64(2, 3, 5, 2),
            f64(3, 2, 3, 2),
            np.array([2, 6, 5, 3]),
            (2, 1),
            expect=lambda dy, w, *_: _transpose_of_rows(dy, w),
        ),
        case(
            f64(2, 2, 3, 5),
            f64(3, 2, 3, 2),
            output_shape=[2, 3, 6, 5],
            strides=(2, 1),
            data_format="NCHW",
            expect=lambda dy, w: _transpose_of_rows(dy.transpose(0, 2, 3, 1), w).transpose(0, 3, 1, 2),
        ),
        bad(f32(1, 3, 3, 2), f32(2, 2, 1, 2), [1, 5, 5, 1], 1, says="doesn't match computed"),
        bad(f32(1, 3, 3, 3), f32(2, 2, 1, 2), [1, 3, 3, 1], 1, says="doesn't match computed"),
    ],
    "nn.conv1d_transpose": [
        case(
            f64(2, 3, 2),
            f64(3, 2, 2),
            output_shape=[2, 6, 2],
            strides=2,
            expect=lambda dy, w: conv_by_input(
                [2, 1, 6, 2], w[None], dy[:, None], strides=[1, 1, 2, 1], padding="SAME"
            )[:, 0],
        )
    ],
    "nn.conv3d_transpose": [
        case(
            f64(1, 2, 2, 2, 1),
            f64(2, 2, 2, 2, 1),
            output_shape=[1, 4, 4, 4, 2],
            strides=2,
            expect=lambda dy, w: conv_by_input([1, 4, 4, 4, 2], w, dy, strides=[1, 2, 2, 2, 1], padding="SAME"),
        )
    ],
    "nn.conv_transpose": [
        case(f64(2, 3, 5, 2), f64(3, 2, 3, 2), output_shape=[2, 6, 5, 3], strides=(2, 1), expect=_transpose_of_rows),
        bad(f32(1, 3), f32(2, 2), [1, 5], 1, says="3, 4 or 5 entries"),
    ],
    "nn.atrous_conv2d_transpose": [
        case(
            f64(1, 4, 4, 2),
            f64(2, 2, 2, 2),
            output_shape=[1, 4, 4, 2],
            rate=2,
            padding="SAME",
            expect=lambda dy, w: conv_by_input([1, 4, 4, 2], w, dy, **SAME | {"dilations": [1, 2, 2, 1]}),
        )
    ],
    "nn.depthwise_conv2d": [
        case(
            f64(1, 5, 5, 2),
            f64(3, 2, 2, 2),
            strides=[1, 1, 1, 1],
            padding="SAME",
            dilations=[2, 1],
            expect=lambda x, w: depthwise(x, w, **SAME | {"dilations": [1, 2, 1, 1]}),
        )
    ],
    "nn.depthwise_conv2d_backprop_input": [
        case(
            [1, 5, 5, 2],
            f64(3, 2, 2, 2),
            f64(1, 5, 5, 4),
            strides=[1, 1, 1, 1],
            padding="SAME",
            expect=lambda s, w, dy: depthwise_by_input(s, w, dy, **SAME),
        )
    ],
    "nn.depthwise_conv2d_backprop_filter": [
        case(
            f64(1, 5, 5, 2),
            [3, 2, 2, 2],
            f64(1, 5, 5, 4),
            strides=[1, 1, 1, 1],
            padding="SAME",
            expect=lambda x, s, dy: depthwise_by_filter(x, s, dy, **SAME),
        )
    ],
    "nn.separable_conv2d": [
        case(
            f64(1, 5, 5, 2),
            f64(3, 2, 2, 2),
            f64(1, 1, 4, 3),
            strides=[1, 2, 2, 1],
            padding="SAME",
            expect=lambda x, d, p: depthwise(x, d, strides=[1, 2, 2, 1], padding="SAME") @ p[0, 0],
        ),
        bad(f32(1, 5, 5, 2), f32(3, 2, 2, 2), f32(2, 1, 4, 3), strides=1, padding="SAME", says="not 1 x 1"),
    ],
    "nn.max_pool": [
        case(f64(1, 5, 4, 2), 2, 2, "VALID", expect=lambda x, *_: max_pool(x, **P_VALID)),
        case(
            f64(2, 6, 2),
            3,
            2,
            "SAME",
            expect=lambda x, *_: max_pool(x, ksize=[1, 3, 1], strides=[1, 2, 1], padding="SAME"),
        ),
        case(
            f64(1, 2, 4, 3),
            [1, 2],
            1,
            "VALID",
            data_format="NCHW",
            expect=lambda x, *_: max_pool(x, ksize=[1, 1, 1, 2], strides=[1] * 4, padding="VALID"),
        ),
        bad(f32(2, 3), 2, 2, "VALID", says="number of spatial dimensions"),
    ],
    "nn.avg_pool": [
        case(f64(1, 5, 4, 2), 2, 2, "VALID", expect=lambda x, *_: avg_pool(x, **P_VALID)),
        case(
            f64(2, 2, 6),
            3,
            2,
            "SAME",
            data_format="NCW",
            expect=lambda x, *_: avg_pool(x, ksize=[1, 1, 3], strides=[1, 1, 2], padding="SAME"),
        ),
        case(
            f64(1, 3, 3, 2, 1),
            2,
            1,
            "SAME",
            expect=lambda x, *_: avg_pool(x, ksize=[1, 2, 2, 2, 1], strides=[1] * 5, padding="SAME"),
        ),
    ],
    "nn.max_pool1d": [
        case(
            f64(2, 6, 2),
            3,
            2,
            "VALID",
            expect=lambda x, *_: max_pool(x, ksize=[1, 3, 1], strides=[1, 2, 1], padding="VALID"),
        )
    ],
    "nn.max_pool2d": [
        case(f64(1, 5, 4, 2), 3, 2, [[0, 0], [1, 2], [0, 1], [0, 0]], expect=lambda x, *_: max_pool(x, **P_EXPLICIT)),
        bad(f32(1, 4, 4, 1), [1, 2, 3], 1, "VALID", says="ksize should be of length", raises=ValueError),
    ],
    "nn.avg_pool2d": [bad(f32(1, 4, 4, 1), 2, 1, [[0, 0]] * 4, says="explicit padding is not supported")],
    "nn.max_pool_with_argmax": [
        case(f64(1, 4, 4, 2), 2, 2, "VALID", expect=lambda x, *_: argmax_pool(False, **P_VALID)(x)),
        case(
            f32(1, 4, 4, 2),
            2,
            2,
            "VALID",
            output_dtype=np.int32,
            gives=["float32", "int32"],
            half=False,
            expect=lambda x, *_: argmax_pool(False, **P_VALID)(x),
        ),
        case(
            f64(1, 4, 4, 2),
            2,
            2,
            "VALID",
            expect=lambda x, *_: argmax_pool(False, **P_VALID)(x)[1],
            grad=False,
            call=lambda *args: ow.nn.max_pool_with_argmax(*args).argmax,
        ),
    ],
    "nn.pool": [
        case(f64(1, 5, 4, 2), [2, 2], "AVG", [2, 2], expect=lambda x, *_: avg_pool(x, **P_VALID)),
        case(f64(1, 5, 4, 2), [2, 2], "MAX", [2, 2], expect=lambda x, *_: max_pool(x, **P_VALID)),
        bad(f32(1, 4, 4, 1), [2, 2], "MIN", says="pooling_type"),
    ],
}
