"""Name scopes: of nodes and variables, in functions, eagerly and in modules; expectations are TensorFlow's."""

from __future__ import annotations

import pytest


def test_scopes_in_a_function(tf):
    """Scopes nest; one that was used before gets a number, one that ends with / is entered again, "" leads out."""
    seen = []

    @tf.function
    def f(x):
        with tf.name_scope("outer") as prefix:
            seen.append(tf.identity(x, name="a").name)
            with tf.name_scope("inner") as inner:
                seen.extend([inner, tf.identity(x, name="b").name])
            with tf.name_scope(""):
                seen.append(tf.identity(x, name="c").name)
        with tf.name_scope("outer"):
            seen.append(tf.identity(x, name="d").name)
        with tf.name_scope(prefix):
            seen.append(tf.identity(x, name="e").name)
        return x

    f(tf.constant(1))
    assert seen == ["outer/a:0", "outer/inner/", "outer/inner/b:0", "c:0", "outer_1/d:0", "outer/e:0"]


def test_scopes_name_variables(tf):
    with tf.name_scope("a"):
        first = tf.Variable(1, name="v")
        with tf.name_scope("b") as prefix:
            second = tf.Variable(1, name="v")
    assert [first.name, second.name, prefix] == ["a/v:0", "a/b/v:0", "a/b/"]


def test_a_scope_has_its_name(tf):
    scope = tf.name_scope("q")
    assert scope.name == "q"
    with scope as once, scope as nested:
        assert [once, nested] == ["q/", "q/q/"]
    with pytest.raises(ValueError, match="must be a string"):
        tf.name_scope(3)


def test_modules_are_scopes(tf):
    """A module's scope is where it was made, not where it is called."""

    class Inner(tf.Module):
        @tf.Module.with_name_scope
        def __call__(self, x):
            if not hasattr(self, "w"):
                self.w = tf.Variable(x, name="w")
            return self.w

    class Outer(tf.Module):
        def __init__(self, name=None):
            super().__init__(name)
            self.ready = Inner(name="ready")

        @tf.Module.with_name_scope
        def __call__(self, x):
            self.late = Inner(name="late")
            return self.ready(x) + self.late(x)

    outer = Outer("out")
    outer(1.0)
    assert [outer.ready.w.name, outer.late.w.name] == ["ready/w:0", "out/late/w:0"]
    assert [outer.name, outer.name_scope.name, outer.late.name_scope.name] == ["out", "out/", "out/late/"]
