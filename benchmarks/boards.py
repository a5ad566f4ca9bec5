"""Instructions of small networks on an emulated Cortex-M4, of our libraries and of peers that write C.

`python -m benchmarks.boards` prints them. Lives here: the layers of a quantized network as peers read them.
Not here: the emulated board (tests/aot/microcontrollers.py), the peers (peers/tvm_c.py, peers/emlearn_c.py).

Networks: the keyword model of MLPerf Tiny (DS-CNN int8) without its softmax, for Apache TVM; a dense network of floats
(64, 32, 16 and 10 units), for emlearn. OPWRIGHT_PEER_TVM and OPWRIGHT_PEER_EMLEARN name Pythons that have these.
Programs are compiled by arm-none-eabi-gcc -O3; QEMU counts, in steps of 40 instructions.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "aot"))
PER_TICK = 40


def _run(folder: Path, sources: list[Path], flags: str = "-O3 -w") -> tuple[int, list[int]]:
    """Return the instructions of a program's run and the numbers that it prints."""
    import microcontrollers

    status, ticks, *numbers = microcontrollers.run_on(microcontrollers.BOARDS["cortex-m4"], folder, sources, flags)
    if int(status):
        raise RuntimeError(f"status {status}")
    return int(ticks) * PER_TICK, [int(n) for n in numbers]


def layers_of(content: bytes, image: np.ndarray) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Return the layers of an int8 network up to its softmax, and what they compute from an image."""
    import opwright as ow

    with ow.flags(compiled=False):
        interpreter = ow.lite.Interpreter(model_content=content, experimental_preserve_all_tensors=True)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
        interpreter.invoke()
    details = {d["index"]: d for d in interpreter.get_tensor_details()}
    graph = ow.lite.Model.read(content).subgraphs[0]
    layers = []
    for operator in graph.operators[:-1]:
        options = operator.builtin_options
        kind = type(options).__name__
        x, y = details[int(operator.inputs[0])], details[int(operator.outputs[0])]
        layer = {
            f"{side}_{key}s"[:-1]: d["quantization"][i]
            for side, d in (("x", x), ("y", y))
            for i, key in enumerate(("scale", "zero"))
        }
        layer |= {"w": None, "output": tuple(map(int, y["shape"][1:3]))}
        if kind == "Pool2DOptions":
            layer |= {"kind": "pool", "window": (int(options.filter_height), int(options.filter_width))}
        elif "Conv" in kind or kind == "FullyConnectedOptions":
            w, b = (interpreter.get_tensor(int(i)) for i in operator.inputs[1:3])
            w_scale = details[int(operator.inputs[1])]["quantization_parameters"]["scales"]
            layer |= {"b": b, "w_scale": w_scale, "stride": int(getattr(options, "stride_h", 1))}
            if kind == "FullyConnectedOptions":
                layer |= {"kind": "dense", "w": w, "window": (w.shape[1],)}
            elif kind.startswith("Depthwise"):
                layer |= {"kind": "depthwise", "w": w[0], "window": w.shape[1:3]}
            elif w.shape[1:3] == (1, 1):
                layer |= {"kind": "pointwise", "w": w[:, 0, 0], "window": (w.shape[3],)}
            else:
                layer |= {"kind": "convolution", "w": w[..., 0], "window": w.shape[1:3]}
        else:
            continue  # RESHAPE
        layer["window"] = (*layer["window"], 1)[:2]
        layers.append(layer)
    return layers, np.array(interpreter.get_tensor(int(graph.operators[-1].inputs[0]))).reshape(-1)


def keywords_by_tvm(python: str) -> dict[str, Any]:
    """Return the instructions of the keyword model as C of TVM, and its largest difference in steps of int8."""
    import microcontrollers

    folder = Path(tempfile.mkdtemp(prefix="opwright-bench-"))
    image = np.random.default_rng(7).integers(-128, 128, (1, 49, 10, 1), np.int8)
    layers, expected = layers_of(microcontrollers.keyword_model(), image)
    (folder / "layers.pkl").write_bytes(pickle.dumps({"layers": layers, "image": image[0]}))
    command = [python, HERE / "peers" / "tvm_c.py", folder / "layers.pkl", folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    includes = " ".join(f"-I{path}" for path in done.stdout.splitlines()[-1].split())
    count, values = _run(folder, [folder / "main.c", folder / "net.c"], f"-O3 -w {includes}")
    return {"instructions": count, "steps": int(np.abs(np.array(values) - expected).max())}


_DENSE = """
#include "HEADER"
#include "board.h"
MEMORY
static const float x[] = {IMAGE};
static float y[10];
int main(void) {
  int i, status;
  SETUP
  start_ticks();
  status = CALL;
  i = (int)ticks();
  print_number(status);
  print_number(i);
  for (i = 0; i < 10; i++) print_number((int)(y[i] * 1000000.0f));
  return 0;
}
"""
_OURS = {
    "HEADER": "net.h",
    "MEMORY": "static uint8_t memory[NET_ARENA_SIZE] __attribute__((aligned(NET_ARENA_ALIGN)));",
    "SETUP": "struct net_inputs in = {x}; struct net_outputs out = {y};",
    "CALL": "net_run(&in, &out, memory, NET_ARENA_SIZE)",
}
_EMLEARN = {"HEADER": "digits.h", "MEMORY": "", "SETUP": "", "CALL": "eml_net_predict_proba(&digits, x, 64, y, 10)"}


def dense_by_emlearn(python: str) -> dict[str, Any]:
    """Return the instructions of a dense network: as our machine code, as our C and as emlearn's."""
    import opwright as ow
    from opwright import aot

    folder = Path(tempfile.mkdtemp(prefix="opwright-bench-"))
    command = [python, HERE / "peers" / "emlearn_c.py", folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    data = np.load(folder / "digits.npz")
    weights = [(data[f"w{i}"], data[f"b{i}"]) for i in range(3)]

    @ow.function(input_signature=[ow.TensorSpec([1, 64], ow.float32, name="x")])
    def network(x: Any) -> Any:
        for i, (w, b) in enumerate(weights):
            x = x @ w + b
            x = ow.nn.softmax(x) if i == 2 else ow.nn.relu(x)
        return x

    results = {}
    for name, words in {"machine code": _OURS, "C": _OURS, "emlearn": _EMLEARN}.items():
        own = folder / name.replace(" ", "")
        own.mkdir()
        flags, sources = "-O3 -w", [own / "main.c"]
        if words is _EMLEARN:
            flags += f" -I{folder} -I{done.stdout.splitlines()[-1]}"
        elif name == "C":
            sources += [
                aot.build(network, out=own, name="net", format="c").folder / f for f in ("net.c", "net_weights.c")
            ]
        else:
            sources.append(aot.build(network, "cortex-m4", own, name="net").folder / "libnet.a")
        text = _DENSE
        for key, value in (words | {"IMAGE": ", ".join(f"{v!r}f" for v in data["image"].tolist())}).items():
            text = text.replace(key, value)
        sources[0].write_text(text)
        count, values = _run(own, sources, flags)
        results[name] = {"instructions": count, "error": float(np.abs(np.array(values) / 1e6 - data["scores"]).max())}
    return results


def main() -> None:
    """Print the figures whose peers are there."""
    for name, figure in {"TVM": keywords_by_tvm, "EMLEARN": dense_by_emlearn}.items():
        python = os.environ.get(f"OPWRIGHT_PEER_{name}")
        print(f"{figure.__name__}: {figure(python) if python else f'needs OPWRIGHT_PEER_{name}'}", flush=True)


if __name__ == "__main__":
    main()
