"""Helpers of the tests of the compiled engine: models without cached kernels, and inspection of the engine."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_kit import Build

from opwright import lite
from opwright.core import flags
from opwright.lite.interpreter import OpResolverType

UNARY = ("ABS", "COS", "SIN", "TANH", "LOGISTIC", "SQUARE", "NEG", "ELU", "RELU6")
"""Continuous functions: a step such as FLOOR's would make one of what roundings make a last bit."""
_drawn = random.Random(os.getpid())
_numbers = itertools.count()


def names(count: int = 7) -> list[str]:
    """A chain of operators that makes a kernel of its own in this process."""
    return _drawn.choices(UNARY, k=count)


def chain(ops: list[str], shape: Any = (3, 5)) -> bytes:
    """y = ops of x, one after the other."""
    build = Build().tensor("x", shape)
    for i, op in enumerate(ops):
        after = "y" if i == len(ops) - 1 else f"t{i}"
        build.tensor(after, shape).op(op, "x" if i == 0 else f"t{i - 1}", after)
    return build.done()


@contextlib.contextmanager
def engine(background: bool = False, **more: Any) -> Iterator[None]:
    """Within it, interpreters run what they can as machine code."""
    with flags.override(compiled=True, background=background, **more):
        yield


def plain(content: bytes, x: Any, **more: Any) -> np.ndarray:
    """Return the results of the reference kernels."""
    interpreter = lite.Interpreter(
        model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, **more
    )
    return answer(interpreter, x)


def answer(interpreter: Any, x: Any) -> np.ndarray:
    """One run."""
    detail = interpreter.get_input_details()[0]
    if tuple(detail["shape"]) != np.shape(x):
        interpreter.resize_tensor_input(detail["index"], np.shape(x))
    interpreter.allocate_tensors()
    interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    result: np.ndarray = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result


def plan_of(interpreter: Any, subgraph: int = 0) -> list[str]:
    """The nodes that run, by operator."""
    return [node.name for node in interpreter._subgraphs[subgraph].execution_plan]
