"""Programs on emulated boards with Cortex-M, and the keyword model that they run."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np

import opwright as ow
from opwright.core import dtypes

HERE = Path(__file__).parent / "board"
TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm")
missing_tools = [tool for tool in TOOLS if not shutil.which(tool)]


class Board(NamedTuple):
    """An emulated board. machine: of QEMU; flags: of GCC; code, data: where memory begins."""

    machine: str
    flags: str
    code: str = "0x0"
    data: str = "0x20000000"


BOARDS = {
    "cortex-m0plus": Board("mps2-an385", "-mcpu=cortex-m0plus -mfloat-abi=soft"),  # a Cortex-M3 executes its code
    "cortex-m3": Board("mps2-an385", "-mcpu=cortex-m3 -mfloat-abi=soft"),
    "cortex-m4": Board("mps2-an386", "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16"),
    "cortex-m4-soft": Board("mps2-an386", "-mcpu=cortex-m4 -mfloat-abi=soft"),
    "cortex-m7": Board("mps2-an500", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16"),
    "cortex-m33": Board(
        "mps2-an505", "-mcpu=cortex-m33 -mfloat-abi=hard -mfpu=fpv5-sp-d16", "0x10000000", "0x38000000"
    ),
    "cortex-m55": Board("mps3-an547", "-mcpu=cortex-m55 -mfloat-abi=hard", "0x10000000", "0x31000000"),
}


def run_on(board: Board, folder: Path, sources: list, flags: str = "-O1") -> list[str]:
    """Compile, link and run a program; return the words that it prints."""
    script = (HERE / "board.ld").read_text().replace("CODE", board.code).replace("DATA", board.data)
    (folder / "board.ld").write_text(script)
    compiler = ["arm-none-eabi-gcc", *flags.split(), *board.flags.split(), "-mthumb", "-ffreestanding"]
    link = ["-nostartfiles", "-T", folder / "board.ld", "-lm", "-lc", "-lgcc", "-o", folder / "program.elf"]
    command = [*compiler, f"-I{HERE}", f"-I{folder}", HERE / "start.c", *sources, *link]
    subprocess.run(command, check=True, capture_output=True)
    emulator = ["qemu-system-arm", "-M", board.machine, "-nographic", "-semihosting", "-icount", "shift=0"]
    run = subprocess.run([*emulator, "-kernel", folder / "program.elf"], capture_output=True, text=True, timeout=120)
    return (run.stdout + run.stderr).split()


def program_of(name: str, inputs: dict, outputs: dict) -> str:
    """Return a program that runs a library on inputs of int8 once, and prints status, ticks and outputs of int8."""
    big = name.upper()
    fields = [f"static const int8_t {k}[] = {{{', '.join(map(str, v.reshape(-1)))}}};" for k, v in inputs.items()]
    fields += [f"static int8_t {k}[{size}];" for k, size in outputs.items()]
    prints = "".join(f"  for (i = 0; i < {size}; i++) print_number({k}[i]);\n" for k, size in outputs.items())
    return f"""#include "{name}.h"
#include "board.h"
static uint8_t memory[{big}_ARENA_SIZE + {big}_ARENA_ALIGN];
{chr(10).join(fields)}
int main(void) {{
  struct {name}_inputs in = {{{", ".join(inputs)}}};
  struct {name}_outputs out = {{{", ".join(outputs)}}};
  uint8_t *arena = memory + ({big}_ARENA_ALIGN - (uintptr_t)memory % {big}_ARENA_ALIGN) % {big}_ARENA_ALIGN;
  int i, status;
  start_ticks();
  status = {name}_run(&in, &out, arena, {big}_ARENA_SIZE);
  i = (int)ticks();
  print_number(status);
  print_number(i);
{prints}  return 0;
}}
"""


def keyword_model() -> bytes:
    """Return the DS-CNN of MLPerf Tiny's keyword spotting in int8, with random weights (22,604 and their biases).

    Source: C. Banbury et al., MLPerf Tiny Benchmark, 2021; Y. Zhang et al., Hello Edge, 2017.
    """
    rng = np.random.default_rng(0)

    def normal(*shape, fan):
        return (rng.normal(size=shape) * np.sqrt(2 / fan)).astype(np.float32)

    first, first_bias = normal(10, 4, 1, 64, fan=40), normal(64, fan=200)
    blocks = [
        (normal(3, 3, 64, 1, fan=9), normal(64, fan=200), normal(1, 1, 64, 64, fan=64), normal(64, fan=200))
        for _ in range(4)
    ]
    dense, dense_bias = normal(64, 12, fan=64), normal(12, fan=200)

    @ow.function(input_signature=[ow.TensorSpec([1, 49, 10, 1], ow.float32, name="features")])
    def keywords(x):
        x = ow.nn.relu(ow.nn.conv2d(x, first, 2, "SAME") + first_bias)
        for depthwise, depthwise_bias, pointwise, pointwise_bias in blocks:
            x = ow.nn.relu(ow.nn.depthwise_conv2d(x, depthwise, (1, 1, 1, 1), "SAME") + depthwise_bias)
            x = ow.nn.relu(ow.nn.conv2d(x, pointwise, 1, "SAME") + pointwise_bias)
        x = ow.reshape(ow.nn.avg_pool2d(x, [25, 5], [25, 5], "VALID"), [1, 64])
        return {"scores": ow.nn.softmax(x @ dense + dense_bias)}

    converter = ow.lite.TFLiteConverter.from_concrete_functions([keywords.get_concrete_function()], keywords)
    converter.optimizations = [ow.lite.Optimize.DEFAULT]
    images = rng.normal(size=(8, 1, 49, 10, 1)).astype(np.float32)
    converter.representative_dataset = lambda: ([image] for image in images)
    converter.target_spec.supported_ops = [ow.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = ow.int8
    return converter.convert()


def program_of_model(notes: dict, feeds: list) -> str:
    """Return a program that runs a library of one signature twice, and prints the status, ticks, and the shapes and
    words of outputs of the second run. notes: the description of the library; feeds: arrays for its inputs."""
    name, big = notes["name"], notes["name"].upper()
    (signature,) = notes["signatures"]
    lines = [f'#include "{name}.h"', '#include "board.h"', "#include <stddef.h>"]
    setup, prints = [], []
    for port, x in zip(signature["inputs"], feeds, strict=True):
        words = np.frombuffer(x.tobytes() + bytes(-x.nbytes % 4 + 4), np.uint32)
        lines.append(
            f"static _Alignas(16) const uint32_t in_{port['identifier']}[] = {{{', '.join(map(str, words))}}};"
        )
        setup.append(f"in.{port['identifier']} = (void *)in_{port['identifier']};")
    for port in signature["outputs"]:
        field, size = port["identifier"], -(-nbytes_of(port) // 4)
        lines.append(f"static _Alignas(16) int32_t out_{field}[{size + 1}];")
        setup.append(f"out.{field} = (void *)out_{field};")
        if port["varies"]:
            prints += [f"print_number((int32_t)out.{field}_shape[{i}]);" for i in range(len(port["shape"]))]
        prints.append(f"for (i = 0; i < {size}; i++) print_number(out_{field}[i]);")
    if notes["state"]:
        lines.append(f"static struct {name}_state state;")
        setup.append(f"{name}_reset(&state);")
    arguments = f"&in, &out, {'&state, ' if notes['state'] else ''}arena, {big}_ARENA_SIZE"
    return "\n".join(
        [
            *lines,
            f"static _Alignas({big}_ARENA_ALIGN) uint8_t arena[{big}_ARENA_SIZE];",
            f"static struct {name}_inputs in;",
            f"static struct {name}_outputs out;",
            "int main(void) {",
            "  int i, status;",
            *(f"  {line}" for line in setup),
            f"  status = {name}_run({arguments});",
            "  start_ticks();",
            f"  status |= {name}_run({arguments});",
            "  i = (int)ticks();",
            "  print_number(status);",
            "  print_number(i);",
            *(f"  {line}" for line in prints),
            "  return 0;",
            "}",
            "",
        ]
    )


def outputs_of_model(notes: dict, words: list[str]) -> list[np.ndarray]:
    """Return the arrays that a program of `program_of_model` has printed, after the status and the ticks."""
    rest, arrays = [int(w) for w in words], []
    for port in notes["signatures"][0]["outputs"]:
        shape, nbytes = port["shape"], nbytes_of(port)
        if port["varies"]:
            shape, rest = rest[: len(shape)], rest[len(shape) :]
        count = -(-nbytes // 4)
        array = np.frombuffer(np.array(rest[:count], np.int32).tobytes()[:nbytes], dtypes.as_dtype(port["dtype"]).np)
        arrays.append(array[: np.prod(shape, dtype=np.int64)].reshape(shape))
        rest = rest[count:]
    assert not rest, "the program printed more"
    return arrays


def nbytes_of(port: dict) -> int:
    """Return the size of an input or output in a description."""
    return int(np.prod(port["shape"], dtype=np.int64)) * np.dtype(dtypes.as_dtype(port["dtype"]).np).itemsize
