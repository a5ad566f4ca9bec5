"""Run many models in one process, each opened by path and by its bytes: a program of test_starting_again.py.

    python startup_process.py MODELS.json ANSWERS.pkl

MODELS.json: a list of paths. ANSWERS.pkl: by path, for each way of opening, the details and two runs' results, or the
error.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

from opwright import lite


def drawn(detail: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    shape, dtype = tuple(detail["shape"]), np.dtype(detail["dtype"])
    if dtype.kind in "fc":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind in "iub":
        return rng.integers(0, 2, shape).astype(dtype)
    return np.full(shape, b"word", object)


def answers(interpreter: Any) -> Any:
    """The details of inputs and outputs, and what two runs give."""
    rng, result = np.random.default_rng(7), []
    interpreter.allocate_tensors()
    for _ in range(2):
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], drawn(detail, rng))
        interpreter.invoke()
        result += [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]
    details = [str(d) for d in (*interpreter.get_input_details(), *interpreter.get_output_details())]
    return details, result


def opened(path: str) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for way in ("path", "bytes"):
        try:
            content = Path(path).read_bytes() if way == "bytes" else None
            interpreter = lite.Interpreter(None if content else path, model_content=content, num_threads=1)
            results[way] = answers(interpreter)
            results[f"{way}, shortcut"] = interpreter._fast_path is not None
        except Exception as error:
            results[way] = f"{type(error).__name__}: {error}"
    return results


if __name__ == "__main__":
    everything = {path: opened(path) for path in json.loads(Path(sys.argv[1]).read_text())}
    Path(sys.argv[2]).write_bytes(pickle.dumps(everything))
