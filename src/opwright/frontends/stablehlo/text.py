"""MLIR's textual form of modules in the dialects stablehlo, chlo and func.

Lives here: `read_text`; operations in their generic and their own forms. Not here: types and attributes (literals.py),
bytecode (bytecode.py).

Most operations have forms of one kind: operands, keywords and `name = value` in some order, then a colon and types.
`FIELDS` says which attribute a name stands for, so that both forms give the same attributes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import as_dtype
from ...core.errors import OpError
from ..importing import MALFORMED
from .literals import NUMBER, STRING, Scanner, unescaped
from .module import OPAQUE, HloFunction, HloModule, HloValue, Operation, Region, TensorType

PERCENT = re.compile(r"%([\w$.-]+)(?:#(\d+))?")
RESULT = re.compile(r"%([\w$.-]+)(?::(\d+))?")
BLOCK = re.compile(r"\^[\w$.-]+")
ALIAS = re.compile(r"([#!][\w.]+)\s*=")
SLICES = re.compile(r"\[\s*(?:\d+\s*:|\])")
FORMAT = re.compile(r"e(\d+)m(\d+)$")
TERMINATORS = frozenset({"return", "func.return", "stablehlo.return"})
WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}
FIELDS: dict[str, dict[str, str]] = {
    "broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "concatenate": {"dim": "dimension"},
    "convolution": {"dim_numbers": "dimension_numbers"},
    "dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "dynamic_iota": {"dim": "iota_dimension"},
    "dynamic_slice": {"sizes": "slice_sizes"},
    "fft": {"type": "fft_type", "length": "fft_length"},
    "get_dimension_size": {"dim": "dimension"},
    "iota": {"dim": "iota_dimension"},
    "pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "reverse": {"dims": "dimensions"},
    "rng": {"distribution": "rng_distribution"},
    "rng_bit_generator": {"algorithm": "rng_algorithm"},
    "set_dimension_size": {"dim": "dimension"},
    "transpose": {"dims": "permutation"},
}
"""The attribute that a name in an operation's own form stands for, where they differ."""


class ModuleParser(Scanner):
    """Reads a module: functions, and in them operations."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.scopes: list[dict[str, list[HloValue]]] = []
        self.module = HloModule()

    # ---- module and functions ------------------------------------------------------------------------------------

    def read(self) -> HloModule:
        """Return the module that the text is."""
        self.read_resources()
        while self.blanks() < len(self.text):
            alias = self.match(ALIAS)
            if alias:
                self._alias(alias[1])
            elif self.accept("module"):
                self._module()
            elif self.at("loc"):
                self._location()
            else:
                self._function()
        if not self.module.functions:
            raise self.error("no function")
        return self.module

    def _alias(self, name: str) -> None:
        if self.at("loc"):
            self.module.locations[name] = self._location()
        else:
            self.attribute()

    def _module(self) -> None:
        if self.at("@"):
            self.module.name = self.symbol()
        if self.accept("attributes"):
            self.expect("{")
            self.dictionary()
        self.expect("{")
        while not self.accept("}"):
            self._function()
        self._location()

    def _function(self) -> None:
        if not self.accept("func.func"):
            raise self.error("no func.func")
        public = not self.accept("private")
        self.accept("public")
        name = self.symbol()
        if name in self.module.functions:
            raise self.error(f"two functions @{name}")
        region = Region()
        function = HloFunction(name, region, public)
        self.scopes.append({})
        self.expect("(")

        def argument() -> None:
            value = self._argument()
            region.arguments.append(value)
            function.argument_attributes.append(self._attributes())
            value.location = self._location()

        self.listed(")", argument)
        if self.accept("->"):
            if self.accept("("):

                def result() -> None:
                    self.type()
                    function.result_attributes.append(self._attributes())

                self.listed(")", result)
            else:
                self.type()
                function.result_attributes.append({})
        if self.accept("attributes"):
            self._attributes()
        self._body(region)
        self.scopes.pop()
        self._location()
        self.module.functions[name] = function

    def _attributes(self) -> dict[str, Any]:
        return self.dictionary() if self.accept("{") else {}

    def _argument(self) -> HloValue:
        name = self.need(PERCENT, "value")[1]
        self.expect(":")
        value = HloValue(self.type())
        self._define(name, [value])
        return value

    def _location(self) -> str:
        return self.balanced() if self.accept("loc") else ""

    # ---- values --------------------------------------------------------------------------------------------------

    def _define(self, name: str, values: list[HloValue]) -> None:
        if name in self.scopes[-1]:
            raise self.error(f"%{name} is defined twice")
        self.scopes[-1][name] = values

    def _use(self) -> HloValue:
        match = self.need(PERCENT, "value")
        index = int(match[2] or 0)
        for scope in reversed(self.scopes):
            values = scope.get(match[1])
            if values is not None:
                if index >= len(values):
                    raise self.error(f"%{match[1]} has {len(values)} results")
                return values[index]
        raise self.error(f"%{match[1]} is not defined before it is used")

    # ---- operations ----------------------------------------------------------------------------------------------

    def _body(self, region: Region) -> None:
        """Read the operations of a block between braces, up to its terminator."""
        self.expect("{")
        with self.nested():
            if self.match(BLOCK):
                if self.accept("("):

                    def argument() -> None:
                        value = self._argument()
                        value.location = self._location()
                        region.arguments.append(value)

                    self.listed(")", argument)
                self.expect(":")
            while not self.accept("}"):
                if BLOCK.match(self.text, self.blanks()):
                    raise self.error("a region of several blocks")
                operation = self._operation()
                if operation.name in TERMINATORS:
                    region.outputs = operation.operands
                else:
                    region.operations.append(operation)

    def _region(self) -> Region:
        region = Region()
        self.scopes.append({})
        self._body(region)
        self.scopes.pop()
        return region

    def _operation(self) -> Operation:
        line = self.text.count("\n", self._counted, self.blanks()) + self._line
        self._counted, self._line = self.position, line
        names: list[tuple[str, int]] = []
        if self.at("%"):
            while True:
                match = self.need(RESULT, "result")
                names.append((match[1], int(match[2] or 1)))
                if not self.accept(","):
                    break
            self.expect("=")
        quoted = self.match(STRING)
        operation = Operation(unescaped(quoted[1]) if quoted else self.word(), line + 1)
        if quoted:
            outputs = self._generic(operation)
        else:
            outputs = self._own_form(operation)
        operation.location = self._location()
        count = sum(n for _, n in names)
        if names and count != len(outputs):
            raise self.error(f"{operation.name} has {len(outputs)} results, not {count}")
        operation.results = [HloValue(kind, operation) for kind in outputs]
        begin = 0
        for name, n in names:
            self._define(name, operation.results[begin : begin + n])
            begin += n
        return operation

    _counted, _line = 0, 0

    def _generic(self, operation: Operation) -> Sequence[Any]:
        """Read "name"(operands) <{properties}> ({regions}) {attributes} : types; return the types of results."""
        self.expect("(")
        operation.operands = self.listed(")", self._use)
        if self.accept("<"):
            self.expect("{")
            operation.attributes = self.dictionary()
            self.expect(">")
        if self.accept("("):
            operation.regions = self.listed(")", self._region)
        operation.attributes |= self._attributes()
        self.expect(":")
        return self.function_type()[1]

    def _own_form(self, operation: Operation) -> Sequence[Any]:
        name = operation.name
        if name == "stablehlo.while":
            return self._while(operation)
        if name in TERMINATORS:
            if self.at("%"):
                self._operands(operation)
                self.expect(":")
                self.types()
            return []
        if name == "call":
            operation.name = "func.call"
        short = name.rpartition(".")[2]
        if name == "stablehlo.reduce":
            return self._reduce(operation)
        fields, flags = FIELDS.get(short, {}), []
        while not self.accept(":"):
            self.blanks()
            first = self.text[self.position : self.position + 1]
            if first == "%":
                self._operands(operation)
            elif first == "(" or first == ")" or first == ",":
                self.position += 1
            elif first == "{":
                operation.attributes |= self._attributes()
            elif first in ("@", '"') or SLICES.match(self.text, self.position):
                flags.append(self.attribute())
            elif first == "[":
                self.expect("[")
                flags.append(self.integer())
                self.expect("]")
            elif short == "constant":
                flags.append(self._constant())
                break
            else:
                word = self.word()
                if self.accept("="):
                    operation.attributes[fields.get(word, word)] = self._value(word)
                else:
                    flags.append(word)
        if short == "constant":
            operation.attributes["value"] = flags[0]
            return [literal_type(flags[0])]
        _place(operation, short, flags)
        inputs, outputs = self.types()
        if outputs is not None:
            return outputs
        return inputs if short == "optimization_barrier" else inputs[-1:]

    def _operands(self, operation: Operation) -> None:
        operation.operands.append(self._use())
        while self.accept(","):
            if not self.at("%"):
                return
            operation.operands.append(self._use())

    def _constant(self) -> np.ndarray:
        value = self.attribute()
        if not isinstance(value, np.ndarray):
            raise self.error("a constant is not a literal of a tensor")
        return value

    def _value(self, name: str) -> Any:
        """Return the value of a field: numbers have no type here, since a colon ends the operation's attributes."""
        if name == "window":  # {stride = [1, 2], pad = [[0, 1], [2, 3]]}
            self.expect("{")
            return {WINDOW.get(k, k): v for k, v in self.dictionary().items()}
        return self.integer() if NUMBER.match(self.text, self.blanks()) else self.attribute()

    def _while(self, operation: Operation) -> Sequence[Any]:
        """Read stablehlo.while(%a = %0, ...) : types cond {} do {}."""
        self.expect("(")
        names: list[str] = []

        def argument() -> None:
            names.append(self.need(PERCENT, "value")[1])
            self.expect("=")
            operation.operands.append(self._use())

        self.listed(")", argument)
        outputs = []
        if self.accept(":"):
            outputs = self.types()[0]
        if len(outputs) != len(names):
            raise self.error(f"{len(names)} values of {len(outputs)} types")
        if self.accept("attributes"):
            operation.attributes = self._attributes()
        for word in ("cond", "do"):
            self.expect(word)
            region = Region()
            self.scopes.append({})
            for name, kind in zip(names, outputs):
                value = HloValue(kind)
                self._define(name, [value])
                region.arguments.append(value)
            self._body(region)
            self.scopes.pop()
            operation.regions.append(region)
        return outputs

    def _reduce(self, operation: Operation) -> Sequence[Any]:
        """Read stablehlo.reduce(%x init: %a), ... [applies op] across dimensions = [..] : types [reducer(..) {..}]."""
        values, initial = [], []
        while True:
            self.expect("(")
            values.append(self._use())
            self.expect("init")
            self.expect(":")
            initial.append(self._use())
            self.expect(")")
            if not self.accept(","):
                break
        operation.operands = [*values, *initial]
        applied = self.word() if self.accept("applies") else ""
        for word in ("across", "dimensions", "="):
            self.expect(word)
        operation.attributes["dimensions"] = self.attribute()
        operation.attributes |= self._attributes()
        self.expect(":")
        outputs = self.function_type()[1]
        if applied:
            operation.regions = [_region_of(applied, outputs[0])]
            return outputs
        self.expect("reducer")
        region, left, right = Region(), [], []
        self.scopes.append({})
        while self.accept("("):
            left.append(self._argument())
            self._location()
            self.expect(",")
            right.append(self._argument())
            self._location()
            self.expect(")")
            self.accept(",")
        region.arguments = [*left, *right]
        self._body(region)
        self.scopes.pop()
        operation.regions = [region]
        return outputs


def literal_type(array: np.ndarray) -> Any:
    """Return the type of a literal."""
    return TensorType(tuple(array.shape), as_dtype(array.dtype))


def _region_of(name: str, kind: Any) -> Region:
    """Return the region that applies an operation to two scalars of an element type."""
    scalar = TensorType((), kind.dtype) if isinstance(kind, TensorType) else OPAQUE
    region, operation = Region(), Operation(name)
    region.arguments = operation.operands = [HloValue(scalar), HloValue(scalar)]
    operation.results = region.outputs = [HloValue(scalar, operation)]
    region.operations = [operation]
    return region


def _place(operation: Operation, short: str, flags: Sequence[Any]) -> None:
    """Add the attributes that an operation's own form has as keywords, symbols or brackets."""
    attributes = operation.attributes
    if short == "compare":
        attributes["comparison_direction"] = flags[0]
        if len(flags) > 1:
            attributes["compare_type"] = flags[1]
    elif short == "slice":
        rows = [(r if isinstance(r, tuple) else (r, r)) for r in flags[0]]
        attributes["start_indices"] = [r[0] for r in rows]
        attributes["limit_indices"] = [r[1] for r in rows]
        attributes["strides"] = [r[2] if len(r) > 2 else 1 for r in rows]
    elif short == "call":
        attributes["callee"] = flags[0]
    elif short == "custom_call":
        attributes["call_target_name"] = flags[0]
    elif short == "composite":
        attributes["name"] = flags[0]
    elif short == "get_tuple_element":
        attributes["index"] = flags[0]
    elif short == "reduce_precision":
        match = FORMAT.match(str(attributes.pop("format", "")))
        if match:
            attributes["exponent_bits"], attributes["mantissa_bits"] = int(match[1]), int(match[2])
    elif short == "dot_general":
        roles = {}
        for kind, name in (("batching_dims", "batching"), ("contracting_dims", "contracting")):
            pair = attributes.pop(kind, ([], []))
            roles[f"lhs_{name}_dimensions"], roles[f"rhs_{name}_dimensions"] = pair
        attributes["dot_dimension_numbers"] = roles
    elif short == "convolution":
        attributes |= attributes.pop("window", {})


def read_text(text: str) -> HloModule:
    """Return the module of a text. Raises InvalidArgumentError with the line of what is wrong."""
    parser = ModuleParser(text)
    try:
        return parser.read()
    except OpError:
        raise
    except MALFORMED as error:
        raise parser.error(f"an operation whose parts do not fit ({type(error).__name__})") from error
