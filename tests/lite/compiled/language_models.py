"""Decoder-only language models as files: signatures `prefill` and `decode` over caches of keys and values.

Lives here: `LanguageModel`, its file and its meaning in float64.
Not here: the tests (test_language_models.py), the rows of benchmarks that run larger ones (benchmarks/language.py).

The operators are those of litert-torch's generative models: FULLY_CONNECTED with float32 weights, int8 ones with a
scale for each channel, or int4 ones with a float16 scale for each block; DYNAMIC_UPDATE_SLICE; the composites
odml.rms_norm and odml.scaled_dot_product_attention. Their rotations of queries and keys are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from subgraph_models import Part, Parts

from opwright.lite.format import objects, schema
from opwright.lite.format.flexbuffers import encode_options

EPSILON = 1e-6
BLOCK = 32
KINDS = ("float32", "int8", "int4")


class LanguageModel:
    """Random weights of a model. kind: of its products; tokens: that `prefill` reads; entries: of a cache."""

    def __init__(
        self,
        kind: str,
        layers: int = 2,
        size: int = 64,
        inner: int = 160,
        heads: int = 4,
        groups: int = 2,
        vocabulary: int = 96,
        tokens: int = 12,
        entries: int = 40,
    ) -> None:
        self.kind, self.layers, self.size, self.heads, self.groups = kind, layers, size, heads, groups
        self.tokens, self.entries, self.vocabulary, self.head = tokens, entries, vocabulary, size // heads
        self.rng = np.random.default_rng(7)
        self.stored_bytes = self.product_weights = 0  # of all products by weights
        self.weights: dict[str, Any] = {}  # name: what the products' weights stand for
        self._buffers: dict[str, tuple[int, int]] = {}  # name: of the weights, and of scales by block
        self._scales: dict[str, np.ndarray] = {}
        self.parts = Parts()
        kv = groups * self.head
        for i in range(layers):
            for name, shape in (
                ("q", (size, size)),
                ("k", (kv, size)),
                ("v", (kv, size)),
                ("o", (size, size)),
                ("gate", (inner, size)),
                ("up", (inner, size)),
                ("down", (size, inner)),
            ):
                self._draw(f"{name}{i}", shape)
        self._draw("logits", (vocabulary, size))
        table = self.rng.standard_normal((vocabulary, size), np.float32)
        self.weights["table"] = table
        self._buffers["table"] = self._buffer(table), 0
        self.weights["norm"] = self.rng.uniform(0.5, 1.5, size).astype(np.float32)
        self._buffers["norm"] = self._buffer(self.weights["norm"]), 0

    def _buffer(self, array: np.ndarray) -> int:
        self.parts.model.buffers.append(objects.Buffer(data=np.ascontiguousarray(array).view(np.uint8).reshape(-1)))
        return len(self.parts.model.buffers) - 1

    def _draw(self, name: str, shape: tuple[int, int]) -> None:
        """Draw the weights of a product; store them, and keep what they stand for."""
        self.product_weights += shape[0] * shape[1]
        w = self.rng.standard_normal(shape, np.float32) * np.float32(shape[1] ** -0.5)
        if self.kind == "float32":
            self.weights[name], self._buffers[name] = w, (self._buffer(w), 0)
            self.stored_bytes += w.nbytes
            return
        if self.kind == "int8":
            scales = np.abs(w).max(1, keepdims=True) / np.float32(127)
            q = np.rint(w / scales).astype(np.int8)
            self._buffers[name] = self._buffer(q), 0
            self.stored_bytes += q.nbytes
        else:
            blocks = w.reshape(shape[0], -1, BLOCK)
            scales = (np.abs(blocks).max(2) / 7).astype(np.float16)
            wide = scales.astype(np.float32)[..., None]
            q = np.clip(np.rint(blocks / wide), -8, 7).astype(np.int8).reshape(shape)
            pairs = q.view(np.uint8).reshape(-1, 2) & 15
            self._buffers[name] = self._buffer(pairs[:, 0] | pairs[:, 1] << 4), self._buffer(scales)
            self.stored_bytes += q.nbytes // 2 + scales.nbytes
            scales = wide
        self._scales[name] = scales
        self.weights[name] = (q.reshape(*scales.shape[:-1], -1) * scales).reshape(shape)

    # ---- the file --------------------------------------------------------------------------------------------------

    def content(self, main: str = "prefill") -> bytes:
        """The file; main: the signature of the first subgraph. It is written once."""
        parts = self.parts
        sizes = {"prefill": self.tokens, "decode": 1}
        sizes = {main: sizes[main], **sizes}
        mains = {key: parts.part(key, tokens=((1, n), "INT32"), position=((n,), "INT32")) for key, n in sizes.items()}
        for key, n in sizes.items():
            norm, attention = len(parts.model.subgraphs), len(parts.model.subgraphs) + 1
            self._norm(n)
            self._attention(n)
            self._signature(key, mains[key], n, norm, attention)
        return parts.bytes()

    def _constant(self, part: Part, value: Any) -> str:
        array = np.asarray(value)
        name = f"constant{len(part.main.tensors)}"
        part.tensor(name, array.shape, "INT32" if array.dtype.kind == "i" else "FLOAT32", data=array)
        return name

    def _op(self, part: Part, name: str, inputs: str, shape: tuple[int, ...], version: int = 1, **options: Any) -> str:
        result = f"t{len(part.main.tensors)}"
        part.tensor(result, shape).op(name, inputs, result, version, **options)
        return result

    def _weights(self, part: Part, name: str) -> str:
        """The tensor of weights in a subgraph, whose buffers all subgraphs share."""
        kind = "float32" if name in ("table", "norm") else self.kind
        (buffer, scale_buffer), shape, fields = self._buffers[name], list(self.weights[name].shape), {}
        if kind == "int8":
            scales = self._scales[name].reshape(-1)
            fields["quantization"] = objects.QuantizationParameters(
                scale=scales, zero_point=np.zeros(len(scales), np.int64), quantized_dimension=0
            )
        elif kind == "int4":
            scale_shape = list(self._scales[name].shape[:2])
            part.names[f"{name} scales"] = len(part.main.tensors)
            part.main.tensors.append(
                objects.Tensor(
                    shape=scale_shape, type=schema.TensorType.FLOAT16, name=f"{name} scales", buffer=scale_buffer
                )
            )
            details = objects.table_class("BlockwiseQuantization")(
                scales=part.names[f"{name} scales"], zero_points=-1, block_size=BLOCK
            )
            fields["quantization"] = objects.QuantizationParameters(details=details)
        part.names[name] = len(part.main.tensors)
        type_ = schema.TensorType[kind.upper()]
        part.main.tensors.append(objects.Tensor(shape=shape, type=type_, name=name, buffer=buffer, **fields))
        return name

    def _product(self, part: Part, x: str, name: str, n: int) -> str:
        shape = (1, n, len(self.weights[name]))
        return self._op(part, "FULLY_CONNECTED", f"{x} {self._weights(part, name)} _", shape, keep_num_dims=True)

    def _composite(
        self, part: Part, name: str, inputs: str, shape: tuple[int, ...], subgraph: int, **attributes: Any
    ) -> str:
        result = f"t{len(part.main.tensors)}"
        raw = np.frombuffer(encode_options(attributes), np.uint8)
        part.tensor(result, shape).run(
            "STABLEHLO_COMPOSITE",
            inputs,
            result,
            decomposition_subgraph_index=subgraph,
            name=name,
            composite_attributes=raw,
        )
        return result

    def _norm(self, n: int) -> None:
        shape = (1, n, self.size)
        part = self.parts.part(f"norm {n}", x=shape, w=(self.size,))
        mean = self._op(
            part,
            "MEAN",
            f"{self._op(part, 'MUL', 'x x', shape)} {self._constant(part, np.int32([2]))}",
            (1, n, 1),
            keep_dims=True,
        )
        root = self._op(part, "ADD", f"{mean} {self._constant(part, np.float32(EPSILON))}", (1, n, 1))
        factor = self._op(part, "RSQRT", root, (1, n, 1))
        part.ends("x w", self._op(part, "MUL", f"{self._op(part, 'MUL', f'x {factor}', shape)} w", shape))

    def _attention(self, n: int) -> None:
        heads, groups, head, entries = self.heads, self.groups, self.head, self.entries
        q, kv = (1, n, heads, head), (1, entries, groups, head)
        part = self.parts.part(f"attention {n}", q=q, k=kv, v=kv, mask=(1, 1, n, entries))
        order = self._constant(part, np.int32([0, 2, 1, 3]))
        turned = self._op(part, "TRANSPOSE", f"q {order}", (1, heads, n, head))
        rows = self._op(part, "MUL", f"{turned} {self._constant(part, np.float32(head**-0.5))}", (1, heads, n, head))
        wide = []
        for x in "kv":
            near = self._op(part, "TRANSPOSE", f"{x} {order}", (1, groups, entries, head))
            shape = (1, groups, 1, entries, head)
            split = self._op(part, "RESHAPE", f"{near} {self._constant(part, np.int32(shape))}", shape)
            shape = (1, groups, heads // groups, entries, head)
            repeated = self._op(part, "BROADCAST_TO", f"{split} {self._constant(part, np.int32(shape))}", shape, 2)
            shape = (1, heads, entries, head)
            wide.append(self._op(part, "RESHAPE", f"{repeated} {self._constant(part, np.int32(shape))}", shape))
        scores = (1, heads, n, entries)
        shown = self._op(
            part, "ADD", f"{self._op(part, 'BATCH_MATMUL', f'{rows} {wide[0]}', scores, adj_y=True)} mask", scores
        )
        shares = self._op(part, "SOFTMAX", shown, scores, beta=1.0)
        means = self._op(part, "BATCH_MATMUL", f"{shares} {wide[1]}", (1, heads, n, head))
        part.ends("q k v mask", self._op(part, "TRANSPOSE", f"{means} {order}", q))

    def _signature(self, key: str, part: Part, n: int, norm: int, attention: int) -> None:
        size, heads, groups, head = self.size, self.heads, self.groups, self.head
        part.tensor("mask", (1, 1, n, self.entries))
        cache = (1, self.entries, groups, head)
        for i in range(self.layers):
            part.tensor(f"keys_{i}", cache).tensor(f"values_{i}", cache)
        weight = self._weights(part, "norm")
        flat = "flat"
        part.tensor(flat, (n,), "INT32").op("RESHAPE", f"tokens {self._constant(part, np.int32([n]))}", flat)
        table = self._weights(part, "table")
        rows = self._op(part, "EMBEDDING_LOOKUP", f"{flat} {table}", (n, size))
        x = self._op(part, "RESHAPE", f"{rows} {self._constant(part, np.int32([1, n, size]))}", (1, n, size))
        zero, one, zeros = (self._constant(part, np.int32(value)) for value in ([0], [1], [0, 0]))
        part.tensor("first", (1,), "INT32").op("SLICE", f"position {zero} {one}", "first")
        part.tensor("place", (4,), "INT32").op("CONCATENATION", f"{zero} first {zeros}", "place", axis=0)
        stored = []
        for i in range(self.layers):
            normal = self._composite(part, "odml.rms_norm", f"{x} {weight}", (1, n, size), norm, epsilon=EPSILON)
            parts = []
            for name, count in (("q", heads), ("k", groups), ("v", groups)):
                shape = (1, n, count, head)
                y = self._product(part, normal, f"{name}{i}", n)
                parts.append(self._op(part, "RESHAPE", f"{y} {self._constant(part, np.int32(shape))}", shape))
            caches = [
                self._op(part, "DYNAMIC_UPDATE_SLICE", f"{name}_{i} {new} place", cache)
                for name, new in zip(("keys", "values"), parts[1:])
            ]
            stored += caches
            mean = self._composite(
                part,
                "odml.scaled_dot_product_attention",
                f"{parts[0]} {' '.join(caches)} mask",
                (1, n, heads, head),
                attention,
                scale=head**-0.5,
            )
            y = self._op(part, "RESHAPE", f"{mean} {self._constant(part, np.int32([1, n, size]))}", (1, n, size))
            x = self._op(part, "ADD", f"{x} {self._product(part, y, f'o{i}', n)}", (1, n, size))
            normal = self._composite(part, "odml.rms_norm", f"{x} {weight}", (1, n, size), norm, epsilon=EPSILON)
            gate = self._product(part, normal, f"gate{i}", n)
            inner = (1, n, len(self.weights[f"gate{i}"]))
            sigmoid = self._op(part, "LOGISTIC", gate, inner)
            silu = self._op(part, "MUL", f"{gate} {sigmoid}", inner)
            mixed = self._op(part, "MUL", f"{silu} {self._product(part, normal, f'up{i}', n)}", inner)
            x = self._op(part, "ADD", f"{x} {self._product(part, mixed, f'down{i}', n)}", (1, n, size))
        normal = self._composite(part, "odml.rms_norm", f"{x} {weight}", (1, n, size), norm, epsilon=EPSILON)
        logits = self._product(part, normal, "logits", n)
        names = [f"{kind}_{i}" for i in range(self.layers) for kind in ("keys", "values")]
        part.ends(f"tokens position mask {' '.join(names)}", f"{logits} {' '.join(stored)}")
        tensor = part.names.__getitem__
        entry = objects.TensorMap
        self.parts.model.signature_defs.append(
            objects.SignatureDef(
                signature_key=key,
                subgraph_index=self.parts.model.subgraphs.index(part.main),
                inputs=[entry(name=name, tensor_index=tensor(name)) for name in ("tokens", "position", "mask", *names)],
                outputs=[
                    entry(name=name, tensor_index=tensor(t)) for name, t in zip(("logits", *names), (logits, *stored))
                ],
            )
        )

    # ---- inputs, and the meaning -----------------------------------------------------------------------------------

    def caches(self) -> dict[str, np.ndarray]:
        """Empty caches, by the names of inputs and outputs."""
        shape = (1, self.entries, self.groups, self.head)
        return {f"{k}_{i}": np.zeros(shape, np.float32) for i in range(self.layers) for k in ("keys", "values")}

    def inputs(self, tokens: np.ndarray, first: int) -> dict[str, np.ndarray]:
        """The inputs, but for the caches, of tokens that stand at `first` and after it."""
        position = np.arange(first, first + len(tokens), dtype=np.int32)
        hidden = np.arange(self.entries) > position[:, None]
        mask = np.where(hidden, np.float32(-np.inf), np.float32(0))[None, None]
        return {"tokens": np.int32(tokens)[None], "position": position, "mask": mask}

    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """The logits of all tokens, in float64, from what the weights stand for."""
        w, norm, n = self.weights, self.weights["norm"], len(tokens)
        x = w["table"][tokens].astype(np.float64)

        def normal(x: np.ndarray) -> np.ndarray:
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * norm

        for i in range(self.layers):
            y = normal(x)
            q = (y @ w[f"q{i}"].T).reshape(n, self.heads, self.head)
            k, v = (
                np.repeat((y @ w[f"{name}{i}"].T).reshape(n, self.groups, self.head), self.heads // self.groups, 1)
                for name in "kv"
            )
            scores = np.einsum("qhd,khd->hqk", q, k) * self.head**-0.5
            scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            x = x + np.einsum("hqk,khd->qhd", shares, v).reshape(n, -1) @ w[f"o{i}"].T
            y = normal(x)
            gate = y @ w[f"gate{i}"].T
            x = x + (gate / (1 + np.exp(-gate)) * (y @ w[f"up{i}"].T)) @ w[f"down{i}"].T
        result: np.ndarray = normal(x) @ w["logits"].T
        return result
