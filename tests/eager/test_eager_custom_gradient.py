"""custom_gradient and stop_gradient."""

import numpy as np
import pytest

import opwright as ow


@ow.custom_gradient
def log1pexp(x):
    """The documentation's example: stable where exp overflows."""
    e = ow.exp(x)
    return ow.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))


def test_the_documented_example():
    x = ow.constant(100.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    assert tape.gradient(y, x).numpy() == 1.0
    assert log1pexp.__name__ == "log1pexp"
    assert "stable" in log1pexp.__doc__


def test_the_given_gradient_counts_whatever_is_computed():
    @ow.custom_gradient
    def f(x, y):
        return x * y, lambda dz: (dz * 100.0, dz * 200.0)

    x, y = ow.constant(2.0), ow.constant(3.0)
    with ow.GradientTape() as tape:
        tape.watch([x, y])
        z = f(x, y) * 2.0
    assert z.numpy() == 12
    assert [g.numpy() for g in tape.gradient(z, [x, y])] == [200, 400]


def test_several_results():
    @ow.custom_gradient
    def f(x):
        return (x, {"twice": 2 * x}), lambda a, b: a * 10.0 + b * 100.0

    x = ow.constant(1.0)
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a, rest = f(x)
    assert rest["twice"].numpy() == 2
    assert tape.gradient(a, x).numpy() == 10
    assert tape.gradient(rest["twice"], x).numpy() == 100
    assert tape.gradient([a, rest], x).numpy() == 110


def test_arguments_that_are_no_tensors():
    @ow.custom_gradient
    def power(x, n=2):
        return x**n, lambda dy: dy * n * x ** (n - 1)

    x = ow.constant(3.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = power(x, n=3)
    assert tape.gradient(y, x).numpy() == 27
    assert power(3.0).numpy() == 9
    assert power(np.float64(3)).dtype == ow.float64


def test_none_ends_the_gradient():
    @ow.custom_gradient
    def f(x, y):
        return x + y, lambda dz: (dz, None)

    x, y = ow.constant(1.0), ow.constant(1.0)
    with ow.GradientTape() as tape:
        tape.watch([x, y])
        z = f(x, y)
    dx, dy = tape.gradient(z, [x, y])
    assert dx.numpy() == 1
    assert dy is None


def test_second_order_goes_through_the_given_gradient():
    @ow.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * 2.0 * x

    x = ow.constant(3.0)
    with ow.GradientTape() as outer:
        outer.watch(x)
        with ow.GradientTape() as inner:
            inner.watch(x)
            y = square(x)
        d = inner.gradient(y, x)
    assert d.numpy() == 6
    assert outer.gradient(d, x).numpy() == 2


def test_nested():
    @ow.custom_gradient
    def inner(x):
        return x * 1.0, lambda dy: dy * 5.0

    @ow.custom_gradient
    def outer(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = inner(x)
        d = tape.gradient(y, x)
        return y, lambda dy: dy * d * 7.0

    x = ow.constant(1.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        z = outer(inner(x))
    assert tape.gradient(z, x).numpy() == 5 * 5 * 7


def test_given_as_gradient_of_a_gradient():
    """A function with a custom gradient whose gradient function has one itself, as the documentation shows."""

    @ow.custom_gradient
    def f(x):
        @ow.custom_gradient
        def first(y):
            return 2 * y, lambda dy: dy * 3.0

        def grad(dy):
            return dy * first(x)

        return x * x, grad

    x = ow.constant(4.0)
    with ow.GradientTape() as outer:
        outer.watch(x)
        with ow.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        d = inner.gradient(y, x)
    assert d.numpy() == 8
    assert outer.gradient(d, x).numpy() == 3


# ---- variables --------------------------------------------------------------------------------------------------


def test_variables_read_inside():
    w = ow.Variable([2.0, 3.0])

    @ow.custom_gradient
    def scaled(x):
        def grad(dy, variables=None):
            assert [v is w for v in variables] == [True]
            return dy * 10.0, [dy * 100.0]

        return x * w, grad

    x = ow.constant([1.0, 1.0])
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x)
    dx, dw = tape.gradient(y, [x, w])
    assert dx.numpy().tolist() == [10, 10]
    assert dw.numpy().tolist() == [100, 100]
    assert tape.watched_variables() == (w,)


def test_variables_need_a_gradient_function_that_takes_them():
    w = ow.Variable(2.0, name="w")

    @ow.custom_gradient
    def scaled(x):
        return x * w, lambda dy: dy

    with ow.GradientTape() as tape:
        y = scaled(ow.constant(1.0))
    with pytest.raises(TypeError, match=r"'variables' keyword(?s:.*)scaled reads w:0"):
        tape.gradient(y, w)


def test_keyword_arguments_will_do():
    w = ow.Variable(2.0)

    @ow.custom_gradient
    def scaled(x):
        return x * w, lambda dy, **kwargs: (dy, [dy * x for _ in kwargs["variables"]])

    with ow.GradientTape() as tape:
        y = scaled(ow.constant(3.0))
    assert tape.gradient(y, w).numpy() == 3


def test_untrainable_variables_do_not_count():
    w = ow.Variable(2.0, trainable=False)

    @ow.custom_gradient
    def scaled(x):
        return x * w, lambda dy: dy * 2.0

    x = ow.constant(1.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x)
    assert tape.gradient(y, x).numpy() == 2


def test_wrong_number_of_gradients():
    @ow.custom_gradient
    def f(x, y):
        return x + y, lambda dz: dz

    x = ow.constant(1.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        z = f(x, x)
    with pytest.raises(ValueError, match="f expected to return 2 gradients, but returned 1"):
        tape.gradient(z, x)


# ---- stop_gradient ------------------------------------------------------------------------------------------------


def test_stop_gradient():
    x = ow.constant([1.0, 2.0])
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        stopped = ow.stop_gradient(x * x)
        y = stopped * x
    assert stopped.numpy().tolist() == [1, 4]
    assert tape.gradient(stopped, x) is None
    assert tape.gradient(y, x).numpy().tolist() == [1, 4]


def test_straight_through():
    """round(x) forward, the identity backward."""
    x = ow.constant([0.4, 1.6])
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x + ow.stop_gradient(ow.round(x) - x)
    assert y.numpy().tolist() == [0, 2]
    assert tape.gradient(y, x).numpy().tolist() == [1, 1]
