"""The rows in TensorFlow.  Run by a Python that has it: `python -m benchmarks.peers.peer_tensorflow ROW...`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import measure
from benchmarks.peers import training_tensorflow
from benchmarks.ragged import LENGTHS, LONGEST, ROWS, WIDTH


def _matrices() -> tuple[Any, Any, Any, Any]:
    import tensorflow as tf  # type: ignore  # not in our environment

    x, w, b = (tf.random.stateless_normal((4, 4), seed=(0, i)) for i in range(3))
    return tf, x, w, b


def eager_add() -> Callable[[], object]:
    tf, x, y, _ = _matrices()
    return lambda: tf.add(x, y)


def traced_call(jit_compile: bool | None = None) -> Callable[[], object]:
    tf, x, w, b = _matrices()

    @tf.function(jit_compile=jit_compile)
    def layer(x, w, b):
        return tf.tanh(tf.add(tf.matmul(x, w), b))

    return lambda: layer(x, w, b)


def dispatch() -> Callable[[], object]:
    import itertools

    tf, *_ = _matrices()
    shapes = [(4, 4 + i) for i in range(50)]
    arguments = [(tf.ones((4, 4)), tf.ones(shape), tf.ones(shape)) for shape in shapes]

    @tf.function
    def layer(x, w, b):
        return tf.tanh(tf.add(tf.matmul(x, w), b))

    for each in arguments:
        layer(*each)
    in_turn = itertools.cycle(arguments)
    return lambda: layer(*next(in_turn))


TURNS = 10_000


def _power() -> tuple[Any, Any, Any, Any]:
    import tensorflow as tf

    @tf.function
    def power(x, n):
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, tf.ones_like(x)))[1]

    return tf, power, tf.constant(1.0001), tf.constant(TURNS)


def while_turn() -> float:
    _, power, x, n = _power()
    return measure.median_seconds(lambda: power(x, n)) / TURNS


MATRIX_TURNS, WRITES = 100, 10_000


def while_tensor() -> float:
    import tensorflow as tf

    @tf.function
    def cells(x, w, n):
        return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, tf.tanh(tf.matmul(x, w))), (0, x))[1]

    x, w = tf.random.normal([32, 128]), tf.random.normal([128, 128], stddev=0.1)
    n = tf.constant(MATRIX_TURNS)
    return measure.median_seconds(lambda: cells(x, w, n)) / MATRIX_TURNS


def branch() -> Callable[[], object]:
    import tensorflow as tf

    @tf.function
    def choice(x, c):
        return tf.cond(c > 0.0, lambda: tf.tanh(x) * 2.0, lambda: tf.exp(x) - 1.0)

    x, c = tf.random.normal([16, 16]), tf.constant(1.0)
    return lambda: choice(x, c)


def array_write() -> float:
    import tensorflow as tf

    @tf.function
    def multiples(x):
        rows = tf.TensorArray(tf.float32, size=WRITES)
        for i in tf.range(WRITES):
            rows = rows.write(i, x * tf.cast(i, tf.float32))
        return rows.stack()

    x = tf.random.normal([64])
    return measure.median_seconds(lambda: multiples(x)) / WRITES


def while_gradient() -> float:
    tf, power, x, n = _power()

    def step() -> object:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = power(x, n)
        return tape.gradient(y, x)

    return measure.median_seconds(step) / TURNS


def dataset() -> float:
    import tensorflow as tf

    data = tf.data.Dataset.range(TURNS).shuffle(100).map(lambda x: x * 2).batch(32).prefetch(2)

    @tf.function
    def total(data):
        s = tf.constant(0, tf.int64)
        for batch in data:
            s += tf.reduce_sum(batch)
        return s

    return measure.median_seconds(lambda: total(data)) / TURNS


def fit_step() -> float:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3200, 20), dtype=np.float32), rng.integers(0, 10, 3200)
    layers = [tf.keras.layers.Dense(64, activation="relu") for _ in range(2)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(10)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return measure.median_seconds(lambda: model.fit(x, y, batch_size=32, verbose=0)) / 100


def lstm() -> Callable[[], object]:
    import tensorflow as tf

    layer, x = tf.keras.layers.LSTM(32), tf.random.normal((16, 50, 16))
    layer(x)

    @tf.function
    def gradients(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(layer(x))
        return tape.gradient(y, layer.trainable_variables)

    return lambda: gradients(x)


def trace_autograph() -> Callable[[], object]:
    tf, *_ = _matrices()

    def sixty(x, w):
        for _ in range(20):
            x = tf.tanh(tf.add(tf.matmul(x, w), w))
        return x

    spec = tf.TensorSpec([4, 4], tf.float32)
    return lambda: tf.function(sixty).get_concrete_function(spec, spec)


def trace() -> Callable[[], object]:
    tf, *_ = _matrices()

    def sixty(x, w):
        for _ in range(20):
            x = tf.tanh(tf.add(tf.matmul(x, w), w))
        return x

    spec = tf.TensorSpec([4, 4], tf.float32)
    return lambda: tf.function(sixty, autograph=False).get_concrete_function(spec, spec)


def tape_step() -> Callable[[], object]:
    tf, x, w, b = _matrices()

    def step() -> object:
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = tf.tanh(tf.add(tf.matmul(x, w), b))
        return tape.gradient(y, w)

    return step


def _table_step(name: str, dense: bool = False) -> float:
    tf, *_ = _matrices()
    height, width, n = 1_000_000, 64, 4096
    table = tf.Variable(tf.ones((height, width)))
    indices = tf.random.uniform((n,), 0, height, tf.int64)
    rows = tf.IndexedSlices(tf.random.normal((n, width)), indices, tf.constant([height, width], tf.int64))
    optimizer = getattr(tf.keras.optimizers, name)(0.1)

    def step() -> object:
        optimizer.apply_gradients([(tf.convert_to_tensor(rows) if dense else rows, table)])
        return table[0, 0].numpy()  # the step is over

    step()
    return measure.median_seconds(step)


def sparse_sgd() -> float:
    return _table_step("SGD")


def sparse_adagrad() -> float:
    return _table_step("Adagrad")


def sparse_adam() -> float:
    return _table_step("Adam")


def dense_sgd() -> float:
    return _table_step("SGD", dense=True)


def dense_adam() -> float:
    return _table_step("Adam", dense=True)


def convert() -> Callable[[], object]:
    tf, *_ = _matrices()
    offset = tf.Variable(0.0)

    def run() -> object:  # traces again, as Opwright's row does
        @tf.function(input_signature=[tf.TensorSpec([5], tf.float32)])
        def model(x):
            return tf.atan(x + offset)

        converter = tf.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model)
        converter.allow_custom_ops = True
        return converter.convert()

    return run


DEEP, WIDE = 64, 1024


def deep_chain() -> Callable[[], object]:
    import tensorflow as tf

    x = tf.ones((WIDE, WIDE))

    @tf.function
    def chain(x):
        for _ in range(DEEP):
            x = x * 0.99 + 0.01
        return x

    return lambda: chain(x)


def _deep_network() -> tuple[Any, Any, Any]:
    import tensorflow as tf

    weights = [tf.random.normal((WIDE, WIDE)) / 32 for _ in range(DEEP)]
    biases = [tf.random.normal((WIDE,)) for _ in range(DEEP)]

    @tf.function(input_signature=[tf.TensorSpec([None, WIDE], tf.float32)], autograph=False)
    def network(x):
        for w, b in zip(weights, biases):
            x = tf.nn.relu(tf.matmul(x, w) + b)
        return tf.reduce_sum(x)

    def gradient(x: Any) -> object:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = network(x)
        return tape.gradient(y, x)

    network(tf.ones((1, WIDE)))
    gradient(tf.ones((1, WIDE)))
    return network, gradient, tf.random.normal((WIDE, WIDE))


def deep_memory() -> float:
    network, _, x = _deep_network()
    return measure.peak_bytes(lambda: network(x))


def deep_gradient_memory() -> float:
    _, gradient, x = _deep_network()
    return measure.peak_bytes(lambda: gradient(x))


def _sequences(padded: bool, width: int = WIDTH) -> tuple[Any, Any, Any]:
    """tf, and the batch: its rows with the sequence of each, or padded with which rows are there."""
    import numpy as np
    import tensorflow as tf

    rows = np.random.default_rng(0).standard_normal((ROWS, width), dtype=np.float32)
    lengths = np.array(LENGTHS)
    if not padded:
        return tf, tf.constant(rows), tf.constant(np.repeat(np.arange(len(lengths)), lengths))
    there = np.arange(LONGEST) < lengths[:, None]
    x = np.zeros((*there.shape, width), np.float32)
    x[there] = rows
    return tf, tf.constant(x), tf.constant(there[..., None])


def _gradient_of(tf: Any, function: Callable[[Any], Any], x: Any) -> Callable[[], object]:
    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x)

    return lambda: gradient(x)


def sequence_pool(kind: str) -> Callable[[], object]:
    tf, x, ids = _sequences(padded=False)
    reduce = tf.math.segment_sum if kind == "sum" else tf.math.segment_max
    return _gradient_of(tf, lambda x: reduce(x, ids), x)


def sequence_pool_padded(kind: str) -> Callable[[], object]:
    tf, x, there = _sequences(padded=True)
    if kind == "sum":
        mask = tf.cast(there, tf.float32)
        return _gradient_of(tf, lambda x: tf.reduce_sum(x * mask, 1), x)
    return _gradient_of(tf, lambda x: tf.reduce_max(tf.where(there, x, -1e30), 1), x)


def sequence_softmax_padded() -> Callable[[], object]:
    tf, x, there = _sequences(padded=True, width=1)
    return _gradient_of(tf, lambda x: tf.nn.softmax(tf.where(there, x, -1e30), 1), x)


def sequence_lstm_padded() -> Callable[[], object]:
    tf, x, there = _sequences(padded=True)
    layer, mask, weight = tf.keras.layers.LSTM(WIDTH, return_sequences=True), there[..., 0], tf.cast(there, tf.float32)
    layer(x, mask=mask)

    @tf.function
    def gradients(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(layer(x, mask=mask) * weight)
        return tape.gradient(y, layer.trainable_variables)

    return lambda: gradients(x)


def _network_converter() -> Any:
    import tensorflow as tf

    from benchmarks.networks import mobilenet_v2

    return tf.lite.TFLiteConverter.from_keras_model(mobilenet_v2(tf.keras))


def convert_network() -> float:
    """Taken three times only, as each takes seconds; the first is not slower than the others."""
    import statistics

    convert = _network_converter().convert
    return statistics.median(measure.time_batch(convert, 1) for _ in range(3))


def network_size() -> float:
    return len(_network_converter().convert())


RUNS: dict[str, measure.Prepare] = {
    "import": lambda: measure.import_seconds("tensorflow"),
    "import_whole": lambda: measure.import_seconds("tensorflow", bare=False),
    "eager_add": eager_add,
    "sparse_sgd": sparse_sgd,
    "sparse_adagrad": sparse_adagrad,
    "sparse_adam": sparse_adam,
    "dense_sgd": dense_sgd,
    "dense_adam": dense_adam,
    "traced_call": traced_call,
    "jit_call": lambda: traced_call(True),
    "dispatch": dispatch,
    "trace": trace,
    "trace_autograph": trace_autograph,
    "while_turn": while_turn,
    "while_gradient": while_gradient,
    "while_tensor": while_tensor,
    "branch": branch,
    "array_write": array_write,
    "dataset": dataset,
    "fit_step": fit_step,
    "lstm": lstm,
    "deep_chain": deep_chain,
    "deep_memory": deep_memory,
    "deep_gradient_memory": deep_gradient_memory,
    "tape_step": tape_step,
    "convert": convert,
    "convert_network": convert_network,
    "network_size": network_size,
    "sequence_sum": lambda: sequence_pool("sum"),
    "sequence_sum_padded": lambda: sequence_pool_padded("sum"),
    "sequence_max": lambda: sequence_pool("max"),
    "sequence_max_padded": lambda: sequence_pool_padded("max"),
    "sequence_softmax_padded": sequence_softmax_padded,
    "sequence_lstm_padded": sequence_lstm_padded,
    **training_tensorflow.runs(jit_compile=False),
}

if __name__ == "__main__":
    measure.main(RUNS)
