"""Models for pictures: a transformer of any number of layers, names that attack a page, loops.

Not here: what is checked of their pages (test_view*.py).
"""

import numpy as np
from lite_kit import Build

from opwright.lite.format import versions

HOSTILE = (
    "<script>document.title='owned'</script>/<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "\" onload=\"document.title='owned'",
    "javascript:document.title='owned'",
    "<svg/onload=document.title='owned'>",
    "]]><!--<script>",
    "__proto__/constructor/prototype",
    "\x00\x1b]0;owned\x07\u202eowned",
    "a/" * 5000,
    "x" * 2_000_000,
)


class _Shared(Build):
    """One operator code for all nodes of an operator."""

    def op(self, name, inputs="", outputs="", version=1, **options):
        codes = self.model.operator_codes
        names = [versions.op_name(code) for code in codes]
        super().op(name, inputs, outputs, version, **options)
        if name in names:
            codes.pop()
            self.main.operators[-1].opcode_index = names.index(name)
        return self


def transformer(layers):
    """Return a model of 20 nodes a layer, in scopes, whose weights are shared by the layers."""
    b = _Shared().tensor("x", (1, 8, 16))
    b.tensor("w", data=np.zeros((16, 16), np.float32)).tensor("one", data=np.ones(16, np.float32))
    b.tensor("perm", data=np.int32([0, 2, 1]))
    last = "x"
    for i in range(layers):
        s = f"model/layer_{i}"

        def node(op, inputs, name, shape=(1, 8, 16), s=s, **options):
            b.tensor(f"{s}/{name}", shape).op(op, inputs, f"{s}/{name}", **options)
            return f"{s}/{name}"

        n = node("MUL", f"{last} one", "norm/mul")
        n = node("ADD", f"{n} one", "norm/add")
        q, k, v = (node("FULLY_CONNECTED", f"{n} w _", f"attention/{c}", keep_num_dims=True) for c in "qkv")
        k = node("TRANSPOSE", f"{k} perm", "attention/transpose", (1, 16, 8))
        s_ = node("BATCH_MATMUL", f"{q} {k}", "attention/scores", (1, 8, 8))
        s_ = node("SOFTMAX", s_, "attention/softmax", (1, 8, 8), beta=1.0)
        o = node("BATCH_MATMUL", f"{s_} {v}", "attention/context")
        o = node("FULLY_CONNECTED", f"{o} w _", "attention/out", keep_num_dims=True)
        r = node("ADD", f"{last} {o}", "residual")
        m = node("MUL", f"{r} one", "mlp/norm/mul")
        m = node("ADD", f"{m} one", "mlp/norm/add")
        g = node("FULLY_CONNECTED", f"{m} w _", "mlp/gate", keep_num_dims=True)
        u = node("FULLY_CONNECTED", f"{m} w _", "mlp/up", keep_num_dims=True)
        a = node("LOGISTIC", g, "mlp/sigmoid")
        a = node("MUL", f"{a} {g}", "mlp/silu")
        a = node("MUL", f"{a} {u}", "mlp/product")
        d = node("FULLY_CONNECTED", f"{a} w _", "mlp/down", keep_num_dims=True)
        last = node("ADD", f"{r} {d}", "out")
    return b.done("x", last)


def wide(count):
    """Return a model of `count` nodes without scopes: a grid of 50 columns, whose cells read their neighbours."""
    b = _Shared().tensor("x", (4,))
    above = ["x"] * 50
    for row in range(count // 50):
        names = [f"n{row}_{i}" for i in range(50)]
        for i, name in enumerate(names):
            b.tensor(name, (4,)).op("ADD", f"{above[i]} {above[(i + row) % 50]}", name)
        above = names
    return b.done("x", above[0])


def runnable_hostile():
    """Return the bytes of a model of builtin operators whose names attack."""
    return _attacking().done("x", str(len(HOSTILE) - 1), signature=HOSTILE[3])


def hostile():
    """Return a model whose tensors, subgraph, signature and custom operator have names that attack."""
    b = _attacking()
    b.tensor("custom", (4,)).custom(HOSTILE[1], str(len(HOSTILE) - 1), "custom", text=HOSTILE[2])
    return b.done("x", "custom", signature=HOSTILE[3])


def _attacking():
    b = _Shared(HOSTILE[0]).tensor("x", (4,))
    last = "x"
    for i, name in enumerate(HOSTILE):
        b.tensor(str(i), (4,)).op("RELU", last, str(i))
        b.main.tensors[-1].name = name
        last = str(i)
    return b
