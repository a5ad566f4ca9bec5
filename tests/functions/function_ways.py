"""Ways of running a function of tensors: eagerly, traced, compiled, as a kernel, from a .tflite by both engines.

Lives here: `WAYS`, by name; each takes a function and arrays and returns an array, or raises `NoForm`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import opwright as ow
from opwright import language as kl
from opwright import lite

Array = np.ndarray


class NoForm(Exception):
    """The function has no form in this way of running."""


def eager(function: Callable[..., Any], *arrays: Array) -> Array:
    result: Array = function(*map(ow.constant, arrays)).numpy()
    return result


def traced(function: Callable[..., Any], *arrays: Array) -> Array:
    result: Array = ow.function(function, autograph=False)(*map(ow.constant, arrays)).numpy()
    return result


def jit(function: Callable[..., Any], *arrays: Array) -> Array:
    """With other operators around it: one alone stays as it is."""

    def among_others(*xs: Any) -> Any:
        y = function(*xs)
        return y, ow.square(xs[0]), ow.tanh(y)

    actual = ow.function(among_others, autograph=False, jit_compile=True)(*map(ow.constant, arrays))
    result: Array = actual[0].numpy()
    return result


def kernel(function: Callable[..., Any], *arrays: Array) -> Array:
    """`@ow.kernel` of scalars, as an element-wise operator's kernel."""

    def of_one(x: Any) -> Any:
        return function(x)

    def of_two(x: Any, y: Any) -> Any:
        return function(x, y)

    body: dict[str, Any] = {
        "x": ow.Input(ow.floating),
        "z": ow.Output(like="x"),
        "elementwise": True,
        "kernel": ow.kernel(of_one if len(arrays) == 1 else of_two),
    }
    if len(arrays) == 2:
        body["y"] = ow.Input(ow.floating, like="x")
        body = {name: body[name] for name in ("x", "y", "z", "elementwise", "kernel")}
    try:
        result: Array = ow.operator(type("InKernel", (), body))(*map(ow.constant, arrays)).numpy()
    except (ow.errors.UnimplementedError, TypeError) as error:
        raise NoForm(str(error)) from None
    return result


def kernel_on_arrays(function: Callable[..., Any], *arrays: Array) -> Array:
    """`@ow.kernel` with a loop over arrays of float32."""
    z = np.empty_like(arrays[0])
    if len(arrays) == 1:

        @ow.kernel
        def loop(x: kl.Array(kl.f32, "n"), z: kl.Array(kl.f32, "n")) -> None:
            for i in range(x.shape[0]):
                z[i] = function(x[i])
    else:

        @ow.kernel
        def loop(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n"), z: kl.Array(kl.f32, "n")) -> None:
            for i in range(x.shape[0]):
                z[i] = function(x[i], y[i])

    try:
        loop(*arrays, z)
    except (ow.errors.UnimplementedError, TypeError, AttributeError) as error:
        raise NoForm(str(error)) from None
    return z


def model_of(function: Callable[..., Any], *arrays: Array) -> bytes:
    """The .tflite of a function. Raises NoForm where the file format has none."""
    specs = [ow.TensorSpec(a.shape, a.dtype) for a in arrays]
    concrete = ow.function(function, autograph=False).get_concrete_function(*specs)
    try:
        content: bytes = lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
    except ow.errors.OpError as error:
        raise NoForm(str(error)) from None
    return content


def interpreted(function: Callable[..., Any], *arrays: Array, compiled: bool = False) -> Array:
    """From a .tflite, by the reference kernels, or by the compiled engine."""
    content = model_of(function, *arrays)
    with ow.flags(compiled=compiled, background=False):
        interpreter = lite.Interpreter(model_content=content)
        interpreter.allocate_tensors()
        for detail, array in zip(interpreter.get_input_details(), arrays):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        result: Array = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result


def compiled(function: Callable[..., Any], *arrays: Array) -> Array:
    return interpreted(function, *arrays, compiled=True)


WAYS: dict[str, Callable[..., Array]] = {
    "eager": eager,
    "traced": traced,
    "jit": jit,
    "kernel": kernel,
    "kernel_on_arrays": kernel_on_arrays,
    "lite": interpreted,
    "lite_compiled": compiled,
}
