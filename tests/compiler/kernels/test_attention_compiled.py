"""Attention as a kernel, against NumPy in float64."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels import NoKernel
from opwright.compiler.kernels.attention import attend, pack_keys
from opwright.compiler.kernels.cached_attention import attend_cached, visible_keys
from opwright.compiler.kernels.epilogue import ELEMENT, Epilogue
from opwright.compiler.kernels.grouped_attention import attend_groups, pack_cache
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import apply, arg, const, scalar
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import FusedAttention, GroupedAttention
from opwright.compiler.loops.planner import plan_of
from opwright.core.dtypes import float32
from thorough import sampled

RNG = np.random.default_rng(12)
CASES = [
    # lead, m, n, d, e, of k and v, turned, shape of the mask
    ((), 4, 5, 3, 2, (), False, None),
    ((2,), 12, 32, 16, 16, (2,), False, None),
    ((2, 3), 37, 70, 24, 40, (2, 3), False, (2, 1, 1, 70)),
    ((2, 3), 13, 33, 64, 64, (2, 1), False, (37 - 24, 33)),
    ((3,), 25, 100, 7, 65, (), True, (1, 25, 100)),
    ((1, 2), 128, 128, 32, 32, (1, 2), True, (1, 1, 1, 128)),
]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


UNIT = 2.0**-24
"""Greatest relative error of one rounding to float32."""


def growth(terms):
    """Relative error of a sum of rounded terms: 4 sqrt(n) units, which one sum in thousands exceeds (Higham and
    Mary, "A new approach to probabilistic rounding error analysis", 2019)."""
    return 4 * np.sqrt(terms) * UNIT


def assert_near(actual, q, k, v, scale, mask=0.0):
    """Compare with attention in float64, within what roundings of its scores, exponentials and sums amount to.

    q, k, v: matrices of rows by elements; mask: added to scores
    """
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * scale + mask
    weights = softmax(scores)
    expected = weights @ v
    below = np.where(weights > 0, scores.max(-1, keepdims=True) - scores, 0)
    summed = growth(q.shape[-1] + 2) * (np.abs(q) @ np.abs(k).swapaxes(-1, -2)) * abs(scale)
    masked = 2 * UNIT * np.where(weights > 0, np.abs(scores), 0)  # also by 1 / log(2) for a power of two
    each = summed + masked + UNIT * below + growth(k.shape[-2] + 2) + 8 * UNIT  # relative, of weights
    bound = (weights * each) @ np.abs(v) + np.abs(expected) * (weights * each).sum(-1, keepdims=True)
    excess = np.abs(actual - expected) / (bound + np.finfo(np.float32).tiny)
    assert excess.max() <= 1, f"{excess.max():.2f} of the bound"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_attention(case):
    lead, m, n, d, e, keys, turned, mask = case
    drawn = lambda *shape: RNG.normal(size=shape).astype(np.float32)  # noqa: E731
    q, k, v = drawn(*lead, m, d), drawn(*keys, n, d), drawn(*keys, n, e)
    stored = np.ascontiguousarray(k.swapaxes(-1, -2)) if turned else k
    score = apply("mul", arg(0, float32), scalar(d**-0.5, float32))
    extra = np.float32(0)
    inputs = {buffer(x, name): x for x, name in ((q, "q"), (stored, "k"), (v, "v"))}
    q_, k_, v_ = inputs
    operands = ()
    if mask is not None:
        extra = drawn(*mask) * 3
        operands = (buffer(extra, "mask"),)
        inputs[operands[0]] = extra
        score = apply("add", score, arg(1, float32))
    form = FusedAttention(Buffer("y", float32, (*lead, m, e)), q_, k_, v_, operands, score, turned)
    actual = run(form, inputs)
    assert_near(actual, q, k, v, d**-0.5, extra)
    np.testing.assert_array_equal(split(form, inputs, 3), actual)


def test_few_rows_are_left_to_products():
    x = np.zeros((2, 3, 8), np.float32)
    b = buffer(x)
    with pytest.raises(NoKernel):
        run(FusedAttention(Buffer("y", float32, (2, 3, 8)), b, b, b, (), arg(0, float32)), {b: x})


GROUPED = [
    # batches, queries, keys, heads, groups, size, mask of batches, heads and queries
    (1, 1, 7, 1, 1, 5, (1, 1, 1)),
    (2, 1, 130, 4, 4, 64, (1, 1, 1)),
    (1, 1, 65, 8, 4, 33, (1, 8, 1)),
    (3, 1, 40, 6, 2, 100, (3, 1, 1)),
    (2, 3, 31, 2, 2, 7, (2, 2, 3)),
    (2, 5, 200, 6, 2, 24, (1, 1, 5)),
    (1, 64, 130, 8, 2, 32, (1, 8, 64)),
    (2, 1, 1200, 8, 1, 20, (2, 1, 1)),
    (1, 2, 70, 16, 2, 40, (1, 1, 2)),
]


@pytest.mark.parametrize("case", sampled([(case,) for case in GROUPED]), ids=str)
def test_grouped_attention(case):
    b, s, t, n, m, h, rows = case
    q, k, v = (RNG.normal(size=shape).astype(np.float32) for shape in ((b, s, n, h), (b, t, m, h), (b, t, m, h)))
    mask = RNG.normal(size=(*rows, t)).astype(np.float32)
    mask[..., 0] = 1
    mask[RNG.uniform(size=mask.shape) < 0.3] = -np.inf
    mask[..., t * 2 // 3 :] = -np.inf
    mask[..., 1] = 0
    inputs = {buffer(x, name): x for x, name in ((q, "q"), (k, "k"), (v, "v"), (mask, "mask"))}
    heads = [np.repeat(x, n // m, 2).transpose(0, 2, 1, 3) for x in (k, v)]
    form = GroupedAttention(Buffer("y", float32, q.shape), *inputs, 0.3)
    actual = run(form, inputs)
    assert_near(actual.transpose(0, 2, 1, 3), q.transpose(0, 2, 1, 3), *heads, 0.3, mask)
    np.testing.assert_array_equal(split(form, inputs, 3), actual)


@pytest.mark.parametrize("queries", [1, 5])
def test_ranges_of_keys_by_head_change_no_bits_of_parts(queries):
    """Each head sees keys of its own: sums have the order of all of them, whichever groups a call computes."""
    q, k, v = (RNG.normal(size=(1, n, h, 33)).astype(np.float32) for n, h in ((queries, 8), (90, 4), (90, 4)))
    first, at = np.arange(8)[:, None] * 9, np.arange(90)
    mask = np.where((at >= first) & (at < first + 26), np.float32(0), np.float32(-np.inf)).reshape(1, 8, 1, 90)
    inputs = {buffer(x, name): x for x, name in ((q, "q"), (k, "k"), (v, "v"), (mask, "mask"))}
    form = GroupedAttention(Buffer("y", float32, q.shape), *inputs, 0.3)
    actual = run(form, inputs)
    heads = [np.repeat(x, 2, 2).transpose(0, 2, 1, 3) for x in (k, v)]
    assert_near(actual.transpose(0, 2, 1, 3), q.transpose(0, 2, 1, 3), *heads, 0.3, mask)
    for parts in (2, 3, 4):
        np.testing.assert_array_equal(split(form, inputs, parts), actual)


LEAST = np.finfo(np.float32).min  # how litert-torch hides entries of a cache


@pytest.mark.parametrize(("queries", "number"), [(1, -np.inf), (8, -np.inf), (1, LEAST), (8, LEAST)])
def test_keys_that_come_later_are_not_read_and_a_query_without_keys_has_no_weights(queries, number):
    q, k, v = (RNG.normal(size=(1, n, 2, 16)).astype(np.float32) for n in (queries, 50, 50))
    k[:, 20:], v[:, 20:] = np.nan, np.inf
    mask = np.where(np.arange(50) < 20, np.float32(0), np.float32(number)).reshape(1, 1, 1, 50)
    inputs = {buffer(x, name): x for x, name in ((q, "q"), (k, "k"), (v, "v"), (mask, "mask"))}
    form = GroupedAttention(Buffer("y", float32, q.shape), *inputs, 0.25)
    scores = np.einsum("bsnh,btnh->bnst", q, k[:, :20], dtype=np.float64) * 0.25
    expected = np.einsum("bnst,btnh->bsnh", softmax(scores), v[:, :20])
    np.testing.assert_allclose(run(form, inputs), expected, rtol=1e-5, atol=2e-6)
    hidden = {b: np.full_like(x, -np.inf) if b.name == "mask" else x for b, x in inputs.items()}
    assert np.isnan(run(form, hidden)).all()


@pytest.mark.parametrize("number", [-np.inf, LEAST])
@pytest.mark.parametrize("queries", [1, 2, 24])
def test_keys_outside_of_sliding_windows_are_not_read(queries, number):
    q, k, v = (RNG.normal(size=(1, n, 4, 16)).astype(np.float32) for n in (queries, 300, 300))
    k, v = k[:, :, :2].copy(), v[:, :, :2].copy()
    position, at = np.arange(queries)[:, None] + 170, np.arange(300)
    mask = np.where((at <= position) & (at > position - 40), np.float32(0), np.float32(number))[None, None]
    inputs = {buffer(x, name): x for x, name in ((q, "q"), (k, "k"), (v, "v"), (mask, "mask"))}
    form = GroupedAttention(Buffer("y", float32, q.shape), *inputs, 0.25)
    wide = [np.repeat(x, 2, 2).astype(np.float64) for x in (k, v)]
    scores = np.einsum("bsnh,btnh->bnst", q, wide[0]) * 0.25 + mask
    expected = np.einsum("bnst,btnh->bsnh", softmax(scores), wide[1])
    outside = (at < 96) | (at > 169 + queries)
    k[:, outside], v[:, outside] = np.nan, np.inf
    np.testing.assert_allclose(run(form, inputs), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("queries", [1, 8])
def test_a_query_all_of_whose_keys_are_hidden_by_the_least_number_has_their_mean(queries):
    """Scores are too small to change that number: all weights are equal, and so are those of one key less hidden."""
    q, k, v = (RNG.normal(size=(1, n, 2, 16)).astype(np.float32) for n in (queries, 50, 50))
    mask = np.full((1, 1, queries, 50), LEAST, np.float32)
    mask[..., 1:, :30] = -1e25  # less hidden, in all rows but the first
    inputs = {buffer(x, name): x for x, name in ((q, "q"), (k, "k"), (v, "v"), (mask, "mask"))}
    scores = np.einsum("bsnh,btnh->bnst", q, k) * np.float32(0.25) + mask
    expected = np.einsum("bnst,btnh->bsnh", softmax(scores.astype(np.float64)), v)
    form = GroupedAttention(Buffer("y", float32, q.shape), *inputs, 0.25)
    np.testing.assert_allclose(run(form, inputs), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("queries", [1, 24])
def test_layers_of_one_mask_locate_its_visible_keys_once(queries):
    """The second layer's queries are the first one's results."""
    q, k, v = (RNG.normal(size=(1, n, 2, 16)).astype(np.float32) for n in (queries, 50, 50))
    mask = np.where(np.arange(50) < 20, np.float32(0), np.float32(-np.inf)).reshape(1, 1, 1, 50)
    inputs = {buffer(x, name): x for x, name in ((q, "q"), (k, "k"), (v, "v"), (mask, "mask"))}
    x, *others = inputs
    forms = [GroupedAttention(Buffer("first", float32, q.shape), x, *others, 0.25)]
    forms.append(GroupedAttention(Buffer("y", float32, q.shape), forms[0].output, *others, 0.25))
    steps = plan_of(LoopGraph("test", tuple(inputs), (forms[1].output,), tuple(forms))).steps
    assert len(steps) == (3 if queries == 1 else 5)
    expected = q.astype(np.float64)
    for _ in forms:
        scores = np.einsum("bsnh,btnh->bnst", expected, k[:, :20]) * 0.25
        expected = np.einsum("bnst,btnh->bsnh", softmax(scores), v[:, :20])
    np.testing.assert_allclose(run(forms, inputs), expected, rtol=1e-5, atol=2e-6)


MASKED = Epilogue(
    apply("add", apply("mul", arg(0, float32), const(0.5, float32)), arg(1, float32)), ((ELEMENT, float32),), ()
)


@targets(
    (pack_keys, {"turned": False, "tiled": True}),
    (pack_keys, {"turned": True, "tiled": False}),
    (attend, {"rows": 6, "before": MASKED, "more": 2}),
    (visible_keys, {}),
    (attend_cached, {"rows": 1}),
    (attend_cached, {"rows": 4}),
    (pack_cache, {"tiled": True}),
    (attend_groups, {"rows": 6}),
)
def test_attention_compiles_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
