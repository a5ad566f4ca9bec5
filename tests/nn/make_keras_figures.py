"""Writes keras_figures.json: what Keras gives for keras_cases.py. Run it with a Python that has TensorFlow."""

import json
import pathlib

import keras_cases
import tensorflow as tf

HERE = pathlib.Path(__file__).parent


def rounded(value):
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [float(f"{v:.7g}") for v in value]


if __name__ == "__main__":
    figures = {"made_with": f"tensorflow {tf.__version__}, keras {tf.keras.__version__}"}
    figures.update({k: {n: rounded(r) for n, r in v.items()} for k, v in keras_cases.every(tf).items()})
    (HERE / "keras_figures.json").write_text(json.dumps(figures, indent=0, separators=(",", ":")) + "\n")
