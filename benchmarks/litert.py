"""The rows of operators in the official run time (lite.litert), which the `dev` extra brings.

What the run time itself takes for a node of its callers, empty tensors' buffers and all, is its own; so a chain of our
nodes is timed against the same chain of nodes whose callback does nothing, in turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks import measure

FIVE = [-8.0, 0.5, 2.0, 2.2, 201.0]
NODES, ROUNDS = 32, 40


def _chain(nodes: int) -> Any:
    """Return a compiled model of nodes y = -x with a kernel of Opwright, and the run-time call that runs it."""
    import numpy as np

    import opwright as ow
    from opwright.lite.format import Model, objects, schema, versions

    @ow.operator(name="BenchNegative")
    class Negative:
        x = ow.Input()
        y = ow.Output(like="x")

        def compute(op, x):
            return -x

        @ow.kernel
        def kernel(x):
            return -x

    tensors = [
        objects.Tensor(name=f"t{i}", shape=[len(FIVE)], type=schema.TensorType.FLOAT32) for i in range(nodes + 1)
    ]
    operators = [objects.Operator(opcode_index=0, inputs=[i], outputs=[i + 1]) for i in range(nodes)]
    graph = objects.SubGraph(name="main", tensors=tensors, inputs=[0], outputs=[nodes], operators=operators)
    code = versions.operator_code("CUSTOM", 1, "BenchNegative")
    file = Model(buffers=[objects.Buffer()], operator_codes=[code], subgraphs=[graph])
    model = ow.lite.litert.CompiledModel(file, custom_ops=[Negative], num_threads=1)
    assert all(model.native_nodes.values())
    model.run([np.array(FIVE, np.float32)])
    return model


def _doing_nothing(nodes: int) -> Any:
    from opwright.lite.litert import loaded_model
    from opwright.lite.litert.library import CustomOpKernel

    ours = loaded_model.kernel
    own = ours()
    empty = CustomOpKernel(own.init, own.layouts, own.init, own.destroy)  # init does nothing, whatever it is handed
    loaded_model.kernel = lambda: empty  # type: ignore[assignment]
    try:
        return _chain(nodes)
    finally:
        loaded_model.kernel = ours


def litert_node() -> float:
    """Seconds a node, over a node whose callback does nothing."""
    ours, empty = _chain(NODES), _doing_nothing(NODES)
    between = [(m, m.create_input_buffers(), m.create_output_buffers()) for m in (ours, empty)]
    calls = [lambda m=m, i=i, o=o: m.run_by_index(0, i, o) for m, i, o in between]
    for call in calls:
        measure.median_seconds(call, batches=5)
    size = max(1, int(0.002 / measure.time_batch(calls[0], 1)))
    result = [[measure.time_batch(call, size) / size for call in calls] for _ in range(ROUNDS)]
    return statistics.median(a - b for a, b in result) / NODES


def litert_run() -> Callable[[], object]:
    """A run of one node through Python, values in and out."""
    import numpy as np

    model, x = _chain(1), np.array(FIVE, np.float32)
    return lambda: model.run([x])


RUNS: dict[str, measure.Prepare] = {"litert_node": litert_node, "litert_run": litert_run}

if __name__ == "__main__":
    measure.main(RUNS)
