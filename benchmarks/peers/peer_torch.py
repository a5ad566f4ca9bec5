"""The rows in PyTorch.  Run by a Python that has it: `python -m benchmarks.peers.peer_torch ROW...`.

`traced_call` is `torch.compile`, which needs a C++ compiler; `trace` is `torch.fx.symbolic_trace`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import measure


def _matrices() -> tuple[Any, Any, Any, Any]:
    import torch  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return torch, *(torch.randn(4, 4) for _ in range(3))


def eager_add() -> Callable[[], object]:
    torch, x, y, _ = _matrices()
    return lambda: torch.add(x, y)


def traced_call() -> Callable[[], object]:
    torch, x, w, b = _matrices()
    layer = torch.compile(lambda x, w, b: torch.tanh(torch.matmul(x, w) + b))
    return lambda: layer(x, w, b)


def trace() -> Callable[[], object]:
    torch, *_ = _matrices()
    from torch import fx

    def sixty(x, w):
        for _ in range(20):
            x = torch.tanh(torch.add(torch.matmul(x, w), w))
        return x

    return lambda: fx.symbolic_trace(sixty)


def tape_step() -> Callable[[], object]:
    torch, x, w, b = _matrices()
    w.requires_grad_()
    seed = torch.ones(4, 4)

    def step() -> object:
        y = torch.tanh(torch.matmul(x, w) + b)
        return torch.autograd.grad(y, w, seed)

    return step


RUNS: dict[str, measure.Prepare] = {
    "import": lambda: measure.import_seconds("torch"),
    "import_whole": lambda: measure.import_seconds("torch", bare=False),
    "eager_add": eager_add,
    "traced_call": traced_call,
    "trace": trace,
    "tape_step": tape_step,
}

if __name__ == "__main__":
    measure.main(RUNS)
