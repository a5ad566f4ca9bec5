"""Optional inputs of kernels on scalars: a parameter whose default is None is None where the input is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow

X = np.linspace(-1, 1, 12).astype(np.float32).reshape(3, 4)
BIAS, LOW = np.float32([0.1, -0.2, 0.3, 0.4]), np.float32([[0.1], [-2], [0.3]])


@ow.operator(name="OptionalAffine", version=2)
class Affine:
    """A line, at least so high.

    .. math:: y = \\max(s x + bias, low)
    """

    x = ow.Input(ow.floating)
    low = ow.Input(ow.floating, like="x", optional=True)
    bias = ow.Input(ow.floating, like="x", optional=True, since=2)
    y = ow.Output(like="x")
    s = ow.Attr(float, default=2.0)

    def compute(op, x: Any, low: Any = None, bias: Any = None) -> Any:
        y = x * x.dtype.type(op.s)
        y = y if bias is None else y + bias
        return y if low is None else np.maximum(y, low)

    def gradient(op, dy: Any) -> Any:
        if op.low is None:
            return dy * op.s, None, None if op.bias is None else dy
        kept = ow.where(op.y > op.low, dy, ow.zeros_like(dy))
        return kept * op.s, dy - kept, None if op.bias is None else kept

    @ow.kernel
    def kernel(x: Any, low: Any = None, bias: Any = None, *, s: float) -> Any:
        y = x * s
        if bias is not None:
            y = y + bias
        return y if low is None else ow.maximum(y, low)


def line(x: Any, low: Any, bias: Any) -> Any:
    y = 2 * x + (0 if bias is None else bias)
    return y if low is None else np.maximum(y, low)


GIVEN = [{}, {"bias": BIAS}, {"low": LOW}, {"low": LOW, "bias": BIAS}]


@pytest.mark.parametrize(
    "given",
    [pytest.param(g, id=" and ".join(g) or "none", marks=pytest.mark.slow if len(g) == 1 else ()) for g in GIVEN],
)
def test_in_every_way_it_runs(given: Any) -> None:
    result = {o.check: o for o in ow.testing.check_operator(Affine, [{"inputs": {"x": X, **given}, "expect": line}])}
    assert result["compiled"].detail == "as machine code"
    assert result["exported"].state in ("ok", "not tried")
    assert "no form in C" not in result["exported"].detail


def test_it_is_machine_code_in_functions_too() -> None:
    for given in GIVEN:
        traced = ow.function(lambda x, given=given: ow.exp(Affine(x, **given)), jit_compile=True)
        expected = np.exp(line(X.astype(np.float64), given.get("low"), given.get("bias")))
        np.testing.assert_allclose(traced(ow.constant(X)).numpy(), expected, rtol=1e-5)
        assert "Affine" in traced.experimental_get_compiler_ir(ow.constant(X))()


@pytest.mark.parametrize("kernel", [lambda a, b: a + b, lambda a: a], ids=["without a default", "of the first alone"])
def test_what_the_kernel_does_not_take_is_left_to_compute(kernel: Any) -> None:
    rule = ow.kernel(kernel)

    @ow.operator(name="OptionalElsewhere")
    class Elsewhere:
        """Sum, or the one.

        .. math:: y = a + b
        """

        a = ow.Input(ow.floating)
        b = ow.Input(ow.floating, like="a", optional=True)
        y = ow.Output(like="a")

        def compute(op, a: Any, b: Any = None) -> Any:
            return a if b is None else a + b

        kernel = rule

    np.testing.assert_array_equal(Elsewhere(X).numpy(), X)
    np.testing.assert_array_equal(Elsewhere(X, X).numpy(), X + X)


def test_the_page_and_the_source_name_what_may_be_left_out(tmp_path: Any) -> None:
    _, source, page = (p.read_text() for p in ow.export_c(Affine, tmp_path))
    assert "float optional_affine_f32_none_f32(float x, float bias, double s)" in source
    assert "it may be left out" in source
    assert "Takes float32 and float32 and float32, or float32 and float32, or float32" in page
