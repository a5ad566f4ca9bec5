"""Check of `.pt2` files before PyTorch reads them: PyTorch executes what a pickle or an expression in them says.

Lives here: `check_archive`. Not here: reading, which is PyTorch's (`torch.export.load`).

A file passes if its members are stored as they are and lie inside of it, its pickles build tensors and nothing else,
its operators are those of PyTorch's registry, and its sizes are arithmetic on names.
"""

from __future__ import annotations

import io
import json
import os
import pickletools
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from ...core.archives import DAMAGED_ZIP
from ...core.errors import InvalidArgumentError

TARGETS = re.compile(
    r"torch\.ops\.[A-Za-z]\w*\.\w+(\.\w+)?|torch\.(sym|_sym)_\w+|_operator\.[a-z]\w*|math\.[a-z]\w*"
    r"|torch\._higher_order_ops(\.[A-Za-z]\w*)+"
)
"""Operators, functions of sizes, control flow. `torch.ops.x.__f__` is not an attribute of a namespace."""
SYMBOL = re.compile(r"Symbol\('[A-Za-z]\w*'(, [a-z_]+=(True|False))*\)")
EXPRESSIONS = re.compile(r"(?!.*(__|[A-Za-z)]\s*\.|\.\s*[A-Za-z_]))[\w\s()+\-*/%,<>=&|~.]*", re.DOTALL)
"""Arithmetic on sizes: no texts, no members."""
_FUNCTIONS = """
Add Mul Pow Integer Rational Float Min Max Mod PythonMod FloorDiv CleanDiv CeilDiv ModularIndexing Where IntTrueDiv
FloatTrueDiv TruncToInt TruncToFloat RoundToInt FloorToInt CeilToInt ToFloat LShift RShift PowByNatural FloatPow Eq Ne
Lt Le Gt Ge Equality Unequality StrictGreaterThan GreaterThan StrictLessThan LessThan And Or Not floor ceiling Identity
Abs BitwiseFn_bitwise_and BitwiseFn_bitwise_or
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())
POWERS = re.compile(r"\*\*|Pow\w*\(|LShift\(")
MOST_TEXT, MOST_EXPONENT = 10_000, 64
GLOBALS = re.compile(
    r"torch\._utils _rebuild_(tensor_v2|parameter)|torch\.storage (UntypedStorage|TypedStorage)|torch \w+Storage"
    r"|torch (b?float\d*|u?int\d+|bool|double|half|long|complex\d+)|collections OrderedDict"
    r"|torch\.nn\.parameter Parameter"
)
BUILDING = frozenset(["STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4"])
"""Operations of pickles that name classes by values, which tensors do not need."""


def check_archive(path: str | os.PathLike[str]) -> None:
    """Raise InvalidArgumentError for a file that PyTorch should not read: damaged, or with more than tensors in it."""
    file = os.fspath(path)
    try:
        with zipfile.ZipFile(file) as archive:
            _check_members(archive, file, os.path.getsize(file))
            pickled = set(_pickled(archive))
            for name in archive.namelist():
                if name.endswith(".json"):
                    _check_json(json.loads(archive.read(name)), file, name)
                elif name.endswith(".pt") or name in pickled:
                    _check_pickles(archive.read(name), file, name)
    except InvalidArgumentError:
        raise
    except DAMAGED_ZIP as error:
        raise InvalidArgumentError(
            op="from_torch", what=f"no program of torch.export: {error or type(error).__name__}", found=file
        ) from error


def _refuse(file: str, what: str, found: Any) -> None:
    raise InvalidArgumentError(
        op="from_torch",
        what=f"{file} is not a program of tensors and operators: {what}",
        found=str(found)[:200],
        do="of a file that you trust, ow.from_torch(torch.export.load(path))",
    )


def _check_members(archive: zipfile.ZipFile, file: str, size: int) -> None:
    members = archive.infolist()
    if sum(m.file_size for m in members) > size:
        _refuse(file, "its members are larger than the file", sum(m.file_size for m in members))
    if len({m.filename for m in members}) != len(members):
        _refuse(file, "two members have one name", len(members))
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED:
            _refuse(file, "a member is compressed", member.filename)
        if ".." in member.filename.split("/") or member.filename.startswith("/"):
            _refuse(file, "a member lies outside of the file", member.filename)


def _pickled(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the members that the tables of weights and constants call pickles."""
    for name in archive.namelist():
        if name.endswith(("_weights_config.json", "_constants_config.json")):
            folder = name.rpartition("/")[0]
            table = json.loads(archive.read(name))
            rows = table.get("config") if isinstance(table, dict) else None
            for row in rows.values() if isinstance(rows, dict) else ():
                if isinstance(row, dict) and row.get("use_pickle") is not False:
                    yield f"{folder}/{row.get('path_name')}"


def _check_json(value: Any, file: str, name: str) -> None:
    """Check the operators and expressions of a program, and that constants are tensors."""
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        if not isinstance(node, dict):
            continue
        pending += node.values()
        target = node.get("target")
        if isinstance(target, str) and "inputs" in node and (not TARGETS.fullmatch(target) or "__" in target):
            _refuse(file, f"{name} calls what is not an operator", target)
        expression = node.get("expr_str")
        if isinstance(expression, str) and not _is_arithmetic(expression):
            _refuse(file, f"{name} has a size that is not arithmetic", expression)
        place = node.get("path_name")
        if isinstance(place, str) and not re.fullmatch(r"(weight|tensor)_?\w*", place):
            _refuse(file, f"{name} has a constant that is not a tensor", place)


def _is_arithmetic(expression: str) -> bool:
    """Return whether PyTorch can evaluate an expression of sizes without harm: arithmetic, and no large powers."""
    if len(expression) > MOST_TEXT:
        return False
    plain = SYMBOL.sub("s", expression)
    called = set(re.findall(r"(\w+)\s*\(", plain))
    if not EXPRESSIONS.fullmatch(plain) or not called <= FUNCTIONS:
        return False
    numbers = map(int, re.findall(r"\b\d+\b", plain))
    return (
        len(POWERS.findall(plain)) <= 1 and max(numbers, default=0) <= MOST_EXPONENT if POWERS.search(plain) else True
    )


def _check_pickles(content: bytes, file: str, name: str) -> None:
    """Check the pickles of an archive of one object, as torch.save writes it."""
    if content[:4] != b"PK\x03\x04":  # the old form is a row of pickles, of which some reader may see others
        _refuse(file, f"{name} is not an archive of one object", content[:8])
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        _check_members(archive, f"{file} ({name})", len(content))
        names = archive.namelist()
        pickles = [archive.read(n) for n in names if n.endswith(".pkl")]
    if any("code/" in n or n.endswith("constants.pkl") for n in names):
        _refuse(file, f"{name} has code", names)
    for data in pickles:
        for operation, argument, _ in pickletools.genops(data):
            if operation.name in BUILDING or (operation.name == "GLOBAL" and not GLOBALS.fullmatch(str(argument))):
                _refuse(file, f"{name} builds more than tensors", argument or operation.name)
