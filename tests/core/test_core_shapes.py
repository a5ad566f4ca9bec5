"""TensorShape: its algebra against sets of concrete shapes, broadcasting against NumPy."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.core.errors import InvalidArgumentError
from opwright.core.shapes import SCALAR, UNKNOWN, TensorShape, as_shape, broadcast

dims = st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=3)
shapes = st.one_of(st.none(), dims).map(TensorShape)
CONCRETE = [c for rank in range(4) for c in itertools.product(range(4), repeat=rank)]


def members(shape):
    """The concrete shapes, of rank up to 3 and sizes up to 3, that a shape stands for."""
    if shape.dims is None:
        return set(CONCRETE)
    return {c for c in CONCRETE if len(c) == len(shape.dims) and all(d in (None, x) for d, x in zip(shape.dims, c))}


@given(shapes, shapes)
def test_relations_are_those_of_sets(a, b):
    assert a.is_subtype_of(b) == (members(a) <= members(b))
    assert a.is_compatible_with(b) == bool(members(a) & members(b))
    assert (a == b) == (a.dims == b.dims)
    if members(a) & members(b):
        assert members(a.merge_with(b)) == members(a) & members(b)
    else:
        with pytest.raises(ValueError, match="not compatible"):
            a.merge_with(b)


@given(shapes, shapes)
def test_the_common_supertype_is_the_nearest(a, b):
    both = a.most_specific_common_supertype([b])
    assert members(a) | members(b) <= members(both)
    assert both == b.most_specific_common_supertype([a]) == a.most_specific_compatible_shape(b)
    if both.dims is not None:
        for i, d in enumerate(both.dims):  # a size is given up only where the two differ in it
            assert d is not None or a.dims[i] != b.dims[i] or a.dims[i] is None


@given(shapes, shapes)
def test_broadcasting_is_numpys(a, b):
    """The result stands for every shape that broadcasting members gives; an error means that none can be broadcast."""
    possible = set()
    for x, y in itertools.product(members(a), members(b)):
        try:
            possible.add(np.broadcast_shapes(x, y))
        except ValueError:
            continue
    try:
        result = broadcast(a, b)
    except InvalidArgumentError:
        assert not possible
        return
    assert possible <= members(result) | {p for p in possible if result.dims is None}


@given(shapes)
def test_written_forms(shape):
    assert eval(repr(shape)) == shape
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert copy.deepcopy(shape) == shape
    assert hash(TensorShape(shape)) == hash(shape)
    if shape.is_fully_defined():
        assert str(shape) == str(tuple(shape.dims))


@pytest.mark.parametrize(
    ("value", "dims"),
    [
        (None, None),
        ([], ()),
        ((2, None), (2, None)),
        (5, (5,)),
        (np.int64(5), (5,)),
        (np.array([2, 3]), (2, 3)),
        (TensorShape([1]), (1,)),
        (range(3), (0, 1, 2)),
    ],
    ids=repr,
)
def test_what_spells_a_shape(value, dims):
    assert as_shape(value).dims == dims


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ([-1], ValueError, ">= 0"),
        ([1.5], TypeError, "1.5"),
        (["2"], TypeError, "'2'"),
        ("23", TypeError, "'23'"),
        ([[1]], TypeError, r"\[1\]"),
        (2.0, TypeError, "2.0"),
    ],
    ids=repr,
)
def test_what_does_not(value, error, words):
    with pytest.raises(error, match=words):
        TensorShape(value)


def test_as_a_sequence():
    s = TensorShape([2, None, 4])
    assert list(s) == [2, None, 4]
    assert len(s) == s.rank == s.ndims == 3
    assert (s[0], s[1], s[-1], s[1:]) == (2, None, 4, TensorShape([None, 4]))
    assert [1] + s == TensorShape([1, 2, None, 4])  # noqa: RUF005
    assert s + [1] == TensorShape([2, None, 4, 1])  # noqa: RUF005
    assert s + None == UNKNOWN
    assert s == [2, None, 4]
    assert s != [2, None]
    assert s != "abc"
    assert s.num_elements() is None
    assert TensorShape([2, 3]).num_elements() == 6
    assert SCALAR.num_elements() == 1


def test_unknown_rank():
    assert (UNKNOWN.rank, UNKNOWN[0], UNKNOWN[1:], UNKNOWN.num_elements()) == (None, None, UNKNOWN, None)
    assert not UNKNOWN
    assert SCALAR
    assert str(UNKNOWN) == "<unknown>"
    for ask in (len, list, TensorShape.as_list):
        with pytest.raises(ValueError, match=r"unknown"):
            ask(UNKNOWN)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: TensorShape([2]).assert_has_rank(1.0 + 1), "rank"),
        (lambda: TensorShape([2]).with_rank(2), r"\(2,\) must have rank 2"),
        (lambda: TensorShape([2]).assert_is_compatible_with([3]), r"\(2,\) and \(3,\) are incompatible"),
        (lambda: TensorShape([None]).assert_is_fully_defined(), "not fully defined"),
    ],
)
def test_assertions(ask, words):
    with pytest.raises(ValueError, match=words):
        ask()


def test_with_rank():
    assert UNKNOWN.with_rank(2) == [None, None]
    assert TensorShape([2]).with_rank(1) == [2]


def test_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        SCALAR.dims = (1,)


def test_bounds_on_the_rank():
    assert TensorShape([2, 3]).with_rank_at_least(2).with_rank_at_most(2) == [2, 3]
    assert TensorShape(None).with_rank_at_least(5).rank is None
    with pytest.raises(ValueError, match="at least 3"):
        TensorShape([2, 3]).with_rank_at_least(3)
    with pytest.raises(ValueError, match="at most 1"):
        TensorShape([2, 3]).with_rank_at_most(1)
