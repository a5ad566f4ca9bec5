"""C of Apache TVM for an int8 network: convolutions, a pool and a dense layer, written in TIR with int8 operands.

Run by a Python that has apache-tvm: `tvm_c.py LAYERS FOLDER`. LAYERS: a pickle of benchmarks/boards.py. FOLDER gets
net.c, which TVM writes, and main.c, which calls it; the folders of the headers are printed.

TVM's front end for .tflite computes int8 convolutions in float32. Here, sums are of int32, and results are scaled by
products of 64 bits as in TensorFlow Lite, in the loop of the sums. Nothing is tuned.
"""

import math
import pickle
import sys
from pathlib import Path

import numpy as np
import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.s_tir import Schedule

MAIN = """
#include "tvm/ffi/c_api.h"
#include "tvm/runtime/c_backend_api.h"
#include "board.h"
int32_t __tvm_ffi_net(void *, void *, int32_t, void *);
static uint8_t pool[200000] __attribute__((aligned(16)));
static uint32_t used;
void *TVMBackendAllocWorkspace(int device, int id, uint64_t size, int code, int bits) {
  void *p = pool + used;
  used += (uint32_t)((size + 15) & ~15ull);
  return p;
}
int TVMBackendFreeWorkspace(int device, int id, void *p) {
  used = (uint32_t)((uint8_t *)p - pool);
  return 0;
}
void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) { print("error "); }
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *text) { print("error "); }
ARRAYS
int main(void) {
  static TVMFFIAny arguments[COUNT];
  TVMFFIAny result;
  int i, status;
  for (i = 0; i < COUNT; i++) {
    arguments[i].type_index = kTVMFFIDLTensorPtr;
    arguments[i].v_ptr = &tensors[i];
  }
  start_ticks();
  status = __tvm_ffi_net(0, arguments, COUNT, &result);
  i = (int)ticks();
  print_number(status);
  print_number(i);
  for (i = 0; i < OUTPUTS; i++) print_number(values_y[i]);
  return 0;
}
"""


class Network:
    """The tensors of a network in TIR. constants: weights by name; fused: layers that scale sums in their loops."""

    def __init__(self, shape):
        self.x = self.tensor = te.placeholder(shape, "int8", "x")
        self.constants, self.placeholders, self.fused = {}, [], []

    def constant(self, name, array):
        """Add an argument for weights."""
        self.constants[name] = np.ascontiguousarray(array)
        self.placeholders.append(te.placeholder(array.shape, str(array.dtype), name))
        return self.placeholders[-1]

    def scaled(self, number, sums, layer, bias):
        """Add the stage that scales sums. bias: of int32, with the input's zero point."""
        scales = layer["w_scale"].astype(np.float64) * layer["x_scale"] / layer["y_scale"]
        parts, exponents = np.frexp(np.broadcast_to(scales, bias.shape))
        factors = np.round(parts * (1 << 31)).astype(np.int64)
        exponents = np.where(factors == 1 << 31, exponents + 1, exponents).astype(np.int32)
        factors = np.where(factors == 1 << 31, 1 << 30, factors).astype(np.int32)
        b, m, s = (
            self.constant(f"{k}{number}", v)
            for k, v in (("b", bias.astype(np.int32)), ("m", factors), ("s", exponents))
        )

        def element(*i):
            shift = tirx.const(31, "int64") - s[i[-1]].astype("int64")
            half = tirx.const(1, "int64") << (shift - tirx.const(1, "int64"))
            product = (sums(*i) + b[i[-1]]).astype("int64") * m[i[-1]].astype("int64")
            y = ((product + half) >> shift).astype("int32") + layer["y_zero"]
            return te.max(te.min(y, 127), -128).astype("int8")

        self.tensor = te.compute(sums.shape, element, f"y{number}")
        self.fused.append(number)

    def padded(self, number, layer, kernel, stride, output):
        """Add the stage that pads the input with its zero point, as SAME does."""
        x = self.tensor
        size = [(n - 1) * stride + k for n, k in zip(output, kernel)]
        before = [max(n - int(m), 0) // 2 for n, m in zip(size, x.shape)]
        (i0, j0), (h, w) = before, map(int, x.shape[:2])

        def element(i, j, c):
            inside = tirx.all(i >= i0, i < h + i0, j >= j0, j < w + j0)
            return tirx.if_then_else(inside, x[i - i0, j - j0, c], tirx.const(layer["x_zero"], "int8"))

        return te.compute((*size, x.shape[2]), element, f"pad{number}")

    def add(self, number, layer):
        """Add a layer."""
        kind, w = layer["kind"], layer["w"]
        r, q = (te.reduce_axis((0, n), f"r{i}") for i, n in enumerate(layer["window"]))
        wide = lambda t: t.astype("int32")  # noqa: E731
        if kind == "pool":
            x, n = self.tensor, math.prod(layer["window"])
            sums = te.compute((x.shape[2],), lambda c: te.sum(wide(x[r, q, c]), axis=[r, q]), f"acc{number}")
            half = tirx.const(n // 2, "int32")

            def mean(c):
                up, down = sums[c] + half, sums[c] - half
                n32 = tirx.const(n, "int32")
                whole = tirx.if_then_else(sums[c] > 0, tirx.truncdiv(up, n32), tirx.truncdiv(down, n32))
                return whole.astype("int8")

            self.tensor = te.compute(sums.shape, mean, f"y{number}")
            return
        axis = tuple(range(w.ndim - 1)) if kind == "depthwise" else tuple(range(1, w.ndim))
        bias = layer["b"].astype(np.int64) - layer["x_zero"] * w.astype(np.int64).sum(axis)
        k, x = self.constant(f"w{number}", w), self.tensor
        if kind == "dense":
            sums = te.compute((w.shape[0],), lambda c: te.sum(wide(x[r]) * wide(k[c, r]), axis=r), f"acc{number}")
        elif kind == "pointwise":
            shape = (*x.shape[:2], w.shape[0])
            sums = te.compute(shape, lambda i, j, c: te.sum(wide(x[i, j, r]) * wide(k[c, r]), axis=r), f"acc{number}")
        else:
            stride, output = layer["stride"], layer["output"]
            p = self.padded(number, layer, layer["window"], stride, output)
            deep = kind == "depthwise"

            def product(i, j, c):
                value = wide(p[i * stride + r, j * stride + q, c if deep else 0])
                return te.sum(value * wide(k[r, q, c] if deep else k[c, r, q]), axis=[r, q])

            sums = te.compute((*output, len(bias)), product, f"acc{number}")
        self.scaled(number, sums, layer, bias)

    def source(self):
        """Return the C that TVM writes."""
        function = te.create_prim_func([self.x, *self.placeholders, self.tensor]).with_attr("global_symbol", "net")
        schedule = Schedule(tvm.IRModule({"net": function}))
        for number in self.fused:
            sums, result = (schedule.get_sblock(f"{stem}{number}", "net") for stem in ("acc", "y"))
            rank = len(schedule.get_loops(result))
            schedule.reverse_compute_at(result, schedule.get_loops(sums)[rank - 1])
        return tvm.compile(schedule.mod, target="c").mod.inspect_source()


def main():
    content = pickle.loads(Path(sys.argv[1]).read_bytes())
    folder, image = Path(sys.argv[2]), content["image"]
    network = Network(image.shape)
    for number, layer in enumerate(content["layers"]):
        network.add(number, layer)
    (folder / "net.c").write_text(network.source())
    outputs = int(network.tensor.shape[0])
    arrays = {"x": image, **network.constants, "y": np.zeros(outputs, np.int8)}
    text = []
    for name, a in arrays.items():
        kind, values = ("" if name == "y" else "const "), ", ".join(map(str, a.reshape(-1)))
        text.append(f"static {kind}{a.dtype}_t values_{name}[] = {{{values}}};")
        text.append(f"static int64_t shape_{name}[] = {{{', '.join(map(str, a.shape))}}};")
    tensors = ", ".join(
        f"{{(void *)values_{name}, {{kDLCPU, 0}}, {a.ndim}, {{kDLInt, {8 * a.itemsize}, 1}}, shape_{name}, 0, 0}}"
        for name, a in arrays.items()
    )
    text.append(f"static DLTensor tensors[] = {{{tensors}}};\nenum {{ COUNT = {len(arrays)}, OUTPUTS = {outputs} }};")
    (folder / "main.c").write_text(MAIN.replace("ARRAYS", "\n".join(text)))
    print(Path(tvm.__file__).parent / "include", Path(tvm_ffi.__file__).parent / "include")


if __name__ == "__main__":
    main()
