"""The rows in PyTorch.  Run by a Python that has it: `python -m benchmarks.peers.peer_torch ROW...`.

`traced_call` is `torch.compile`, which needs a C++ compiler; `trace` is `torch.fx.symbolic_trace`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import measure
from benchmarks.peers import training_torch


def _matrices() -> tuple[Any, Any, Any, Any]:
    import torch  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return torch, *(torch.randn(4, 4) for _ in range(3))


def eager_add() -> Callable[[], object]:
    torch, x, y, _ = _matrices()
    return lambda: torch.add(x, y)


def eager_softmax() -> Callable[[], object]:
    torch, x, *_ = _matrices()
    return lambda: torch.softmax(x, 1)


def eager_reshape() -> Callable[[], object]:
    torch, x, *_ = _matrices()
    return lambda: torch.reshape(x, (2, 8))


def eager_argmax() -> Callable[[], object]:
    torch, x, *_ = _matrices()
    return lambda: torch.argmax(x, 1)


def eager_tanh() -> Callable[[], object]:
    torch, *_ = _matrices()
    x = torch.randn(1 << 20)
    return lambda: torch.tanh(x)


def eager_gelu() -> Callable[[], object]:
    torch, *_ = _matrices()
    x = torch.randn(1 << 20)
    return lambda: torch.nn.functional.gelu(x)


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


def _table_step(make: Callable[..., Any], dense: bool = False) -> float:
    torch, *_ = _matrices()
    height, width, n = 1_000_000, 64, 4096
    table = torch.nn.Parameter(torch.ones(height, width))
    rows = torch.sparse_coo_tensor(torch.randint(0, height, (1, n)), torch.randn(n, width), (height, width))
    optimizer = make(torch.optim, [table])

    def step() -> None:
        table.grad = rows.to_dense() if dense else rows
        optimizer.step()

    step()
    return measure.median_seconds(step)


def sparse_sgd() -> float:
    return _table_step(lambda optim, p: optim.SGD(p, 0.1))


def sparse_adagrad() -> float:
    return _table_step(lambda optim, p: optim.Adagrad(p, 0.1))


def sparse_adam_lazy() -> float:
    return _table_step(lambda optim, p: optim.SparseAdam(p, 0.1))


def dense_sgd() -> float:
    return _table_step(lambda optim, p: optim.SGD(p, 0.1), dense=True)


def dense_adam() -> float:
    return _table_step(lambda optim, p: optim.Adam(p, 0.1), dense=True)


DEEP, WIDE = 64, 1024


def deep_chain() -> Callable[[], object]:
    """Without torch.compile: as most run it."""
    torch, *_ = _matrices()
    x = torch.ones(WIDE, WIDE)

    def chain() -> object:
        y = x
        for _ in range(DEEP):
            y = y * 0.99 + 0.01
        return y

    return chain


def _deep_network() -> tuple[Any, Any]:
    torch, *_ = _matrices()
    weights = [torch.randn(WIDE, WIDE) / 32 for _ in range(DEEP)]
    biases = [torch.randn(WIDE) for _ in range(DEEP)]

    def network(x: Any) -> Any:
        for w, b in zip(weights, biases):
            x = torch.relu(torch.matmul(x, w) + b)
        return x.sum()

    torch.autograd.grad(network(x := torch.ones(1, WIDE, requires_grad=True)), x)
    return network, torch


def deep_memory() -> float:
    network, torch = _deep_network()
    x = torch.randn(WIDE, WIDE)
    return measure.peak_bytes(lambda: network(x))


def deep_gradient_memory() -> float:
    network, torch = _deep_network()
    x = torch.randn(WIDE, WIDE, requires_grad=True)
    return measure.peak_bytes(lambda: torch.autograd.grad(network(x), x))


RUNS: dict[str, measure.Prepare] = {
    "import": lambda: measure.import_seconds("torch"),
    "import_whole": lambda: measure.import_seconds("torch", bare=False),
    "eager_add": eager_add,
    "eager_softmax": eager_softmax,
    "eager_reshape": eager_reshape,
    "eager_argmax": eager_argmax,
    "sparse_sgd": sparse_sgd,
    "sparse_adagrad": sparse_adagrad,
    "sparse_adam_lazy": sparse_adam_lazy,
    "dense_sgd": dense_sgd,
    "dense_adam": dense_adam,
    "traced_call": traced_call,
    "trace": trace,
    "deep_chain": deep_chain,
    "deep_memory": deep_memory,
    "deep_gradient_memory": deep_gradient_memory,
    "tape_step": tape_step,
    "eager_tanh": eager_tanh,
    "eager_gelu": eager_gelu,
    **training_torch.runs(compiled=False),
}

if __name__ == "__main__":
    measure.main(RUNS)
