"""Sparse weights: smaller files of the same answers, in the official interpreter and in ours; official files' sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quantize_harness import OFFICIAL, convert, converter_of, function_of, litert, operators, run
from quantize_networks import SPARSE, samples_of

import opwright as ow
from opwright.lite.convert.quantize.weights import layout_of
from opwright.lite.format import Model, versions
from opwright.lite.ops.specs import LiteTensorSpec, tensor_of
from opwright.lite.runtime.constants import dense_of, stored_elements
from thorough import examples, sampled

SPARSITY = ow.lite.Optimize.EXPERIMENTAL_SPARSITY
KINDS = ("float", "float16", "dynamic", "int8", "int16x8")
CASES = [(name, kind) for name in SPARSE for kind in KINDS]


def converted(name: str, kind: str, sparse: bool = True, **settings: Any) -> bytes:
    converter = converter_of(function_of(name), SPARSE[name].shapes, samples_of(name), kind, **settings)
    converter.optimizations = [*converter.optimizations, *([SPARSITY] if sparse else [])]
    return converter.convert()


def sparse_tensors(content: bytes) -> list[Any]:
    return [t for s in Model.read(content).subgraphs for t in s.tensors if t.sparsity is not None]


def own(content: bytes) -> Any:
    interpreter = ow.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize(("name", "kind"), sampled(CASES, 4, by=lambda name, kind: kind))
def test_answers_are_those_of_the_file_with_zeros(name: str, kind: str) -> None:
    content = converted(name, kind)
    one_scale = {"_experimental_disable_per_channel_quantization_for_dense_layers": True}
    hybrid = kind == "dynamic" and any(t.type.name == "INT8" for t in sparse_tensors(content))
    plain = litert(converted(name, kind, sparse=False, **(one_scale if hybrid else {})))
    for sample in samples_of(name, seed=2, count=4):
        (expected,) = run(plain, sample)
        tolerance = max(np.abs(expected).max(), 1.0) * (1e-5 if kind in ("float", "float16") else 0.01)
        for interpreter in (litert(content), litert(content, reference=True), own(content)):
            (actual,) = run(interpreter, sample)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


# There the official converter writes int8 weights of FULLY_CONNECTED through DENSIFY, which TensorFlow's interpreter
# takes and that of LiteRT does not: its delegate wants a constant.
NOT_IN_LITERT = {("elements", "int8"), ("many columns", "int8")}


@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if case[1] != "int16x8"])
def test_files_are_no_larger_than_the_official_ones_or_those_with_zeros(name: str, kind: str) -> None:
    size = len(converted(name, kind))
    assert size <= len(converted(name, kind, sparse=False))
    official = OFFICIAL[f"sparse: {name}"][kind]
    if official["runs"] and (name, kind) not in NOT_IN_LITERT:
        assert size <= official["size"]


@pytest.mark.parametrize(
    ("name", "kind", "found", "version"),
    [
        ("blocks of 4", "float", ["FULLY_CONNECTED"], 8),
        ("elements", "float", ["DENSIFY", "FULLY_CONNECTED"], 1),
        ("blocks of 4", "float16", ["DENSIFY", "DEQUANTIZE", "FULLY_CONNECTED"], 1),
        ("blocks of 16", "dynamic", ["FULLY_CONNECTED"], 8),
        ("blocks of 16", "int8", ["QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE"], 8),
        ("convolution", "int8", ["DENSIFY", "QUANTIZE", "CONV_2D", "DEQUANTIZE"], 3),
    ],
)
def test_kernels_read_sparse_weights_or_a_densify_stands_before_them(name, kind, found, version) -> None:
    content = converted(name, kind)
    model = Model.read(content)
    model.verify()
    assert operators(content) == found
    assert len(sparse_tensors(content)) == 1
    codes = {versions.op_name(code): code.version for code in model.operator_codes}
    assert next(codes[n] for n in codes if n in ("FULLY_CONNECTED", "CONV_2D")) == version
    assert [code.version for code in model.operator_codes] == versions.versions_of_model(model)


@pytest.mark.parametrize(
    ("name", "kind"), [("few zeros", "float"), ("a stack of products", "float"), ("a sum", "int8")]
)
def test_what_would_not_be_smaller_or_is_no_weight_stays_whole(name: str, kind: str) -> None:
    assert converted(name, kind) == converted(name, kind, sparse=False)


@pytest.mark.parametrize(
    ("runtime", "found"),
    [("2.3", ["FULLY_CONNECTED"]), ("2.2", ["DENSIFY", "FULLY_CONNECTED"]), ("2.1", ["FULLY_CONNECTED"])],
)
def test_an_older_run_time_gets_what_it_has(runtime: str, found: list[str]) -> None:
    content = converted("blocks of 4", "float", target_spec=ow.lite.TargetSpec(runtime=runtime))
    assert operators(content) == found
    assert not versions.is_newer(versions.min_runtime_of_model(Model.read(content)), runtime)
    assert bool(sparse_tensors(content)) == (runtime != "2.1")


def test_weights_that_others_read_too_are_dense_for_them() -> None:
    keep = np.random.RandomState(0).uniform(size=(64, 16, 1)) < 0.1
    weights = np.where(np.repeat(keep, 4, 2), np.float32(1.5), np.float32(0)).reshape(64, 64)

    def call(x: Any) -> Any:
        w = ow.constant(weights)
        return ow.matmul(x, w, transpose_b=True) + w

    content = convert(call, (64, 64), kind="float", optimizations=[SPARSITY])
    model = Model.read(content)
    readers = [t for op in model.subgraphs[0].operators for t in op.inputs.tolist()]
    for at, tensor in enumerate(model.subgraphs[0].tensors):
        if tensor.sparsity is not None:
            assert readers.count(at) == 1
    x = np.random.RandomState(1).randn(64, 64).astype(np.float32)
    for interpreter in (litert(content), own(content)):
        np.testing.assert_allclose(run(interpreter, [x])[0], x @ weights.T + weights, rtol=1e-5, atol=1e-3)


SHAPES = st.lists(st.integers(1, 6), min_size=0, max_size=3)


@settings(max_examples=examples(60))
@given(
    shape=SHAPES,
    blocks=st.integers(1, 5),
    block=st.sampled_from([1, 2, 4, 16]),
    density=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_layouts_hold_every_element(shape: Any, blocks: int, block: int, density: float, seed: int) -> None:
    """By the reader, which is tested on the official converter's files."""
    random = np.random.RandomState(seed)
    array = random.randn(*shape, blocks * block).astype(np.float32)
    array[random.uniform(size=array.shape) > density] = 0
    layout = layout_of(array, block)
    table = tensor_of(LiteTensorSpec(array.shape, ow.float32, sparsity=layout.of(array.shape))).sparsity
    np.testing.assert_array_equal(dense_of(table, layout.stored, array.shape, ow.float32), array)
    np.testing.assert_array_equal(stored_elements(table, array), layout.stored)
