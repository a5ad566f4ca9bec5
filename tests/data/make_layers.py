"""Makes layers.npz, what Keras gives for the cases of tests/nn/layer_cases.py: run it where TensorFlow is installed.

PYTHONPATH=tests python tests/data/make_layers.py [NAME ...]     some cases only: listed, not written
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

from nn import layer_cases


def main() -> None:
    """Run every case and write what it gave."""
    names = sys.argv[1:] or list(layer_cases.CASES)
    result, failed = {}, []
    for name in names:
        try:
            _, record = layer_cases.run(tf, tf.keras.layers, layer_cases.CASES[name])
        except Exception as error:
            failed.append(name)
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}")
            continue
        for key, value in record.items():
            result[f"{name}/{key}"] = value
            if sys.argv[1:]:
                print(name, key, value.shape, value)
    if failed:
        raise SystemExit(f"{len(failed)} cases do not run: {failed}")
    if not sys.argv[1:]:
        np.savez_compressed(pathlib.Path(__file__).with_name("layers.npz"), **result)


main()
