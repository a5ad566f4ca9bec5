"""The skeleton of pages: escaping, JSON in script elements, the policy.

The oracles are html.parser, and SHA-256, by which a policy names a style or script (CSP 3, section 8.2).
"""

import base64
import hashlib
import json
from html.parser import HTMLParser

import pytest

from opwright.pages.markup import LONGEST_TEXT, escape, json_text, page, visible
from opwright.pages.tables import table

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)//",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' style='background:url(http://x)",
    "<!--<script>",
    "]]>&lt;b&gt;",
    "javascript:alert(1)",
    "\x00\x1b[31m\u202eevil\u2066\ud800",
    "{{7*7}}${7*7}",
    "\u2028\u2029",
)


class _Elements(HTMLParser):
    """Elements with their attributes, and texts by element."""

    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self._open = [], [], ""
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, text):
        self.texts.append((self._open, text))


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text(text):
    markup = table(["name"], [((text,), None)], text=["name"])
    parsed = _Elements(markup + f'<p title="{escape(text)}">')
    assert [tag for tag, _ in parsed.elements] == ["div", "table", "tr", "th", "tr", "td", "p"]
    assert parsed.elements[-1][1] == {"title": visible(text)}
    assert ("td", visible(text)) in parsed.texts


@pytest.mark.parametrize("text", HOSTILE)
def test_json_stays_json(text):
    parsed = _Elements(page("t", "", documents={"data": {text: [text]}}))
    (content,) = [t for tag, t in parsed.texts if tag == "script" and t.strip()]
    assert json.loads(content) == {text: [text]}
    assert sum(tag == "script" for tag, _ in parsed.elements) == 1


def test_infinities_are_no_json():
    with pytest.raises(ValueError, match="JSON"):
        json_text(float("inf"))


def test_long_text_is_cut_in_the_middle():
    text = visible("a" * 5_000_000 + "z")
    assert len(text) == LONGEST_TEXT - 1
    assert text.startswith("aaa")
    assert text.endswith("z")
    assert visible("\x07\u202e") == "\\u0007\\u202e"


def test_the_policy_allows_the_page_alone():
    scripts = ["document.title = 'a < b && c'", "let x = 1"]
    markup = page("<b>", "<p>x</p>", styles=["p { color: red }"], scripts=scripts)
    parsed = _Elements(markup)
    (policy,) = [a["content"] for tag, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy"]
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")}
    assert rules["default-src"] == ["'none'"]
    assert rules["base-uri"] == rules["form-action"] == ["'none'"]
    for element, rule in (("style", "style-src"), ("script", "script-src")):
        texts = [t for tag, t in parsed.texts if tag == element and t.strip()]
        digests = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in texts]
        assert rules[rule] == [f"'sha256-{d}'" for d in digests]
        assert len(digests) == 2
    assert "\r" not in markup
    assert not any(name.startswith("on") or name == "style" for _, attrs in parsed.elements for name in attrs)
    assert "script-src 'none'" in page("", "")


@pytest.mark.parametrize("source", ["'</script>'", "'<!--'", "'</SCRIPT '"])
def test_scripts_that_end_their_element_are_refused(source):
    with pytest.raises(ValueError, match="a script of a page contains"):
        page("", "", scripts=[source])


def test_bars():
    markup = table(["a", "b"], [((1, 2), 0.25), ((3, 4), float("nan")), ((5, 6), 7.0)])
    widths = [a["width"] for tag, a in _Elements(markup).elements if tag == "rect"]
    assert widths == ["25.0", "0.0", "100.0"]
