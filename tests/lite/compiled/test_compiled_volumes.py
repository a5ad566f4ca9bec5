"""Convolutions of volumes by the compiled engine, against the interpreter's own kernels on drawn shapes and options.

The official kernels' answers are compared in tests/lite/ops/test_compiled_rows.py; they know no dilations.
"""

import numpy as np
from engine_kit import engine, plain
from hypothesis import given, settings
from hypothesis import strategies as st
from lite_kit import Build

from opwright import lite
from thorough import examples

SIZES = st.tuples(st.integers(1, 2), st.integers(1, 7), st.integers(1, 5), st.integers(1, 6), st.integers(1, 4))
KERNEL = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 2))
THREE = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 3))


def count(n, k, stride, dilation, padding):
    return -(-n // stride) if padding == "SAME" else -(-(n - (k - 1) * dilation) // stride)


def agrees(content, x):
    expected = plain(content, x)
    with engine(verify=True):
        interpreter = lite.Interpreter(model_content=content)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
    assert interpreter._engine.delegate.refused == {}
    actual = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(actual, expected, 1e-5, 1e-5)


def options(padding, strides, dilations):
    named = dict(zip(("stride_d", "stride_h", "stride_w"), strides))
    named |= dict(zip(("dilation_d_factor", "dilation_h_factor", "dilation_w_factor"), dilations))
    return {"padding": padding, "fused_activation_function": "RELU", **named}


@settings(max_examples=examples(12), deadline=None)
@given(
    SIZES,
    KERNEL,
    THREE,
    THREE,
    st.sampled_from(["SAME", "VALID"]),
    st.sampled_from([1, 9, 17]),
    st.booleans(),
    st.integers(0, 99),
)
def test_both_convolutions(sizes, kernel, strides, dilations, padding, features, bias, seed):
    rng = np.random.default_rng(seed)
    n, *volume, channels = sizes
    counts = [count(v, k, s, d, padding) for v, k, s, d in zip(volume, kernel, strides, dilations)]
    if min(counts) < 1:
        return
    small = (n, *counts, features)
    w = rng.normal(0, 1, (*kernel, channels, features)).astype(np.float32)
    named = options(padding, strides, dilations)
    build = Build().tensor("x", sizes).tensor("w", data=w).tensor("y", small)
    if bias:
        build.tensor("b", data=rng.normal(0, 1, features).astype(np.float32))
    build.op("CONV_3D", "x w b" if bias else "x w", "y", **named)
    agrees(build.done(), rng.normal(0, 1, sizes).astype(np.float32))
    build = Build().tensor("s", data=np.array(sizes, np.int32), type="INT32").tensor("x", small).tensor("w", data=w)
    if bias:
        build.tensor("b", data=rng.normal(0, 1, channels).astype(np.float32))
    build.tensor("y", sizes).op("CONV_3D_TRANSPOSE", "s w x b" if bias else "s w x", "y", **named)
    agrees(build.done(), rng.normal(0, 1, small).astype(np.float32))
