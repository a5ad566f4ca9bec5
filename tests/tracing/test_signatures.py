"""input_signature, binding of arguments, concrete functions: what fits, what is said of what does not."""

import copy
import functools
import inspect
import pickle
import threading

import numpy as np
import pytest


def test_one_trace_for_all_that_fits(tf):
    traced = []

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def f(x):
        traced.append(x.shape.as_list())
        return x * 2

    assert f(tf.constant([1, 2])).numpy().tolist() == [2, 4]
    assert f([1, 2, 3]).numpy().tolist() == [2, 4, 6]
    assert f(np.array([5], "int32")).numpy().tolist() == [10]
    assert f(x=tf.constant([7])).numpy().tolist() == [14]
    assert traced == [[None]]


@pytest.mark.parametrize("value", [[[1, 2]], [1.5], "text"], ids=str)
def test_what_does_not_fit_an_input_signature(tf, value):
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([None], tf.int32)])
    with pytest.raises((TypeError, ValueError)):
        f(tf.constant(value))


@pytest.mark.ours
def test_the_error_names_both(tf):
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([None], tf.int32)])
    with pytest.raises(ValueError, match=r"(?s)argument x.*shape=\(1, 1\).*shape=\(None,\)"):
        f(tf.constant([[1]]))
    with pytest.raises(ValueError, match=r"(?s)float32.*int32"):
        f(tf.constant([1.0]))


def test_signatures_that_do_not_fit_the_parameters(tf):
    scalar = tf.TensorSpec([])
    with pytest.raises(TypeError, match="extra"):
        tf.function(lambda x: x, input_signature=[scalar, scalar])
    with pytest.raises(TypeError, match="tuple or a list"):
        tf.function(lambda x: x, input_signature=scalar)
    with pytest.raises(TypeError):
        tf.function(lambda x: x, input_signature=[1])(1)
    with pytest.raises(TypeError):
        tf.function(lambda x, y: x, input_signature=[scalar])(1.0, 2.0)

    def keyword_only(x, *, y):
        return x + y

    with pytest.raises(TypeError):
        tf.function(keyword_only, input_signature=[scalar])(1.0, y=2.0)


def test_defaults_and_variable_arguments_under_a_signature(tf):
    scalar = tf.TensorSpec([])

    def with_default(x, y=3.0):
        return x + y

    f = tf.function(with_default, input_signature=[scalar])
    assert f(1.0).numpy() == 4.0
    assert f(1.0, 3.0).numpy() == 4.0
    with pytest.raises(TypeError):
        f(1.0, 4.0)

    def keyword_only(x, *, y=2.0):
        return x + y

    assert tf.function(keyword_only, input_signature=[scalar])(1.0).numpy() == 3.0

    def many(x, *rest):
        return x + sum(rest)

    f = tf.function(many, input_signature=[scalar] * 3)
    assert f(1.0, 2.0, 3.0).numpy() == 6.0
    with pytest.raises(TypeError):
        f(1.0, 2.0)


def test_nested_signatures(tf):
    spec = [{"a": tf.TensorSpec([None]), "b": (tf.TensorSpec([]), tf.TensorSpec([], tf.int32))}]
    f = tf.function(lambda d: tf.reduce_sum(d["a"]) * d["b"][0], input_signature=spec)
    assert f({"a": [1.0, 2.0], "b": (2.0, 3)}).numpy() == 6.0
    with pytest.raises((TypeError, ValueError)):
        f({"a": [1.0, 2.0]})


def test_arguments_by_any_way_of_calling_share_a_trace(tf):
    traced = []

    @tf.function
    def f(a, b=2, *, c=3):
        traced.append(1)
        return a * b + c

    one = tf.constant(1)
    for call in (lambda: f(one), lambda: f(one, 2), lambda: f(a=one), lambda: f(b=2, a=one), lambda: f(one, c=3)):
        assert call().numpy() == 5
    assert len(traced) == 1
    assert f(one, c=4).numpy() == 6
    assert len(traced) == 2


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1, 2), {"a": 1})], ids=str)
def test_calls_that_do_not_bind(tf, args, kwargs):
    def f(a, b):
        return a

    with pytest.raises(TypeError):
        tf.function(f)(*args, **kwargs)


# ---- concrete functions --------------------


def test_ways_to_call_a_concrete_function(tf):
    f = tf.function(lambda d, s: d["a"] * s + d["b"][0])
    concrete = f.get_concrete_function({"a": tf.TensorSpec([]), "b": [tf.TensorSpec([])]}, tf.TensorSpec([]))
    two, three, four = tf.constant(2.0), tf.constant(3.0), tf.constant(4.0)
    assert concrete({"a": two, "b": [three]}, four).numpy() == 11.0
    assert concrete(two, three, four).numpy() == 11.0  # flat
    assert concrete(d={"a": two, "b": [three]}, s=four).numpy() == 11.0
    with pytest.raises(TypeError):
        concrete(two)
    with pytest.raises(TypeError):
        concrete({"a": two, "b": [three]}, four, z=1)


def test_literals_are_bound(tf):
    def power(a, b):
        return a**b

    square = tf.function(power).get_concrete_function(a=tf.TensorSpec(None, tf.float32), b=2)
    assert square(tf.constant(10.0)).numpy() == 100.0
    assert square(tf.constant([3.0]), b=2).numpy().tolist() == [9.0]
    assert square(tf.constant([3.0]), 2).numpy().tolist() == [9.0]
    with pytest.raises(TypeError):
        square(tf.constant(10.0), b=3)


@pytest.mark.ours  # the document's words
def test_the_words_for_another_literal(tf):
    @tf.function
    def pow(a, b):
        return a**b

    square = pow.get_concrete_function(a=tf.TensorSpec(None, tf.float32), b=2)
    words = r"ConcreteFunction pow\(a, b\) was constructed with int value 2 in b, but was called with int value 3\."
    with pytest.raises(TypeError, match=words):
        square(tf.constant(10.0), b=3)


@pytest.mark.ours  # TensorFlow of today wants the object again
def test_objects_bound_when_traced_may_be_left_out(tf):
    class Model:
        scale = 2.0

    model = Model()
    concrete = tf.function(lambda m, x: x * m.scale).get_concrete_function(model, tf.constant(1.0))
    assert concrete(tf.constant(3.0)).numpy() == 6.0
    assert concrete(model, tf.constant(3.0)).numpy() == 6.0
    with pytest.raises(TypeError):
        concrete(Model(), tf.constant(3.0))


def test_wrong_dtype_on_a_concrete_function(tf):
    concrete = tf.function(lambda a: a).get_concrete_function(tf.TensorSpec([], tf.string))
    with pytest.raises(tf.errors.InvalidArgumentError, match="string"):
        concrete(tf.constant(1))


@pytest.mark.ours  # the document's layout; TensorFlow of today prints another
def test_printing(tf):
    @tf.function
    def f(x, y, n=3):
        return {"sum": x["a"] + y, "n": y}

    concrete = f.get_concrete_function({"a": tf.TensorSpec([2])}, tf.TensorSpec([]))
    assert str(concrete) == (
        "ConcreteFunction f(x, y, n=3)\n"
        "  Args:\n"
        "    x: {'a': <1>}\n"
        "      <1>: float32 Tensor, shape=(2,)\n"
        "    y: float32 Tensor, shape=()\n"
        "  Returns:\n"
        "    {'n': <1>, 'sum': <2>}\n"
        "      <1>: float32 Tensor, shape=()\n"
        "      <2>: float32 Tensor, shape=(2,)"
    )
    assert f.pretty_printed_concrete_signatures() == str(concrete).removeprefix("ConcreteFunction ")
    assert concrete.pretty_printed_signature(verbose=False) == "f(x, y, n=3)"


def test_structured_signature(tf):
    f = tf.function(lambda d, n: d["a"] + d["b"][0])
    concrete = f.get_concrete_function({"a": tf.TensorSpec([]), "b": [tf.TensorSpec([])]}, 3)
    args, kwargs = concrete.structured_input_signature
    assert args[0]["a"] == tf.TensorSpec([], name="d_a")
    assert args[0]["b"][0] == tf.TensorSpec([], name="d_b_0")
    assert args[1] == 3
    assert kwargs == {}


# ---- what functions are made of --------------------


def subtract(a, b, c=1):
    return a - b - c


class Callable:
    def __call__(self, x):
        return x + 1


def test_callables_of_every_kind(tf):
    one = tf.constant(1)
    assert tf.function(functools.partial(subtract, 5, c=2))(one).numpy() == 2
    assert tf.function(Callable())(one).numpy() == 2
    assert tf.function(lambda x: x + 1)(one).numpy() == 2

    class P:
        k = 10

        @tf.function
        def method(self, x):
            return x + self.k

        @staticmethod
        @tf.function
        def static(x):
            return x + 2

        @classmethod
        @tf.function
        def of_class(cls, x):
            return x + cls.k

    p = P()
    assert p.method(one).numpy() == 11
    assert P.method(p, one).numpy() == 11
    assert P.static(one).numpy() == p.static(one).numpy() == 3
    assert P.of_class(one).numpy() == 11
    bound = tf.function(p.method.python_function if hasattr(p.method, "python_function") else p.method)
    assert bound is not None
    assert inspect.signature(tf.function(subtract)) == inspect.signature(subtract)
    assert tf.function(subtract).__name__ == "subtract"
    assert tf.function(subtract).__wrapped__ is subtract


@pytest.mark.ours  # TensorFlow cannot copy a function that was called
def test_copies_have_traces_of_their_own(tf):
    f = tf.function(subtract)
    f(tf.constant(1), 2)
    g = copy.deepcopy(f)
    assert g.experimental_get_tracing_count() == 0
    assert g(tf.constant(5), 2).numpy() == 2


@pytest.mark.ours
def test_pickles(tf):
    f = pickle.loads(pickle.dumps(tf.function(subtract)))
    assert f(tf.constant(5), 2).numpy() == 2
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(tf.function(lambda x: x))


def test_two_threads_trace_once(tf):
    traced, results = [], []

    @tf.function
    def f(x):
        traced.append(1)
        return x + 1

    start = threading.Barrier(4)

    def work():
        start.wait()
        results.append(f(tf.constant(1)).numpy())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [2] * 4
    assert len(traced) == 1


def test_no_compiler_ir(tf):
    with pytest.raises(ValueError, match="jit_compile"):
        tf.function(lambda x: x).experimental_get_compiler_ir(tf.constant(1))()


def test_run_functions_eagerly(tf):
    seen = []

    @tf.function
    def f(x):
        seen.append(tf.executing_eagerly())
        return x

    tf.config.run_functions_eagerly(True)
    try:
        f(tf.constant(1))
        f(tf.constant(1))
    finally:
        tf.config.run_functions_eagerly(False)
    f(tf.constant(1))
    f(tf.constant(1))
    assert seen == [True, True, False]


def test_results_of_every_kind(tf):
    out = tf.function(lambda: [1, None, (2.0, {"a": "text"})])()
    assert out[0].numpy() == 1
    assert out[1] is None
    assert out[2][1]["a"].numpy() == b"text"
    for bad in (lambda: object(), lambda: {1}):
        with pytest.raises(TypeError, match="found return value of type"):
            tf.function(bad, autograph=False)()
