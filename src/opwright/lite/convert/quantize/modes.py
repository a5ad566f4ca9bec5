"""Modes of quantisation: the kind that the settings of a converter ask for, and errors for settings at odds.

Lives here: `Mode`; the interpretation of optimizations, supported_ops, supported_types, representative_dataset and of
the types of inputs and outputs, with the official converter's rules and error texts.
Not here: the settings themselves (options.py), quantisation (the other modules of this package).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....core.dtypes import DType, float16, float32, int8, int16, int32, int64, uint8
from ....core.errors import InvalidArgumentError
from ....graph import Graph
from ...format import versions
from ..errors import ConverterError
from ..options import OpsSet, Optimize, as_type
from .explicit import is_stated

FLOAT, FLOAT16, DYNAMIC, INT8, INT16 = "float", "float16", "dynamic range", "int8", "int16x8"
# The first run times with kernels for each kind; the version rules do not cover them.
SINCE = {FLOAT16: "1.15.0", DYNAMIC: "1.14.0", INT8: "1.14.0", INT16: "2.3.0"}
TRAINED = frozenset({"FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars"})
INT16_SET = OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8


class Mode(NamedTuple):
    """How to quantise. kind: one of the five above.

    allow_float: operators without integer kernel stay float; else they are an error. per_channel, per_channel_dense:
    whether weights get a scale for each output channel, and those of FULLY_CONNECTED. bias: type of biases.
    inputs, outputs: type of the model's inputs and outputs that are float32. runtime: the oldest run time that must
    have every operator in the form it gets, None for no limit. sparse: weights of many zeros are stored without them.
    explicit: integers are what the program itself quantizes, and nothing else.
    """

    kind: str = FLOAT
    allow_float: bool = True
    per_channel: bool = True
    per_channel_dense: bool = True
    bias: str = "int32"
    inputs: str = "float32"
    outputs: str = "float32"
    runtime: str | None = None
    sparse: bool = False
    explicit: bool = False

    def too_new(self, needed: str) -> bool:
        """Return whether the run time asked for is older than `needed`."""
        return self.runtime is not None and versions.is_newer(needed, self.runtime)

    @property
    def calibrated(self) -> bool:
        """Return whether activations become integers, which needs their ranges."""
        return self.kind in (INT8, INT16)

    @property
    def activations(self) -> str:
        """Return the type of activations."""
        return {INT8: "int8", INT16: "int16"}.get(self.kind, "float32")


def mode_of(settings: Any) -> Mode:
    """Return the mode that a converter's settings ask for.

    raises InvalidArgumentError (a ValueError) where they are at odds; ConverterError where the run time asked for has
    no kernels for them
    """
    kind, allow_float = _kind(settings)
    per_channel = not settings._experimental_disable_per_channel
    dense = per_channel and not settings._experimental_disable_per_channel_quantization_for_dense_layers
    mode = Mode(
        kind,
        allow_float,
        per_channel,
        dense,
        _bias(settings, kind),
        as_type(settings.inference_input_type).name,
        as_type(settings.inference_output_type).name,
        settings.target_spec.runtime,
        Optimize.EXPERIMENTAL_SPARSITY in settings.optimizations,
    )
    _check_ends(mode)
    since = SINCE.get(kind, "")
    if mode.too_new(since):
        raise ConverterError(
            what=f"nothing of {kind} quantisation runs on run time {mode.runtime}",
            found=f"target_spec.runtime = {mode.runtime!r}",
            wanted=f"{since} or later",
            do="converter.optimizations = [], for a float model",
        )
    return mode


def explicit_mode(mode: Mode, bits: set[int]) -> Mode:
    """Return the mode for a program that quantizes values itself, to integers of these bits.

    Settings that ask for more than a float model are kept.
    """
    kind = INT16 if bits == {16} else INT8
    if mode.kind != FLOAT or mode.too_new(SINCE[kind]):
        return mode
    return mode._replace(kind=kind, explicit=True, bias="int64" if kind == INT16 else "int32")


def _kind(settings: Any) -> tuple[str, bool]:
    target, data = settings.target_spec, settings.representative_dataset
    sets, types = set(target.supported_ops), {as_type(t) for t in target.supported_types}
    asked = bool(set(settings.optimizations) - {Optimize.EXPERIMENTAL_SPARSITY})
    whole = sets == {OpsSet.TFLITE_BUILTINS_INT8} or types == {int8}
    if sets == {OpsSet.TFLITE_BUILTINS_INT8} and types - {int8}:
        raise InvalidArgumentError(
            what="As full integer quantization has been enabled by setting `target_spec.supported_ops`="
            "{tf.lite.OpsSet.TFLITE_BUILTINS_INT8}, thus `target_spec.supported_types` should be left uninitizalized "
            "or set to {tf.int8}.",
            found=", ".join(sorted(str(t) for t in types)),
        )
    integers = OpsSet.TFLITE_BUILTINS_INT8 in sets or INT16_SET in sets or types == {int8}
    if integers and data is None and not _is_trained(settings):
        raise InvalidArgumentError(
            what="For full integer quantization, a `representative_dataset` must be specified.",
            do="converter.representative_dataset = a function that yields lists of inputs",
        )
    if integers and not asked:
        raise InvalidArgumentError(
            what="target_spec asks for integer operators, but no optimization is enabled",
            do="converter.optimizations = [Optimize.DEFAULT]",
        )
    if not asked:
        if types - {float32}:
            raise InvalidArgumentError(
                what="target_spec.supported_types names types of weights, but no optimization is enabled",
                found=", ".join(sorted(str(t) for t in types)),
                do="converter.optimizations = [Optimize.DEFAULT]",
            )
        if data is not None:
            raise InvalidArgumentError(
                what="converter.representative_dataset is given, but nothing would use it",
                do="converter.optimizations = [Optimize.DEFAULT], or leave it None",
            )
        return FLOAT, True
    allow_float = not whole and bool(sets & {OpsSet.TFLITE_BUILTINS, OpsSet.SELECT_TF_OPS})
    if INT16_SET in sets:
        return INT16, allow_float
    smallest = min((t.size for t in types), default=1)
    if (data is not None or integers) and smallest == 1:
        return INT8, allow_float
    if smallest == 1:
        return DYNAMIC, True
    return (FLOAT16, True) if float16 in types else (FLOAT, True)


def _is_trained(settings: Any) -> bool:
    """Return whether the functions hold ranges of quantisation-aware training."""
    graphs = [f.graph for f in settings.functions]
    if any(map(is_stated, graphs)):
        return True
    for graph in graphs:  # grows as it is walked
        for node in graph.nodes:
            if node.op.name in TRAINED:
                return True
            held = [getattr(node.attrs[name], "graph", node.attrs[name]) for name in node.attrs]
            graphs += [found for found in held if isinstance(found, Graph)]
    return False


def _bias(settings: Any, kind: str) -> str:
    setting = settings._experimental_full_integer_quantization_bias_type
    usual = int64 if kind == INT16 else int32
    if not setting:
        return usual.name
    bias = as_type(setting)
    if kind not in (INT8, INT16):
        raise InvalidArgumentError(
            what="`full_integer_quantization_bias_type` is only supported for full integer quantization."
        )
    if kind == INT8 and bias is not int32:
        raise InvalidArgumentError(
            what=f"Expected bias type to be `dtypes.int32` for Int8Quant. Current setting bias type: {bias}"
        )
    if bias not in (int32, int64):
        raise InvalidArgumentError(
            what="Expected bias type to be `dtypes.int32` or `dtypes.int64` for Int16Quant. "
            f"Current setting bias type: {bias}"
        )
    result: str = bias.name
    return result


# Types of inputs and outputs, by the kind of quantisation.
ENDS: dict[str, tuple[DType, ...]] = {INT8: (float32, int8, uint8, int16), INT16: (float32, int16)}


def _check_ends(mode: Mode) -> None:
    allowed = ENDS.get(mode.kind, (float32,))
    names = [t.name for t in allowed]
    if mode.inputs in names and mode.outputs in names:
        return
    expected = "tf.float32" if len(names) == 1 else f"in {['tf.' + name for name in names]}"
    raise InvalidArgumentError(
        what=f"The inference_input_type and inference_output_type must be {expected}.",
        found={"inference_input_type": mode.inputs, "inference_output_type": mode.outputs},
        do=None if mode.calibrated else "optimizations and a representative_dataset: integers need their ranges",
    )
