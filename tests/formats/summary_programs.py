"""Programs of the module `tf` that write event files, and what the files contain: (step, tag, metadata, array).

summary_records.json has what TensorFlow writes (make_summary_records.py makes it); test_summaries.py compares.
"""

import os

import numpy as np


def summaries(tf, folder):
    """Each kind of summary, eager and from functions, with scopes, conditions and default steps."""
    x = np.random.default_rng(3).normal(size=(4, 5)).astype("float32")
    pixels = np.linspace(-0.2, 1.2, 2 * 3 * 4 * 3).reshape(2, 3, 4, 3).astype("float32")
    writer = tf.summary.create_file_writer(folder, max_queue=2)
    with writer.as_default():
        for step in range(3):
            tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
        with tf.name_scope("outer"), tf.name_scope("inner"):
            tf.summary.scalar("scoped", tf.constant(7, tf.int64), step=1, description="in *scopes*")
        tf.summary.histogram("h", x, step=1)
        tf.summary.histogram("h5", x, step=2, buckets=5)
        tf.summary.histogram("equal", np.full((7,), 2.5), step=3, buckets=4)
        tf.summary.histogram("none", np.zeros((0,), "float32"), step=3, buckets=4)
        tf.summary.histogram("integers", np.array([1, 2, 2, 9], "int32"), step=3, buckets=3)
        tf.summary.image("floats", pixels, step=1, max_outputs=1)
        tf.summary.image("gray", (pixels[..., :1] * 100 + 50).astype("uint8"), step=1)
        tf.summary.image("wide", (pixels * 20000 + 5000).astype("uint16"), step=1)
        tf.summary.text("one", "# title", step=5)
        tf.summary.text("table", [["a", "b"], ["c", "ä"]], step=6)
        tf.summary.audio("beep", np.sin(np.arange(40.0)).reshape(2, 20, 1).astype("float32"), 8000, step=2)
        tf.summary.write("raw", tf.constant([1.5, 2.5]), step=4, metadata=b"\n\x06\n\x04mine")
        with tf.summary.record_if(False):
            tf.summary.scalar("loss", 0.0, step=9)
    with writer.as_default(step=20):
        tf.summary.scalar("default_step", 2.0)
        tf.summary.experimental.set_step(21)
        tf.summary.scalar("default_step", 3.0)
    step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def traced(value):
        with writer.as_default(), tf.summary.record_if(lambda: step % 2 == 0):
            tf.summary.scalar("traced", tf.reduce_sum(value), step=step)
            tf.summary.histogram("traced_h", value, step=step, buckets=3)
        return value

    for _ in range(4):
        traced(tf.constant(x))
        step.assign_add(1)
    writer.close()


def training(tf, folder):
    """The callback of `fit` and `evaluate`."""
    keras = tf.keras
    x = np.random.default_rng(5).normal(size=(24, 3)).astype("float32")
    y = x.sum(1, keepdims=True)
    layers = [keras.layers.Dense(2, name="first"), keras.layers.Dense(1, name="last")]
    model = keras.Sequential([keras.Input((3,)), *layers], name="net")
    model.set_weights([np.ones((3, 2)) * 0.3, np.zeros(2), np.ones((2, 1)) * 0.5, np.zeros(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse", metrics=["mae"])
    board = keras.callbacks.TensorBoard(folder, histogram_freq=2, write_images=True, update_freq=3)
    model.fit(x, y, batch_size=8, epochs=3, validation_data=(x, y), shuffle=False, verbose=0, callbacks=[board])
    model.evaluate(x[:8], y[:8], verbose=0, callbacks=[keras.callbacks.TensorBoard(os.path.join(folder, "after"))])


PROGRAMS = {"summaries": summaries, "training": training}


def runs(folder):
    """The folders of event files, by their path in `folder`."""
    files = {}
    for path, _, names in sorted(os.walk(folder)):
        events = [os.path.join(path, name) for name in sorted(names) if "tfevents" in name]
        if events:
            files[os.path.relpath(path, folder)] = events
    return files
