"""Names at which scripts begin: what they set, and their errors; samplers of classes have their distributions."""

import gzip
import json
import pstats

import numpy as np
import pytest

import opwright as ow
from opwright.core import flags


def test_devices_and_threads():
    (cpu,) = ow.config.list_physical_devices()
    with pytest.raises(ValueError, match="cannot be hidden"):
        ow.config.set_visible_devices([])
    with pytest.raises(ValueError, match="Unrecognized device"):
        ow.config.set_visible_devices([ow.config.PhysicalDevice("/physical_device:GPU:0", "GPU")])
    with pytest.raises(ValueError, match=r"2 logical devices.*ow\.distribute"):
        ow.config.set_logical_device_configuration(cpu, [ow.config.LogicalDeviceConfiguration()] * 2)
    with pytest.raises(ValueError, match="memory growth"):
        ow.config.experimental.set_memory_growth(cpu, True)
    before = flags.num_threads
    try:
        ow.config.threading.set_intra_op_parallelism_threads(1)
        assert flags.num_threads == ow.config.threading.get_intra_op_parallelism_threads() == 1
    finally:
        flags.configure(num_threads=before)
    with pytest.raises(ow.errors.InvalidArgumentError, match="0 or more"):
        ow.config.threading.set_inter_op_parallelism_threads(-1)


def test_profiles_have_spans_and_functions(tmp_path):
    profiler = ow.profiler.experimental
    with pytest.raises(ow.errors.UnavailableError, match="no profile"):
        profiler.stop()
    profiler.start(tmp_path)
    with pytest.raises(ow.errors.AlreadyExistsError, match="another profile"):
        profiler.start(tmp_path)
    with profiler.Trace("step", number=3, text=[1]):
        ow.reduce_sum(ow.ones([3]))
    profiler.stop()
    (trace,) = tmp_path.glob("plugins/profile/*/*.trace.json.gz")
    (span,) = [e for e in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"] if e["ph"] == "X"]
    assert span["name"] == "step"
    assert span["args"] == {"number": 3, "text": "[1]"}
    assert span["dur"] > 0
    (functions,) = tmp_path.glob("plugins/profile/*/*.prof")
    assert any("opwright" in path for path, _, _ in pstats.Stats(str(functions)).stats)
    profiler.start(tmp_path / "none", profiler.ProfilerOptions(python_tracer_level=0))
    profiler.stop(save=False)
    assert not (tmp_path / "none").exists()


def test_graphs_with_sessions_are_no_names():
    for name in ("Session", "placeholder", "variable_scope"):
        with pytest.raises(AttributeError, match="graphs with sessions do not exist here"):
            getattr(ow.compat.v1, name)


@pytest.mark.parametrize(
    ("sampler", "options", "probabilities"),
    [
        ("uniform_candidate_sampler", {}, np.full(8, 1 / 8)),
        ("log_uniform_candidate_sampler", {}, np.log1p(1 / np.arange(1, 9)) / np.log(9)),
        ("fixed_unigram_candidate_sampler", {"unigrams": [9, 4, 1, 1, 1, 1, 1, 16], "distortion": 0.5}, None),
    ],
)
def test_samplers_draw_by_their_distributions(sampler, options, probabilities):
    if probabilities is None:
        roots = np.sqrt(options["unigrams"])
        probabilities = roots / roots.sum()
    draw = getattr(ow.random, sampler)
    true = np.arange(8).reshape(8, 1)
    samples, true_counts, counts = draw(true, 1, 4000, False, 8, seed=1, **options)
    frequencies = np.bincount(samples.numpy(), minlength=8) / 4000
    np.testing.assert_allclose(frequencies, probabilities, atol=4 * np.sqrt(0.25 / 4000))  # 4 deviations
    np.testing.assert_allclose(true_counts.numpy()[:, 0], probabilities * 4000, rtol=1e-5)
    np.testing.assert_allclose(counts, probabilities[samples.numpy()] * 4000, rtol=1e-5)
    # without repeated classes: as by drawing again and again
    rounds, totals = 400, {"ours": np.zeros((2, 8)), "oracle": np.zeros((2, 8))}
    rng = np.random.default_rng(5)
    for i in range(rounds):
        samples, true_counts, _ = draw(true, 1, 3, True, 8, seed=2 * i + 1, **options)
        assert len(set(samples.numpy().tolist())) == 3
        totals["ours"][0, samples.numpy()] += 1
        totals["ours"][1] += true_counts.numpy()[:, 0]
        drawn, tries = set(), 0
        while len(drawn) < 3:
            drawn.add(rng.choice(8, p=probabilities))
            tries += 1
        totals["oracle"][0, list(drawn)] += 1
        totals["oracle"][1] += 1 - (1 - probabilities) ** tries
    np.testing.assert_allclose(totals["ours"] / rounds, totals["oracle"] / rounds, atol=4 * np.sqrt(0.5 / rounds))
    np.testing.assert_allclose(totals["ours"][1] / rounds, totals["oracle"][1] / rounds, atol=0.04)


def test_unique_samples_are_at_most_the_classes():
    with pytest.raises(ow.errors.InvalidArgumentError, match="more samples than classes"):
        ow.random.uniform_candidate_sampler([[0]], 1, 5, True, 4)
    with pytest.raises(ow.errors.InvalidArgumentError, match="not a frequency for each class"):
        ow.random.fixed_unigram_candidate_sampler([[0]], 1, 2, False, 4, unigrams=[1.0, 2.0])


def test_weights_of_own_layers_are_read_in_the_compute_dtype():
    class Moving(ow.keras.layers.Layer):
        def build(self, shape):
            self.mean = self.add_weight(name="mean", shape=shape[-1:], initializer="zeros", trainable=False)

        def call(self, x):
            assert (self.mean + 0).dtype is x.dtype
            self.mean.assign(self.mean * 0.5 + ow.reduce_mean(x, axis=0) * 0.5)
            return x - self.mean

    layer = Moving(dtype="mixed_float16")
    y = layer(np.ones((2, 3), np.float32))
    assert y.dtype is ow.float16
    assert layer.mean.dtype is layer.mean.value().dtype is ow.float32
    np.testing.assert_array_equal(layer.mean.numpy(), [0.5] * 3)


def test_policies():
    policies = ow.keras.dtype_policies
    each = policies.DTypePolicyMap("float32", {"encoder/dense": "mixed_bfloat16"})
    assert each["encoder/dense"].compute_dtype == "bfloat16"
    assert each["decoder"].name == "float32"
    again = policies.deserialize(policies.serialize(each))
    assert dict(again) == dict(each)
    with pytest.raises(ValueError, match="mixed_float16"):
        policies.DTypePolicy("mixed_int8")
    with pytest.raises(ValueError, match=r"ow\.lite quantizes"):
        policies.deserialize({"class_name": "OtherDTypePolicy", "config": {}})


def test_limits_of_fit():
    model = ow.keras.Sequential([ow.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((8, 1), np.float32), np.ones((8, 1), np.float32)
    batches = []
    count = ow.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: batches.append(batch))
    ow.keras.config.set_max_epochs(2)
    ow.keras.config.set_max_steps_per_epoch(3)
    try:
        history = model.fit(x, y, epochs=5, batch_size=1, verbose=0, callbacks=[count])
    finally:
        ow.keras.config.set_max_epochs(None)
        ow.keras.config.set_max_steps_per_epoch(None)
    assert len(history.history["loss"]) == 2
    assert batches == [0, 1, 2, 0, 1, 2]


def test_loss_scales_of_configurations():
    optimizers = ow.keras.optimizers
    scaled = optimizers.LossScaleOptimizer(optimizers.Adam(0.1), initial_scale=4.0, weight_decay=None)
    again = optimizers.LossScaleOptimizer.from_config(scaled.get_config())
    assert isinstance(again.inner_optimizer, optimizers.Adam)
    assert again.get_config() == scaled.get_config()
    assert scaled.scale_loss(2.0).numpy() == 8.0
    with pytest.raises(ValueError, match="set `clipnorm` on the `inner_optimizer`"):
        optimizers.LossScaleOptimizer(optimizers.Adam(0.1), clipnorm=1.0)
