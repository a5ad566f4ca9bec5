"""Random kernels on scalars against plain Python on single numbers, in all four ways: eager, in functions compiled and
not, in the interpreter compiled and not.

A kernel is drawn as Python's text, with branches and loops, and written to a file, as its control flow is staged from
its source. What it means is the same text run on NumPy's scalars, one element at a time.
"""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright import lite
from opwright.core import flags
from thorough import examples

UNARY = ("abs", "neg", "square", "tanh", "atan", "sin", "sigmoid")
BINARY = ("+", "-", "*")
CHOICES = ("minimum", "maximum")
_numbers = itertools.count()


@st.composite
def expressions(draw: Any, names: tuple[str, ...], depth: int = 2) -> str:
    """Bounded where its operands are."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([*names, "1.5", "0.25", "limit"]))
    kind = draw(st.integers(0, 2))
    one = draw(expressions(names, depth - 1))
    if kind == 0:
        return f"f.{draw(st.sampled_from(UNARY))}({one})"
    other = draw(expressions(names, depth - 1))
    if kind == 1:
        return f"({one} {draw(st.sampled_from(BINARY))} {other})"
    return f"f.{draw(st.sampled_from(CHOICES))}({one}, {other})"


@st.composite
def kernels(draw: Any) -> tuple[str, int]:
    """The text of a kernel, and its number of operands."""
    count = draw(st.integers(1, 2))
    names: tuple[str, ...] = ("a", "b")[:count]
    lines = []
    for number in range(draw(st.integers(1, 3))):
        kind, target = draw(st.integers(0, 3)), f"t{number}"
        value = draw(expressions(names))
        if kind == 0:
            test, other = draw(st.sampled_from(names)), draw(expressions(names))
            lines += [
                f"if {test} < limit:",
                f"    {target} = {value} + 0.0 * a",
                "else:",
                f"    {target} = {other} + 0.0 * a",
            ]
        elif kind == 1:
            step = draw(st.sampled_from(names))
            lines += [
                f"{target} = {value} + 0.0 * a",
                "turns = 0",
                f"while turns < 3 and {target} < 2.0:",
                f"    {target} = {target} + f.abs({step}) + 0.125",
                "    turns += 1",
            ]
        elif kind == 2:
            lines.append(f"{target} = ({value} if a > 0.5 else {draw(expressions(names))}) + 0.0 * a")
        else:
            lines.append(f"{target} = {value} + 0.0 * a")
        names = (*names, target)
    body = "\n".join(f"    {line}" for line in [*lines, f"return {names[-1]} * 0.5"])
    return f"def kernel({', '.join('ab'[:count])}, *, limit):\n{body}\n", count


class Plain:
    """The functions that drawn kernels call, on NumPy's scalars."""

    abs, neg, square, tanh, atan, sin = np.abs, np.negative, np.square, np.tanh, np.arctan, np.sin
    minimum, maximum = np.minimum, np.maximum

    @staticmethod
    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))


class Staged:
    """The same, of the catalogue."""

    abs, neg, square, tanh, atan, sin = ow.abs, ow.negative, ow.square, ow.tanh, ow.atan, ow.sin
    minimum, maximum, sigmoid = ow.minimum, ow.maximum, ow.sigmoid


def function_of(text: str, folder: Path, f: Any) -> Any:
    """The drawn function of a module of its own."""
    name = f"drawn_kernel_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module: Any = importlib.util.module_from_spec(spec)
    module.f = f
    spec.loader.exec_module(module)
    return module.kernel


def operator_of(text: str, count: int, folder: Path) -> Any:
    """An operator with the drawn kernel, and its meaning as compute."""
    plain = function_of(text, folder, Plain)

    def compute(op: Any, *arrays: Any) -> np.ndarray:
        given = np.broadcast_arrays(*arrays)
        found = [plain(*(np.float64(a) for a in each), limit=op.limit) for each in zip(*(g.flat for g in given))]
        return np.array(found, np.float32).reshape(given[0].shape)

    body: dict[str, Any] = {"__doc__": r"Drawn.   .. math:: y = f(a, b)", "__module__": __name__, "elementwise": True}
    for name in "ab"[:count]:
        body[name] = ow.Input(dtypes=(ow.float32,), **({"like": "a"} if name == "b" else {}))
    body |= {
        "y": ow.Output(like="a"),
        "limit": ow.Attr(float, default=0.5),
        "compute": compute,
        "kernel": ow.kernel(function_of(text, folder, Staged)),
    }
    return ow.operator(type("Drawn", (), body))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drawn")


@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(kernels(), st.sampled_from([(7,), (3, 21), (33,)]), st.integers(0, 2**31))
def test_all_ways_agree_with_plain_python(folder: Path, drawn: tuple[str, int], shape: Any, seed: int) -> None:
    text, count = drawn
    op = operator_of(text, count, folder)
    rng = np.random.default_rng(seed)
    xs = [rng.uniform(-2, 2, shape if k == 0 else shape[-1:]).astype(np.float32) for k in range(count)]
    wanted = op.reference(op.bind({}))(*xs)

    def close(found: Any) -> None:
        """But where a rounding takes another branch: rare, and not all."""
        off = np.abs(np.asarray(found) - wanted) > 1e-4 * (1 + np.abs(wanted))
        assert off.mean() < 0.1, text

    tensors = [ow.constant(x) for x in xs]
    close(op(*tensors))
    f = ow.function(lambda *xs: op(*xs), autograph=False)
    close(f(*tensors))
    g = ow.function(lambda *xs: op(*xs) * 2.0, autograph=False, jit_compile=True)
    close(g(*tensors) / 2.0)
    assert "0 as they are" in g.experimental_get_compiler_ir(*tensors)().splitlines()[0]
    converter = lite.TFLiteConverter.from_concrete_functions([g.get_concrete_function(*tensors)])
    converter.allow_custom_ops = True
    content = converter.convert()
    for compiled in (False, True):
        with flags.override(compiled=compiled, background=False):
            interpreter = lite.Interpreter(model_content=content, custom_ops=[op])
            interpreter.allocate_tensors()
            for detail, x in zip(interpreter.get_input_details(), xs, strict=True):
                interpreter.set_tensor(detail["index"], x)
            interpreter.invoke()
            close(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]) / 2)
