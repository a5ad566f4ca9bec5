"""Running a network of the size phones run: rows of our side.

Lives here: writing the files (in a process of its own, for every side), memory and time of a run.
Not here: the network (networks.py), the official interpreter's side (peers/peer_litert.py).
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from benchmarks import measure


@functools.cache
def written(kind: str) -> str:
    """The path of MobileNetV2 as a .tflite file. kind: float, or int8 throughout."""
    path = os.path.join(tempfile.mkdtemp(prefix="opwright-bench-"), f"{kind}.tflite")
    command = [sys.executable, "-m", "benchmarks.running", kind, path]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError("the model could not be made, see the row convert_network")
    return path


def ready(make: Callable[[str], Any], kind: str) -> Any:
    """An interpreter that `make` makes of the file, with its input set."""
    import numpy as np

    interpreter = make(written(kind))
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()[0]
    image = np.random.default_rng(0).integers(-100, 100, details["shape"])
    interpreter.set_tensor(details["index"], image.astype(details["dtype"]))
    return interpreter


def network_memory(make: Callable[[str], Any], kind: str) -> float:
    """Peak of opening the file, allocating and two runs, above what the process had after it did the same before."""

    def whole() -> None:
        interpreter = ready(make, kind)
        interpreter.invoke()
        interpreter.invoke()

    whole()
    return measure.peak_bytes(whole)


def runs(make: Callable[[str], Any]) -> dict[str, measure.Prepare]:
    """The rows, with interpreters that `make` makes of a path."""
    return {
        "network_memory": lambda: network_memory(make, "float"),
        "network_memory_int8": lambda: network_memory(make, "int8"),
        "network_invoke": lambda: ready(make, "float").invoke,
        "network_invoke_int8": lambda: ready(make, "int8").invoke,
    }


def _ours(path: str) -> Any:
    from opwright.lite import Interpreter

    return Interpreter(path, num_threads=1)


RUNS = runs(_ours)


def _write(kind: str, path: str) -> None:
    import numpy as np

    import opwright as ow
    from benchmarks.networks import mobilenet_v2

    converter = ow.lite.TFLiteConverter.from_keras_model(mobilenet_v2(ow.keras))
    if kind == "int8":
        image = np.random.default_rng(0).normal(size=(1, 224, 224, 3)).astype(np.float32)
        converter.optimizations = [ow.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: iter([[image]])
        converter.target_spec.supported_ops = [ow.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = ow.int8
    content = converter.convert()
    with open(path, "wb") as file:
        file.write(content)


if __name__ == "__main__":
    _write(*sys.argv[1:])
