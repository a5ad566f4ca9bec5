"""Helpers of the tests of state: hand-written models, converting, running calls in both interpreters.

Not here: the tables and the checks (test_state_*.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lite_kit
import numpy as np
from lite_kit import T

import opwright as ow
from opwright.lite.format import objects, versions

Call = tuple[str, dict[str, Any]]


class Build(lite_kit.Build):
    """With operators of variables and tables. options: an options object. No subgraph has begun."""

    def __init__(self) -> None:
        super().__init__(None)

    def tensor(self, name: str, shape: Any = (), *more: Any, **fields: Any) -> Build:
        return super().tensor(name, shape, *more, **fields)

    def op(self, name: str, inputs: str = "", outputs: str = "", options: Any = None) -> Build:  # type: ignore[override]
        return self.operator(versions.operator_code(name), inputs, outputs, builtin_options=options)

    def done(self) -> bytes:  # type: ignore[override]
        return super().done(None)

    def handle(self, name: str, variable: str = "v", container: str = "") -> Build:
        options = objects.VarHandleOptions(container=container, shared_name=variable)
        return self.tensor(name, (), "RESOURCE").op("VAR_HANDLE", "", name, options)

    def table(self, name: str, key: str = "STRING", value: str = "INT64", number: int = 3) -> Build:
        options = objects.HashtableOptions(table_id=number, key_dtype=T[key], value_dtype=T[value])
        return self.tensor(name, (1,), "RESOURCE").op("HASHTABLE", "", name, options)

    def once(self, index: int = 1) -> Build:
        return self.op("CALL_ONCE", options=objects.CallOnceOptions(init_subgraph_index=index))


def ours(content: bytes) -> Any:
    return ow.lite.Interpreter(model_content=content)


def official(content: bytes, delegates: bool = True) -> Any:
    import ai_edge_litert.interpreter as peer

    kinds = peer.OpResolverType
    kind = kinds.AUTO if delegates else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    return peer.Interpreter(model_content=content, experimental_op_resolver_type=kind)


def run(interpreter: Any, values: Sequence[Any], times: int = 3) -> list[list[np.ndarray]]:
    """Return the outputs of several runs on the same inputs."""
    interpreter.allocate_tensors()
    result = []
    for _ in range(times):
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        result.append([np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()])
    return result


def answers(interpreter: Any, calls: Sequence[Call]) -> list[dict[str, np.ndarray]]:
    """Return the results of consecutive calls of signatures on one interpreter."""
    runners = {key: interpreter.get_signature_runner(key) for key, _ in calls}
    return [{k: np.array(v) for k, v in runners[key](**inputs).items()} for key, inputs in calls]


def converted(*functions: Any, **settings: Any) -> bytes:
    """The file of concrete functions."""
    converter = ow.lite.TFLiteConverter.from_concrete_functions(list(functions))
    for name, value in settings.items():
        setattr(converter, name, value)
    return bytes(converter.convert())


def assert_equal(actual: Any, expected: Any, rtol: float = 1e-5) -> None:
    """Equal keys, shapes and dtypes; floats within rtol of the largest."""
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        names = a if isinstance(a, dict) else range(len(a))
        assert len(a) == len(b)
        for name in names:
            x, y = a[name], b[name]
            assert x.shape == y.shape, name
            assert x.dtype == y.dtype, name
            if x.dtype.kind in "fc":
                np.testing.assert_allclose(x, y, rtol, rtol * float(np.max(np.abs(y), initial=0)), err_msg=str(name))
            else:
                np.testing.assert_array_equal(x, y, str(name))


def assert_agree(
    content: bytes,
    calls: Sequence[Call],
    expected: Callable[[], Any] | None = None,
    delegates: bool = True,
    rtol: float = 1e-5,
) -> None:
    """Both interpreters give the same for a series of calls, and what is wanted where that is said."""
    actual = answers(ours(content), calls)
    assert_equal(actual, answers(official(content, delegates), calls), rtol)
    if expected is not None:
        assert_equal(actual, expected(), rtol)
