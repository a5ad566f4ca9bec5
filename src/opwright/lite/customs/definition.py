"""Custom operators that are shipped: a class body becomes the `CustomOperator` of a name that files write as text.

Lives here: `custom_operator`, `CustomOperator`, reading the two forms of options (FlexBuffers, a C structure).
Not here: the table of names (families.py), the operators (the other modules of lite/customs/), operators
that users write (`@ow.operator`; lite/custom_options.py reads their options).

Options are read as by the official kernels: an unknown key is no error (converters add their own), a missing one has
the declared default, and numbers are converted. A value that cannot be converted is an error that names it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.dtypes import DType
from ...core.errors import InternalError, InvalidArgumentError
from ...core.lazy_imports import is_abandoned, note_origin
from ...ops.call import Call
from ...ops.definition import Operator
from ..format import schema
from ..format.flexbuffers import decode_options
from ..ops import types
from ..ops.definition import EnumAttr, LiteOperator
from .families import defined, get


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
        fields = self._structure(raw) if self.layout else decode_options(raw)
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

    def __reduce__(self) -> Any:
        return get, (self.name, self.versions[1])

    __hash__ = Operator.__hash__


def custom_operator(
    name: str, *also: str, versions: tuple[int, int] = (1, 1), **settings: Any
) -> Callable[[type], CustomOperator]:
    """Class decorator: define the custom operator of that name, and of the others that files give it.

    settings: typed_by, counted_by, as CustomOperator has them.
    """

    def define(cls: type) -> CustomOperator:
        operator = CustomOperator(cls, name, versions, **settings)
        note_origin(operator)
        for file_name in (name, *also):
            defined[file_name] = [*(op for op in defined.get(file_name, ()) if not is_abandoned(op)), operator]
        return operator

    return define
