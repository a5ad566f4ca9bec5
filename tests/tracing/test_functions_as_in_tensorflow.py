"""Test behaviour that TensorFlow's own tests rely on: arguments, names, containers, static shapes, errors."""

import collections
import dataclasses

import numpy as np
import pytest


@dataclasses.dataclass
class Tagged:
    """Metadata that is not hashable, and `__tf_unflatten__` as a classmethod."""

    tags: object
    x: object

    def __tf_flatten__(self):
        return (self.tags,), (self.x,)

    @classmethod
    def __tf_unflatten__(cls, metadata, leaves):
        return cls(metadata[0], leaves[0])


@dataclasses.dataclass
class Plain:
    """`__tf_unflatten__` as a plain method."""

    x: object

    def __tf_flatten__(self):
        return (), (self.x,)

    def __tf_unflatten__(self, metadata, leaves):
        return Plain(leaves[0])


METADATA = {
    "list": ([1, 2], [1, 2, 3]),
    "dict": ({"a": 1}, {"a": 2}),
    "nested": ([{"a": [1]}], [{"a": [2]}]),
    "array": (np.array([1, 2]), np.array([1, 3])),
    "set": ({1, 2}, {1, 3}),
}


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.ours] if k == "array" else []) for k in METADATA])
def test_metadata_of_an_argument_need_not_be_hashable(tf, kind):
    one, other = METADATA[kind]
    f = tf.function(lambda m: m.x * 2.0)
    for tags in (one, type(one)(one) if not isinstance(one, np.ndarray) else one.copy(), other, one):
        assert float(f(Tagged(tags, tf.constant(3.0)))) == 6.0
    assert f.experimental_get_tracing_count() == 2


def test_unflatten_as_a_plain_method(tf):
    assert float(tf.nest.map_structure(lambda v: v * 2.0, Plain(tf.constant(3.0))).x) == 6.0
    dataset = tf.data.Dataset.from_tensors(Plain(tf.constant(3.0))).map(lambda p: Plain(p.x + 1.0))
    assert [float(p.x) for p in dataset] == [4.0]


def test_namedtuple_classes_of_one_name_and_fields_are_one_type(tf):
    one, other, third = (collections.namedtuple("P", fields) for fields in ("a b", "a b", "a c"))
    f = tf.function(lambda p: p.a)
    for cls in (one, other, one):
        assert int(f(cls(tf.constant(1), tf.constant(2)))) == 1
    assert f.experimental_get_tracing_count() == 1
    f(third(tf.constant(1), tf.constant(2)))
    assert f.experimental_get_tracing_count() == 2


def spec(tf, name=None):
    """Return the spec of one float tensor of unknown shape."""
    return tf.TensorSpec(None, tf.float32, name)


KEYWORDS = {
    "of a spec": (lambda tf: tf.function(lambda x: x).get_concrete_function(spec(tf, "y")), {"y": 3.0}, 3.0),
    "of the parameter": (lambda tf: tf.function(lambda x: x).get_concrete_function(spec(tf, "y")), {"x": 3.0}, 3.0),
    "of parts": (
        lambda tf: tf.function(lambda a: a["u"] - a["v"]).get_concrete_function(
            {"u": spec(tf, "p"), "v": spec(tf, "q")}
        ),
        {"q": 3.0, "p": 5.0},
        2.0,
    ),
    "of parts without": (
        lambda tf: tf.function(lambda a: a[0] - a[1]).get_concrete_function([spec(tf), spec(tf)]),
        {"a_1": 3.0, "a": 5.0},
        2.0,
    ),
    "crossed": (
        lambda tf: tf.function(lambda a, b: a - b).get_concrete_function(spec(tf, "b"), spec(tf, "a")),
        {"a": 3.0, "b": 5.0},
        -2.0,
    ),
    "of a signature": (
        lambda tf: tf.function(lambda x: x, input_signature=[spec(tf, "y")]).get_concrete_function(),
        {"y": 3.0},
        3.0,
    ),
    "beside a number": (
        lambda tf: tf.function(lambda x, k: x * k).get_concrete_function(spec(tf, "y"), 2.0),
        {"y": 3.0},
        6.0,
    ),
}


@pytest.mark.parametrize("case", KEYWORDS)
def test_concrete_functions_take_the_names_of_their_tensors(tf, case):
    make, keywords, expected = KEYWORDS[case]
    assert float(make(tf)(**{k: tf.constant(v) for k, v in keywords.items()})) == expected


def test_not_of_a_vector_is_element_by_element(tf):
    @tf.function
    def f(x):
        return not x

    assert f(tf.constant([True, False])).numpy().tolist() == [False, True]
    assert bool(f(tf.constant(False)))
    with pytest.raises((TypeError, ValueError)):
        f(tf.constant([1, 0]))


def test_text_that_changes_in_a_loop_is_a_string_tensor(tf):
    @tf.function
    def appended(n):
        s, mode = "", "a"
        while n > 0:
            s = s + mode
            n -= 1
        return s

    @tf.function
    def numbers(n):
        s = ["", 0]
        for i in tf.range(n):
            s = [s[0] + tf.strings.as_string(i), s[1] + 1]
        return s

    assert [appended(tf.constant(n)).numpy() for n in (0, 3)] == [b"", b"aaa"]
    text, count = numbers(tf.constant(3))
    assert text.numpy() == b"012"
    assert int(count) == 3


@pytest.mark.parametrize("kind", [list, tuple])
def test_an_eager_loop_returns_the_container_of_its_body(tf, kind):
    first = (tuple if kind is list else list)([tf.constant(0), tf.constant(0)])
    result = tf.while_loop(lambda i, j: i < 3, lambda i, j: kind([i + 1, j + i]), first)
    assert type(result) is kind
    assert [int(x) for x in result] == [3, 3]
    assert type(tf.while_loop(lambda i, j: i < 0, lambda i, j: kind([i, j]), first)) is type(first)


BRANCHES = {
    "float key": lambda tf: {1.0: lambda: 1, 0: lambda: 0},
    "text key": lambda tf: {"a": lambda: 1},
    "float in a pair": lambda tf: [(1, lambda: 1), (0.0, lambda: 2)],
}


@pytest.mark.parametrize("case", BRANCHES)
def test_keys_of_switch_case_are_ints(tf, case):
    with pytest.raises(TypeError, match="int"):
        tf.switch_case(tf.constant(1), BRANCHES[case](tf))


def test_a_constraint_is_callable(tf):
    with pytest.raises(ValueError, match="constraint"):
        tf.Variable(1.0, constraint=0)


class Masked:
    """Made by `masked`: a TypeSpec with an array in its serialization."""


def masked(tf, mask):
    class MaskSpec(tf.TypeSpec):
        def __init__(self, mask):
            self.mask = mask

        value_type = property(lambda self: Masked)
        _component_specs = property(lambda self: ())

        def _to_components(self, value):
            return ()

        def _from_components(self, components):
            return Masked()

        def _serialize(self):
            return (self.mask,)

    return [MaskSpec(m) for m in mask]


@pytest.mark.ours  # TensorFlow: the truth value of an array is ambiguous
def test_type_specs_with_arrays_compare_by_their_elements(tf):
    a, b, c, d = masked(tf, [np.array([1, 2]), np.array([1, 2]), np.array([1, 3]), np.array([1.0, 2.0])])
    assert a == b
    assert hash(a) == hash(b)
    for other in (c, d):
        assert a != other
        assert not a.is_compatible_with(other)
        assert not a.is_subtype_of(other)
        assert a.most_specific_common_supertype([other]) is None
    assert a.is_subtype_of(b)
    assert a.most_specific_common_supertype([b]) == a


# ---- custom gradients -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["behind", "before"])
@pytest.mark.parametrize("traced", [False, True])
def test_a_gradient_that_nothing_needs_is_not_computed(tf, place, traced):
    calls = []

    @tf.custom_gradient
    def double(x):
        def grad(dy):
            calls.append(1)
            return dy * 2.0

        return x * 2.0, grad

    def derivative(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = (double(tf.stop_gradient(x)) if place == "behind" else tf.stop_gradient(double(x))) + x
        return tape.gradient(y, x)

    assert float((tf.function(derivative) if traced else derivative)(tf.constant(3.0))) == 1.0
    assert not calls


# ---- static shapes --------------------------------------------------------------------------------------------------


def test_reshape_knows_the_size_left_open_where_the_others_are_known(tf):
    f = tf.function(lambda x: tf.reshape(x, tf.concat([tf.shape(x)[:1], [-1]], 0)))
    assert tuple(f.get_concrete_function(tf.TensorSpec([2, 3, 4])).output_shapes) == (2, 12)
    assert tuple(f.get_concrete_function(tf.TensorSpec([2, None])).output_shapes) == (2, None)


@pytest.mark.parametrize(("size", "wanted"), [((10, 10, 3), (100, 3)), ((None, 10, 3), (None, 3))])
def test_a_function_called_in_another_has_the_shapes_of_its_arguments(tf, size, wanted):
    inner = tf.function(lambda a: tf.reshape(a * 2.0, [-1, 3]), input_signature=[tf.TensorSpec(None)])
    shapes = []

    @tf.function(input_signature=[tf.TensorSpec(size)])
    def outer(x):
        y = inner(x)
        shapes.append(tuple(y.shape))
        return y

    outer(tf.ones([10, 10, 3]))
    assert shapes == [wanted]


# ---- datasets -------------------------------------------------------------------------------------------------------


def test_prefetch_of_none_chooses(tf):
    assert list(tf.data.Dataset.range(3).prefetch(None).as_numpy_iterator()) == [0, 1, 2]


def test_keys_of_group_by_window_may_be_python_numbers(tf):
    grouped = tf.data.Dataset.range(4).group_by_window(lambda x: 0, lambda key, window: window.batch(2), window_size=2)
    assert [x.numpy().tolist() for x in grouped] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="int64"):
        tf.data.Dataset.range(4).group_by_window(
            lambda x: tf.constant(0, tf.int32), lambda key, window: window.batch(2), window_size=2
        )
