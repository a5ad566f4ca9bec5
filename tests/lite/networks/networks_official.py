"""Writes networks_official.json: sizes of the official converter's files of the same networks.

Run with a Python that has TensorFlow (2.21 wrote what is kept); what it does not convert is left out.
"""

from __future__ import annotations

import json
from pathlib import Path

import tensorflow as tf
from networks_all import NETWORKS, built, inputs_of

KINDS = ("float", "dynamic", "int8")


def size(name: str, kind: str) -> int | None:
    try:
        converter = tf.lite.TFLiteConverter.from_keras_model(built(tf, name))
        if kind != "float":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if kind == "int8":
            converter.representative_dataset = lambda: (inputs_of(name, seed) for seed in range(4))
        return len(converter.convert())
    except Exception as error:
        print(name, kind, type(error).__name__, str(error)[:200])
        return None


found = {name: {kind: size(name, kind) for kind in KINDS} for name in sorted(NETWORKS)}
kept = {name: {k: n for k, n in sizes.items() if n} for name, sizes in found.items()}
text = json.dumps({name: sizes for name, sizes in kept.items() if sizes}, indent=1)
Path(__file__).with_name("networks_official.json").write_text(text + "\n", "utf-8")
