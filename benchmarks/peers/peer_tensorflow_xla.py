"""The training rows in TensorFlow by XLA: `python -m benchmarks.peers.peer_tensorflow_xla ROW...`."""

from __future__ import annotations

from benchmarks import measure
from benchmarks.peers import training_tensorflow

RUNS: dict[str, measure.Prepare] = training_tensorflow.runs(jit_compile=True)

if __name__ == "__main__":
    measure.main(RUNS)
