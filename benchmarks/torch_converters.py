"""PyTorch networks to `.tflite` files by this package and by litert-torch, each in its own environment.

    python benchmarks/torch_converters.py convert opwright -o FOLDER      # with torch, torchvision, timm
    python benchmarks/torch_converters.py convert litert_torch -o FOLDER  # with torch, torchvision, timm, litert-torch
    python benchmarks/torch_converters.py compare FOLDER                  # with ai-edge-litert

`convert` writes a file for each network, and the processor time from module to file. `compare` runs the files in the
official interpreter: operators, TRANSPOSE, bytes, the largest error relative to eager PyTorch's largest element, the
least milliseconds of a call with one thread. Weights are random, batch norms have the statistics of the input.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

NAMES = """
squeezenet1_1 shufflenet_v2_x0_5 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large mnasnet0_5 resnet18 resnet50
resnext50_32x4d regnet_x_400mf regnet_y_400mf googlenet inception_v3 efficientnet_b0 efficientnet_v2_s densenet121
convnext_tiny alexnet vgg11_bn swin_t swin_v2_t vit_b_32 maxvit_t segmentation.lraspp_mobilenet_v3_large
segmentation.deeplabv3_mobilenet_v3_large segmentation.fcn_resnet50 timm.ghostnet_100 timm.mobileone_s0
timm.repvgg_a0 timm.fbnetc_100 timm.mixnet_s timm.edgenext_xx_small timm.poolformer_s12 timm.mixer_s32_224
timm.levit_128s timm.mobilevit_xxs timm.resmlp_12_224 timm.dla46_c timm.lcnet_050 timm.rexnet_100
"""
MODELS = NAMES.split()
"""Networks of torchvision, and of timm."""
SIZE = 96
SIZES = dict.fromkeys(("vit_b_32", "maxvit_t", "timm.mixer_s32_224", "timm.levit_128s", "timm.resmlp_12_224"), 224)


def network(name: str) -> tuple[Any, Any]:
    """Return a network and an input, the same in each environment of one version of torch."""
    import torch

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "frontends"))
    from torch_survey import settled

    torch.manual_seed(0)
    size = SIZES.get(name, SIZE)
    x = torch.randn(1, 3, size, size)
    library, _, member = name.rpartition(".")
    if library == "timm":
        import timm

        return settled(timm.create_model(member, pretrained=False), x), x
    from torchvision import models

    options: dict[str, Any] = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if not library:
        return settled(getattr(models, name)(weights=None, **options), x), x
    module = models.segmentation.__dict__[member](weights=None, weights_backbone=None)
    return _First(settled(module, x)), x


def _First(module: Any) -> Any:
    """Return a module with the result "out" alone."""
    import torch

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: Any) -> Any:
            return self.module(x)["out"]

    return First().eval()


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
        path = folder / f"{name}.{tool}.tflite"
        if path.exists():  # a run goes on where the last one ended
            continue
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
            TOOLS[tool](module, x, path)
        except Exception as error:  # a network that is not converted is a row of the table
            row["error"] = f"{type(error).__name__}: {error}"[:200]
            path.touch()
        row["seconds"] = time.process_time() - start
        with (folder / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def compare(folder: Path) -> None:
    """Print the table, and the medians of each converter over the networks that all of them convert."""
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    names = [name for name in MODELS if any(r["model"] == name for r in rows)]
    measured: dict[str, dict[str, list[float]]] = collections.defaultdict(dict)
    print("| Network | Converter | Seconds | of export | MB | Operators | TRANSPOSE | Error | ms a call |")
    print("|---|---|---|---|---|---|---|---|---|")
    calls: dict[tuple[str, str], float] = {}
    for row in sorted(rows, key=lambda r: names.index(r["model"])):
        name, tool = row["model"], row["tool"]
        if not any(known == name for known, _ in calls):
            tools = [r["tool"] for r in rows if r["model"] == name and "error" not in r]
            calls |= {(name, t): ms for t, ms in _least_times(folder, name, tools).items()}
        start = f"| {name} | {tool} | {row['seconds']:.1f} | {row['export']:.1f} | "
        try:
            figures = {} if "error" in row else _figures(folder, name, tool)
        except Exception as error:  # a file that the official interpreter does not run is one of the table
            row["error"] = f"the file does not run: {error}"[:200]
        if "error" in row:
            print(start + row["error"].replace("|", "/").splitlines()[0] + " | | | | |")
            continue
        figures["ms"] = calls[name, tool]
        measured[tool][name] = [row["seconds"], *figures.values()]
        print(
            start + f"{figures['MB']:.1f} | {figures['operators']:.0f} | {figures['TRANSPOSE']:.0f} | "
            f"{figures['error']:.0e} | {figures['ms']:.1f} |"
        )
    common = [n for n in names if all(n in of_tool for of_tool in measured.values())]
    print(f"\nMedians of the {len(common)} networks that all convert, of {len(names)}:\n")
    print("| Converter | Converts | Seconds | MB | Operators | TRANSPOSE | Error | ms a call |\n" + "|---" * 8 + "|")
    for tool, of_tool in measured.items():
        middle = np.median([of_tool[n] for n in common], 0)
        seconds, size, operators, transposes, error, ms = middle
        print(
            f"| {tool} | {len(of_tool)} | {seconds:.1f} | {size:.1f} | {operators:.0f} | {transposes:.0f} | "
            f"{error:.0e} | {ms:.2f} |"
        )


def _runner(folder: Path, name: str, tool: str) -> tuple[Any, np.ndarray]:
    """Return the official interpreter of one file, its input set, and the expected result in the file's layout."""
    from ai_edge_litert.interpreter import Interpreter

    saved = np.load(folder / f"{name}.npz")
    interpreter = Interpreter(str(folder / f"{name}.{tool}.tflite"), num_threads=1)
    interpreter.allocate_tensors()
    (x,), (y,) = interpreter.get_input_details(), interpreter.get_output_details()
    image, expected = saved["x"], saved["y"]
    if tuple(x["shape"]) != image.shape:
        image = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    if expected.ndim == 4 and tuple(y["shape"]) != expected.shape:
        expected = expected.transpose(0, 2, 3, 1)
    interpreter.set_tensor(x["index"], image)
    interpreter.invoke()
    return interpreter, expected


def _least_times(folder: Path, name: str, tools: list[str], rounds: int = 15) -> dict[str, float]:
    """Return the least milliseconds of a call by tool, whose files run in turn, so that other work slows all alike."""
    runners, least = {}, dict.fromkeys(tools, float("inf"))
    for tool in tools:
        with contextlib.suppress(RuntimeError, ValueError):  # a file that does not run is a row of the table
            runners[tool] = _runner(folder, name, tool)[0]
    for _ in range(rounds):
        for tool, interpreter in runners.items():
            begin = time.perf_counter()
            interpreter.invoke()
            least[tool] = min(least[tool], (time.perf_counter() - begin) * 1e3)
    return least


def _figures(folder: Path, name: str, tool: str) -> dict[str, float]:
    """Return figures of one file in the official interpreter, but for its speed."""
    interpreter, expected = _runner(folder, name, tool)
    operators = collections.Counter(o["op_name"] for o in interpreter._get_ops_details() if o["op_name"] != "DELEGATE")
    (y,) = interpreter.get_output_details()
    return {
        "MB": (folder / f"{name}.{tool}.tflite").stat().st_size / 1e6,
        "operators": sum(operators.values()),
        "TRANSPOSE": operators["TRANSPOSE"],
        "error": float(np.abs(interpreter.get_tensor(y["index"]) - expected).max() / np.abs(expected).max()),
    }


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
