"""Models as native libraries: sizes, times here, instructions on emulated processors, times in Node.js.

Lives here: the rows `library_...`; `python -m benchmarks.libraries` prints the figures that need an emulator or
Node.js.
Not here: the table of rows (rows.py), what an ARM processor takes for the official interpreter (arm/).

Models: the keyword model of MLPerf Tiny (DS-CNN int8, tests/aot/microcontrollers.py) on a Cortex-M4; MobileNetV2 int8
on 64-bit ARM with dotprod, on this machine and as WebAssembly. The script needs arm-none-eabi-gcc and qemu-system-arm;
aarch64-linux-gnu-gcc and qemu-aarch64 with plugins; node, and, as peers in it, the folders of the
npm packages @tensorflow/tfjs-tflite as OPWRIGHT_PEER_TFJS and onnxruntime-web as OPWRIGHT_PEER_ORT_WEB; the folder of
IREE's programs (iree-base-compiler, iree-base-runtime) as OPWRIGHT_PEER_IREE. A figure whose tools are missing is left
out, by name.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure, models

TESTS = Path(__file__).resolve().parent.parent / "tests"
NETWORK = "mobilenet_v2", "int8"
OFFICIAL_ARM = 49.2e6
"""Instructions of that network's run by ai-edge-litert 2.3.0 on a Neoverse N1 (`python -m benchmarks.arm`)."""
CPU = "neoverse-n1"


@functools.cache
def _boards() -> Any:
    sys.path.append(str(TESTS / "aot"))
    import microcontrollers

    return microcontrollers


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="opwright-bench-"))


@functools.cache
def _built(target: str, folder: Path | None = None, format: str | None = None) -> Any:
    """The library of the keyword model for a microcontroller, of MobileNetV2 for others."""
    from opwright import aot

    model = _boards().keyword_model() if target.startswith(("cortex", "c11")) else models.path_of(*NETWORK)
    where = "host" if target == "c11" else target
    return aot.build(model, where, folder or _folder(), name="model", format=format)


def seconds_of_build() -> float:
    """Seconds of `opwright build` in a process of its own, with an empty cache."""
    with tempfile.TemporaryDirectory(prefix="opwright-bench-") as cache:
        code = (
            "import time; start = time.perf_counter(); from opwright import aot; "
            f"aot.build({models.path_of(*NETWORK)!r}, 'aarch64-dotprod', {cache!r} + '/out'); "
            "print(time.perf_counter() - start)"
        )
        environment = os.environ | {"OPWRIGHT_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def times_here() -> float:
    """The interpreter's time over the library's, of a run with an image of NumPy to scores of NumPy."""
    from opwright import aot, lite

    library = aot.load(_built("host").folder)
    interpreter = lite.Interpreter(model_path=models.path_of(*NETWORK), num_threads=1)
    interpreter.allocate_tensors()
    (detail,), (scores,) = interpreter.get_input_details(), interpreter.get_output_details()
    image = np.random.default_rng(0).integers(-128, 128, detail["shape"], np.int8)

    def interpreted() -> object:
        interpreter.set_tensor(detail["index"], image)
        interpreter.invoke()
        return interpreter.get_tensor(scores["index"])

    calls: list[Callable[[], object]] = [interpreted, functools.partial(library, image)]
    least = [float("inf")] * 2
    for _ in range(40):
        for i, call in enumerate(calls):
            call()  # whose weights the other's have left no place in the caches
            least[i] = min(least[i], *(measure.time_batch(call, 1) for _ in range(4)))
    return least[0] / least[1]


_FIRST = """
#define _POSIX_C_SOURCE 200809L
#include "model.h"
#include <stdio.h>
#include <time.h>
static uint8_t memory[MODEL_ARENA_SIZE + MODEL_ARENA_ALIGN];
int main(void) {
  static int8_t x[INPUT], y[OUTPUT];
  struct model_inputs in = {x};
  struct model_outputs out = {y};
  uintptr_t arena = ((uintptr_t)memory + MODEL_ARENA_ALIGN - 1u) / MODEL_ARENA_ALIGN * MODEL_ARENA_ALIGN;
  struct timespec t[3];
  int i;
  clock_gettime(CLOCK_MONOTONIC, t);
  for (i = 1; i < 3; i++) {
    if (model_run(&in, &out, (void *)arena, MODEL_ARENA_SIZE)) return 1;
    clock_gettime(CLOCK_MONOTONIC, t + i);
  }
  for (i = 0; i < 2; i++)
    printf("%.9f ", (double)(t[i + 1].tv_sec - t[i].tv_sec) + 1e-9 * (double)(t[i + 1].tv_nsec - t[i].tv_nsec));
  return 0;
}
"""
_COUNTED = """
#include "model.h"
#include <sys/resource.h>
static uint8_t memory[MODEL_ARENA_SIZE + MODEL_ARENA_ALIGN];
int main(void) {
  static int8_t x[INPUT], y[OUTPUT];
  struct model_inputs in = {x};
  struct model_outputs out = {y};
  uintptr_t arena = ((uintptr_t)memory + MODEL_ARENA_ALIGN - 1u) / MODEL_ARENA_ALIGN * MODEL_ARENA_ALIGN;
  int i;
  for (i = 0; i < 3; i++) {
    getpriority(PRIO_USER, 0x7a000000 | i);
    if (model_run(&in, &out, (void *)arena, MODEL_ARENA_SIZE)) return 1;
  }
  getpriority(PRIO_USER, 0x7a000003);
  return 0;
}
"""


def _program(text: str, library: Any, compiler: str) -> Path:
    """Compile a program with a library; return its path."""
    notes = json.loads((library.folder / "model.json").read_text())["signatures"][0]
    sizes = [f"-D{side.upper()}={int(np.prod(notes[f'{side}s'][0]['shape']))}" for side in ("input", "output")]
    (library.folder / "program.c").write_text(text)
    program: Path = library.folder / "program"
    command = [compiler, "-O2", "-static", *sizes, "program.c", "libmodel.a", "-lm", "-o", str(program)]
    subprocess.run(command, cwd=library.folder, check=True)
    return program


def seconds_to_first_answer() -> float:
    """Return by how much the first run of a process is longer than the second: the least of each in forty processes."""
    program = _program(_FIRST, _built("host"), "cc")
    runs = []
    for _ in range(40):
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        runs.append([float(word) for word in printed.split()])
    return min(run[0] for run in runs) - min(run[1] for run in runs)


# ---- figures that need an emulator or Node.js ------------------------------------------------------------------------


def instructions_of_keywords(format: str) -> float:
    """Instructions of a run of the keyword model on a Cortex-M4, counted by QEMU. format: "lib", or "c" by GCC -O3."""
    boards = _boards()
    folder = _folder()
    _built("cortex-m4" if format == "lib" else "c11", folder, format)
    features = np.random.default_rng(7).integers(-128, 128, (1, 49, 10, 1), np.int8)
    (folder / "program.c").write_text(boards.program_of("model", {"features": features}, {"scores": 12}))
    names = ["libmodel.a"] if format == "lib" else ["model.c", "model_weights.c"]
    sources = [folder / "program.c", *(folder / name for name in names)]
    status, ticks, *_ = boards.run_on(boards.BOARDS["cortex-m4"], folder, sources, "-O3")
    if int(status):
        raise RuntimeError(f"status {status}")
    return int(ticks) * 40.0


def instructions_on_arm() -> float:
    """Instructions of a run of MobileNetV2 on a Neoverse N1, counted by a plugin of QEMU."""
    from benchmarks.arm.__main__ import build as build_plugin

    program = _program(_COUNTED, _built("aarch64-dotprod"), "aarch64-linux-gnu-gcc")
    plugin, marks = build_plugin(program.parent), program.parent / "marks.txt"
    command = ["qemu-aarch64", "-cpu", CPU, "-plugin", f"{plugin},out={marks}", str(program)]
    subprocess.run(command, check=True)
    at = {int(n): int(count) for _, n, count in map(str.split, marks.read_text().splitlines())}
    return float(at[3] - at[2])


_IN_TURN = """
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import * as ours from "./model.mjs";
const [, , file, tfjs, ort, onnx] = process.argv;
const [{ name, dtype, shape, size }] = ours.inputs, Elements = dtype === "int8" ? Int8Array : Float32Array;
const image = Elements.from({ length: size }, (_, i) => ((i * 37) % 251 - 125) / (dtype === "int8" ? 1 : 125));
const runs = {}, results = {};
const model = await ours.load();
runs.ours = () => { results.ours = Object.values(model.run({ [name]: image }))[0]; };
if (tfjs) {
  const factory = createRequire(import.meta.url)(`${tfjs}/wasm/tflite_web_api_cc_simd.js`);
  const web = await factory({ wasmBinary: readFileSync(`${tfjs}/wasm/tflite_web_api_cc_simd.wasm`) });
  const bytes = readFileSync(file), at = web._malloc(bytes.length);
  web.HEAPU8.set(bytes, at);
  const options = { numThreads: 1, enableProfiling: false, maxProfilingBufferEntries: 1 };
  const official = web.TFLiteWebModelRunner.CreateFromBufferAndOptions(at, bytes.length, options).value();
  official.GetInputs().get(0).data().set(image);
  runs.tfjs = () => { official.Infer(); results.tfjs = official.GetOutputs().get(0).data(); };
}
if (ort) {
  const resolved = createRequire(`${ort}/package.json`).resolve("onnxruntime-web");
  const { default: web } = await import(pathToFileURL(resolved).href);
  web.env.wasm.numThreads = 1;
  const session = await web.InferenceSession.create(readFileSync(onnx), { executionProviders: ["wasm"] });
  const [n, h, w, c] = shape, planes = new Elements(size);
  for (let i = 0; i < size; i++) planes[(i % c) * h * w + Math.floor(i / c)] = image[i];
  const x = new web.Tensor(dtype, planes, [n, c, h, w]);
  runs.ort = async () => { results.ort = Object.values(await session.run({ x }))[0].data; };
}
const least = {}, most = {};
for (let turn = 0; turn < 30; turn++) {
  for (const [who, run] of Object.entries(runs)) {
    const start = performance.now();
    await run();
    least[who] = Math.min(least[who] ?? Infinity, (performance.now() - start) / 1e3);
  }
}
for (const [who, values] of Object.entries(results)) {
  most[who] = Math.max(...Array.from(results.ours, (x, i) => Math.abs(x - values[i])));
}
console.log(JSON.stringify({ least, most }));
process.exit(0);
"""


def times_in_node(kind: str) -> dict[str, dict[str, float]]:
    """Seconds of a run of MobileNetV2 in Node.js with vectors on one thread, ours and those of the peers that there
    are, in turn; most: the largest difference of their outputs from ours, of int8 in steps. kind: f32 or int8."""
    from opwright import aot

    folder, path = _folder(), models.path_of(NETWORK[0], kind)
    aot.build(path, "wasm32-simd128", folder, name="model")
    tfjs, ort = (os.environ.get(f"OPWRIGHT_PEER_{peer}", "") for peer in ("TFJS", "ORT_WEB"))
    if ort:
        command = [sys.executable, "-m", "benchmarks.peers.onnx_of_tflite", path, str(folder / "model.onnx")]
        subprocess.run(command, check=True)
    (folder / "turns.mjs").write_text(_IN_TURN)
    folders = [str(Path(peer).resolve()) if peer else "" for peer in (tfjs, ort)]
    command = ["node", "turns.mjs", path, *folders, str(folder / "model.onnx")]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    times: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return times


def times_of_iree(kind: str) -> dict[str, float]:
    """Seconds of a run of MobileNetV2 on this processor, on one thread: the least of ours, and the processor's time of
    IREE's (`iree-compile`, local-sync). kind: f32 or int8."""
    from opwright import aot

    folder, path, tools = _folder(), models.path_of(NETWORK[0], kind), Path(os.environ["OPWRIGHT_PEER_IREE"])
    aot.build(path, "host", folder, name="model")
    library = aot.load(folder)
    (note,) = library.notes["signatures"][0]["inputs"]
    image = np.zeros(note["shape"], note["dtype"])
    least = min(measure.time_batch(functools.partial(library, image), 1) for _ in range(60))
    backend = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    backend.append("--iree-llvmcpu-target-cpu=host")
    n, h, w, c = note["shape"]
    element = {"f32": "f32", "int8": "i8"}[kind]
    for command in (
        [sys.executable, "-m", "benchmarks.peers.onnx_of_tflite", path, str(folder / "model.onnx")],
        [tools / "iree-import-onnx", folder / "model.onnx", "-o", folder / "model.mlir", "--opset-version", "17"],
        [tools / "iree-compile", folder / "model.mlir", *backend, "-o", folder / "model.vmfb"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    command = [tools / "iree-benchmark-module", f"--module={folder / 'model.vmfb'}", "--device=local-sync"]
    command += ["--function=network", f"--input={n}x{c}x{h}x{w}x{element}=1", "--benchmark_format=json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    (row,) = json.loads(done.stdout)["benchmarks"]
    return {"ours": least, "IREE": row["cpu_time"] / {"ms": 1e3, "us": 1e6, "ns": 1e9}[row["time_unit"]]}


def main() -> None:
    """Print the figures whose tools are there."""
    board, arm = ("arm-none-eabi-gcc", "qemu-system-arm"), ("aarch64-linux-gnu-gcc", "qemu-aarch64", "cc")
    figures: list[tuple[str, tuple[str, ...], Callable[[], Any]]] = [
        ("keyword model, Cortex-M4, instructions", board, lambda: instructions_of_keywords("lib")),
        ("the same as C by GCC -O3", board, lambda: instructions_of_keywords("c")),
        ("MobileNetV2 int8, Neoverse N1, instructions", arm, instructions_on_arm),
        ("relative to the official interpreter's", arm, lambda: instructions_on_arm() / OFFICIAL_ARM),
        ("MobileNetV2 float32 here, s", ("OPWRIGHT_PEER_IREE",), lambda: times_of_iree("f32")),
        ("MobileNetV2 int8 here, s", ("OPWRIGHT_PEER_IREE",), lambda: times_of_iree("int8")),
        ("MobileNetV2 int8 in Node.js, s", ("node",), lambda: times_in_node("int8")),
        ("MobileNetV2 float32 in Node.js, s", ("node",), lambda: times_in_node("f32")),
    ]
    for what, tools, figure in figures:
        missing = [tool for tool in tools if not (os.environ.get(tool) or shutil.which(tool))]
        print(f"{what}: {'needs ' + ', '.join(missing) if missing else figure()}", flush=True)


ROWS: dict[str, measure.Prepare] = {
    "library_keywords_code": lambda: _built("cortex-m4").code,
    "library_keywords_arena": lambda: _built("cortex-m4").arena,
    "library_arm_code": lambda: _built("aarch64-dotprod").code,
    "library_build": seconds_of_build,
    "library_run": times_here,
    "library_start": seconds_to_first_answer,
}

if __name__ == "__main__":
    if sys.argv[1:]:
        measure.main(ROWS)
    else:
        main()
