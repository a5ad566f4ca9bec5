"""A new operator is one class and its rows of cases: each way to run it follows.

Lives here: one element-wise and one structural operator, as a user or an author of the catalogue writes them; what each
way of running has to show.  Not here: the ways (opwright.testing), what a class may say (ops/test_definition.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright import language as kl

WAYS = (
    "traces",
    "kernel is compute",
    "gradient is slope",
    "second gradient is slope",
    "gradient on graphs",
    "interpreted",
    "compiled",
    "versions",
)


@ow.operator
class Arsinh:
    r"""Inverse hyperbolic sine of a multiple.   .. math:: y = \ln(s x + \sqrt{(s x)^2 + 1})"""

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")
    s = ow.Attr(float, default=1.0)

    def compute(op: Any, x: Any) -> Any:
        return np.arcsinh(op.s * x)

    def gradient(op: Any, dy: Any) -> Any:
        return dy * op.s / ow.sqrt(ow.square(op.s * op.x) + 1.0)

    @ow.kernel
    def kernel(x: Any, *, s: Any) -> Any:
        return ow.asinh(s * x)


@ow.operator
class SwapPairs:
    r"""The columns 2 j and 2 j + 1 exchanged.   .. math:: y_{i,j} = x_{i,\,j \oplus 1}"""

    x = ow.Input(dtypes=ow.floating, rank=2)
    y = ow.Output(like="x")

    def infer(op: Any) -> Any:
        columns = op.x.spec.shape[1]
        if columns is not None and columns % 2:
            raise ow.errors.InvalidArgumentError(what="columns come in pairs", found=columns, wanted="an even number")
        return op.x.spec

    def compute(op: Any, x: Any) -> Any:
        return x.reshape(len(x), -1, 2)[..., ::-1].reshape(x.shape)

    def gradient(op: Any, dy: Any) -> Any:
        return SwapPairs(dy)

    @ow.kernel
    def kernel(x: kl.Array(kl.f32, "n", "m"), y: kl.Array(kl.f32, "n", "m")) -> None:
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = x[i, j + 1 - 2 * (j % 2)]


def swapped(x: np.ndarray) -> np.ndarray:
    """Return what SwapPairs means, an element at a time."""
    y = np.empty_like(x)
    for i, j in np.ndindex(x.shape):
        y[i, j] = x[i, j ^ 1]
    return y


X = np.random.default_rng(19).normal(size=(3, 8)).astype(np.float32)
ROWS = (
    (Arsinh, {"inputs": {"x": X}, "attrs": {"s": 2.0}, "expect": lambda x: np.log(2 * x + np.sqrt(4 * x * x + 1))}),
    (SwapPairs, {"inputs": {"x": X}, "expect": swapped}),
)


@pytest.mark.parametrize(("op", "row"), ROWS, ids=lambda v: getattr(v, "name", ""))
def test_one_class_runs_in_every_way(op: Any, row: dict[str, Any]) -> None:
    states = {o.check: o for o in ow.testing.check_operator(op, [row])}
    assert {name: states[name].state for name in WAYS} == dict.fromkeys(WAYS, "ok"), states


@pytest.mark.parametrize(("op", "row"), ROWS, ids=lambda v: getattr(v, "name", ""))
def test_nothing_is_left_to_python(op: Any, row: dict[str, Any]) -> None:
    """A compiled function and a compiled model run it as machine code, with its neighbours in the same region."""
    attrs = row.get("attrs", {})
    f = ow.function(
        lambda x: op(x + 1.0, **attrs) * 2.0,
        jit_compile=True,
        autograph=False,
        input_signature=[ow.TensorSpec(X.shape, ow.float32)],
    )
    expected = row["expect"](X.astype(np.float64) + 1) * 2
    np.testing.assert_allclose(f(ow.constant(X)), expected, 1e-6)
    ((_, compiled),) = f.get_concrete_function().program.plan._made.values()
    assert [len(compiled.regions), len(compiled.uncompiled)] == [1, 0]

    converter = ow.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()])
    converter.allow_custom_ops = True
    with ow.flags(compiled=True, background=False):
        interpreter = ow.lite.Interpreter(model_content=converter.convert(), custom_ops=[op])
        interpreter.allocate_tensors()
        (name,) = interpreter.get_signature_list()
        got = interpreter.get_signature_runner(name)(x=X)["output_0"]
        plan = [node.name for node in interpreter._subgraphs[0].execution_plan]
    assert len(plan) == 1
    assert op.name not in plan
    np.testing.assert_allclose(got, expected, 1e-6)
