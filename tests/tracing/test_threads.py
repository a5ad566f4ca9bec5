"""Functions called from many threads at once, the first time and later, with gradients and with other shapes."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def quick_switches():
    """Threads take turns a thousand times as often: what can go wrong between them does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(n, run):
    """`run(k)` in n threads at once; raises the first error. They are done within a minute, or hang."""
    start, errors = threading.Barrier(n), []

    def thread(k):
        start.wait()
        try:
            run(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=thread, args=(k,), daemon=True) for k in range(n)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    if errors:
        raise errors[0]
    assert not any(one.is_alive() for one in threads), "threads wait for each other"


def summed(tf, v):
    @tf.function
    def f(x, n):
        y = tf.zeros_like(x)
        for _ in tf.range(n):
            if tf.reduce_sum(x) > 0.0:
                y += x * x * v
            else:
                y -= tf.sin(x) * v
        return tf.reduce_sum(y)

    return f


@pytest.mark.ours  # TensorFlow's traces race here
def test_first_calls_and_gradients_of_both_orders(tf):
    v = tf.Variable(2.0, dtype=tf.float64)
    for _ in range(2):
        f = summed(tf, v)

        def run(k, f=f):
            for turn in range(3):
                array = np.linspace(0.1, 1.0, 1 + (k + turn) % 3) + k
                x, n = tf.constant(array), tf.constant(3)
                np.testing.assert_allclose(f(x, n), 6.0 * np.sum(array**2))
                with tf.GradientTape() as outer:
                    outer.watch(x)
                    with tf.GradientTape() as tape:
                        tape.watch(x)
                        y = f(x, n)
                    grads = tape.gradient(y, [x, v])
                np.testing.assert_allclose(grads[0], 12.0 * array)
                np.testing.assert_allclose(grads[1], 3.0 * np.sum(array**2))
                np.testing.assert_allclose(outer.gradient(grads[0], x), np.full(array.shape, 12.0))

        in_threads(6, run)


@pytest.mark.ours  # TensorFlow's traces race here
def test_called_in_other_functions_while_it_is_differentiated(tf):
    v = tf.Variable(2.0, dtype=tf.float64)
    x, n = tf.constant([1.0, 2.0], tf.float64), tf.constant(2)

    def gradient(f, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, n)
        return tape.gradient(y, x)

    for _ in range(2):
        f = summed(tf, v)

        def run(k, f=f):
            if k % 3 == 0:
                np.testing.assert_allclose(gradient(f, x), 8.0 * x.numpy())
            elif k % 3 == 1:
                assert tf.function(lambda a: f(a, n) * 2.0)(x).numpy() == 40.0
            else:
                np.testing.assert_allclose(tf.function(lambda a: gradient(f, a))(x), 8.0 * x.numpy())

        in_threads(6, run)


@pytest.mark.ours  # TensorFlow's traces race here
def test_functions_that_call_each_other(tf):
    @tf.function
    def plus(x, depth):
        return x if depth == 0 else times(x, depth - 1) + 1.0

    @tf.function
    def times(x, depth):
        return x if depth == 0 else plus(x, depth - 1) * 2.0

    def run(k):
        for depth in range(5):
            result = (plus if k % 2 else times)(tf.constant(1.0), depth)
            assert result.numpy() == reached(bool(k % 2), depth)

    def reached(adds, depth):
        if depth == 0:
            return 1.0
        return reached(not adds, depth - 1) + 1.0 if adds else reached(not adds, depth - 1) * 2.0

    in_threads(6, run)


@pytest.mark.ours  # TensorFlow's traces race here
def test_variables_are_made_once(tf):
    class Scale(tf.Module):
        def __init__(self):
            super().__init__()
            self.made, self.w = 0, None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.made += 1
                self.w = tf.Variable(tf.ones([2]))
            return self.w * x

    scale = Scale()
    in_threads(6, lambda k: np.testing.assert_allclose(scale(tf.ones([2]) * k), [k, k]))
    assert scale.made == 1


def test_python_values_and_py_functions(tf):
    times = tf.function(lambda x, k: x * k)
    back = tf.function(lambda x: tf.py_function(lambda y: y * 2.0, [x], tf.float32))

    def run(k):
        for turn in range(8):
            assert times(tf.constant(2.0), turn + k).numpy() == 2.0 * (turn + k)
            assert back(tf.constant(float(turn))).numpy() == 2.0 * turn

    in_threads(5, run)


def test_datasets(tf):
    double = tf.function(lambda x: x * 2)
    shared = tf.data.Dataset.range(40).map(double, num_parallel_calls=4).batch(4).prefetch(2)

    def run(k):
        own = tf.data.Dataset.range(40).map(lambda x: double(x), num_parallel_calls=3).batch(4).prefetch(2)

        @tf.function
        def total(elements):
            result = tf.constant(0, tf.int64)
            for batch in elements:
                result += tf.reduce_sum(batch)
            return result

        for dataset in (own, shared):
            assert sum(int(tf.reduce_sum(batch)) for batch in dataset) == 1560
            assert total(dataset).numpy() == 1560
            next(iter(dataset))  # and the rest is not asked for

    in_threads(4, run)


@pytest.mark.ours
def test_a_process_ends_with_iterators_and_threads_in_use():
    script = """
        import threading
        import opwright as ow

        endless = ow.data.Dataset.range(10).repeat().map(lambda x: x * 2, num_parallel_calls=3).prefetch(4)
        left = [iter(endless) for _ in range(3)]
        print([int(next(i)) for i in left])

        @ow.function
        def f(x):
            return x * 2.0

        workers = [threading.Thread(target=lambda k=k: f(ow.ones([k]))) for k in range(5)]
        for worker in workers:
            worker.start()
        held = iter(ow.data.Dataset.from_generator(lambda: iter(range(10**9)), output_types=ow.int32).prefetch(2))
        print(int(next(held)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["[0, 0, 0]", "0"]), done.stderr
    assert "Traceback" not in done.stderr
    assert "Fatal" not in done.stderr


@pytest.mark.ours
def test_no_thread_is_left_behind():
    import opwright as ow

    before = set(threading.enumerate())
    for _ in range(5):
        dataset = ow.data.Dataset.range(100).map(lambda x: x + 1, num_parallel_calls=4).prefetch(4)
        next(iter(dataset))
        list(dataset)
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert set(threading.enumerate()) <= before
