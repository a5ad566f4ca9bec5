"""Lists and dictionaries given to a function are not to be changed by it; expectations are TensorFlow's."""

from __future__ import annotations

import pytest

CHANGES = {
    "append": (lambda tf, a: a.append(tf.constant(1)), lambda: [1]),
    "item": (lambda tf, a: a.__setitem__(0, tf.constant(5)), lambda: [1]),
    "update": (lambda tf, a: a.update(k=tf.constant(1)), dict),
    "inside": (lambda tf, a: a["a"].pop(), lambda: {"a": [1, 2]}),
    "order": (lambda tf, a: a.sort(), lambda: [3, 1]),
}


@pytest.mark.parametrize("how", list(CHANGES))
def test_changed_arguments_are_refused(tf, how):
    change, make = CHANGES[how]

    @tf.function
    def f(x, given):
        change(tf, given)
        return x

    with pytest.raises(ValueError, match=r"should not modify its Python input arguments.*were modified: given"):
        f(tf.constant(1), make())


def test_copies_may_change(tf):
    @tf.function
    def f(given):
        mine = dict(given)
        mine["b"] = mine.pop("a") + 1
        rows = [*given["rows"], tf.constant(7)]
        rows.append(mine["b"])
        return rows[-1]

    given = {"a": tf.constant(1), "rows": [tf.constant(2)]}
    assert int(f(given)) == 2
    assert sorted(given) == ["a", "rows"]


def test_an_eager_loop_gives_tensors(tf):
    """Numbers that a body gives become tensors, as those that it is given do."""
    (x,) = tf.while_loop(lambda i: i < 3.0, lambda i: [3.5], [1.0])
    assert tf.is_tensor(x)
    assert float(x) == 3.5
