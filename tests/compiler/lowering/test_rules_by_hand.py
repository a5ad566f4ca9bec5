"""Rules whose operators come from gradients and layers, and have few rows of their own: against the eager operators."""

import numpy as np
import pytest

import opwright as ow
from opwright.compiler import partitioner
from opwright.compiler.lowering.registry import MODULES
from opwright.ops.sequence.gru import DynamicGru
from thorough import crossed, sampled

RNG = np.random.default_rng(11)


def f32(*shape):
    return ow.constant(RNG.standard_normal(shape, dtype=np.float32))


def ran_natively(function, *args):
    """The operators of the native calls; the results are checked against the eager ones."""
    f = ow.function(function, jit_compile=True, autograph=False)
    expected = ow.nest.flatten(function(*args))
    for actual, y in zip(ow.nest.flatten(f(*args)), expected, strict=True):
        scale = np.abs(y.numpy()).max() if y.numpy().size else 0.0
        np.testing.assert_allclose(actual.numpy(), y.numpy(), 1e-5, 1e-5 * scale)
    ((_, result),) = f.get_concrete_function(*args).program.plan._made.values()
    return {n.op.name for s in result.regions for n in s.nodes}


@pytest.fixture(autouse=True)
def whatever_the_size(monkeypatch):
    monkeypatch.setattr(partitioner.Partitioner, "_pays", lambda self, nodes: len(nodes) > 0)


def gradients(function, *sources):
    with ow.GradientTape() as tape:
        tape.watch(sources)
        y = function(*sources)
    return tape.gradient(y, sources)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [1, 0], [0, 2], [0, 0]]])
@pytest.mark.parametrize(
    ("size", "stride", "dilation"), [(1, 1, 1), (3, 1, 1), (3, 2, 1), (2, 3, 1), (1, 2, 1), (3, 1, 2), (2, 1, 3)]
)
def test_gradients_of_convolutions(size, stride, dilation, padding):
    def loss(x, w):
        return ow.nn.conv2d(x, w, stride, padding, dilations=dilation)

    ran = ran_natively(lambda x, w: gradients(loss, x, w), f32(2, 9, 8, 3), f32(size, size, 3, 5))
    assert "Conv2DBackpropFilter" in ran
    if stride == 1 and size > 1:
        assert "Conv2DBackpropInput" in ran


@pytest.mark.parametrize("pool", [ow.nn.max_pool2d, ow.nn.avg_pool2d])
@pytest.mark.parametrize("ksize", [(2, 2), (3, 2)])
def test_gradients_of_pools(pool, ksize):
    """Test non-overlapping windows; with ties, the first pixel receives the gradient."""
    x = ow.constant(RNG.integers(0, 3, (2, 6, 4, 3)).astype(np.float32))
    ran = ran_natively(lambda x: gradients(lambda x: pool(x, ksize, ksize, "VALID") ** 2, x), x)
    assert ran & {"MaxPoolGrad", "AvgPoolGrad"}


def test_the_gradient_of_a_pool_alone_computes_its_maxima():
    """Test a tape over a function: MaxPoolGrad reads the shape of the maxima only, and its graph has zeros there."""
    x = ow.constant(RNG.standard_normal((2, 6, 4, 3)).astype(np.float32))
    pool = ow.function(lambda x: ow.nn.max_pool2d(x, 2, 2, "VALID"), jit_compile=True, autograph=False)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = pool(x)
    dy = RNG.standard_normal((2, 3, 2, 3)).astype(np.float32)
    windows = x.numpy().reshape(2, 3, 2, 2, 2, 3)
    expected = (windows == windows.max((2, 4), keepdims=True)) * dy.reshape(2, 3, 1, 2, 1, 3)
    np.testing.assert_array_equal(tape.gradient(y, x, ow.constant(dy)), expected.reshape(x.shape))


@pytest.mark.parametrize("inside", [True, False], ids=["tape inside", "tape outside"])
@pytest.mark.parametrize("volume", [False, True], ids=["images", "volumes"])
def test_pools_of_nan(volume, inside):
    """The maximum of a window with NaN is NaN, and its first NaN receives the gradient."""
    operator = ow.nn.max_pool3d if volume else ow.nn.max_pool2d
    shape = (2, 4, 6, 4, 19)[0 if volume else 1 :]
    x = RNG.integers(0, 3, shape).astype(np.float32)
    x[RNG.random(shape) < 0.15] = np.nan
    x[RNG.random(shape) < 0.15] = -np.inf
    sizes = shape[1:-1]
    apart = x.reshape(shape[0], *[n for size in sizes for n in (size // 2, 2)], shape[-1])
    taps = [2 + 2 * axis for axis in range(len(sizes))]
    windows = np.moveaxis(apart, taps, range(len(taps))).reshape(2 ** len(taps), -1)
    dy = RNG.standard_normal((shape[0], *[n // 2 for n in sizes], shape[-1])).astype(np.float32)
    maxima = windows.max(0)  # NumPy's maximum of NaN is NaN, its index that of the first
    routed = np.zeros_like(windows)
    routed[windows.argmax(0), np.arange(windows.shape[1])] = dy.reshape(-1)
    back = np.moveaxis(routed.reshape(*[2] * len(taps), *dy.shape), range(len(taps)), taps)

    def f(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = operator(x, 2, 2, "VALID")
        return y, tape.gradient(y, x, dy)

    if inside:
        y, dx = ow.function(f, jit_compile=True, autograph=False)(ow.constant(x))
    else:
        t = ow.constant(x)
        pool = ow.function(lambda x: operator(x, 2, 2, "VALID"), jit_compile=True, autograph=False)
        with ow.GradientTape() as tape:
            tape.watch(t)
            y = pool(t)
        dx = tape.gradient(y, t, ow.constant(dy))
    np.testing.assert_array_equal(y, maxima.reshape(dy.shape))
    np.testing.assert_array_equal(dx, back.reshape(shape))


@pytest.mark.parametrize(
    ("pool", "padding", "window"),
    crossed(
        [ow.nn.max_pool2d, ow.nn.avg_pool2d],
        ["SAME", "VALID"],
        [(3, 2), (3, 1), (2, 3), ((2, 3), (1, 2)), (5, 2)],
        every=4,
    ),
)
def test_gradients_of_pools_that_overlap(pool, padding, window):
    """Ties, NaN and infinities: the first NaN receives the gradient, or else the first maximum."""
    size, stride = window
    weights = f32(2, 9, 11, 70)
    for x in (weights, ow.round(weights), f32(1, 9, 11, 16)):
        ran = ran_natively(lambda x: gradients(lambda x: pool(x, size, stride, padding) ** 2, x), x)
        assert ran & {"MaxPoolGrad", "AvgPoolGrad"}
    if pool is ow.nn.max_pool2d:
        x = weights.numpy()
        x[RNG.random(x.shape) < 0.2] = np.nan
        x[RNG.random(x.shape) < 0.2] = -np.inf
        x[0, :4, :4] = -np.inf
        dy = ow.constant(RNG.standard_normal(pool(x, size, stride, padding).shape).astype(np.float32))

        def gradient(x):
            with ow.GradientTape() as tape:
                tape.watch(x)
                y = pool(x, size, stride, padding)
            return tape.gradient(y, x, dy)

        assert "MaxPoolGrad" in ran_natively(gradient, ow.constant(x))


@pytest.mark.parametrize("multiples", [[2, 1, 3], [1, 1, 1], [1, 4, 1], [2, 2, 2]])
def test_gradients_of_tiles(multiples):
    x, m = f32(3, 40, 30), multiples
    weights = f32(*np.multiply((3, 40, 30), m))

    def gradient(x, weights):
        return gradients(lambda x: ow.tile(x, m) * weights, x)[0]

    assert "TileGrad" in ran_natively(gradient, x, weights) or m == [1, 1, 1]
    expected = weights.numpy().astype(np.float64).reshape(m[0], 3, m[1], 40, m[2], 30).sum((0, 2, 4))
    f = ow.function(gradient, jit_compile=True, autograph=False)
    np.testing.assert_allclose(f(x, weights).numpy(), expected, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("channels", "multiplier", "window"),
    crossed(
        (3, 16, 70),
        (1, 2),
        [
            (3, 1, 1, "SAME"),
            (3, 2, 1, "SAME"),
            (5, 1, 1, "VALID"),
            (3, 1, 2, "SAME"),
            (2, 3, 1, "VALID"),
            (1, 1, 1, "SAME"),
        ],
        every=4,
    ),
    ids=str,
)
def test_gradients_of_depthwise_convolutions(channels, multiplier, window):
    size, stride, dilation, padding = window

    def convolution(x, w):
        return ow.nn.depthwise_conv2d(x, w, [1, stride, stride, 1], padding, dilations=[dilation] * 2)

    x, w = f32(2, 9, 11, channels), f32(size, size, channels, multiplier)
    ran = ran_natively(lambda x, w: gradients(lambda x, w: convolution(x, w) ** 2, x, w), x, w)
    assert {"DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"} <= ran


@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 1), (1, 1000)])
def test_cross_entropies(shape):
    labels = ow.constant(RNG.integers(0, shape[-1], shape[:-1]))
    x = f32(*shape)
    sparse = ow.nn.sparse_softmax_cross_entropy_with_logits
    assert "SparseSoftmaxCrossEntropyWithLogits" in ran_natively(lambda i, x: sparse(labels=i, logits=x), labels, x)
    dense = ow.nn.softmax(f32(*shape))
    ran = ran_natively(lambda p, x: ow.nn.softmax_cross_entropy_with_logits(labels=p, logits=x), dense, x)
    assert "SoftmaxCrossEntropyWithLogits" in ran
    ran_natively(lambda x: gradients(lambda x: sparse(labels=labels, logits=x), x), x)


def test_a_label_outside_is_reported_in_the_operators_words():
    f = ow.function(
        lambda i, x: ow.nn.sparse_softmax_cross_entropy_with_logits(labels=i, logits=x) * 2.0,
        jit_compile=True,
        autograph=False,
    )
    x = f32(4, 6)
    good, bad = ow.constant([0, 1, 2, 5]), ow.constant([0, 1, 2, 6])
    before = f(good, x)
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"SparseSoftmax.*label value of 6"):
        f(bad, x)
    np.testing.assert_array_equal(f(good, x), before)


def test_batch_norm_by_given_moments():
    c = 6
    args = f32(2, 5, 4, c), f32(c), f32(c), f32(c), ow.exp(f32(c))
    operator = ow.ops.get("FusedBatchNorm")
    assert "FusedBatchNorm" in ran_natively(lambda *a: list(operator(*a, is_training=False)), *args)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_what_was_broadcast_is_summed(rank):
    shapes = {1: ((5,), (3, 5)), 2: ((4, 1), (2, 4, 6)), 3: ((2, 1, 3), (2, 5, 3))}[rank]
    small, whole = (f32(*s) for s in shapes)
    assert "SumToLike" in ran_natively(lambda a, b: gradients(lambda a: ow.tanh(a * b), a), small, whole)


MOVES = {
    "a slice's gradient": ("StridedSliceGrad", lambda x: gradients(lambda x: ow.square(x[1:3, 2:]), x), (5, 6)),
    "a row's gradient": ("StridedSliceGrad", lambda x: gradients(lambda x: ow.square(x[2]), x), (5, 6)),
    "an element's gradient": ("StridedSliceGrad", lambda x: gradients(lambda x: x[3, 4] * x[0, 1], x), (5, 6)),
    "an element": ("StridedSlice", lambda x: x[3, -2] * 2.0, (5, 6)),
    "an element of a column": ("StridedSliceGrad", lambda x: gradients(lambda x: ow.square(x[:, 1]), x), (2, 3, 1)),
    "blocks to space": ("BatchToSpaceND", lambda x: ow.batch_to_space(x, [2, 3], [[0, 0], [0, 0]]), (12, 2, 3, 2)),
    "space to blocks": ("SpaceToBatchND", lambda x: ow.space_to_batch(x, [2, 2], [[1, 0], [0, 1]]), (2, 5, 7, 3)),
    "depth to space": ("DepthToSpace", lambda x: ow.nn.depth_to_space(x, 2), (2, 3, 2, 8)),
    "space to depth": ("SpaceToDepth", lambda x: ow.nn.space_to_depth(x, 2), (2, 4, 6, 3)),
    "backwards": ("StridedSlice", lambda x: x[::-1, 4:0:-2], (5, 6)),
    "tiles": ("Tile", lambda x: ow.tile(x, [2, 3]), (3, 4)),
    "turned": ("Transpose", lambda x: ow.transpose(x, [2, 0, 1]), (3, 4, 5)),
    "parts": ("Split", lambda x: ow.split(x, 3, 1), (4, 9)),
    "unequal parts": ("SplitV", lambda x: ow.split(x, [2, 5, 2], 1), (4, 9)),
    "layers": ("Unpack", lambda x: ow.unstack(x, axis=1), (4, 3, 2)),
    "stacked": ("Pack", lambda x: ow.stack([x, x * 2.0, x], 1), (4, 3)),
    "joined": ("Concat", lambda x: ow.concat([x, x[:1], x * 2.0], 0), (4, 3)),
    "nothing joined": ("Concat", lambda x: ow.concat([x[:0], x + 1.0], 0), (4, 3)),
    "margins": ("Pad", lambda x: ow.pad(x, [[0, 2], [1, 0]], constant_values=0.5), (4, 3)),
    "one of many": ("OneHot", lambda x: ow.one_hot(ow.cast(x * 2.0, ow.int32), 4, axis=1), (5, 3)),
}


@pytest.mark.parametrize("what", MOVES)
def test_moves(what):
    name, function, shape = MOVES[what]
    assert name in MODULES
    assert name in ran_natively(function, f32(*shape))


@pytest.mark.parametrize("options", [{}, {"is_reverse": True, "origin_mode": True}, {"activation": "relu"}])
@pytest.mark.parametrize(("lengths", "native"), [((4, 4, 4), True), ((4, 3, 5), False)])
def test_gated_units_over_packed_sequences(lengths, native, options):
    offsets = np.cumsum((0, *lengths))
    bias, h = f32(1, 15), f32(3, 5)

    def units(x, w, bias=bias, h=h):
        return DynamicGru(x, w, bias, h, ow.constant(offsets), **options)[0]

    x, w = f32(12, 15), ow.constant(0.3 * RNG.standard_normal((5, 15), dtype=np.float32))
    assert ("DynamicGru" in ran_natively(lambda x, w: ow.tanh(units(x, w)), x, w)) is native
    assert ("DynamicGru" in ran_natively(lambda x, w: ow.tanh(units(x, w, None, None)), x, w)) is native


def test_what_gradients_read_is_made():
    def loss(x, w):
        return ow.reduce_sum(DynamicGru(x, w, None, None, ow.constant(np.array([0, 4, 8])))[0])

    w = ow.constant(RNG.uniform(-0.3, 0.3, (5, 15)).astype(np.float32))
    ran = ran_natively(lambda x, w: gradients(loss, x, w), f32(8, 15), w)
    assert "DynamicGru" not in ran


SIZES = {"a": 3, "b": 21, "c": 4, "d": 9, "e": 17}
EQUATIONS = [
    "abc,cde->abde",  # the projections of attention, its scores and values, and their gradients
    "aecd,abcd->acbe",
    "acbe,aecd->abcd",
    "abcd,cde->abe",
    "cde,abde->abc",
    "abc,abde->cde",
    "abc,abcd->ad",
    "ab,cd->dbca",
    "ab,ab->a",
    "ab,ab->",
    "b,ab->a",
    "...ab,...bc->c...a",
    "abc->cab",
    "abc->b",
    "ab,cd->ac",
    "ab,bc,cd->ad",
    "ab,cd,bc->ad",
    "ca,ab,cb->c",
    "a,b,c->cab",
]


@pytest.mark.parametrize("equation", sampled(EQUATIONS))
def test_contractions_of_labels(equation):
    """Test results against NumPy in float64."""
    terms = equation.partition("->")[0].replace("...", "e").split(",")
    factors = [f32(*(SIZES[label] for label in term)) for term in terms]
    assert "Einsum" in ran_natively(lambda *x: ow.einsum(equation, *x) * 2.0, *factors)
    f = ow.function(lambda *x: ow.einsum(equation, *x) * 2.0, jit_compile=True, autograph=False)
    exact = 2.0 * np.einsum(equation, *(x.numpy().astype(np.float64) for x in factors))
    np.testing.assert_allclose(f(*factors), exact, 1e-5, 1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_contractions_of_other_types(dtype):
    a, b, c = (ow.constant((RNG.standard_normal(s) * 9).astype(dtype)) for s in ((3, 4), (4, 5), (3, 5)))
    assert "Einsum" in ran_natively(lambda *x: ow.einsum("ai,ij,aj->a", *x) * 2, a, b, c)
    f = ow.function(lambda *x: ow.einsum("ai,ij,aj->a", *x) * 2, jit_compile=True, autograph=False)
    np.testing.assert_allclose(f(a, b, c), 2 * np.einsum("ai,ij,aj->a", a, b, c), 1e-13)


@pytest.mark.parametrize("equation", ["aa,ab->b"])
def test_contractions_that_stay(equation):
    terms = equation.partition("->")[0].split(",")
    assert "Einsum" not in ran_natively(
        lambda *x: ow.tanh(ow.einsum(equation, *x)), *(f32(*(SIZES[c] for c in term)) for term in terms)
    )


@pytest.mark.parametrize(
    ("shape", "axis", "indices"),
    [
        ((1, 40, 9), 1, [3, 39, 3, 0]),
        ((5, 30), 1, [29, 2, 2, 7, 2]),
        ((3, 8, 6), -1, [[5, 0], [0, 5]]),
        ((2, 7, 4), 1, [6]),
    ],
)
def test_gradients_of_gathers(shape, axis, indices):
    """Test sums over repeated indices, against NumPy in float64."""
    indices = np.array(indices, np.int32)

    def gradient(x, w):
        (dx,) = gradients(lambda x: ow.gather(ow.tanh(x), indices, axis=axis) * w, x)
        return dx

    x = f32(*shape)
    w = f32(*np.take(x.numpy(), indices, axis).shape)
    assert "GatherGrad" in ran_natively(gradient, x, w)
    columns = tuple(range(axis % len(shape), axis % len(shape) + indices.ndim))
    rows = np.moveaxis(w.numpy().astype(np.float64), columns, range(indices.ndim))
    exact = np.zeros(np.moveaxis(np.empty(shape), axis, 0).shape)
    np.add.at(exact, indices, rows)
    exact = np.moveaxis(exact, 0, axis) * (1 - np.tanh(x.numpy().astype(np.float64)) ** 2)
    np.testing.assert_allclose(ow.function(gradient, jit_compile=True)(x, w), exact, 1e-5, 1e-6)


INDEXED = [
    lambda x, i: x[:, i],
    lambda x, i: x[..., i],
    lambda x, i: x[i, :, i + 1],
    lambda x, i: x[i, i, i],
    lambda x, i: x[:, i, None],
    lambda x, i: x[..., None, i],
    lambda x, i: x[::2, 1::2],
    lambda x, i: x[::-1, :, 3:0:-2],
    lambda x, i: x[None, ..., None, 2],
    lambda x, i: x[..., None],
]


def test_slices_at_computed_indices_with_steps_and_new_axes():
    """Test them and their gradients: each is native, and its numbers are copies."""
    x, i = f32(3, 4, 5), ow.constant(1)
    for number, part in enumerate(INDEXED):
        ran = ran_natively(lambda x, i, part=part: (part(x, i), *gradients(lambda x: part(x, i) ** 3, x)), x, i)
        assert "StridedSliceGrad" in ran, number


SHAPES = [((7, 3), (5,), 0, 0), ((4, 7, 3), (5,), 1, 0), ((4, 7), (4,), 1, 1), ((2, 4, 7, 3), (2, 4, 5), 2, 2)]


@pytest.mark.parametrize(("shape", "places", "axis", "batch"), SHAPES)
@pytest.mark.parametrize("dtype", [ow.int32, ow.int64], ids=lambda dtype: dtype.name)
def test_gradients_of_gathers_at_computed_indices(shape, places, axis, batch, dtype):
    """Test repeated indices, whose slices are added up; one out of range is the operator's error."""
    x, indices = f32(*shape), RNG.integers(0, 7, places)
    indices.flat[:2] = 3

    def program(x, indices):
        return gradients(lambda x: ow.gather(x * 1.0, indices, axis=axis, batch_dims=batch) ** 2, x)

    assert ran_natively(program, x, ow.constant(indices, dtype)) & {"GatherGrad", "ScatterNd"}
    indices.flat[-1] = 7
    with pytest.raises(ow.errors.InvalidArgumentError, match="Gather"):
        ow.function(program, jit_compile=True)(x, ow.constant(indices, dtype))


def test_sums_and_updates_at_computed_coordinates():
    x, i = f32(4, 5), ow.constant(3)

    def program(x, i):
        places = ow.stack([[i, i - 1], [i, 0], [i, i - 1]])
        updates = x[:3, 0]
        changed = ow.tensor_scatter_nd_update(x, places, updates)
        summed = ow.tensor_scatter_nd_sub(ow.tensor_scatter_nd_add(x, places, updates), [[i]], x[:1])
        return changed, summed, ow.scatter_nd(places, updates, [4, 5]), ow.fill([2, 3], x[i, i])

    ran = ran_natively(program, x, i)
    assert {"TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate", "ScatterNd", "Fill"} <= ran
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"TensorScatter|index"):
        ow.function(program, jit_compile=True)(x, ow.constant(4))


def test_gradients_of_the_largest_elements():
    x = f32(6, 9)
    ran = ran_natively(lambda x: gradients(lambda x: ow.math.top_k(x, 3)[0] ** 2, x), x)
    assert ran & {"UnsortedSegmentSum", "ScatterNd"}


@pytest.mark.parametrize(
    ("kind", "dtype"), crossed(["max", "min", "prod", "mean", "sqrt_n", "sum"], [ow.int32, ow.int64])
)
def test_reductions_of_unsorted_segments_and_their_gradients(kind, dtype):
    """Test rows that are in no segment, a segment without rows, and equal extremes."""
    x, ids = f32(9, 4), ow.constant([3, 0, -1, 0, 2, 2, 3, -1, 0], dtype)
    x = ow.concat([x[:8], x[1:2]], 0)
    reduce = getattr(ow.math, f"unsorted_segment_{kind}")
    ran = ran_natively(lambda x, ids: (reduce(x, ids, 4), gradients(lambda x: reduce(x, ids, 4)[::2] ** 2, x)), x, ids)
    assert ran & {"UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum"}
    with pytest.raises(ow.errors.InvalidArgumentError, match="UnsortedSegment"):
        ow.function(lambda x, ids: reduce(x, ids, 3), jit_compile=True)(x, ids)


CENTER, CORNER = (0, 5, 6, 3), (0, 0, 0, 3)
PATTERNS = {
    "convolution": (lambda x, w: ow.nn.conv2d(x, w, 1, "SAME"), (3, 3, 16, 16)),
    "depthwise": (lambda x, w: ow.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), (3, 3, 16, 1)),
    "depthwise with strides": (lambda x, w: ow.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME"), (3, 3, 16, 1)),
    "larger": (lambda x, w: ow.image.resize(x, [24, 24]), (1,)),
    "smaller": (lambda x, w: ow.image.resize(x, [7, 9], antialias=True), (1,)),
    "bicubic": (lambda x, w: ow.image.resize(x, [24, 24], method="bicubic"), (1,)),
}


@pytest.mark.parametrize("special", [np.inf, np.nan])
@pytest.mark.parametrize("name", PATTERNS)
def test_the_same_results_are_nan_as_eagerly(name, special):
    """Test infinities and NaN in an image, at its corner, too, and in the middle of a window; others of its weights
    meet padding, where results may differ (docs/compiled.md)."""
    function, sizes = PATTERNS[name]
    compiled = ow.function(function, jit_compile=True, autograph=False)
    images, weights = (RNG.standard_normal(s, dtype=np.float32) for s in ((1, 12, 12, 16), sizes))
    places = [(images, CENTER), (images, CORNER)] + [(weights, (1, 1, 2, 0))] * (len(sizes) > 1)
    for operand, place in places:
        kept, operand[place] = operand[place], special
        expected, actual = (f(ow.constant(images), ow.constant(weights)).numpy() for f in (function, compiled))
        operand[place] = kept
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
        np.testing.assert_array_equal(np.isposinf(actual), np.isposinf(expected))
        np.testing.assert_array_equal(np.isneginf(actual), np.isneginf(expected))
        assert np.isnan(actual).sum() + np.isinf(actual).sum() < actual.size / 2


@pytest.mark.parametrize("count", [3, 64, 300])
def test_moments_of_equal_elements(count):
    x = np.full((2, count), 7.5e10, np.float32)
    mean, variance = ow.function(lambda x: ow.nn.moments(x, [1]), jit_compile=True)(x)
    np.testing.assert_array_equal(mean, x[:, 0])
    np.testing.assert_array_equal(variance, [0, 0])
