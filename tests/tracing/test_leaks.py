"""Test the lifetimes of objects after a call: tensors of a trace, traces of deleted objects, instances, variables."""

import gc
import weakref

import pytest


def leaked(tf):
    kept = []

    @tf.function
    def leaky(x):
        kept.append(x + 1.0)
        return x

    leaky(tf.constant(1.0))
    return kept[0]


def test_a_leaked_tensor_has_no_value(tf):
    x = leaked(tf)
    assert not hasattr(x, "numpy")
    with pytest.raises(AttributeError):
        x.numpy()
    with pytest.raises(TypeError):
        bool(x)


def test_a_leaked_tensor_in_another_function(tf):
    x = leaked(tf)
    with pytest.raises(TypeError, match="out of scope"):
        tf.function(lambda b: b + x)(tf.constant(2.0))


@pytest.mark.ours
def test_the_error_reports_where_it_was_made(tf):
    x = leaked(tf)
    for use in (lambda: x + 1.0, lambda: bool(x), lambda: tf.function(lambda b: b + x)(tf.constant(2.0))):
        with pytest.raises(TypeError, match=r"(?s)out of scope.*'leaky'.*test_leaks\.py:\d+"):
            use()
    with pytest.raises(AttributeError) as caught:
        x.numpy()
    assert str(caught.value) == "'Tensor' object has no attribute 'numpy'"
    assert "leaky" in caught.value.__notes__[0]


def test_methods_keep_no_instance_alive(tf):
    class Model:
        def __init__(self, k):
            self.v = tf.Variable(k)

        @tf.function
        def __call__(self, x):
            return x * self.v

    a, b = Model(2.0), Model(3.0)
    one = tf.constant(1.0)
    assert (a(one).numpy(), b(one).numpy(), a(one).numpy()) == (2.0, 3.0, 2.0)
    reference, variable = weakref.ref(a), weakref.ref(a.v)
    del a
    gc.collect()
    assert reference() is None
    assert variable() is None


@pytest.mark.ours
def test_instances_that_are_not_hashable_or_have_slots(tf):
    class Unhashable:
        __hash__ = None

        @tf.function
        def double(self, x):
            return x * 2.0

    class Slots:
        __slots__ = ("k",)

        @tf.function
        def times(self, x):
            return x * self.k

    assert Unhashable().double(tf.constant(2.0)).numpy() == 4.0
    s = Slots()
    s.k = 3.0
    assert s.times(tf.constant(2.0)).numpy() == 6.0
    assert s.times(tf.constant(2.0)).numpy() == 6.0


class Thing:
    def __init__(self, tf):
        self.v = tf.Variable(1.0)


def test_arguments_are_not_kept_alive(tf):
    @tf.function
    def f(thing, x):
        return x + thing.v

    thing = Thing(tf)
    f(thing, tf.constant(1.0))
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is None


@pytest.mark.ours
def test_traces_of_dead_objects_go_away(tf):
    @tf.function
    def f(thing, x):
        return x + thing.v

    thing = Thing(tf)
    f(thing, tf.constant(1.0))
    variable = weakref.ref(thing.v)
    assert len(f._table) == 1
    del thing
    gc.collect()
    assert len(f._table) == 0
    assert variable() is None


@pytest.mark.ours
@pytest.mark.slow
def test_memory_is_flat_over_ten_thousand_traces(tf):
    import tracemalloc

    x = tf.constant(1.0)

    class Plain:
        pass

    @tf.function(autograph=False)
    def of_object(o, x):
        return x + 1.0

    def functions(n):
        for _ in range(n):
            tf.function(lambda x: x * 2.0, autograph=False)(x)

    def objects(n):
        for _ in range(n):
            of_object(Plain(), x)

    for run in (functions, objects):
        run(200)
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            run(5000)
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert grown < 200_000, run.__name__  # 40 bytes a trace


def test_recursion_is_reported(tf):
    @tf.function
    def forever(n):
        return forever(n - 1)

    with pytest.raises(Exception, match=r"(?i)recurs"):
        forever(tf.constant(5))


@pytest.mark.ours
def test_recursion_names_the_function(tf):
    @tf.function
    def forever(n):
        return forever(n - 1)

    with pytest.raises(RecursionError, match=r"'forever'.*unsupported"):
        forever(tf.constant(5))


def test_recursion_that_python_values_end(tf):
    traced = []

    @tf.function
    def down(n):
        if n > 0:
            traced.append(n)
            return down(n - 1)
        return 1

    assert down(5).numpy() == 1
    assert sorted(traced) == [1, 2, 3, 4, 5]


# ---- variables --------------------


def test_variables_at_each_call_are_refused(tf):
    @tf.function
    def f(x):
        v = tf.Variable(1.0)
        return v + x

    words = r"tf\.function only supports singleton tf\.Variables created on the first call"
    with pytest.raises(ValueError, match=words):
        f(tf.constant(1.0))


def test_none_then_create(tf):
    class Count(tf.Module):
        def __init__(self):
            super().__init__()
            self.count = None

        @tf.function
        def __call__(self):
            if self.count is None:
                self.count = tf.Variable(0)
            return self.count.assign_add(1)

    c, d = Count(), Count()
    assert [int(c()), int(c()), int(d())] == [1, 2, 1]


def test_a_later_trace_may_not_create(tf):
    created = []

    @tf.function
    def f(x, create):
        if create and not created:
            created.append(tf.Variable(1.0))
        return x

    f(tf.constant(1.0), False)
    with pytest.raises(ValueError, match="first call"):
        f(tf.constant(1.0), True)


def test_a_second_optimizer_is_refused(tf):
    w = tf.Variable(2.0)

    @tf.function
    def step(x, optimizer):
        with tf.GradientTape() as tape:
            loss = tf.square(w * x)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))

    optimizers = getattr(tf, "keras", tf).optimizers
    first, second = optimizers.Adam(0.01), optimizers.Adam(0.01)
    step(tf.constant(1.0), first)
    with pytest.raises(ValueError, match="first call"):
        step(tf.constant(1.0), second)
