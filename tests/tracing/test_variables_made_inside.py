"""Variables created on a function's first call, their first values made of what it was called with.

Lives here: where first values come from.  Not here: which calls may create at all (test_function.py).
"""

from __future__ import annotations

import numpy as np
import pytest


def lazy(tf, first):
    class Lazy(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = None

        @tf.function
        def __call__(self, x, k=1.0):
            if self.v is None:
                self.v = tf.Variable(first(x, k))
            return self.v.assign_add(x)

    return Lazy()


def test_first_values_may_depend_on_arguments(tf):
    """The call that creates a variable gives its arguments' values; another object has its own."""
    one, other = lazy(tf, lambda x, k: x * 2.0 + k), lazy(tf, lambda x, k: tf.ones_like(x))
    assert float(one(tf.constant(1.0))) == 4.0
    assert float(one(tf.constant(1.0))) == 5.0
    np.testing.assert_array_equal(other(tf.constant([5.0, 6.0]), k=3.0), [6.0, 7.0])
    assert len(one.trainable_variables) == 1


def test_first_values_through_an_outer_function(tf):
    """The arguments of an inner function are tensors of the outer one, and of its call in the end."""
    module = lazy(tf, lambda x, k: x * 2.0 + k)

    @tf.function
    def outer(x):
        return module(x + 1.0) + module(x)

    assert float(outer(tf.constant(1.0))) == 7.0 + 8.0
    assert float(module.v) == 8.0


def test_described_arguments_give_no_first_value(tf):
    """get_concrete_function has types only. TensorFlow raises an error of its own."""
    module = lazy(tf, lambda x, k: x * 2.0)
    with pytest.raises(Exception, match=r"initial value|Unable to lift"):
        module.__call__.get_concrete_function(tf.TensorSpec([], tf.float32))


def test_inputs_have_operations_too(tf):
    """`op` of an argument is a Placeholder by its name."""
    seen = []

    @tf.function
    def f(x):
        named = tf.identity(x, name="q")
        seen.extend([x.op.type, x.op.name, len(x.op.inputs), named.op.name, named.op.type])
        return named

    f(tf.constant(1))
    assert seen == ["Placeholder", "x", 0, "q", "Identity"]
