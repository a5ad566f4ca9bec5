"""Functions as people write them, with their inputs: `PROGRAMS`, name -> Program.

Not here: functions of one operator (tests/lite/convert), generated control flow (test_convert_programs.py), networks.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import opwright as ow

Point = collections.namedtuple("Point", "a b")
random = np.random.RandomState(0)


class Program(NamedTuple):
    """shapes: that it is traced with, None where unknown; inputs: that it runs on."""

    function: Callable[..., Any]
    shapes: tuple[Any, ...]
    inputs: tuple[np.ndarray, ...]


PROGRAMS: dict[str, Program] = {}


def f32(*shape: int) -> np.ndarray:
    return random.uniform(-1, 1, shape).astype(np.float32)


def program(*shapes_and_inputs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A row: shapes and inputs in turn."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        inputs = tuple(np.asarray(x) for x in shapes_and_inputs[1::2])
        PROGRAMS[function.__name__] = Program(function, shapes_and_inputs[::2], inputs)
        return function

    return add


@program([None, 4], f32(3, 4), [4], f32(4))
def cond_of_unknown_size(x: Any, y: Any) -> Any:
    return ow.cond(ow.reduce_sum(x) > 0.0, lambda: x * 2.0 + y, lambda: ow.reverse(x, [0]) - y)


@program([4], f32(4), [], np.int32(5))
def while_by_count(x: Any, n: Any) -> Any:
    _, y = ow.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 0.5 + x), [ow.constant(0), x])
    return y


@program([None, 3], f32(5, 3))
def mapped_rows(x: Any) -> Any:
    return ow.map_fn(lambda r: r / (ow.norm(r) + 1e-6), x), ow.vectorized_map(lambda r: ow.reduce_sum(r * r) * r, x)


@program([6, 3], f32(6, 3))
def scans_and_folds(x: Any) -> Any:
    return (
        ow.scan(lambda a, b: a * 0.9 + b, x),
        ow.foldl(lambda a, b: a + b, x),
        ow.foldr(lambda a, b: a * 0.5 + b, x),
    )


@program([None, 3], f32(7, 3))
def every_other_row(x: Any) -> Any:
    rows = ow.TensorArray(ow.float32, size=0, dynamic_size=True, element_shape=(3,))
    j = 0
    for i in ow.range(ow.shape(x)[0]):
        if i % 2 == 0:
            rows = rows.write(j, x[i])
            j += 1
    return rows.stack()


@program([None, 5], f32(3, 5))
def rows_until(x: Any) -> Any:
    total = ow.zeros([5])
    for row in x:
        if ow.reduce_max(row) > 0.5:
            total += row
        elif ow.reduce_min(row) < -0.9:
            break
        else:
            total -= row * 0.5
            continue
        total = total * 1.5
    return total


@program([4], f32(4), [], np.int32(1))
def one_of_four(x: Any, i: Any) -> Any:
    return ow.switch_case(i, [lambda: x, lambda: x * 2, lambda: x * 3], default=lambda: -x)


@program([None, None, 3], f32(20, 30, 3))
def preprocessing(image: Any) -> Any:
    x = ow.image.resize(ow.cast(image, ow.float32)[None], [16, 16])
    return ow.squeeze(ow.image.rgb_to_grayscale((x - 127.5) / 127.5), 0)


@program([2, 8, 8, 3], f32(2, 8, 8, 3))
def augmentation(x: Any) -> Any:
    I = ow.image
    return (
        I.flip_left_right(x),
        I.resize(x, [4, 4], method="nearest"),
        I.central_crop(x, 0.5),
        I.rot90(x),
        I.adjust_brightness(x, 0.1),
        I.per_image_standardization(x),
        I.crop_to_bounding_box(x, 1, 1, 4, 4),
        ow.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT"),
        ow.nn.depth_to_space(ow.nn.space_to_depth(x, 2), 2),
        ow.nn.local_response_normalization(x),
    )


@program([None, 10], f32(4, 10))
def best_of_scores(x: Any) -> Any:
    v, i = ow.math.top_k(x, 3)
    return v, i, ow.argmax(x, -1), ow.nn.softmax(x), ow.one_hot(i, 10), ow.sort(x, -1), ow.argsort(x)


@program([2, 3, 4, 5], f32(2, 3, 4, 5), [2, 3, 6, 5], f32(2, 3, 6, 5))
def attention_by_einsum(q: Any, k: Any) -> Any:
    w = ow.nn.softmax(ow.einsum("bhqd,bhkd->bhqk", q, k) / ow.sqrt(5.0), -1)
    return ow.einsum("bhqk,bhkd->bqhd", w, k), ow.matmul(q, k, transpose_b=True)


@program([None], np.array([3, 1, 2, 3, 1], np.int32))
def counts_of_integers(x: Any) -> Any:
    u, i = ow.unique(x)
    return u, i, ow.cumsum(x), x // 2, x % 2, ow.bitwise.bitwise_and(x, 1), ow.where(x > 1)


@program([4, 4], f32(4, 4))
def gathers_and_scatters(x: Any) -> Any:
    i = ow.constant([[0], [2]])
    return (
        ow.tensor_scatter_nd_update(x, i, ow.ones([2, 4])),
        ow.scatter_nd(i, ow.ones([2, 4]), [4, 4]),
        ow.gather(x, [1, 3], axis=1),
        ow.gather_nd(x, [[0, 1], [2, 3]]),
        ow.gather(x, ow.constant([[0], [1], [1], [0]]), axis=1, batch_dims=1),
    )


@program([None, 4], f32(6, 4))
def slices(x: Any) -> Any:
    return (
        x[::2],
        x[:, -1],
        x[..., ow.newaxis],
        x[-1],
        x[1:3, ::-1],
        x[ow.shape(x)[0] // 2 :],
        ow.split(x, [1, 3], 1),
        ow.unstack(x, axis=1),
        ow.boolean_mask(x, x[:, 0] > 0),
    )


@program([None, None], f32(2, 3))
def shapes_of_shapes(x: Any) -> Any:
    s = ow.shape(x)
    return (
        ow.reshape(x, [-1]),
        ow.reshape(x, [s[1], s[0]]),
        ow.tile(x, [2, 1]),
        ow.broadcast_to(x[:1], s),
        ow.expand_dims(x, 1),
        ow.concat([x, x], 1),
        ow.stack([x, x], 1),
    )


@program([3], np.array([b"hello world", b"", "ไทย".encode()], object))
def words(s: Any) -> Any:
    return ow.reshape(s, [3, 1]), ow.equal(s, "hello world"), ow.gather(s, [2, 0])


@program([5, 2], f32(5, 2))
def statistics(x: Any) -> Any:
    return (
        *ow.nn.moments(x, [0]),
        ow.math.reduce_std(x),
        ow.reduce_logsumexp(x, 0),
        ow.math.l2_normalize(x, 1),
        ow.norm(x),
        ow.clip_by_norm(x, 0.3),
        ow.abs(ow.signal.rfft(ow.transpose(x)[:, :4])),
    )


@program([None, 3], f32(4, 3), [None, 3], f32(4, 3))
def losses(y: Any, x: Any) -> Any:
    p = ow.nn.softmax(x)
    return (
        ow.keras.losses.MeanSquaredError()(y, p),
        ow.nn.softmax_cross_entropy_with_logits(ow.nn.softmax(y), p),
        ow.nn.sigmoid_cross_entropy_with_logits(ow.sigmoid(y), p),
        ow.keras.losses.huber(y, p),
    )


@program([2, 4], f32(2, 4))
def gradients(x: Any) -> Any:
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = ow.reduce_sum(ow.tanh(x) ** 2 + ow.nn.relu(x))
    return tape.gradient(y, x)


@program([2, 3], f32(2, 3))
def nested_results(x: Any) -> Any:
    return {"first": x, "second": {"in": [x + 1, x * 2], "pt": Point(x, -x)}, "third": (x,)}


@program([4, 2], f32(4, 2))
def checked(x: Any) -> Any:
    ow.debugging.assert_equal(ow.shape(x)[0], 4)
    ow.Assert(ow.reduce_all(x < 10.0), [x])
    return x + 1, ow.constant([1.0, 2.0]), x


@program([], np.int32(7))
def filled(n: Any) -> Any:
    return ow.range(n), ow.ones([n, 2]), ow.fill([2, n], 3.0), ow.eye(4), ow.linspace(0.0, 1.0, 5)


@program([3, 3], f32(3, 3))
def matrices(x: Any) -> Any:
    a = ow.matmul(x, x, transpose_a=True) + ow.eye(3)
    return (
        ow.linalg.diag_part(a),
        ow.linalg.band_part(a, 0, -1),
        ow.linalg.trace(a),
        ow.linalg.diag([1.0, 2.0]),
        ow.linalg.set_diag(a, ow.zeros(3)),
        ow.transpose(a),
    )


@program(
    [2, 4],
    f32(2, 4).astype(np.float16),
    [2, 4],
    f32(2, 4).astype(np.float64),
    [2, 6],
    np.arange(12).reshape(2, 6),
    [2, 6],
    np.arange(12, dtype=np.uint8).reshape(2, 6),
)
def other_types(half: Any, double: Any, long: Any, byte: Any) -> Any:
    return (
        half * ow.constant(2.0, ow.float16),
        ow.cast(half, ow.float32),
        ow.cast(double, ow.float32) * 2.0,
        double,
        long + 1,
        long * 2,
        ow.cast(long, ow.int32),
        ow.reduce_sum(long, 1),
        ow.maximum(long, 5),
        ow.gather(long, [0, 2], axis=1),
        ow.cast(byte, ow.float32) / 255.0,
        ow.concat([byte, byte], 0),
    )


def _transposed_convolution(strides: int, padding: Any, channels_first: bool = False) -> Callable[[Any], Any]:
    filters = f32(3, 3, 4, 2)

    def call(x: Any) -> Any:
        n, h, w = (ow.shape(x)[i] for i in ((0, 2, 3) if channels_first else (0, 1, 2)))
        more = {"SAME": 0, "VALID": 1}.get(padding, -1) if isinstance(padding, str) else -1
        size = [h * strides + more, w * strides + more]
        shape = [n, 4, *size] if channels_first else [n, *size, 4]
        layout = "NCHW" if channels_first else "NHWC"
        return ow.nn.conv2d_transpose(x, filters, shape, strides, padding, data_format=layout) + 1.0

    return call


EXPLICIT = [[0, 0], [1, 1], [1, 1], [0, 0]]
for _label, _shape, _padding in (
    ("known", [1, 6, 5, 2], "SAME"),
    ("batch", [None, 6, 5, 2], "VALID"),
    ("width", [1, 6, None, 2], "SAME"),
    ("sizes", [None, None, None, 2], "VALID"),
    ("explicit", [None, None, None, 2], EXPLICIT),
):
    PROGRAMS[f"conv_transpose_{_label}"] = Program(_transposed_convolution(2, _padding), (_shape,), (f32(1, 6, 5, 2),))
PROGRAMS["conv_transpose_channels_first"] = Program(
    _transposed_convolution(2, "SAME", True), ([None, 2, None, None],), (f32(1, 2, 6, 5),)
)
