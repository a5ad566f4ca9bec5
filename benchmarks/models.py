"""The files of the networks, made once and kept in a folder outside of the repository.

Lives here: `path_of`, which makes what is not there: by the official converter where OPWRIGHT_PEER_TENSORFLOW names a
Python that has it, else by ours; `work_of`, what a run of a file computes.
Not here: the networks (networks.py), the official converter's side (peers/official_models.py), timing (duels.py).

The folder is OPWRIGHT_BENCH_MODELS, by default opwright-bench in the user's cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

NETWORKS = ("mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "resnet50")
LARGE = ("resnet50",)  # not for phones
KINDS = ("f32", "int8")
MADE = 1  # version of the recipe: files of other versions are built again


def folder() -> Path:
    """Where the files are kept."""
    named = os.environ.get("OPWRIGHT_BENCH_MODELS")
    return Path(named) if named else Path.home() / ".cache" / "opwright-bench"


def path_of(network: str, kind: str, converter: str = "") -> str:
    """The path of a network's file. converter: "official" or "ours"; by default the official one where it may be had.

    raises RuntimeError where it cannot be made
    """
    peer = os.environ.get("OPWRIGHT_PEER_TENSORFLOW")
    official = _file(network, kind, "official")
    if official.exists() and converter != "ours":
        return str(official)
    if converter == "official" and not peer:
        raise RuntimeError("the official converter is needed: OPWRIGHT_PEER_TENSORFLOW names no Python that has it")
    chosen = converter or ("official" if peer else "ours")
    path = _file(network, kind, chosen)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        python, module = (
            (peer, "benchmarks.peers.official_models")
            if chosen == "official"
            else (sys.executable, "benchmarks.models")
        )
        unfinished = path.with_suffix(f".{os.getpid()}")
        command = [str(python), "-m", module, network, kind, str(unfinished)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{network} could not be made: {done.stderr.strip().splitlines()[-1:]}")
        os.replace(unfinished, path)
    return str(path)


def converter_of(path: str) -> str:
    """Whose converter made a file."""
    return "official" if "official" in Path(path).name else "ours"


def _file(network: str, kind: str, converter: str) -> Path:
    return folder() / f"{network}_{kind}_{converter}_{MADE}.tflite"


def work_of(path: str) -> float:
    """Multiplications and additions of a run: two for each product of a weight, in the operators that have weights."""
    return float(sum(work for work, _ in works_of(path)))


def works_of(path: str) -> list[tuple[int, str]]:
    """Return for each node of the first subgraph that number, and the shapes of its inputs and its output."""
    from opwright.lite import Model
    from opwright.lite.format import versions
    from opwright.lite.ops.operation_counts import arithmetic_operations

    model = Model.read(path)
    graph, result = model.subgraphs[0], []
    for operator in graph.operators:
        name = versions.op_name(model.operator_codes[operator.opcode_index])
        used = [*operator.inputs, operator.outputs[0]]
        shapes = [[] if i < 0 else [int(n) for n in graph.tensors[i].shape] for i in used]
        work = arithmetic_operations(name, shapes[:-1], shapes[-1])
        shapes = [*(shape for shape, i in zip(shapes[:2], used) if i >= 0), shapes[-1]]
        *inputs, output = ("x".join(map(str, shape)) or "1" for shape in shapes)
        result.append((work, f"{', '.join(inputs)} -> {output}"))
    return result


def samples(network: str, count: int = 3) -> Any:
    """Images to calibrate on: of 0 to 255 for networks that scale them themselves, as Keras's applications do."""
    import numpy as np

    rng = np.random.default_rng(7)
    high = 255.0 if network in ("mobilenet_v3_small", "efficientnet_b0") else 1.0
    for _ in range(count):
        yield [rng.uniform(0 if high > 1 else -1, high, (1, 224, 224, 3)).astype(np.float32)]


def _write(network: str, kind: str, path: str) -> None:
    """The file by our converter."""
    import opwright as ow
    from benchmarks import networks

    converter = ow.lite.TFLiteConverter.from_keras_model(getattr(networks, network)(ow.keras))
    if kind == "int8":
        converter.optimizations = [ow.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([x[0] / max(1.0, x[0].max())] for x in samples(network, 1))
        converter.target_spec.supported_ops = [ow.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = ow.int8
    Path(path).write_bytes(converter.convert())


if __name__ == "__main__":
    _write(*sys.argv[1:])
