"""The training rows by torch.compile, which needs a C++ compiler: `python -m benchmarks.peers.peer_torch_compile`."""

from __future__ import annotations

from benchmarks import measure
from benchmarks.peers import training_torch

RUNS: dict[str, measure.Prepare] = training_torch.runs(compiled=True)

if __name__ == "__main__":
    measure.main(RUNS)
