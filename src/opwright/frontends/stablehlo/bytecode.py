"""MLIR's bytecode of portable artifacts: modules in the versioned dialect vhlo.

Lives here: `read_bytecode`; sections, tables, operations and regions. Not here: types and attributes
(bytecode_values.py), which attributes an operation of vhlo has (vhlo.py), text (text.py).

The format is that of mlir/docs/BytecodeFormat.md, versions 0 to 6; codes of vhlo are those of its bytecode interface.
"""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidArgumentError, OpError
from ..importing import MALFORMED
from .bytecode_values import TYPES, VALUES, Bytes, damaged, unread
from .module import MAX_DEPTH, HloFunction, HloModule, HloValue, Operation, Region
from .vhlo import ATTRIBUTES_OF, of_version

MAGIC = b"ML\xefR"
STRINGS, DIALECTS, ATTRIBUTES, OFFSETS, IR, RESOURCES, RESOURCE_OFFSETS, VERSIONS, PROPERTIES = range(9)
NEWEST = 6
HAS_ATTRIBUTES, HAS_RESULTS, HAS_OPERANDS, HAS_SUCCESSORS, HAS_REGIONS, HAS_ORDERS, HAS_PROPERTIES = (
    1 << i for i in range(7)
)


class BytecodeReader:
    """Reads the module of bytes that begin with b"ML\\xefR"."""

    def __init__(self, content: bytes) -> None:
        source = Bytes(content)
        source.take(len(MAGIC))
        self.version = source.number()
        if self.version > NEWEST:
            raise damaged(f"version {self.version} of the format; the newest that is read is {NEWEST}")
        self.producer = source.text()
        self.sections = sections(source)
        for needed in (STRINGS, DIALECTS, ATTRIBUTES, OFFSETS, IR):
            if needed not in self.sections:
                raise damaged(f"section {needed} is missing")
        self.strings = self._strings()
        self.dialects: list[str] = []
        self.names: list[str] = []
        self._dialects()
        if foreign := [n for n in self.names if not n.startswith(("vhlo.", "builtin."))]:
            raise InvalidArgumentError(
                op="from_stablehlo",
                what="bytecode of other dialects than the versioned one",
                found=", ".join(foreign[:5]),
                wanted="a portable artifact (jax.export, stablehlo.serialize_portable_artifact), or the module's text",
            )
        self.entries: list[tuple[str, bytes, bool]] = []
        self.types: list[tuple[str, bytes, bool]] = []
        self._offsets()
        self.attributes_read: dict[int, Any] = {}
        self.types_read: dict[int, Any] = {}
        self.properties = self._properties()
        self.depth = 0
        self.scope: list[int] = [0]
        self.module = HloModule()

    # ---- sections ------------------------------------------------------------------------------------------------

    def _strings(self) -> list[str]:
        source = Bytes(self.sections[STRINGS])
        lengths = [source.number() for _ in range(source.count())]
        rest = Bytes(source.take(min(sum(lengths), len(source.content))))
        return [rest.take(length)[:-1].decode("utf-8", "replace") for length in reversed(lengths)]

    def string(self, index: int) -> str:
        """Return a string by its number."""
        if index >= len(self.strings):
            raise damaged(f"string {index} of {len(self.strings)}")
        return self.strings[index]

    def _dialects(self) -> None:
        source = Bytes(self.sections[DIALECTS])
        for _ in range(source.count()):
            if self.version < 1:
                self.dialects.append(self.string(source.number()))
                continue
            index, versioned = source.flagged()
            self.dialects.append(self.string(index))
            if versioned:
                sections(source, 1)
        if self.version >= 4:
            source.number()
        while source.more:
            dialect = self.dialect(source.number())
            for _ in range(source.count()):
                index = source.flagged()[0] if self.version >= 5 else source.number()
                self.names.append(f"{dialect}.{self.string(index)}")

    def dialect(self, index: int) -> str:
        """Return a dialect by its number."""
        if index >= len(self.dialects):
            raise damaged(f"dialect {index} of {len(self.dialects)}")
        return self.dialects[index]

    def _offsets(self) -> None:
        """Note the bytes of each attribute and type, with their dialects; they are read when they are used."""
        source, content = Bytes(self.sections[OFFSETS]), Bytes(self.sections[ATTRIBUTES])
        attributes, kinds = source.count(), source.count()
        rows: list[tuple[str, bytes, bool]] = []
        while source.more:
            dialect = self.dialect(source.number())
            for _ in range(source.count()):
                size, coded = source.flagged()
                rows.append((dialect, content.take(size), coded))
        if len(rows) != attributes + kinds:
            raise damaged(f"{len(rows)} attributes and types, not {attributes + kinds}")
        self.entries, self.types = rows[:attributes], rows[attributes:]

    def _properties(self) -> list[bytes]:
        if PROPERTIES not in self.sections:
            return []
        source = Bytes(self.sections[PROPERTIES])
        return [source.take(source.number()) for _ in range(source.count())]

    # ---- types and attributes ------------------------------------------------------------------------------------

    def _cached(self, index: int, rows: list[Any], cache: dict[int, Any], tables: dict[str, Any], what: str) -> Any:
        if index not in cache:
            if index >= len(rows):
                raise damaged(f"{what} {index} of {len(rows)}")
            dialect, content, coded = rows[index]
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise damaged(f"over {MAX_DEPTH} {what}s within each other")
            cache[index] = tables.get(dialect, unread)(self, Bytes(content)) if coded else Bytes(content).text()
            self.depth -= 1
        return cache[index]

    def type(self, index: int) -> Any:
        """Return a type by its number."""
        return self._cached(index, self.types, self.types_read, TYPES, "type")

    def attribute(self, index: int) -> Any:
        """Return an attribute by its number."""
        return self._cached(index, self.entries, self.attributes_read, VALUES, "attribute")

    # ---- operations ----------------------------------------------------------------------------------------------

    def read(self) -> HloModule:
        """Return the module."""
        top = self._block(Bytes(self.sections[IR]), [], Region())
        (holder,) = top.operations if len(top.operations) == 1 else [Operation("")]
        if holder.name != "builtin.module" or len(holder.regions) != 1:
            raise damaged("no module")
        self.module.name = str(holder.attributes.get("sym_name", ""))
        for operation in holder.regions[0].operations:
            if not operation.name.startswith("vhlo.func_") or len(operation.regions) != 1:
                raise damaged(f"{operation.name} in a module")
            self._function(operation)
        return self.module

    def _function(self, operation: Operation) -> None:
        fields = operation.attributes
        name = str(fields.get("sym_name", ""))
        if name in self.module.functions:
            raise damaged(f"two functions @{name}")
        function = HloFunction(name, operation.regions[0], fields.get("sym_visibility") != "private")
        function.result_attributes = [d for d in fields.get("res_attrs", ()) if isinstance(d, dict)]
        function.argument_attributes = [d for d in fields.get("arg_attrs", ()) if isinstance(d, dict)]
        self.module.functions[name] = function

    # `scope` has for each region that is open the place of the next value that it defines: values are numbered by
    # their order in a region, those of inner regions after all of the outer one's.

    def _region(self, source: Bytes, values: list[Any]) -> Region:
        blocks = source.number()
        if blocks > 1:
            raise damaged("a region of several blocks")
        if not blocks:
            return Region()
        begin, count = len(values), source.count()
        values += [None] * count
        self.scope.append(begin)
        region = self._block(source, values, Region())
        self.scope.pop()
        del values[begin:]
        return region

    def _define(self, values: list[Any], kinds: list[Any], owner: Operation | None, location: str) -> list[HloValue]:
        result = [HloValue(kind, owner, location) for kind in kinds]
        for value in result:
            place = self.scope[-1]
            if place >= len(values):
                raise damaged("a region defines more values than it says")
            if isinstance(values[place], HloValue):
                raise damaged("a value is used before it is defined")
            values[place] = value
            self.scope[-1] = place + 1
        return result

    def _block(self, source: Bytes, values: list[Any], region: Region) -> Region:
        """Read the operations of a block into a region."""
        count, has_arguments = source.flagged()
        self.depth += 1
        if self.depth > MAX_DEPTH or count > len(source.content):
            raise damaged("regions within each other, or operations, beyond bounds")
        if has_arguments:
            for _ in range(source.count()):
                kind, located = source.flagged() if self.version >= 4 else (source.number(), True)
                location = self._location(source.number()) if located else ""
                region.arguments += self._define(values, [self.type(kind)], None, location)
            if self.version >= 3 and source.byte():
                self._skip_orders(source, len(region.arguments))
        for _ in range(count):
            operation = self._operation(source, values)
            if operation.name in ("stablehlo.return", "func.return"):
                region.outputs = operation.operands
            else:
                region.operations.append(operation)
        self.depth -= 1
        return region

    def _skip_orders(self, source: Bytes, values: int) -> None:
        """Skip the orders of the uses of as many values, which mean nothing here."""
        for _ in range(source.count() if values > 1 else 1):
            if values > 1:
                source.number()
            for _ in range(source.flagged()[0]):
                source.number()

    def _operation(self, source: Bytes, values: list[Any]) -> Operation:
        index = source.number()
        if index >= len(self.names):
            raise damaged(f"operation {index} of {len(self.names)}")
        operation = Operation(self.names[index])
        mask = source.byte()
        operation.location = self._location(source.number())
        fields: dict[str, Any] = {}
        if mask & HAS_ATTRIBUTES:
            dictionary = self.attribute(source.number())
            fields |= dictionary if isinstance(dictionary, dict) else {}
        if mask & HAS_PROPERTIES:
            number = source.number()
            if number >= len(self.properties):
                raise damaged(f"properties {number} of {len(self.properties)}")
            fields |= self._fields(operation.name, Bytes(self.properties[number]))
        kinds = [self.type(source.number()) for _ in range(source.count())] if mask & HAS_RESULTS else []
        if mask & HAS_OPERANDS:
            for _ in range(source.count()):
                place = source.number()
                value = values[place] if place < len(values) else None
                if value is None:
                    raise damaged(f"{operation.name} uses value {place} before it is defined")
                operation.operands.append(value)
        if mask & HAS_SUCCESSORS:
            raise damaged("branches between blocks")
        if mask & HAS_ORDERS:
            self._skip_orders(source, len(kinds))
        operation.results = self._define(values, kinds, operation, "")
        if mask & HAS_REGIONS:
            count, isolated = source.flagged()
            if count > len(source.content):
                raise damaged(f"{count} regions")
            operation.regions = self._regions(source, count, isolated, values)
        operation.name, operation.attributes = of_version(operation.name, fields)
        return operation

    def _regions(self, source: Bytes, count: int, isolated: bool, values: list[Any]) -> list[Region]:
        """Return the regions of an operation; without outer values they have a section of their own."""
        if not isolated:
            return [self._region(source, values) for _ in range(count)]
        if self.version >= 2:
            source = Bytes(sections(source, 1).get(IR, b""))
        before, self.scope = self.scope, []
        result = [self._region(source, []) for _ in range(count)]
        self.scope = before
        return result

    def _fields(self, name: str, source: Bytes) -> dict[str, Any]:
        """Return the properties of an operation: of vhlo its attributes in order, of others a dictionary."""

        if name == "builtin.module":  # its name and visibility, both optional
            index, there = source.flagged() if source.more else (0, False)
            return {"sym_name": self.attribute(index)} if there else {}
        names = ATTRIBUTES_OF.get(name.removeprefix("vhlo."), ())
        return {key: self.attribute(source.number()) for key in names}

    def _location(self, index: int) -> str:
        value = self.attribute(index)
        return value if isinstance(value, str) else ""


def sections(source: Bytes, most: int = 64) -> dict[int, bytes]:
    """Return the sections that follow, by their numbers."""
    result: dict[int, bytes] = {}
    while source.more and len(result) < most:
        head = source.byte()
        length = source.number()
        if head & 0x80:
            alignment = source.number()
            if not 0 < alignment <= 4096 or alignment & (alignment - 1):
                raise damaged(f"an alignment of {alignment}")
            source.take(-source.position % alignment)
        if head & 0x7F in result:
            raise damaged(f"two sections {head & 0x7F}")
        result[head & 0x7F] = source.take(length)
    return result


def read_bytecode(content: bytes) -> HloModule:
    """Return the module of a portable artifact. Raises InvalidArgumentError for damaged bytes."""
    try:
        return BytecodeReader(content).read()
    except OpError:
        raise
    except MALFORMED as error:
        raise damaged(f"{type(error).__name__}: {error}") from error
