"""Compatibility of two versions of operators: the differences of their specifications, and which are allowed.

Lives here: `Change`, `compatibility` and the rules, as tables.
Not here: the content of a specification (specification.py), comparison of conditions (spec_values.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .spec_values import canonical, implies
from .specification import ATTR, INPUT, OPERATOR, OUTPUT, Spec, operators_of

PARTS = {"inputs": "input", "outputs": "output", "attrs": "attribute"}


@dataclass(frozen=True)
class Change:
    """One difference between two catalogues. allowed: whether programs and files of the old one still work.

    operator; what: the sentence; part: "operator", "input", "output" or "attribute"; name: of that part; rule: a
    short name of what was broken or used; old, new: the values, as plain data.
    """

    operator: str
    what: str
    allowed: bool
    part: str = "operator"
    name: str = ""
    rule: str = ""
    old: Any = None
    new: Any = None

    def __str__(self) -> str:
        return f"{'  ' if self.allowed else '! '}{self.operator}: {self.what}"


Found = tuple[str, Any, Any, str, bool]
"""One change, as a rule yields it: its name, the old and the new value, the end of the sentence, whether it may."""


def _shown(value: Any) -> str:
    text = canonical(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _turned(old: Any, new: Any) -> str:
    return f"was {_shown(old)}, is {_shown(new)}"


# ---- one field of one part ------------------------------------------------------------------------------------------
# Each rule gets the field, both values and the two parts (or operators) and yields what it finds. A field that is in no
# table here (made by a newer version, which knows more) may not change: its meaning is unknown.

Rule = Callable[[str, Any, Any, Spec, Spec], Iterator[Found]]


def _fixed(key: str, old: Any, new: Any, a: Spec, b: Spec) -> Iterator[Found]:
    """Forbid any change, even a relaxation: files written by the new operator are read by the old one, too."""
    yield key, old, new, f"{key} {_turned(old, new)}", False


def _free(key: str, old: Any, new: Any, a: Spec, b: Spec) -> Iterator[Found]:
    """Permit any change: it concerns memory and speed, and no result depends on it."""
    yield key, old, new, f"{key} {_turned(old, new)}", True


def _widening(key: str, old: Any, new: Any, a: Spec, b: Spec) -> Iterator[Found]:
    """Permit more values, but not fewer. None accepts all."""
    lost = [] if new is None else ["others"] if old is None else [v for v in old if v not in new]
    more = [] if old is None else ["any"] if new is None else [v for v in new if v not in old]
    if lost:
        yield key, old, new, f"{key}: takes {', '.join(map(str, lost))} no more", False
    if more:
        yield key, old, new, f"{key}: takes {', '.join(map(str, more))} too", True


def _to_true(key: str, old: Any, new: Any, a: Spec, b: Spec) -> Iterator[Found]:
    yield key, old, new, f"{key} {_turned(old, new)}", new is True


def _version(key: str, old: Any, new: Any, a: Spec, b: Spec) -> Iterator[Found]:
    yield key, old, new, f"version {'fell' if new < old else 'rose'} from {old} to {new}", new > old


def _gradient(key: str, old: Any, new: Any, a: Spec, b: Spec) -> Iterator[Found]:
    """Compare gradients. Only `none`, an error before, may change."""
    what = {
        ("rule", "none"): "the gradient is gone",
        ("rule", "empty"): "the gradient is gone: differentiation ends here now",
        ("empty", "none"): "differentiation ended here, is an error now",
        ("empty", "rule"): "differentiation ended here, goes on now: what was trained before is trained otherwise",
    }.get((old, new), f"gradient {_turned(old, new)}")
    yield key, old, new, what, old == "none"


def _default(key: str, old: Any, new: Any, a: Spec, b: Spec) -> Iterator[Found]:
    before, now = (_shown(v) if not part["required"] else "none (required)" for v, part in ((old, a), (new, b)))
    if before != now and a["type"] == b["type"]:
        yield key, old, new, f"default was {before}, is {now}", False


def _condition(key: str, old: Any, new: Any, a: Spec, b: Spec) -> Iterator[Found]:
    before, now = a["check"] or "none", b["check"] or "none"
    looser = implies(old, new, integral="int" in a["type"])
    if looser:
        if not implies(new, old, integral="int" in a["type"]):
            yield key, old, new, f"check loosened: was {before}, is {now}", True
    elif looser is None:
        yield key, old, new, f"check was {before}, is {now}: which is stricter cannot be told", False
    else:
        yield key, old, new, f"check tightened: was {before}, is {now}", False


def _ignored(key: str, old: Any, new: Any, a: Spec, b: Spec) -> Iterator[Found]:
    """Yield nothing: another field's rule covers it."""
    yield from ()


RULES: dict[str, dict[str, Rule]] = {
    "operator": {
        "version": _version,
        "effect": _fixed,
        "control": _fixed,
        "elementwise": _to_true,
        "gradient": _gradient,
        "lod": _fixed,
        "inplace": _free,
        "views": _free,
        "no_need_buffer": _free,
        "shape_only": _free,
        "kinds": _fixed,
        "on_rows": _to_true,
        "inputs": _ignored,
        "outputs": _ignored,
        "attrs": _ignored,
    },
    "input": {
        "name": _ignored,
        "dtypes": _widening,
        "like": _fixed,
        "optional": _fixed,
        "repeated": _fixed,
        "mixed": _to_true,
        "ranks": _widening,
        "lod": _widening,
        "lod_of": _fixed,
        "kinds": _widening,
        "since": _fixed,
    },
    "output": {
        "name": _ignored,
        "like": _fixed,
        "dtype": _fixed,
        "repeated": _fixed,
        "intermediate": _fixed,
        "lod_of": _fixed,
        "rows": _fixed,
        "kind": _fixed,
        "since": _fixed,
    },
    "attribute": {
        "name": _ignored,
        "type": _fixed,
        "required": _ignored,
        "default": _default,
        "since": _fixed,
        "check": _ignored,
        "condition": _condition,
    },
}
for _part, _fields in (("operator", OPERATOR), ("input", INPUT), ("output", OUTPUT), ("attribute", ATTR)):
    assert {f.key for f in _fields} <= RULES[_part].keys(), f"a field of {_part}s has no rule"


def _compared(part: str, a: Spec, b: Spec) -> Iterator[Found]:
    for key in dict.fromkeys((*RULES[part], *sorted(a.keys() | b.keys()))):
        rule = RULES[part].get(key, _fixed)
        if rule is _default and a["required"] != b["required"]:  # default: none and null are the same data
            yield from rule(key, a[key], b[key], a, b)
        elif canonical(a.get(key)) != canonical(b.get(key)):
            yield from rule(key, a.get(key), b.get(key), a, b)


# ---- parts that come, go or move ------------------------------------------------------------------------------------


def _added(part: str, old: Spec, new: Spec) -> Iterator[Found]:
    """Yield the change for a part that is new in version `since` of its operator."""
    how = {"input": "optional", "output": "intermediate"}.get(part)
    fine = new[how] if how else not new["required"]
    if not fine:
        problem = f"not {how}" if how else "has no default"
        yield "added", None, new["name"], f"is new and {problem}", False
        return
    more = f"default {_shown(new['default'])}" if part == "attribute" else how
    if old["version"] < new["since"]:
        since = "" if part == "attribute" else f", since version {new['since']}"
        yield "added", None, new["name"], f"is new, {more}{since}", True
    else:  # old files are read; but nothing tells that new ones need it, and calls by position may mean it
        yield (
            "undated",
            None,
            new["since"],
            f"is new, {more}; give it since={old['version'] + 1}: its `since` is "
            f"{new['since']}, so files that use it say that version {old['version']} reads them",
            True,
        )


def _gone(part: str, gone: Spec, fresh: list[Spec]) -> Found:
    """Return the change for a removed part, with a hint if an equal part was added: probably a rename."""
    alike = [
        p["name"]
        for p in fresh
        if canonical({**p, "name": "", "since": 1}) == canonical({**gone, "name": "", "since": 1})
    ]
    hint = f"; was it renamed to {alike[0]!r}? Files and calls know it by the old name" if len(alike) == 1 else ""
    return "gone", gone["name"], None, f"is gone{hint}", False


def _parts(key: str, old: Spec, new: Spec) -> Iterator[tuple[str, Found]]:
    """Yield the changes among the inputs, outputs or attributes of one operator, with the part's name."""
    part = PARTS[key]
    a, b = ({p["name"]: p for p in op[key]} for op in (old, new))
    if part == "attribute":  # calls order them by version, files have names
        a, b = ({p["name"]: p for p in sorted(side.values(), key=lambda p: p["since"])} for side in (a, b))
    fresh = [p for name, p in b.items() if name not in a]
    for name, before in a.items():
        if name in b:
            for change in _compared(part, before, b[name]):
                yield name, change
        else:
            yield name, _gone(part, before, fresh)
    for one in fresh:
        for change in _added(part, old, one):
            yield one["name"], change
    kept_before, kept_now = [n for n in a if n in b], [n for n in b if n in a]
    if kept_before != kept_now:
        yield (
            "",
            (
                "order",
                kept_before,
                kept_now,
                f"the order of {part}s {_turned(kept_before, kept_now)}: calls give them by position",
                False,
            ),
        )
    else:
        ahead = [n for i, n in enumerate(b) if n not in a and any(later in a for later in list(b)[i:])]
        for name in ahead:
            yield (
                name,
                (
                    "order",
                    None,
                    name,
                    f"is new and stands before older {part}s, which calls and files know by position",
                    False,
                ),
            )


def _operator(name: str, old: Spec, new: Spec) -> Iterator[Change]:
    for rule, before, now, what, allowed in _compared("operator", old, new):
        yield Change(name, what, allowed, "operator", "", rule, before, now)
    for key, part in PARTS.items():
        for part_name, (rule, before, now, what, allowed) in _parts(key, old, new):
            sentence = f"{part} {part_name!r} {what}" if part_name else what
            yield Change(name, sentence, allowed, part, part_name, rule, before, now)


def compatibility(old: Mapping[str, Spec] | Spec, new: Mapping[str, Spec] | Spec) -> list[Change]:
    """Return the changes from one specification to another, each with whether it is allowed.

    old, new: results of `spec()`, or files of `opwright op spec` read as JSON. Changes are sorted by operator, then the
    operator itself, its inputs, outputs and attributes; the list is empty for equal specifications. All are allowed if
    `all(c.allowed for c in changes)`.
    raises InvalidArgumentError for an invalid specification, UnimplementedError for one of a newer format
    """
    a, b = operators_of(old, "the old specification"), operators_of(new, "the new specification")
    changes: list[Change] = []
    for name in sorted(a.keys() | b.keys()):
        if name not in b:
            changes.append(Change(name, "the operator is gone", False, rule="gone", old=name))
        elif name not in a:
            changes.append(Change(name, "the operator is new", True, rule="added", new=name))
        else:
            changes += _operator(name, a[name], b[name])
    return changes
