"""Conversions of networks_all.py and their runs, for the tests of networks.  Not here: the networks, the checks."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter as Official
from ai_edge_litert.interpreter import OpResolverType
from networks_all import NETWORKS, built, inputs_of

import opwright as ow
from opwright.core import nest
from opwright.lite.format import Model, versions

lite = ow.lite
INT16 = lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
SIZES = json.loads(Path(__file__).with_name("networks_official.json").read_text("utf-8"))
DEEP = 4.0
"""Steps between the results of kernels that round sums of products differently, as the official default ones do and
compiled ones: through many layers this is more than a step, with official files as with these."""


@functools.cache
def model_of(name: str) -> Any:
    return built(ow, name)


def converter_of(name: str, kind: str = "float", runtime: str | None = None) -> Any:
    """A converter of a network. kind: float, float16, dynamic, int8, integers (int8, in and out, too), int16x8."""
    converter = lite.TFLiteConverter.from_keras_model(model_of(name))
    converter.target_spec.runtime = runtime
    converter.optimizations = [] if kind == "float" else [lite.Optimize.DEFAULT]
    if kind in ("int8", "integers", "int16x8"):
        converter.representative_dataset = lambda: (inputs_of(name, seed) for seed in range(4))
    if kind == "float16":
        converter.target_spec.supported_types = [ow.float16]
    if kind == "integers":
        converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = ow.int8
    if kind == "int16x8":
        converter.target_spec.supported_ops = [INT16, lite.OpsSet.TFLITE_BUILTINS]
    return converter


@functools.cache
def content_of(name: str, kind: str = "float", runtime: str | None = None) -> bytes:
    return converter_of(name, kind, runtime).convert()


@functools.cache
def eager(name: str) -> list[np.ndarray]:
    """Return the results of the eager network."""
    tensors, names = [ow.constant(x) for x in inputs_of(name)], NETWORKS[name].names
    given = dict(zip(names, tensors)) if names else tensors if len(tensors) > 1 else tensors[0]
    return [np.asarray(y) for y in nest.flatten(model_of(name)(given))]


def official(content: bytes, kernels: OpResolverType = OpResolverType.AUTO) -> Official:
    return Official(model_content=content, experimental_op_resolver_type=kernels)


def own(content: bytes) -> Any:
    return lite.Interpreter(model_content=content)


def run(interpreter: Any, inputs: list[np.ndarray]) -> list[tuple[np.ndarray, float]]:
    """Outputs, each with its scale, 0.0 where it has none; integers of quantised inputs stand for the reals."""
    details = interpreter.get_input_details()
    for detail, x in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != x.shape:
            interpreter.resize_tensor_input(detail["index"], x.shape)
    interpreter.allocate_tensors()
    for detail, x in zip(details, inputs, strict=True):
        scale, point = detail["quantization"]
        if scale and detail["dtype"] != np.float32:
            limits = np.iinfo(detail["dtype"])
            x = np.clip(np.rint(x / scale) + point, limits.min, limits.max).astype(detail["dtype"])
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return [(interpreter.get_tensor(d["index"]), float(d["quantization"][0])) for d in interpreter.get_output_details()]


def real(interpreter: Any, found: list[tuple[np.ndarray, float]]) -> list[np.ndarray]:
    """Outputs as numbers."""
    points = [d["quantization"][1] for d in interpreter.get_output_details()]
    return [(y - np.float64(p)) * s if s and y.dtype.kind in "iu" else y for (y, s), p in zip(found, points)]


def scales(content: bytes) -> list[float]:
    """The scale of each output, or of the tensor that is dequantised to it; 0.0 where there is none."""
    model = Model.read(content)
    graph = model.subgraphs[0]
    made = {int(t): op for op in graph.operators for t in op.outputs}
    found = []
    for t in map(int, graph.outputs):
        op = made.get(t)
        if op is not None and versions.op_name(model.operator_codes[op.opcode_index]) == "DEQUANTIZE":
            t = int(op.inputs[0])
        quantization = graph.tensors[t].quantization
        known = None if quantization is None else quantization.scale
        found.append(float(known[0]) if known is not None and len(known) else 0.0)
    return found


def snr(wanted: list[np.ndarray], found: list[np.ndarray]) -> float:
    """Signal to noise in dB of the worst output."""
    noise = [np.sum((a.astype(np.float64) - b) ** 2) + 1e-30 for a, b in zip(wanted, found, strict=True)]
    signal = [np.sum(a.astype(np.float64) ** 2) + 1e-30 for a in wanted]
    return float(min(10 * np.log10(s / n) for s, n in zip(signal, noise)))
