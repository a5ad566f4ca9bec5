"""Kernels for GPUs: their arithmetic on the simulated device, their keys, and what they ask CuPy for."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.ops import cuda_kernels

SIM, GPU = ow.SimulatedPlace(0), ow.CUDAPlace(0)


@pytest.fixture
def on_sim() -> Iterator[None]:
    """The table entered for the simulated device too, and taken out again."""
    ops = {name: ow.ops.get(name) for name, *_ in cuda_kernels.table()}
    before = {name: dict(op.kernels) for name, op in ops.items()}
    cuda_kernels.enter(SIM)
    yield
    for name, op in ops.items():
        op.kernels.clear()
        op.kernels.update(before[name])
        op.kernel_cache.clear()


def run(name: str, inputs: Any, place: Any, **attrs: Any) -> tuple[Any, Any]:
    op, scope = ow.ops.get(name), ow.Scope()
    for slot, array in zip(op.input_names, inputs):
        scope.var(slot).set(array)
    result = op.on({n: n for n in op.input_names[: len(inputs)]}, {op.output_names[0]: "y"}, **attrs).run(scope, place)
    return result, scope.var("y").value.numpy()


RNG = np.random.default_rng(7)
CONVOLUTIONS = [  # image, filters, attributes
    ("Conv2D", (2, 7, 6, 3), (3, 2, 3, 4), {"strides": [1, 1, 1, 1], "padding": "SAME"}),
    ("Conv2D", (1, 8, 9, 2), (3, 3, 2, 5), {"strides": [1, 2, 3, 1], "padding": "VALID"}),
    ("Conv2D", (1, 9, 9, 2), (2, 3, 2, 1), {"strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 2, 3, 1]}),
    ("Conv2D", (2, 3, 7, 6), (3, 2, 3, 4), {"strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW"}),
    ("Conv3D", (1, 4, 5, 6, 2), (2, 3, 2, 2, 3), {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("name", "image", "filters", "attrs"), CONVOLUTIONS)
def test_convolutions_equal_the_reference(
    on_sim: None, name: Any, image: Any, filters: Any, attrs: Any, dtype: Any
) -> None:
    arrays = [RNG.standard_normal(shape).astype(dtype) for shape in (image, filters)]
    result, y = run(name, arrays, SIM, **attrs)
    assert (result.branch, result.chosen.library) == ("kernel", "cublas")
    _, want = run(name, arrays, ow.CPUPlace(), **attrs)
    rtol = {2: 2e-3, 4: 1e-5, 8: 1e-12}[np.dtype(dtype).itemsize]
    np.testing.assert_allclose(y, want, rtol=rtol, atol=rtol * 5)


def test_grouped_convolutions_decline(on_sim: None) -> None:
    arrays = [RNG.standard_normal(s).astype(np.float32) for s in ((1, 5, 5, 4), (2, 2, 2, 6))]
    attrs = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    result, y = run("Conv2D", arrays, SIM, **attrs)
    assert result.branch == "reference"  # which adds up the kernel's elements in another order there
    np.testing.assert_allclose(y, run("Conv2D", arrays, ow.CPUPlace(), **attrs)[1], rtol=1e-5, atol=1e-5)


def test_products_are_cublas(on_sim: None) -> None:
    a, b = RNG.standard_normal((2, 3, 4)).astype(np.float32), RNG.standard_normal((5, 4)).astype(np.float32)
    result, y = run("MatMul", [a, b], SIM, transpose_b=True)
    assert result.chosen == ow.KernelKey(SIM, ow.float32, "any", "cublas")
    np.testing.assert_allclose(y, a.astype(np.float64) @ b.T.astype(np.float64), rtol=1e-5, atol=1e-5)


def test_a_gpu_has_the_table_without_being_there() -> None:
    f32 = ow.TensorSpec([2, 2])
    result = ow.ops.explain("MatMul", [f32, f32], GPU)
    assert result.chosen == ow.KernelKey(GPU, ow.float32, "any", "cublas")
    assert ow.ops.explain("Erf", [f32], "gpu:1").chosen.library == "foreign"
    assert ow.ops.explain("Erf", [ow.TensorSpec([2], ow.float16)], GPU).chosen.library == "reference"
    assert "cupy" not in sys.modules or sys.modules["cupy"] is not None


def test_special_functions_are_asked_of_cupy_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    special = types.ModuleType("cupyx.scipy.special")
    special.erf = lambda x: x.astype(np.float64) + 1  # type: ignore[attr-defined]
    for name in ("cupyx", "cupyx.scipy"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "cupyx.scipy.special", special)
    kernels = {name: kernel for name, _, _, kernel in cuda_kernels.table()}
    y = kernels["Erf"](None, np.float32([1.0]))
    assert (y.tolist(), y.dtype) == ([2.0], np.float32)
    assert kernels["Zeta"](None, np.float32([1.0]), np.float32([1.0])) is NotImplemented  # a CuPy without it
