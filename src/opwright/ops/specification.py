"""The catalogue as plain data: what programs and files rely on when they use an operator, and reading such data back.

Lives here: `spec`, the tables of what a specification says, `document` and `operators_of` for files.
Not here: changes from one specification to another (spec_changes.py), how values become data (spec_values.py).

Computations, texts, kernels and formulas of operators are not part of it. A file is a document

    {"format": 1, "opwright": "0.2.0", "operators": {name: {...}}}

whose format number rises when a field changes its meaning; fields that are added have defaults, so that older files
are read as they were meant.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..core.errors import InvalidArgumentError, UnimplementedError
from . import registry
from .attributes import REQUIRED, Attr
from .definition import Operator
from .slots import Input, Output
from .spec_values import plain

Spec = dict[str, Any]
FORMAT = 1
NEEDED: Any = object()  # a field without default: every file has it


# ---- the tables: what is said of each part --------------------------------------------------------------------------


class SpecField(NamedTuple):
    """One thing a specification says of an operator or a part of it.

    kind: what it may be, by name in KINDS. default: what files that do not have it mean. get: reads the definition.
    """

    key: str
    kind: str
    default: Any
    get: Callable[[Any], Any]


def _by_call(fixed: Any, rule: Any) -> object:
    return "by the call" if rule is not None else fixed


def _gradient(op: Operator) -> str:
    return "rule" if op.gradient_rule else "empty" if op.has_gradient_rule else "none"


def _pairs(declared: Any) -> dict[str, str]:
    return {k: v if isinstance(v, str) else " or ".join(v) for k, v in sorted(declared.items())}


def _names(key: str) -> Callable[[Any], Any]:
    return lambda op: sorted(getattr(op, key, ()))


OPERATOR = (
    SpecField("version", "count", NEEDED, lambda op: op.version),
    SpecField("effect", "text or none", None, lambda op: _by_call(op.effect, op.effect_rule)),
    SpecField("control", "yes or no", False, lambda op: op.control),
    SpecField("elementwise", "yes or no", False, lambda op: op.elementwise),
    SpecField("gradient", "gradient", "none", _gradient),
    SpecField("lod", "text", "unchanged", lambda op: _by_call(op.lod, op.lod_rule)),
    SpecField("inplace", "names by name", {}, lambda op: _pairs(op.inplace)),
    SpecField("views", "names by name", {}, lambda op: _pairs(op.views)),
    SpecField("no_need_buffer", "names", [], _names("no_need_buffer")),
    SpecField("shape_only", "names", [], _names("shape_only")),
    SpecField("kinds", "text", "as declared", lambda op: _by_call("as declared", op.kinds_rule)),
    SpecField("on_rows", "yes or no", False, lambda op: op.rows_rule is not None),
)
INPUT = (
    SpecField("name", "text", NEEDED, lambda i: i.name),
    SpecField("dtypes", "names", NEEDED, lambda i: [d.name for d in i.dtypes]),
    SpecField("like", "text or none", None, lambda i: i.like),
    SpecField("optional", "yes or no", False, lambda i: i.optional),
    SpecField("repeated", "yes or no", False, lambda i: i.repeated),
    SpecField("mixed", "yes or no", False, lambda i: i.mixed),
    SpecField("ranks", "counts or none", None, lambda i: None if i.ranks is None else list(i.ranks)),
    SpecField("lod", "counts or none", None, lambda i: None if i.lod is None else list(i.lod)),
    SpecField("lod_of", "text or none", None, lambda i: i.lod_of),
    SpecField("kinds", "names or none", None, lambda i: None if i.kinds is None else list(i.kinds)),
    SpecField("since", "count", 1, lambda i: i.since),
)
OUTPUT = (
    SpecField("name", "text", NEEDED, lambda o: o.name),
    SpecField("like", "text or none", None, lambda o: o.like),
    SpecField("dtype", "text or none", None, lambda o: None if o.dtype is None else o.dtype.name),
    SpecField("repeated", "yes or no", False, lambda o: o.repeated),
    SpecField("intermediate", "yes or no", False, lambda o: o.intermediate),
    SpecField("lod_of", "text or none", None, lambda o: o.lod_of),
    SpecField("rows", "yes or no", True, lambda o: o.rows),
    SpecField("kind", "text or none", None, lambda o: o.kind),
    SpecField("since", "count", 1, lambda o: o.since),
)
ATTR = (
    SpecField("name", "text", NEEDED, lambda a: a.name),
    SpecField("type", "text", NEEDED, lambda a: a.type_name()),
    SpecField("required", "yes or no", NEEDED, lambda a: a.default is REQUIRED),
    SpecField("default", "value", None, lambda a: None if a.default is REQUIRED else plain(a.default)),
    SpecField("since", "count", 1, lambda a: a.since),
    SpecField("check", "text or none", None, lambda a: None if a.check is None else a.check.wanted),
    SpecField("condition", "condition", None, lambda a: None if a.check is None else plain(a.check.canonical_form)),
)
PARTS: tuple[
    tuple[str, tuple[SpecField, ...], Callable[[Operator], Iterable[Input[Any] | Output[Any] | Attr[Any]]]], ...
] = (
    ("inputs", INPUT, lambda op: op.inputs),
    ("outputs", OUTPUT, lambda op: op.outputs),
    ("attrs", ATTR, lambda op: op.attr_defs.values()),
)


# ---- to data --------------------------------------------------------------------------------------------------------


def spec(operators: Iterable[Operator | str] | None = None, *, users: bool = False) -> dict[str, Spec]:
    """Return the declarations that programs and files rely on, as JSON data, without loss.

    operators: only these, operators or names; by default the whole catalogue. users: also what users defined.
    The same in every process, operators sorted by name. `json.loads(json.dumps(spec())) == spec()`.
    raises KeyError for names that there are not
    """
    if operators is None:
        by_name = {**(registry.users() if users else {}), **registry.catalogue()}
    else:
        chosen = [registry.operator_of(op) for op in operators]
        by_name = {op.name: op for op in chosen}
    return {name: _describe(op) for name, op in sorted(by_name.items())}


def _describe(op: Operator) -> Spec:
    described = {field.key: field.get(op) for field in OPERATOR}
    for key, fields, parts in PARTS:
        described[key] = [{field.key: field.get(part) for field in fields} for part in parts(op)]
    return described


def document(operators: Mapping[str, Spec]) -> Spec:
    """Return a specification as a file has it: with the number of the format and this package's version."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        made_by = version("opwright")
    except PackageNotFoundError:  # used from its sources
        made_by = "unknown"
    return {"format": FORMAT, "opwright": made_by, "operators": dict(operators)}


# ---- from data ------------------------------------------------------------------------------------------------------


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_condition(value: Any) -> bool:
    return value is None or (type(value) is list and bool(value) and type(value[0]) is str)


KINDS: dict[str, Callable[[Any], bool]] = {
    "text": _is_text,
    "text or none": lambda v: v is None or _is_text(v),
    "yes or no": lambda v: type(v) is bool,
    "count": _is_count,
    "counts or none": lambda v: v is None or (type(v) is list and all(map(_is_count, v))),
    "names": lambda v: type(v) is list and all(map(_is_text, v)),
    "names or none": lambda v: v is None or (type(v) is list and all(map(_is_text, v))),
    "names by name": lambda v: type(v) is dict and all(map(_is_text, (*v, *v.values()))),
    "gradient": lambda v: v in ("rule", "empty", "none"),
    "condition": _is_condition,
    "value": lambda v: True,
}


def operators_of(document_: Any, where: str = "the specification") -> dict[str, Spec]:
    """Return the operators of a document, or of a mapping as `spec` returns it: checked, with every field filled in.

    raises InvalidArgumentError naming the place in it, UnimplementedError for a newer format
    """
    if isinstance(document_, Mapping) and type(document_.get("format")) is int:
        if document_["format"] > FORMAT:
            made_by = document_.get("opwright")
            raise UnimplementedError(
                what=f"{where} has a newer format",
                found=f"format {document_['format']}, made by opwright {made_by if _is_text(made_by) else '(unknown)'}",
                wanted=f"format {FORMAT} at most",
                do="read it with a newer opwright",
            )
        document_ = document_.get("operators")
    if not isinstance(document_, Mapping):
        raise _wrong(where, document_, "operators by name")
    return {name: _read(value, f"{where}: {name}") for name, value in document_.items()}


def _read(data: Any, where: str) -> Spec:
    read = _fields(data, OPERATOR, where)
    for key, fields, _ in PARTS:
        parts = data.get(key, NEEDED)
        if type(parts) is not list:
            raise _wrong(f"{where}.{key}", parts, "a list")
        read[key] = [_fields(part, fields, f"{where}.{key}[{i}]") for i, part in enumerate(parts)]
    for attr in read["attrs"]:
        if attr["type"].endswith("float"):  # other tools write 1.0 as 1
            attr["default"] = _floats(attr["default"])
    names: set[str] = set()
    for name in (part["name"] for key, _, _ in PARTS for part in read[key]):
        if name in names:
            raise InvalidArgumentError(
                what=f"{where[:200]} has two parts of one name",
                found=name[:100],
                wanted="names that differ among inputs, outputs and attributes",
            )
        names.add(name)
    return read


def _floats(value: Any) -> object:
    if type(value) is list:
        return [_floats(v) for v in value]
    return float(value) if type(value) is int and abs(value) < 2**53 else value


def _fields(data: Any, fields: Iterable[SpecField], where: str) -> Spec:
    if type(data) is not dict:
        raise _wrong(where, data, "an object")
    read = dict(data)  # fields that are not known here stay: whether they changed can still be said
    for field in fields:
        value = data.get(field.key, field.default)
        if value is NEEDED or not KINDS[field.kind](value):
            raise _wrong(f"{where}.{field.key}", value, field.kind)
        read[field.key] = value
    return read


def _wrong(where: str, value: Any, expected: str) -> InvalidArgumentError:
    shown = "nothing" if value is NEEDED else reprlib.repr(value)[:100]
    return InvalidArgumentError(
        what=f"{where[:200]} is not what a specification has there", found=shown, wanted=expected
    )
