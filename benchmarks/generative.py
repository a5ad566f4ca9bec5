"""Language models of litert-torch's generative API, here and in the official interpreter, in turn.

    python -m benchmarks.generative compare FILE ...   results against float64, plans, errors of both sides
    python -m benchmarks.generative ROW ...            rows `generative_KIND_SIGNATURE`

Lives here: the rows, and the comparison of a file's signatures.
Not here: the files, which peers/generative_models.py makes with the Python of OPWRIGHT_PEER_TORCH (with litert-torch)
and benchmarks/models.py's folder keeps; a model of the project's own (language.py).

The model has SmolLM's sizes, 135 M random weights: 30 layers of 576 with 9 heads over 3 of keys and values, tokens of
49152. A prefill reads 128 tokens from position 0, a step stands at position 256 of a cache of 1024. In place, ours has
the caches bound, which cannot be had officially. A figure is a call of the signature's runner on one thread, with
caches copied in and out otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import duels, exact, measure, models

KINDS = ("float32", "weights8", "int8", "int4_32")
PRESET, ENTRIES, TOKENS, POSITION = "small", 1024, 128, 256
SIGNATURES = {"prefill": f"prefill_{TOKENS}", "decode": "decode", "in_place": "decode"}


def path_of(kind: str) -> Path:
    """Return the file of a kind, made when first asked for. raises RuntimeError where it cannot be made"""
    path = models.folder() / f"{PRESET}_{ENTRIES}_{kind}.tflite"
    if path.exists():
        return path
    peer = os.environ.get("OPWRIGHT_PEER_TORCH")
    if not peer:
        raise RuntimeError("litert-torch makes this model: OPWRIGHT_PEER_TORCH names no Python that has it")
    script = Path(__file__).parent / "peers" / "generative_models.py"
    command = [peer, str(script), str(path.parent), kind, "--preset", PRESET, "--entries", str(ENTRIES)]
    done = subprocess.run([*command, "--prefill", str(TOKENS)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{path.name} could not be made: {done.stderr.strip().splitlines()[-1:]}")
    return path


def inputs_of(details: dict[str, Any], position: int) -> dict[str, np.ndarray]:
    """Return the inputs of a signature whose first token stands at a position; random tokens, empty caches."""
    inputs = {}
    for name, detail in details.items():
        shape, dtype = tuple(detail["shape"]), detail["dtype"]
        if name == "tokens":
            inputs[name] = np.random.default_rng(position).integers(0, 100, shape).astype(dtype)
        elif name == "input_pos":
            inputs[name] = np.arange(position, position + shape[0], dtype=dtype)
        elif name == "mask":
            hidden = np.arange(shape[-1]) > np.arange(position, position + shape[-2])[:, None]
            inputs[name] = np.where(hidden, dtype(-np.inf), dtype(0))[None, None]
        else:
            inputs[name] = np.zeros(shape, dtype)
    return inputs


# ---- results ---------------------------------------------------------------------------------------------------------


def compared(path: str) -> list[str]:
    """Return a line for each signature: the errors of both sides against float64, over the greatest number.

    A step of batches has the first prefill's caches; others have those of a prefill that ended before their position.
    """
    from opwright.lite import Model

    model, sides = Model.read(path), duels.present()
    interpreters = {side: duels.SIDES[side](path) for side in sides}
    signatures = {s.signature_key: s for s in model.signature_defs}
    caches: dict[str, dict[str, np.ndarray]] = {}
    lines, position = [], 0
    for key in sorted(signatures, key=lambda key: (key.startswith("decode"), len(key), key)):
        first = 0 if key.startswith("prefill") else position
        errors = {}
        for side in sides:
            runner = interpreters[side].get_signature_runner(key)
            inputs = inputs_of(runner.get_input_details(), first)
            for name, cache in caches.get(side, {}).items() if first else ():
                inputs[name] = np.broadcast_to(cache, inputs[name].shape).copy()
            outputs = {name: np.array(x) for name, x in runner(**inputs).items()}
            expected = _exact(model, signatures[key], inputs)
            errors[side] = exact.error_of([outputs[name] for name in expected], list(expected.values()))
            if key.startswith("prefill"):
                caches[side], position = outputs, len(inputs["input_pos"])
        native = [node.name for node in interpreters["ours"]._subgraphs[signatures[key].subgraph_index].execution_plan]
        lines.append(
            f"{Path(path).name} {key}: {', '.join(f'{side} {error:.1e}' for side, error in errors.items())}; "
            f"{len(native)} step{'s' if len(native) > 1 else ''}"
        )
    return lines


def _exact(model: Any, signature: Any, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    graph = model.subgraphs[signature.subgraph_index]
    named = {int(row.tensor_index): inputs[row.name] for row in signature.inputs}
    results = exact.evaluated(model, [named[int(i)] for i in graph.inputs], signature.subgraph_index)
    by_tensor = dict(zip(map(int, graph.outputs), results))
    return {row.name: by_tensor[int(row.tensor_index)] for row in signature.outputs}


# ---- time ------------------------------------------------------------------------------------------------------------


def measured(kind: str, signature: str) -> dict[str, Any]:
    """A run of a signature on one thread, both sides in turn."""
    import opwright as ow

    path, sides = str(path_of(kind)), duels.present()
    with ow.flags(background=False):
        calls = [_ready(side, path, signature) for side in sides]
    return dict(zip(sides, duels.in_turn(calls)))


def _ready(side: str, path: str, signature: str) -> Any:
    """A call of a signature's runner that has run once."""
    runner = duels.SIDES[side](path).get_signature_runner(SIGNATURES[signature])
    inputs = inputs_of(runner.get_input_details(), 0 if signature == "prefill" else POSITION)
    if signature == "in_place" and side == "ours":
        caches = {name: inputs.pop(name) for name in [*inputs] if name.startswith("kv_cache")}
        runner.bind(caches, caches)
    runner(**inputs)
    return lambda: runner(**inputs)


def _row(kind: str, signature: str) -> measure.Prepare:
    return lambda: measured(kind, signature)


ROWS: dict[str, measure.Prepare] = {
    f"generative_{kind}_{signature}": _row(kind, signature) for kind in KINDS for signature in SIGNATURES
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        for name in sys.argv[2:]:
            print(*compared(name), sep="\n", flush=True)
    else:
        measure.main(ROWS)
