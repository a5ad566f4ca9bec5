"""reduce_retracing, and the warning of functions that are traced again and again."""

import logging

import pytest

from opwright.frontends.importing import ImportedFunction


@pytest.fixture
def warned(tf):
    """The texts that the module under test logs meanwhile."""
    texts = []

    class Keep(logging.Handler):
        def emit(self, record):
            texts.append(record.getMessage())

    logger, handler = logging.getLogger(tf.__name__), Keep()
    logger.addHandler(handler)
    yield texts
    logger.removeHandler(handler)


def test_sizes_that_change_become_unknown(tf):
    shapes = []

    @tf.function(reduce_retracing=True)
    def f(x):
        shapes.append(x.shape.as_list() if x.shape.rank is not None else None)
        return tf.reduce_sum(x)

    for n in (1, 2, 3, 9):
        assert f(tf.ones([n])).numpy() == n
    assert shapes == [[1], [None]]
    assert f(tf.ones([2, 2])).numpy() == 4.0
    assert f(tf.ones([2, 3, 4])).numpy() == 24.0
    assert shapes == [[1], [None], None]


def test_only_what_changes_is_generalised(tf):
    shapes = []

    @tf.function(reduce_retracing=True)
    def f(d, k):
        shapes.append((d["x"].shape.as_list(), d["y"].shape.as_list(), k))
        return d["x"]

    for n in (1, 2, 3):
        f({"x": tf.ones([n, 5]), "y": tf.ones([4])}, "a")
    f({"x": tf.ones([7, 5]), "y": tf.ones([4])}, "b")
    assert shapes[:2] == [([1, 5], [4], "a"), ([None, 5], [4], "a")]
    assert shapes[2][2] == "b"
    assert len(shapes) == 3


def test_relaxed_shapes_is_the_old_name(tf):
    f = tf.function(lambda x: x, experimental_relax_shapes=True)
    for n in range(1, 6):
        f(tf.ones([n]))
    assert f.experimental_get_tracing_count() == 2


def test_five_traces_in_a_row_are_worth_a_warning(tf, warned):
    @tf.function
    def often(x, k):
        return x

    for k in range(8):
        often(tf.constant(1.0), k)
    result = [t for t in warned if "triggered tf.function retracing" in t]
    assert result
    assert "5 out of the last 5 calls to" in result[0]
    assert "often" in result[0]
    assert len(result) <= 2


@pytest.mark.ours
def test_the_warning_says_what_changed(tf, warned):
    @tf.function
    def often(x, k):
        return x

    for k in range(5):
        often({"a": [tf.ones([k + 1])]}, k)
    (text,) = warned
    assert "x['a'][0]: f32[4] -> f32[5]" in text
    assert "k: Literal[3] -> Literal[4]" in text


def test_a_function_made_again_and_again(tf, warned):
    for _ in range(6):

        @tf.function
        def anew(x):
            return x

        anew(tf.constant(1.0))
    assert any("triggered tf.function retracing" in t for t in warned)


def test_traces_that_are_used_are_none(tf, warned):
    @tf.function
    def f(x):
        return x

    for n in range(1, 8):
        for _ in range(5):
            f(tf.ones([n]))
    assert not [t for t in warned if "triggered" in t]


@pytest.mark.ours
def test_imported_models_are_functions_of_their_own(tf, warned):
    """Their Python code is the library's: importing several is no loop that creates one function again and again."""
    for n in range(1, 8):
        model = ImportedFunction(lambda x: x + 1.0, [tf.TensorSpec([n])], name="model")
        assert model(tf.ones([n])).numpy().tolist() == [2.0] * n
    assert not warned


@pytest.mark.ours
def test_an_imported_model_may_be_traced_too_often(tf, warned):
    model = ImportedFunction(lambda x: x + 1.0, None, name="model", parameters=["x"])
    for n in range(1, 8):
        model(tf.ones([n]))
    assert "triggered tf.function retracing" in warned[0]
