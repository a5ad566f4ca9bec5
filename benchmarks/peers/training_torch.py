"""The training rows in PyTorch, eagerly and by torch.compile.

Lives here: steps with Adam's fused form, which is the fastest of the optimizer's.
Not here: the models (models_torch.py), sizes and batches (../workloads.py).

torch.compile compiles forward and backward; images are [n, c, h, w], PyTorch's own layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import measure
from benchmarks.peers.models_torch import MODELS
from benchmarks.training_models import LEARNING_RATE
from benchmarks.workloads import WORKLOADS, Sizes, batch_of


def inputs_of(torch: Any, name: str, sizes: Sizes, seed: int = 0) -> tuple[list[Any], Any]:
    """Return inputs and targets; integers are int64, as PyTorch's losses and lookups have them."""
    inputs, targets = batch_of(name, sizes, seed=seed)
    tensors = [torch.from_numpy(a) for a in (*inputs, targets)]
    tensors = [t.long() if t.dtype == torch.int32 else t for t in tensors]
    tensors = [t.permute(0, 3, 1, 2).contiguous() if t.dim() == 4 else t for t in tensors]
    return tensors[:-1], tensors[-1]


def loss_of(torch: Any, name: str) -> Callable[[Any, Any], Any]:
    functional = torch.nn.functional
    cross_entropy, binary = functional.cross_entropy, functional.binary_cross_entropy_with_logits
    if name == "vae":
        return lambda outputs, y: binary(outputs[0], y) + outputs[1]
    if name == "gpt":
        return lambda logits, y: cross_entropy(logits, y.flatten())
    return binary if name == "dlrm" else cross_entropy  # type: ignore[no-any-return]


def optimizers_of(torch: Any, name: str, model: Any) -> list[Any]:
    """Adam's fused form, and SparseAdam for a table whose gradients are rows."""
    table = model.table.weight if name == "dlrm" else None
    dense = [p for p in model.parameters() if p is not table]
    rows = [] if table is None else [torch.optim.SparseAdam([table], LEARNING_RATE, eps=1e-7)]
    return [torch.optim.Adam(dense, LEARNING_RATE, eps=1e-7, fused=True), *rows]


def step(name: str, sizes: Sizes, compiled: bool) -> Callable[[], object]:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = inputs_of(torch, name, sizes)
    model, loss_function = MODELS[name](torch, sizes), loss_of(torch, name)
    model.train()
    optimizers = optimizers_of(torch, name, model)

    def forward(*x: Any) -> Any:
        return loss_function(model(*x), y)

    if compiled:
        forward = torch.compile(forward, dynamic=False)

    def run() -> object:
        loss = forward(*x)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss.item()

    return run


def runs(compiled: bool) -> dict[str, measure.Prepare]:
    """Return the rows, by name."""
    return measure.training_runs(lambda name, sizes: step(name, sizes, compiled), WORKLOADS)
