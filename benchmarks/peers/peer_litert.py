"""The rows in the official LiteRT interpreter, which the `dev` extra brings: the sin model (builtins only).

Networks run there too, in one process with ours: ../duels.py.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks import measure


def _sin_model() -> bytes:
    """Made in a process of its own, so that this one holds nothing of Opwright."""
    command = [sys.executable, "-m", "benchmarks.ours", "--sin-model"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError("the model could not be made, see the row convert")
    return done.stdout


def interpreter() -> Callable[[], object]:
    from ai_edge_litert.interpreter import Interpreter

    model = _sin_model()

    def build() -> object:
        interpreter = Interpreter(model_content=model, num_threads=1)
        interpreter.allocate_tensors()
        return interpreter

    return build


def invoke() -> Callable[[], object]:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=_sin_model(), num_threads=1)
    interpreter.allocate_tensors()
    five = np.array([-8.0, 0.5, 2.0, 2.2, 201.0], np.float32)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], five)
    invoke: Callable[[], object] = interpreter.invoke
    return invoke


RUNS: dict[str, measure.Prepare] = {"interpreter": interpreter, "invoke": invoke}

if __name__ == "__main__":
    measure.main(RUNS)
