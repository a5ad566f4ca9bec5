"""Kernels by key: which one computes a call, and what happens when it declines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.ops.kernels import choose


def fresh() -> Any:
    @ow.operator
    class Twice:
        """Twice the input.   .. math:: y = 2 x"""

        x = ow.Input(dtypes=(ow.float32, ow.float64))
        y = ow.Output(like="x")

        def compute(op, x: Any) -> Any:
            return x * 2

    return Twice


def test_a_registered_kernel_is_used_for_its_dtype_only() -> None:
    twice, seen = fresh(), []

    @ow.ops.register_kernel(twice, dtype=ow.float32)
    def fast(op: Any, x: Any) -> Any:
        seen.append(x.dtype)
        return x + x

    assert twice(ow.constant([1.0])).numpy().tolist() == [2.0]
    assert twice(ow.constant([1.0], ow.float64)).numpy().tolist() == [2.0]
    assert ow.function(twice)(ow.constant([3.0])).numpy().tolist() == [6.0]
    assert seen == [np.dtype("float32")] * 2


def test_an_exact_dtype_comes_before_any_and_foreign_before_compiled() -> None:
    twice = fresh()
    kernels = {
        ("compiled", None): lambda op, x: 1,
        ("compiled", ow.float32): lambda op, x: 2,
        ("foreign", None): lambda op, x: 3,
    }
    for (library, dtype), kernel in kernels.items():
        ow.ops.register_kernel(twice, dtype=dtype, library=library)(kernel)
    assert [k(None, None) for k in choose(twice, ow.float32)] == [3, 2, 1]
    assert [k(None, None) for k in choose(twice, ow.float64)] == [3, 1]
    assert choose(twice, ow.float32, place="gpu") == []


def test_a_kernel_may_decline() -> None:
    twice = fresh()
    ow.ops.register_kernel(twice)(lambda op, x: NotImplemented if x.size > 1 else x * 0.0)
    assert twice(ow.constant([1.0])).numpy().tolist() == [0.0]
    assert twice(ow.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]


def test_a_key_has_one_kernel() -> None:
    twice = fresh()
    ow.ops.register_kernel(twice)(lambda op, x: x)
    with pytest.raises(ow.errors.AlreadyExistsError, match="Twice"):
        ow.ops.register_kernel(twice)(lambda op, x: x)
    with pytest.raises(ValueError, match="library"):
        ow.ops.register_kernel(twice, library="magic")


def test_keys_compare_by_value_and_forget_the_device_number() -> None:
    assert ow.KernelKey("gpu", ow.float32) == ow.KernelKey("gpu", ow.float32)
    assert ow.KernelKey("gpu", ow.float32) != ow.KernelKey("cpu", ow.float32)
    twice = fresh()
    ow.ops.register_kernel(twice, place=ow.CUDAPlace(0))(lambda op, x: x)
    with pytest.raises(ow.errors.AlreadyExistsError):
        ow.ops.register_kernel(twice, place=ow.CUDAPlace(1))(lambda op, x: x)
