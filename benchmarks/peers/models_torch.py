"""The models of the training rows in PyTorch.

Lives here: one function for each workload.  Not here: sizes and batches (../workloads.py), steps (training_torch.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from benchmarks.workloads import Sizes


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


def resnet18(torch: Any, s: Sizes) -> Any:
    nn, relu = torch.nn, torch.relu

    def convolution(m: int, n: int, size: int, stride: int) -> Any:
        return nn.Sequential(nn.Conv2d(m, n, size, stride, size // 2, bias=False), nn.BatchNorm2d(n))

    class Block(nn.Module):
        def __init__(self, m: int, n: int, stride: int) -> None:
            super().__init__()
            self.first, self.second = convolution(m, n, 3, stride), convolution(n, n, 3, 1)
            self.passed = convolution(m, n, 1, stride) if stride == 2 else nn.Identity()

        def forward(self, x):
            return relu(self.passed(x) + self.second(relu(self.first(x))))

    blocks, m = [], s["first"]
    for stage in range(s["stages"]):
        n = s["first"] << stage
        blocks += [Block(m, n, 2 if stage else 1), Block(n, n, 1)]
        m = n
    return nn.Sequential(
        convolution(s["channels"], s["first"], 3, 1),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(m, s["classes"]),
    )


def unet(torch: Any, s: Sizes) -> Any:
    nn, levels = torch.nn, range(s["levels"])

    def double(m: int, n: int) -> Any:
        return nn.Sequential(nn.Conv2d(m, n, 3, padding=1), nn.ReLU(), nn.Conv2d(n, n, 3, padding=1), nn.ReLU())

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [s["first"] << level for level in range(s["levels"] + 1)]
            self.down = nn.ModuleList([double(m, n) for m, n in zip([s["channels"], *widths], widths)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(widths[i + 1], widths[i], 2, 2) for i in levels])
            self.merged = nn.ModuleList([double(2 * widths[i], widths[i]) for i in levels])
            self.head = nn.Conv2d(s["first"], s["classes"], 1)

        def forward(self, x):
            passed = []
            for level in levels:
                x = self.down[level](x)
                passed.append(x)
                x = nn.functional.max_pool2d(x, 2)
            x = self.down[-1](x)
            for level in reversed(levels):
                x = self.merged[level](torch.cat([passed[level], self.up[level](x)], 1))
            return self.head(x)

    return Model()


def gpt(torch: Any, s: Sizes) -> Any:
    nn, width = torch.nn, s["width"]

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = attention(torch, width, s["heads"], causal=True)
            self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])

        def forward(self, x):
            x = x + self.attention(self.norms[0](x))
            return x + self.perceptron(self.norms[1](x))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(s["classes"], width)
            self.positions = nn.Parameter(0.05 * torch.randn(s["steps"], width))
            self.layers = nn.ModuleList([Layer() for _ in range(s["layers"])])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, s["classes"], bias=False)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.positions
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x)).flatten(0, 1)

    return Model()


def dlrm(torch: Any, s: Sizes) -> Any:
    nn, n = torch.nn, s["categories"] + 1
    pairs = torch.tensor([i * n + j for i in range(n) for j in range(i)])

    def perceptron(*widths: int) -> Any:
        layers = [part for m, n in itertools.pairwise(widths) for part in (nn.Linear(m, n), nn.ReLU())]
        return nn.Sequential(*layers)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            hidden, width = s["hidden"], s["width"]
            self.table = nn.Embedding(s["rows"], width, sparse=True)
            self.bottom = perceptron(s["features"], hidden, hidden // 2, width)
            self.top = nn.Sequential(perceptron(width + len(pairs), hidden, hidden // 2), nn.Linear(hidden // 2, 1))

        def forward(self, numbers, rows):
            bottom = self.bottom(numbers)
            vectors = torch.cat([bottom[:, None], self.table(rows)], 1)
            products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)[:, pairs]
            return self.top(torch.cat([bottom, products], 1))

    return Model()


def vae(torch: Any, s: Sizes) -> Any:
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Linear(s["features"], s["hidden"])
            self.mean, self.log_variance = (nn.Linear(s["hidden"], s["latent"]) for _ in range(2))
            self.decoder, self.head = nn.Linear(s["latent"], s["hidden"]), nn.Linear(s["hidden"], s["features"])

        def forward(self, x):
            h = torch.relu(self.encoder(x))
            mean, log_variance = self.mean(h), self.log_variance(h)
            divergence = 0.5 * (log_variance.exp() + mean**2 - 1.0 - log_variance).sum(-1).mean() / s["features"]
            z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
            return self.head(torch.relu(self.decoder(z))), divergence

    return Model()


MODELS: dict[str, Callable[[Any, Sizes], Any]] = {
    "mlp": mlp,
    "cnn": cnn,
    "lstm": lstm,
    "encoder": encoder,
    "resnet18": resnet18,
    "unet": unet,
    "gpt": gpt,
    "dlrm": dlrm,
    "vae": vae,
}
