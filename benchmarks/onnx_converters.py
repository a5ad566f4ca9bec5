"""ONNX models to `.tflite` files by this package and by onnx2tf, each in its own environment.

    python benchmarks/onnx_converters.py export -o FOLDER             # with torch, torchvision, onnxscript
    python benchmarks/onnx_converters.py convert opwright -o FOLDER   # with onnx
    python benchmarks/onnx_converters.py convert onnx2tf -o FOLDER    # with onnx2tf
    python benchmarks/onnx_converters.py compare FOLDER               # with ai-edge-litert

`export` writes networks of torchvision as ONNX models, with inputs and results of PyTorch. `convert` writes a file for
each, and the processor time from ONNX file to `.tflite` file. `compare` prints a table as torch_converters.py does.
onnx2tf makes inputs and results of images channels-last; `compare` gives it images in this order. It would also write
a saved model and a float16 file, which take most of its time and memory, and are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import torch_converters

MODELS = torch_converters.MODELS


def export(folder: Path, names: list[str]) -> None:
    """Write ONNX models, inputs and results."""
    import torch

    for name in names:
        if (folder / f"{name}.onnx").exists():  # a run goes on where the last one ended
            continue
        module, x = torch_converters.network(name)
        with torch.no_grad():
            np.savez(folder / f"{name}.npz", x=x.numpy(), y=module(x).numpy())
            torch.onnx.export(module, (x,), folder / f"{name}.onnx", dynamo=True, external_data=False)


def by_opwright(model: Path, path: Path) -> None:
    import opwright as ow

    function = ow.from_onnx(model, input_layout="nhwc", output_layout="nhwc")  # as onnx2tf
    ow.lite.TFLiteConverter.from_concrete_functions([function.named().get_concrete_function()]).write(path)


class _Enough(Exception):
    """Raised in place of a second file."""


def by_onnx2tf(model: Path, path: Path) -> None:
    import onnx2tf
    import tensorflow as tf

    convert = tf.lite.TFLiteConverter.convert

    def first_file(converter: Any) -> bytes:
        if converter.target_spec.supported_types:
            raise _Enough
        return bytes(convert(converter))

    patches = contextlib.ExitStack()
    patches.enter_context(mock.patch.object(tf.saved_model, "save"))
    patches.enter_context(mock.patch.object(tf.lite.TFLiteConverter, "convert", first_file))
    patches.enter_context(contextlib.suppress(_Enough))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        images = np.random.default_rng(0).random((20, 128, 128, 3), np.float32)
        np.save("calibration_image_sample_data_20x128x128x3_float32.npy", images)  # else it downloads some
        with patches:
            onnx2tf.convert(
                input_onnx_file_path=str(model), output_folder_path=folder, non_verbose=True, not_use_onnxsim=False
            )
        shutil.copy(Path(folder) / f"{model.stem}_float32.tflite", path)


TOOLS = {"opwright": by_opwright, "onnx2tf": by_onnx2tf}


def convert(tool: str, folder: Path, names: list[str]) -> None:
    """Write files, and a line of JSON for each network."""
    names = [n for n in names if (folder / f"{n}.onnx").exists() and not (folder / f"{n}.{tool}.tflite").exists()]
    TOOLS[tool](_first(folder), (folder / f"first.{tool}.tflite").resolve())  # imports
    for name in names:
        path = (folder / f"{name}.{tool}.tflite").resolve()
        row: dict[str, Any] = {"tool": tool, "model": name, "export": 0.0}
        start = time.process_time()
        try:
            TOOLS[tool]((folder / f"{name}.onnx").resolve(), path)
        except (Exception, SystemExit) as error:  # a network that is not converted is a row of the table
            row["error"] = f"{type(error).__name__}: {error}"[:200]
            path.touch()
        row["seconds"] = time.process_time() - start
        with (folder / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def _first(folder: Path) -> Path:
    """Write a model of one convolution."""
    import onnx
    from onnx import helper, numpy_helper

    path = (folder / "first.onnx").resolve()
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 3, 8, 8]) for name in "xy")
    w = numpy_helper.from_array(np.ones((3, 3, 1, 1), np.float32), "w")
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "first", [x], [y], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    exporting, converting = commands.add_parser("export"), commands.add_parser("convert")
    converting.add_argument("tool", choices=TOOLS)
    for command in (exporting, converting):
        command.add_argument("-o", type=Path, required=True)
        command.add_argument("--models", nargs="*", default=MODELS)
    comparing = commands.add_parser("compare")
    comparing.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        torch_converters.compare(options.folder)
        return
    options.o.mkdir(parents=True, exist_ok=True)
    if options.command == "export":
        export(options.o, options.models)
    else:
        convert(options.tool, options.o, options.models)


if __name__ == "__main__":
    main()
