"""Record fused operators of onnxruntime: `python tests/frontends/record_contrib_operators.py`.

Needs onnxruntime. Writes contrib_operators.npz: for each row its inputs and results. The rows, `ROWS`, are read by
test_onnx_contrib.py, too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import helper

FILE = Path(__file__).parent / "contrib_operators.npz"
RNG = np.random.default_rng(0)


def f(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def i(*values):
    return np.array(values, np.int32)


def u8(*shape):
    return RNG.integers(0, 100, shape).astype(np.uint8)


ANGLES = np.outer(np.arange(16), 1e4 ** -(np.arange(4) / 4)).astype(np.float32)
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)
TURNS = np.tile(COS, 2), np.tile(SIN, 2)
MASK = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], np.int32)
X, W, B = f(2, 5, 16), f(16, 48) * np.float32(0.3), f(48)
Q, K, V = f(2, 5, 16), f(2, 7, 16), f(2, 7, 16)
HEADS = {"num_heads": 4}
GROUPS = {"num_heads": 4, "kv_num_heads": 2}
NEW = (f(2, 1, 32), f(2, 1, 16), f(2, 1, 16))

# name: operator, inputs (None for an absent one), number of results, attributes
ROWS = {
    "attention": ("Attention", [X, W, B], 1, HEADS),
    "attention_mask": ("Attention", [X, W, B, MASK], 1, HEADS),
    "attention_lengths": ("Attention", [X, W, B, i(4, 3)], 1, HEADS),
    "attention_causal_past": ("Attention", [X, W, B, None, f(2, 2, 4, 3, 4)], 2, HEADS | {"unidirectional": 1}),
    "attention_added": ("Attention", [X, W, B, None, None, f(2, 4, 5, 5)], 1, HEADS | {"scale": 0.2}),
    "attention_sizes": ("Attention", [X, f(16, 24), f(24)], 1, {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 8]}),
    "heads": ("MultiHeadAttention", [Q, K, V], 1, HEADS),
    "heads_bias": ("MultiHeadAttention", [Q, K, V, f(48)], 1, HEADS),
    "heads_padding": ("MultiHeadAttention", [Q, Q, X, None, MASK], 1, HEADS),
    "heads_added": ("MultiHeadAttention", [Q, K, V, None, None, f(1, 4, 5, 7)], 1, HEADS),
    "heads_past": ("MultiHeadAttention", [Q, Q, X, None, None, None, f(2, 4, 3, 4), f(2, 4, 3, 4)], 3, HEADS),
    "heads_of_another": ("MultiHeadAttention", [Q, f(2, 4, 7, 4), f(2, 4, 7, 4)], 1, HEADS),
    "heads_causal": ("MultiHeadAttention", [Q, Q, X], 1, HEADS | {"unidirectional": 1}),
    "groups_prompt": (
        "GroupQueryAttention",
        [f(2, 5, 32), f(2, 5, 16), f(2, 5, 16), None, None, i(4, 4), i(5)],
        3,
        GROUPS,
    ),
    "groups_step": ("GroupQueryAttention", [*NEW, f(2, 2, 6, 8), f(2, 2, 6, 8), i(6, 6), i(7)], 3, GROUPS),
    "groups_uneven": ("GroupQueryAttention", [*NEW, f(2, 2, 6, 8), f(2, 2, 6, 8), i(6, 4), i(7)], 3, GROUPS),
    "groups_rotary": (
        "GroupQueryAttention",
        [f(2, 1, 64), f(2, 1, 32), f(2, 1, 32), f(2, 2, 6, 16), f(2, 2, 6, 16), i(6, 6), i(7), *TURNS],
        3,
        GROUPS | {"do_rotary": 1},
    ),
    "groups_window": (
        "GroupQueryAttention",
        [f(1, 6, 32), f(1, 6, 16), f(1, 6, 16), None, None, i(5), i(6)],
        1,
        GROUPS | {"local_window_size": 3},
    ),
    "rotary": ("RotaryEmbedding", [f(2, 3, 16), np.int64([[0, 1, 2], [4, 5, 6]]), COS, SIN], 1, {}),
    "rotary_offset": ("RotaryEmbedding", [f(2, 2, 3, 8), np.int64([5]), COS, SIN], 1, {"interleaved": 1}),
    "embed": (
        "EmbedLayerNormalization",
        [i([1, 2, 0], [3, 3, 1]), i([0, 0, 1], [1, 1, 0]), f(5, 8), f(4, 8), f(2, 8), f(8), f(8), MASK[:, 1:4]],
        2,
        {},
    ),
    "skip": ("SkipLayerNormalization", [X, Q, f(16), f(16), f(16)], 1, {"epsilon": 1e-5}),
    "fast_gelu": ("FastGelu", [X, f(16)], 1, {}),
    "bias_gelu": ("BiasGelu", [X, f(16)], 1, {}),
    "fused_matmul": ("FusedMatMul", [f(2, 3, 4), f(2, 5, 4)], 1, {"alpha": 0.5, "transB": 1}),
    "fused_conv": ("FusedConv", [f(1, 3, 6, 6), f(4, 3, 3, 3), f(4)], 1, {"activation": "Relu"}),
    "fused_gemm": ("FusedGemm", [f(3, 4), f(4, 5), f(5)], 1, {"activation": "LeakyRelu", "activation_alpha": 0.2}),
    "matmul_to_float": (
        "MatMulIntegerToFloat",
        [u8(3, 8), u8(8, 4), np.float32(0.1), np.float32(0.05), np.uint8(7), np.uint8(50)],
        1,
        {},
    ),
    "dynamic_matmul": ("DynamicQuantizeMatMul", [f(3, 8), u8(8, 4), np.float32([0.05]), np.uint8([50])], 1, {}),
    "quantized_attention": (
        "QAttention",
        [u8(2, 5, 16), u8(16, 48), f(48), np.float32(0.02), np.float32(0.01), None, np.uint8(50), np.uint8(50)],
        1,
        HEADS,
    ),
}


def model_of(name):
    """Return the model of a row, and its inputs by name."""
    operator, inputs, count, attributes = ROWS[name]
    feeds = {f"x{n}": np.asarray(x) for n, x in enumerate(inputs) if x is not None}
    names = [f"x{n}" if x is not None else "" for n, x in enumerate(inputs)]
    outputs = [f"y{n}" for n in range(count)]
    node = helper.make_node(operator, names, outputs, domain="com.microsoft", **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()
    ]
    results = [
        helper.make_tensor_value_info(n, 6 if operator.startswith("Embed") and n == "y1" else 1, None) for n in outputs
    ]
    graph = helper.make_graph([node], name, infos, results)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = 9
    return model, feeds


def main():
    """Write the file."""
    import onnxruntime

    arrays = {}
    for name in ROWS:
        model, feeds = model_of(name)
        try:
            results = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
        except Exception as error:
            print(name, str(error)[:300])
            continue
        if name == "groups_uneven":  # rows of the cache behind the shorter sequence are anything
            results = results[:1]
        arrays |= {f"{name}.{n}": y for n, y in enumerate(results)}
    np.savez_compressed(FILE, **arrays)


if __name__ == "__main__":
    main()
