"""Words and runs of words against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from custom_models import answers

NGRAMS = {"width": 2, "axis": -1, "reduction_type": "STRING_JOIN", "string_separator": "_"}


def strings(values, shape=(-1,)):
    return np.array([v.encode() if isinstance(v, str) else v for v in values] + [None], object)[:-1].reshape(shape)


TEXTS = strings(["a  bc", "", " \u3000d\te\u2003f\n", b"ok \xff no"], (2, 2))


def test_words_filled_up():
    words = answers("tftext:WhitespaceTokenizer", [TEXTS], ["STRING"])[0]
    assert words.shape == (2, 2, 3)
    assert words.tolist() == [[[b"a", b"bc", b""], [b"", b"", b""]], [[b"d", b"e", b"f"], [b"ok", b"", b""]]]


def test_words_in_rows():
    words, outer, inner = answers("tftext:WhitespaceTokenizer", [TEXTS], ["STRING", "INT64", "INT64"])
    assert words.tolist() == [b"a", b"bc", b"d", b"e", b"f", b"ok"]
    assert outer.tolist() == [0, 2, 4]
    assert inner.tolist() == [0, 2, 2, 5, 6]


def test_runs_of_words():
    x = strings("abcdef", (2, 3))
    assert answers("tftext:Ngrams", [x], ["STRING"], NGRAMS)[0].tolist() == [[b"a_b", b"b_c"], [b"d_e", b"e_f"]]
    assert answers("tftext:Ngrams", [x], ["STRING"], {**NGRAMS, "width": 4})[0].shape == (2, 0)


def test_runs_of_words_in_rows():
    rows = np.array([0, 3, 4, 6])
    y, result = answers("tftext:Ngrams", [strings("abcdef"), rows], ["STRING", "INT64"], NGRAMS)
    assert y.tolist() == [b"a_b", b"b_c", b"e_f"]
    assert result.tolist() == [0, 2, 2, 3]


@pytest.mark.parametrize(
    ("options", "rows", "says"),
    [
        ({**NGRAMS, "axis": 0}, [0, 6], "n-grams of this kind"),
        ({**NGRAMS, "width": 0}, [0, 6], "n-grams of this kind"),
        (NGRAMS, [0, 7], "not within the words"),
        (NGRAMS, [0, 4, 3], "not within the words"),
    ],
)
def test_what_is_refused(options, rows, says):
    with pytest.raises(RuntimeError, match=says):
        answers("tftext:Ngrams", [strings("abcdef"), np.array(rows)], ["STRING", "INT64"], options)


def test_an_output_for_each_dimension():
    with pytest.raises(RuntimeError, match="one output of rows for each dimension"):
        answers("tftext:WhitespaceTokenizer", [TEXTS], ["STRING", "INT64"])
