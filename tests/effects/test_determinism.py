"""`deterministic`: the same bits from run to run, in any process, with any number of threads; and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.core import blas_threads
from opwright.nn.training import batches
from opwright.ops import cuda_kernels
from opwright.ops.kernel_selection import candidates
from opwright.ops.kernels import KernelKey, serving

TRAINING = """
import hashlib, sys
import numpy as np
import opwright as ow
ow.random.set_seed(7)
ow.keras.utils.set_random_seed(7)
rng = np.random.default_rng(0)
ids = rng.integers(0, 50, (256, 12)); labels = rng.integers(0, 3, 256)
model = ow.keras.Sequential([ow.keras.layers.Embedding(50, 160), ow.keras.layers.Flatten(),
    ow.keras.layers.Dropout(0.3, seed=3), ow.keras.layers.Dense(96, activation="tanh"), ow.keras.layers.Dense(3)])
data = ow.data.Dataset.from_tensor_slices((ids, labels)).shuffle(256, seed=5)
data = data.map(lambda x, y: (x, y), num_parallel_calls=4, deterministic=False).batch(64)
model.compile(optimizer="adam", loss=ow.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
history = model.fit(data, epochs=2, verbose=0)
digest = hashlib.sha256(np.float64(history.history["loss"]).tobytes())
for w in model.get_weights():
    digest.update(np.ascontiguousarray(w).tobytes())
a, b = rng.standard_normal((33, 1001)).astype("f"), rng.standard_normal((1001, 77)).astype("f")
big = rng.standard_normal((1000, 1000)).astype("f")
for y in (ow.matmul(a, b), ow.matmul(big, big[:, :1]), ow.matmul(big[:300], big[:, :700])):
    digest.update(y.numpy().tobytes())
table = ow.Variable(np.zeros((20, 8), "f"))
with ow.GradientTape() as tape:
    loss = ow.reduce_sum(ow.gather(table, ids[:, 0] % 20) * rng.standard_normal((256, 8)).astype("f"))
rows = tape.gradient(loss, table)
digest.update(ow.convert_to_tensor(rows).numpy().tobytes())
print(digest.hexdigest())
"""


def trained(**environ: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPWRIGHT_")} | environ
    done = subprocess.run([sys.executable, "-c", TRAINING], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


RUNS = [
    {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
    {"OPENBLAS_NUM_THREADS": "2", "PYTHONHASHSEED": "1", "OPWRIGHT_NUM_THREADS": "3"},
    {"OPENBLAS_NUM_THREADS": "4", "PYTHONHASHSEED": "99", "OPWRIGHT_NUM_THREADS": "1", "OPWRIGHT_TUNE": "1"},
]


@pytest.mark.slow
def test_a_training_run_returns_the_same_bits_in_every_process(tmp_path: Any) -> None:
    result = {trained(OPWRIGHT_DETERMINISTIC="1", OPWRIGHT_CACHE_DIR=str(tmp_path), **run) for run in RUNS}
    assert len(result) == 1
    assert list(tmp_path.glob("tuning*")) == []  # nothing was timed


@pytest.mark.skipif(not blas_threads.thread_settings(), reason="this BLAS has no switch for its threads")
def test_blas_keeps_to_the_threads_of_flags_and_gets_its_own_back() -> None:
    put = [set_threads for _, set_threads in blas_threads.thread_settings()]
    before = blas_threads.num_threads()
    for p in put:
        p(2)
    try:
        with ow.flags(deterministic=True):
            assert blas_threads.num_threads() == [1] * len(put)
            with ow.flags(check_numerics=True):
                assert blas_threads.num_threads() == [1] * len(put)
        assert blas_threads.num_threads() == [2] * len(put)
        with ow.flags(num_threads=1):
            assert blas_threads.num_threads() == [1] * len(put)
            with ow.flags(num_threads=3):  # no more than BLAS has
                assert blas_threads.num_threads() == [2] * len(put)
        assert blas_threads.num_threads() == [2] * len(put)
    finally:
        for p, n in zip(put, before):
            p(n)


def test_random_operators_need_a_seed() -> None:
    from opwright.ops.random import state

    saved = state._global_seed
    state._global_seed = None
    try:
        with ow.flags(deterministic=True):
            for draw in (lambda: ow.random.normal([2]), lambda: ow.function(lambda: ow.random.uniform([2]))()):
                with pytest.raises(RuntimeError, match="Random ops require a seed to be set when"):
                    draw()
            with pytest.raises(RuntimeError, match="from_non_deterministic_state"):
                ow.random.Generator.from_non_deterministic_state()
            assert ow.random.normal([2], seed=3).shape == (2,)
            assert ow.random.stateless_normal([2], [1, 2]).shape == (2,)
            ow.random.set_seed(1)
            assert ow.random.normal([2]).shape == (2,)
    finally:
        state._global_seed = saved
    assert ow.random.normal([2]).shape == (2,)


def test_config_has_tensorflows_name_for_it() -> None:
    from opwright.core import flags

    try:
        ow.config.experimental.enable_op_determinism()
        assert flags.deterministic
    finally:
        flags.configure(deterministic=False)


def test_a_parallel_map_keeps_the_inputs_order() -> None:
    import time

    def slow_first(x: Any) -> Any:
        time.sleep(0.02 if x == 0 else 0)
        return np.int64(x)

    def order() -> list[int]:
        data = ow.data.Dataset.range(8).map(
            lambda x: ow.numpy_function(slow_first, [x], ow.int64), num_parallel_calls=4, deterministic=False
        )
        return [int(x) for x in data]

    assert sorted(order()) == list(range(8))
    with ow.flags(deterministic=True):
        assert order() == list(range(8))


def fresh() -> Any:
    def compute(op: Any, x: Any) -> Any:
        return x * 2

    body = {"x": ow.Input(dtypes=(ow.float32,)), "y": ow.Output(like="x"), "compute": compute}
    return ow.operator(type("Twice", (), {"__doc__": ".. math:: y = 2 x", **body}))


@pytest.mark.parametrize("flag", ["deterministic", "cuda_deterministic"])
def test_kernels_that_do_not_reproduce_are_left_out_at_every_place(flag: str) -> None:
    twice = fresh()
    gpu = ow.CUDAPlace(0)
    ow.ops.register_kernel(twice, reproducible=False)(lambda op, x: x * 3)
    ow.ops.register_kernel(twice, place=gpu, library="cudnn", reproducible=False)(lambda op, x: x)
    ow.ops.register_kernel(twice, place=gpu, library="cublas")(lambda op, x: x)
    x = ow.constant([1.0])
    assert twice(x).numpy().tolist() == [3.0]
    ow.ops.register_kernel(twice, place="sim", reproducible=False)(lambda op, x: x * 3)
    libraries = lambda place: [k.library for k, _ in serving(twice, KernelKey(place, ow.float32))]  # noqa: E731
    scope = ow.Scope()
    scope.var("x").set(np.float32([1.0]))
    places = (ow.CPUPlace(), ow.SimulatedPlace(0))

    def on_scopes() -> list[float]:
        result = []
        for place in places:
            twice.on({"x": "x"}, {"y": "y"}).run(scope, place)
            result.append(float(scope.var("y").value.numpy()[0]))
        return result

    before = (["cudnn", "cublas"], ["foreign"], ["foreign"])
    assert (libraries("gpu"), libraries("cpu"), libraries("sim")) == before
    assert on_scopes() == [3.0, 3.0]
    with ow.flags(**{flag: True}):
        assert (libraries("gpu"), libraries("cpu"), libraries("sim")) == (["cublas"], [], [])
        assert twice(x).numpy().tolist() == [2.0]
        assert on_scopes() == [2.0, 2.0]
        assert [ow.ops.explain(twice, [x], place).branch for place in places] == ["reference", "reference"]
    assert (libraries("gpu"), libraries("cpu"), libraries("sim")) == before
    assert twice(x).numpy().tolist() == [3.0]
    assert on_scopes() == [3.0, 3.0]


@pytest.mark.parametrize("flag", ["deterministic", "cuda_deterministic"])
def test_atomic_sums_go_to_the_cpu_where_results_are_to_be_reproducible(flag: str) -> None:
    op, place = ow.ops.get("ScatterNd"), ow.CUDAPlace(0)
    key = KernelKey(place, ow.float32)
    assert candidates(op, op.bind({}), key, place)[0].branch == "reference"
    with ow.flags(**{flag: True}):
        result = candidates(op, op.bind({}), key, place)
        assert {c.branch for c in result} == {"fallback"}
        assert "atomic" in result[0].reason
        with ow.flags(kernel_fallback=False), pytest.raises(ow.errors.NotFoundError):
            candidates(op, op.bind({}), key, place)
        assert (
            candidates(
                ow.ops.get("Conv2D"), ow.ops.get("Conv2D").bind({"strides": [1] * 4, "padding": "SAME"}), key, place
            )[0].branch
            == "kernel"
        )
    assert set(ow.ops.list()) >= cuda_kernels.ATOMIC


def test_softmax_subtracts_the_maximum_at_every_place() -> None:
    x, want = np.float32([[1000, 1000], [-1e30, 0]]), [[0.5, 0.5], [0, 1]]
    calls = [("Softmax", {"logits": x}, want), ("LogSoftmax", {"logits": x[:1]}, [[np.log(0.5)] * 2])]
    for place in (ow.CPUPlace(), ow.SimulatedPlace(0)):
        for name, inputs, value in calls:
            scope, op = ow.Scope(), ow.ops.get(name)
            slot = op.input_names[0]
            scope.var(slot).set(next(iter(inputs.values())))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                op.on({slot: slot}, {op.output_names[0]: "y"}).run(scope, place)
            np.testing.assert_allclose(scope.var("y").value.numpy(), value, rtol=1e-6, atol=0)
    lod = ow.create_lod_tensor(np.float32([[1000], [1000], [0]]), [[2, 1]])
    np.testing.assert_allclose(np.ravel(ow.sequence.softmax(lod).values.numpy()), [0.5, 0.5, 1], rtol=1e-6)
    entropy = ow.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], x[:1]).numpy()
    np.testing.assert_allclose(entropy, [np.log(2)], rtol=1e-6)


def test_equal_calls_return_equal_bits() -> None:
    x = ow.constant(np.linspace(-3, 3, 1 << 17, dtype=np.float32))
    with ow.flags(deterministic=True, hot_calls=1):
        f = ow.function(lambda x: ow.tanh(x) * ow.exp(x), autograph=False)
        assert len({f(x).numpy().tobytes() for _ in range(6)}) == 1
        assert {ow.tanh(x).numpy().tobytes() for _ in range(6)} == {np.tanh(x.numpy()).tobytes()}


def test_fit_draws_no_batch_while_a_step_runs(monkeypatch: Any) -> None:
    monkeypatch.setattr(batches, "WORTH", 0.0)
    threads = set()

    def elements() -> Any:
        for _ in range(5):
            threads.add(threading.get_ident())
            yield np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)

    model = ow.keras.Sequential([ow.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with ow.flags(deterministic=True):
        model.fit(elements(), verbose=0)
    assert threads == {threading.get_ident()}
