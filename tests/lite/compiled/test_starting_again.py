"""A model answers the same in every process: with no cache, a warm one and a damaged one, by path and by bytes.

What is kept of a model names its tensors, so models whose inputs and outputs are of every kind are opened here: not
read, not written, constant, the same twice, empty, of rank 0. The official interpreter says what the small ones answer.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import startup_process
from ai_edge_litert.interpreter import Interpreter as Official
from lite_kit import Build
from test_compiled_corpus import CHAOTIC, FILES

from opwright.compiler.cache import SUFFIX
from opwright.lite.format import Model, objects, versions
from thorough import THOROUGH

C = np.float32([[1, -2, 3]])


def build() -> Build:
    return Build().tensor("x", (2, 3)).tensor("y", (2, 3)).tensor("z", (2, 3)).tensor("unused", (4,))


def body(b: Build) -> Build:
    return b.op("TANH", "x", "h").op("EXP", "h", "y")


def with_variable() -> bytes:
    eye = np.eye(3, dtype=np.float32)
    b = build().tensor("w", (3, 3), data=eye).tensor("r", (3, 3), data=eye)
    b.tensor("b", (3,), data=np.zeros(3, np.float32)).tensor("state", (2, 3), is_variable=True)
    return b.op("RNN", "x w r b state", "y", fused_activation_function="TANH").done("x unused", "y")


def two_signatures() -> bytes:
    model = Model.read(body(build()).op("NEG", "y", "z").done("x unused", "y z", "first"))
    (first,) = model.signature_defs
    model.signature_defs.append(
        objects.SignatureDef(
            signature_key="second", subgraph_index=0, inputs=first.inputs[:1], outputs=first.outputs[1:]
        )
    )
    return model.to_bytes()


def two_subgraphs() -> bytes:
    b = body(build()).ends("x unused", "y")
    return b.subgraph("other").tensor("a", (3,)).tensor("b", (3,)).op("NEG", "a", "b").done("a", "b")


def branches() -> bytes:
    b = build().tensor("c", (), "BOOL").node("IF", "c x", "y", then_subgraph_index=1, else_subgraph_index=2)
    b.ends("x unused c", "y")
    for name in ("NEG", "EXP"):
        b.subgraph(name).tensor("a", (2, 3)).tensor("b", (2, 3)).op(name, "a", "b").ends("a", "b")
    return b.done(None)


def nodes_left_over() -> bytes:
    """Of float64, which has no kernels, between others; two of those have nothing to do with each other."""
    b = build().tensor("d", (2, 3), "FLOAT64").tensor("h", (2, 3)).tensor("i", (2, 3))
    b.op("TANH", "x", "h").op("CAST", "h", "d", in_data_type="FLOAT32", out_data_type="FLOAT64")
    b.op("CAST", "d", "i", in_data_type="FLOAT64", out_data_type="FLOAT32")
    return b.op("ADD", "i h", "y").op("EXP", "x", "z").done("x unused", "y z")


def settled_for_a_node_left_over() -> bytes:
    """Shapes, of a tensor inside of a plan, that a node without a kernel reads."""
    b = build().tensor("h", (2, 3)).op("TANH", "x", "h").tensor("e", (2, 3)).op("EXP", "h", "e")
    b.tensor("sizes", (2,), "INT32").op("SHAPE", "h", "sizes", out_type="INT32")
    b.tensor("n", type="INT32", data=np.int32([1])).tensor("twice", (2,), "INT32").op("ADD", "sizes n", "twice")
    b.tensor("u", (2,), "INT32").tensor("k", (2,), "INT32").op("UNIQUE", "twice", "u k", idx_out_type="INT32")
    return b.tensor("y", (2, 3)).op("NEG", "e", "y").done("x unused", "y u k")


def variables() -> bytes:
    """A variable that another subgraph initializes, and a counter."""
    b = build().tensor("r", (2, 3)).tensor("v", (), "RESOURCE")
    once, names = objects.CallOnceOptions(init_subgraph_index=1), objects.VarHandleOptions(shared_name="v")
    b.operator(versions.operator_code("CALL_ONCE"), "", "", builtin_options=once)
    b.operator(versions.operator_code("VAR_HANDLE"), "", "v", builtin_options=names)
    b.op("READ_VARIABLE", "v", "r").op("ADD", "r x", "y").op("ASSIGN_VARIABLE", "v y").ends("x unused", "y")
    b.subgraph("init").tensor("v", (), "RESOURCE").tensor("c", data=np.float32([[1, 2, 3]] * 2))
    b.operator(versions.operator_code("VAR_HANDLE"), "", "v", builtin_options=names)
    return b.op("ASSIGN_VARIABLE", "v c").ends().done(None)


def quantized(**of_unused: Any) -> bytes:
    q = objects.QuantizationParameters(scale=np.float32([0.5]), zero_point=np.int64([3]))
    b = Build().tensor("x", (4,), "INT8", quantization=q).tensor("y", (4,), "INT8", quantization=q)
    return b.tensor("unused", (4,), "INT8", quantization=q).op("RELU", "x", "y").done("x unused", "y x")


MODELS: dict[str, Callable[[], bytes]] = {
    "an input that no node reads": lambda: body(build()).done("x unused", "y"),
    "the first of three inputs": lambda: body(build()).done("unused x z", "y"),
    "an output that is an input": lambda: body(build()).done("x", "y x"),
    "outputs that are unused inputs": lambda: body(build()).done("x unused", "unused y unused"),
    "an output that is a constant": lambda: body(build().tensor("c", data=C)).done("x", "c y"),
    "an output twice": lambda: body(build()).done("x", "y y"),
    "an output that nodes read": lambda: body(build()).op("NEG", "y", "z").done("x", "z y"),
    "an output that follows from shapes": lambda: (
        body(build()).tensor("s", (2,), "INT32").op("SHAPE", "x", "s", out_type="INT32").done("x", "y s")
    ),
    "all outputs follow from shapes": lambda: (
        build().tensor("s", (2,), "INT32").op("SHAPE", "x", "s", out_type="INT32").done("x unused", "s")
    ),
    "a result that nobody reads": lambda: body(build()).op("NEG", "x", "z").done("x", "y"),
    "no node": lambda: build().done("x", "x"),
    "no node, a constant": lambda: build().tensor("c", data=C).done("x", "c"),
    "rank 0": lambda: Build().tensor("x", ()).tensor("u", ()).tensor("y", ()).op("EXP", "x", "y").done("x u", "y"),
    "no elements": lambda: Build().tensor("x", (0, 3)).tensor("y", (0, 3)).op("EXP", "x", "y").done(),
    "an unused input without elements": lambda: body(build().tensor("e", (0, 3))).done("e x", "y e"),
    "an output without elements": lambda: (
        body(build().tensor("e", (0, 3)).tensor("f", (0, 3))).op("NEG", "e", "f").done("x e", "f y")
    ),
    "a view of an input": lambda: (
        build()
        .tensor("v", (6,))
        .tensor("to", type="INT32", data=np.int32([6]))
        .op("RESHAPE", "x to", "v")
        .done("x unused", "v")
    ),
    "unused text": lambda: body(build().tensor("t", (2,), "STRING")).done("x t", "y"),
    "unused numbers of other types": lambda: body(
        build().tensor("i", (2,), "INT64").tensor("b", (3,), "BOOL").tensor("u", (1,), "UINT8")
    ).done("i x b u", "y"),
    "unused constants": lambda: body(build().tensor("c", data=C)).done("x", "y"),
    "a constant in place": lambda: build().tensor("c", data=C).op("ADD", "x c", "y").done("x unused", "y"),
    "sizes that are not known": lambda: (
        Build()
        .tensor("x", (1, 3), shape_signature=[-1, 3])
        .tensor("y", (1, 3), shape_signature=[-1, 3])
        .tensor("u", (1,), shape_signature=[-1])
        .op("EXP", "x", "y")
        .done("u x", "y")
    ),
    "quantised": quantized,
    "state": with_variable,
    "two signatures of a subgraph": two_signatures,
    "two subgraphs": two_subgraphs,
    "branches": branches,
    "nodes left over": nodes_left_over,
    "settled for a node left over": settled_for_a_node_left_over,
    "variables": variables,
}
OFFICIAL_REFUSES = {"two signatures of a subgraph"}
QUICK_FILES = ("if_else", "dynamic_shapes")


def write(folder: Path) -> list[Path]:
    paths = []
    for name, make in MODELS.items():
        paths.append(folder / f"{name}.tflite")
        paths[-1].write_bytes(make())
    return paths


class Processes:
    """Processes that open the same models with the same cache."""

    def __init__(self, folder: Path, models: list[Path]) -> None:
        self.folder, self.cache = folder, folder / "cache"
        (folder / "models.json").write_text(json.dumps([str(m) for m in models]))

    def run(self) -> dict[str, Any]:
        switches = {"CACHE_DIR": str(self.cache), "COMPILED": "1", "BACKGROUND": "0"}
        environ = os.environ | {f"OPWRIGHT_{name}": value for name, value in switches.items()}
        files = self.folder / "models.json", self.folder / "answers.pkl"
        done = subprocess.run(
            [sys.executable, startup_process.__file__, *files], env=environ, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = pickle.loads((self.folder / "answers.pkl").read_bytes())
        return result

    def damage(self, turn: int) -> None:
        """Change every file of the cache, each in another way than its neighbours and than in other turns."""
        files = sorted(p for p in self.cache.rglob("*") if p.is_file())
        contents = [p.read_bytes() for p in files]
        for i, (file, content) in enumerate(zip(files, contents)):
            ways = (
                content[: len(content) // 2],
                content[:-1],
                b"",
                content + b"\0",
                contents[i - 1],
                content[: len(content) // 3] + bytes(1 + len(content) - len(content) // 3),
                *(_flipped(content, part) for part in (0.02, 0.5, 0.98)),
            )
            file.write_bytes(ways[(i + turn) % len(ways)])


def _flipped(content: bytes, part: float) -> bytes:
    at = int(len(content) * part)
    return content[:at] + bytes(b ^ 16 for b in content[at : at + 1]) + content[at + 1 :]


def check(processes: Processes, damaged: int) -> dict[str, Any]:
    """The first process's answers, which later ones give, too."""
    first = processes.run()
    for model, answer in first.items():
        assert same(answer["path"], answer["bytes"]), f"{model}: by path and by bytes"
    last: dict[str, Any] = {}
    warm = ["warm"] if THOROUGH else []  # as it is again once mended
    for kind in (*warm, *(f"damaged {i}" for i in range(damaged)), "mended"):
        if kind.startswith("damaged"):
            processes.damage(int(kind.split()[1]))
        last = processes.run()
        for model, answer in last.items():
            for way in ("path", "bytes"):
                assert same(answer[way], first[model][way]), f"{model}: {kind}, by {way}: {answer[way]}"
    assert any(answer.get("path, shortcut") for answer in last.values())
    assert list((processes.cache / "kernels").glob(f"*{SUFFIX}"))
    return first


def same(one: Any, other: Any) -> bool:
    """Whether answers are equal to the bit; of errors, the text."""
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return one[0] == other[0] and [*map(_bits, one[1])] == [*map(_bits, other[1])]


def _bits(a: np.ndarray) -> Any:
    return a.shape, a.dtype, a.tolist() if a.dtype == object else a.tobytes()


def test_small_models_answer_the_same_in_every_process(tmp_path: Path) -> None:
    models = write(tmp_path)[:: 1 if THOROUGH else 12]
    actual = check(Processes(tmp_path, [*models, *(p for p in FILES if p.stem in QUICK_FILES)]), damaged=1)
    for path in models:
        if path.stem in OFFICIAL_REFUSES:
            continue
        answer = actual[str(path)]["path"]
        assert not isinstance(answer, str), f"{path.stem}: {answer}"
        official = Official(str(path))
        details, expected = startup_process.answers(official)
        assert len(answer[0]) == len(details)
        for a, b in zip(answer[1], expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=path.stem) if a.dtype != object else None


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_file_answers_the_same_in_every_process(tmp_path: Path) -> None:
    models = [p for p in FILES if not any(word in p.stem for word in CHAOTIC)]
    check(Processes(tmp_path, [*write(tmp_path), *models]), damaged=3)
