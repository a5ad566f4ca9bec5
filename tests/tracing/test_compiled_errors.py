"""Test that bad input of compiled functions is reported as it is eagerly, and that they run out of memory and go on.

Lives here: a table of programs with good and bad arguments; a process with little memory.
Not here: errors of loops over single elements (test_scalar_loops.py), of operators by themselves (tests/ops).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opwright as ow

RNG = np.random.default_rng(5)
X = RNG.standard_normal((256, 512)).astype(np.float32)
U = RNG.standard_normal((300, 512)).astype(np.float32)
INDICES = np.arange(300) % 256
OUTSIDE = np.where(np.arange(300) == 7, 256, INDICES)
EVEN = np.arange(4096, dtype=np.int32)


def row_sums(x: Any, indices: Any) -> Any:
    total = ow.zeros([512])
    for i in ow.range(20):
        total = total + ow.tanh(ow.gather(x, indices[i]))
    return total


def branch(x: Any, indices: Any) -> Any:
    y = ow.gather(x, indices) if ow.reduce_sum(indices) > 0 else ow.gather(x, indices) * 2.0
    return ow.tanh(y)


def written(x: Any, n: Any) -> Any:
    rows = ow.TensorArray(ow.float32, 10, element_shape=[512])
    return ow.while_loop(lambda i, _: i < n, lambda i, t: (i + 1, t.write(i, ow.tanh(x[i]))), (0, rows))[1].stack()


def gradient(x: Any, indices: Any) -> Any:
    with ow.GradientTape() as tape:
        tape.watch(x)
        loss = ow.reduce_sum(ow.tanh(ow.gather(x, indices)))
    return ow.convert_to_tensor(tape.gradient(loss, x))


def asserted(x: Any, limit: Any) -> Any:
    ow.debugging.Assert(ow.reduce_all(x < limit), [limit])
    return ow.tanh(x)


def losses(x: Any, labels: Any) -> Any:
    return ow.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x) * 2.0


def gradient_of_losses(x: Any, labels: Any) -> Any:
    with ow.GradientTape() as tape:
        tape.watch(x)
        loss = ow.reduce_mean(ow.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))
    return ow.convert_to_tensor(tape.gradient(loss, x))


PROGRAMS: dict[str, tuple[Any, list[Any], list[Any]]] = {  # with good and bad arguments
    "gather": (lambda x, i: ow.tanh(ow.gather(x, i)), [X, INDICES], [X, OUTSIDE]),
    "gather_nd": (lambda x, i: ow.tanh(ow.gather_nd(x, i[:, None])), [X, INDICES], [X, -1 - INDICES]),
    "embedding": (lambda x, i: ow.nn.embedding_lookup(x, i) * 2.0, [X, INDICES], [X, OUTSIDE]),
    "scatter": (lambda u, i: ow.tanh(ow.scatter_nd(i[:, None], u, [256, 512])), [U, INDICES], [U, OUTSIDE]),
    "update": (
        lambda x, u, i: ow.tanh(ow.tensor_scatter_nd_update(x, i[:, None], u)),
        [X, U, INDICES],
        [X, U, OUTSIDE],
    ),
    "segments": (
        lambda x, i: ow.tanh(ow.math.unsorted_segment_sum(x, i, 100)),
        [X, np.arange(256) % 100],
        [X, np.arange(256)],
    ),
    "labels": (losses, [X, np.arange(256)], [X, np.arange(256) + 300]),
    "labels_of_gradient": (gradient_of_losses, [X, np.arange(256)], [X, np.arange(256) + 300]),
    "negative_labels_of_gradient": (gradient_of_losses, [X, np.arange(256)], [X, np.arange(256) - 1]),
    "row": (lambda x, i: ow.tanh(x[i]) * 2.0, [X, 5], [X, 256]),
    "floor_div": (lambda a, b: (a // b) * 2 + 1, [EVEN, EVEN + 1], [EVEN, EVEN]),
    "remainder": (lambda a, b: (a % b) * 2 + 1, [EVEN, EVEN + 1], [EVEN, EVEN]),
    "power": (lambda a, b: ow.pow(a, b) * 2, [EVEN, EVEN % 3], [EVEN, EVEN - 2]),
    "assert": (asserted, [X, np.float32(100)], [X, np.float32(0)]),
    "reshape": (lambda x, s: ow.tanh(ow.reshape(x, s)), [X, np.int32([512, 256])], [X, np.int32([511, 256])]),
    "fill": (lambda s, v: ow.tanh(ow.fill(s, v)), [np.int32([9, 512]), X[0, 0]], [np.int32([-9, 512]), X[0, 0]]),
    "slice": (lambda x, s: ow.tanh(ow.slice(x, [200, 0], s)), [X, np.int32([9, 9])], [X, np.int32([100, 9])]),
    "pad": (lambda x, p: ow.tanh(ow.pad(x, p)), [X, np.int32([[1, 1]] * 2)], [X, np.int32([[1, -1]] * 2)]),
    "tile": (lambda x, n: ow.tanh(ow.tile(x, n)), [X, np.int32([1, 2])], [X, np.int32([1, -2])]),
    "broadcast": (
        lambda x, s: ow.tanh(ow.broadcast_to(x, s)),
        [X, np.int32([2, 256, 512])],
        [X, np.int32([2, 255, 512])],
    ),
    "one_hot": (lambda i, n: ow.one_hot(i, n) * 2.0, [INDICES, 300], [INDICES, -3]),
    "range": (lambda n, d: ow.range(0, n, d) * 2, [1000, 1], [1000, 0]),
    "top_k": (lambda x, k: ow.math.top_k(x, k)[0] * 2.0, [X, 5], [X, 600]),
    "loop": (row_sums, [X, INDICES], [X, OUTSIDE]),
    "branch": (branch, [X, INDICES], [X, OUTSIDE]),
    "written": (written, [X, 10], [X, 12]),
    "gradient": (gradient, [X, INDICES], [X, OUTSIDE]),
}


OF_GRAPHS = {"assert", "written"}
"""Programs whose error has another text in graphs, as in TensorFlow."""


def _message(f: Any, arguments: list[Any]) -> tuple[type[Exception], str, bool]:
    """Return the class of the error of a call, its first line without name and place, and whether it has the place."""
    with pytest.raises(ow.errors.OpError) as raised:
        f(*arguments)
    # gradients check labels in their own name
    first = str(raised.value).splitlines()[0].replace("ClassLabels", "SparseSoftmaxCrossEntropyWithLogits")
    return (
        type(raised.value),
        re.sub(r" '[^']*'| \([^()]*\.py:\d+\)", "", first.partition(": ")[0]) + first.partition(": ")[2],
        __file__ in first,
    )


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bad_input_is_reported_as_it_is_eagerly(name: str, jit: bool) -> None:
    program, *both = PROGRAMS[name]
    good, bad = ([ow.constant(a) for a in arguments] for arguments in both)
    specs = [ow.TensorSpec([None] * a.shape.rank, a.dtype) for a in good]
    f = ow.function(program, jit_compile=jit, input_signature=specs)
    expected = program(*good)
    kind, text, _ = _message(ow.function(program, jit_compile=False) if name in OF_GRAPHS else program, bad)
    for _ in range(2):
        np.testing.assert_allclose(f(*good), expected, 1e-5, 1e-5)
        assert _message(f, bad) == (kind, text, True)


@pytest.mark.parametrize("jit", [False, True, None])
@pytest.mark.parametrize("logits", [True, False])
def test_a_training_step_that_returns_nothing_refuses_labels_outside(jit: bool | None, logits: bool) -> None:
    layers, losses = ow.keras.layers, ow.keras.losses
    last = layers.Dense(5) if logits else layers.Dense(5, activation="softmax")
    model = ow.keras.Sequential([ow.keras.Input((8,)), layers.Dense(16, activation="relu"), last])
    optimizer, loss_of = ow.keras.optimizers.SGD(0.1), losses.SparseCategoricalCrossentropy(from_logits=logits)

    def train_step(x: Any, y: Any) -> None:
        with ow.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    x, y = ow.constant(X[:64, :8]), ow.constant(np.arange(64) % 5)
    eager = _message(train_step, [x, y + 1])
    f = ow.function(train_step, jit_compile=jit)
    for _ in range(3):
        f(x, y)
        before = [w.copy() for w in model.get_weights()]
        assert _message(f, [x, y + 1])[:2] == eager[:2]
        assert all(map(np.array_equal, before, model.get_weights()))


SCARCE = """
import resource
import numpy as np
import opwright as ow

def scarce(run):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (30 << 20), resource.RLIM_INFINITY))
    try:
        run()
    except ow.errors.ResourceExhaustedError:
        return
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    raise SystemExit("no error")

f = ow.function(lambda x: ow.tanh(ow.cumsum(x, 0)) + ow.reduce_sum(ow.cos(x), 0), jit_compile=True,
                input_signature=[ow.TensorSpec([None, None])])
small, large = ow.ones([64, 64]), ow.ones([3000, 3000])
before = f(small).numpy()
for _ in range(2):
    scarce(lambda: f(large))
assert np.array_equal(f(small), before)

@ow.function(jit_compile=True)
def rows(x, n):
    filled = ow.TensorArray(ow.float32, 0, dynamic_size=True, element_shape=[1 << 18])
    for i in ow.range(n):
        x = ow.tanh(x)
        filled = filled.write(i, x)
    return ow.reduce_sum(filled.stack())

x = ow.ones([1 << 18])
before = rows(x, ow.constant(3)).numpy()
scarce(lambda: rows(x, ow.constant(500)))
assert rows(x, ow.constant(3)) == before

layers = ow.keras.layers
model = ow.keras.Sequential([ow.keras.Input((64,)), layers.Dense(1024, activation="relu"), layers.Dense(2)])
model.compile(optimizer="adam", loss="mse", jit_compile=True)
few = np.ones((32, 64), np.float32), np.ones((32, 2), np.float32)
many = np.ones((300_000, 64), np.float32), np.ones((300_000, 2), np.float32)
model.fit(*few, verbose=0)
before = [w.copy() for w in model.get_weights()]
scarce(lambda: model.fit(*many, batch_size=300_000, verbose=0))
scarce(lambda: model.fit(*(a[:20_000] for a in many), batch_size=20_000, verbose=0))
scarce(lambda: model.train_on_batch(*many))
assert all(map(np.array_equal, before, model.get_weights()))
assert np.isfinite(model.fit(*few, verbose=0).history["loss"][0])
print("went on")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space and /proc")
def test_a_process_without_memory_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "scarce.py"
    script.write_text(SCARCE)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert run.stdout == "went on\n", run.stderr[-3000:]
