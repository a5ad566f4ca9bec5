"""Names in C: identifiers of tensors, functions and libraries.

Lives here: `identifier`, `unique`, `RESERVED`. Not here: the declarations (c_files.py).
"""

from __future__ import annotations

import re

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const constexpr
continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if
inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while
xor xor_eq
arena argc argv inputs main memory outputs read_file state status i abs exp fabs log pow printf sin sqrt
"""
RESERVED = frozenset(_WORDS.split())
"""Words that identifiers cannot be: keywords of C and C++, and names in the example and of C functions."""


def identifier(name: str) -> str:
    """Return a C identifier for a name of a model or file: lower case, other characters as underscores."""
    text = re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")[:60]
    return text if text and not text[0].isdigit() and text not in RESERVED else f"t_{text}"


def unique(name: str, taken: set[str]) -> str:
    """Return an identifier for a name that is not taken yet, and take it."""
    result = stem = identifier(name)
    number = 1
    while result in taken:
        number += 1
        result = f"{stem}_{number}"
    taken.add(result)
    return result
