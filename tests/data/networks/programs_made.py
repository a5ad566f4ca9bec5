"""Functions of the corpus of networks: decoding, training, sound, images, graphs, shapes. Run by make_networks.py."""

import numpy as np
import tensorflow as tf
from networks_table import adder, programs

NETWORKS = {}
network = adder(NETWORKS)
STATE = {"experimental_enable_resource_variables": True}


def spec(*shape, dtype=tf.float32):
    """The type of an argument."""
    return tf.TensorSpec(shape, dtype)


def weights(*shape, seed=2):
    """Normal numbers, always the same."""
    return tf.constant(np.random.default_rng(seed).standard_normal(shape).astype("f"))


@network("float")
def greedy():
    """A decoder with a cache of keys and values that picks the likeliest word, turn by turn."""
    e, (wq, wk, wv, wo) = weights(12, 8), (weights(8, 8, seed=s) * 0.4 for s in range(4))

    def run(start):
        def turn(i, ids, k, v):
            x = tf.gather(e, ids[i])[None]
            k = tf.tensor_scatter_nd_update(k, [[i]], x @ wk)
            v = tf.tensor_scatter_nd_update(v, [[i]], x @ wv)
            s = tf.where(tf.range(10) <= i, ((x @ wq) @ tf.transpose(k))[0], -1e9)
            y = (x + tf.nn.softmax(s)[None] @ v) @ wo
            word = tf.argmax(y @ tf.transpose(e), -1, output_type=tf.int32)
            return i + 1, tf.tensor_scatter_nd_update(ids, [[i + 1]], word), k, v

        ids, none = tf.concat([start % 12, tf.zeros(10, tf.int32)], 0), tf.zeros((10, 8))
        _, ids, k, _ = tf.while_loop(lambda i, *_: i < 9, turn, [0, ids, none, none])
        return {"ids": ids, "k": k}

    return programs(main=(run, {"start": spec(1, dtype=tf.int32)}))


@network("float", **STATE)
def cached():
    """The same as one step, with the cache in a variable; and what empties it."""
    module = tf.Module()
    module.cache = tf.Variable(tf.zeros((2, 10, 8)))

    def step(pos, x):
        at = tf.stack([tf.zeros_like(pos), pos % 10], -1)[None]
        module.cache.assign(tf.tensor_scatter_nd_update(module.cache, at, x))
        return {"scores": tf.einsum("bd,ntd->bnt", x, module.cache)}

    def empty(z):
        module.cache.assign(tf.zeros((2, 10, 8)) + z)
        return {"z": z}

    return programs(module, step=(step, {"pos": spec(dtype=tf.int32), "x": spec(1, 8)}), empty=(empty, {"z": spec()}))


@network("float", **STATE)
def trained():
    """Training in the file: a layer's gradients, written out, with momentum."""
    module = tf.Module()
    module.w, module.b = tf.Variable(weights(6, 3) * 0.2), tf.Variable(tf.zeros(3))
    module.momenta = [tf.Variable(tf.zeros((6, 3))), tf.Variable(tf.zeros(3))]

    def infer(x):
        return {"p": tf.nn.softmax(tf.matmul(x, module.w) + module.b)}

    def train(x, y):
        expected, p = tf.nn.softmax(y), infer(x)["p"]
        g = (p - expected) / 4.0
        gradients = tf.matmul(x, g, transpose_a=True), tf.reduce_sum(g, 0)
        for v, m, gradient in zip((module.w, module.b), module.momenta, gradients):
            m.assign(0.9 * m + gradient)
            v.assign_sub(0.1 * m)
        return {"loss": -tf.reduce_mean(tf.reduce_sum(expected * tf.math.log(p), -1))}

    return programs(module, train=(train, {"x": spec(4, 6), "y": spec(4, 3)}), infer=(infer, {"x": spec(4, 6)}))


@network("float")
def keywords():
    """Sound to cepstra in the file."""
    w, cosines = weights(20, 4), np.cos(np.pi / 20 * np.outer(np.arange(20) + 0.5, np.arange(10)))

    def run(x):
        spectrum = tf.abs(tf.signal.stft(x, 64, 32, fft_length=64))
        mel = tf.matmul(spectrum, tf.signal.linear_to_mel_weight_matrix(20, 33, 8000, 20.0, 3800.0))
        logs = tf.math.log(mel + 1e-6)
        return {"cepstra": logs @ tf.constant(cosines, tf.float32), "y": tf.reduce_mean(logs, 1) @ w}

    return programs(main=(run, {"x": spec(1, 400)}))


@network("float")
def pictures():
    """Operators of tf.image."""

    def run(x):
        return {
            "gray": tf.image.rgb_to_grayscale(x),
            "yuv": tf.image.rgb_to_yuv(x),
            "nearest": tf.image.resize(x, (7, 11), "nearest"),
            "turned": tf.image.rot90(x),
            "standard": tf.image.per_image_standardization(x),
            "sobel": tf.image.sobel_edges(x),
            "padded": tf.image.pad_to_bounding_box(x, 1, 2, 12, 14),
            "variation": tf.image.total_variation(x),
        }

    return programs(main=(run, {"x": spec(1, 8, 10, 3)}))


@network("float")
def messages():
    """A graph network: gathers along edges, sums and extremes at nodes."""
    w = weights(4, 6)

    def run(nodes, src, dst):
        src, dst = src % 7, dst % 7
        sent = tf.nn.relu(tf.gather(nodes, src) @ w)
        at = tf.scatter_nd(dst[:, None], sent, (7, 6))
        return {
            "sum": tf.math.unsorted_segment_sum(sent, dst, 7),
            "mean": tf.math.unsorted_segment_mean(sent, dst, 7),
            "max": tf.math.unsorted_segment_max(sent, dst, 7),
            "min": tf.math.unsorted_segment_min(sent, dst, 7),
            "chosen": tf.gather_nd(nodes, tf.stack([src, src % 4], -1)),
            "at": at,
            "put": tf.tensor_scatter_nd_update(at, [[0], [3]], tf.ones((2, 6))),
            "added": tf.tensor_scatter_nd_add(at, dst[:, None], sent),
        }

    edges = spec(5, dtype=tf.int32)
    return programs(main=(run, {"nodes": spec(7, 4), "src": edges, "dst": edges}))


@network("float")
def sizes():
    """Shapes that follow from values."""

    def run(x, k):
        x, k = tf.concat([x, x, x], 0), k % 3 + 1
        v = tf.boolean_mask(x, x > 0)
        unique, index = tf.unique(tf.cast(x * 3, tf.int32)[:, 0])
        return {
            "where": tf.where(x > 0),
            "masked": v,
            "unique": unique,
            "index": index,
            "range": tf.range(k),
            "top": tf.math.top_k(x[:, 0], k).values,
            "rest": x[k:],
            "repeated": tf.repeat(x, 2, 0),
            "tiled": tf.tile(x, tf.stack([k, 1])),
            "sum": tf.reduce_sum(v),
            "sorted": tf.sort(v),
            "filled": tf.fill(tf.stack([k, 2]), 3.0),
            "slice": tf.slice(x, [k, 0], [-1, 2]),
            "padded": tf.pad(x, [[k, 0], [0, k]]),
            "cumsum": tf.cumsum(v),
            "reverse": tf.reverse(v, [0]),
            "wide": tf.broadcast_to(x[:1], tf.stack([k, 3])),
        }

    return programs(main=(run, {"x": spec(None, 3), "k": spec(dtype=tf.int32)}))


@network("float")
def loops():
    """Loops, lists and branches."""
    w = weights(3, 3) * 0.5

    def run(x, n):
        n = n % 4
        _, kept = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, tf.tanh(s @ w)), [0, x])
        rows = tf.TensorArray(tf.float32, 4)
        for i in tf.range(4):
            rows = rows.write(i, x[i] * tf.cast(i, tf.float32))
        branch = tf.cond(n > 2, lambda: x + 1, lambda: tf.cond(n > 1, lambda: x, lambda: -x))
        return {
            "kept": kept,
            "rows": rows.stack(),
            "branch": branch,
            "map": tf.map_fn(lambda r: r * r, x),
            "scan": tf.scan(lambda c, e: c * 0.5 + e, x),
        }

    return programs(main=(run, {"x": spec(4, 3), "n": spec(dtype=tf.int32)}))


@network("float")
def words():
    """Strings to numbers and back by tables."""
    module, ids = tf.Module(), tf.constant([5, 6], tf.int64)
    there, back = tf.lookup.KeyValueTensorInitializer, tf.lookup.StaticHashTable
    module.there, module.back = back(there(["a", "bc"], ids), -1), back(there(ids, ["x", "yy"]), "?")

    def run(w):
        i = module.there.lookup(w)
        return {
            "ids": i,
            "back": module.back.lookup(i),
            "equal": tf.equal(w, "a"),
            "shaped": tf.reshape(w, (2, 2)),
            "chosen": tf.gather(w, [1, 1]),
            "size": module.there.size(),
        }

    return programs(module, main=(run, {"w": spec(4, dtype=tf.string)}))


@network("float")
def factored():
    """Cholesky's factor and a triangular system, element by element; diagonals and norms."""

    def run(a):
        spd, rows = tf.matmul(a, a, transpose_b=True) + tf.eye(4), []
        for i in range(4):
            for j in range(i + 1):
                rest = spd[i, j] - sum(rows[i * (i + 1) // 2 + k] * rows[j * (j + 1) // 2 + k] for k in range(j))
                rows.append(tf.sqrt(rest) if i == j else rest / rows[j * (j + 1) // 2 + j])
        return {
            "factor": tf.stack(rows),
            "diagonal": tf.linalg.diag(a[0]),
            "set": tf.linalg.set_diag(a, a[0]),
            "band": tf.linalg.band_part(a, 1, 0),
            "norm": tf.norm(a),
            "unit": tf.nn.l2_normalize(a, -1),
            "vector": tf.linalg.matvec(a, a[0]),
        }

    return programs(main=(run, {"a": spec(4, 4)}))


@network("float")
def moved():
    """Elements moved in every way."""

    def run(x):
        return {
            "batches": tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]),
            "roll": tf.roll(x, [1, -2], [1, 2]),
            "back": tf.batch_to_space(tf.tile(x, [4, 1, 1, 1]), [2, 2], [[1, 0], [0, 1]]),
            "mirror": tf.pad(x, [[0, 0], [1, 1], [2, 0], [0, 0]], "REFLECT"),
            "symmetric": tf.pad(x, [[0, 0], [1, 1], [2, 0], [0, 0]], "SYMMETRIC"),
            "padded": tf.pad(x, [[0, 0], [1, 1], [2, 0], [0, 1]], constant_values=2.5),
            "strided": x[:, ::-1, 1:-1:2, tf.newaxis],
            "unstacked": tf.unstack(x, axis=1)[2],
            "reversed": tf.reverse_sequence(x, [2], 1),
            "transposed": tf.transpose(x, (3, 1, 0, 2)),
            "least": tf.argmin(x, 1),
            "gathered": tf.gather(x, [[0, 1], [2, 3]], axis=1),
            "batched": tf.gather(x[0], [[0], [1], [2], [3]], batch_dims=1),
            "wide": tf.broadcast_to(x, (3, 4, 6, 2)),
            "pooled": tf.nn.avg_pool1d(x[0], 2, 1, "SAME"),
            "depthwise": tf.nn.depthwise_conv2d(x, tf.ones((2, 2, 2, 2)), (1, 1, 1, 1), "SAME", dilations=(2, 1)),
        }

    return programs(main=(run, {"x": spec(1, 4, 6, 2)}))
