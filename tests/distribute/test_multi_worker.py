"""Data-parallel training on threads as workers: against one worker with the whole batch, against float64 and PyTorch's
formulas; the same bits for a fixed order of sums."""

import numpy as np
import pytest
from tests.distribute.thread_workers import ThreadCommunicator, run_workers

import opwright as ow
from opwright.core import flags
from opwright.distribute import MultiWorker
from opwright.distribute.communicators import Communicator, LocalCommunicator, summed

layers = ow.keras.layers


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def perceptron(dtype="float32", widths=(33, 17)):
    hidden = [layers.Dense(w, "tanh", dtype=dtype) for w in widths]
    model = ow.keras.Sequential([ow.keras.Input((12,), dtype=dtype), *hidden, layers.Dense(5, dtype=dtype)])
    model.set_weights([numbers(*w.shape, seed=i, dtype=dtype) / 4 for i, w in enumerate(model.get_weights())])
    return model


def compiled(model, optimizer=None, **options):
    loss = ow.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer or ow.keras.optimizers.SGD(0.1, momentum=0.9), loss, metrics=["accuracy"], **options)
    return model


X, Y = numbers(56, 12, seed=7), np.random.default_rng(8).integers(0, 5, 56)
FIT = {"batch_size": 24, "epochs": 2, "verbose": 0, "shuffle": False}  # batches of 24, 24 and 8


def relative(a, b):
    return max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in zip(a, b))


# ---- collectives ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [0, 1, 7, 9001, 300_001])
def test_sums_are_by_rank(size, count):
    parts = [numbers(count, seed=r) * 10.0**r for r in range(size)]
    expected = parts[0].copy()
    for part in parts[1:]:
        expected = expected + part  # float32, in this order
    sparse = [(np.unique(np.arange(r, r + 40, r + 1)), r) for r in range(size)]

    def work(communicator):
        i, r = sparse[communicator.rank]
        rows = [(i, numbers(len(i), 3, seed=r))]
        return communicator.all_reduce_with_rows([parts[communicator.rank], parts[0][:5]], rows, 2)

    dense = np.zeros((60, 3))
    for i, r in sparse:
        dense[i] += numbers(len(i), 3, seed=r).astype(np.float64)
    for (total, _), [(rows, values)] in run_workers(size, work):
        np.testing.assert_array_equal(total, expected / np.float32(2))
        np.testing.assert_array_equal(rows, np.unique(np.concatenate([i for i, _ in sparse])))
        np.testing.assert_allclose(values, dense[rows] / 2, rtol=1e-6, atol=1e-6)


def test_all_to_all_gather_and_broadcast():
    def work(communicator):
        r, n = communicator.rank, communicator.size
        parts = [[np.full((r + t, 2), 10 * r + t), np.arange(t)] for t in range(n)]
        received = communicator.all_to_all(parts)
        value = np.array(float(r))
        communicator.broadcast(value, 2)
        communicator.barrier()
        return received, communicator.all_gather(np.array([r, r * r])), value

    for rank, (received, gathered, value) in enumerate(run_workers(3, work)):
        for source, (full, counts) in enumerate(received):
            np.testing.assert_array_equal(full, np.full((source + rank, 2), 10 * source + rank))
            np.testing.assert_array_equal(counts, np.arange(rank))
        np.testing.assert_array_equal(gathered, [[0, 0], [1, 1], [2, 4]])
        assert value == 2.0


def test_sums_of_half_precision_are_wide():
    values = np.array([[2048.0], [1.0], [1.0], [1.0], [1.0]], np.float16)  # 2048 + 1 is 2048 in float16
    assert summed(values.copy())[0] == 2052.0


def test_an_engine_has_to_exchange():
    class Half(Communicator):
        size = 2

    with pytest.raises(NotImplementedError, match="Half"):
        Half().barrier()


# ---- one worker with the whole batch --------------------------------------------------------------------------------


def fitted(communicator, model, x=X, y=Y, **options):
    strategy = {k: options.pop(k) for k in ("overlap", "bucket_bytes", "sync_every") if k in options}
    with MultiWorker(communicator, **{"overlap": False, **strategy}):
        history = model.fit(x, y, **{**FIT, **options}).history
    return model.get_weights(), history


@pytest.mark.parametrize(
    ("size", "options"),
    [(2, {}), (3, {"overlap": True, "bucket_bytes": 900}), pytest.param(2, {"overlap": True}, marks=pytest.mark.slow)],
)
def test_workers_are_one_worker_with_the_whole_batch(size, options):
    """Batches of 24, and a rest of 8 of which 3 workers have 2, 3 and 3."""
    models = [compiled(perceptron()) for _ in range(size)]
    results = run_workers(size, lambda c: fitted(c, models[c.rank], **options))
    alone = compiled(perceptron())
    expected = alone.fit(X, Y, **FIT).history
    for weights, history in results:
        assert relative(weights, alone.get_weights()) < 1e-6
        np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-6)
        np.testing.assert_allclose(history["accuracy"], expected["accuracy"], rtol=1e-6)
    for a, b in zip(results[0][0], results[-1][0]):
        np.testing.assert_array_equal(a, b)


@pytest.fixture
def float64():
    before = ow.keras.backend.floatx()
    ow.keras.backend.set_floatx("float64")
    yield
    ow.keras.backend.set_floatx(before)


def accumulated(size, dtype):
    """Train on `size` workers, and on one that accumulates the gradients of their parts; return both weights."""
    x, y = numbers(2 * size * 8, 12, seed=3, dtype=dtype), np.arange(2 * size * 8) % 5
    models = [compiled(perceptron(dtype), ow.keras.optimizers.SGD(0.1)) for _ in range(size)]
    results = run_workers(size, lambda c: fitted(c, models[c.rank], x=x, y=y, batch_size=8 * size))
    optimizer = ow.keras.optimizers.SGD(0.1, gradient_accumulation_steps=size)
    alone = compiled(perceptron(dtype), optimizer, jit_compile=True)
    alone.fit(x, y, **{**FIT, "batch_size": 8})
    return [weights for weights, _ in results], alone.get_weights()


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_workers_are_one_worker_that_accumulates_bit_for_bit(size):
    """((g_0 + g_1) + g_2) / 3 in both: of three workers, and of one that accumulates their batches."""
    results, alone = accumulated(size, np.float32)
    for weights in results:
        for a, b in zip(weights, alone):
            np.testing.assert_array_equal(a, b)


def test_float64_is_exact_by_parts_and_by_the_whole_to_rounding(float64):
    results, alone = accumulated(2, np.float64)
    for weights in results:
        for a, b in zip(weights, alone):
            np.testing.assert_array_equal(a, b)
    x = X.astype(np.float64)
    models = [compiled(perceptron("float64")) for _ in range(2)]
    results = run_workers(2, lambda c: fitted(c, models[c.rank], x=x))
    whole = compiled(perceptron("float64"))
    whole.fit(x, Y, **FIT)
    assert relative(results[0][0], whole.get_weights()) < 1e-14


def test_custom_loops_add_gradients():
    """A loss scaled by the global batch: as tf.distribute."""
    models = [perceptron() for _ in range(2)]

    def work(communicator):
        model, optimizer = models[communicator.rank], ow.keras.optimizers.SGD(0.5)
        with MultiWorker(communicator, bucket_bytes=1000) as strategy:

            @ow.function
            def step(x, y):
                with ow.GradientTape() as tape:
                    losses = ow.keras.losses.sparse_categorical_crossentropy(y, model(x), from_logits=True)
                    loss = ow.reduce_sum(losses) / 56.0
                variables = model.trainable_weights
                optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
                return loss

            dataset = ow.data.Dataset.from_tensor_slices((X, Y)).batch(56)
            part = strategy.experimental_distribute_dataset(dataset)
            (loss,) = [strategy.run(step, args=batch) for batch in part]
            assert ow.distribute.has_strategy()
            assert ow.distribute.get_strategy() is strategy
            total, mean = strategy.reduce("SUM", loss), strategy.reduce("MEAN", ow.constant([[1.0, 2.0]]), axis=1)
            return model.get_weights(), total.numpy(), mean.numpy()

    alone = perceptron()
    with ow.GradientTape() as tape:
        expected = ow.reduce_mean(ow.keras.losses.sparse_categorical_crossentropy(Y, alone(X), from_logits=True))
    for v, g in zip(alone.trainable_weights, tape.gradient(expected, alone.trainable_weights)):
        v.assign_sub(0.5 * g)
    for weights, total, mean in run_workers(2, work):
        assert relative(weights, alone.get_weights()) < 1e-6
        np.testing.assert_allclose(total, expected.numpy(), rtol=1e-6)
        np.testing.assert_allclose(mean, [1.5])
    assert not ow.distribute.has_strategy()
    assert ow.distribute.get_strategy().num_replicas_in_sync == 1


# ---- batch normalization, statistics, local steps -------------------------------------------------------------------


def normalized(synchronized):
    model = ow.keras.Sequential(
        [
            ow.keras.Input((4, 4, 3)),
            layers.Conv2D(6, 3),
            layers.BatchNormalization(synchronized=synchronized, momentum=0.5),
            layers.Activation("tanh"),
            layers.Flatten(),
            layers.Dense(5),
        ]
    )
    kernel = [numbers(*w.shape, seed=i) / 2 for i, w in enumerate(model.get_weights())]
    kernel[5] = np.ones_like(kernel[5])  # the moving variance
    model.set_weights(kernel)
    return compiled(model, ow.keras.optimizers.SGD(0.1))


IMAGES = numbers(56, 4, 4, 3, seed=9)


def test_synchronized_batch_normalization_is_that_of_the_whole_batch():
    """Moments, gradients through them, and moving averages; the last batch has 8 examples, on 3 workers 2, 3 and 3."""
    models = [normalized(True) for _ in range(3)]
    results = run_workers(3, lambda c: fitted(c, models[c.rank], x=IMAGES))
    alone = normalized(False)
    alone.fit(IMAGES, Y, **FIT)
    for weights, _ in results:
        assert relative(weights, alone.get_weights()) < 3e-6


def test_moving_averages_are_means_over_workers():
    models = [normalized(False) for _ in range(2)]
    results = run_workers(2, lambda c: fitted(c, models[c.rank], x=IMAGES, epochs=1, batch_size=56))
    kernel, bias = normalized(False).get_weights()[:2]
    patches = np.lib.stride_tricks.sliding_window_view(IMAGES, (3, 3), (1, 2)).astype(np.float64)
    outputs = np.einsum("nijcpq,pqcd->nijd", patches, kernel) + bias
    expected = np.mean([outputs[:28].mean((0, 1, 2)), outputs[28:].mean((0, 1, 2))], 0) * 0.5
    before = normalized(False).get_weights()[4] * 0.5
    for weights, _ in results:
        np.testing.assert_allclose(weights[4], before + expected, rtol=1e-5, atol=1e-6)


def test_local_steps_are_averaged():
    """sync_every=2: two steps of each worker alone, then the mean of their weights."""
    models = [compiled(perceptron(), ow.keras.optimizers.SGD(0.1)) for _ in range(2)]
    x, y = X[:48], Y[:48]
    results = run_workers(2, lambda c: fitted(c, models[c.rank], x=x, y=y, epochs=1, sync_every=2))
    alone = []
    for rank in range(2):
        parts = [slice(b + 12 * rank, b + 12 * rank + 12) for b in (0, 24)]
        model = compiled(perceptron(), ow.keras.optimizers.SGD(0.1))
        model.fit(
            np.concatenate([x[p] for p in parts]),
            np.concatenate([y[p] for p in parts]),
            **{**FIT, "batch_size": 12, "epochs": 1},
        )
        alone.append(model.get_weights())
    expected = [(a.astype(np.float64) + b) / 2 for a, b in zip(*alone)]
    for weights, _ in results:
        assert relative(weights, expected) < 1e-6


def test_accumulated_gradients_are_reduced_once():
    """Four batches, two updates; 2 workers with halves against one with the whole."""
    optimizer = lambda: ow.keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)  # noqa: E731
    models = [compiled(perceptron(), optimizer()) for _ in range(2)]
    options = {"batch_size": 14, "epochs": 1}
    results = run_workers(2, lambda c: fitted(c, models[c.rank], **options))
    alone = compiled(perceptron(), optimizer())
    alone.fit(X, Y, **{**FIT, **options})
    for weights, _ in results:
        assert relative(weights, alone.get_weights()) < 1e-6


# ---- datasets -------------------------------------------------------------------------------------------------------


def test_parts_of_batches_are_the_batch():
    """23 elements: 10, 10 and 3, and in batches of 21 a rest of 2."""
    dataset = ow.data.Dataset.range(23).batch(10).concatenate(ow.data.Dataset.range(2).batch(2))

    def work(communicator):
        strategy = MultiWorker(communicator)
        shard = strategy.distribute_datasets_from_function(
            lambda context: ow.data.Dataset.range(23).shard(context.num_input_pipelines, context.input_pipeline_id)
        )
        part = strategy.experimental_distribute_dataset(dataset)
        return [b.numpy() for b in part], [int(e.numpy()) for e in shard]

    parts = run_workers(3, work)
    for i, batch in enumerate(dataset):
        np.testing.assert_array_equal(np.concatenate([own[i] for own, _ in parts]), batch.numpy())
    assert sorted(n for _, shard in parts for n in shard) == list(range(23))


def test_shuffled_arrays_have_one_order():
    """Each example is seen by one worker in each epoch, though the workers' generators differ."""
    seen = [[], []]

    def work(communicator):
        batches = ow.nn.training.batches.ArrayBatches(np.arange(40.0, dtype=np.float32), None, None, 8, True)
        with MultiWorker(communicator) as strategy:
            shared = strategy.shared_batches(batches)
            for _ in range(2):
                seen[communicator.rank].append([b.numpy().ravel() for b in shared.epoch()])

    run_workers(2, work)
    for epoch in range(2):
        both = [np.concatenate([a, b]) for a, b in zip(seen[0][epoch], seen[1][epoch])]
        assert sorted(np.concatenate(both)) == list(range(40))
        assert all(len(b) == 8 for b in both)


def test_datasets_in_different_orders_are_refused():
    models = [compiled(perceptron()) for _ in range(2)]

    def work(communicator):
        dataset = ow.data.Dataset.from_tensor_slices((X, Y)).shuffle(56, seed=communicator.rank + 1).batch(28)
        with MultiWorker(communicator):
            models[communicator.rank].fit(dataset, verbose=0)

    with pytest.raises(ow.errors.FailedPreconditionError, match="shuffle with a seed"):
        run_workers(2, work)


RESTS = {"x": X[:25], "y": Y[:25], "batch_size": 24}  # a batch of 24 and one of 1


@pytest.mark.parametrize("size", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_workers_without_examples_count_nothing(size):
    """In the last batch of an epoch one worker has the only example: weights, losses and metrics of one process."""
    models = [compiled(perceptron()) for _ in range(size)]
    metrics = []

    class Metrics(ow.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            metrics.append(logs)

    def work(communicator):
        model, mine = models[communicator.rank], [Metrics()] if communicator.rank == 0 else []
        weights, history = fitted(communicator, model, callbacks=mine, **RESTS)
        with MultiWorker(communicator, overlap=False):
            return weights, history, model.evaluate(X[:25], Y[:25], batch_size=24, verbose=0)

    results = run_workers(size, work)
    workers, metrics = metrics, []
    alone = compiled(perceptron())
    expected = alone.fit(RESTS["x"], RESTS["y"], **{**FIT, "batch_size": 24}, callbacks=[Metrics()]).history
    evaluated = alone.evaluate(X[:25], Y[:25], batch_size=24, verbose=0)
    for weights, history, values in results:
        assert relative(weights, alone.get_weights()) < 1e-6
        for name in ("loss", "accuracy"):
            np.testing.assert_allclose(history[name], expected[name], rtol=1e-6)
            np.testing.assert_allclose([m[name] for m in workers], [m[name] for m in metrics], rtol=1e-6)
        np.testing.assert_allclose(values, evaluated, rtol=1e-6)


def test_an_evaluation_of_one_example():
    """The metrics of the worker without it are created by its first step."""
    models = [compiled(perceptron()) for _ in range(2)]

    def work(communicator):
        with MultiWorker(communicator, overlap=False):
            return models[communicator.rank].evaluate(X[:1], Y[:1], verbose=0)

    for values in run_workers(2, work):
        np.testing.assert_allclose(values, compiled(perceptron()).evaluate(X[:1], Y[:1], verbose=0), rtol=1e-6)


def test_a_rest_is_exact_in_float64(float64):
    """(0 + 2 g) / 2 is g."""
    x = X.astype(np.float64)[:1]
    models = [compiled(perceptron("float64")) for _ in range(2)]
    results = run_workers(2, lambda c: fitted(c, models[c.rank], x=x, y=Y[:1]))
    alone = compiled(perceptron("float64"), jit_compile=True)
    alone.fit(x, Y[:1], **FIT)
    for weights, _ in results:
        for a, b in zip(weights, alone.get_weights()):
            np.testing.assert_array_equal(a, b)


def test_moments_of_workers_without_examples_count_nothing():
    models = [normalized(True) for _ in range(3)]
    results = run_workers(3, lambda c: fitted(c, models[c.rank], x=IMAGES[:50], y=Y[:50]))  # 24, 24 and 2
    alone = normalized(False)
    alone.fit(IMAGES[:50], Y[:50], **FIT)
    for weights, _ in results:
        assert relative(weights, alone.get_weights()) < 3e-6


def test_datasets_of_workers_end_with_the_longest():
    """Workers with batches of 8, 8, 8 and 4; of 8 and 8: the steps of one worker with batches of 16, 16, 8 and 4."""
    models = [compiled(perceptron(), ow.keras.optimizers.SGD(0.1)) for _ in range(2)]
    rows = [np.r_[0:8, 16:24, 32:44], np.r_[8:16, 24:32]]

    def work(communicator):
        mine = rows[communicator.rank]
        with MultiWorker(communicator, overlap=False) as strategy:
            dataset = strategy.distribute_datasets_from_function(
                lambda context: ow.data.Dataset.from_tensor_slices((X[mine], Y[mine])).batch(8)
            )
            model = models[communicator.rank]
            return model.fit(dataset, epochs=2, verbose=0).history, model.get_weights()

    results = run_workers(2, work)
    alone = compiled(perceptron(), ow.keras.optimizers.SGD(0.1))
    batches = [slice(0, 16), slice(16, 32), slice(32, 40), slice(40, 44)]
    generator = ((X[b], Y[b]) for _ in range(2) for b in batches)
    expected = alone.fit(generator, epochs=2, steps_per_epoch=4, verbose=0).history
    for history, weights in results:
        assert relative(weights, alone.get_weights()) < 1e-6
        np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-6)
        np.testing.assert_allclose(history["accuracy"], expected["accuracy"], rtol=1e-6)


def test_a_worker_without_a_batch_is_an_error():
    models = [compiled(perceptron()) for _ in range(2)]

    def work(communicator):
        with MultiWorker(communicator, overlap=False) as strategy:
            dataset = strategy.distribute_datasets_from_function(
                lambda context: ow.data.Dataset.from_tensor_slices((X[:1], Y[:1])).shard(2, communicator.rank).batch(8)
            )
            models[communicator.rank].fit(dataset, verbose=0)

    with pytest.raises(ow.errors.FailedPreconditionError, match="the dataset of worker 1 has no batch"):
        run_workers(2, work)


@pytest.mark.parametrize("of", ["arrays", "dataset"])
def test_predictions_are_computed_in_parts_and_returned_whole(of):
    """Batches of 8, 8 and 4 on 3 workers, and a rest of 2 that each of them computes."""
    x = X[:22]
    models, seen = [perceptron() for _ in range(3)], [[], [], []]

    def work(communicator):
        model = models[communicator.rank]

        class Recorded(ow.keras.callbacks.Callback):
            def on_predict_batch_end(self, batch, logs=None):
                seen[communicator.rank].append(len(logs["outputs"]))

        source = x if of == "arrays" else ow.data.Dataset.from_tensor_slices(x).batch(10)
        with MultiWorker(communicator):
            rows = []
            predict = model.predict_step
            model.predict_step = lambda data: rows.append(data.shape[0]) or predict(data)
            model.run_eagerly = True
            result = model.predict(source, batch_size=10, verbose=0, callbacks=[Recorded()])
        return result, rows

    alone = perceptron().predict(x, verbose=0)
    for rank, (result, rows) in enumerate(run_workers(3, work)):
        np.testing.assert_allclose(result, alone, rtol=2e-6, atol=1e-6)
        assert rows == [[3, 3, 2], [3, 3, 2], [4, 4, 2]][rank]
        assert seen[rank] == [10, 10, 2]


def test_predictions_of_other_datasets_are_refused():
    models = [perceptron() for _ in range(2)]

    def work(communicator):
        with MultiWorker(communicator):
            models[communicator.rank].predict(ow.data.Dataset.from_tensor_slices(X + communicator.rank).batch(28))

    with pytest.raises(ow.errors.FailedPreconditionError, match="batches differ"):
        run_workers(2, work)


# ---- random numbers -------------------------------------------------------------------------------------------------


def dropped(communicator):
    """Two eager and two compiled masks of a layer with a seed in steps; initial values; a mask outside of steps."""
    layer = layers.Dropout(0.5, seed=3)
    with MultiWorker(communicator) as strategy:
        step = lambda: layer(ow.ones([4, 100]), training=True)  # noqa: E731
        masks = [strategy.run(step).numpy() for _ in range(2)]
        masks += [strategy.run(ow.function(step, jit_compile=True)).numpy() for _ in range(2)]
        dense = layers.Dense(5, kernel_initializer=ow.keras.initializers.RandomNormal(seed=1))
        strategy.run(lambda: dense(ow.ones([1, 3])))
        return masks, dense.get_weights()[0], step().numpy()


def test_workers_draw_numbers_of_their_own_in_steps():
    """Philox of the seed, from call 2^48 * rank on: the same in every run."""
    results = run_workers(2, dropped)
    for rank, (masks, _, outside) in enumerate(results):
        for number, mask in enumerate(masks):
            draw = ow.random.stateless_uniform([4, 100], [3, number + (rank << 48)])
            np.testing.assert_array_equal(mask, np.where(draw.numpy() >= 0.5, 2.0, 0.0))
        draw = ow.random.stateless_uniform([4, 100], [3, len(masks)])
        np.testing.assert_array_equal(outside, np.where(draw.numpy() >= 0.5, 2.0, 0.0))
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_sequences_of_operators_differ_by_worker(monkeypatch):
    monkeypatch.setattr(ThreadCommunicator, "local_size", lambda communicator: 1)  # one after the other
    values = []
    for rank in range(2):
        ow.random.set_seed(5)
        with MultiWorker(ThreadCommunicator(rank, 2, {}), overlap=False) as strategy:
            step = lambda: ow.random.uniform([3], seed=7)  # noqa: E731
            values.append([step().numpy(), strategy.run(step).numpy(), strategy.run(ow.function(step)).numpy()])
    np.testing.assert_array_equal(values[0][0], values[1][0])
    for first, second in zip(values[0][1:], values[1][1:]):
        assert (first != second).all()


def test_overlap_is_for_several_hosts(monkeypatch):
    def work(communicator):
        return MultiWorker(communicator).stages_gradients

    assert run_workers(2, work) == [False, False]
    names = iter(["a", "b"])
    monkeypatch.setattr("opwright.distribute.communicators.host_id", lambda: next(names))
    assert run_workers(2, work) == [True, True]


def test_workers_of_a_host_divide_its_processors(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(7)), raising=False)

    def work(communicator):
        strategy = MultiWorker(communicator)
        communicator.barrier()
        with strategy:
            communicator.barrier()
            threads = flags.num_threads
            communicator.barrier()
        return threads

    for number, share in ((0, 3), (5, 5)):
        with flags.override(num_threads=number):
            assert run_workers(2, work) == [share, share]
            assert flags.num_threads == number
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1}, raising=False)
    assert run_workers(3, work) == [2, 2, 2]  # bound by a launcher


# ---- errors and files -----------------------------------------------------------------------------------------------


def test_arguments():
    for name in ("sync_every", "bucket_bytes"):
        with pytest.raises(ow.errors.InvalidArgumentError, match=name):
            MultiWorker(LocalCommunicator(), **{name: 0})
    with pytest.raises(ValueError, match="'SUM' or 'MEAN'"):
        MultiWorker().reduce("max", 1.0)
    with pytest.raises(ow.errors.FailedPreconditionError, match="traced once"):
        ow.function(lambda: MultiWorker(sync_every=2).run(lambda: ow.constant(1)))()
    context = ow.distribute.InputContext(2, 0, 2)
    assert context.get_per_replica_batch_size(8) == 4
    with pytest.raises(ValueError, match="not divisible"):
        context.get_per_replica_batch_size(7)


def test_one_worker_writes_checkpoints(tmp_path):
    models = [perceptron() for _ in range(2)]

    def work(communicator):
        path = tmp_path / "shared" / "model"
        with MultiWorker(communicator):
            checkpoint = ow.train.Checkpoint(model=models[communicator.rank])
            saved = checkpoint.save(path)
            assert ow.train.latest_checkpoint(tmp_path / "shared") == saved  # on both: after the write
            fail = tmp_path / "file"
            fail.write_text("")
            with pytest.raises((OSError, ow.errors.FailedPreconditionError)) as error:
                checkpoint.save(fail / "model")
        return saved, type(error.value)

    (saved, first), (other, second) = run_workers(2, work)
    assert saved == other
    assert first is not second
    assert second is ow.errors.FailedPreconditionError
    restored = perceptron()
    restored.set_weights([np.zeros_like(w) for w in restored.get_weights()])
    ow.train.Checkpoint(model=restored).restore(saved).expect_partial()
    assert relative(restored.get_weights(), models[0].get_weights()) == 0


def test_an_error_ends_all_workers():
    ended = []

    class Ending(ThreadCommunicator):
        def abort(self, error):
            ended.append(error)

    with pytest.raises(KeyError), MultiWorker(Ending(0, 1, {})):
        raise KeyError("of the user's step")
    assert [type(e) for e in ended] == [KeyError]
