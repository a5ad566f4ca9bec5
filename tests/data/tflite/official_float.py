"""Float models of the official corpus, as a table: how each is made with TensorFlow. Run by make_official.py."""

import numpy as np
import tensorflow as tf

F = tf.float32
MODELS = {}
FLEX = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]


def model(function):
    """Add a maker to the table, under its name."""
    MODELS[function.__name__] = function
    return function


def spec(*shape, dtype=F):
    """A TensorSpec; None is an unknown size."""
    return tf.TensorSpec(shape, dtype)


def weights(rng, *shape):
    """Weights of a fitting size."""
    return tf.constant((rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]) or 1)).astype(np.float32))


def small_cnn(rng):
    """conv, depthwise, residual add, pools, dense, softmax; folded batch norm."""
    k1, k2 = weights(rng, 3, 3, 3, 8), weights(rng, 3, 3, 8, 1)
    k3, w, b = weights(rng, 1, 1, 8, 8), weights(rng, 8, 10), weights(rng, 10)
    scale, shift = tf.constant(rng.random(8).astype(np.float32) + 0.5), weights(rng, 8)

    def run(x):
        y = tf.nn.relu6(tf.nn.conv2d(x, k1, 2, "SAME") * scale + shift)
        z = tf.nn.relu6(tf.nn.depthwise_conv2d(y, k2, [1, 1, 1, 1], "SAME") + shift)
        y = y + tf.nn.conv2d(z, k3, 1, "VALID")
        y = tf.nn.max_pool2d(y, 2, 2, "SAME")
        y = tf.reduce_mean(y, [1, 2])
        return {"y": tf.nn.softmax(tf.matmul(y, w) + b)}

    return run


@model
def cnn_float(rng):
    return {"functions": {"serving_default": (small_cnn(rng), {"x": spec(1, 16, 16, 3)})}}


@model
def cnn_buffer_offset(rng):
    """Buffers behind the FlatBuffer."""
    return cnn_float(rng) | {"_experimental_use_buffer_offset": True}


@model
def unknown_batch(rng):
    return {"functions": {"serving_default": (small_cnn(rng), {"x": spec(None, 16, 16, 3)})}}


@model
def unknown_sizes(rng):
    k = weights(rng, 3, 3, 3, 4)

    def run(x):
        y = tf.nn.relu(tf.nn.conv2d(x, k, 1, "SAME"))
        return {"y": tf.image.resize(y, [8, 8]), "s": tf.shape(y)}

    return {
        "functions": {"serving_default": (run, {"x": spec(1, None, None, 3)})},
        "calls": [
            ("serving_default", {"x": rng.random((1, 5, 7, 3))}),
            ("serving_default", {"x": rng.random((1, 6, 4, 3))}),
        ],
    }


@model
def several_signatures(rng):
    w = weights(rng, 4, 6)
    return {
        "functions": {
            "encode": (lambda x: {"code": tf.matmul(x, w)}, {"x": spec(2, 4)}),
            "decode": (lambda code: {"x": tf.matmul(code, w, transpose_b=True)}, {"code": spec(2, 6)}),
            "norm": (
                lambda x, eps: {"y": x * tf.math.rsqrt(tf.reduce_sum(x * x, -1, keepdims=True) + eps)},
                {"x": spec(2, 4), "eps": spec()},
            ),
        }
    }


@model
def activations(rng):
    def run(x):
        alpha = tf.constant([0.1, 0.2, 0.3, 0.4])
        prelu = tf.nn.relu(x) + alpha * (x - tf.abs(x)) * 0.5
        return {
            "a": tf.nn.leaky_relu(x, 0.3),
            "b": tf.nn.elu(x),
            "c": x * tf.nn.relu6(x + 3.0) * (1.0 / 6.0),
            "d": tf.nn.gelu(x, approximate=True),
            "e": tf.nn.relu(x),
            "f": tf.tanh(x),
            "g": tf.sigmoid(x),
            "h": tf.nn.log_softmax(x),
            "i": prelu,
            "j": tf.minimum(tf.maximum(x, 0.0), 1.0),
        }

    return {"functions": {"serving_default": (run, {"x": spec(3, 4)})}}


@model
def elementwise(rng):
    def run(x, y):
        p = tf.abs(x) + 0.5
        return {
            "a": x + y,
            "b": x - y,
            "c": x * y,
            "d": x / p,
            "e": tf.pow(p, y),
            "f": tf.math.floordiv(x, p),
            "g": tf.math.floormod(x, p),
            "h": tf.maximum(x, y),
            "i": tf.minimum(x, y),
            "j": tf.exp(x),
            "k": tf.math.log(p),
            "l": tf.sqrt(p),
            "m": tf.math.rsqrt(p),
            "n": tf.sin(x),
            "o": tf.cos(x),
            "p": tf.floor(x),
            "q": tf.math.ceil(x),
            "r": tf.round(x),
            "s": -x,
            "t": tf.square(x),
            "u": tf.math.squared_difference(x, y),
            "v": tf.sign(x),
        }

    return {"functions": {"serving_default": (run, {"x": spec(3, 4), "y": spec(4)})}}


@model
def comparisons(rng):
    def run(x, y):
        a, b = x > y, x <= y + 1.0
        return {
            "a": a,
            "b": tf.logical_and(a, b),
            "c": tf.logical_or(a, tf.logical_not(b)),
            "d": tf.equal(x, y),
            "e": tf.not_equal(x, y),
            "f": x >= y,
            "g": x < y,
            "h": tf.where(a, x, y),
            "i": tf.reduce_any(a, 1),
            "j": tf.reduce_all(b, 1),
        }

    return {"functions": {"serving_default": (run, {"x": spec(3, 4), "y": spec(3, 4)})}}


@model
def integers(rng):
    def run(x, y, z):
        return {
            "a": x + y,
            "b": x * y,
            "c": tf.math.floordiv(x, tf.abs(y) + 1),
            "d": tf.math.floormod(x, 7),
            "e": tf.cast(z, tf.float32) * 0.5,
            "f": z - 3,
            "g": tf.bitwise.bitwise_xor(x, y),
            "h": tf.bitwise.right_shift(x, 2 * tf.ones_like(x)),
            "i": tf.cast(x, tf.bool),
            "j": tf.reduce_max(x, 0),
            "k": tf.bitcast(x, tf.float32) * 0.0,
            "l": tf.cast(z, tf.int16),
        }

    i32 = spec(3, 4, dtype=tf.int32)
    return {"functions": {"serving_default": (run, {"x": i32, "y": i32, "z": spec(2, 3, dtype=tf.int64)})}}


@model
def reductions(rng):
    def run(x):
        return {
            "a": tf.reduce_sum(x, [0, 2]),
            "b": tf.reduce_mean(x, 1, keepdims=True),
            "c": tf.reduce_max(x, -1),
            "d": tf.reduce_min(x),
            "e": tf.reduce_prod(x, 2),
            "f": tf.argmax(x, 1),
            "g": tf.argmin(x, 2, output_type=tf.int32),
            "h": tf.cumsum(x, 1, exclusive=True, reverse=True),
        }

    return {"functions": {"serving_default": (run, {"x": spec(2, 3, 4)})}}


@model
def shaping(rng):
    def run(x):
        a, b = tf.split(x, 2, 2)
        c, d, e = tf.unstack(x, axis=1)
        return {
            "a": tf.concat([a, b, a], 1),
            "b": tf.transpose(x, [2, 0, 1]),
            "c": tf.stack([c, d, e], 2),
            "d": tf.pad(x, [[0, 0], [1, 2], [0, 1]]),
            "e": tf.pad(x, [[0, 0], [1, 1], [2, 0]], "REFLECT"),
            "f": tf.pad(x, [[1, 0], [0, 0], [0, 0]], constant_values=3.0),
            "g": tf.reverse(x, [1]),
            "h": tf.tile(x, [1, 2, 1]),
            "i": tf.reshape(x, [-1, 6]),
            "j": tf.expand_dims(x, 1),
            "k": tf.squeeze(x[:1], 0),
            "l": tf.broadcast_to(x[:, :1], [2, 5, 4]),
            "m": tf.reverse_sequence(x, [1, 2], 1, 0),
            "n": tf.linalg.band_part(x, 0, 1),
            "o": tf.split(x, [1, 3], 2)[1],
            "p": tf.roll(x, 1, 1),
        }

    return {"functions": {"serving_default": (run, {"x": spec(2, 3, 4)})}}


@model
def slicing(rng):
    def run(x, i):
        return {
            "a": x[1:, ::2, ::-1],
            "b": x[..., 0],
            "c": x[:, tf.newaxis, 1:3],
            "d": tf.slice(x, [0, i, 0], [2, 1, 3]),
            "e": tf.gather(x, [2, 0], axis=1),
            "g": x[i],
            "f": tf.gather_nd(x, [[0, 1], [1, 2]]),
            "h": tf.gather(x, [[1, 0], [0, 2]], axis=1, batch_dims=1),
            "i": tf.scatter_nd([[1], [3]], x[:, 0], [5, 4]),
            "j": tf.tensor_scatter_nd_update(x[0], [[1]], x[1, :1]),
            "k": tf.one_hot([0, 2, 1], 4, 5.0, -1.0),
        }

    return {
        "functions": {"serving_default": (run, {"x": spec(2, 3, 4), "i": spec(dtype=tf.int32)})},
        "calls": [("serving_default", {"i": 1}), ("serving_default", {"i": 0})],
    }


@model
def dynamic_shapes(rng):
    def run(x, n):
        kept = tf.boolean_mask(x, x > 0)
        u, place = tf.unique(tf.cast(x, tf.int32))
        return {
            "a": tf.where(x > 0),
            "b": kept,
            "c": tf.range(n),
            "d": tf.fill([n, 2], 1.5),
            "e": u,
            "f": place,
            "g": tf.reshape(tf.range(n * 2), [n, 2]),
            "h": tf.rank(x),
            "i": tf.zeros([n]) + x[0],
        }

    return {
        "functions": {"serving_default": (run, {"x": spec(None), "n": spec(dtype=tf.int32)})},
        "calls": [("serving_default", {"x": [1.5, -2, 3, 1], "n": 3}), ("serving_default", {"x": [-1.0, 2.5], "n": 5})],
    }


@model
def spatial(rng):
    k3, kt = weights(rng, 2, 2, 2, 3, 2), weights(rng, 3, 3, 4, 3)
    kd = weights(rng, 3, 3, 3, 2)

    def run(x, v):
        return {
            "a": tf.image.resize(x, [7, 9]),
            "b": tf.image.resize(x, [3, 3], "nearest"),
            "c": tf.nn.conv2d_transpose(x, kt, [1, 12, 12, 4], 2, "SAME"),
            "d": tf.nn.space_to_depth(x, 2),
            "e": tf.nn.depth_to_space(tf.concat([x, x, x, x], 3), 2),
            "f": tf.nn.avg_pool2d(x, 3, 2, "SAME"),
            "g": tf.nn.conv3d(v, k3, [1, 1, 1, 1, 1], "SAME"),
            "h": tf.nn.lrn(x, 2),
            "i": tf.nn.conv2d(x, kd, 1, "SAME", dilations=2),
            "j": tf.nn.depthwise_conv2d(x, kd, [1, 1, 1, 1], "VALID", dilations=[2, 2]),
            "k": tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]),
            "l": tf.math.l2_normalize(x, -1),
            "m": tf.raw_ops.MirrorPad(input=x, paddings=[[0, 0], [1, 1], [1, 1], [0, 0]], mode="SYMMETRIC"),
        }

    return {"functions": {"serving_default": (run, {"x": spec(1, 6, 6, 3), "v": spec(1, 3, 3, 3, 3)})}}


@model
def matmuls(rng):
    w, b = weights(rng, 4, 5), weights(rng, 5)

    def run(x, y):
        return {
            "a": tf.matmul(x, y),
            "b": tf.matmul(x, y, adjoint_a=False, transpose_b=False) * 2.0,
            "c": tf.matmul(y, x),
            "d": tf.nn.relu(tf.tensordot(x, w, 1) + b),
            "e": tf.einsum("bij,bkj->bik", x, x),
        }

    return {"functions": {"serving_default": (run, {"x": spec(2, 3, 4), "y": spec(2, 4, 3)})}}


@model
def ranking(rng):
    def run(x, boxes, scores):
        values, places = tf.math.top_k(x, 3)
        kept, n = tf.image.non_max_suppression_padded(boxes, scores, 4, pad_to_max_output_size=True)
        return {
            "v": values,
            "i": places,
            "kept": kept,
            "n": n,
            "seg": tf.math.segment_sum(x, [0, 0, 1]),
            "un": tf.math.unsorted_segment_max(x, [1, 0, 1], 2),
            "b": tf.raw_ops.Bucketize(input=x, boundaries=[0.0, 1.0]),
            "look": tf.nn.embedding_lookup(x, [2, 0]),
        }

    y = np.sort(rng.random((6, 2, 2)), 1).reshape(6, 4)
    return {
        "functions": {"serving_default": (run, {"x": spec(3, 5), "boxes": spec(6, 4), "scores": spec(6)})},
        "calls": [("serving_default", {"boxes": y, "scores": rng.random(6)})],
    }


@model
def spectra(rng):
    def run(x, z):
        return {"a": tf.signal.rfft2d(x, [4, 8]), "b": tf.math.real(z), "c": tf.math.imag(z), "d": tf.abs(z)}

    return {"functions": {"serving_default": (run, {"x": spec(4, 8), "z": spec(3, dtype=tf.complex64)})}}


@model
def flex(rng):
    """Operators that only TensorFlow itself has."""

    def run(x):
        y = tf.raw_ops.Erf(x=x) + 1.0
        return {"y": tf.math.lgamma(tf.abs(y) + 1.0), "z": tf.linalg.inv(x + 3.0 * tf.eye(3)), "s": tf.sort(x)}

    return {"functions": {"serving_default": (run, {"x": spec(3, 3)})}, "supported_ops": FLEX, "by_tensorflow": True}


@model
def custom(rng):
    """A custom operator by name, with FlexBuffer options; no official answer."""

    def run(x):
        return {
            "y": tf.raw_ops.Atan(x=x),
            "z": tf.raw_ops.CropAndResize(
                image=tf.reshape(x, [1, 2, 2, 1]),
                boxes=[[0.0, 0.0, 1.0, 1.0]],
                box_ind=[0],
                crop_size=[3, 3],
                method="nearest",
                extrapolation_value=0.5,
            ),
        }

    return {"functions": {"serving_default": (run, {"x": spec(2, 2)})}, "allow_custom_ops": True, "calls": []}


@model
def detection_postprocess(rng):
    """A composite function as one custom operator with attributes."""
    signature = (
        'name: "TFLite_Detection_PostProcess" attr { key: "max_detections" value { i: 4 } } '
        'attr { key: "max_classes_per_detection" value { i: 1 } } attr { key: "num_classes" value { i: 3 } } '
        'attr { key: "nms_iou_threshold" value { f: 0.5 } } '
        'attr { key: "nms_score_threshold" value { f: 0.1 } } '
        'attr { key: "y_scale" value { f: 10.0 } } attr { key: "x_scale" value { f: 10.0 } } '
        'attr { key: "h_scale" value { f: 5.0 } } attr { key: "w_scale" value { f: 5.0 } } '
        'attr { key: "use_regular_nms" value { b: false } }'
    )

    @tf.function(experimental_implements=signature)
    def post(boxes, scores, anchors):
        return tf.zeros([1, 4, 4]), tf.zeros([1, 4]), tf.zeros([1, 4]), tf.zeros([1])

    anchors = tf.constant(np.concatenate([rng.random((6, 2)), 0.2 + 0.1 * rng.random((6, 2))], 1).astype(np.float32))

    def run(boxes, scores):
        a, b, c, d = post(boxes, scores, anchors)
        return {"boxes_out": a, "classes": b, "scores_out": c, "n": d}

    return {
        "functions": {"serving_default": (run, {"boxes": spec(1, 6, 4), "scores": spec(1, 6, 4)})},
        "allow_custom_ops": True,
        "calls": [("serving_default", {"scores": rng.random((1, 6, 4))})],
    }
