"""The code of the document that this model was asked for by, said in this library's words: each block runs.

Lives here: a registration with all its parts, the choice of a kernel by a named input, a place that is reused, a
gradient operator that wants a shape alone, the order of a function's parameters.
Not here: the rules one by one (the other files of this folder, tests/ops/).
"""

from __future__ import annotations

import gc
import inspect
import weakref
from typing import Any

import numpy as np
import pytest

import opwright as ow


@ow.operator
class DocumentSliceGrad:
    """The gradient of DocumentSlice: the gradient at its place, zeros around it.

    .. math:: input\\_grad[starts + i] = out\\_grad[i]

    input: of which the shape alone is read; starts_tensor: in place of the attribute, where given.
    """

    input = ow.Input(ow.floating)
    starts_tensor = ow.Input((ow.int32, ow.int64), rank=1, optional=True)
    out_grad = ow.Input(ow.floating, like="input")
    input_grad = ow.Output(like="input")
    starts = ow.Attr([int], default=())
    ends = ow.Attr([int], default=())
    shape_only = ("input",)

    def infer(op) -> Any:
        return op.input.spec

    def expected_kernel_key(op, place) -> Any:
        return ow.KernelKey(place, op.dtype_of("out_grad"))  # `input` may have no buffer by now

    def compute(op, input, starts_tensor, out_grad) -> Any:
        whole = np.zeros(input.shape, out_grad.dtype)
        starts = op.starts if starts_tensor is None else starts_tensor.tolist()
        whole[tuple(slice(s, s + n) for s, n in zip(starts, out_grad.shape))] = out_grad
        return whole

    def gradient(op, dinput_grad) -> Any:  # the second order: a slice again
        return None, None, DocumentSlice(dinput_grad, op.starts_tensor, starts=op.starts, ends=op.ends)


@ow.operator
class DocumentSlice:
    """A window of each axis.

    .. math:: out[i] = input[starts + i], \\; i < ends - starts

    starts_tensor: in place of the attribute `starts`, where given.
    """

    input = ow.Input(ow.floating)
    starts_tensor = ow.Input((ow.int32, ow.int64), rank=1, optional=True)
    out = ow.Output(like="input")
    starts = ow.Attr([int], default=())
    ends = ow.Attr([int])
    gradient = ow.ops.SingleGradient("DocumentSliceGrad")

    def infer(op) -> Any:
        starts = op.starts if op.starts_tensor is None else op.starts_tensor.constant
        if starts is None:
            return ow.TensorSpec([None] * len(op.ends), op.input.dtype)
        return ow.TensorSpec([e - s for s, e in zip(starts, op.ends)], op.input.dtype)

    def expected_kernel_key(op, place) -> Any:
        return ow.KernelKey(place, op.dtype_of("input"))  # the optional input is of another dtype, and may be absent

    def compute(op, input, starts_tensor) -> Any:
        starts = op.starts if starts_tensor is None else starts_tensor.tolist()
        return input[tuple(slice(s, e) for s, e in zip(starts, op.ends))].copy()


X = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("by_tensor", [False, True])
@pytest.mark.parametrize("traced", [False, True])
def test_a_gradient_that_needs_a_shape(by_tensor: bool, traced: bool) -> None:
    def step(x: Any) -> Any:
        starts = ow.constant([1, 0]) if by_tensor else None
        with ow.GradientTape() as outer:
            outer.watch(x)
            with ow.GradientTape() as tape:
                tape.watch(x)
                y = DocumentSlice(x, starts, starts=[] if by_tensor else [1, 0], ends=[3, 2])
                z = ow.reduce_sum(y * y * y)
            first = tape.gradient(z, x)
        return y, first, outer.gradient(first, x)

    y, first, second = (ow.function(step) if traced else step)(ow.constant(X))
    inside = np.zeros_like(X)
    inside[1:3, 0:2] = 1
    np.testing.assert_array_equal(y.numpy(), X[1:3, 0:2])
    np.testing.assert_allclose(first.numpy(), 3 * X**2 * inside)
    np.testing.assert_allclose(second.numpy(), 6 * X * inside)


def test_the_memory_of_what_is_asked_for_its_shape_is_freed() -> None:
    needs = DocumentSlice.gradient_needs
    assert (needs.inputs, needs.outputs) == ({"input": "shape", "starts_tensor": "value"}, {"out": "nothing"})
    source = ow.constant(X)
    with ow.GradientTape() as tape:
        tape.watch(source)
        x = source + 1.0
        buffer = weakref.ref(x.constant)
        z = ow.reduce_sum(DocumentSlice(x, starts=[0, 0], ends=[1, 1]))
        del x
    gc.collect()
    assert buffer() is None
    assert tape.gradient(z, source).numpy().sum() == 1


def test_the_key_comes_from_the_input_that_is_named() -> None:
    scope = ow.Scope()
    scope.var("x").set(X)
    scope.var("starts").set(np.array([1, 1], np.int32))
    cut = DocumentSlice.on({"input": "x", "starts_tensor": "starts"}, {"out": "y"}, ends=[3, 3])
    assert cut.run(scope, ow.CPUPlace()).chosen.dtype is ow.float64
    np.testing.assert_array_equal(scope.find_var("y").value.numpy(), X[1:, 1:3])
    scope.var("empty")
    with pytest.raises(ow.errors.InvalidArgumentError) as caught:  # not "the holder should not be null"
        DocumentSlice.on({"input": "empty"}, {"out": "y"}, starts=[0], ends=[1]).run(scope, ow.CPUPlace())
    assert "DocumentSlice" in str(caught.value)
    assert "'input' is not initialized" in str(caught.value)


def test_a_result_in_the_place_of_its_input() -> None:
    reshape = ow.ops.get("Reshape")
    assert reshape.inplace == {"output": "tensor"}
    y = ow.reshape(ow.constant(X), [4, 3])
    np.testing.assert_array_equal(y.numpy(), X.reshape(4, 3))


def test_all_that_a_registration_has() -> None:
    op = DocumentSlice
    assert ow.ops.get("DocumentSlice") is op
    parts = ow.ops.spec([op])["DocumentSlice"]
    assert [i["name"] for i in parts["inputs"]] == ["input", "starts_tensor"]
    assert [(a["name"], a["required"]) for a in parts["attrs"]] == [("starts", False), ("ends", True)]
    assert op.infer_kinds(["dense", None]) == ["dense"]
    assert op.formula.startswith("out[i]")
    assert str(op.gradient_maker).startswith("single")


def test_parameters_stand_by_importance() -> None:
    """As fc(input, size, num_flatten_dims, ..., act, name): data, size, behaviour, the rest, `name` last."""
    assert list(inspect.signature(ow.keras.layers.Dense).parameters)[:2] == ["units", "activation"]
    assert list(inspect.signature(ow.sequence.conv).parameters)[-1] == "name"
    assert not list(ow.ops.lint(DocumentSlice))
