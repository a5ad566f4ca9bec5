"""Our side of the rows, by the public API alone: `python -m benchmarks.ours ROW...`.

Lives here: one function for each row of rows.py, under the row's name.  Not here: timing (measure.py).
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import duels, files, measure, sequences

FIVE = (-8.0, 0.5, 2.0, 2.2, 201.0)


def import_row() -> float:
    loaded = "import sys, opwright; sys.exit('the compiler is loaded at import' if 'llvmlite' in sys.modules else 0)"
    subprocess.run([sys.executable, "-c", loaded], check=True)
    return measure.import_seconds("opwright")


def import_whole() -> float:
    return measure.import_seconds("opwright", bare=False)


def _matrices() -> tuple[Any, Any, Any]:
    import numpy as np

    import opwright as ow

    rng = np.random.default_rng(0)
    x, w, b = (ow.constant(rng.standard_normal((4, 4), dtype=np.float32)) for _ in range(3))
    return x, w, b


def eager_add() -> Callable[[], object]:
    import opwright as ow

    x, y, _ = _matrices()
    return lambda: ow.add(x, y)


def eager_softmax() -> Callable[[], object]:
    import opwright as ow

    x, *_ = _matrices()
    return lambda: ow.nn.softmax(x)


def eager_reshape() -> Callable[[], object]:
    import opwright as ow

    x, *_ = _matrices()
    return lambda: ow.reshape(x, [2, 8])


def eager_argmax() -> Callable[[], object]:
    import opwright as ow

    x, *_ = _matrices()
    return lambda: ow.argmax(x, axis=1)


def eager_large(name: str) -> Callable[[], object]:
    """Return the call of a function on 2^20 numbers, called before as often as it takes to be compiled."""
    import numpy as np

    import opwright as ow

    function, x = ow.ops.get(name), ow.constant(np.random.default_rng(0).standard_normal(1 << 20, dtype=np.float32))
    with ow.flags(hot_calls=1):
        for _ in range(6):
            function(x)
    return lambda: function(x)


def scope_add() -> Callable[[], object]:
    import opwright as ow

    scope, place = ow.Scope(), ow.CPUPlace()
    for name, value in zip("ab", _matrices()):
        scope.var(name).set(value)
    add = ow.ops.get("Add").on({"x": "a", "y": "b"}, {"z": "c"})
    return lambda: add.run(scope, place)


def scope_graph() -> Callable[[], object]:
    import opwright as ow

    x, y, _ = _matrices()

    @ow.function
    def adds(x, y):
        for _ in range(10):
            x = ow.add(x, y)
        return x

    graph, scope = adds.get_concrete_function(x, y).graph, ow.Scope()
    for value, inputs in zip(graph.inputs, (x, y)):
        scope.var(value.name).set(inputs)
    return lambda: ow.run_graph(graph, scope)


def traced_call() -> Callable[[], object]:
    import opwright as ow

    x, w, b = _matrices()

    @ow.function
    def layer(x, w, b):
        return ow.tanh(ow.add(ow.matmul(x, w), b))

    return lambda: layer(x, w, b)


def jit_call() -> Callable[[], object]:
    import opwright as ow

    x, w, b = _matrices()

    @ow.function(jit_compile=True)
    def layer(x, w, b):
        return ow.tanh(ow.add(ow.matmul(x, w), b))

    layer(x, w, b)
    return lambda: layer(x, w, b)


def jit_chain() -> dict[str, float | str]:
    """The chain reads and writes each float once: a copy of as many, in turn with it, is its limit."""
    import numpy as np

    import opwright as ow

    x = ow.constant(np.random.default_rng(0).standard_normal(10_000_000, dtype=np.float32))

    @ow.function(jit_compile=True)
    def chain(x):
        y = ow.nn.relu(x * 0.5 + 1.0)
        return ow.minimum(y * y - x, 6.0) * 0.25 + x

    source, target = x.numpy(), np.zeros(10_000_000, np.float32)
    seconds, copying = duels.in_turn([lambda: chain(x), lambda: np.copyto(target, source)])
    return {"ours": seconds, "share": copying / seconds, "of": "copy"}


def dispatch() -> Callable[[], object]:
    import itertools

    import opwright as ow

    shapes = [(4, 4 + i) for i in range(50)]
    arguments = [(ow.ones((4, 4)), ow.ones(shape), ow.ones(shape)) for shape in shapes]

    @ow.function
    def layer(x, w, b):
        return ow.tanh(ow.add(ow.matmul(x, w), b))

    for each in arguments:
        layer(*each)
    in_turn = itertools.cycle(arguments)
    return lambda: layer(*next(in_turn))


TURNS = 10_000


def _power() -> Any:
    import opwright as ow

    @ow.function(jit_compile=True)
    def power(x, n):
        return ow.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, ow.ones_like(x)))[1]

    return power, ow.constant(1.0001), ow.constant(TURNS)


def while_turn() -> float:
    power, x, n = _power()
    return measure.median_seconds(lambda: power(x, n)) / TURNS


def while_over() -> float:
    import numpy as np

    whole = while_turn()
    i, one, n = np.int32(5), np.array(1, np.int32), np.array(TURNS, np.int32)
    x, y = np.array(1.0001, np.float32), np.float32(2.0)
    less, add, multiply = np.less, np.add, np.multiply

    def kernels() -> None:
        for _ in range(TURNS):
            less(i, n)
            add(i, one)
            multiply(y, x)

    return max(0.0, whole - measure.median_seconds(kernels) / TURNS)


def while_gradient() -> float:
    import opwright as ow

    power, x, n = _power()

    def step() -> object:
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = power(x, n)
        return tape.gradient(y, x)

    return measure.median_seconds(step) / TURNS


MATRIX_TURNS, WRITES = 100, 10_000


def while_tensor() -> float:
    import opwright as ow

    @ow.function(jit_compile=True)
    def cells(x, w, n):
        return ow.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, ow.tanh(ow.matmul(x, w))), (0, x))[1]

    x, w = ow.random.normal([32, 128]), ow.random.normal([128, 128], stddev=0.1)
    n = ow.constant(MATRIX_TURNS)
    return measure.median_seconds(lambda: cells(x, w, n)) / MATRIX_TURNS


def branch() -> Callable[[], object]:
    import opwright as ow

    @ow.function(jit_compile=True)
    def choice(x, c):
        return ow.cond(c > 0.0, lambda: ow.tanh(x) * 2.0, lambda: ow.exp(x) - 1.0)

    x, c = ow.random.normal([16, 16]), ow.constant(1.0)
    return lambda: choice(x, c)


def array_write() -> float:
    import opwright as ow

    @ow.function(jit_compile=True)
    def multiples(x):
        rows = ow.TensorArray(ow.float32, size=WRITES)
        for i in ow.range(WRITES):
            rows = rows.write(i, x * ow.cast(i, ow.float32))
        return rows.stack()

    x = ow.random.normal([64])
    return measure.median_seconds(lambda: multiples(x)) / WRITES


def dataset() -> float:
    import opwright as ow

    data = ow.data.Dataset.range(TURNS).shuffle(100).map(lambda x: x * 2).batch(32).prefetch(2)

    @ow.function
    def total(data):
        s = ow.constant(0, ow.int64)
        for batch in data:
            s += ow.reduce_sum(batch)
        return s

    return measure.median_seconds(lambda: total(data)) / TURNS


def fit_step() -> float:
    import numpy as np

    import opwright as ow

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3200, 20), dtype=np.float32), rng.integers(0, 10, 3200)
    layers = [ow.keras.layers.Dense(64, activation="relu") for _ in range(2)]
    model = ow.keras.Sequential([*layers, ow.keras.layers.Dense(10)])
    loss = ow.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return measure.median_seconds(lambda: model.fit(x, y, batch_size=32, verbose=0)) / 100


def lstm() -> Callable[[], object]:
    import opwright as ow

    layer, x = ow.keras.layers.LSTM(32), ow.random.normal((16, 50, 16))
    layer(x)

    @ow.function
    def gradients(x):
        with ow.GradientTape() as tape:
            y = ow.reduce_sum(layer(x))
        return tape.gradient(y, layer.trainable_variables)

    return lambda: gradients(x)


DEEP, WIDE = 64, 1024


def deep_chain(inplace: bool = True) -> Callable[[], object]:
    import numpy as np

    import opwright as ow

    x = ow.constant(np.ones((WIDE, WIDE), np.float32))

    @ow.function
    def chain(x):
        for _ in range(DEEP):
            x = x * 0.99 + 0.01
        return x

    with ow.flags(inplace=inplace):
        chain(x)
    return lambda: chain(x)


def _deep_network(inplace: bool) -> Any:
    """The network as a function that has run on a small batch, and its large input."""
    import numpy as np

    import opwright as ow

    rng = np.random.default_rng(0)
    weights = [ow.constant(rng.standard_normal((WIDE, WIDE), dtype=np.float32) / 32) for _ in range(DEEP)]
    biases = [ow.constant(rng.standard_normal(WIDE, dtype=np.float32)) for _ in range(DEEP)]

    @ow.function(input_signature=[ow.TensorSpec([None, WIDE], ow.float32)], autograph=False)
    def network(x):
        for w, b in zip(weights, biases):
            x = ow.nn.relu(ow.matmul(x, w) + b)
        return ow.reduce_sum(x)

    def gradient(x: Any) -> object:
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = network(x)
        return tape.gradient(y, x)

    with ow.flags(inplace=inplace):
        network(ow.ones((1, WIDE)))
        gradient(ow.ones((1, WIDE)))
    return network, gradient, ow.constant(rng.standard_normal((WIDE, WIDE), dtype=np.float32))


def deep_memory(inplace: bool = True) -> float:
    network, _, x = _deep_network(inplace)
    return measure.peak_bytes(lambda: network(x))


def deep_gradient(inplace: bool = True) -> Callable[[], object]:
    _, gradient, x = _deep_network(inplace)
    x = x[:256]
    return lambda: gradient(x)


def deep_gradient_memory() -> float:
    _, gradient, x = _deep_network(True)
    return measure.peak_bytes(lambda: gradient(x))


def dying_functions() -> float:
    import gc
    import tracemalloc

    import opwright as ow

    x = ow.constant(1.0)

    def one(i: int) -> None:
        ow.function(lambda x: x * 2.0 + float(i), autograph=False)(x)

    for i in range(200):
        one(i)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for i in range(10_000):
        one(i)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return float(max(kept, 0))


ROWS_IN_TABLE, WIDTH, LOOKED_UP = 1_000_000, 64, 4096


def _table_step(name: str, dense: bool = False, **settings: Any) -> float:
    """A step of an optimizer by the gradient of 4096 lookups, after a first one."""
    import numpy as np

    import opwright as ow

    rng = np.random.default_rng(0)
    table = ow.Variable(np.ones((ROWS_IN_TABLE, WIDTH), np.float32))
    values = ow.constant(rng.standard_normal((LOOKED_UP, WIDTH), dtype=np.float32))
    indices = ow.constant(rng.integers(0, ROWS_IN_TABLE, LOOKED_UP))
    rows = ow.IndexedSlices(values, indices, ow.constant([ROWS_IN_TABLE, WIDTH], ow.int64))
    optimizer = getattr(ow.optimizers, name)(0.1, **settings)
    return measure.median_seconds(lambda: optimizer.apply([rows.to_dense() if dense else rows], [table]))


def sparse_sgd() -> float:
    return _table_step("SGD")


def sparse_adagrad() -> float:
    return _table_step("Adagrad")


def sparse_adam_lazy() -> float:
    return _table_step("Adam", lazy_mode=True)


def sparse_adam() -> float:
    return _table_step("Adam")


def dense_sgd() -> float:
    return _table_step("SGD", dense=True)


def dense_adam() -> float:
    return _table_step("Adam", dense=True)


def trace_autograph() -> Callable[[], object]:
    import opwright as ow

    def sixty(x, w):
        for _ in range(20):
            x = ow.tanh(ow.add(ow.matmul(x, w), w))
        return x

    spec = ow.TensorSpec([4, 4], ow.float32)
    return lambda: ow.function(sixty).get_concrete_function(spec, spec)


def trace() -> Callable[[], object]:
    import opwright as ow

    def sixty(x, w):
        for _ in range(20):
            x = ow.tanh(ow.add(ow.matmul(x, w), w))
        return x

    spec = ow.TensorSpec([4, 4], ow.float32)
    return lambda: ow.function(sixty, autograph=False).get_concrete_function(spec, spec)


def tape_step() -> Callable[[], object]:
    import opwright as ow

    x, w, b = _matrices()

    def step() -> object:
        with ow.GradientTape() as tape:
            tape.watch(w)
            y = ow.tanh(ow.add(ow.matmul(x, w), b))
        return tape.gradient(y, w)

    return step


def _atan() -> Any:
    """A custom operator as its author would write it."""
    import numpy as np

    import opwright as ow

    @ow.operator
    class Atan:
        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op, x):
            return np.arctan(x)

    return Atan


def _converter(operator: Callable[[Any], Any]) -> Any:
    import opwright as ow

    offset = ow.Variable(0.0)

    @ow.function(input_signature=[ow.TensorSpec([5], ow.float32)])
    def model(x):
        return operator(x + offset)

    converter = ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model)
    converter.allow_custom_ops = True
    return converter


def convert() -> Callable[[], object]:
    operator = _atan()
    return lambda: _converter(operator).convert()


def _network_converter() -> Any:
    import opwright as ow
    from benchmarks.networks import mobilenet_v2

    return ow.lite.TFLiteConverter.from_keras_model(mobilenet_v2(ow.keras))


def convert_network() -> Callable[[], object]:
    return _network_converter().convert  # type: ignore[no-any-return]


def network_size() -> float:
    return len(_network_converter().convert())


def interpreter() -> Callable[[], object]:
    import opwright as ow

    operator = _atan()
    model = _converter(operator).convert()

    def build() -> object:
        interpreter = ow.lite.Interpreter(model_content=model, custom_ops=[operator])
        interpreter.allocate_tensors()
        return interpreter

    return build


def sin_model() -> bytes:
    """The model that `invoke` runs, here and in the official run time."""
    import opwright as ow

    model: bytes = _converter(ow.sin).convert()
    return model


def invoke() -> Callable[[], object]:
    import numpy as np

    import opwright as ow

    interpreter = ow.lite.Interpreter(model_content=sin_model(), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array(FIVE, np.float32))
    invoke: Callable[[], object] = interpreter.invoke
    return invoke


def installed_size() -> float:
    """Bytes of this package and of what its requirements bring, transitively, without extras."""
    import opwright

    def size(files: Any) -> int:
        return sum(path.stat().st_size for path in files if path.is_file())

    total = size(Path(opwright.__file__).parent.rglob("*"))  # a checkout's metadata lists no sources
    for name in _requirements("opwright") - {"opwright"}:
        total += size(Path(str(file.locate())) for file in importlib.metadata.files(name) or ())
    return float(total)


def _requirements(name: str) -> set[str]:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    result: set[str] = set()
    pending = [name]
    while pending:
        name = canonicalize_name(pending.pop())
        if name not in result:
            result.add(name)
            needs = map(Requirement, importlib.metadata.requires(name) or ())
            pending += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return result


RUNS: dict[str, measure.Prepare] = {
    "import": import_row,
    "import_whole": import_whole,
    "eager_add": eager_add,
    "eager_softmax": eager_softmax,
    "eager_reshape": eager_reshape,
    "eager_argmax": eager_argmax,
    "scope_add": scope_add,
    "scope_graph": scope_graph,
    "sparse_sgd": sparse_sgd,
    "sparse_adagrad": sparse_adagrad,
    "sparse_adam_lazy": sparse_adam_lazy,
    "sparse_adam": sparse_adam,
    "dense_sgd": dense_sgd,
    "dense_adam": dense_adam,
    "traced_call": traced_call,
    "jit_call": jit_call,
    "jit_chain": jit_chain,
    "dispatch": dispatch,
    "trace": trace,
    "trace_autograph": trace_autograph,
    "while_turn": while_turn,
    "while_over": while_over,
    "while_gradient": while_gradient,
    "while_tensor": while_tensor,
    "branch": branch,
    "array_write": array_write,
    "dataset": dataset,
    "fit_step": fit_step,
    "lstm": lstm,
    "dying_functions": dying_functions,
    "deep_chain": deep_chain,
    "deep_chain_apart": lambda: deep_chain(inplace=False),
    "deep_memory": deep_memory,
    "deep_memory_apart": lambda: deep_memory(inplace=False),
    "deep_gradient": deep_gradient,
    "deep_gradient_apart": lambda: deep_gradient(inplace=False),
    "deep_gradient_memory": deep_gradient_memory,
    "tape_step": tape_step,
    "eager_tanh": lambda: eager_large("Tanh"),
    "eager_gelu": lambda: eager_large("Gelu"),
    "convert": convert,
    "convert_network": convert_network,
    "network_size": network_size,
    "interpreter": interpreter,
    "invoke": invoke,
    "installed_size": installed_size,
    **sequences.RUNS,
    **files.RUNS,
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--sin-model"]:
        sys.stdout.buffer.write(sin_model())
    else:
        measure.main(RUNS)
