"""Operators of C libraries in the interpreter: the overhead of their calls.

Lives here: the rows `native_...`.  Not here: the table of rows (rows.py), how a figure is taken (measure.py).

The operator copies five floats. Its function is timed by itself, in a loop in C over the very node that the interpreter
has made; the interpreter runs a chain of a hundred of them, of which each costs a hundredth.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import measure

NODES, TWENTY, LOOPS = 100, 20, 10_000

SOURCE = """
#include "tensorflow/lite/c/common.h"

static TfLiteContext* seen_context;
static TfLiteNode* seen_node;

static TfLiteStatus prepare(TfLiteContext* context, TfLiteNode* node) {
  seen_context = context, seen_node = node;
  return context->ResizeTensor(context, &context->tensors[node->outputs->data[0]],
                               TfLiteIntArrayCopy(context->tensors[node->inputs->data[0]].dims));
}
static TfLiteStatus invoke(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = &context->tensors[node->inputs->data[0]];
  float* y = context->tensors[node->outputs->data[0]].data.f;
  for (size_t i = 0; i < x->bytes / 4; ++i) y[i] = x->data.f[i];
  return kTfLiteOk;
}
TfLiteRegistration* Register_COPY(void) {
  static TfLiteRegistration r = {0, 0, prepare, invoke};
  return &r;
}
int alone(int loops) {
  TfLiteStatus (*volatile f)(TfLiteContext*, TfLiteNode*) = invoke;
  int failed = 0;
  for (int i = 0; i < loops; ++i) failed += f(seen_context, seen_node);
  return failed;
}
"""


def interpreter(nodes: int) -> tuple[Any, ctypes.CDLL]:
    """Return an allocated model of consecutive C operators, and their library."""
    from opwright import lite
    from opwright.lite.format import Model, objects, schema, versions
    from opwright.lite.native.toolchain import build_library

    with tempfile.TemporaryDirectory(prefix="opwright-bench-") as folder:
        source = Path(folder) / "copy.c"
        source.write_text(SOURCE)
        path = build_library([source])
    main = objects.SubGraph(name="main", inputs=[0], outputs=[nodes])
    for i in range(nodes + 1):
        main.tensors.append(objects.Tensor(name=f"t{i}", shape=[5], type=schema.TensorType.FLOAT32, buffer=0))
    main.operators += [objects.Operator(opcode_index=0, inputs=[i], outputs=[i + 1]) for i in range(nodes)]
    model = Model(
        buffers=[objects.Buffer()], operator_codes=[versions.operator_code("CUSTOM", 1, "COPY")], subgraphs=[main]
    )
    made = lite.Interpreter(model_content=model.to_bytes(), custom_ops=lite.load_custom_ops(path))
    made.allocate_tensors()
    return made, ctypes.CDLL(str(path))


def native_node() -> float:
    result, library = interpreter(NODES)
    chain = measure.median_seconds(result.invoke) / NODES
    return chain - measure.median_seconds(lambda: library.alone(LOOPS)) / LOOPS


def native_twenty() -> Callable[[], object]:
    result, _ = interpreter(TWENTY)
    invoke: Callable[[], object] = result.invoke
    return invoke


def native_invoke() -> Callable[[], object]:
    result, _ = interpreter(1)
    invoke: Callable[[], object] = result.invoke
    return invoke


ROWS = {"native_node": native_node, "native_twenty": native_twenty, "native_invoke": native_invoke}


if __name__ == "__main__":
    measure.main(ROWS)
