"""Custom operators that are shipped: a class body becomes the `CustomOperator` of a name that files write as text; and
the table of these operators, by the module that defines them.

Lives here: `custom_operator`, `CustomOperator`, reading the two forms of options (FlexBuffers, a C structure);
`FAMILIES`, `get(name)`, `find(name, version)`, `list_names()`, the operators defined so far.
Not here: the operators (the other modules of lite/customs/), operators that users write (`@ow.operator`;
lite/custom_options.py reads their options).

Options are read as by the official kernels: an unknown key is not an error (converters add their own), a missing one
has the declared default, and numbers are converted. A value that cannot be converted is an error that names it.

`make families` writes the table, from the classes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from ...core.errors import InternalError, InvalidArgumentError, NotFoundError
from ...core.lazy_imports import is_abandoned, later, load, note_origin
from ...ops.call import Call
from ...ops.definition import Operator
from ..format import schema
from ..ops import types
from ..ops.definition import EnumAttr, LiteOperator

if TYPE_CHECKING:
    from ..format import flexbuffers
else:  # not needed by the first answer of a model
    flexbuffers = later("..format.flexbuffers", __package__)


class CustomOperator(LiteOperator):
    """A custom operator that the interpreter knows by itself.

    versions: (least, greatest) it serves. layout: the attributes that its options are as a C structure of int32, in
    order; empty where options are a FlexBuffers map. counted_by: the attribute that is the number of the node's
    outputs. Everything else as for the builtin ones: `typed_by`, `registration`, `quantized` (here the rule itself),
    `moves`.
    """

    def __init__(
        self,
        cls: type,
        name: str,
        versions: tuple[int, int],
        typed_by: str | None = None,
        counted_by: str | None = None,
    ) -> None:
        self._take_settings(cls)
        self._body = None  # derived here
        self.layout: tuple[str, ...] = tuple(vars(cls).get("layout", ()))
        if self.layout:
            delattr(cls, "layout")
        Operator.__init__(self, cls, name, versions[1], catalogue=False)
        self.graphs: Mapping[str, str] = {}
        self.options, self.option_names = None, tuple(self.attr_defs)
        self.versions, self.counted_by = versions, counted_by
        self.typed_by = typed_by or counted_by  # for either the registration tells the outputs
        self.code = int(schema.BuiltinOperator.CUSTOM)

    def from_options(self, options: Any, outputs: Sequence[DType] = (), graph: Any = None) -> Call:
        """Return the attributes in a node's option bytes (None or empty: all defaults).

        raises InvalidArgumentError for an option that cannot be converted or is out of its range, DataLossError for
        damaged bytes
        """
        raw = b"" if options is None else bytes(options)
        fields = self._structure(raw) if self.layout else flexbuffers.decode_options(raw)
        attrs = {name: self._converted(name, fields[name]) for name in self.attr_defs if name in fields}
        if self.counted_by:
            attrs[self.counted_by] = max(1, len(outputs))
        elif self.typed_by and len(outputs) > self.typed_output:
            attrs[self.typed_by] = types.name_of(outputs[self.typed_output])
        return self.bind(attrs)

    def _structure(self, raw: bytes) -> dict[str, Any]:
        """Return the fields of a C structure, of which files may omit the last ones."""
        n = min(len(raw) // 4, len(self.layout))
        return dict(zip(self.layout, struct.unpack(f"<{n}i", raw[: 4 * n])))

    def _converted(self, name: str, value: Any) -> Any:
        kind = self.attr_defs[name].type
        if isinstance(self.attr_defs[name], EnumAttr) or kind is object:
            return value
        try:
            if isinstance(kind, list):
                return tuple(kind[0](v) for v in value)
            if kind in (int, float, bool):
                return kind(0 if value is None else value)
            return value
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgumentError(
                op=self.name,
                what=f"option {name!r} has the wrong type",
                found=type(value).__name__,
                wanted=self.attr_defs[name].type_name(),
            ) from None

    def to_options(self, attrs: Mapping[str, Any], subgraph_index: Callable[[Any], int] | None = None) -> Any:
        raise InternalError(op=self.name, what="custom options are bytes; the converter writes no such operator")

    def __reduce__(self) -> tuple[Any, ...]:
        return get, (self.name, self.versions[1])

    __hash__ = Operator.__hash__


def custom_operator(
    name: str, *also: str, versions: tuple[int, int] = (1, 1), **settings: Any
) -> Callable[[type], CustomOperator]:
    """Return a class decorator that defines the custom operator of that name, and of the others that files give it.

    settings: typed_by, counted_by, as CustomOperator has them.
    """

    def define(cls: type) -> CustomOperator:
        operator = CustomOperator(cls, name, versions, **settings)
        note_origin(operator)
        for file_name in (name, *also):
            defined[file_name] = [*(op for op in defined.get(file_name, ()) if not is_abandoned(op)), operator]
        return operator

    return define


defined: dict[str, list[CustomOperator]] = {}  # by the modules imported so far; several where versions differ

# module -> the operators it defines, under all names that files give them
FAMILIES: dict[str, str] = {
    "audio": "AudioSpectrogram Mfcc",
    "detection": "TFLite_Detection_PostProcess",
    "image_warp": (
        "DenseImageWarp Landmarks2TransformMatrix Resampler TransformLandmarks TransformTensor TransformTensorBilinear"
    ),
    "layers": (
        "MeanVarianceNormalization UNIDIRECTIONAL_SEQUENCE_GRU odml.scaled_dot_product_attention "
        "odml.update_external_kv_cache odml.update_kv_cache"
    ),
    "math": (
        "Atan2 BroadcastGradientArgs Complex IRFFT2D Irfft2d NumericVerify RFFT2D Rfft2d Roll Sign Table "
        "aeq.hadamard_rotation"
    ),
    "pooling": (
        "AveragePool3D AvgPool3D Convolution2DTransposeBias MaxPool3D MaxPoolWithArgmax MaxPoolingWithArgmax2D "
        "MaxUnpooling2D"
    ),
    "random": "Multinomial RandomStandardNormal RandomUniform RandomUniformInt",
    "text": (
        "HashTableV2 LookupTableFindV2 LookupTableImportV2 LookupTableSizeV2 tftext:Ngrams tftext:WhitespaceTokenizer"
    ),
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
    """Return the operator as `get` does; None if there is none of this name and version."""
    if name not in _module_of:
        return None
    return next((op for op in _all(name) if op.versions[0] <= version <= op.versions[1]), None)


def versions_of(name: str) -> list[tuple[int, int]]:
    """Return the version ranges of a shipped custom operator; empty for unknown names."""
    return sorted(op.versions for op in _all(name)) if name in _module_of else []
