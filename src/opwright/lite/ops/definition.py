"""Define builtin operators of `.tflite` files: a class body becomes a `LiteOperator`; and the table of these operators,
by the module that defines them.

Lives here: `lite_operator`, `LiteOperator` (an `Operator` that also reads and writes its options table), `EnumAttr`;
`FAMILIES`, `get(name)`, `list_names()`, `operators()`, the operators defined so far.
Not here: the operators (the other modules of lite/ops/), running them (registration.py).

The attributes are the fields of the operator's options table, with the schema's names, types and defaults, and the
versions that the rules of versions.json say brought them, so they are written nowhere else. An enum's values are the
schema's names: padding="SAME", fused_activation_function="RELU6".

`make families` writes the table, from the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import forks
from ...core.dtypes import DType
from ...core.errors import InternalError, InvalidArgumentError, NotFoundError
from ...core.lazy_imports import is_abandoned, load, note_origin
from ...ops.attributes import Attr, Check, one_of
from ...ops.call import Call
from ...ops.definition import Operator
from ...scalar.formulas import FUSED_CLAMPS
from ..format import objects, schema, versions
from . import types


class EnumAttr(Attr[str]):
    """An attribute that is a member of one of the schema's enums, kept as the member's name.

    Takes the name, the member or its number.
    """

    __slots__ = ("enum",)

    def __init__(self, enum: str, default: int = 0, check: Check | None = None, since: int = 1) -> None:
        self.enum = enum
        super().__init__(str, default=default, check=check, since=since)

    def convert(self, value: Any) -> str:
        """Return the member's name. Raises TypeError if the enum has no such member."""
        members = schema.enum(self.enum).__members__
        name = value if isinstance(value, str) else None
        if isinstance(value, int):
            name = getattr(schema.enum_members(self.enum).get(int(value)), "name", None)
        if name is not None and name in members:
            if self.check is not None and not self.check.holds(name):
                raise ValueError(self.check.wanted)
            return name
        shown = [*list(members)[:12], *(["..."] if len(members) > 12 else [])]
        raise TypeError(f"a member of {self.enum}: {', '.join(shown)}")


_deriving = forks.lock()
RENAMED = {"name": "composite_name"}
"""Fields of options whose attribute is called otherwise: `name` names a call."""

_SCALARS: dict[str, type] = {"bool": bool, "float32": float}
_CHECKS = {"ActivationFunctionType": one_of("NONE", *FUSED_CLAMPS)}


def _attr(field: schema.SchemaField, since: int = 1) -> Attr[Any]:
    """Return the attribute for a field of an options table. since: the version that introduced it."""
    if field.kind == "vector":
        return Attr([_SCALARS.get(field.scalar, int)], default=(), since=since)
    if field.enum:
        return EnumAttr(field.enum, field.default, _CHECKS.get(field.enum), since)
    return Attr(_SCALARS.get(field.scalar, int), default=field.default, since=since)


def _pop_setting(cls: type, setting: str) -> Any:
    """Remove a setting of this dialect from the class body and return it."""
    if setting not in vars(cls):
        return None
    value = vars(cls)[setting]
    delattr(cls, setting)
    return value


class LiteOperator(Operator):
    """A builtin operator of `.tflite` files.

    options: name of its options table, or None. versions: (least, greatest) version of it that is implemented: those of
    versions.json whose types this package has.
    typed_by: the attribute for the dtype of output `typed_output`; it is read from that tensor, as files omit it.
    graphs: by field of the options that holds the index of a subgraph (or a vector of them), the attribute that holds
    the Graph (a tuple of them) in the IR; the definition declares it.
    registration: the definition's function of that name, if `compute` does not suffice: from the operator to its
    Registration (such as one that runs other subgraphs, or has state).
    quantized, hybrid: the rule for quantized tensors, and the one for float activations with integer weights, each as
    "module.function" of ops/quantized (or the function itself). moves: True where it treats their integers as any
    others.
    alike: True if it moves them only to outputs with the same parameters.
    unscaled: True where the rule `quantized` is also for integers of up to 16 bits that have no scales.
    by_row: True where each line of the result along the last dimension follows from that of the first input.
    once: True where, of constants, it is computed when tensors get their memory, and its output kept.
    retypes: True if an output gets the operator's type regardless of the file's, as the official converter expects.
    """

    def __init__(self, cls: type, name: str, typed_by: str | None, graphs: Mapping[str, str]) -> None:
        self._take_settings(cls)
        self.name, self.graphs, self.typed_by = name, graphs, typed_by
        self.__name__ = self.__qualname__ = name
        self.__module__, self.__doc__ = cls.__module__, cls.__doc__
        self._body: type | None = cls

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Derive what follows from the class body, when any of it is first read: a model needs few of the operators
            that a module defines.
            """
            cls = self.__dict__.get("_body")
            if cls is None and name in self.__dict__:  # another thread has just derived it
                return self.__dict__[name]
            if cls is None or name.startswith("__"):
                raise AttributeError(f"operator {self.__dict__.get('name')} has no attribute {name!r}")
            with _deriving:
                if self._body is not None:
                    derived = object.__new__(type(self))  # other threads see all attributes, or none
                    derived.__dict__ |= self.__dict__
                    derived._derive(cls)
                    self.__dict__ |= derived.__dict__ | {"_body": None}
            return getattr(self, name)

    def _derive(self, cls: type) -> None:
        """Set the attributes that follow from the class body, the schema and versions.json."""
        row = facts(self.name)
        options = row["options"]
        fields = schema.table(options).fields if options else ()
        since = versions.options_since(self.name)
        for field in fields:
            if RENAMED.get(field.name, field.name) not in vars(cls) and field.name not in self.graphs:
                setattr(cls, field.name, _attr(field, since.get(field.name, 1)))
        self.options = options
        self.versions = versions.without_types_beyond(self.name, types.BY_NAME)
        super().__init__(cls, self.name, self.versions[1], catalogue=False)
        self.option_names = tuple(field.name for field in fields)
        self.code = int(row["code"])

    def _take_settings(self, cls: type) -> None:
        """Remove the settings of this dialect from the class body."""
        self.registration: Callable[[Any], Any] | None = _pop_setting(cls, "registration")
        self.quantized: str | Callable[..., Any] | None = _pop_setting(cls, "quantized")
        self.hybrid: str | Callable[..., Any] | None = _pop_setting(cls, "hybrid")
        self.moves: bool = _pop_setting(cls, "moves") or False
        self.alike: bool = _pop_setting(cls, "alike") or False
        self.unscaled: bool = _pop_setting(cls, "unscaled") or False
        self.typed_output: int = _pop_setting(cls, "typed_output") or 0
        self.once: bool = _pop_setting(cls, "once") or False
        self.retypes: bool = _pop_setting(cls, "retypes") or False
        self.by_row: bool = _pop_setting(cls, "by_row") or False

    def from_options(
        self, options: Any, outputs: Sequence[DType] = (), graph: Callable[[int], Any] | None = None
    ) -> Call:
        """Return the attributes in an options object (None: every option is 0, as in the official run time).

        outputs: dtypes of the output tensors, for an operator that is `typed_by` them. graph: returns the Graph of a
        subgraph by its index, for attributes that are graphs.
        raises InvalidArgumentError for options of another operator or a value that is not allowed
        """
        attrs: dict[str, Any] = {}
        self.check_options(options)
        if self.graphs and graph is None:
            raise InternalError(
                op=self.name,
                what="its attributes are graphs, which options do not hold",
                do="define `registration`, which reads the options itself",
            )
        if self.graphs and options is None:
            raise InvalidArgumentError(
                op=self.name, what="the options, which name its subgraphs, are missing", wanted=self.options
            )
        for name in self.option_names:
            value: Any = getattr(options, name, 0)
            attr = self.graphs.get(name) or RENAMED.get(name, name)
            definition = self.attr_defs[attr]
            kind = definition.type
            if isinstance(kind, list):
                value = () if options is None or value is None else tuple(np.asarray(value).tolist())
            elif kind is bool:
                value = bool(value)
            elif kind is str and not isinstance(definition, EnumAttr):
                value = value or ""
            if name in self.graphs:
                assert graph is not None
                value = tuple(map(graph, value)) if isinstance(kind, list) else graph(int(value))
            attrs[attr] = value
        if self.typed_by and len(outputs) > self.typed_output:
            attrs[self.typed_by] = types.name_of(outputs[self.typed_output])
        return self.bind(attrs)

    def check_options(self, options: Any) -> None:
        """Raise InvalidArgumentError for an options object of another operator."""
        if options is not None and self.options and options.table_name != self.options:
            raise InvalidArgumentError(
                op=self.name,
                what="the options are those of another operator",
                found=options.table_name,
                wanted=self.options,
            )

    def to_options(self, attrs: Mapping[str, Any], subgraph_index: Callable[[Any], int] | None = None) -> Any:
        """Return the options object with these attributes; None for an operator without options.

        subgraph_index: function from a Graph among the attributes to the index of its subgraph.
        raises SignatureError or InvalidArgumentError for attributes that do not fit
        """
        if not self.options:
            return None
        bound = self.bind(dict(attrs))
        values: dict[str, Any] = {}
        for name in self.option_names:
            if name in self.graphs:
                assert subgraph_index is not None, "an operator with graphs is written by the exporter"
                graphs = getattr(bound, self.graphs[name])
                values[name] = (
                    list(map(subgraph_index, graphs)) if isinstance(graphs, tuple) else subgraph_index(graphs)
                )
                continue
            attr = RENAMED.get(name, name)
            definition, value = self.attr_defs[attr], getattr(bound, attr)
            if isinstance(definition, EnumAttr):
                value = schema.enum(definition.enum)[value]
            if isinstance(definition.type, list) and not value:
                continue
            values[name] = value
        return objects.table_class(self.options)(**values)

    def __reduce__(self) -> tuple[Any, ...]:
        return get, (self.name,)

    __hash__ = Operator.__hash__


if TYPE_CHECKING:

    class _LiteOperatorType(type, LiteOperator):
        """The type of a decorated class to a checker: a `LiteOperator`."""

    class LiteDefinition(metaclass=_LiteOperatorType):
        """Base class of the classes under `@lite_operator`, as checkers see it: each is an operator."""

else:

    class LiteDefinition:
        """Base class of the classes under `@lite_operator` and `@custom_operator`, for type checkers.

        mypy does not follow decorators of classes: with the base, a decorated class is a `LiteOperator` to it. It has
        no effect at run time.
        """


def facts(name: str) -> dict[str, Any]:
    """Return the row of a builtin operator in versions.json. Raises InternalError for a name the schema lacks."""
    try:
        return versions.facts(name)
    except NotFoundError:
        raise InternalError(what=f"the schema has no builtin operator {name!r}") from None


def lite_operator(
    name: str, *, typed_by: str | None = None, graphs: Mapping[str, str] = MappingProxyType({})
) -> Callable[[type], LiteOperator]:
    """Return a class decorator that defines the builtin operator of that name. Arguments: see LiteOperator.

    The options table, its fields and the versions follow from the schema and versions.json.
    """

    def define(cls: type) -> LiteOperator:
        operator = LiteOperator(cls, name, typed_by, graphs)
        if name in defined and not is_abandoned(defined[name]):
            raise InternalError(what=f"the lite dialect has two operators {name}")
        defined[name] = operator
        note_origin(operator)
        return operator

    return define


defined: dict[str, LiteOperator] = {}  # by the modules imported so far

# module -> the operators it defines
FAMILIES: dict[str, str] = {
    "activation": "GELU L2_NORMALIZATION LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION LOG_SOFTMAX PRELU SOFTMAX",
    "concatenation": "CONCATENATION MIRROR_PAD PACK PAD PADV2 REVERSE_V2 SPLIT SPLIT_V UNPACK",
    "control": "CALL IF STABLEHLO_CASE STABLEHLO_COMPOSITE WHILE",
    "convolution": "CONV_2D CONV_3D CONV_3D_TRANSPOSE DEPTHWISE_CONV_2D TRANSPOSE_CONV",
    "creation": "DENSIFY FILL MATRIX_DIAG MATRIX_SET_DIAG ONE_HOT RANGE SPARSE_TO_DENSE",
    "elementwise": (
        "ABS ADD ADD_N ATAN2 BITWISE_XOR CAST CEIL COS DIV ELU EQUAL EXP FLOOR FLOOR_DIV FLOOR_MOD GREATER "
        "GREATER_EQUAL HARD_SWISH LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC MAXIMUM MINIMUM MUL "
        "NEG NOT_EQUAL POW RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RIGHT_SHIFT ROUND RSQRT SIGN SIN SQRT SQUARE "
        "SQUARED_DIFFERENCE SUB TANH ZEROS_LIKE"
    ),
    "images": (
        "BATCH_TO_SPACE_ND DEPTH_TO_SPACE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SPACE_TO_BATCH_ND SPACE_TO_DEPTH"
    ),
    "lookup": "EMBEDDING_LOOKUP EMBEDDING_LOOKUP_SPARSE HASHTABLE_LOOKUP LSH_PROJECTION",
    "lstm": "BIDIRECTIONAL_SEQUENCE_LSTM LSTM UNIDIRECTIONAL_SEQUENCE_LSTM",
    "matmul": "BATCH_MATMUL FULLY_CONNECTED",
    "pooling": "AVERAGE_POOL_2D DILATE L2_POOL_2D MAX_POOL_2D REDUCE_WINDOW",
    "quantization": "DEQUANTIZE FAKE_QUANT QUANTIZE",
    "random": "MULTINOMIAL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM STABLEHLO_RNG_BIT_GENERATOR",
    "reduction": (
        "CUMSUM MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SEGMENT_SUM SUM UNSORTED_SEGMENT_MAX "
        "UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM"
    ),
    "reshape": "BITCAST BROADCAST_ARGS BROADCAST_TO EXPAND_DIMS RANK RESHAPE SHAPE SQUEEZE TILE TRANSPOSE",
    "rnn": "BIDIRECTIONAL_SEQUENCE_RNN RNN SVDF UNIDIRECTIONAL_SEQUENCE_RNN",
    "selection": "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SELECT SELECT_V2 WHERE",
    "slices": "DYNAMIC_UPDATE_SLICE GATHER GATHER_ND SCATTER_ND SLICE STRIDED_SLICE",
    "sorting": "ARG_MAX ARG_MIN BUCKETIZE REVERSE_SEQUENCE SKIP_GRAM TOPK_V2 UNIQUE",
    "spectral": "COMPLEX_ABS IMAG REAL RFFT2D",
    "stablehlo": (
        "STABLEHLO_ADD STABLEHLO_AND STABLEHLO_GATHER STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY "
        "STABLEHLO_PAD STABLEHLO_SHIFT_LEFT"
    ),
    "stablehlo_reduction": "STABLEHLO_REDUCE_WINDOW STABLEHLO_SCATTER",
    "state": (
        "ASSIGN_VARIABLE CALL_ONCE HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE READ_VARIABLE VAR_HANDLE"
    ),
}

_family_of = {name: module for module, names in FAMILIES.items() for name in names.split()}


def get(name: str) -> LiteOperator:
    """Return the builtin operator of that name, such as "CONV_2D"; imports its family. Raises NotFoundError."""
    load(f"{__package__}.{family_of(name)}")
    if name not in defined:
        raise InternalError(what=f"lite.ops.{family_of(name)} does not define {name}", do="correct lite.ops.FAMILIES")
    return defined[name]


def family_of(name: str) -> str:
    """Return the module of lite.ops that defines an operator. Raises NotFoundError."""
    try:
        return _family_of[name]
    except KeyError:
        raise NotFoundError(
            what="the lite dialect has no operator of this name",
            found=repr(name),
            do="lite.ops.list_names() gives them all",
        ) from None


def list_names() -> list[str]:
    """Return the sorted names of the dialect's operators. Imports nothing."""
    return sorted(_family_of)


def operators() -> dict[str, LiteOperator]:
    """Return the dialect's operators by name, sorted. Imports every family."""
    return {name: get(name) for name in list_names()}
