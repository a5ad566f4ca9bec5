"""Figures of nodes that need a run: times, who computes them, errors against another model.

Lives here: `measure`, `errors_against`. Not here: timing (lite/runtime/profiler.py), errors (aot/differences.py).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..aot.differences import diff
from ..aot.model_runs import random_input
from ..lite.interpreter import Interpreter

WAITS = 8  # runs after which the compiler may still be at work on other sizes


def measure(path: str, runs: int, custom_ops: Sequence[Any] = ()) -> dict[tuple[int, int], dict[str, Any]]:
    """Return the median seconds of a run and who computes it ("k"), by subgraph and number of the node.

    The first signature runs on random inputs. raises the errors of `Interpreter`
    """
    with Interpreter(model_path=path, custom_ops=[*custom_ops]) as interpreter:
        interpreter.allocate_tensors()
        rng = np.random.default_rng(0)
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], random_input(detail, rng))
        for _ in range(WAITS):
            interpreter.invoke()
            compiling = [t for t in threading.enumerate() if t.name == "opwright-compiler"]
            if not compiling:
                break
            for thread in compiling:
                thread.join()
        profile = interpreter.profile(runs)
        result: dict[tuple[int, int], dict[str, Any]] = {}
        for index in (0, *profile.called):
            for row in profile if index == 0 else profile.called[index]:
                numbers = row.get("nodes") or [row["node"]]
                by = "machine code" if row.get("delegate") == "Opwright" else row.get("delegate", "the interpreter")
                for number in numbers:
                    seconds = float(row["seconds"]) / len(numbers)
                    fused = " (computed within another node's kernel)" if "delegate" in row and not seconds else ""
                    result[index, int(number)] = {"t": seconds, "k": f"{by}{fused}"}
    return result


def errors_against(path: str, other: str, custom_ops: Sequence[Any] = ()) -> dict[tuple[int, int], float]:
    """Return the largest error of each node's results, by subgraph and number of the node, where both models have the
    tensor. The other model's results on the same random inputs count as exact. Raises the errors of `aot.diff`."""
    result = diff(path, other, custom_ops=custom_ops)
    rows = [row for row in (*result.inner, *result.outputs) if row.node is not None and not row.remark]
    errors: dict[tuple[int, int], float] = {}
    for row in rows:
        assert row.node is not None
        errors[0, row.node] = max(errors.get((0, row.node), 0.0), float(row.largest))
    return errors
