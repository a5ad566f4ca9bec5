"""Settings of a conversion: `OpsSet`, `Optimize`, `TargetSpec`, and their check.

Lives here: the settings, and the errors for settings that cannot be met.  Not here: the converter (converter.py).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, TypeVar

from ...core.dtypes import DType, as_dtype, float16, float32, int8
from ...core.errors import InvalidArgumentError, UnimplementedError

T = TypeVar("T")


class OpsSet(enum.Enum):
    """Sets of operators that a converted model may use."""

    TFLITE_BUILTINS = "TFLITE_BUILTINS"
    SELECT_TF_OPS = "SELECT_TF_OPS"
    TFLITE_BUILTINS_INT8 = "TFLITE_BUILTINS_INT8"
    EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 = (
        "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
    )

    def __str__(self) -> str:
        return str(self.value)

    @staticmethod
    def get_options() -> list[str]:
        """Return the names of all sets."""
        return [str(member) for member in OpsSet]


class Optimize(enum.Enum):
    """Optimisations of size and speed: quantisation after training, which changes the numbers a little, and
    EXPERIMENTAL_SPARSITY, which does not. OPTIMIZE_FOR_SIZE and OPTIMIZE_FOR_LATENCY mean DEFAULT.
    """

    DEFAULT = "DEFAULT"
    OPTIMIZE_FOR_SIZE = "OPTIMIZE_FOR_SIZE"
    OPTIMIZE_FOR_LATENCY = "OPTIMIZE_FOR_LATENCY"
    EXPERIMENTAL_SPARSITY = "EXPERIMENTAL_SPARSITY"

    def __str__(self) -> str:
        return str(self.value)


class TargetSpec:
    """The operator sets, types and run times that a file may use.

    supported_ops: the operator sets allowed. supported_types: types that weights may be stored in, empty for those of
    the function. runtime: the oldest run time that must read the file, such as "2.8"; None for no limit.
    """

    __slots__ = ("runtime", "supported_ops", "supported_types")

    def __init__(
        self,
        supported_ops: Iterable[OpsSet] | None = None,
        supported_types: Iterable[Any] | None = None,
        runtime: str | None = None,
    ) -> None:
        self.supported_ops: Any = [OpsSet.TFLITE_BUILTINS] if supported_ops is None else list(supported_ops)
        self.supported_types: Any = [] if supported_types is None else list(supported_types)
        self.runtime = runtime

    def __repr__(self) -> str:
        sets = ", ".join(map(str, self.supported_ops))
        return f"TargetSpec(supported_ops=[{sets}], supported_types={self.supported_types}, runtime={self.runtime!r})"


# Settings of the official converter without effect here, with their defaults there.
WITHOUT_EFFECT = {
    "experimental_new_converter": True,
    "experimental_new_quantizer": True,
    "experimental_new_dynamic_range_quantizer": True,
    "experimental_lower_to_saved_model": True,
    "legalize_custom_tensor_list_ops": False,
    "unfold_batchmatmul": False,
    "_experimental_lower_tensor_list_ops": True,
    "_experimental_default_to_single_batch_in_tensor_list_ops": False,
}
CUSTOM_VERSION_PLACES = ("code", "options")


def check(settings: Any) -> None:
    """Raise an error for settings of a TFLiteConverter that are invalid or contradict each other.

    Whether those of quantisation go together is for quantize/modes.py to say.

    raises InvalidArgumentError or UnimplementedError naming the setting
    """
    target = settings.target_spec
    _check_runtime(target.runtime)
    if settings.custom_version_in not in CUSTOM_VERSION_PLACES:
        raise InvalidArgumentError(
            what="converter.custom_version_in is not understood",
            found=repr(settings.custom_version_in),
            wanted="one of " + ", ".join(map(repr, CUSTOM_VERSION_PLACES)),
        )
    for name, setting in (
        ("target_spec.supported_ops", target.supported_ops),
        ("target_spec.supported_types", target.supported_types),
        ("optimizations", settings.optimizations),
    ):
        if setting is not None and not isinstance(setting, list | tuple | set | frozenset):
            raise InvalidArgumentError(what=f"converter.{name} is not a list", found=repr(setting), do=f"[{setting}]")
    types = list(map(as_type, target.supported_types or ()))
    for name, setting, allowed, kind in (
        ("target_spec.supported_ops", target.supported_ops, None, OpsSet),
        ("optimizations", settings.optimizations, None, Optimize),
        ("target_spec.supported_types", types, (float32, float16, int8), DType),
        ("inference_input_type", [as_type(settings.inference_input_type)], None, DType),
        ("inference_output_type", [as_type(settings.inference_output_type)], None, DType),
    ):
        for item in setting or ():
            if not isinstance(item, kind):
                raise InvalidArgumentError(
                    what=f"converter.{name} holds other values than {kind.__name__}", found=repr(item)
                )
            if allowed is not None and item not in allowed:
                raise UnimplementedError(
                    what=f"converter.{name}: {item} is not available in this version",
                    wanted=", ".join(map(str, allowed)) or "none",
                )


def as_type(value: T | None) -> DType | T:
    """Return the dtype that a setting names, or the value itself if it names none. None means float32."""
    if value is None:
        return float32
    try:
        return as_dtype(value)
    except TypeError:
        return value


def _check_runtime(runtime: Any) -> None:
    parts = runtime.split(".") if isinstance(runtime, str) else []
    if runtime is not None and not (2 <= len(parts) <= 3 and all(p.isdecimal() and len(p) < 6 for p in parts)):
        raise InvalidArgumentError(
            what="converter.target_spec.runtime is not a version of a run time",
            found=repr(runtime),
            wanted="text such as '2.8', or None",
        )
