"""Functions in syntax that Python 3.11 does not have, on the Pythons that do; and annotations that name nothing."""

import importlib.util
import sys

import numpy as np
import pytest

SINCE_3_12 = """
def comprehension_in_a_branch(x):
    y = [v * 2 for v in tf.unstack(x)]
    v = x
    if tf.reduce_sum(x) > 0:
        v = [v + w for w in range(2)][-1]
    return y, [(lambda q: q + k)(v) for k in range(2)]

def type_parameters[T](x: T, *, y: int = 2) -> T:
    def inner[U](u: U) -> U:
        if u > 0:
            return u * 2
        return u
    if x > 0:
        x = inner(x) * y
    return x

class Box[T]:
    def __init__(self, v: T):
        self.v = v
    def above(self, x: T) -> T:
        if x > self.v:
            return x
        return x - self.v

box = Box[int](2)

def method_of_a_generic_class(x):
    return box.above(x)

def type_alias(x):
    type Local = int
    y: Local = x
    if x > 0:
        y = x + 1
    return y

def quotes_in_f_strings(x):
    name = "k"
    if x > 0:
        x = x * len(f"{name!r:>{5}} {'nested "quotes"'} {f'{name}'}")
    return x

def groups_of_errors(x):
    try:
        if x > 0:
            x = x + 1
        raise ExceptionGroup("several", [ValueError(1), KeyError(2)])
    except* ValueError:
        if x > 0:
            x = x + 10
    except* KeyError:
        x = x + 100
    return x
"""


def module_of(source, tf, folder):
    """Import the source from a file, which AutoGraph reads again."""
    path = folder / "newer_python.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("newer_python", path)
    module = importlib.util.module_from_spec(spec)
    module.tf = tf
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def newer(tf, tmp_path):
    return module_of(SINCE_3_12, tf, tmp_path)


def plain(value):
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else np.asarray(value).tolist()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("comprehension_in_a_branch", [1, 2], [[2, 4], [[2, 3], [3, 4]]]),
        ("comprehension_in_a_branch", [-1, -2], [[-2, -4], [[-1, -2], [0, -1]]]),
        ("type_parameters", 3, 12),
        ("type_parameters", -3, -3),
        ("method_of_a_generic_class", 5, 5),
        ("method_of_a_generic_class", 1, -1),
        ("type_alias", 5, 6),
        ("quotes_in_f_strings", 1, 23),
        ("groups_of_errors", 1, 112),
        ("groups_of_errors", -1, 99),
    ],
)
def test_syntax_of_3_12(tf, newer, name, argument, expected):
    assert plain(tf.function(getattr(newer, name))(tf.constant(argument))) == expected


def test_annotations_that_name_nothing(tf, tmp_path):
    """Strings before Python 3.14; from there on they may be bare, and are not evaluated unless someone asks."""
    head = "def f(x: {q}Missing{q}, y: {q}list[Missing]{q} = 1) -> {q}Missing{q}:"
    source = head + "\n    z: {q}Missing{q} = x\n    if z < 0:\n        z: {q}Missing{q} = -z\n    return z + y\n"
    module = module_of(source.format(q="" if sys.version_info >= (3, 14) else "'"), tf, tmp_path)
    traced = tf.function(module.f)
    assert traced(tf.constant(2)).numpy() == 3
    assert traced(tf.constant(-2), y=5).numpy() == 7
