"""STABLEHLO_SCATTER and STABLEHLO_REDUCE_WINDOW against the official interpreter, and against a float formula."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lite_kit import run

from opwright.core import flags
from opwright.core.errors import OpError
from opwright.lite import Interpreter
from opwright.lite.format import Model, objects, schema, versions
from thorough import THOROUGH

KIND = {np.dtype(np.float32): "FLOAT32", np.dtype(np.int32): "INT32", np.dtype(np.int64): "INT64"}


def _tensor(shape, dtype):
    return objects.Tensor(shape=list(shape), type=schema.TensorType[KIND[np.dtype(dtype)]], name="t")


def model_of(name, options, inputs, computation, out_shape):
    """computation: an operator's name, or "" for a subgraph that gives its second input."""
    dtype = inputs[0].dtype
    n = len(inputs)
    main = objects.SubGraph(
        tensors=[*(_tensor(x.shape, x.dtype) for x in inputs), _tensor(out_shape, dtype)],
        inputs=list(range(n)),
        outputs=[n],
        operators=[objects.Operator(inputs=list(range(n)), outputs=[n], builtin_options_2=options)],
    )
    body = objects.SubGraph(tensors=[_tensor((), dtype) for _ in range(3)], inputs=[0, 1], outputs=[1], operators=[])
    codes = [versions.operator_code(name)]
    if computation:
        body.operators, body.outputs = [objects.Operator(opcode_index=1, inputs=[0, 1], outputs=[2])], [2]
        codes.append(versions.operator_code(computation))
    return Model(operator_codes=codes, subgraphs=[main, body], buffers=[objects.Buffer()]).to_bytes()


def agree(content, inputs):
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    (actual,), (expected,) = (run(kind(model_content=content), inputs) for kind in (Interpreter, peer.Interpreter))
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("computation", ["STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", ""])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@settings(max_examples=6 if THOROUGH else 3)
@given(seed=st.integers(0, 2**31))
def test_scatter_of_rows(computation, dtype, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(5)[:3]
    x, new = (rng.integers(-9, 9, shape).astype(dtype) for shape in ((5, 4), (3, 4)))
    options = objects.table_class("StablehloScatterOptions")(
        update_window_dims=[1],
        inserted_window_dims=[0],
        scatter_dims_to_operand_dims=[0],
        index_vector_dim=1,
        update_computation_subgraph_index=1,
    )
    inputs = [x, rows[:, None].astype(np.int32), new]
    agree(model_of("STABLEHLO_SCATTER", options, inputs, computation, x.shape), inputs)


def test_scatter_of_windows():
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(2, 3, 4)).astype(np.float32), rng.normal(size=(2, 1, 2, 2)).astype(np.float32)
    options = objects.table_class("StablehloScatterOptions")(
        update_window_dims=[2, 3],
        inserted_window_dims=[0],
        scatter_dims_to_operand_dims=[0, 2],
        index_vector_dim=2,
        update_computation_subgraph_index=1,
    )
    inputs = [x, np.int32([[[0, 1]], [[1, 2]]]), new]
    content = model_of("STABLEHLO_SCATTER", options, inputs, "STABLEHLO_ADD", x.shape)
    expected = x.copy()
    expected[0, :2, 1:3] += new[0, 0]
    expected[1, :2, 2:4] += new[1, 0]
    np.testing.assert_allclose(run(Interpreter(model_content=content), inputs)[0], expected, rtol=1e-6)
    agree(content, inputs)


@pytest.mark.parametrize("computation", ["STABLEHLO_ADD", ""])
def test_windows_mostly_outside_take_little_memory(computation):
    """The last update of a place counts; places of a million updates would take 16 MB a copy."""
    n = 500_000
    new = np.arange(2 * n, dtype=np.int32).reshape(2, n)
    x, start = np.zeros(7, np.int32), np.int32([[-n + 5], [-n + 4]])
    options = objects.table_class("StablehloScatterOptions")(
        update_window_dims=[1],
        scatter_dims_to_operand_dims=[0],
        index_vector_dim=1,
        update_computation_subgraph_index=1,
    )
    content = model_of("STABLEHLO_SCATTER", options, [x, start, new], computation, x.shape)
    with flags.override(compiled=False):
        interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), (x, start, new)):
        interpreter.set_tensor(detail["index"], value)
    tracemalloc.start()
    try:
        interpreter.invoke()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    expected = x.copy()
    expected[:5] = new[0, -5:]
    expected[:4] = new[1, -4:] + (expected[:4] if computation else 0)
    result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(result, expected)
    assert peak < 8 << 20


@pytest.mark.parametrize("computation", ["STABLEHLO_ADD", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"])
@settings(max_examples=8 if THOROUGH else 3)
@given(seed=st.integers(0, 2**31))
def test_windows(computation, seed):
    rng = np.random.default_rng(seed)
    pick = lambda low, high: rng.integers(low, high, 2, endpoint=True).tolist()  # noqa: E731
    base, padding = pick(1, 2), [*pick(-1, 2), *pick(-1, 2)]
    window, strides, dilations = pick(1, 2), pick(1, 2), pick(1, 2)
    x, init = rng.integers(-9, 9, (5, 6)).astype(np.float32), np.float32(rng.integers(-3, 3)).reshape(())
    options = objects.table_class("StablehloReduceWindowOptions")(
        window_dimensions=window,
        window_strides=strides,
        base_dilations=base,
        window_dilations=dilations,
        padding=padding,
        body_subgraph_index=1,
    )
    inputs = [x, init]
    agree(model_of("STABLEHLO_REDUCE_WINDOW", options, inputs, computation, (1, 1)), inputs)


@pytest.mark.parametrize("computation", ["STABLEHLO_PAD", ""])
def test_other_computations_are_refused(computation):
    options = objects.table_class("StablehloReduceWindowOptions")(
        window_dimensions=[2],
        window_strides=[1],
        base_dilations=[1],
        window_dilations=[1],
        padding=[0, 0],
        body_subgraph_index=1,
    )
    inputs = [np.zeros(4, np.float32), np.zeros((), np.float32)]
    content = model_of("STABLEHLO_REDUCE_WINDOW", options, inputs, computation, (3,))
    with pytest.raises(OpError, match="has no kernel"):
        run(Interpreter(model_content=content), inputs)
