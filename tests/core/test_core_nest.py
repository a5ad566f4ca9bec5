"""`core.nest` against tf.nest's documented behaviour: tables of structures and errors, and round trips of any shape."""

import collections
import dataclasses
import doctest
import types
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.core import nest

Point = collections.namedtuple("Point", "x y")


class Pair(NamedTuple):
    left: Any
    right: Any


class MyList(list):
    pass


class MyTuple(tuple):
    __slots__ = ()


@dataclasses.dataclass
class Opaque:
    a: Any
    b: Any


@dataclasses.dataclass
class Masked:
    """Takes part in nesting by TensorFlow's protocol: `mask` is metadata, `value` has the leaves."""

    mask: bool
    value: Any

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], components[0])


class AttrsLike:
    """Has what attrs gives a class; the library is no dependency.  `b` before `a`: order of definition counts."""

    __attrs_attrs__ = (
        types.SimpleNamespace(name="b", init=True, alias="b"),
        types.SimpleNamespace(name="_a", init=True, alias="a"),
        types.SimpleNamespace(name="c", init=False, alias="c"),
    )

    def __init__(self, *, b, a):
        self.b, self._a, self.c = b, a, None

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __repr__(self):
        return f"AttrsLike{tuple(vars(self).values())}"

    __hash__ = None


def attrs_like(b, a, c):
    new = AttrsLike(b=b, a=a)
    new.c = c
    return new


class Sparse:
    def __init__(self, values, indices):
        self.values, self.indices = values, indices


class SparseChild(Sparse):
    pass


@pytest.fixture(autouse=True, scope="module")
def _composites():
    nest.register_composite(Sparse, lambda s: [s.values, s.indices], lambda s, parts: type(s)(*parts))


FLAT = [  # structure, its leaves
    (5, [5]),
    (None, [None]),
    ("text", ["text"]),
    (b"bytes", [b"bytes"]),
    ([], []),
    ((), []),
    ({}, []),
    ([1, (2, [3]), None], [1, 2, 3, None]),
    ({"b": 1, "a": 2}, [2, 1]),
    ({10: "ten", 9: "nine"}, ["nine", "ten"]),
    (collections.OrderedDict([("b", 1), ("a", 2)]), [2, 1]),
    (types.MappingProxyType({"b": 1, "a": 2}), [2, 1]),
    (Point(1, [2, 3]), [1, 2, 3]),
    (Pair({"z": 1, "y": 2}, ()), [2, 1]),
    (collections.deque([1, 2]), [1, 2]),
    (range(3), [0, 1, 2]),
    ({"b": 1, "a": 2}.values(), [1, 2]),
    (Masked(True, [1, 2]), [1, 2]),
    (attrs_like(1, 2, 3), [1, 2, 3]),
]


@pytest.mark.parametrize(("structure", "leaves"), FLAT, ids=repr)
def test_flatten(structure, leaves):
    assert nest.flatten(structure) == leaves
    assert [leaf for _, leaf in nest.flatten_with_paths(structure)] == leaves


@pytest.mark.parametrize("leaf", [Opaque(1, 2), {1, 2}, frozenset(), bytearray(b"ab"), memoryview(b"ab"), object()])
def test_leaves(leaf):
    assert not nest.is_nested(leaf)
    assert nest.flatten([leaf])[0] is leaf


@pytest.mark.parametrize("structure", [[], (), {}, Point(1, 2), range(2), {}.values(), Masked(True, 1)])
def test_nested_even_when_empty(structure):
    assert nest.is_nested(structure)


PACKED = [  # structure, new leaves, result; type and key order are compared too
    (5, [1], 1),
    ({"b": 1, "a": 2}, [1, 2], {"b": 2, "a": 1}),
    (collections.OrderedDict([("b", 1), ("a", 2)]), [1, 2], collections.OrderedDict([("b", 2), ("a", 1)])),
    (collections.defaultdict(list, {"b": 1}), [2], collections.defaultdict(list, {"b": 2})),
    (collections.UserDict({"b": 1, "a": 2}), [1, 2], collections.UserDict({"b": 2, "a": 1})),
    (types.MappingProxyType({"b": 1, "a": 2}), [1, 2], types.MappingProxyType({"b": 2, "a": 1})),
    (Point(1, 2), [3, 4], Point(3, 4)),
    (MyList([1]), [2], MyList([2])),
    (MyTuple([1]), [2], MyTuple([2])),
    (collections.deque([1]), [2], collections.deque([2])),
    (range(2), [5, 6], [5, 6]),
    (Masked(True, [1, 2]), (7, 8), Masked(True, [7, 8])),
    (attrs_like(1, 2, 3), [4, 5, 6], attrs_like(4, 5, 6)),
]


@pytest.mark.parametrize(("structure", "leaves", "packed"), PACKED, ids=repr)
def test_pack(structure, leaves, packed):
    result = nest.pack_sequence_as(structure, leaves)
    assert result == packed
    assert type(result) is type(packed)
    if hasattr(packed, "keys"):
        assert list(result) == list(packed)


def test_default_factory_is_kept():
    assert nest.map_structure(str, collections.defaultdict(list, a=1)).default_factory is list


def test_paths():
    structure = {"b": [1, Point(2, 3)], "a": (4,), "c": attrs_like(5, 6, 7)}
    paths = [path for path, _ in nest.flatten_with_paths(structure)]
    assert paths == [("a", 0), ("b", 0), ("b", 1, "x"), ("b", 1, "y"), ("c", "b"), ("c", "_a"), ("c", "c")]
    assert [nest.path_text(path) for path in paths][2:5] == ["['b'][1].x", "['b'][1].y", "['c'].b"]
    assert nest.flatten_with_paths(7) == [((), 7)]


def test_composites_are_leaves_until_asked():
    sparse = SparseChild(1, [2, 3])  # registered through its base
    assert not nest.is_nested(sparse)
    assert nest.flatten([sparse]) == [sparse]
    assert nest.flatten([sparse], expand_composites=True) == [1, 2, 3]
    doubled = nest.map_structure(lambda x: 2 * x, [sparse], expand_composites=True)[0]
    assert (type(doubled), doubled.values, doubled.indices) == (SparseChild, 2, [4, 6])


def test_map_structure_calls_in_flattening_order_and_keeps_the_first_form():
    calls = []
    nest.map_structure(calls.append, {"b": 1, "a": 2})
    assert calls == [2, 1]
    pairs = nest.map_structure(lambda x, y: (x, y), {"b": 1, "a": 2}, collections.OrderedDict(a=3, b=4))
    assert pairs == {"b": (1, 4), "a": (2, 3)}
    assert nest.map_structure(lambda x, y: x + y, [1, 2], (10, 20), check_types=False) == [11, 22]
    assert nest.map_structure(lambda x, y: (x, y), {"a": 1}, {"z": 2}, check_types=False) == {"a": (1, 2)}


ALIKE = [
    ([1], ["x"]),
    ([None], [1]),
    (MyList([1]), [1]),
    (collections.OrderedDict(a=1), {"a": 2}),
    (collections.UserDict(a=1), {"a": 2}),
    (Point(1, 2), collections.namedtuple("Point", "x y")(3, 4)),
    (Masked(True, 1), Masked(False, 1)),
]


@pytest.mark.parametrize(("first", "second"), ALIKE, ids=repr)
def test_same_structure(first, second):
    nest.assert_same_structure(first, second)
    nest.assert_same_structure(second, first)


DIFFERENT = [  # first, second, error, what it says, whether check_types=False lets it pass
    ([1], [1, 2], ValueError, "differ: 1 parts and 2", False),
    ([1], 2, ValueError, "first [.], second a leaf (int)", False),
    ([None], [[1]], ValueError, "differ at [0]: one is a leaf", False),
    ([1, {"a": (1, 2)}], [1, {"a": (1, [2])}], ValueError, "at [1]['a'][1]: one is a leaf", False),
    ([1, {"a": (1, 2)}], [1, {"a": (1, [2])}], ValueError, "second [.] in [., {'a': (., [.])}]", False),
    ([1], (1,), TypeError, "first list, second tuple", True),
    ({"a": [1]}, {"a": (1,)}, TypeError, "differ at ['a']: their types do", True),
    (Point(1, [2]), Point(1, (2,)), TypeError, "differ at .y:", True),
    ({"a": 1}, {"b": 1}, ValueError, "first {'a'}, second {'b'}", True),
    (Point(1, 2), Pair(1, 2), TypeError, "Point(x, y), second Pair(left, right)", True),
    (Point(1, 2), (1, 2), TypeError, "Point(x, y), second tuple", True),
    (MyTuple([1]), (1,), TypeError, "MyTuple", True),
    (Masked(True, 1), [1], TypeError, "Masked", True),
    ([1], {"a": 1}, TypeError, "first list, second dict", True),
    ([{"a": 1}, {1: 2, "b": 3}], [{"a": 1}, {1: 2, "b": 3}], TypeError, "keys of the dict at [1] cannot", False),
    ({1: 2, "b": 3}, {}, TypeError, "keys of the dict cannot be sorted", False),
]


@pytest.mark.parametrize(("first", "second", "error", "says", "passes_untyped"), DIFFERENT, ids=repr)
def test_different_structures(first, second, error, says, passes_untyped):
    for check in (nest.assert_same_structure, lambda a, b: nest.map_structure(lambda x, y: x, a, b)):
        with pytest.raises(error) as caught:
            check(first, second)
        assert says in str(caught.value)
    if passes_untyped:
        nest.assert_same_structure(first, second, check_types=False)
    else:
        with pytest.raises(error):
            nest.assert_same_structure(first, second, check_types=False)


MISUSE = [  # call, error, what it says
    (lambda: nest.flatten([3, {"k": {1: 1, "a": 2}}]), TypeError, "dict at [1]['k'] cannot be sorted"),
    (lambda: nest.flatten({1: 1, "a": 2}), TypeError, "keys of type int, str"),
    (lambda: nest.flatten_with_paths([{1: 1, None: 2}]), TypeError, "dict at [0] cannot be sorted"),
    (lambda: nest.pack_sequence_as([1, [2]], [1, 2, 3]), ValueError, "2 in [., [.]], 3 in flat_sequence"),
    (lambda: nest.pack_sequence_as(5, [1, 2]), ValueError, "1 in ., 2 in flat_sequence"),
    (lambda: nest.pack_sequence_as([5], 3), TypeError, "found   int"),
    (lambda: nest.pack_sequence_as("ab", "ab"), TypeError, "found   str"),
    (lambda: nest.pack_sequence_as(memoryview(b"ab"), {1: 2}), TypeError, "found   dict"),
    (lambda: nest.map_structure(len), ValueError, "no structure"),
    (lambda: nest.map_structure(3, [1]), TypeError, "found   a int"),
    (lambda: nest.map_structure(len, [1], depth=1), ValueError, "found   depth"),
]


@pytest.mark.parametrize(("call", "error", "says"), MISUSE)
def test_misuse(call, error, says):
    with pytest.raises(error) as caught:
        call()
    assert says in str(caught.value)


def test_type_that_cannot_be_rebuilt():
    class Stubborn(list):
        def __init__(self):
            super().__init__([1])

    assert nest.flatten(Stubborn()) == [1]
    with pytest.raises(TypeError, match="Stubborn cannot be constructed from its new parts"):
        nest.pack_sequence_as(Stubborn(), [2])


def test_error_text_of_a_large_structure_is_short():
    with pytest.raises(ValueError, match=r"1000 parts and 999") as caught:
        nest.assert_same_structure(list(range(1000)), list(range(999)))
    assert len(str(caught.value)) < 800


keys = st.one_of(st.text("abcd", max_size=2), st.just("z"))
structures = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4).map(collections.OrderedDict),
        st.builds(Point, inner, inner),
        st.builds(Masked, st.booleans(), inner),
        st.builds(attrs_like, inner, inner, inner),
    ),
    max_leaves=25,
)


@given(structures)
def test_round_trip(structure):
    leaves = nest.flatten(structure)
    assert not any(nest.is_nested(leaf) for leaf in leaves)
    assert nest.pack_sequence_as(structure, leaves) == structure
    numbered = nest.pack_sequence_as(structure, range(len(leaves)))
    assert nest.flatten(numbered) == list(range(len(leaves)))
    nest.assert_same_structure(structure, numbered)


@given(structures)
def test_map_is_flatten_call_pack(structure):
    expected = nest.pack_sequence_as(structure, [repr(leaf) for leaf in nest.flatten(structure)])
    assert nest.map_structure(repr, structure) == expected


@given(structures)
def test_paths_lead_to_their_leaves(structure):
    for path, leaf in nest.flatten_with_paths(structure):
        node = structure
        for step in path:
            if isinstance(step, nest.Field):
                node = getattr(node, step)
            else:
                node = node.value if isinstance(node, Masked) else node[step]
        assert node is leaf


@given(structures, structures)
def test_any_two_structures_agree_or_give_a_public_error(first, second):
    try:
        nest.assert_same_structure(first, second)
    except (ValueError, TypeError) as error:
        assert "structures differ" in str(error)  # noqa: PT017 - agreement is a fine outcome as well
    else:
        assert len(nest.flatten(first)) == len(nest.flatten(second))


def test_examples_in_docstrings():
    assert doctest.testmod(nest).failed == 0
