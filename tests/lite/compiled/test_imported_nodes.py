"""Files that the interpreter runs and `import_model` refuses: what it understands of them is compiled all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine_kit import engine, plan_of
from lite_kit import Build

from opwright import lite
from opwright.core.errors import OpError
from opwright.lite.format import Model
from opwright.lite.importer import import_model

X = np.linspace(-2, 2, 5, dtype=np.float32)


def three_factors() -> Any:
    """A resolver whose MUL takes three operands, which no definition of the operator does."""

    def prepare(context: Any, node: Any) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def invoke(context: Any, node: Any) -> None:
        a, b, c = (v.data for v in node.inputs)
        node.outputs[0].data[...] = a * b * c

    resolver = lite.BuiltinOpResolver()
    resolver.add_builtin("MUL", lite.Registration(prepare=prepare, invoke=invoke))
    return resolver


def outputs(content: bytes, **settings: Any) -> tuple[lite.Interpreter, list[np.ndarray]]:
    """The interpreter after a run of the compiled engine, and the elements of its outputs."""
    with engine(verify=True):
        interpreter = lite.Interpreter(model_content=content, **settings)
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], X)
        interpreter.invoke()
    return interpreter, [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def test_nodes_next_to_an_operator_of_the_users_own_are_compiled() -> None:
    build = Build().op("SIN", "x", "s").op("COS", "s", "c").op("MUL", "x s c", "m").op("EXP", "m", "e")
    content = build.op("TANH", "e", "y").done()
    with pytest.raises(OpError, match="wrong number of inputs"):
        import_model(Model.read(content))
    interpreter, (y,) = outputs(content, op_resolver=three_factors())
    assert plan_of(interpreter) == ["Opwright", "MUL", "Opwright"]
    x = X.astype(np.float64)
    expected = np.tanh(np.exp(x * np.sin(x) * np.cos(np.sin(x))))
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_an_input_that_is_listed_twice() -> None:
    content = Build().op("SIN", "x", "s").op("MUL", "s x", "y").done("x x")
    with pytest.raises(OpError, match="takes one tensor as several inputs"):
        import_model(Model.read(content))
    interpreter, (y,) = outputs(content)
    assert plan_of(interpreter) == ["Opwright"]
    np.testing.assert_allclose(y, np.sin(X.astype(np.float64)) * X, rtol=1e-6, atol=1e-7)
