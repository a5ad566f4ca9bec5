"""The ONNX standard's own test suite: a sample here, all of it in `make test-all`."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

pytest.importorskip("onnx")
import onnx
import onnx_backend

from thorough import some

REMAINING = {
    r"test_resize_downsample_scales_(cubic|linear)_align_corners$": (
        "the suite counts a fraction of the last element; onnxruntime and PyTorch take whole sizes"
    ),
    r"test_affine_grid_2d.*_expanded": "the rank of a branch depends on a shape that is an input",
    r"test_attention_.*(bf16|fp16)": "results of 16 bits are rounded at other places than by the suite's NumPy",
}
"""Patterns of cases in scope that fail, with the reason."""

REMAINING_IN_FILES = REMAINING | {
    r"test_det_": "an operator without a builtin form: allow_custom_ops",
    r"test_bitshift_right_int64": "RIGHT_SHIFT takes up to 32 bits",
    r"test_div_uint32|test_pow_types_int64_int64": "DIV and POW lack the type",
    r"rank4_mask|log_sum_exp_empty_set_expanded": "a value in between is float64",
    r"INT4|linear_int4": "CAST clamps to int4; the official one only has float32 besides",
    r"test_reduce_(log_sum_exp|max|min)_empty_set": (
        "REDUCE_MAX of no elements is the lowest float, REDUCE_MIN the highest"
    ),
    r"_shape_zero|start_greater_than_end|start_out_of_bounds": (
        "the official interpreter takes no results without elements"
    ),
    r"test_attention_.*(qk_matmul_bias_.d_mask_causal|nan_robustness|structural_empty)": (
        "official kernels compute other numbers from rows of infinities"
    ),
    r"test_dft_inverse": "transforms by matrices are rounded by more than the suite's 1e-7",
}
"""Patterns of cases whose files fail, with the reason."""

PAGE = Path(__file__).parents[2] / "docs" / "frontends.md"


def remains(name, table=REMAINING):
    """Return whether a case is in the table."""
    return any(re.search(pattern, name) for pattern in table)


@pytest.mark.parametrize("kind", ["simple", "pytorch-operator"])
def test_a_sample_of_the_suite(kind):
    selected = [c for c in onnx_backend.cases(kind) if not remains(c.name)][::4]
    assert len(selected) >= 5
    assert onnx_backend.failures(selected) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", onnx_backend.KINDS)
def test_the_suite(kind):
    selected = onnx_backend.cases(kind)
    failed = onnx_backend.failures(selected)
    assert {name: error for name, error in failed.items() if not remains(name)} == {}
    assert len(failed) <= 0.02 * len(selected)


def file_cases(kind, step=1):
    """Return the tests of a kind whose models can become files, all or one of `step`."""
    cases = onnx_backend.cases(kind)[::step]
    return [c for c in cases if onnx_backend.file_reason(onnx_backend.sets_of(c)[0]) is None]


def test_files_of_a_sample_of_the_suite():
    pytest.importorskip("ai_edge_litert")
    selected = file_cases("pytorch-operator", 3)
    assert len(selected) >= 5
    assert onnx_backend.failures(selected, onnx_backend.run_file) == {}


@pytest.mark.slow
def test_files_of_the_suite():
    """At least 95 in 100 of the static node tests agree in both interpreters; the others are in the table."""
    pytest.importorskip("ai_edge_litert")
    selected = file_cases("node")
    failed = onnx_backend.failures(selected, onnx_backend.run_file)
    assert {name: error for name, error in failed.items() if not remains(name, REMAINING_IN_FILES)} == {}
    assert len(failed) <= 0.05 * len(selected)


OF_UNKNOWN_SIZES = (
    r"test_(maxpool_2d_(?!dilations)|averagepool_2d_(?!dilations)|convtranspose(?!_output_shape|_kernel_shape)|edge_pad"
    r"|reflect_pad|resize_(up|down)sample_sizes_linear|resize_upsample_scales_linear(_half_pixel)?$)"
)
NEED_SIZES = r"same_upper|last_window_starts_on_pad|output_size_reduce_by_one"


def of_unknown_sizes(case):
    """Return a case whose images have any height and width."""
    model, sets = onnx_backend.sets_of(case)
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for place, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
        if place > 1:
            dim.Clear()
    return dataclasses.replace(case, model=model, model_dir=None, data_sets=sets)


@pytest.mark.slow
def test_images_of_unknown_sizes():
    every = onnx_backend.node_cases("averagepool", "convtranspose", "maxpool", "pad", "resize")
    selected = [c for c in every if re.match(OF_UNKNOWN_SIZES, c.name)]
    assert len(selected) > 30
    selected = some(selected)
    failed = onnx_backend.failures([of_unknown_sizes(c) for c in selected])
    assert {n: e for n, e in failed.items() if "at import" not in str(e)} == {}  # the others need them, by name
    assert [n for n in failed if not re.search(NEED_SIZES, n)] == []


def test_reasons_are_on_the_page():
    reasons = {*REMAINING_IN_FILES.values(), *onnx_backend.OUT_OF_SCOPE.values(), *onnx_backend.NOT_IN_FILES.values()}
    page = " ".join(PAGE.read_text().split())
    assert [r for r in sorted(reasons | {onnx_backend.NO_TENSOR}) if r not in page] == []


@pytest.mark.slow
def test_backend_scope():
    """Each reason to leave cases out has some, and they are fewer than 300 of 2000."""
    from onnx.backend.test.loader import load_model_tests

    names = [c.name for kind in onnx_backend.KINDS for c in load_model_tests(kind=kind)]
    reasons = [r for n in names if (r := onnx_backend.reason(n))]
    assert set(onnx_backend.OUT_OF_SCOPE.values()) == set(reasons)
    assert len(reasons) < 300
