"""saved_model: what is saved and what loading gives; the same in TensorFlow."""

import collections
import os

import numpy as np
import pytest

Point = collections.namedtuple("Point", "x y")


def make(tf):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
            self.parts = [tf.Variable(2.0), {"a": tf.Variable(3.0, trainable=False)}]

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
        def __call__(self, x):
            return x @ self.w + self.parts[0]

        @tf.function
        def power(self, x, n=2, *, scale=1.0):
            return {"y": x**n * scale, "z": (x, None)}

        @tf.function
        def count(self, by):
            self.parts[0].assign_add(by)
            return self.parts[0].read_value()

    return Model()


def round_trip(tf, obj, folder, **kwargs):
    tf.saved_model.save(obj, str(folder), **kwargs)
    return tf.saved_model.load(str(folder))


def test_functions_and_variables(tf, tmp_path):
    model, x = make(tf), tf.constant([[1.0, 1.0]])
    loaded = round_trip(tf, model, tmp_path / "m")
    assert loaded(x).numpy().tolist() == [[6.0, 8.0]]
    loaded.w.assign(tf.zeros([2, 2]))
    assert loaded(x).numpy().tolist() == [[2.0, 2.0]]
    assert model.w.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert loaded.parts[1]["a"].numpy() == 3.0
    assert not loaded.parts[1]["a"].trainable
    assert loaded.w.name == "w:0"


def test_signatures(tf, tmp_path):
    loaded = round_trip(tf, make(tf), tmp_path / "m")
    assert list(loaded.signatures) == ["serving_default"]
    infer = loaded.signatures["serving_default"]
    out = infer(x=tf.constant([[1.0, 1.0]]))
    assert list(out) == ["output_0"]
    assert out["output_0"].numpy().tolist() == [[6.0, 8.0]]
    assert infer(tf.constant([[1.0, 1.0]]))["output_0"].numpy().tolist() == [[6.0, 8.0]]
    assert infer.structured_input_signature == ((), {"x": tf.TensorSpec([None, 2], tf.float32, name="x")})
    assert infer.structured_outputs == {"output_0": tf.TensorSpec([None, 2], tf.float32, name="output_0")}
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError)):
        infer(y=tf.constant([[1.0, 1.0]]))


def test_given_signatures(tf, tmp_path):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="a"), tf.TensorSpec([], tf.float32, name="b")])
    def pair(a, b):
        return a + b, a - b

    @tf.function
    def named(a):
        return {"twice": 2.0 * a, "half": a / 2.0}

    signatures = {"pair": pair, "named": named.get_concrete_function(tf.TensorSpec([2], tf.float32))}
    loaded = round_trip(tf, module, tmp_path / "m", signatures=signatures)
    assert set(loaded.signatures) == {"pair", "named"}
    out = loaded.signatures["pair"](a=tf.constant(3.0), b=tf.constant(1.0))
    assert {k: float(v) for k, v in out.items()} == {"output_0": 4.0, "output_1": 2.0}
    out = loaded.signatures["named"](tf.constant([1.0, 2.0]))
    assert {k: v.numpy().tolist() for k, v in out.items()} == {"twice": [2.0, 4.0], "half": [0.5, 1.0]}


def test_signatures_that_cannot_be(tf, tmp_path):
    def save(signatures):
        tf.saved_model.save(tf.Module(), str(tmp_path / "m"), signatures=signatures)

    with pytest.raises(ValueError, match="input signature or concrete functions"):
        save(tf.function(lambda x: x))
    with pytest.raises(ValueError, match="Got a non-Tensor value"):
        save(tf.function(lambda x: {"a": [x]}, input_signature=[tf.TensorSpec([], tf.float32)]))
    with pytest.raises(ValueError, match="non-string key"):
        save(tf.function(lambda x: {1: x}, input_signature=[tf.TensorSpec([], tf.float32)]))


def test_the_default_signature(tf, tmp_path):
    specs = [tf.TensorSpec([], tf.float32)]
    one, two, three, four, none = (tf.Module() for _ in range(5))
    one.f = two.f = three.f = tf.function(lambda x: x, input_signature=specs)
    one.other = tf.function(lambda x: x)
    two.g = tf.function(lambda: tf.constant(1.0))  # without arguments, one trace serves all calls too
    three.g = three.f.get_concrete_function()
    four.f = tf.function(lambda x: (x, [x]), input_signature=specs)
    none.v = tf.Variable(1.0)
    result = [
        list(round_trip(tf, m, tmp_path / str(i)).signatures) for i, m in enumerate((one, two, three, four, none))
    ]
    assert result == [["serving_default"], [], [], [], []]


def test_traces_are_chosen_by_arguments(tf, tmp_path):
    model = make(tf)
    model.power(tf.constant([1.0, 2.0]))
    model.power(tf.constant(2.0), n=3)
    model.power(tf.constant(3.0), scale=2.0)
    loaded = round_trip(tf, model, tmp_path / "m")
    out = loaded.power(tf.constant([3.0, 4.0]))
    assert out["y"].numpy().tolist() == [9.0, 16.0]
    assert out["z"][0].numpy().tolist() == [3.0, 4.0]
    assert out["z"][1] is None
    assert float(loaded.power(tf.constant(2.0), 3)["y"]) == 8.0
    assert float(loaded.power(x=tf.constant(2.0), n=3)["y"]) == 8.0
    assert float(loaded.power(tf.constant(2.0), scale=2.0)["y"]) == 8.0
    for bad in (
        lambda: loaded.power(tf.constant(2.0)),
        lambda: loaded.power(tf.constant([1, 2])),
        lambda: loaded.power(tf.constant(2.0), n=4),
        lambda: loaded.power(tf.constant([1.0])),
    ):
        with pytest.raises(ValueError, match="Could not find matching concrete function") as info:
            bad()
        assert "one of the following 3 option(s)" in str(info.value)


def test_python_values_fit_saved_tensors(tf, tmp_path):
    model = make(tf)
    model.power(tf.constant([1.0, 2.0]))
    loaded = round_trip(tf, model, tmp_path / "m")
    assert loaded.power([3.0, 4.0])["y"].numpy().tolist() == [9.0, 16.0]
    assert loaded.power(np.float32([3, 4]))["y"].numpy().tolist() == [9.0, 16.0]
    assert loaded([[1.0, 1.0]]).numpy().tolist() == [[6.0, 8.0]]


def test_functions_without_traces(tf, tmp_path):
    loaded = round_trip(tf, make(tf), tmp_path / "m")
    with pytest.raises(ValueError, match="Found zero restored functions"):
        loaded.power(tf.constant(1.0))


def test_effects(tf, tmp_path):
    model = make(tf)
    model.count(tf.constant(1.0))
    loaded = round_trip(tf, model, tmp_path / "m")
    assert [float(loaded.count(tf.constant(1.0))), float(loaded.count(tf.constant(1.0)))] == [4.0, 5.0]
    assert float(loaded.parts[0]) == 5.0
    assert float(model.parts[0]) == 3.0


def test_gradients_of_both_orders(tf, tmp_path):
    loaded = round_trip(tf, make(tf), tmp_path / "m")
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(loaded(x) ** 3)
        first = tape.gradient(y, loaded.w)
    with tf.GradientTape() as check:
        r = tf.reduce_sum((x @ loaded.w + loaded.parts[0]) ** 3)
    np.testing.assert_allclose(first.numpy(), check.gradient(r, loaded.w).numpy(), rtol=1e-6)
    # d/dx sum_ij 3 x_i (x w + b)_j^2 = sum_j 3 (x w + b)_j^2 + sum_i 6 x_i (x w + b)_j w_kj
    w, b, v = loaded.w.numpy(), 2.0, x.numpy()
    z = v @ w + b
    expected = 3 * (z**2).sum() + 6 * v.sum() * (z @ w.T)
    np.testing.assert_allclose(outer.gradient(first, x).numpy(), expected, rtol=1e-5)


def test_training_goes_on(tf, tmp_path):
    loaded = round_trip(tf, make(tf), tmp_path / "m")
    x, target = tf.constant([[1.0, 2.0], [3.0, -1.0]]), tf.constant([[1.0, 0.0], [0.0, 1.0]])
    losses = []
    for _ in range(20):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((loaded(x) - target) ** 2)
        losses.append(float(loss))
        for v, g in zip([loaded.w, loaded.parts[0]], tape.gradient(loss, [loaded.w, loaded.parts[0]])):
            v.assign_sub(0.03 * g)
    assert losses[-1] < 0.2 * losses[0]


def test_in_another_function(tf, tmp_path):
    loaded = round_trip(tf, make(tf), tmp_path / "m")

    @tf.function
    def twice(x):
        return loaded(loaded(x))

    assert twice(tf.constant([[1.0, 1.0]])).numpy().tolist() == [[32.0, 46.0]]


def test_saved_again(tf, tmp_path):
    model = make(tf)
    model.power(tf.constant(2.0), n=3)
    once = round_trip(tf, model, tmp_path / "a")
    once.w.assign([[1.0, 0.0], [0.0, 1.0]])
    twice = round_trip(tf, once, tmp_path / "b", signatures=once.signatures)
    assert twice(tf.constant([[1.0, 2.0]])).numpy().tolist() == [[3.0, 4.0]]
    assert float(twice.power(tf.constant(2.0), 3)["y"]) == 8.0
    assert list(twice.signatures) == ["serving_default"]


def test_structures_of_arguments_and_results(tf, tmp_path):
    module = tf.Module()

    @tf.function
    def f(d, point, items, flag=True, name="s"):
        return Point(d["a"] + point.x, [items[0] * point.y, (d["b"],)])

    module.f = f
    d, items = {"b": tf.constant(2.0), "a": tf.constant(1.0)}, [tf.constant(5.0)]
    point = Point(tf.constant(3.0), tf.constant(4.0))
    f(d, point, items)
    loaded = round_trip(tf, module, tmp_path / "m")
    out = loaded.f({"a": tf.constant(1.0), "b": tf.constant(2.0)}, point, items)
    assert float(out.x) == 4.0
    assert float(out.y[0]) == 20.0
    assert float(out.y[1][0]) == 2.0
    with pytest.raises(ValueError, match="Could not find matching"):
        loaded.f(d, point, items, flag=False)


def test_shared_objects_stay_shared(tf, tmp_path):
    module = tf.Module()
    module.a = tf.Variable(1.0)
    module.inner = tf.Module()
    module.inner.b = module.a
    loaded = round_trip(tf, module, tmp_path / "m")
    loaded.a.assign(5.0)
    assert float(loaded.inner.b) == 5.0


def test_attributes_assigned_functions(tf, tmp_path):
    module = tf.Module()
    module.v = tf.Variable(2.0)
    module.f = tf.function(lambda x: x * module.v, input_signature=[tf.TensorSpec(None, tf.float32)])
    module.g = module.f.get_concrete_function()
    loaded = round_trip(tf, module, tmp_path / "m")
    assert loaded.f(tf.constant([1.0])).numpy().tolist() == [2.0]
    assert loaded.f(tf.constant([[1.0]])).numpy().tolist() == [[2.0]]
    assert loaded.g(tf.constant([1.0])).numpy().tolist() == [2.0]


def test_captured_constants(tf, tmp_path):
    module, table = tf.Module(), tf.constant(np.arange(1000, dtype=np.float64))
    module.f = tf.function(lambda i: tf.gather(table, i), input_signature=[tf.TensorSpec([], tf.int32)])
    assert float(round_trip(tf, module, tmp_path / "m").f(tf.constant(77))) == 77.0


def test_untracked_variables(tf, tmp_path):
    module, v = tf.Module(), tf.Variable(1.0)
    module.f = tf.function(lambda x: x + v, input_signature=[tf.TensorSpec([], tf.float32)])
    with pytest.raises(AssertionError, match="untracked"):
        tf.saved_model.save(module, str(tmp_path / "m"))


def test_what_cannot_be_saved(tf, tmp_path):
    with pytest.raises(ValueError, match="Expected an object of type `Trackable`"):
        tf.saved_model.save(3, str(tmp_path / "m"))


def test_a_missing_model(tf, tmp_path):
    with pytest.raises((OSError, tf.errors.OpError), match="SavedModel file does not exist"):
        tf.saved_model.load(str(tmp_path / "nothing"))
    assert not tf.saved_model.contains_saved_model(str(tmp_path))
    tf.saved_model.save(tf.Module(), str(tmp_path / "m"))
    assert tf.saved_model.contains_saved_model(str(tmp_path / "m"))


def test_saving_while_tracing(tf, tmp_path):
    @tf.function
    def f():
        tf.saved_model.save(tf.Module(), str(tmp_path / "m"))

    with pytest.raises(AssertionError, match="not supported inside a traced"):
        f()


def test_control_flow(tf, tmp_path):
    module = tf.Module()
    module.v = tf.Variable(3.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)])
    def f(x, n):
        x = tf.cond(x > 0.0, lambda: x * module.v, lambda: -x)
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x + module.v), (tf.constant(0), x))[1]

    module.f = f
    loaded = round_trip(tf, module, tmp_path / "m")
    for x, n in ((2.0, 3), (-1.5, 2), (1.0, 0)):
        a, b = tf.constant(x), tf.constant(n)
        np.testing.assert_allclose(loaded.f(a, b).numpy(), f(a, b).numpy())
        grads = []
        for m in (module, loaded):
            with tf.GradientTape() as tape:
                tape.watch(a)
                y = m.f(a, b)
            grads.append([float(g) for g in tape.gradient(y, [a, m.v])])
        np.testing.assert_allclose(grads[1], grads[0], rtol=1e-6)
    step = 1e-3
    hi, lo = (float(loaded.f(tf.constant(1.2 + d), tf.constant(2))) for d in (step, -step))
    a = tf.constant(1.2)
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = loaded.f(a, tf.constant(2))
    np.testing.assert_allclose(float(tape.gradient(y, a)), (hi - lo) / (2 * step), rtol=1e-2)


def test_variables_of_unknown_shape_and_other_dtypes(tf, tmp_path):
    module = tf.Module()
    module.a = tf.Variable([1.0, 2.0], shape=tf.TensorShape([None]))
    module.s = tf.Variable([b"x", b"\x00\xff"])
    module.c = tf.Variable(tf.constant([1 + 2j], tf.complex64))
    module.b = tf.Variable([True, False])
    module.h = tf.Variable(tf.constant([1.5], tf.bfloat16))
    loaded = round_trip(tf, module, tmp_path / "m")
    loaded.a.assign([1.0, 2.0, 3.0])
    assert loaded.a.numpy().tolist() == [1.0, 2.0, 3.0]
    assert loaded.s.numpy().tolist() == [b"x", b"\x00\xff"]
    assert loaded.c.numpy().tolist() == [1 + 2j]
    assert loaded.b.numpy().tolist() == [True, False]
    assert loaded.h.dtype == tf.bfloat16


def test_checkpoints_restore_from_saved_models(tf, tmp_path):
    module = tf.Module()
    module.v = tf.Variable(4.0)
    tf.saved_model.save(module, str(tmp_path / "m"))
    v = tf.Variable(0.0)
    tf.train.Checkpoint(v=v).restore(str(tmp_path / "m")).expect_partial()
    assert float(v) == 4.0


def test_strings_and_empty_tensors(tf, tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda s: tf.strings.join([s, "!"]), input_signature=[tf.TensorSpec([None], tf.string)])
    loaded = round_trip(tf, module, tmp_path / "m")
    assert loaded.f(tf.constant(["a", "b"])).numpy().tolist() == [b"a!", b"b!"]
    assert loaded.f(tf.zeros([0], tf.string)).numpy().tolist() == []


def test_random_numbers_are_drawn_again(tf, tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda: tf.random.uniform([4], seed=3), input_signature=[])
    loaded = round_trip(tf, module, tmp_path / "m")
    assert loaded.f().numpy().tolist() != loaded.f().numpy().tolist()


def test_replacing_a_saved_model(tf, tmp_path):
    for value in (1.0, 2.0, 3.0):
        module = tf.Module()
        module.v = tf.Variable(value)
        loaded = round_trip(tf, module, tmp_path / "m")
        assert float(loaded.v) == value
    assert os.path.isdir(tmp_path / "m")


def test_a_function_without_results_is_no_default_signature(tf, tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(1.0)

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def mutate(self, value):
            self.v.assign(value)

    loaded = round_trip(tf, Model(), tmp_path / "m")
    assert len(loaded.signatures) == 0
    loaded.mutate(tf.constant(3.0))
    assert float(loaded.v.numpy()) == 3.0
