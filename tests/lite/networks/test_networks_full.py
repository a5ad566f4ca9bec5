"""Ten full-size networks give the answers of the official reference kernels, float and quantised.

OPWRIGHT_PEER_TENSORFLOW names a Python that has TensorFlow and tf_keras: its converter makes them (full_networks.py),
into OPWRIGHT_PEER_NETWORKS if that names a folder, where they stay. Without it the same ten are ours, small, by our
converter.

Not here: many small networks (test_networks_float.py, test_networks_quantised.py, test_networks_official.py).
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from networks_harness import DEEP, content_of, lite, scales

from opwright.core import flags

OURS = {
    "mobilenet_v1": "mobilenet_v1",
    "mobilenet_v2": "mobilenet_v2",
    "mobilenet_v3": "mobilenet_v3",
    "efficientnet": "efficientnet",
    "resnet50": "resnet",
    "densenet": "densenet",
    "inception": "inception",
    "unet": "unet",
    "lstm_text": "lstm_text",
    "transformer": "transformer",
}
CLOSE = {"float": 2e-5, "dynamic": 5e-2, "int8": 0.0}
"""Greatest difference by kind, of the greatest output: files that round rows of floats to integers meet halves. Those
of int8 agree between reference kernels; compiled kernels differ by steps."""


pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]  # TensorFlow takes half an hour to make the files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """Where TensorFlow's files are; None without TensorFlow."""
    python = os.environ.get("OPWRIGHT_PEER_TENSORFLOW")
    if not python:
        return None
    result = Path(os.environ.get("OPWRIGHT_PEER_NETWORKS") or tmp_path_factory.mktemp("networks"))
    subprocess.run([python, str(Path(__file__).with_name("full_networks.py")), str(result)], check=True)
    return result


def run(interpreter: Any) -> list[np.ndarray]:
    """Outputs of two runs on inputs drawn from a fixed seed."""
    interpreter.allocate_tensors()
    rng, result = np.random.default_rng(0), []
    for _ in range(2):
        for detail in interpreter.get_input_details():
            words = np.issubdtype(detail["dtype"], np.integer)
            drawn = rng.integers(0, 16, detail["shape"]) if words else rng.uniform(-1, 1, detail["shape"])
            interpreter.set_tensor(detail["index"], drawn.astype(detail["dtype"]))
        interpreter.invoke()
        result += [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]
    return result


def _answer(content: bytes, kernels: str, pipe: Any) -> None:
    pipe.send(run(Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType[kernels])))


def official(content: bytes) -> tuple[str, list[np.ndarray]]:
    """Which kernels answered, and what: the reference ones crash the process on some files, the optimised do not."""
    for kernels in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
        here, there = multiprocessing.get_context("fork").Pipe()
        child = multiprocessing.get_context("fork").Process(target=_answer, args=(content, kernels, there))
        child.start()
        there.close()
        try:
            return kernels, here.recv()
        except EOFError:
            continue
        finally:
            child.join()
    raise AssertionError("the official interpreter does not run the file")


@pytest.mark.skipif(sys.platform == "win32", reason="the official answers come from a forked process")
@pytest.mark.parametrize("kind", CLOSE)
@pytest.mark.parametrize("name", OURS)
def test_full_network(name: str, kind: str, folder: Path | None) -> None:
    content = content_of(OURS[name], kind) if folder is None else (folder / f"{name}_{kind}.tflite").read_bytes()
    kernels, expected = official(content)
    for compiled in (False, True):
        with flags.override(compiled=compiled, background=False):
            actual = run(lite.Interpreter(model_content=content))
        steps = scales(content) * 2 if compiled and kind == "int8" else [0.0] * len(actual)  # of two runs
        for a, b, step in zip(expected, actual, steps, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            limit = max(CLOSE[kind], 0.0 if kernels == "BUILTIN_REF" else 2e-2)
            assert np.abs(a - b.astype(np.float64)).max() <= limit * np.abs(a).max() + DEEP * step + 1e-7
