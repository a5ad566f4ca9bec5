"""Renew sparse_numbers.json: variables after steps by sparse rows, as Keras 3 and PyTorch compute them.

Lives here: the steps and the peers' optimizers.  Not here: the comparison (test_optimizers_sparse.py).

Run it once where `keras` (on TensorFlow) is installed, once where `torch` is; each writes its own part. PyTorch gets
the rows as they are. Keras gets them added up, in descending order: of rows given twice it squares each one, where
the gradient is their sum (3.15.1), so its Adam differs there from its own by the dense gradient.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "sparse_numbers.json"
START = np.linspace(-1.0, 1.0, 10).reshape(5, 2)
# Rows twice in a step, rows that come and go, rows out of order, no rows at all.
STEPS = [
    ([3, 0], [[1.0, -2.0], [0.5, 0.25]]),
    ([1, 4, 1], [[1.0, 1.0], [-3.0, 0.5], [0.5, -2.0]]),
    ([2, 2, 2], [[0.5, 0.5]] * 3),
    ([0], [[2.0, -1.0]]),
    ([], np.zeros((0, 2))),
]
KEPT = (2, 5)  # after how many steps the numbers are taken
KERAS = {
    "SGD": ("SGD", {}),
    "SGD-momentum": ("SGD", {"momentum": 0.5}),
    "SGD-nesterov": ("SGD", {"momentum": 0.5, "nesterov": True}),
    "SGD-decay": ("SGD", {"weight_decay": 0.5}),
    "SGD-clipnorm": ("SGD", {"clipnorm": 0.5}),
    "SGD-global_clipnorm": ("SGD", {"global_clipnorm": 0.5}),
    "SGD-clipvalue": ("SGD", {"clipvalue": 0.75}),
    "SGD-ema": ("SGD", {"use_ema": True, "ema_overwrite_frequency": 2}),
    "SGD-accumulate": ("SGD", {"gradient_accumulation_steps": 2}),
    "Adam": ("Adam", {}),
    "Adam-amsgrad": ("Adam", {"amsgrad": True}),
    "Adam-clipnorm": ("Adam", {"clipnorm": 0.5}),
    "AdamW": ("AdamW", {}),
    "Adamax": ("Adamax", {}),
    "Nadam": ("Nadam", {}),
    "RMSprop": ("RMSprop", {}),
    "RMSprop-centered": ("RMSprop", {"momentum": 0.5, "centered": True, "epsilon": 1e-3}),
    "Adadelta": ("Adadelta", {}),
    "Adagrad": ("Adagrad", {}),
    "Ftrl": ("Ftrl", {"l1_regularization_strength": 0.1}),
    "Lion": ("Lion", {}),
}
TORCH = {  # PyTorch's epsilon has another place in Adam and Adagrad: too small to tell
    "SGD": ("SGD", {}, "SGD", {}),
    "Adagrad": ("Adagrad", {"initial_accumulator_value": 0.1, "eps": 1e-15}, "Adagrad", {"epsilon": 1e-15}),
    "SparseAdam": ("SparseAdam", {"eps": 1e-15}, "Adam", {"epsilon": 1e-15, "lazy_mode": True}),
}


def keras_numbers() -> dict[str, list[list[list[float]]]]:
    import keras
    import tensorflow as tf

    result: dict[str, list[list[list[float]]]] = {}
    for name, (kind, settings) in KERAS.items():
        optimizer = getattr(keras.optimizers, kind)(0.25, **settings)
        variable = keras.Variable(START, dtype="float64")
        optimizer.build([variable])
        result[name] = []
        for step, (indices, values) in enumerate(STEPS, 1):
            rows, where = np.unique(np.asarray(indices, "int64"), return_inverse=True)
            merged = np.zeros((len(rows), 2))
            np.add.at(merged, where, np.asarray(values))
            optimizer.apply([tf.IndexedSlices(merged[::-1], rows[::-1], tf.constant([5, 2]))], [variable])
            if step in KEPT:
                result[name].append(variable.numpy().tolist())
    return result


def torch_numbers() -> dict[str, list[list[list[float]]]]:
    import torch

    result: dict[str, list[list[list[float]]]] = {}
    for name, (kind, settings, _, _) in TORCH.items():
        parameter = torch.nn.Parameter(torch.tensor(START))
        optimizer = getattr(torch.optim, kind)([parameter], 0.25, **settings)
        result[name] = []
        for step, (indices, values) in enumerate(STEPS, 1):
            at, by = torch.tensor([indices], dtype=torch.int64).reshape(1, -1), torch.tensor(np.asarray(values))
            parameter.grad = torch.sparse_coo_tensor(at, by, (5, 2), check_invariants=True)
            optimizer.step()
            if step in KEPT:
                result[name].append(parameter.detach().numpy().tolist())
    return result


if __name__ == "__main__":
    peer = sys.argv[1]
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    known[peer] = {"keras": keras_numbers, "torch": torch_numbers}[peer]()
    lines = [f'"{p}": {{\n' + ",\n".join(f'"{n}": {json.dumps(x)}' for n, x in known[p].items()) + "\n}" for p in known]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
