"""Integers of up to 16 bits without a scale, where the official kernels stop or give zeros.

The official converter writes such models all the same; answers are held to NumPy.
"""

from __future__ import annotations

import numpy as np
import pytest
from drawn import Draw, Drawn, T, feeds, model_of, ours, plain

from thorough import crossed

COMPARED = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
}


@pytest.mark.parametrize(("kind", "name"), crossed(["INT8", "UINT8", "INT16"], COMPARED))
def test_comparisons(name, kind):
    d = Draw(0, kind)
    x, y = d.t(3, 4, low=0, high=3), d.t(4, low=0, high=3)
    drawn = Drawn([x, y], [plain("BOOL")])
    result = ours(model_of(name, drawn), feeds(drawn))[0]
    assert result.tolist() == COMPARED[name](x.values, y.values).tolist()


@pytest.mark.parametrize("kind", ["INT8", "UINT8", "INT16"])
def test_the_mean_is_cut_toward_zero(kind):
    x = Draw(1, kind).t(5, 7, low=-100, high=100)
    drawn = Drawn([x, T("INT32", (1,), values=np.int32([1]), constant=True)], [plain(kind)])
    result = ours(model_of("MEAN", drawn), feeds(drawn))[0]
    assert result.tolist() == np.trunc(x.values.astype(np.float64).mean(1)).astype(int).tolist()
