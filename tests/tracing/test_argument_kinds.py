"""Values of every kind as arguments of a function: it sees them, is traced once for equal ones, and is not said to have
changed them."""

import collections
import dataclasses
import decimal
import enum
import fractions
import functools
import math
import pathlib
import re
import types

import numpy as np
import pytest


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Flag(enum.Flag):
    A = 1
    B = 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int


@dataclasses.dataclass(eq=False)
class ByIdentity:
    a: int


class Number(int):
    pass


class Text(str):
    pass


class Sequence(collections.abc.Sequence):
    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Plain:
    def method(self):
        return 1

    def __call__(self):
        return 2


def double(x):
    return x * 2


PLAIN = Plain()
Pair = collections.namedtuple("Pair", "a b")
VALUES = {
    "range": range(3),
    "range of large numbers": range(1000, 1003),
    "range backwards": range(5, 0, -2),
    "empty range": range(0),
    "enum": Colour.RED,
    "int enum": Level.LOW,
    "flag": Flag.A | Flag.B,
    "frozenset": frozenset({1, 2}),
    "bytes": b"ab",
    "frozen dataclass": Frozen(1),
    "object": ByIdentity(1),
    "partial": functools.partial(double, 1),
    "function": double,
    "lambda": lambda x: x,
    "builtin": len,
    "class": int,
    "method": PLAIN.method,
    "callable": PLAIN,
    "module": math,
    "numpy type": np.float32,
    "numpy dtype": np.dtype("int8"),
    "numpy text": np.str_("mean"),
    "ellipsis": ...,
    "int subclass": Number(3),
    "str subclass": Text("a"),
    "complex": 1 + 2j,
    "large int": 2**100,
    "decimal": decimal.Decimal("1.5"),
    "fraction": fractions.Fraction(1, 2),
    "path": pathlib.PurePath("/a"),
    "pattern": re.compile("a"),
    "own sequence": Sequence(1, 2),
    "namedtuple": Pair(1, 2),
    "empty list": [],
    "empty dict": {},
    "nested": {"a": [range(2), (Level.LOW, b"x")]},
    "views": {"a": 1}.values(),
    "namespace": types.SimpleNamespace,
    "union": int | str,
    "generic": list[int],
}
WAYS = {
    "by position": lambda f, v: f(v),
    "by keyword": lambda f, v: f(x=v),
    "in a dict": lambda f, v: f({"a": v}),
    "in a list": lambda f, v: f([v, 1]),
}


def inside(way, x):
    return x["a"] if way == "in a dict" else x[0] if way == "in a list" else x


def shown(x):
    """TensorFlow gives a range as a list."""
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        return [shown(v) for v in x]
    if type(x) is dict:
        return {k: shown(v) for k, v in x.items()}
    return list(x) if isinstance(x, range) else x


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", VALUES)
def test_a_function_takes_values_of_every_kind(tf, kind, way):
    value, seen = VALUES[kind], []

    @tf.function
    def f(x):
        seen.append(inside(way, x))
        return 1

    for _ in range(2):
        assert WAYS[way](f, value).numpy() == 1
    assert len(seen) == 1
    assert shown(seen[0]) == shown(value)


def test_ranges_are_distinguished_by_what_they_hold(tf):
    f = tf.function(lambda x: tf.constant(list(x), tf.int32))
    for r in (range(3), range(4), range(3), range(3, 0, -1), range(3)):
        assert f(r).numpy().tolist() == list(r)
    assert f.experimental_get_tracing_count() == 3


def append(x):
    x.append(1)


def drop(x):
    x.pop("a")


def replace(x):
    x["a"] = 2


def change_inside(x):
    x["b"][0] = 5


@pytest.mark.ours  # TensorFlow takes no slices before Python 3.12, and none with tensors
def test_slices_are_taken_part_by_part(tf):
    f = tf.function(lambda x, s: x[s])
    x = tf.range(5)
    for s in (slice(1, 3), slice(None, None, 2), slice(1, 3)):
        assert f(x, s).numpy().tolist() == list(range(5))[s]
    for n in range(3):
        assert f(x, slice(tf.constant(n), None)).numpy().tolist() == list(range(n, 5))
    assert f.experimental_get_tracing_count() == 3


@pytest.mark.parametrize(
    ("change", "value"),
    [
        (append, lambda: [1]),
        (drop, lambda: {"a": 1}),
        (replace, lambda: {"a": 1}),
        (change_inside, lambda: {"b": [range(2)]}),
    ],
)
def test_a_change_of_an_argument_is_still_an_error(tf, change, value):
    with pytest.raises(ValueError, match="should not modify its Python input arguments"):
        tf.function(change)(value())
