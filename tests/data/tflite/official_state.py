"""Models with control flow, state, tables, strings and sequences of the official corpus. Run by make_official.py."""

import numpy as np
import tensorflow as tf
from official_float import FLEX, spec, weights

MODELS = {}
STATE = {"experimental_enable_resource_variables": True}


def model(function):
    """Add a maker to the table, under its name."""
    MODELS[function.__name__] = function
    return function


@model
def if_else(rng):
    w = weights(rng, 4, 4)
    run = lambda x, c: {"y": tf.cond(c, lambda: tf.matmul(x, w), lambda: x - 1.0)}  # noqa: E731
    return {
        "functions": {"serving_default": (run, {"x": spec(2, 4), "c": spec(dtype=tf.bool)})},
        "calls": [("serving_default", {"c": True}), ("serving_default", {"c": False})],
    }


@model
def while_loop(rng):
    def run(x, n):
        i, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.sin(y) * 1.5 + x), [0, x])
        return {"i": i, "y": y}

    return {
        "functions": {"serving_default": (run, {"x": spec(3), "n": spec(dtype=tf.int32)})},
        "calls": [("serving_default", {"n": 4}), ("serving_default", {"n": 0})],
    }


@model
def while_growing(rng):
    """A tensor whose shape changes from turn to turn."""

    def run(n):
        def longer(i, y):
            return i + 1, tf.concat([y, [tf.cast(i, tf.float32)]], 0)

        shapes = [tf.TensorShape([]), tf.TensorShape([None])]
        return {"y": tf.while_loop(lambda i, y: i < n, longer, [0, tf.zeros([1])], shape_invariants=shapes)[1]}

    return {
        "functions": {"serving_default": (run, {"n": spec(dtype=tf.int32)})},
        "calls": [("serving_default", {"n": 3}), ("serving_default", {"n": 5})],
    }


@model
def nested_control(rng):
    @tf.function(autograph=True)
    def run(x, n):
        total = tf.zeros([2])
        for i in tf.range(n):
            if tf.reduce_sum(x) > 3.0:
                for _ in tf.range(i):
                    total += x
            else:
                total -= 1.0
            x = x * 1.1
        return {"y": total}

    return {
        "functions": {"serving_default": (run, {"x": spec(2), "n": spec(dtype=tf.int32)})},
        "calls": [("serving_default", {"x": [1.0, 1.9], "n": 4})],
    }


@model
def switch_case(rng):
    """IF inside IF."""

    def run(x, i):
        return {"y": tf.cond(i < 1, lambda: x, lambda: tf.cond(i < 2, lambda: x * 2.0, lambda: -x))}

    return {
        "functions": {"serving_default": (run, {"x": spec(3), "i": spec(dtype=tf.int32)})},
        "calls": [("serving_default", {"i": i}) for i in (0, 1, 2)],
    }


@model
def tensor_array(rng):
    def run(x):
        def turn(i, out):
            return i + 1, out.write(i, x[i] * tf.cast(i, tf.float32))

        out = tf.TensorArray(tf.float32, 4, element_shape=[3])
        _, out = tf.while_loop(lambda i, o: i < 4, turn, [0, out])
        return {"y": out.stack()}

    return {"functions": {"serving_default": (run, {"x": spec(4, 3)})}}


@model
def variables(rng):
    module = tf.Module()
    module.count, module.total = tf.Variable(0, name="count"), tf.Variable([1.0, 2.0], name="total")

    @tf.function
    def step(x):
        return {"count": module.count.assign_add(1), "total": module.total.assign_add(x)}

    @tf.function
    def reset():
        module.count.assign(0)
        return {"count": module.count.read_value()}

    x = np.array([0.5, -1.0], np.float32)
    return {
        "module": module,
        "functions": {"step": (step, {"x": spec(2)}), "reset": (reset, {})},
        **STATE,
        "calls": [("step", {"x": x}), ("step", {"x": x}), ("reset", {}), ("step", {"x": x})],
    }


@model
def variable_in_loop(rng):
    module = tf.Module()
    module.v = tf.Variable(tf.ones([2]))

    @tf.function(autograph=True)
    def run(n):
        for _ in tf.range(n):
            module.v.assign(module.v * 2.0)
        return {"y": module.v.read_value()}

    return {
        "module": module,
        "functions": {"serving_default": (run, {"n": spec(dtype=tf.int32)})},
        **STATE,
        "calls": [("serving_default", {"n": 2}), ("serving_default", {"n": 1})],
    }


def table_model(keys, values, default):
    module = tf.Module()
    module.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)

    @tf.function
    def run(keys):
        return {"values": module.table.lookup(keys), "size": module.table.size()}

    return {"module": module, "functions": {"serving_default": (run, {"keys": spec(3, dtype=keys.dtype)})}}


@model
def hashtable_ids(rng):
    result = table_model(tf.constant(["a", "bc", "d"]), tf.constant([7, 8, 9], tf.int64), -1)
    return result | {"calls": [("serving_default", {"keys": [b"bc", b"zz", b"a"]})]}


@model
def hashtable_words(rng):
    result = table_model(tf.constant([5, 6], tf.int64), tf.constant(["five", "six"]), "?")
    return result | {"calls": [("serving_default", {"keys": [6, 1, 5]})]}


@model
def strings(rng):
    words = tf.constant(["one", "two", "\u00fcber", ""])

    def run(s, i):
        return {"picked": tf.gather(words, i), "same": tf.equal(s, "two"), "flat": tf.reshape(s, [1, 2])}

    return {
        "functions": {"serving_default": (run, {"s": spec(2, dtype=tf.string), "i": spec(3, dtype=tf.int32)})},
        "calls": [("serving_default", {"s": [b"two", b"x"], "i": [2, 0, 3]})],
    }


def lstm_model(units, steps, features=3, layer=None):
    """A recurrent Keras layer, as the converter fuses it."""
    tf.keras.utils.set_random_seed(3)
    layer = layer or tf.keras.layers.LSTM(units, return_sequences=True)
    keras = tf.keras.Sequential([tf.keras.layers.Input((steps, features), batch_size=1), layer])
    return {"keras": keras, "functions": {"serving_default": None}}


def fused_lstm(rng, units, steps, features):
    """The LSTM of Keras 2: a function that the converter recognizes by its attributes."""
    kernel, recurrent = weights(rng, features, 4 * units), weights(rng, units, 4 * units)
    bias = weights(rng, 4 * units)
    known = {"api_implements": "lstm_0", "api_preferred_device": "CPU", "time_major": False, "go_backwards": False}

    @tf.function(experimental_attributes=known, autograph=False)
    def standard_lstm(inputs, h, c, kernel, recurrent, bias):
        def step(_, state, x):
            i, f, g, o = tf.split(tf.matmul(x, kernel) + tf.matmul(state[0], recurrent) + bias, 4, 1)
            c = tf.sigmoid(f) * state[1] + tf.sigmoid(i) * tf.tanh(g)
            return tf.sigmoid(o) * tf.tanh(c), c

        outputs = []
        for t in range(steps):
            h, c = step(t, (h, c), inputs[:, t])
            outputs.append(h)
        return h, tf.stack(outputs, 1), h, c, tf.constant(1.0)

    def run(x):
        zeros = tf.zeros([1, units])
        return {"y": standard_lstm(x, zeros, zeros, kernel, recurrent, bias)[1]}

    return {"functions": {"serving_default": (run, {"x": spec(1, steps, features)})}}


@model
def lstm(rng):
    return fused_lstm(rng, 4, 5, 3)


@model
def lstm_keras(rng):
    """Not fused: a WHILE with lists."""
    return lstm_model(4, 5)


@model
def bidirectional_lstm(rng):
    return lstm_model(4, 5, layer=tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(3, return_sequences=True)))


@model
def gru(rng):
    return lstm_model(4, 5, layer=tf.keras.layers.GRU(4, return_sequences=True))


@model
def rnn_unrolled(rng):
    return lstm_model(4, 3, layer=tf.keras.layers.SimpleRNN(4, unroll=True))


@model
def random_numbers(rng):
    """Random operators: shapes and types are the official answer's, values not."""

    def run(n):
        return {"u": tf.random.uniform([n, 2], seed=3), "i": tf.shape(tf.random.normal([n, n], seed=4))}

    return {
        "functions": {"serving_default": (run, {"n": spec(dtype=tf.int32)})},
        "calls": [("serving_default", {"n": 3})],
    }


@model
def flex_strings(rng):
    run = lambda s: {"n": tf.strings.length(s), "j": tf.strings.reduce_join(s)}  # noqa: E731
    return {
        "functions": {"serving_default": (run, {"s": spec(2, dtype=tf.string)})},
        "supported_ops": FLEX,
        "by_tensorflow": True,
        "calls": [("serving_default", {"s": [b"two", b"x"]})],
    }


@model
def metadata(rng):
    """TFLITE_METADATA in a buffer, and a labels file in a zip behind the model, as task libraries want it."""
    import io
    import zipfile

    import flatbuffers
    from tensorflow.lite.python import schema_py_generated as schema

    def add(content):
        result = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
        entry, buffer = schema.MetadataT(), schema.BufferT()
        buffer.data = np.frombuffer(b"\x10\0\0\0M001" + bytes(range(40)), np.uint8)
        entry.name, entry.buffer = b"TFLITE_METADATA", len(result.buffers)
        result.buffers.append(buffer)
        result.metadata.append(entry)
        result.description = b"adds one"
        builder = flatbuffers.Builder(1024)
        builder.Finish(result.Pack(builder), b"TFL3")
        packed = io.BytesIO(bytes(builder.Output()))
        packed.seek(0, 2)
        with zipfile.ZipFile(packed, "a") as archive:
            archive.writestr(zipfile.ZipInfo("labels.txt", (2020, 1, 1, 0, 0, 0)), "cat\ndog\n")
        return packed.getvalue()

    return {"functions": {"serving_default": (lambda x: {"y": x + 1.0}, {"x": spec(2)})}, "after": add}
