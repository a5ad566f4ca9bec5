"""Conversions of quantize_networks.py and their runs: what the tests of quantisation share."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from lite_kit import op_names
from quantize_networks import NETWORKS, SPARSE, samples_of, weights_of

import opwright as ow
from opwright.core import nest
from opwright.lite.format import Model

INT16 = ow.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
OFFICIAL = json.loads(Path(__file__).with_name("quantize_official.json").read_text("utf-8"))


@functools.cache
def function_of(name: str) -> Any:
    return ow.function((NETWORKS | SPARSE)[name].make(ow, weights_of(name)))


def converter_of(function: Any, shapes: Any, samples: Any = None, kind: str = "int8", **settings: Any) -> Any:
    """A converter set to quantise. kind: float, float16, dynamic, int8, integers (int8 and no other), int16x8."""
    specs = [ow.TensorSpec(shape, ow.float32) for shape in shapes]
    converter = ow.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function(*specs)], function)
    converter.optimizations = [] if kind == "float" else [ow.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [ow.float16]
    if kind.startswith("int"):
        converter.representative_dataset = lambda: iter(samples)
    if kind == "integers":
        converter.target_spec.supported_ops = [ow.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if kind == "int16x8":
        converter.target_spec.supported_ops = [INT16, ow.lite.OpsSet.TFLITE_BUILTINS]
    for key, value in settings.items():
        setattr(converter, key, value)
    return converter


@functools.cache
def content_of(name: str, kind: str) -> bytes:
    return converter_of(function_of(name), NETWORKS[name].shapes, samples_of(name), kind).convert()


def convert(
    call: Callable[..., Any],
    *shapes: tuple[int, ...],
    kind: str = "int8",
    samples: Any = None,
    scale: float = 1.0,
    **settings: Any,
) -> bytes:
    """The file of a plain function of float32 arguments, calibrated on uniform numbers."""
    if samples is None:
        random = np.random.RandomState(0)
        samples = [[scale * random.uniform(-1, 1, s).astype(np.float32) for s in shapes] for _ in range(8)]
    return converter_of(ow.function(call), shapes, samples, kind, **settings).convert()


def litert(content: bytes, *, reference: bool = False) -> Interpreter:
    kernels = OpResolverType.BUILTIN_REF if reference else OpResolverType.AUTO
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Any, sample: list[np.ndarray], *, real: bool = True) -> list[np.ndarray]:
    """Answers of an interpreter, ours or the official one; integers of quantised inputs and outputs stand for reals."""
    for detail, value in zip(interpreter.get_input_details(), sample):
        interpreter.set_tensor(detail["index"], integers(value, detail))
    interpreter.invoke()
    result = [(interpreter.get_tensor(d["index"]), d) for d in interpreter.get_output_details()]
    return [reals(value, detail) if real else value for value, detail in result]


def integers(value: np.ndarray, detail: dict[str, Any]) -> np.ndarray:
    scale, point = detail["quantization"]
    dtype = np.dtype(detail["dtype"])
    if dtype.kind == "f" or not scale:
        return value
    limits = np.iinfo(dtype)
    return np.clip(np.rint(value / scale) + point, limits.min, limits.max).astype(dtype)


def reals(value: np.ndarray, detail: dict[str, Any]) -> np.ndarray:
    scale, point = detail["quantization"]
    return value if value.dtype.kind == "f" or not scale else (value.astype(np.float64) - point) * scale


def answers(function: Any, sample: list[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(t) for t in nest.flatten(function(*map(ow.constant, sample)))]


def snr(pairs: Any) -> float:
    """Signal to noise in dB over pairs of lists of arrays: wanted, found."""
    signal = noise = 1e-30
    for expected, actual in pairs:
        for a, b in zip(expected, actual, strict=True):
            assert a.shape == b.shape
            signal += np.sum(a.astype(np.float64) ** 2)
            noise += np.sum((a.astype(np.float64) - b) ** 2)
    return float(10 * np.log10(signal / noise))


def operators(content: bytes) -> list[str]:
    """Names of the operators of all subgraphs, in order."""
    return op_names(content, None)


def tensor_types(content: bytes, subgraph: int = 0) -> set[str]:
    return {t.type.name for t in Model.read(content).subgraphs[subgraph].tensors}
