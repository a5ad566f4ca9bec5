"""Operators on sizes and options that files may state and no model has: huge empty tensors, long rows, overflow.

Oracle: FarmHash one string at a time, Python loops over elements, float32 arithmetic in the official kernel's order.
"""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from lite_kit import run

from opwright.core import flags
from opwright.lite import Interpreter, ops
from opwright.lite.format import Model, objects, schema, versions
from opwright.lite.ops.stablehlo import dilated_and_padded
from opwright.ops.strings.fingerprints import fingerprint64, prefixed_fingerprints64
from opwright.scalar.fixed_point import FixedPointInt32


def test_hashes_of_prefixed_rows_are_those_of_joined_strings() -> None:
    rng = np.random.default_rng(0)
    for length in (0, 1, 3, 4, 5, 12, 13, 20, 28, 29, 60, 61, 124, 125, 300):
        prefixes, rows = (rng.integers(0, 256, (n, size), np.uint8) for n, size in ((3, 4), (5, length)))
        expected = [[fingerprint64(p.tobytes() + row.tobytes()) for row in rows] for p in prefixes]
        assert prefixed_fingerprints64(prefixes, rows).tolist() == expected, length


def test_projections_of_long_rows_and_of_many_seeds_are_quick() -> None:
    operator = ops.get("LSH_PROJECTION")
    call = operator.bind({"type": "DENSE"})
    rng = np.random.default_rng(1)
    for seeds, rows in (((3, 5), (5, 40_000)), ((8_000, 5), (4, 8))):
        hash_, x = rng.standard_normal(seeds, np.float32), rng.integers(0, 256, rows, np.uint8)
        started = time.process_time()
        y = operator.reference(call)(hash_, x, None)
        assert time.process_time() - started < 3  # one row and seed at a time: 10 s and more
        hashes = np.array([fingerprint64(hash_[0, 0].tobytes() + row.tobytes()) for row in x], np.uint64)
        assert y[0] == (hashes.view(np.int64).astype(np.float64).sum() > 0)


def test_the_greatest_of_an_empty_tensor_of_a_huge_size() -> None:
    operator = ops.get("TOPK_V2")
    x = np.empty((2, 2**31 - 1, 0, 1, 1), np.int16)
    values, indices = operator.reference(operator.bind({}))(x, np.array(1, np.int32))
    assert values.shape == indices.shape == x.shape
    assert (values.dtype, indices.dtype) == (np.int16, np.int32)


def test_dilation_and_padding_allocate_the_result_alone() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        x = rng.standard_normal(rng.integers(0, 4, 2)).astype(np.float32)
        low, high = (rng.integers(-3, 4, 2).tolist() for _ in range(2))
        steps = rng.integers(1, 4, 2).tolist()
        sizes = [max((d - 1) * s + 1 + a + b if d else a + b, 0) for d, s, a, b in zip(x.shape, steps, low, high)]
        expected = np.full(sizes, 7, np.float32)
        for index in itertools.product(*map(range, x.shape)):
            at = tuple(a + i * s for a, i, s in zip(low, index, steps))
            if all(0 <= i < size for i, size in zip(at, sizes)):
                expected[at] = x[index]
        assert np.array_equal(dilated_and_padded(x, 7, sizes, low, steps), expected)
    y = dilated_and_padded(np.ones((2, 1), np.float32), 0, (2**31 + 5, 0), (3, -1), (2**31, 1))
    assert y.shape == (2**31 + 5, 0)


def test_response_normalization_overflows_as_float32() -> None:
    operator = ops.get("LOCAL_RESPONSE_NORMALIZATION")
    x = np.array([[[[3.0, 0.5, 0.25]]]], np.float32)
    with np.errstate(all="ignore"):
        y = operator.reference(operator.bind({"radius": 0, "bias": 1.0, "alpha": -3e38, "beta": 0.5}))(x)
        base = np.float32(1) + np.float32(-3e38) * x * x
        expected = x * np.power(base, np.float32(-0.5))
    assert expected[0, 0, 0, 0] == 0
    assert np.isnan(expected[0, 0, 0, 1:]).all()
    np.testing.assert_array_equal(y, expected)


def test_products_that_have_become_zero_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of a million rows takes a Python step for each: half a minute. The oracle is the official kernel's."""
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    steps = itertools.count()
    rescale = FixedPointInt32.rescale_wide
    monkeypatch.setattr(FixedPointInt32, "rescale_wide", lambda *args: (next(steps) and None) or rescale(*args))
    for n, zero_point in ((1_000_000, 3), (70, 0)):
        quantization = objects.QuantizationParameters(scale=np.float32([0.02]), zero_point=np.int64([zero_point]))
        tensors = [
            objects.Tensor(shape=[n, 2], type=schema.TensorType.INT8, name="x", quantization=quantization),
            objects.Tensor(shape=[1], type=schema.TensorType.INT32, name="axes", buffer=1),
            objects.Tensor(shape=[2], type=schema.TensorType.INT8, name="y", quantization=quantization),
        ]
        node = objects.Operator(inputs=[0, 1], outputs=[2], builtin_options=objects.table_class("ReducerOptions")())
        main = objects.SubGraph(tensors=tensors, inputs=[0], outputs=[2], operators=[node])
        buffers = [objects.Buffer(), objects.Buffer(data=np.zeros(4, np.uint8))]
        model = Model(operator_codes=[versions.operator_code("REDUCE_PROD")], subgraphs=[main], buffers=buffers)
        x = np.random.default_rng(3).integers(20, 41, (n, 2)).astype(np.int8)  # 0.3 to 0.8
        with flags.override(compiled=False):
            (actual,) = run(Interpreter(model_content=model.to_bytes()), [x])
        (expected,) = run(peer.Interpreter(model_content=model.to_bytes()), [x])
        np.testing.assert_array_equal(actual, expected)
    assert next(steps) < 2_000
