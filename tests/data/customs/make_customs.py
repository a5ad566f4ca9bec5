"""Makes small files with custom operators by TensorFlow's converter, and what TensorFlow itself answers.

    python tests/data/customs/make_customs.py     where TensorFlow is installed

Lives here: the functions, converting them, writing NAME.tflite beside this file and inputs and answers into answers.npz
under NAME|ARGUMENT: x0, x1, ... and y0, y1, ... Tests read these and need no TensorFlow.
Not here: operators that the official interpreter has (tests/data/tflite, drawn_rows_customs.py).
"""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf

HERE = pathlib.Path(__file__).parent


def random(*shape, dtype=tf.float32):
    return tf.TensorSpec(shape, dtype)


def inverse(real, imaginary):
    x = tf.complex(real, imaginary)
    return (tf.signal.irfft2d(x, [8, 16]),)  # of whole size: TensorFlow pads and cuts with operators of its own


def argmax(x):
    pool = tf.nn.max_pool_with_argmax
    return (
        *pool(x, 2, 2, "SAME"),
        *pool(x, (3, 2), (1, 3), "VALID", output_dtype=tf.int32),
        *pool(x, 3, 2, "SAME", include_batch_in_index=True),
    )


FUNCTIONS = {
    "average_volumes": (
        lambda x: (tf.nn.avg_pool3d(x, 2, [1, 2, 1], "SAME"), tf.nn.avg_pool3d(x, [1, 3, 2], 2, "VALID")),
        [random(2, 4, 5, 3, 2)],
    ),
    "greatest_volumes": (
        lambda x: (tf.nn.max_pool3d(x, 2, [1, 2, 1], "SAME"), tf.nn.max_pool3d(x, [1, 3, 2], 2, "VALID")),
        [random(2, 4, 5, 3, 2)],
    ),
    "argmax": (argmax, [random(2, 5, 6, 3)]),
    "inverse_fourier": (inverse, [random(2, 8, 9), random(2, 8, 9)]),
    "broadcast_axes": (
        lambda a, b, c: (
            *tf.raw_ops.BroadcastGradientArgs(s0=a, s1=b),
            *tf.raw_ops.BroadcastGradientArgs(s0=b, s1=a),
            *tf.raw_ops.BroadcastGradientArgs(s0=c, s1=c + 0),
        ),
        [tf.constant([2, 1, 1, 5], tf.int32), tf.constant([4, 1, 1], tf.int32), tf.constant([7, 1], tf.int32)],
    ),
}


def with_names(function, names):
    """A function of arguments by name that gives its answers by name, as a signature does."""
    return tf.function(lambda **given: {f"y{i}": y for i, y in enumerate(function(*map(given.get, names)))})


def main():
    """Convert and run every function."""
    kept = {}
    rng = np.random.default_rng(0)
    for name, (function, inputs) in FUNCTIONS.items():
        values = [
            rng.standard_normal(x.shape).astype(np.float32) if isinstance(x, tf.TensorSpec) else x.numpy()
            for x in inputs
        ]
        specs = [tf.TensorSpec(v.shape, v.dtype) for v in values]
        names = [f"x{i}" for i in range(len(specs))]
        named = with_names(function, names)
        with tempfile.TemporaryDirectory() as folder:
            module = tf.Module()
            module.run = named.get_concrete_function(**dict(zip(names, specs)))
            tf.saved_model.save(module, folder, signatures=module.run)
            converter = tf.lite.TFLiteConverter.from_saved_model(folder)
            converter.allow_custom_ops = True
            content = converter.convert()
        (HERE / f"{name}.tflite").write_bytes(content)
        answers = function(*map(tf.constant, values))
        for side, arrays in (("x", values), ("y", answers)):
            kept.update({f"{name}|{side}{i}": np.asarray(a) for i, a in enumerate(arrays)})
        print(name, len(content), [a.shape for a in answers])
    np.savez_compressed(HERE / "answers.npz", **kept)


if __name__ == "__main__":
    main()
