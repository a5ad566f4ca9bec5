"""The stub of public functions' signatures is the one that the definitions give."""

import make_signatures


def test_the_stub_is_current() -> None:
    assert make_signatures.STUB.read_text("utf-8") == make_signatures.text(), "run make signatures"
