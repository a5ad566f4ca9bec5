"""Annotations of kernels that are text, as under `from __future__ import annotations`, may name what is around."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright import language as kl


def doubling(kind: Any) -> Any:
    @ow.kernel
    def kernel(x: kl.Array(kind, "n")):
        for i in range(x.shape[0]):
            x[i] = x[i] + x[i]

    return kernel


def operator(kind: Any) -> Any:
    @ow.operator(name="AnnotatedCopy")
    class Copy:
        """The same.

        .. math:: y = x
        """

        x = ow.Input(ow.floating)
        y = ow.Output(like="x")

        def compute(op, x: Any) -> Any:
            raise AssertionError("the kernel is for it")

        @ow.kernel(checked=False)
        def kernel(x: kl.Array(kind, "n"), y: kl.Array(kind, "n")):
            for i in range(x.shape[0]):
                y[i] = x[i]

    return Copy


@pytest.mark.parametrize("kind", [kl.f32, kl.f64])
def test_a_variable_of_the_function_around(kind: Any) -> None:
    x = np.arange(4).astype(kind.np)
    doubling(kind)(x)
    np.testing.assert_array_equal(x, [0, 2, 4, 6])
    np.testing.assert_array_equal(operator(kind)(x).numpy(), x)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(NameError, match=r"kernel lost: the annotation kl.Array\(nowhere, 'n'\) cannot be read"):

        @ow.kernel
        def lost(x: kl.Array(nowhere, "n")):  # noqa: F821
            x[0] = 0.0


def test_annotations_for_type_checkers_make_a_kernel_on_scalars() -> None:
    @ow.kernel
    def scalars(x: nowhere) -> nowhere:  # noqa: F821
        return x

    with pytest.raises(TypeError, match=r"scalars\(x\)> is on scalars: it computes in an @ow.operator class"):
        scalars(np.zeros(3), np.zeros(3))
