"""Writes summary_records.json: the events that TensorFlow and Keras write for summary_programs.py.

Run it with a Python that has TensorFlow and TensorBoard: python tests/formats/make_summary_records.py
"""

import json
import pathlib
import tempfile

import numpy as np
import summary_programs
import tensorboard
import tensorflow as tf
from make_tensorflow_records import plain, text

HERE = pathlib.Path(__file__).parent


def events(paths):
    """The summaries of a run's files, but graphs."""
    rows = []
    for path in paths:
        for record in tf.data.TFRecordDataset(path):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                row = [event.step, value.tag, text(value.metadata.SerializeToString())]
                array = tf.make_ndarray(value.tensor)
                if value.metadata.plugin_data.plugin_name == "images":
                    sizes, images = array[:2], [tf.io.decode_png(image).numpy() for image in array[2:]]
                    array = np.stack(images)
                    assert [int(size) for size in sizes] == [array.shape[2], array.shape[1]]
                rows.append([*row, plain(array)])
    return rows


if __name__ == "__main__":
    recorded = {"made_with": f"tensorflow {tf.__version__}, tensorboard {tensorboard.__version__}"}
    for name, program in summary_programs.PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            program(tf, folder)
            recorded[name] = {run: events(paths) for run, paths in summary_programs.runs(folder).items()}
    lines = json.dumps(recorded, indent=0, separators=(",", ":"), ensure_ascii=True)
    (HERE / "summary_records.json").write_text(lines + "\n")
