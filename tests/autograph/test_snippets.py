"""The table of snippets: as Python, eagerly with tensors, and as a graph, with one answer.

The answer is what Python says for plain numbers. Against TensorFlow the same graph tests show which it can do.
"""

import numpy as np
import pytest

from each_row import each_row
from thorough import sampled

from . import snippets

TABLE = [
    pytest.param(f, call, id=f"{f.__name__}-{k}", marks=[pytest.mark.ours] if ours else [])
    for f, calls, ours in snippets.CASES
    for k, call in enumerate(calls)
]


def plain(value):
    """Tensors, and nestings of them, as Python numbers."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "items") and not isinstance(value, dict):  # a list that grew
        return [plain(v) for v in value]
    return value if isinstance(value, (bool, int, float)) else np.asarray(value).tolist()


def tensors(tf, call):
    return [tf.constant(a) for a in call]


@each_row("snippet, call", sampled(TABLE, 3, by=lambda snippet, call: snippet))
def test_as_graph(tf, snippet, call):
    assert plain(tf.function(snippet)(*tensors(tf, call))) == plain(snippet(*call))


@each_row("snippet, call", TABLE)
def test_eagerly(tf, snippet, call):
    assert plain(snippet(*tensors(tf, call))) == plain(snippet(*call))


@each_row("snippet, call", TABLE)
def test_converted_on_plain_numbers(tf, snippet, call):
    assert plain(tf.autograph.to_graph(snippet)(*call)) == plain(snippet(*call))


def test_the_table_is_long():
    assert len(snippets.CASES) >= 120
