"""PyTorch networks to `.tflite` files by this package and by litert-torch, each in its own environment.

    python benchmarks/torch_converters.py convert opwright -o FOLDER      # with torch, torchvision
    python benchmarks/torch_converters.py convert litert_torch -o FOLDER  # with torch, torchvision, litert-torch
    python benchmarks/torch_converters.py compare FOLDER                  # with ai-edge-litert

`convert` writes a file for each network, and the processor time from module to file. `compare` runs the files in the
official interpreter: operators, TRANSPOSE, bytes, the largest error relative to eager PyTorch's largest element, the
least milliseconds of a call with one thread. Weights are random, batch norms have the statistics of the input.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

MODELS = [
    "squeezenet1_1",
    "shufflenet_v2_x0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "mnasnet0_5",
    "resnet18",
    "regnet_y_400mf",
    "googlenet",
    "efficientnet_b0",
    "densenet121",
    "resnet50",
    "convnext_tiny",
]
SIZE = 96


def network(name: str) -> tuple[Any, Any]:
    """Return a network and an input, the same in each environment of one version of torch."""
    import torch
    from torchvision import models

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "frontends"))
    from torch_survey import settled

    torch.manual_seed(0)
    options = {"init_weights": False} if name == "googlenet" else {}
    x = torch.randn(1, 3, SIZE, SIZE)
    return settled(getattr(models, name)(weights=None, **options), x), x


def by_opwright(module: Any, x: Any, path: Path) -> None:
    import torch

    import opwright as ow

    with torch.no_grad():
        function = ow.from_torch(module, (x,))
    ow.lite.TFLiteConverter.from_concrete_functions([function.concrete()]).write(path)


def by_litert_torch(module: Any, x: Any, path: Path) -> None:
    import litert_torch

    litert_torch.convert(module, (x,)).export(str(path))


TOOLS = {"opwright": by_opwright, "litert_torch": by_litert_torch}


def convert(tool: str, folder: Path, names: list[str]) -> None:
    """Write files, inputs and results, and a line of JSON for each network."""
    import torch

    torch.set_num_threads(1)
    TOOLS[tool](torch.nn.Conv2d(3, 3, 1).eval(), torch.randn(1, 3, 8, 8), folder / "first.tflite")  # imports
    for name in names:
        module, x = network(name)
        with torch.no_grad():
            y = module(x)
            np.savez(folder / f"{name}.npz", x=x.numpy(), y=y.numpy())
            start = time.process_time()
            torch.export.export(module, (x,), strict=False)
            exported = time.process_time() - start
        row = {"tool": tool, "model": name, "export": exported}
        start = time.process_time()
        try:
            TOOLS[tool](module, x, folder / f"{name}.{tool}.tflite")
        except Exception as error:  # a network that is not converted is a row of the table
            row["error"] = f"{type(error).__name__}: {error}"[:200]
        row["seconds"] = time.process_time() - start
        with (folder / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def compare(folder: Path) -> None:
    """Print the table."""
    from ai_edge_litert.interpreter import Interpreter

    print("| Network | Converter | Seconds | of export | MB | Operators | TRANSPOSE | Error | ms a call |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    for row in sorted(rows, key=lambda r: MODELS.index(r["model"])):
        name, tool = row["model"], row["tool"]
        start = f"| {name} | {tool} | {row['seconds']:.1f} | {row['export']:.1f} | "
        if "error" in row:
            print(start + row["error"] + " | | | | |")
            continue
        path = folder / f"{name}.{tool}.tflite"
        saved = np.load(folder / f"{name}.npz")
        interpreter = Interpreter(str(path), num_threads=1)
        operators = collections.Counter(
            o["op_name"] for o in interpreter._get_ops_details() if o["op_name"] != "DELEGATE"
        )
        interpreter.allocate_tensors()
        (x,), (y,) = interpreter.get_input_details(), interpreter.get_output_details()
        image = saved["x"]
        interpreter.set_tensor(
            x["index"], image if tuple(x["shape"]) == image.shape else np.ascontiguousarray(image.transpose(0, 2, 3, 1))
        )
        times = []
        for _ in range(20):
            begin = time.perf_counter()
            interpreter.invoke()
            times.append(time.perf_counter() - begin)
        error = np.abs(interpreter.get_tensor(y["index"]) - saved["y"]).max() / np.abs(saved["y"]).max()
        print(
            start + f"{path.stat().st_size / 1e6:.1f} | {sum(operators.values())} | {operators['TRANSPOSE']} | "
            f"{error:.0e} | {min(times) * 1e3:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    converting = commands.add_parser("convert")
    converting.add_argument("tool", choices=TOOLS)
    converting.add_argument("-o", type=Path, required=True)
    converting.add_argument("--models", nargs="*", default=MODELS)
    comparing = commands.add_parser("compare")
    comparing.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        compare(options.folder)
        return
    options.o.mkdir(parents=True, exist_ok=True)
    convert(options.tool, options.o, options.models)


if __name__ == "__main__":
    main()
