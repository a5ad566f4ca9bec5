"""One string taken out of a tensor inside a function: operators see it as they see a tensor of shape ()."""

import numpy as np
import pytest

CASES = {
    "equal": (lambda tf, s: s == "ab", True),
    "equal, the text first": (lambda tf, s: s == "ab", True),
    "not equal": (lambda tf, s: s != "ab", False),
    "equal to a vector": (lambda tf, s: s == tf.constant(["ab", "c"]), [True, False]),
    "zero bytes count": (lambda tf, s: (s + "\0") == s, False),
    "two elements": (lambda tf, s: tf.equal(s, tf.constant(["x", "ab"])[1]), True),
    "any": (lambda tf, s: tf.reduce_any(tf.equal(s, ["ab", "x"])), True),
    "split": (lambda tf, s: tf.strings.split(s, "b"), [b"a", b""]),
    "split and compare": (lambda tf, s: tf.strings.split(s + ",male", ",")[1] == "male", True),
    "bytes_split": (lambda tf, s: tf.strings.bytes_split(s), [b"a", b"b"]),
    "format": (lambda tf, s: tf.strings.format("{}", s), b'"ab"'),
    "reshape": (lambda tf, s: tf.reshape(s, [1]), [b"ab"]),
    "fill": (lambda tf, s: tf.fill([2], s), [b"ab", b"ab"]),
    "unicode_decode": (lambda tf, s: tf.strings.unicode_decode(s, "UTF-8"), [97, 98]),
    "py_function": (lambda tf, s: tf.py_function(lambda x: x, [s], tf.string), b"ab"),
    "numpy_function": (lambda tf, s: tf.numpy_function(lambda x: x, [s], tf.string), b"ab"),
    "length": (lambda tf, s: tf.strings.length(s), 2),
    "substr": (lambda tf, s: tf.strings.substr(s, 0, 1), b"a"),
    "join": (lambda tf, s: tf.strings.join([s, "x"]), b"abx"),
    "stack": (lambda tf, s: tf.stack([s, s]), [b"ab", b"ab"]),
    "where": (lambda tf, s: tf.where(tf.constant([True, False]), s, "z"), [b"ab", b"z"]),
    "shape": (lambda tf, s: tf.shape(s), []),
    "broadcast_to": (lambda tf, s: tf.broadcast_to(s, [2]), [b"ab", b"ab"]),
    "cond": (lambda tf, s: tf.cond(s == "ab", lambda: s, lambda: "q"), b"ab"),
    "map_fn": (lambda tf, s: tf.map_fn(lambda x: x + "q", tf.stack([s, s])), [b"abq", b"abq"]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("source", ["argument", "constant", "dataset"])
def test_operators_on_one_string(tf, case, source):
    function, expected = CASES[case]
    texts = tf.constant(["ab", "c"])
    if source == "dataset":
        (actual,) = tf.data.Dataset.from_tensors(texts).map(lambda a: function(tf, a[0]))
    elif source == "argument":
        actual = tf.function(lambda a: function(tf, a[0]))(texts)
    else:
        actual = tf.function(lambda: function(tf, tf.constant(["ab", "c"])[0]))()
    assert np.asarray(actual.numpy(), object).tolist() == expected
