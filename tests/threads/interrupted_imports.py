"""Run a scenario in which every module of the package is interrupted once while it is imported.

Not a test module: test_interrupted_imports.py runs it in a process of its own, as

    python interrupted_imports.py WHERE PACKAGE SCENARIO

WHERE: at which part of a module's lines, 0 the first to 1 the last. The last word printed is the number of modules.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

WHERE, PACKAGE, SCENARIO = float(sys.argv[1]), sys.argv[2], sys.argv[3]
interrupted: dict[str, int] = {}  # by file, the line


def line_of(code: CodeType) -> int:
    """The line that the interrupt comes at."""
    lines = sorted({line for _, _, line in code.co_lines() if line})
    return lines[min(int(WHERE * len(lines)), len(lines) - 1)]


def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
    code = frame.f_code
    if code.co_name != "<module>" or not code.co_filename.startswith(PACKAGE) or code.co_filename in interrupted:
        return None
    line = line_of(code)

    def inside(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line" and frame.f_lineno >= line and code.co_filename not in interrupted:
            interrupted[code.co_filename] = frame.f_lineno
            raise KeyboardInterrupt
        return inside

    return inside


X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
Y = -3.0 * np.exp(X)  # what the function below gives: the sum of X is 0


def traced() -> Any:
    import opwright as ow

    @ow.function(reduce_retracing=True)
    def f(x: Any) -> Any:
        y = ow.zeros_like(x)
        for _ in ow.range(3):
            if ow.reduce_sum(x) > 0.5:
                y += ow.tanh(x)
            else:
                y -= ow.exp(x)
        return y

    np.testing.assert_allclose(f(ow.constant(X)).numpy(), Y, atol=1e-4)
    return f


def trace_scenario() -> None:
    import opwright as ow

    traced()
    variable = ow.Variable(X)
    with ow.GradientTape() as tape:
        loss = ow.reduce_sum(variable * variable)
    np.testing.assert_allclose(tape.gradient(loss, variable).numpy(), 2 * X)


def whole_scenario() -> None:
    import opwright as ow
    from opwright import language as kl
    from opwright import lite

    trace_scenario()
    f = traced()
    concrete = f.get_concrete_function(ow.TensorSpec([3, 4], ow.float32))
    content = lite.TFLiteConverter.from_concrete_functions([concrete], f).convert()
    for kind in (lite.OpResolverType.AUTO, lite.OpResolverType.BUILTIN_REF):
        interpreter = lite.Interpreter(model_content=content, experimental_op_resolver_type=kind)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
        interpreter.invoke()
        actual = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_allclose(actual, Y, atol=1e-4)

    softmax = ow.function(lambda a: ow.nn.softmax(ow.sin(a) * 2.0), jit_compile=True)
    e = np.exp(2 * np.sin(X))
    np.testing.assert_allclose(softmax(ow.constant(X)).numpy(), e / e.sum(-1, keepdims=True), atol=1e-5)

    batches = list(ow.data.Dataset.range(10).map(lambda n: n * 2).batch(5).prefetch(1))
    assert batches[1].numpy().tolist() == [10, 12, 14, 16, 18]

    model = ow.keras.Sequential([ow.keras.layers.Dense(4, activation="relu"), ow.keras.layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit(X, X[:, :2], verbose=0)

    assert len(ow.ops.list()) > 400

    @ow.kernel
    def exponential(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n")):  # type: ignore[no-untyped-def]
        for i in range(x.shape[0]):
            y[i] = kl.exp(x[i])

    result = np.empty(5, np.float32)
    exponential(np.ones(5, np.float32), result)
    np.testing.assert_allclose(result, np.e, rtol=1e-5)


def main() -> None:
    scenario = {"trace": trace_scenario, "whole": whole_scenario}[SCENARIO]
    while True:
        before = len(interrupted)
        sys.settrace(trace)  # an exception out of it has turned it off
        try:
            scenario()
            break
        except KeyboardInterrupt:
            assert len(interrupted) > before, "interrupted by somebody else"
        except BaseException:
            print("after the interrupts at", list(interrupted.items())[-3:])
            raise
        finally:
            sys.settrace(None)
    assert gc.isenabled()
    print("interrupted modules:", len(interrupted))


main()
