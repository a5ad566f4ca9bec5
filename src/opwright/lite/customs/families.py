"""The table of the shipped custom operators, by the module that defines them.

Lives here: `FAMILIES`, `get(name)`, `find(name, version)`, `list_names()`, the operators defined so far.
Not here: what such an operator is (definition.py).

`make families` writes the table, from the classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import InternalError, NotFoundError
from ...core.lazy_imports import load

if TYPE_CHECKING:
    from .definition import CustomOperator

defined: dict[str, list[CustomOperator]] = {}  # by the modules imported so far; several where versions differ

# module -> the operators it defines, under all names that files give them
FAMILIES: dict[str, str] = {
    "audio": "AudioSpectrogram Mfcc",
    "detection": "TFLite_Detection_PostProcess",
    "hash_tables": "HashTableV2 LookupTableFindV2 LookupTableImportV2 LookupTableSizeV2",
    "landmarks": "Landmarks2TransformMatrix TransformLandmarks",
    "layers": (
        "MeanVarianceNormalization UNIDIRECTIONAL_SEQUENCE_GRU odml.scaled_dot_product_attention "
        "odml.update_external_kv_cache odml.update_kv_cache"
    ),
    "math": "Atan2 BroadcastGradientArgs Complex IRFFT2D Irfft2d RFFT2D Rfft2d Roll Sign Table",
    "pooling": "MaxPoolWithArgmax MaxPoolingWithArgmax2D MaxUnpooling2D",
    "quantization": "NumericVerify aeq.hadamard_rotation",
    "random": "Multinomial RandomStandardNormal RandomUniform RandomUniformInt",
    "resampling": "DenseImageWarp Resampler TransformTensor TransformTensorBilinear",
    "spatial": "AveragePool3D AvgPool3D Convolution2DTransposeBias MaxPool3D",
    "text": "tftext:Ngrams tftext:WhitespaceTokenizer",
}

_module_of = {name: module for module, names in FAMILIES.items() for name in names.split()}


def list_names() -> list[str]:
    """Return the sorted names of the shipped custom operators. Imports nothing."""
    return sorted(_module_of)


def module_of(name: str) -> str:
    """Return the module of lite.customs that defines a custom operator. Raises NotFoundError."""
    try:
        return _module_of[name]
    except KeyError:
        raise NotFoundError(
            what="no custom operator of this name is shipped",
            found=repr(name),
            do="lite.customs.list_names() gives them all; others are given as custom_ops=",
        ) from None


def _all(name: str) -> list[CustomOperator]:
    module = module_of(name)
    load(f"{__package__}.{module}")
    if name not in defined:
        raise InternalError(what=f"lite.customs.{module} does not define {name}", do="correct lite.customs.FAMILIES")
    return defined[name]


def get(name: str, version: int | None = None) -> CustomOperator:
    """Return the custom operator of that name, of the given or the latest version. Raises NotFoundError."""
    operators = _all(name)
    if version is None:
        return max(operators, key=lambda op: op.versions[1])
    operator = next((op for op in operators if op.versions[0] <= version <= op.versions[1]), None)
    if operator is None:
        raise NotFoundError(
            op=name,
            what="no such version of this custom operator is shipped",
            found=version,
            wanted=", ".join(f"{a}..{b}" for a, b in versions_of(name)),
        )
    return operator


def find(name: str, version: int) -> CustomOperator | None:
    """As get; None where there is none."""
    if name not in _module_of:
        return None
    return next((op for op in _all(name) if op.versions[0] <= version <= op.versions[1]), None)


def versions_of(name: str) -> list[tuple[int, int]]:
    """Return the version ranges of a shipped custom operator; empty for unknown names."""
    return sorted(op.versions for op in _all(name)) if name in _module_of else []
