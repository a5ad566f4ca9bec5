"""function(jit_compile=True): what has kernels runs as native calls; the rest, values, gradients and errors are those
of the plain plan."""

import gc
import threading
import warnings

import numpy as np
import pytest
from gradient_programs import POINTS, Made, programs, reset, tensors, total, v
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.compiler import memory
from thorough import examples

RNG = np.random.default_rng(3)


def array(*shape):
    return ow.constant(RNG.standard_normal(shape, dtype=np.float32))


def native(function):
    return ow.function(function, jit_compile=True, autograph=False)


def compiled(function, *args):
    """Return the graph of a function for these arguments, after a run."""
    plan = function.get_concrete_function(*args).program.plan
    return next(reversed(plan._made.values()))[1]


def agrees(function, *args, rtol=1e-5):
    """The native function, checked against the same eagerly."""
    f = native(function)
    wanted = function(*args)
    for _ in range(3):
        for x, y in zip(ow.nest.flatten(f(*args)), ow.nest.flatten(wanted), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol, rtol)
    return f


def test_three_operators_are_one_native_call():
    x, w, b = array(4, 4), array(4, 4), array(4, 4)
    made = compiled(agrees(lambda x, w, b: ow.tanh(ow.matmul(x, w) + b), x, w, b), x, w, b)
    assert len(made.regions) == 1
    assert not made.uncompiled


def test_each_set_of_shapes_is_compiled():
    f = ow.function(
        lambda x: ow.reduce_sum(ow.exp(x) * 2.0 + x, axis=-1),
        jit_compile=True,
        autograph=False,
        input_signature=[ow.TensorSpec([None, None], ow.float32)],
    )
    for shape in ((3, 5), (4, 7), (3, 5), (1, 1), (0, 3)):
        x = array(*shape)
        np.testing.assert_allclose(f(x), (np.exp(x.numpy()) * 2 + x.numpy()).sum(-1), 1e-5)
    assert len(f.get_concrete_function().program.plan._made) == 4


def test_shapes_that_are_computed_are_known():
    def flat(x):
        n = ow.shape(x)[0]
        return ow.reshape(ow.tanh(x), [n, -1]) * ow.cast(n, ow.float32)

    f = ow.function(flat, jit_compile=True, autograph=False, input_signature=[ow.TensorSpec([None] * 3, ow.float32)])
    x = array(4, 3, 2)
    np.testing.assert_allclose(f(x), flat(x), 1e-5)
    ((_, made),) = f.get_concrete_function().program.plan._made.values()
    assert len(made.regions) == 1
    assert not made.uncompiled


def test_what_has_no_kernel_stays_between_native_calls():
    x = array(4, 4)
    f = agrees(lambda x: ow.linalg.svd(ow.exp(x) + ow.eye(4), compute_uv=False) * 2.0 + x, x, rtol=1e-4)
    made = compiled(f, x)
    assert [left.op for left in made.uncompiled] == ["Svd"]
    assert len(made.regions) == 2
    report = f.experimental_get_compiler_ir(x)()
    assert "Svd" in report
    assert "no rule" in report


def test_rows_at_computed_places():
    x = RNG.standard_normal((9, 5, 3)).astype(np.float32)
    f = native(lambda x, i: ow.exp(x[i + 1]) * 2.0)
    for i in (0, 7, -3):  # a negative place is not the kernel's, but the operator's
        np.testing.assert_allclose(f(ow.constant(x), ow.constant(i)), np.exp(x[i + 1].astype(np.float64)) * 2, 1e-5)
    assert not compiled(f, ow.constant(x), ow.constant(0)).uncompiled
    with pytest.raises(ow.errors.InvalidArgumentError, match="slice index 9 of dimension 0 out of bounds"):
        f(ow.constant(x), ow.constant(8))


def test_variables_are_read_and_written_in_order():
    w = ow.Variable(np.ones((8, 8), np.float32))

    def step(x):
        y = ow.matmul(x, w) * 2.0 + 1.0
        w.assign_sub(0.1 * ow.matmul(x, y, transpose_a=True))
        z = ow.tanh(ow.matmul(x, w) + 1.0)
        w.assign(w * 0.5 + 0.25)
        return y, z, ow.reduce_sum(w * w)

    x = array(3, 8)
    found = [t.numpy() for t in native(step)(x)]
    after, _ = w.numpy(), w.assign(np.ones((8, 8), np.float32))
    for a, b in zip(found, step(x)):
        np.testing.assert_allclose(a, b, 1e-4, 1e-4)
    np.testing.assert_allclose(after, w, 1e-5, 1e-5)


def test_gradients_go_through_native_graphs():
    w, b = ow.Variable(RNG.standard_normal((16, 10), dtype=np.float32)), ow.Variable(np.zeros(10, np.float32))

    def loss(x):
        return ow.reduce_mean(ow.square(ow.nn.softmax(ow.nn.relu(ow.matmul(x, w) + b))))

    def gradients(f, x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, [x, w, b])

    x = array(8, 16)
    f = native(loss)
    for _ in range(2):
        for found, wanted in zip(gradients(f, x), gradients(loss, x), strict=True):
            np.testing.assert_allclose(found, wanted, 1e-5, 1e-7)
    whole = native(lambda x: gradients(loss, x))
    for found, wanted in zip(whole(x), gradients(loss, x), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-7)


def test_second_derivatives():
    def second(f, x):
        with ow.GradientTape() as outer:
            outer.watch(x)
            with ow.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        return outer.gradient(g, x)

    def f(x):
        return ow.reduce_sum(ow.tanh(x) * x)

    x = array(64)
    np.testing.assert_allclose(second(native(f), x), second(f, x), 1e-4, 1e-5)


def test_bodies_of_loops_have_native_calls():
    """A loop that writes a variable of unknown shape runs its body from Python."""
    turns = ow.Variable([0], shape=ow.TensorShape(None))

    def turn(i, x, y):
        turns.assign(ow.concat([turns, [1]], 0))
        return i + 1, x, ow.tanh(y * x) + 0.5

    def power(x, n):
        return ow.while_loop(lambda i, x, y: i < n, turn, (0, x, ow.ones_like(x)))[2]

    x, n = array(32, 32), ow.constant(5)
    f = agrees(power, x, n)
    made = compiled(f, x, n)
    assert any("Tanh" in [n.op.name for n in s.nodes] for s in made.regions)


def test_arrays_as_they_come():
    """Transposed, strided, of foreign byte order, read-only, NumPy's scalars: all give the same."""
    f = native(lambda x, s: ow.tanh(x * s) + x)
    a = np.asarray(RNG.standard_normal((6, 6)), np.float32)
    fixed = a.copy()
    fixed.setflags(write=False)
    for x in (a.T, a[::2, ::3], np.asfortranarray(a), a.astype(">f4"), fixed, a[:, :1]):
        for s in (np.float32(1.5), ow.constant(1.5)):
            np.testing.assert_allclose(f(x, s), np.tanh(x * np.float32(1.5)) + x, 1e-5, 1e-6)


def test_traces_keep_no_zeros_of_the_size_of_activations():
    @ow.function
    def gradient(x, y):
        with ow.GradientTape() as tape:
            tape.watch([x, y])
            z = ow.nn.relu(ow.maximum(x, y)) + ow.nn.relu6(ow.minimum(x, y)) + ow.clip_by_value(x, -1.0, 1.0)
            z = ow.where(x > y, z, ow.nn.dropout(z, 0.5)) + ow.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=y)
        return tape.gradient(z, [x, y], output_gradients=x)

    spec = ow.TensorSpec((64, 48))
    graph = gradient.get_concrete_function(spec, spec).program.graph
    assert sum(v.constant.nbytes for v in graph.values() if v.constant is not None) < 200


def test_memory_of_large_results_is_used_again_and_never_while_it_is_held():
    f = native(lambda x: ow.exp(x) * 2.0)
    x = ow.constant(np.zeros((1024, 512), np.float32))
    first = f(x)
    second = f(x + 1.0)
    np.testing.assert_array_equal(first.numpy(), np.float32(2.0))
    kept = first.numpy()[3:5]
    del first
    third = f(x + 2.0)
    np.testing.assert_allclose(second, 2 * np.exp(np.float32(1)), 1e-6)
    np.testing.assert_allclose(third, 2 * np.exp(np.float32(2)), 1e-6)
    np.testing.assert_array_equal(kept, np.float32(2.0))
    del second, third, kept
    gc.collect()
    assert memory._kept_bytes == sum(b.nbytes for blocks in memory._kept.values() for b in blocks) <= memory.KEPT


def test_many_threads_call_one_function():
    f = native(lambda x: ow.reduce_sum(ow.sin(x) * x + 1.0, axis=1))
    xs = [array(64, 64) for _ in range(8)]
    wanted = [(np.sin(x.numpy()) * x.numpy() + 1).sum(1) for x in xs]
    wrong = []

    def work(i):
        wrong.extend(i for _ in range(200) if not np.allclose(f(xs[i]), wanted[i], 1e-4, 1e-4))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_same_bits_every_run():
    f = native(lambda x: ow.reduce_sum(ow.exp(x) / (1.0 + x * x)))
    x = array(257, 129)
    assert len({f(x).numpy().tobytes() for _ in range(5)}) == 1


def test_errors_name_the_node():
    f = native(lambda x, i: ow.gather(ow.tanh(x) * 2.0, i, name="looked_up") + 1.0)
    x = array(4, 300)
    f(x, ow.constant([0, 3]))
    with pytest.raises(ow.errors.InvalidArgumentError, match="Gather"):
        f(x, ow.constant([0, 4]))
    np.testing.assert_allclose(f(x, ow.constant([1, 2])), np.tanh(x.numpy()[[1, 2]]) * 2 + 1, 1e-5, 1e-6)


@pytest.mark.parametrize("jit_compile", [True, None])
def test_the_first_error_in_program_order_is_reported(jit_compile):
    """Test that the user's Gather is blamed: its gradient fails, too, and runs before it between native calls."""

    def f(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.tanh(x) * 2.0
            z = ow.gather(y, [16])
            loss = ow.reduce_sum(y) + ow.reduce_sum(z)
        return z, loss, tape.gradient(loss, x)

    f, x = ow.function(f, jit_compile=jit_compile, autograph=False), array(16, 8)
    with ow.flags(hot_calls=1):
        for _ in range(3):
            with pytest.raises(ow.errors.InvalidArgumentError, match=r"Gather 'Gather' .*indices\[0\] = 16"):
                f(x)


@pytest.mark.parametrize("sizes", [[5], [2, -1, -1], [-3]])
def test_a_reshape_to_computed_sizes_raises_as_to_constants(sizes):
    """Test the message of sizes that are known only at run time, which was NumPy's."""
    with pytest.raises(ow.errors.InvalidArgumentError) as eager:
        ow.reshape(array(4), sizes)
    f = ow.function(ow.reshape, input_signature=[ow.TensorSpec([None]), ow.TensorSpec([None], ow.int32)])
    with pytest.raises(ow.errors.InvalidArgumentError) as traced:
        f(array(4), ow.constant(sizes))
    what = str(eager.value).split("\n")[0].partition(": ")[2]
    assert what in str(traced.value)


def test_an_operator_that_fails_while_constants_are_folded_does_not_fail_the_compiler():
    """Test ScatterNd of the gradient, which has constant operands of sizes that contradict each other."""

    def f(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.tanh(x) * 2.0
            z = ow.ensure_shape(ow.boolean_mask(y, ow.fill([4], False)), [4, 7])
            loss = ow.reduce_sum(y) + ow.reduce_sum(z)
        return z, loss, tape.gradient(loss, x)

    with pytest.raises(ow.errors.InvalidArgumentError, match=r"EnsureShape .*tensor \(0, 7\)"):
        native(f)(array(4, 7))


def test_a_python_operator_raises_its_own_error_and_the_function_stays_usable():
    def may_fail(x):
        if x.max() > 5:
            raise ZeroDivisionError("too large")
        return x

    f = native(lambda x: ow.numpy_function(may_fail, [ow.exp(x) * 2.0], ow.float32) + 1.0)
    x = ow.constant(np.zeros((4, 4), np.float32))
    f(x)
    with pytest.raises(Exception, match="too large"):
        f(x + 3.0)
    np.testing.assert_array_equal(f(x), np.float32(3.0))


def test_where_nothing_can_be_compiled_there_is_one_warning(monkeypatch):
    from opwright.compiler import native_plan

    def refuse(*_):
        raise RuntimeError("no target")

    monkeypatch.setattr(native_plan, "_compiled", refuse)
    f = native(lambda x: ow.tanh(x) + 1.0)
    with pytest.warns(RuntimeWarning, match="no target"):
        np.testing.assert_allclose(f(ow.zeros([3])), np.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(f(ow.zeros([3])), np.ones(3))


def test_checks_see_each_operator():
    f = native(lambda x: ow.math.log(x) * 2.0 + 1.0)
    f(ow.ones([3]))
    with ow.flags(check_numerics=True), pytest.raises(ow.errors.InvalidArgumentError, match="Log"):
        f(ow.constant([-1.0, 1.0, 2.0]))


def test_left_alone_a_function_is_not_compiled():
    f = ow.function(lambda x: ow.tanh(x) + 1.0, autograph=False)
    f(ow.ones([3]))
    with pytest.raises(ValueError, match="jit_compile"):
        f.experimental_get_compiler_ir(ow.ones([3]))


def test_fit_with_compiled_steps():
    x, y = RNG.standard_normal((70, 6), dtype=np.float32), RNG.integers(0, 3, 70)
    losses = []
    for jit in ("auto", True):
        ow.keras.utils.set_random_seed(5)
        layers = [ow.keras.layers.Dense(8, activation="gelu"), ow.keras.layers.Dense(3)]
        model = ow.keras.Sequential(layers)
        model.compile("sgd", ow.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=jit)
        losses.append(model.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False).history["loss"])
    np.testing.assert_allclose(losses[1], losses[0], 1e-5)


def test_stages_of_the_compiled_form():
    f = native(lambda x: ow.tanh(x) + 1.0)
    x = ow.ones([3])
    show = f.experimental_get_compiler_ir(x)
    assert "tanh" in show("loops")
    assert "plan of" in show("plan")
    assert "native call" in show("report")
    with pytest.raises(ValueError, match="loops, plan, report"):
        show("hlo")


def first_order(program, arguments):
    reset()
    sources = [*arguments[:3], v]
    with ow.GradientTape() as tape:
        tape.watch(arguments[:3])
        outputs = program(*arguments)
        y = total(outputs)
    return [*outputs, *map(ow.convert_to_tensor, tape.gradient(y, sources, unconnected_gradients="zero"))]


SETTINGS = {"suppress_health_check": list(HealthCheck), "deadline": None}


def check(source, point, n):
    with Made(source) as program:
        arguments = tensors(point, n)
        expected = first_order(program, arguments)
        for call in (
            lambda *a: first_order(ow.function(program, jit_compile=True), a),
            ow.function(lambda *a: first_order(program, a), jit_compile=True),
        ):
            for i, (x, y) in enumerate(zip(call(*arguments), expected, strict=True)):
                np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-8, atol=1e-10, err_msg=f"{i}")


@settings(max_examples=examples(10), **SETTINGS)
@given(programs(), POINTS, st.integers(0, 3))
def test_generated_programs(source, point, n):
    check(source, point, n)


@pytest.mark.slow
@settings(max_examples=200, **SETTINGS)
@given(programs(3), POINTS, st.integers(0, 3))
def test_many_generated_programs(source, point, n):
    check(source, point, n)


def test_a_part_of_a_concatenation_as_a_transposed_factor():
    """The part is written into the concatenation's memory, whose rows are longer than its own."""

    def f(x, y, z):
        part = ow.tanh(x)
        return ow.concat([part, ow.exp(y)], 1), ow.matmul(part, z, transpose_a=True)

    x, y, z = array(130, 37), array(130, 19), array(130, 50)
    joined, product = native(f)(x, y, z)
    part = np.tanh(x.numpy().astype(np.float64))
    np.testing.assert_allclose(joined, np.concatenate([part, np.exp(y.numpy().astype(np.float64))], 1), 1e-5, 1e-6)
    np.testing.assert_allclose(product, part.T @ z.numpy().astype(np.float64), 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_second_power_is_a_product(dtype):
    """pow(x, 2) is x x, correctly rounded, at every float; the kernel calls no pow."""
    x = np.concatenate([np.random.default_rng(5).standard_normal(999) * 1e3, [0.0, -0.0, np.inf, -np.inf, np.nan]])
    x = np.tile(x, 70).astype(dtype)
    f = ow.function(lambda x: x**2 + 1, jit_compile=True, autograph=False)
    np.testing.assert_array_equal(f(ow.constant(x)), x * x + 1)
    assert "square" in str(f.experimental_get_compiler_ir(ow.constant(x))(stage="loops"))


# ---- random numbers -------------------------------------------------------------------------------------------------

SEEDS = ([1, 2], [1 << 62, -5], [0, 0])


@pytest.mark.parametrize("shape", [[5], [4099], [3, 5001]], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_stateless_uniform_numbers_are_the_eager_ones(dtype, shape):
    f = native(lambda seed: ow.random.stateless_uniform(shape, seed, dtype=dtype) * 1.0)
    for seed in SEEDS:
        seed = ow.constant(seed, ow.int64)
        expected = ow.random.stateless_uniform(shape, seed, dtype=dtype).numpy()
        np.testing.assert_array_equal(f(seed).numpy(), expected)
    result = compiled(f, seed)
    assert len(result.regions) == (shape != [5])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_stateless_integers_are_the_eager_ones(dtype):
    limits = [(None, None), (0, 16), (3, 5), (0, 10), (7, 1 << 30), (0, (1 << 31) - 1)]
    limits += [(-7, 3)] if dtype[0] == "i" else []
    limits += [(-5, 1 << 40)] if dtype == "int64" else [(0, 1 << 40)] if dtype == "uint64" else []
    for low, high in limits:

        def draw(seed, low=low, high=high):
            return ow.reshape(ow.random.stateless_uniform([3, 1501], seed, low, high, dtype), [-1])

        f = native(draw)
        for of_seed in (ow.int32, ow.uint32, ow.uint64):
            seed = ow.constant([77, 12345], of_seed)
            np.testing.assert_array_equal(f(seed).numpy(), draw(seed).numpy(), str((low, high)))


def test_normal_numbers_are_the_eager_ones_but_for_the_tail():
    """Beyond 3.65 a number is a logarithm, which the C library rounds otherwise in one of hundred cases."""
    for dtype, rtol in (("float32", 2.5e-7), ("float16", 1e-3), ("bfloat16", 8e-3)):
        f = native(lambda seed, dtype=dtype: ow.random.stateless_normal([200_001], seed, dtype=dtype) * 1.0)
        for seed in SEEDS:
            seed = ow.constant(seed, ow.int64)
            expected = ow.random.stateless_normal([200_001], seed, dtype=dtype).numpy().astype(np.float64)
            actual = f(seed).numpy().astype(np.float64)
            body = np.abs(expected) < 3.65
            np.testing.assert_array_equal(actual[body], expected[body])
            np.testing.assert_allclose(actual, expected, rtol)
        assert len(compiled(f, seed).regions) == 1


@pytest.mark.parametrize("seed", [None, 5])
def test_sequences_go_on_as_without_compilation(seed):
    """Dropout with and without a seed, in branches and loops, and a generator: what a function draws in each run."""
    x = array(20, 300)

    def draw(x, generator):
        y = ow.nn.dropout(x, 0.3, seed=seed) + ow.random.normal([20, 300], seed=seed)
        for _ in ow.range(3):
            y = ow.nn.dropout(y, 0.1, seed=seed) * 1.5
        n = ow.random.uniform([20, 300], 0, 10, ow.int32, seed=seed)
        return y, n + 1, generator.uniform([20, 300]) * 2.0

    runs = []
    for jit in (True, False):
        ow.random.set_seed(3)
        generator = ow.random.Generator.from_seed(4)
        f = ow.function(lambda x, generator=generator: draw(x, generator), jit_compile=jit)
        runs.append([f(x) for _ in range(3)])
        if jit:
            result = compiled(f, x)
            drawn = {n.op.name for region in result.regions for n in region.nodes}
            assert {"StatelessRandomUniform", "StatelessRandomNormal", "StatelessRandomUniformInt"} <= drawn
            assert not [node for node in result.uncompiled if node.op.startswith("Random") and node.op != "RandomKey"]
    ow.random.set_seed(0)
    for actual, expected in zip(*runs):
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-6, 1e-6)
    assert (runs[0][0][0].numpy() != runs[0][1][0].numpy()).any()


@pytest.mark.parametrize("seed", [None, 5])
def test_classes_are_drawn_as_without_compilation(seed):
    """Classes by logits, in float32 and float64, of a sequence that goes on, a generator and a key; never a class of
    weight 0."""
    logits = ow.concat([array(30, 5), ow.fill([30, 1], -np.inf)], 1)

    def draw(logits, generator):
        a = ow.random.categorical(logits * 2.0, 100, dtype="int32", seed=seed) * 3
        b = ow.random.categorical(ow.cast(logits, "float64"), 7, seed=seed) + 1
        c = ow.random.stateless_categorical(logits, 9, [3, 4]) + generator.uniform([30, 9], 0, 4, ow.int64)
        return a, b, c

    runs = []
    for jit in (True, False):
        ow.random.set_seed(3)
        generator = ow.random.Generator.from_seed(4)
        f = ow.function(lambda x, generator=generator: draw(x, generator), jit_compile=jit)
        runs.append([f(logits) for _ in range(3)])
        if jit:
            assert not [node for node in compiled(f, logits).uncompiled if "Multinomial" in node.op]
    ow.random.set_seed(0)
    for actual, expected in zip(*runs):
        for x, y in zip(actual, expected, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x.numpy(), y.numpy())
    first, second = (run[0].numpy() for run in runs[0][:2])
    assert 0 <= first.min() < first.max() <= 12
    assert (first != second).any()


def test_without_a_seed_each_run_draws_other_numbers():
    f = native(lambda: ow.random.uniform([5000]) * 2.0)
    a, b = f().numpy(), f().numpy()
    assert (a != b).any()
    assert 0.9 < a.mean() < 1.1


def test_a_step_with_dropout_is_one_native_call():
    model = ow.keras.Sequential(
        [ow.keras.layers.Dense(64, "relu"), ow.keras.layers.Dropout(0.2, seed=3), ow.keras.layers.Dense(4)]
    )
    optimizer, x = ow.keras.optimizers.SGD(0.1), array(32, 16)
    model(x)

    def step(x):
        with ow.GradientTape() as tape:
            loss = ow.reduce_mean(ow.square(model(x, training=True)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    f = native(step)
    f(x)
    result = compiled(f, x)
    assert len(result.regions) == 1
    assert "StatelessRandomUniform" in {n.op.name for n in result.regions[0].nodes}
    assert not {n.op for n in result.uncompiled} - {"ReadVariable", "AssignAddVariable"}


def test_without_memory_for_a_result_the_process_goes_on():
    sizes = [1 << 29, 1 << 29]  # 2^60 bytes, beyond the addresses of any process
    f = ow.function(lambda x: ow.broadcast_to(x, sizes) * 2.0, jit_compile=True)
    with pytest.raises(ow.errors.ResourceExhaustedError, match="no memory for a result of 1152921504606846976 bytes"):
        f(ow.ones([1]))
    assert f.experimental_get_compiler_ir(ow.ones([1]))("report")
    assert float(ow.function(lambda x: x * 2.0 + 1.0, jit_compile=True)(ow.ones([]))) == 3
