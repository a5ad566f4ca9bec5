"""Which arguments share a trace, and the protocol by which objects say so themselves."""

import collections
import dataclasses
import enum
import gc
import weakref

import numpy as np
import pytest


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


Point = collections.namedtuple("Point", "x y")


def count(tf, calls, **options):
    """How many traces these calls make, each a tuple of arguments."""
    traced = []

    @tf.function(autograph=False, **options)
    def f(*args, **kwargs):
        traced.append(1)
        return tf.constant(0)

    for call in calls:
        f(*call)
    return len(traced)


def tensors(tf):
    return tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.constant([1.0]), tf.constant([1, 2])


def test_tensors_by_dtype_and_shape(tf):
    a, b, short, whole = tensors(tf)
    assert count(tf, [(a,), (b,)]) == 1
    assert count(tf, [(a,), (short,), (whole,)]) == 3
    assert count(tf, [(np.ones(2, "float32"),), (a,), (np.zeros(2, "float32"),)]) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [(3, 4), ("a", "b"), (b"a", "a"), (None, 0), (Colour.RED, Colour.BLUE), (int, float), (len, abs), (1.5, 2.5)],
    ids=repr,
)
def test_python_values_are_literals(tf, one, other):
    assert count(tf, [(one,), (other,), (one,), (other,)]) == 2


@pytest.mark.ours
def test_equal_literals_of_other_types_are_others(tf):
    assert count(tf, [(1,), (True,), (1.0,)]) == 3
    assert count(tf, [(0.0,), (-0.0,), (0.0,), (-0.0,)]) == 2
    assert count(tf, [(float("nan"),), (float("nan"),)]) == 1


def test_containers_recurse(tf):
    a, b, short, _ = tensors(tf)
    assert count(tf, [([a, 1],), ([b, 1],), ([a, 2],), ((a, 1),)]) == 3
    assert count(tf, [({"p": a, "q": 1},), ({"q": 1, "p": b},)]) == 1
    assert count(tf, [({1: 2, 3: 4},), ({3: 4, 1: 2},), ({1: 2, 3: 5},)]) == 2
    assert count(tf, [(Point(a, 1),), (Point(b, 1),), (Point(short, 1),)]) == 2


@pytest.mark.ours
def test_dataclasses_recurse(tf):
    @dataclasses.dataclass
    class Pair:
        left: object
        right: object

    @tf.function
    def total(pair):
        assert isinstance(pair, Pair)
        return pair.left + pair.right

    assert total(Pair(tf.constant(1), tf.constant(2))).numpy() == 3
    assert total(Pair(tf.constant(3), tf.constant(4))).numpy() == 7
    assert total.experimental_get_tracing_count() == 1
    assert total(Pair(tf.constant(3), 4)).numpy() == 7
    assert total.experimental_get_tracing_count() == 2


def test_attrs_classes_recurse(tf):
    attr = pytest.importorskip("attr")

    @attr.s
    class Pair:
        left = attr.ib()
        right = attr.ib()

    a, b, short, _ = tensors(tf)
    assert count(tf, [(Pair(a, 1),), (Pair(b, 1),), (Pair(short, 1),)]) == 2


@pytest.mark.ours  # TensorFlow shares the trace, and then `x + v * 100` reads the wrong variable
def test_variables_by_identity(tf):
    v, w = tf.Variable(1.0), tf.Variable(10.0)

    @tf.function
    def f(x):
        return x + v * 100.0

    assert f(v).numpy() == 101.0
    assert f(w).numpy() == 110.0
    assert f(v).numpy() == 101.0
    assert f.experimental_get_tracing_count() == 2


def test_one_variable_twice_is_not_two(tf):
    v, w = tf.Variable(1.0), tf.Variable(10.0)

    @tf.function
    def f(x, y):
        x.assign_add(1.0)
        return y * 1.0

    assert f(v, w).numpy() == 10.0
    assert f(v, v).numpy() == 3.0
    assert f(w, v).numpy() == 3.0
    assert f.experimental_get_tracing_count() >= 2


def test_objects_match_by_equality_while_they_live(tf):
    class Plain:
        pass

    class Same:
        def __eq__(self, other):
            return type(other) is Same

        def __hash__(self):
            return 7

    one, two = Plain(), Plain()
    assert count(tf, [(one,), (two,), (one,)]) == 2
    first, second = Same(), Same()
    assert count(tf, [(first,), (second,)]) == 1
    traced = []

    @tf.function
    def f(x):
        traced.append(1)

    for _ in range(3):
        f(Same())  # dead before the next call
        gc.collect()
    assert len(traced) == 3


def test_what_cannot_be_distinguished_is_refused(tf):
    for value in ({1}, bytearray(b"1"), weakref.ref(Colour)):
        with pytest.raises(TypeError):
            tf.function(lambda x: None)(value)


def fruits(tf):
    class FruitType(tf.types.experimental.TraceType):
        def __init__(self, kind, value):
            self.kind, self.value = kind, value

        def is_subtype_of(self, other):
            return type(other) is FruitType and issubclass(self.kind, other.kind)

        def most_specific_common_supertype(self, others):
            return self if all(self == o for o in others) else None

        def placeholder_value(self, context):
            return self.value

        def __eq__(self, other):
            return type(other) is FruitType and self.kind is other.kind

        def __hash__(self):
            return hash(self.kind)

    class Fruit:
        taste = 1

        def __tf_tracing_type__(self, context):
            return FruitType(type(self), self)

    class Apple(Fruit):
        taste = 2

    class Cox(Apple):
        taste = 3

    return Fruit, Apple, Cox


def test_a_type_of_ones_own(tf):
    Fruit, Apple, Cox = fruits(tf)
    assert count(tf, [(Apple(),), (Apple(),)]) == 1
    assert count(tf, [(Fruit(),), (Apple(),), (Cox(),)]) == 1
    assert count(tf, [(Cox(),), (Apple(),), (Fruit(),)]) == 3


def test_the_most_specific_trace_serves(tf):
    Fruit, Apple, Cox = fruits(tf)
    f = tf.function(lambda x: tf.constant(x.taste))
    assert f(Apple()).numpy() == 2
    assert f(Fruit()).numpy() == 1
    assert f(Cox()).numpy() == 2  # of Fruit's and Apple's, Apple's


def test_shapes_known_and_unknown(tf):
    traced = []

    @tf.function
    def f(x):
        traced.append(x.shape.rank is None or list(x.shape))
        return tf.shape(x)

    f.get_concrete_function(tf.TensorSpec(None, tf.float32))
    f.get_concrete_function(tf.TensorSpec([None, None], tf.float32))
    f.get_concrete_function(tf.TensorSpec([1, None], tf.float32))
    assert len(traced) <= 3
    before = len(traced)
    assert f(tf.ones([1, 2])).numpy().tolist() == [1, 2]
    assert f(tf.ones([3])).numpy().tolist() == [3]
    assert len(traced) == before


def test_names_of_types(tf):
    kinds = tf.types.experimental
    f = tf.function(lambda x: x)
    assert isinstance(f, kinds.PolymorphicFunction)
    concrete = f.get_concrete_function(tf.constant(1))
    assert isinstance(concrete, kinds.ConcreteFunction)
    assert isinstance(concrete.function_type, kinds.FunctionType)
    assert list(concrete.function_type.parameters) == ["x"]
    assert issubclass(tf.TypeSpec, kinds.TraceType)
    assert issubclass(tf.TensorSpec, tf.TypeSpec)

    class Speaks:
        def __tf_tracing_type__(self, context):
            return None

    assert isinstance(Speaks(), kinds.SupportsTracingProtocol)
    assert not isinstance(object(), kinds.SupportsTracingProtocol)
