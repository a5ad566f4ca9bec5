"""Quantised, hybrid and sparse files by the official converter: our reference kernels give the official ones' answers.

The compiled engine, near these, is tested with the same files (interpreter/test_official_corpus.py and
compiled/test_compiled_corpus.py).
"""

from __future__ import annotations

import numpy as np
import official
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lite_kit import run

from opwright.lite import Interpreter
from opwright.lite.format import Model, objects, schema, versions

pytestmark = pytest.mark.usefixtures("reference_engine")

INTEGER = [
    "cnn_int16_io",
    "cnn_int16x8",
    "cnn_int8",
    "cnn_int8_io",
    "cnn_int8_unknown_batch",
    "cnn_uint8_io",
    "dense_int4",
    "dense_int8",
    "matmul_int8",
    "mixed_int8",
    "quantization_aware",
]
REAL = [
    "cnn_float16",
    "conv_dynamic_range",
    "dense_dynamic_range",
    "fake_quant",
    "sparse_blocks",
    "sparse_int8",
    "sparse_random",
]


def _values(interpreter, seed):
    """Random inputs, of integers over their whole range."""
    rng = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        kind = np.dtype(detail["dtype"])
        if kind.kind in "iu":
            limits = np.iinfo(kind)
            yield rng.integers(limits.min, limits.max, detail["shape"], endpoint=True).astype(kind)
        else:
            yield rng.normal(0, 1.5, detail["shape"]).astype(kind)


@pytest.mark.parametrize("name", [*INTEGER, *REAL])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
def test_agrees_with_the_official_interpreter(name, seed):
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    content = official.case(name).bytes()
    theirs = peer.Interpreter(model_content=content, experimental_op_resolver_type=peer.OpResolverType.BUILTIN_REF)
    values = list(_values(theirs, seed))
    for actual, expected in zip(run(Interpreter(model_content=content), values), run(theirs, values), strict=True):
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        if name in INTEGER:
            np.testing.assert_array_equal(actual, expected)
        else:
            np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


def test_runs_again_after_a_resize():
    content = official.case("cnn_int8_unknown_batch").bytes()
    interpreter = Interpreter(model_content=content)
    detail, rng = interpreter.get_input_details()[0], np.random.default_rng(0)
    x = rng.normal(0, 1, (3, *detail["shape"][1:])).astype(np.float32)
    alone = [run(Interpreter(model_content=content), [x[i : i + 1]])[0] for i in range(3)]
    interpreter.resize_tensor_input(detail["index"], x.shape)
    np.testing.assert_array_equal(run(interpreter, [x])[0], np.concatenate(alone))


def _sparse(shape, order, blocks, levels, stored):
    """A model that takes nothing and gives a constant, which is stored sparse."""
    metadata = []
    for level in levels:
        if isinstance(level, int):
            metadata.append(objects.DimensionMetadata(format=0, dense_size=level))
        else:
            segments, indices = (objects.Int32Vector(values=np.int32(v)) for v in level)
            metadata.append(objects.DimensionMetadata(format=1, array_segments=segments, array_indices=indices))
    sparsity = objects.SparsityParameters(traversal_order=order, block_map=blocks, dim_metadata=metadata)
    data = objects.Buffer(data=np.frombuffer(np.float32(stored).tobytes(), np.uint8))
    kind = schema.TensorType.FLOAT32
    tensors = [
        objects.Tensor(shape=shape, type=kind, name="x", buffer=1, sparsity=sparsity),
        objects.Tensor(shape=shape, type=kind, name="y"),
    ]
    operator = objects.Operator(inputs=[0], outputs=[1])
    main = objects.SubGraph(tensors=tensors, inputs=[], outputs=[1], operators=[operator], name="main")
    return Model(operator_codes=[versions.operator_code("DENSIFY")], subgraphs=[main], buffers=[objects.Buffer(), data])


SPARSE = {  # stored as, and what it stands for
    "rows": (([3, 3], [0, 1], [], [3, ([0, 1, 1, 3], [2, 0, 1])], [1, 2, 3]), [[0, 0, 1], [0, 0, 0], [2, 3, 0]]),
    "columns": (([2, 3], [1, 0], [], [3, ([0, 1, 1, 2], [1, 0])], [4, 5]), [[0, 0, 5], [4, 0, 0]]),
    "blocks": (([2, 4], [0, 1, 2, 3], [0, 1], [1, ([0, 1], [1]), 2, 2], [1, 2, 3, 4]), [[0, 0, 1, 2], [0, 0, 3, 4]]),
    "both compressed": (([3, 2], [0, 1], [], [([0, 1], [2]), ([0, 1], [1])], [7]), [[0, 0], [0, 0], [0, 7]]),
    "nothing stored": (([2, 2], [0, 1], [], [2, ([0, 0, 0], [])], []), [[0, 0], [0, 0]]),
}


@pytest.mark.parametrize("label", SPARSE)
def test_sparse_constants_get_their_zeros(label):
    stored, expected = SPARSE[label]
    content = _sparse(*stored).to_bytes()
    np.testing.assert_array_equal(run(Interpreter(model_content=content), [])[0], np.float32(expected))
