"""Rows of the table operator x type: recurrent operators over several runs, so that state counts.

Lives here: the rows.  Not here: the models (recurrent_models.py), resetting state and files of the converter
(test_recurrent.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from drawn import Draw, Drawn, Row, T
from recurrent_models import MODELS

from opwright.lite.format import schema

HYBRID = 0.05
"""Of models with int8 weights, which quantise their state: one between two integers becomes either, by its last bit."""


def _drawn(make: Callable[[int, str], Any], kind: str) -> Callable[[Draw], Drawn]:
    def draw(d: Draw) -> Drawn:
        model = make(int(d.rng.integers(2**31)), kind)
        main = model.subgraphs[0]
        inputs: list[T | None] = []
        for index in main.inputs:
            t = main.tensors[index]
            name, shape = schema.TensorType(t.type).name, tuple(int(n) for n in t.shape)
            values = d.rng.normal(0, 1, shape).astype(np.float32) if name == "FLOAT32" else d.integers(name, shape)
            inputs.append(T(name, shape, values=values))
        return Drawn(inputs, [], model=model, runs=3)

    return draw


def _rows() -> list[Row]:
    rows = []
    for label, (make, kinds) in MODELS.items():
        for kind in kinds:
            types = "UINT8" if "BASIC" in label and kind == "integer" else "INT8" if kind == "integer" else "FLOAT32"
            shown = label + {"hybrid": ", int8 weights", "legacy": ", uint8 weights"}.get(kind, "")
            within = {"integer": 0.0, "float": 1e-5}.get(kind, HYBRID)
            if "gates of int8" in label:  # which are computed in float32: a step
                within = 1.0
            name = "UNIDIRECTIONAL_SEQUENCE_LSTM" if label == "LSTM of int8" else label.split()[0]
            rows.append(Row(name, (types,), _drawn(make, kind), within, "OPT", shown))
    return rows


ROWS: list[Row] = _rows()
