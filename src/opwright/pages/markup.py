"""The skeleton of every page, and escaping of text that comes from models.

Lives here: `escape`, `json_text`, `page`, `resource`. Not here: tables (tables.py), what a page shows.

A page is one file that opens from disk. Its content security policy allows the styles and scripts that this module
writes, by their digests, and nothing else: no network, no handlers or styles in attributes, no plugins, no frames. Text
from models reaches a page through `escape`, or as JSON through `json_text`.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import pkgutil
import re
from collections.abc import Iterable, Mapping

LONGEST_TEXT = 2000
"""Characters: a longer text, such as a name of a damaged or hostile file, is cut in the middle."""

# Control characters (but tab and line feed), surrogates, and the marks that reorder the text around them (UAX 9).
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def visible(text: object, longest: int = LONGEST_TEXT) -> str:
    """Return a value as text of at most `longest` characters, whose invisible characters are written as \\uXXXX."""
    string = str(text)
    if len(string) > longest:
        half = (longest - 1) // 2
        string = f"{string[:half]}…{string[len(string) - half :]}"
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match.group()):04x}", string)


def escape(text: object, longest: int = LONGEST_TEXT) -> str:
    """Return a value as the text of an element or of a quoted attribute: the only way of a model's text into a page."""
    return html.escape(visible(text, longest))


def json_text(value: object) -> str:
    """Return a value as JSON that may stand in a script element: no markup, and no number that JSON lacks.

    raises ValueError for infinities and NaN
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def resource(package: str, name: str) -> str:
    """Return a text file of a package, such as a style or a script."""
    return (pkgutil.get_data(package, name) or b"").decode("utf-8")


def page(
    title: object,
    body: str,
    *,
    styles: Iterable[str] = (),
    scripts: Iterable[str] = (),
    documents: Mapping[str, object] | None = None,
    drawn_styles: Iterable[str] = (),
) -> str:
    """Return a page.

    title: text; body: markup, whose text was escaped; styles: in addition to style.css; scripts: sources of JavaScript,
    in order; documents: values of JSON by the identifier of the element that holds them; drawn_styles: texts of style
    elements that scripts add
    raises ValueError for a style or script that would end its own element
    """
    sheets = [resource(__package__, "style.css"), *styles]
    sources = list(scripts)
    for text, element in (*((s, "style") for s in sheets), *((s, "script") for s in sources)):
        if f"</{element}" in text.lower() or "<!--" in text:
            raise ValueError(f"a {element} of a page contains </{element} or <!--")
    policy = (
        "default-src 'none'; "
        f"style-src {_digests([*sheets, *drawn_styles])}; script-src {_digests(sources)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{escape(title, 200)}</title>",
        *(f"<style>{sheet}</style>" for sheet in sheets),
        "</head><body>",
        body,
        *(f'<script type="application/json" id="{k}">{json_text(v)}</script>' for k, v in (documents or {}).items()),
        *(f"<script>{source}</script>" for source in sources),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _digests(texts: Iterable[str]) -> str:
    """Return the sources of a policy that allow these inline texts alone."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
