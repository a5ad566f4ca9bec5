"""Regular expressions: the forms of RE2's syntax that Python's `re` lacks.

Lives here: `compile_pattern`, which translates Unicode categories (`\\p{Ll}`, `\\pN`, `\\P{L}`), POSIX classes
(`[[:alpha:]]`), quoted text (`\\Q...\\E`) and `\\z`.  Not here: the operators (elementwise.py).
Source: the syntax of RE2 (github.com/google/re2, doc/syntax.txt); scripts such as `\\p{Greek}` are refused.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata

POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
"""POSIX classes as the inside of a class of `re`; of ASCII, as in RE2."""
_SPECIAL = re.compile(r"\\Q.*?(?:\\E|$)|\\[pP](?:\{\^?\w+\}|\w)|\\z|\[:\^?\w+:\]|\\.|\[\^?\]?|\]|.", re.DOTALL)


@functools.cache
def _categories() -> dict[str, list[tuple[int, int]]]:
    """Return the ranges of code points of each general category, "Ll", and of its first letter, "L"."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        for name in (category, category[0]):
            known = ranges.setdefault(name, [])
            if known and known[-1][1] == code - 1:
                known[-1] = (known[-1][0], code)
            else:
                known.append((code, code))
    return ranges


def _class(ranges: list[tuple[int, int]]) -> str:
    """Return the inside of a class of `re`."""
    return "".join(f"\\U{a:08x}" if a == b else f"\\U{a:08x}-\\U{b:08x}" for a, b in ranges)


def _complement(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    ends = [-1, *(b for _, b in ranges)]
    starts = [*(a for a, _ in ranges), sys.maxunicode + 1]
    return [(end + 1, start - 1) for end, start in zip(ends, starts) if end + 1 < start]


def _category(piece: str) -> str:
    """Return the inside of a class for `\\p{Ll}`, `\\pL`, `\\P{Ll}` or `\\p{^Ll}`."""
    name = piece[2:].strip("{}")
    negated = (piece[1] == "P") != name.startswith("^")
    ranges = _categories().get(name.removeprefix("^"))
    if ranges is None:
        raise re.error(f"invalid character class range: {piece} is not a general category of Unicode")
    return _class(_complement(ranges) if negated else ranges)


@functools.lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a compiled pattern; \\d, \\s, \\w match ASCII only. Raises re.error if it is invalid."""
    if not re.search(r"\\[pPQz]|\[:", pattern):
        return re.compile(pattern, re.ASCII)
    out, inside = [], False
    for piece in _SPECIAL.findall(pattern):
        if piece[:2] in ("\\p", "\\P"):
            text = _category(piece)
            out.append(text if inside else f"[{text}]")
        elif piece[:2] == "\\Q":
            out.append(re.escape(piece[2:].removesuffix("\\E")))
        elif piece == "\\z":
            out.append("\\Z")
        elif piece.startswith("[:") and inside:
            name = piece[2:-2]
            if name.removeprefix("^") not in POSIX:
                raise re.error(f"invalid character class range: {piece} is not a POSIX class")
            out.append(_posix(name))
        elif piece.startswith("[:"):  # no class: it opens one
            out.append(piece)
            inside = not piece.endswith("]")
        else:
            if piece.startswith("[") and not inside:
                inside = True
            elif piece == "]":
                inside = False
            out.append("\\[" if piece == "[" and inside and out and out[-1] != "[" and _opened(out) else piece)
    return re.compile("".join(out), re.ASCII)


def _opened(out: list[str]) -> bool:
    """Return whether a class is open in the pieces so far."""
    return next((p.startswith("[") for p in reversed(out) if p in ("[", "[^", "[]", "[^]", "]")), False)


def _posix(name: str) -> str:
    if not name.startswith("^"):
        return POSIX[name]
    inside = re.compile(f"[{POSIX[name[1:]]}]")
    codes = [(code, code) for code in range(128) if inside.match(chr(code))]
    return _class(_complement(codes))
