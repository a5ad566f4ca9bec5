"""Axes, permutations and sizes given as tensors in traced functions, derivable while tracing or not.

Lives here: one table for both, gradients, errors at run time, static shapes.  Not here: the operators' own cases
(cases_*.py). Expected values are NumPy's, or those of a call with Python's number, which those cases check.
"""

import numpy as np
import pytest

from thorough import crossed

X = np.random.default_rng(3).normal(size=(3, 2, 4)).astype(np.float32)


def np_diag(x, k):
    out = np.zeros((*x.shape[:-1], x.shape[-1] + abs(k), x.shape[-1] + abs(k)), x.dtype)
    for index in np.ndindex(*x.shape[:-1]):
        out[index] = np.diag(x[index], k)
    return out


# name: (function of tensors, the same in NumPy). n runs over the axes of X, negative ones too.
FLOATING = {
    "reduce_sum": (lambda tf, x, n: tf.reduce_sum(x, n), lambda x, n: x.sum(n)),
    "reduce_sum, a list": (lambda tf, x, n: tf.reduce_sum(x, [n]), lambda x, n: x.sum(n)),
    "reduce_mean, two axes": (
        lambda tf, x, n: tf.reduce_mean(x, [n, (n + 1) % 3]),
        lambda x, n: x.mean((n, (n + 1) % 3)),
    ),
    "reduce_max, keepdims": (lambda tf, x, n: tf.reduce_max(x, n, keepdims=True), lambda x, n: x.max(n, keepdims=True)),
    "reduce_prod, two axes, keepdims": (
        lambda tf, x, n: tf.reduce_prod(x, [n, (n + 1) % 3], keepdims=True),
        lambda x, n: x.prod((n, (n + 1) % 3), keepdims=True),
    ),
    "reduce_min, no axis": (lambda tf, x, n: tf.reduce_min(x, tf.range(n, n)), lambda x, n: x),
    "reduce_logsumexp": (lambda tf, x, n: tf.reduce_logsumexp(x, n), lambda x, n: np.log(np.exp(x).sum(n))),
    "reduce_variance": (lambda tf, x, n: tf.math.reduce_variance(x, n), lambda x, n: x.var(n)),
    "reduce_std": (lambda tf, x, n: tf.math.reduce_std(x, [n]), lambda x, n: x.std(n)),
    "reduce_euclidean_norm": (
        lambda tf, x, n: tf.math.reduce_euclidean_norm(x, n),
        lambda x, n: np.sqrt((x * x).sum(n)),
    ),
    "l2_normalize": (
        lambda tf, x, n: tf.math.l2_normalize(x, n),
        lambda x, n: x / np.sqrt((x * x).sum(n, keepdims=True)),
    ),
    "transpose": (
        lambda tf, x, n: tf.transpose(x, tf.stack([n % 3, (n + 1) % 3, (n + 2) % 3])),
        lambda x, n: x.transpose(n % 3, (n + 1) % 3, (n + 2) % 3),
    ),
    "transpose, a list": (
        lambda tf, x, n: tf.transpose(x, [n % 3, (n + 2) % 3, (n + 1) % 3]),
        lambda x, n: x.transpose(n, (n + 2) % 3, (n + 1) % 3),
    ),
    "concat": (lambda tf, x, n: tf.concat([x, 2 * x, x], n), lambda x, n: np.concatenate([x, 2 * x, x], n)),
    "gather": (
        lambda tf, x, n: tf.gather(x, [[1, 0, 1], [0, 0, 1]], axis=n),
        lambda x, n: np.take(x, [[1, 0, 1], [0, 0, 1]], n),
    ),
    "gather, a scalar": (lambda tf, x, n: tf.gather(x, 1, axis=n), lambda x, n: np.take(x, 1, n)),
    "split": (lambda tf, x, n: tf.split(x, [1, -1], axis=n)[1], lambda x, n: np.split(x, [1], n)[1]),
    "cumsum": (lambda tf, x, n: tf.cumsum(x, n), lambda x, n: x.cumsum(n)),
    "cumsum, reversed": (
        lambda tf, x, n: tf.cumsum(x, n, reverse=True),
        lambda x, n: np.flip(np.flip(x, n).cumsum(n), n),
    ),
    "cumprod": (lambda tf, x, n: tf.math.cumprod(x, n), lambda x, n: x.cumprod(n)),
    "cumulative_logsumexp": (
        lambda tf, x, n: tf.math.cumulative_logsumexp(x, n),
        lambda x, n: np.logaddexp.accumulate(x, n),
    ),
    "expand_dims": (lambda tf, x, n: tf.expand_dims(x, n), lambda x, n: np.expand_dims(x, n)),
    "reverse": (lambda tf, x, n: tf.reverse(x, [n]), lambda x, n: np.flip(x, n)),
    "reverse, two axes": (lambda tf, x, n: tf.reverse(x, [n, (n + 1) % 3]), lambda x, n: np.flip(x, (n, (n + 1) % 3))),
    "roll": (lambda tf, x, n: tf.roll(x, 1, n), lambda x, n: np.roll(x, 1, n)),
    "roll, an axis twice": (lambda tf, x, n: tf.roll(x, [1, 2], [n, n]), lambda x, n: np.roll(x, (1, 2), (n, n))),
    "fftshift": (lambda tf, x, n: tf.signal.fftshift(x, axes=[n]), lambda x, n: np.fft.fftshift(x, n)),
    "frame": (
        lambda tf, x, n: tf.signal.frame(x, 2, 1, axis=n),
        lambda x, n: np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, 2, n), -1, n % 3 + 1),
    ),
}

WHOLE = {
    "argmax": (lambda tf, x, n: tf.argmax(x, n), lambda x, n: x.argmax(n)),
    "argmin": (lambda tf, x, n: tf.argmin(x, n, output_type=tf.int32), lambda x, n: x.argmin(n)),
    "reduce_any": (lambda tf, x, n: tf.reduce_any(x > 1, n), lambda x, n: (x > 1).any(n)),
    "reduce_all": (lambda tf, x, n: tf.reduce_all(x > -1, [n]), lambda x, n: (x > -1).all(n)),
    "count_nonzero": (lambda tf, x, n: tf.math.count_nonzero(x > 0, n), lambda x, n: (x > 0).sum(n)),
    "concat of int64": (
        lambda tf, x, n: tf.concat([tf.cast(x > 0, tf.int64)] * 2, n),
        lambda x, n: np.concatenate([x > 0] * 2, n),
    ),
    "reduce_join": (
        lambda tf, x, n: tf.strings.length(tf.strings.reduce_join(tf.fill([3, 2, 4], "a"), n)),
        lambda x, n: np.full(np.delete(x.shape, n), x.shape[n]),
    ),
}

SIZES = {  # by a number from 1 on
    "linspace": (lambda tf, x, n: tf.linspace(1.0, 4.0, n), lambda x, n: np.linspace(1.0, 4.0, n)),
    "linspace of int32": (lambda tf, x, n: tf.linspace(1, 4, n), lambda x, n: np.linspace(1.0, 4.0, n)),
    "linspace of vectors": (lambda tf, x, n: tf.linspace(x[0], x[1], n), lambda x, n: np.linspace(x[0], x[1], n)),
    "linspace of vectors, last": (
        lambda tf, x, n: tf.linspace(x[0], x[1], n, axis=-1),
        lambda x, n: np.linspace(x[0], x[1], n, axis=-1),
    ),
    "eye": (lambda tf, x, n: tf.eye(n), lambda x, n: np.eye(n)),
    "eye, columns": (lambda tf, x, n: tf.eye(2, n, dtype=tf.int32), lambda x, n: np.eye(2, n)),
    "eye, a batch": (lambda tf, x, n: tf.eye(n, batch_shape=[2, n]), lambda x, n: np.tile(np.eye(n), (2, n, 1, 1))),
    "diag": (lambda tf, x, n: tf.linalg.diag(x, k=n), np_diag),
    "diag below": (lambda tf, x, n: tf.linalg.diag(x, k=-n), lambda x, n: np_diag(x, -n)),
    "diag, padded": (
        lambda tf, x, n: tf.linalg.diag(x, k=n, padding_value=7.0),
        lambda x, n: np_diag(x, n) + 7 * (1 - np_diag(np.ones_like(x), n)),
    ),
    "diag_part": (
        lambda tf, x, n: tf.linalg.diag_part(tf.transpose(x, [1, 0, 2]), k=n),
        lambda x, n: np.diagonal(x.transpose(1, 0, 2), n, 1, 2),
    ),
    "set_diag": (
        lambda tf, x, n: tf.linalg.set_diag(tf.zeros([4, 4]), tf.range(1.0, 5.0 - tf.cast(n, tf.float32)), k=n),
        lambda x, n: np.diag(np.arange(1.0, 5 - n), n),
    ),
    "one_hot": (lambda tf, x, n: tf.one_hot([0, 1], n), lambda x, n: np.eye(2, n) if n > 1 else np.array([[1], [0]])),
    "top_k": (lambda tf, x, n: tf.math.top_k(x, n)[0], lambda x, n: np.sort(x)[..., ::-1][..., :n]),
}

RANKS = {"known": [3, 2, 4], "only the rank": [None] * 3, "nothing": None}


def called(tf, function, shape, *numbers):
    """Return the results of a function for each number, the one argument that its trace does not know."""
    traced = tf.function(
        lambda x, n: function(tf, x, n), input_signature=[tf.TensorSpec(shape, tf.float32), tf.TensorSpec([], tf.int32)]
    )
    return [traced(tf.constant(X), tf.constant(n)).numpy() for n in numbers]


@pytest.mark.parametrize(("name", "known"), crossed([*FLOATING, *WHOLE], RANKS))
def test_an_axis_that_only_the_run_knows(tf, name, known):
    function, expected = {**FLOATING, **WHOLE}[name]
    numbers = (0, 1, -1)
    for n, actual in zip(numbers, called(tf, function, RANKS[known], *numbers)):
        np.testing.assert_allclose(actual, expected(X, n), 1e-5, 1e-6)


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_only_the_run_knows(tf, name):
    function, expected = SIZES[name]
    for n, actual in zip((1, 2), called(tf, function, RANKS["known"], 1, 2)):
        np.testing.assert_allclose(actual, expected(X, n), 1e-5, 1e-6)


@pytest.mark.parametrize("shape", [[3, 2, 4], None])
def test_boolean_mask_at_an_axis_that_only_the_run_knows(tf, shape):
    mask = np.arange(8).reshape(2, 4) % 3 == 0
    (result,) = called(tf, lambda tf, x, n: tf.boolean_mask(x, mask, axis=n), shape, 1)
    np.testing.assert_array_equal(result, X[:, mask])


@pytest.mark.parametrize("batch_dims", [1, -1])
def test_gather_with_batches_at_an_axis_that_only_the_run_knows(tf, batch_dims):
    indices = [[1, 0], [0, 0], [1, 1]]
    axes = (1, 2, -1)
    gathered = called(tf, lambda tf, x, n: tf.gather(x, indices, axis=n, batch_dims=batch_dims), [3, 2, 4], *axes)
    for axis, result in zip(axes, gathered):
        within = axis if axis < 0 else axis - 1
        np.testing.assert_array_equal(result, [np.take(x, i, within) for x, i in zip(X, indices)])


@pytest.mark.parametrize("name", sorted({*FLOATING} - {"split", "gather, a scalar"}))
def test_gradients_are_those_of_the_number(tf, name):
    function = FLOATING[name][0]
    weights = np.cos(np.arange(200))

    def gradient(call, n):
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call(x, n)
            loss = tf.reduce_sum(y * tf.cast(tf.reshape(weights[: tf.size(y)], tf.shape(y)), tf.float32))
        return tf.convert_to_tensor(tape.gradient(loss, x)).numpy()

    traced = tf.function(lambda x, n: function(tf, x, n))
    expected = gradient(lambda x, n: function(tf, x, n), 1)
    np.testing.assert_allclose(gradient(traced, tf.constant(1)), expected, 1e-4, 1e-5)


WRONG = {
    "reduce_sum": lambda tf, x, n: tf.reduce_sum(x, n + 2),
    "reduce_sum, twice": lambda tf, x, n: tf.reduce_sum(x, [n, 1]),
    "concat": lambda tf, x, n: tf.concat([x, x[:, :, :1]], n),
    "transpose": lambda tf, x, n: tf.transpose(x, [n, n, 0]),
    "expand_dims": lambda tf, x, n: tf.expand_dims(x, n + 3),
    "expand_dims, negative": lambda tf, x, n: tf.expand_dims(x, -n - 4),
    "reverse, twice": lambda tf, x, n: tf.reverse(x, [n, n]),
    "gather": lambda tf, x, n: tf.gather(x, [0], axis=n + 2),
    "diag_part": lambda tf, x, n: tf.linalg.diag_part(x, k=n + 3),
    "cumsum": lambda tf, x, n: tf.cumsum(x, n - 5),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("shape", [[3, 2, 4], None])
def test_an_axis_that_is_wrong_is_refused_when_it_runs(tf, name, shape):
    with pytest.raises(tf.errors.InvalidArgumentError):
        called(tf, WRONG[name], shape, 1)


# ---- values that follow from ranks and shapes ---------------------------------------------------------------------

DERIVED = {
    "a range from 1 on": (lambda tf, x: tf.reduce_sum(x, tf.range(1, tf.rank(x))), lambda x: x.sum((1, 2)), [3]),
    "the first two swapped": (
        lambda tf, x: tf.transpose(x, tf.concat([[1, 0], tf.range(2, tf.rank(x))], 0)),
        lambda x: x.transpose(1, 0, 2),
        [2, 3, 4],
    ),
    "the last first": (
        lambda tf, x: tf.transpose(x, tf.concat([[tf.rank(x) - 1], tf.range(tf.rank(x) - 1)], 0)),
        lambda x: x.transpose(2, 0, 1),
        [4, 3, 2],
    ),
    "all reversed": (lambda tf, x: tf.transpose(x, tf.range(tf.rank(x))[::-1]), lambda x: x.T, [4, 2, 3]),
    "the last": (lambda tf, x: tf.concat([x, x], tf.rank(x) - 1), lambda x: np.concatenate([x, x], 2), [3, 2, 8]),
    "behind the last": (lambda tf, x: tf.expand_dims(x, tf.rank(x)), lambda x: x[..., None], [3, 2, 4, 1]),
    "stacked": (lambda tf, x: tf.reduce_max(x, tf.stack([0, tf.rank(x) - 1])), lambda x: x.max((0, 2)), [2]),
    "where it is negative": (
        lambda tf, x: tf.reduce_sum(x, tf.where([True, False], tf.rank(x) - [1, 0], [0, 0])),
        lambda x: x.sum((2, 0)),
        [2],
    ),
    "a size": (lambda tf, x: tf.linspace(0.0, 1.0, tf.shape(x)[1] + 1), lambda x: np.linspace(0, 1, 3), [3]),
    "a product of sizes": (lambda tf, x: tf.eye(tf.reduce_prod(tf.shape(x)[:2])), lambda x: np.eye(6), [6, 6]),
    "unstacked sizes": (lambda tf, x: tf.eye(tf.unstack(tf.shape(x), 3)[1]), lambda x: np.eye(2), [2, 2]),
    "squeezed": (lambda tf, x: tf.argmax(x, tf.size(tf.shape(x)) - 1), lambda x: x.argmax(2), [3, 2]),
}


@pytest.mark.parametrize("name", DERIVED)
def test_values_that_follow_from_shapes(tf, name):
    function, expected, _ = DERIVED[name]
    traced = tf.function(lambda x: function(tf, x))
    x = tf.constant(X)
    np.testing.assert_allclose(traced(x).numpy(), expected(X), 1e-5, 1e-6)
    unknown = tf.function(lambda x: function(tf, x), input_signature=[tf.TensorSpec(None, tf.float32)])
    np.testing.assert_allclose(unknown(x).numpy(), expected(X), 1e-5, 1e-6)


@pytest.mark.ours  # TensorFlow knows some of these only when it runs
@pytest.mark.parametrize("name", DERIVED)
def test_shapes_of_results_are_known_while_tracing(tf, name):
    function, _, shape = DERIVED[name]
    concrete = tf.function(lambda x: function(tf, x)).get_concrete_function(tf.TensorSpec([3, 2, 4], tf.float32))
    assert concrete.output_shapes.as_list() == shape


def test_they_are_known_in_branches_and_loops(tf):
    @tf.function
    def f(x, n):
        axes = tf.range(1, tf.rank(x))
        if n > 0:
            y = tf.reduce_sum(x, axes)
        else:
            y = x[:, 0, 0]
        for _ in tf.range(n):
            y += tf.reduce_sum(x, axes)
        return y

    np.testing.assert_allclose(f(tf.constant(X), tf.constant(2)).numpy(), 3 * X.sum((1, 2)), 1e-5)


def test_a_value_read_many_times_is_derived_once(tf):
    """Twice thirty times over: each step reads the one before it twice."""

    @tf.function
    def f(x):
        n = tf.rank(x) - 3
        for _ in range(30):
            n = n + n
        return tf.reduce_sum(x, n)

    np.testing.assert_allclose(f(tf.constant(X)).numpy(), X.sum(0), 1e-5)


@pytest.mark.parametrize("traced", [False, True])
def test_a_variable_as_an_axis(tf, traced):
    axis = tf.Variable(1)
    functions = {
        "sum": lambda x: tf.reduce_sum(x, axis),
        "concat": lambda x: tf.concat([x, x], axis),
        "transpose": lambda x: tf.transpose(x, [axis, 0, 2]),
    }
    expected = {"sum": X.sum(1), "concat": np.concatenate([X, X], 1), "transpose": X.transpose(1, 0, 2)}
    for name, function in functions.items():
        actual = (tf.function(function) if traced else function)(tf.constant(X))
        np.testing.assert_allclose(actual.numpy(), expected[name], 1e-5)


@pytest.mark.parametrize("name", ["cumsum", "reverse", "roll", "reverse, two axes"])
def test_what_keeps_the_shape_knows_it(tf, name):
    traced = tf.function(lambda x, n: FLOATING[name][0](tf, x, n))
    concrete = traced.get_concrete_function(tf.TensorSpec([3, 2, 4], tf.float32), tf.TensorSpec([], tf.int32))
    assert concrete.output_shapes.as_list() == [3, 2, 4]


CONVERTED = [
    "reduce_sum",
    "reduce_prod, two axes, keepdims",
    "transpose",
    "concat",
    "gather",
    "split",
    "argmax",
    "cumsum",
    "expand_dims",
    "reverse, two axes",
]


@pytest.mark.ours
@pytest.mark.parametrize("name", CONVERTED)
def test_they_are_converted(tf, name):
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    function, expected = {**FLOATING, **WHOLE}[name]
    traced = tf.function(lambda x, n: function(tf, x, n))
    concrete = traced.get_concrete_function(tf.TensorSpec([3, 2, 4], tf.float32), tf.TensorSpec([], tf.int32))
    file = tf.lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
    for kind in (tf.lite.Interpreter, interpreter.Interpreter):
        runner = kind(model_content=file).get_signature_runner()
        (actual,) = runner(x=X, n=np.int32(1)).values()
        np.testing.assert_allclose(actual, expected(X, 1), 1e-5, 1e-6)
