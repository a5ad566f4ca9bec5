"""The kernel language: each of its parts in small kernels, here and on other processors; errors at the user's line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from foreign import EACH, RUNNERS, run_on
from language_cases import cases, check, powers

from opwright.compiler import language as kl
from opwright.compiler.language import f32, i32, i64, ptr, u8
from opwright.compiler.native.executor import StepError
from opwright.compiler.target import host, named

CASES = cases(host().vector_bytes // 4)
SCRATCH = 1024


@pytest.mark.parametrize("name", sorted(CASES))
def test_on_this_processor(name: str) -> None:
    family, constants, arguments, items, _ = CASES[name]
    inputs = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    kl.call(family.code(**constants), inputs, items=items, scratch=SCRATCH)
    check(name, [a for a in inputs if isinstance(a, np.ndarray)], CASES[name])


@pytest.mark.parametrize("target", EACH)
def test_compiles_for(target: str) -> None:
    chosen = named(target)
    for name, (family, constants, *_) in cases(chosen.vector_bytes // 4).items():
        assert chosen.object_code(str(family.emit(chosen, **constants))), name


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(RUNNERS))
def test_runs_on(target: str, tmp_path: Path) -> None:
    for name, case in cases(named(target).vector_bytes // 4).items():
        family, constants, arguments, items, _ = case
        result = run_on(target, tmp_path, family, constants, arguments, items, SCRATCH)
        check(f"{target}: {name}", result, case)


def test_code_is_made_once() -> None:
    family, constants, *_ = CASES["scale_rows True"]
    assert family.code(**constants) is family.code(**constants)
    assert family.code(relu=True).address != family.code(relu=False).address


def test_ir_is_readable() -> None:
    family, constants, *_ = CASES["scale_rows True"]
    text = family.source(**constants)
    for name in ("columns", "factor", "begin", "loop.head", "scale_rows.relu_True"):
        assert name in text
    assert "; " in text
    assert f"language_cases.py:{family.function.__code__.co_firstlineno + 5}" in text  # the line of the load


def wrong_dtypes(work, x: ptr[f32], y: ptr[i32]):
    a = x[0]
    b = y[0]
    x[1] = a + b  # line 3


def wrong_lanes(work, x: ptr[f32]):
    a = x.load(0, 8)
    x.store(a + x.load(0, 4))


def branch_on_vector(work, x: ptr[f32]):
    if x.load(0, 8) > 0.0:
        x[0] = 1.0


def wrong_store(work, x: ptr[f32], y: ptr[i32]):
    x[0] = y[0]


def number_out_of_range(work, x: ptr[u8]):
    x[0] = x[1] + 256


def changes_type(work, x: ptr[f32], n: i64):
    v = x[0]
    for _ in range(n):
        v = v.to(i32)
    x[0] = v.to(f32)


def one_branch_only(work, x: ptr[f32], n: i64):
    if n > 3:
        v = x[0]
    x[0] = v


def register_index(work, n: i64):
    tile = kl.registers(f32, 4, 2)
    for i in range(n):
        tile[i] = 0.0


WRONG = [
    (wrong_dtypes, "float32 and int32 do not mix", 3),
    (wrong_lanes, "of 4 and of 8 lanes", 2),
    (branch_on_vector, "a vector decides no branch", 1),
    (wrong_store, "pointer to float32 takes no int32", 1),
    (number_out_of_range, "uint8 cannot hold 256", 1),
    (changes_type, "v has another type after an iteration", 2),
    (one_branch_only, "'v' where it is not associated with a value", 3),
    (register_index, "indices are Python ints", 3),
]


@pytest.mark.parametrize(("function", "says", "line"), WRONG, ids=[f[0].__name__ for f in WRONG])
def test_errors_at_the_line(function: Any, says: str, line: int) -> None:
    with pytest.raises((TypeError, ValueError, UnboundLocalError, IndexError)) as caught:
        kl.family(function).emit(host())
    assert says in str(caught.value)
    places = [(e.path, e.lineno + 1) for e in caught.traceback]
    expected = function.__code__.co_firstlineno + line
    assert any(Path(p).name == Path(__file__).name and n == expected for p, n in places), (expected, places)


class Line(NamedTuple):
    slope: Any
    offset: Any


@kl.family
def points(work, y: ptr[i64], line: Line, n: i64, *more: i64):
    for i in range(n):
        y[i] = i * line.slope + line.offset + more[0]


def test_a_named_tuple_is_a_word_for_each_field() -> None:
    y = np.zeros(5, np.int64)
    words = [y, *Line(slope=3, offset=-7), len(y), 100]
    assert list(points.kinds({"more": 1})) == ["y", "line.slope", "line.offset", "n", "more.0"]
    kl.call(points.code(more=1), words, 1)
    np.testing.assert_array_equal(y, 3 * np.arange(5) - 7 + 100)
    assert list(points.words(words)[1:]) == [3, -7, 5, 100]


def test_family_refuses() -> None:
    with pytest.raises(TypeError, match="parameter x is a dtype, ptr"):

        @kl.family
        def untyped(work, x):
            pass

    family, *_ = CASES["scale_rows True"]
    with pytest.raises(TypeError, match="has constants relu"):
        family.emit(host(), other=1)
    with pytest.raises(RuntimeError, match="only inside a kernel"):
        kl.zeros(f32, 4)


def test_a_status_stops() -> None:
    family, constants, (_, n), _, _ = CASES["early"]
    with pytest.raises(StepError) as caught:
        kl.call(family.code(**constants), [np.zeros(20, np.int64), n], items=14)
    assert caught.value.status == 3


def test_values_have_the_operators_of_the_catalogue_in_a_new_process() -> None:
    """`**` is no instruction: it is the catalogue's, which nothing else need have imported."""
    x, y = np.float32([3.0, -2.0, 0.5, 0.0]), np.zeros(4, np.float32)
    kl.call(powers.code(), [x, y, 4], items=1)
    np.testing.assert_allclose(y, x.astype(float) ** 2 + 2.0 ** x.astype(float), rtol=1e-6)
    lines = "import language_cases", "from opwright.compiler.target import host", "language_cases.powers.emit(host())"
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", "\n".join(lines)]
    process = subprocess.run(command, env=paths, check=False, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
