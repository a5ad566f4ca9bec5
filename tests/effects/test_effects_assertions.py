"""Assertions: eagerly, while tracing and when the program runs. Runs against TensorFlow too."""

import numpy as np
import pytest

X = [1, 2, 3, 4, 5]

# name, arguments that hold, arguments that do not
BINARY = [
    ("assert_equal", (X, X), (X, [1, 2, 3, 4, 6]), "x == y"),
    ("assert_none_equal", (X, 9), (X, 3), "x != y"),
    ("assert_less", (X, 6), (X, 5), "x < y"),
    ("assert_less_equal", (X, 5), (X, 4), "x <= y"),
    ("assert_greater", (X, 0), (X, 1), "x > y"),
    ("assert_greater_equal", (X, 1), (X, 2), "x >= y"),
]
UNARY = [
    ("assert_positive", X, [0, 1], "x > 0"),
    ("assert_negative", [-1, -2], [0, -1], "x < 0"),
    ("assert_non_negative", [0, 1], [-1], "x >= 0"),
    ("assert_non_positive", [0, -1], [1], "x <= 0"),
]


def run(tf, f, *args, specs=None):
    """Eagerly and as a graph whose arguments have values only when it runs."""

    def g(*args):
        f(*args)
        return tf.constant(0)

    return {
        "eager": lambda: f(*map(tf.constant, args)),
        "graph": lambda: tf.function(g, input_signature=specs)(*map(tf.constant, args)),
    }


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize(("name", "good", "bad", "words"), BINARY, ids=[r[0] for r in BINARY])
def test_comparisons(tf, mode, name, good, bad, words):
    check = getattr(tf.debugging, name)
    run(tf, check, *good)[mode]()
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"Condition {words} did not hold"):
        run(tf, check, *bad)[mode]()
    with pytest.raises(tf.errors.InvalidArgumentError, match="my words"):
        run(tf, lambda x, y: check(x, y, message="my words"), *bad)[mode]()


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize(("name", "good", "bad", "words"), UNARY, ids=[r[0] for r in UNARY])
def test_signs(tf, mode, name, good, bad, words):
    check = getattr(tf.debugging, name)
    run(tf, check, good)[mode]()
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"Condition {words} did not hold element-wise"):
        run(tf, check, bad)[mode]()


def test_words_eagerly(tf):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.debugging.assert_equal(tf.constant([1, 2, 3]), tf.constant([1, 5, 3]), message="msg")
    assert str(caught.value).startswith(
        "msg\nCondition x == y did not hold.\nIndices of first 1 different values:\n[[1]]\n"
        "Corresponding x values:\n[2]\nCorresponding y values:\n[5]\n"
        "First 3 elements of x:\n[1 2 3]\nFirst 3 elements of y:\n[1 5 3]"
    )


def test_summarize(tf):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"First 2 elements of x:\n\[1 2\]\nFirst 1 elements of y"):
        tf.debugging.assert_less(tf.constant(X), 0, summarize=2)


def test_words_of_a_run(tf):
    @tf.function
    def f(x):
        tf.debugging.assert_less(x, 3, message="too large")
        return x

    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"assertion failed: \[too large\] \[Condition x < y did "
        r"not hold element-wise:\] \[x \(x:0\) = \] \[1 2 3\.\.\.\] \[y .*= \] \[3\]",
    ):
        f(tf.constant([1, 2, 3, 4]))


def test_what_is_wrong_ahead_is_an_error_while_tracing(tf):
    ran = []

    @tf.function
    def f(x):
        tf.py_function(lambda: ran.append(1), [], [])
        tf.debugging.assert_less(5, 3)
        return x

    with pytest.raises(tf.errors.InvalidArgumentError, match="Condition x < y did not hold element-wise"):
        f(tf.constant(1))
    assert ran == []


def test_kept_in_program_order(tf):
    v = tf.Variable(0)

    @tf.function
    def f(x):
        v.assign_add(1)
        tf.debugging.assert_positive(x)
        v.assign_add(10)
        return x

    f(tf.constant(1))
    assert v.numpy() == 11
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.constant(-1))
    assert v.numpy() in (12, 22)  # 12 here; TensorFlow does not hold what comes after an assertion back


def test_near(tf):
    tf.debugging.assert_near(tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0 + 5e-7]))
    tf.debugging.assert_near(tf.constant(1.0, tf.float64), 1.5, rtol=0.5)
    tf.debugging.assert_near(tf.constant(1.0), 1.5, atol=0.6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="x and y not equal to tolerance rtol"):
        tf.debugging.assert_near(tf.constant([1.0, 2.0]), tf.constant([1.0, 2.1]))
    for mode in ("eager", "graph"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="x and y not equal to tolerance"):
            run(tf, tf.debugging.assert_near, [1.0, 2.0], [1.0, 2.1])[mode]()


def test_assert(tf):
    x = tf.constant(X)
    tf.Assert(True, [x])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected 'False' to be true. Summarized data: 1, 2"):
        tf.Assert(False, [x])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"to be true. Summarized data: 1, 2, 3, 4, 5"):
        tf.debugging.Assert(x[0] > 5, [x], summarize=10)

    @tf.function
    def f(x):
        tf.Assert(tf.reduce_all(x > 1), ["data", x, tf.reshape(x, [5, 1])], summarize=4)
        return x

    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"assertion failed: \[data\] \[1 2 3 4\.\.\.\] "
        r"\[\[1\]\[2\]\[3\]\[4\]\.\.\.\]",
    ):
        f(x)


# ---- ranks, shapes, dtypes ------------------------------------------------------------------------------------------

RANKS = [
    ("assert_rank", 1, 2, r"must have rank 2\.  Received rank 1, shape \(5,\)"),
    ("assert_rank_at_least", 1, 2, r"must have rank at least 2\.  Received rank 1"),
    ("assert_rank_in", (0, 1), (2, 3), r"must have rank in \(2, 3\)\.  Received rank 1"),
]


@pytest.mark.parametrize(("name", "good", "bad", "words"), RANKS, ids=[r[0] for r in RANKS])
def test_ranks(tf, name, good, bad, words):
    check, x = getattr(tf.debugging, name), tf.constant(X)
    check(x, good)
    with pytest.raises(ValueError, match=words):
        check(x, bad)
    with pytest.raises(ValueError, match=f"mine.  Tensor .*{words}"):
        tf.function(lambda x: [check(x, bad, message="mine"), x][1])(x)
    unknown = tf.function(lambda x: [check(x, good), x + 0][1], input_signature=[tf.TensorSpec(None, tf.int32)])
    unknown(x)
    unknown = tf.function(lambda x: [check(x, bad), x + 0][1], input_signature=[tf.TensorSpec(None, tf.int32)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank"):
        unknown(x)


def test_scalar(tf):
    tf.debugging.assert_scalar(tf.constant(1))
    with pytest.raises(ValueError, match=r"Expected scalar shape, saw shape: \(5,\)"):
        tf.debugging.assert_scalar(tf.constant(X))


def test_dtypes(tf):
    d, c = tf.debugging, tf.constant
    d.assert_type(c(1), tf.int32)
    d.assert_integer(c(1))
    with pytest.raises(TypeError, match=r"must be of type tf.float32; got tf.int32"):
        d.assert_type(c(1), tf.float32)
    with pytest.raises(TypeError, match='Expected "x" to be integer type'):
        d.assert_integer(c(1.0))
    assert d.assert_same_float_dtype() == tf.float32
    assert d.assert_same_float_dtype([c(1.0, tf.float64)]) == tf.float64
    with pytest.raises(ValueError, match="must be of the same type"):
        d.assert_same_float_dtype([c(1.0), c(1.0, tf.float64)])
    with pytest.raises(ValueError, match="must be of the same type"):
        d.assert_same_float_dtype([c(1.0)], tf.float64)
    with pytest.raises(ValueError, match="Expected floating point type"):
        d.assert_same_float_dtype([c(1)])
    assert d.is_numeric_tensor(c(1))
    assert not d.is_numeric_tensor(c("a"))
    assert not d.is_numeric_tensor(c(True))
    assert not d.is_numeric_tensor(3)


def test_proper_iterable(tf):
    tf.debugging.assert_proper_iterable([1])
    for bad in (tf.constant([1]), "ab", b"ab", np.zeros(2)):
        with pytest.raises(TypeError, match='to be a "proper" iterable'):
            tf.debugging.assert_proper_iterable(bad)
    with pytest.raises(TypeError, match="to be iterable"):
        tf.debugging.assert_proper_iterable(5)


def test_shapes(tf):
    x, y, q = tf.ones((5, 2)), tf.ones((5, 3)), tf.ones((2,))
    check = tf.debugging.assert_shapes
    check([(x, ("N", "Q")), (y, ("N", 3)), (q, ("Q",))])
    check([(x, (None, ".")), (tf.ones((3, 5)), ("*", 5)), (y, (..., "P"))])
    check([(x, "NQ"), (tf.constant(1.0), ("one",)), (tf.constant(1.0), ())])
    with pytest.raises(
        ValueError,
        match=r"Specified by tensor .* dimension 0.  Tensor .* dimension 0 must have size 5"
        r".  Received size 2, shape \(2,\)",
    ):
        check([(x, ("N", "Q")), (q, ("N",))])
    with pytest.raises(ValueError, match=r"Specified explicitly.  Tensor .* dimension 1 must have size 4"):
        check([(x, (5, 4))])
    with pytest.raises(ValueError, match="must have rank 3"):
        check([(x, (5, 2, 1))])
    with pytest.raises(ValueError, match="is only allowed as the first entry"):
        check([(x, ("N", "*"))])


def test_shapes_when_run(tf):
    @tf.function(input_signature=[tf.TensorSpec(None), tf.TensorSpec([None])])
    def f(a, b):
        tf.debugging.assert_shapes([(a, ("N", "M")), (b, ("N",))])
        return a + 0.0

    f(tf.constant([[1.0]]), tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank"):
        f(tf.constant([1.0]), tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Specified by tensor a:0 dimension 0"):
        f(tf.constant([[1.0]]), tf.constant([1.0, 2.0]))


# ---- finite numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_check_numerics(tf, mode):
    def check(x):
        return tf.debugging.check_numerics(x, "mine")

    run(tf, check, [1.0])[mode]()
    for value, kind in ((np.nan, "NaN"), (np.inf, "Inf"), (-np.inf, "Inf")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"mine : Tensor had {kind} values"):
            run(tf, check, [1.0, value])[mode]()
    with pytest.raises(tf.errors.InvalidArgumentError, match="had Inf and NaN values"):
        tf.debugging.assert_all_finite(tf.constant([np.inf, np.nan]), "mine")


def test_check_numerics_of_gradients(tf):
    x = tf.constant([4.0, 0.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sqrt(tf.debugging.check_numerics(x, "mine"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"detected in gradient. (b')?mine"):
        tape.gradient(y, x)


@pytest.fixture
def watched(tf):
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


def test_enable_check_numerics_eagerly(tf, watched):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.constant([1.0, -1.0]) / 0.0
    for words in (
        'Detected Infinity or NaN in output 0 of eagerly-executing op "RealDiv" (# of outputs: 1)',
        "shape: (2,)",
        "# of -Inf elements: 1",
        "# of +Inf elements: 1",
        "Input tensors (2):",
    ):
        assert words in str(caught.value)


def test_enable_check_numerics_in_graphs(tf, watched):
    @tf.function
    def f(x):
        y = x * 2.0
        z = tf.math.log(y)
        return z + 1.0

    assert f(tf.constant([0.5])).numpy() == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=r'in output 0 of graph op "Log" \(# of outputs: 1\)'):
        f(tf.constant([0.0]))


@pytest.mark.ours
def test_enable_check_numerics_reports_the_line(tf, watched):
    @tf.function
    def f(x):
        y = x * 2.0
        z = tf.math.log(y)
        return z + 1.0

    line = f.python_function.__code__.co_firstlineno + 3
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"Log 'Log' \(.*test_effects_assertions.py:{line}\)"):
        f(tf.constant([0.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Log \(.*test_effects_assertions.py:\d+\)"):
        tf.math.log(tf.constant(0.0))


@pytest.mark.ours
def test_enable_check_numerics_sees_folded_constants(tf, watched):
    f = tf.function(lambda x: x + tf.math.log(tf.zeros([2])))
    with pytest.raises(tf.errors.InvalidArgumentError, match='graph op "Log"'):
        f(tf.constant([0.0, 1.0]))


def test_enable_check_numerics_in_gradients(tf, watched):
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sqrt(x)
        return tape.gradient(y, x)

    assert f(tf.constant([4.0])).numpy() == 0.25
    with pytest.raises(tf.errors.InvalidArgumentError, match="Detected Infinity or NaN in output 0 of graph op"):
        f(tf.constant([0.0]))


@pytest.mark.parametrize("take", [True, False])
def test_enable_check_numerics_in_branches(tf, watched, take):
    @tf.function
    def f(x, p):
        return tf.cond(p, lambda: tf.math.log(x), lambda: tf.math.sqrt(x))

    f(tf.constant([2.0]), tf.constant(take))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f'graph op "{"Log" if take else "Sqrt"}"'):
        f(tf.constant([-1.0]), tf.constant(take))


def test_enable_check_numerics_in_loops(tf, watched):
    @tf.function
    def f(x, n):
        return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 1e10), [0, x])[1]

    f(tf.constant([1.0]), tf.constant(3))
    with pytest.raises(tf.errors.InvalidArgumentError, match='graph op "Mul"'):
        f(tf.constant([1.0]), tf.constant(9))


def test_movers_of_values_are_not_blamed(tf, watched):
    assert np.isnan(tf.identity(tf.constant(np.nan)).numpy())
    assert np.isnan(tf.concat([tf.constant([np.nan]), tf.constant([1.0])], 0).numpy()[0])
    tf.debugging.disable_check_numerics()
    assert (tf.constant(1.0) / 0.0).numpy() == np.inf


def test_words_of_scalars_and_without_a_message(tf):
    """Single numbers have no indices to tell; without a message a run's error begins with the condition."""
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.debugging.assert_equal(tf.constant(2), 3)
    assert "Indices" not in str(caught.value)

    @tf.function
    def f(x):
        tf.debugging.assert_greater_equal(x, [5])
        return x

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"assertion failed: \[Condition x >= y did not hold"):
        f(tf.constant(2))
