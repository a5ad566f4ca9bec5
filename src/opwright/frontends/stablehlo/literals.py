"""Types and attributes in MLIR's textual form.

Lives here: `Scanner`, a position in a text with what may follow; literals of tensors. Not here: operations (text.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from .module import DTYPES, MAX_DEPTH, OPAQUE, TensorType, tensor_type

BLANKS = re.compile(r"(?:\s+|//[^\n]*)*")
NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)")
WORD = re.compile(r"[A-Za-z_][\w.$]*")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SYMBOL = re.compile(r'@(?:([\w.$-]+)|"((?:[^"\\\n]|\\.)*)")')
DIMENSION = re.compile(r"(\?|\d+)x")
ELEMENT = re.compile(r"complex<\s*\w+\s*>|\w+")
CLOSED_BY = {"(": ")", "[": "]", "{": "}", "<": ">"}
ESCAPE = re.compile(r"\\([0-9a-fA-F]{2}|.)")


def unescaped(text: str) -> str:
    """Return the content of a string literal."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 16)) if len(code) == 2 else {"n": "\n", "t": "\t"}.get(code, code)

    return ESCAPE.sub(character, text) if "\\" in text else text


class Scanner:
    """A text and a position in it. resources: the bytes of `dense_resource` by name."""

    def __init__(self, text: str) -> None:
        self.text, self.position, self.depth = text, 0, 0
        self.resources: dict[str, bytes] = {}

    # ---- tokens --------------------------------------------------------------------------------------------------

    def error(self, what: str) -> InvalidArgumentError:
        """Return the error of something that is wrong here."""
        line = self.text.count("\n", 0, self.position) + 1
        rest = self.text[self.position : self.position + 40].partition("\n")[0]
        return InvalidArgumentError(op="from_stablehlo", at=f"line {line}", what=what, found=rest or "the end")

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Return a context one level deeper. Raises InvalidArgumentError beyond MAX_DEPTH."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"over {MAX_DEPTH} levels within each other")
        yield
        self.depth -= 1

    def blanks(self) -> int:
        """Skip blanks and comments; return the position."""
        match = BLANKS.match(self.text, self.position)
        self.position = match.end() if match else self.position
        return self.position

    def at(self, literal: str) -> bool:
        """Return whether a literal follows."""
        return self.text.startswith(literal, self.blanks())

    def accept(self, literal: str) -> bool:
        """Skip a literal if it follows; return whether it did."""
        if not self.at(literal):
            return False
        self.position += len(literal)
        return True

    def expect(self, literal: str) -> None:
        """Skip a literal. Raises InvalidArgumentError if it does not follow."""
        if not self.accept(literal):
            raise self.error(f"no {literal!r}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Skip what matches a pattern, if it follows."""
        match = pattern.match(self.text, self.blanks())
        if match:
            self.position = match.end()
        return match

    def need(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Skip what matches a pattern. Raises InvalidArgumentError if it does not follow."""
        match = self.match(pattern)
        if match is None:
            raise self.error(f"no {what}")
        return match

    def word(self) -> str:
        """Return the word that follows. Raises InvalidArgumentError."""
        return self.need(WORD, "word")[0]

    def integer(self) -> int:
        """Return the number that follows. Raises InvalidArgumentError."""
        text = self.need(NUMBER, "number")[0]
        try:
            return int(text, 0)
        except ValueError:
            raise self.error(f"{text} is not an integer") from None

    def symbol(self) -> str:
        """Return the name of the symbol that follows. Raises InvalidArgumentError."""
        match = self.need(SYMBOL, "symbol")
        return match[1] or unescaped(match[2] or "")

    def balanced(self) -> str:
        """Skip a bracket and all up to the one that closes it; return the text between them."""
        begin, stack = self.blanks(), []
        for match in BRACKETS.finditer(self.text, begin):
            token = match[0]
            if token in CLOSED_BY:
                stack.append(CLOSED_BY[token])
            elif token in ")]}>" and (not stack or stack.pop() != token):
                break
            if not stack:
                self.position = match.end()
                return self.text[begin + 1 : match.end() - 1]
        raise self.error("a bracket is not closed")

    def listed(self, close: str, item: Callable[[], Any]) -> list[Any]:
        """Return items between commas, up to a closing bracket, which is skipped."""
        result: list[Any] = []
        if self.accept(close):
            return result
        with self.nested():
            while True:
                result.append(item())
                if self.accept(close):
                    return result
                self.expect(",")

    # ---- types ---------------------------------------------------------------------------------------------------

    def type(self) -> Any:
        """Return the type that follows: a TensorType, a list of a tuple's, or (inputs, outputs) of a function."""
        if self.at("("):
            return self.function_type()
        if self.accept("!"):
            self.word()
            if self.at("<"):
                self.balanced()
            return OPAQUE
        if self.match(TUPLE):
            self.position -= 1
            return self._tuple()
        if self.match(TENSOR):
            self.position -= 1
            return self._tensor()
        element = self.need(ELEMENT, "type")[0].replace(" ", "")
        return TensorType((), DTYPES[element]) if element in DTYPES else OPAQUE

    def _tuple(self) -> list[Any]:
        self.expect("<")
        return self.listed(">", self.type)

    def _tensor(self) -> TensorType:
        self.expect("<")
        shape: list[int | None] = []
        while match := self.match(DIMENSION):
            shape.append(None if match[1] == "?" else int(match[1]))
        if self.accept("*"):
            raise self.error("a tensor of unknown rank")
        if self.at("!"):
            begin = self.position
            self.type()
            element = self.text[begin : self.position]
        else:
            element = self.need(ELEMENT, "element type")[0].replace(" ", "")
        if self.accept(","):
            self.attribute()
        self.expect(">")
        try:
            return tensor_type(tuple(shape), element)
        except ValueError as error:
            raise self.error(str(error)) from None

    def types(self) -> tuple[list[Any], list[Any] | None]:
        """Return the types after a colon: of inputs, and of outputs if there is an arrow."""
        if self.at("("):
            return self.function_type()
        inputs = [self.type()]
        while self.accept(","):
            inputs.append(self.type())
        return inputs, self._outputs() if self.accept("->") else None

    def function_type(self) -> tuple[list[Any], list[Any]]:
        """Return the types of inputs and outputs of (A, B) -> C."""
        self.expect("(")
        inputs = self.listed(")", self.type)
        self.expect("->")
        return inputs, self._outputs()

    def _outputs(self) -> list[Any]:
        if self.accept("("):
            return self.listed(")", self.type)
        return [self.type()]

    # ---- attributes ----------------------------------------------------------------------------------------------

    def dictionary(self) -> dict[str, Any]:
        """Return attributes between braces, the first of which is skipped already."""
        rows = self.listed("}", self._entry)
        return dict(rows)

    def _entry(self) -> tuple[str, Any]:
        quoted = self.match(STRING)
        name = unescaped(quoted[1]) if quoted else self.word()
        return name, self.attribute() if self.accept("=") else True

    def attribute(self) -> Any:
        """Return the attribute that follows: numbers, strings, arrays, lists, dictionaries, types."""
        self.blanks()
        first = self.text[self.position : self.position + 1]
        if first == "[":
            return self._list()
        if first == "{":
            self.position += 1
            with self.nested():
                return self.dictionary()
        if first == '"':
            value = unescaped(self.need(STRING, "string")[1])
            if self.accept(":"):
                self.type()
            return value
        if first == "@":
            return self.symbol()
        if first == "#":
            return self._of_dialect()
        if first == "!" or first == "(":
            return self.type()
        number = self.match(NUMBER)
        if number:
            return self._number(number[0])
        for literal, read in (("dense<", self._dense), ("array<", self._array), ("dense_resource<", self._resource)):
            if self.accept(literal):
                return read()
        if TYPE.match(self.text, self.position):
            return self.type()
        word = self.word()
        if word in ("true", "false"):
            return word == "true"
        if word == "loc":
            return self.balanced()
        return DTYPES.get(word, word)

    def _number(self, text: str) -> Any:
        if text.startswith(("0x", "-0x")):
            value: Any = int(text, 16)
        elif text.lstrip("-").isdigit():
            value = int(text)
        else:
            value = float(text)
        if self.accept(":"):
            kind = self.type()
            if isinstance(kind, TensorType) and kind.dtype is not None and kind.dtype.is_floating:
                if isinstance(value, int):
                    value = float(bits_of(np.asarray([value], np.uint64), kind.dtype)[0])
                return value
        return value

    def _list(self) -> Any:
        """Return a list; [a:b:c] has tuples, `[..] x [..]` and `[..]x[..]->[..]` are tuples of lists."""
        self.expect("[")
        result = self.listed("]", self._list_item)
        parts = [result]
        while self.match(CROSS):
            self.expect("[")
            parts.append(self.listed("]", self._list_item))
        return tuple(parts) if len(parts) > 1 else result

    def _list_item(self) -> Any:
        bounds = self.match(BOUNDS)
        if bounds:
            return tuple(map(int, re.split(r"\s*:\s*", bounds[0])))
        return self.attribute()

    def _of_dialect(self) -> Any:
        """Return an attribute of a dialect: `#stablehlo<precision DEFAULT>` as its last word, fields as a dict."""
        self.expect("#")
        name = self.word()
        if not self.at("<"):
            return f"#{name}"
        begin = self.position
        if name == "stablehlo.conv":
            self.expect("<")
            dimensions = self._list() if self.at("[") else self.attribute()
            self.expect(">")
            return dimensions
        try:
            self.expect("<")
            first = self.word()
            if self.accept("="):
                fields = {first: self.attribute()}
                while self.accept(","):
                    first = self.word()
                    self.expect("=")
                    fields[first] = self.attribute()
                self.expect(">")
                return fields
            value = self.word()
            self.expect(">")
            return value
        except InvalidArgumentError:  # of another dialect, such as shardings: nothing reads it
            self.position = begin
            return self.balanced()

    # ---- tensors -------------------------------------------------------------------------------------------------

    def _array(self) -> np.ndarray:
        """Return array<i64: 1, 2>, of which `array<` is skipped."""
        kind = self.type()
        items = self.listed(">", self.attribute) if self.accept(":") else []
        if not items:
            self.accept(">")
        return np.asarray(items, kind.dtype.as_numpy_dtype if kind.dtype is not None else np.int64)

    def _dense(self) -> np.ndarray:
        """Return dense<...> : type, of which `dense<` is skipped; one element for all is a view with strides of 0."""
        begin = self.blanks()
        quoted = self.match(STRING)
        end = self.position if quoted else self.text.find(">", begin)
        if end < 0:
            raise self.error("a literal of a tensor is not closed")
        body = self.text[begin:end]
        self.position = end
        self.expect(">")
        self.expect(":")
        kind = self.type()
        if not isinstance(kind, TensorType) or kind.dtype is None or None in kind.shape:
            raise self.error("a literal needs the type of a tensor of known sizes")
        try:
            if quoted:
                return of_bytes(bytes.fromhex(quoted[1].removeprefix("0x")), kind)
            return of_tokens(TOKENS.findall(body), kind)
        except (ValueError, OverflowError) as error:
            raise self.error(f"a literal of a tensor does not fit its type: {error}") from None

    def _resource(self) -> np.ndarray:
        """Return dense_resource<name> : type, of which `dense_resource<` is skipped."""
        name = self.need(RESOURCE_NAME, "name")[0]
        self.expect(">")
        self.expect(":")
        kind = self.type()
        if name not in self.resources:
            raise self.error(f"no resource {name!r}")
        try:
            return of_bytes(self.resources[name], kind)
        except ValueError as error:
            raise self.error(f"the resource {name!r} does not fit its type: {error}") from None

    def read_resources(self) -> None:
        """Read the file's resources, which stand at its end: name: "0x", 4 bytes of the alignment, the elements."""
        begin = self.text.rfind("{-#")
        if begin < 0:
            return
        for match in RESOURCE.finditer(self.text, begin):
            try:
                self.resources[match[1].strip('"')] = bytes.fromhex(match[2])[4:]
            except ValueError:
                raise self.error(f"the resource {match[1]} is not a hexadecimal number") from None
        self.text = self.text[:begin]


BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|->|[()\[\]{}<>]')
TENSOR = re.compile(r"tensor<")
TUPLE = re.compile(r"tuple<")
TYPE = re.compile(r"(?:tensor|tuple|complex)<")
CROSS = re.compile(r"x\s*(?=\[)|->\s*(?=\[)")
BOUNDS = re.compile(r"\d+\s*:\s*\d+(?:\s*:\s*\d+)?")
TOKENS = re.compile(r"[^\s\[\],()]+")
RESOURCE_NAME = re.compile(r"[\w.$-]+")
RESOURCE = re.compile(r'([\w.$-]+|"[^"]*")\s*:\s*"0x([0-9a-fA-F]*)"')


def bits_of(numbers: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the floating point numbers of these bits."""
    words = np.dtype(f"<u{dtype.size}")
    return numbers.astype(words).view(dtype.as_numpy_dtype)


def _filled(values: np.ndarray, kind: TensorType) -> np.ndarray:
    if values.size == 1:
        return np.broadcast_to(values.reshape(()), kind.sizes)
    if values.size != kind.size:
        raise ValueError(f"{values.size} elements for the shape {list(kind.shape)}")
    return values.reshape(kind.sizes)


def of_bytes(content: bytes, kind: TensorType) -> np.ndarray:
    """Return a tensor of little-endian elements, or of one for all; bool as bytes, or as bits."""
    dtype, count = kind.dtype, kind.size
    if dtype.is_bool:
        values = np.frombuffer(content, np.uint8)
        if values.size == 1 and count != 1 and content[0] in (0, 255):
            return np.broadcast_to(np.asarray(bool(content[0])), kind.sizes)
        if values.size != count:
            values = np.unpackbits(values, count=count, bitorder="little")
        return _filled(values.astype(np.bool_), kind)
    if len(content) % dtype.size:
        raise ValueError(f"{len(content)} bytes are not elements of {dtype.size} bytes")
    return _filled(np.frombuffer(content, np.dtype(dtype.as_numpy_dtype).newbyteorder("<")), kind)


def of_tokens(tokens: list[str], kind: TensorType) -> np.ndarray:
    """Return a tensor of numbers as they are written: decimal, or 0x and the bits of a float; complex ones in pairs."""
    dtype = kind.dtype
    if dtype.is_bool:
        values = np.asarray([{"true": True, "false": False, "1": True, "0": False}.get(t) for t in tokens], object)
        if None in values:
            raise ValueError("an element is neither true nor false")
        return _filled(values.astype(np.bool_), kind)
    if dtype.is_integer:
        limits = np.iinfo(dtype.as_numpy_dtype)
        whole = [int(t, 0) for t in tokens]
        if whole and (min(whole) < limits.min or max(whole) > max(limits.max, 2 ** (8 * dtype.size) - 1)):
            raise ValueError(f"a number is out of the range of {dtype.name}")
        whole = [w - 2 ** (8 * dtype.size) if w > limits.max else w for w in whole]
        return _filled(np.asarray(whole, dtype.as_numpy_dtype), kind)
    real = dtype.real_dtype if dtype.is_complex else dtype
    if any(t.startswith("0x") for t in tokens):
        pairs = [
            bits_of(np.asarray([int(t, 16)], np.uint64), real)[0] if t.startswith("0x") else float(t) for t in tokens
        ]
        parts = np.asarray(pairs).astype(real.as_numpy_dtype)
    else:
        parts = np.asarray(list(map(float, tokens))).astype(real.as_numpy_dtype)
    if dtype.is_complex:
        if parts.size % 2:
            raise ValueError("an odd number of parts of complex numbers")
        parts = parts.view(dtype.as_numpy_dtype)
    if parts.size == 0 and kind.size:
        raise ValueError("no elements")
    return _filled(parts, kind)
