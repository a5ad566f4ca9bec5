"""The training rows in PyTorch, eagerly and by torch.compile.

Lives here: the models, steps with Adam's fused form, which is the fastest of the optimizer's.
Not here: sizes and batches (../workloads.py).

torch.compile compiles forward and backward; images are [n, c, h, w], PyTorch's own layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import measure
from benchmarks.training_models import LEARNING_RATE
from benchmarks.workloads import WORKLOADS, Sizes, batch_of


def mlp(torch: Any, s: Sizes) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(s["features"], s["hidden"]),
        nn.ReLU(),
        nn.Linear(s["hidden"], s["hidden"]),
        nn.ReLU(),
        nn.Linear(s["hidden"], s["classes"]),
    )


def cnn(torch: Any, s: Sizes) -> Any:
    nn = torch.nn
    side = ((s["image"] - 2) // 2 - 2) // 2 - 2
    return nn.Sequential(
        nn.Conv2d(s["channels"], s["first"], 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(s["first"], s["filters"], 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(s["filters"], s["filters"], 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(side * side * s["filters"], s["filters"]),
        nn.ReLU(),
        nn.Linear(s["filters"], s["classes"]),
    )


def lstm(torch: Any, s: Sizes) -> Any:
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recurrent = nn.LSTM(s["features"], s["units"], batch_first=True)
            self.head = nn.Linear(s["units"], s["classes"])

        def forward(self, x):
            return self.head(self.recurrent(x)[0][:, -1])

    return Model()


def attention(torch: Any, width: int, heads: int, causal: bool = False) -> Any:
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.projection, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            n, t, _ = x.shape
            q, k, v = self.projection(x).view(n, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            return self.output(y.transpose(1, 2).reshape(n, t, width))

    return Attention()


def encoder(torch: Any, s: Sizes) -> Any:
    nn, width = torch.nn, s["width"]

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = attention(torch, width, s["heads"])
            self.first, self.second = nn.Linear(width, s["hidden"]), nn.Linear(s["hidden"], width)
            self.norms = nn.ModuleList([nn.LayerNorm(width, eps=1e-3) for _ in range(2)])

        def forward(self, x):
            x = self.norms[0](x + self.attention(x))
            return self.norms[1](x + self.second(torch.relu(self.first(x))))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Layer() for _ in range(s["layers"])])
            self.head = nn.Linear(width, s["classes"])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.head(x.mean(1))

    return Model()


MODELS: dict[str, Callable[[Any, Sizes], Any]] = {"mlp": mlp, "cnn": cnn, "lstm": lstm, "encoder": encoder}


def inputs_of(torch: Any, name: str, sizes: Sizes) -> tuple[list[Any], Any]:
    """Return inputs and targets; integers are int64, as PyTorch's losses and lookups have them."""
    inputs, targets = batch_of(name, sizes)
    tensors = [torch.from_numpy(a) for a in (*inputs, targets)]
    tensors = [t.long() if t.dtype == torch.int32 else t for t in tensors]
    tensors = [t.permute(0, 3, 1, 2).contiguous() if t.dim() == 4 else t for t in tensors]
    return tensors[:-1], tensors[-1]


def loss_of(torch: Any, name: str) -> Callable[[Any, Any], Any]:
    return torch.nn.functional.cross_entropy  # type: ignore[no-any-return]


def optimizers_of(torch: Any, name: str, model: Any) -> list[Any]:
    return [torch.optim.Adam(model.parameters(), LEARNING_RATE, eps=1e-7, fused=True)]


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
