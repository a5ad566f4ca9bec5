"""Programs on sparse tensors."""

import numpy as np
from tutorial_programs import program


def plain(x):
    return [x.indices, x.values, x.dense_shape]


def two(tf):
    a = tf.SparseTensor([[0, 1], [1, 0], [2, 3]], [1.5, 2.0, -3.0], [3, 4])
    return a, tf.SparseTensor([[0, 1], [1, 2], [2, 3]], [0.5, 4.0, 3.0], [3, 4])


@program
def conversions(tf):
    a, _ = two(tf)
    words = tf.SparseTensor([[0, 1], [1, 0]], ["x", "y"], [2, 3])
    mixed = tf.SparseTensor([[2, 1], [0, 3], [0, 1]], [1, 2, 3], [3, 4])
    return {
        "dense": [tf.sparse.to_dense(a), tf.sparse.to_dense(a, -1.0), tf.sparse.to_dense(words)],
        "from": plain(tf.sparse.from_dense([[0, 3, 0], [4, 0, 5]])),
        "from words": plain(tf.sparse.from_dense([["", "a"], ["b", ""]])),
        "ordered": plain(tf.sparse.reorder(mixed)),
        "shape": [list(a.shape), a.dtype.name],
        "reshaped": plain(tf.sparse.reshape(a, [2, -1])),
        "transposed": plain(tf.sparse.transpose(a)),
        "expanded": plain(tf.sparse.expand_dims(a, 1)),
        "last": plain(tf.sparse.expand_dims(a, -1)),
        "smallest": plain(tf.sparse.reset_shape(tf.SparseTensor([[0, 1]], [1], [5, 5]))),
        "larger": plain(tf.sparse.reset_shape(a, [7, 8])),
        "eye": plain(tf.sparse.eye(2, 3)),
        "indicator": tf.sparse.to_indicator(tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [2, 0, 3], [2, 2]), 5),
    }


@program
def arithmetic(tf):
    a, b = two(tf)
    dense = tf.constant(np.arange(12.0).reshape(4, 3), tf.float32)
    return {
        "matmul": tf.sparse.sparse_dense_matmul(a, dense),
        "adjoint": tf.sparse.sparse_dense_matmul(a, tf.transpose(dense)[:, :2], adjoint_a=True),
        "adjoint b": tf.sparse.sparse_dense_matmul(a, tf.transpose(dense), adjoint_b=True),
        "sum": plain(tf.sparse.add(a, b)),
        "with dense": tf.sparse.add(a, tf.ones([3, 4])),
        "threshold": plain(tf.sparse.add(a, b, threshold=1.0)),
        "times": [plain(a * 2.0), plain(a / 2.0)],
        "by columns": plain(a * tf.constant([1.0, 2.0, 3.0, 4.0])),
        "mapped": plain(tf.sparse.map_values(tf.abs, a)),
        "sums": [tf.sparse.reduce_sum(a), tf.sparse.reduce_sum(a, 1), tf.sparse.reduce_sum(a, 0, keepdims=True)],
        "greatest": [tf.sparse.reduce_max(a), tf.sparse.reduce_max(a, 1), tf.sparse.reduce_max(b, 0)],
    }


@program
def pieces(tf):
    a, b = two(tf)
    gaps = tf.SparseTensor([[0, 1], [3, 0], [3, 2]], [1, 2, 3], [5, 4])
    filled, empty = tf.sparse.fill_empty_rows(gaps, -7)
    return {
        "slice": plain(tf.sparse.slice(a, [1, 0], [2, 3])),
        "beyond": plain(tf.sparse.slice(a, [2, 2], [5, 5])),
        "rows": plain(tf.sparse.concat(0, [a, b])),
        "columns": plain(tf.sparse.concat(1, [a, b])),
        "kept": plain(tf.sparse.retain(a, [True, False, True])),
        "filled": [plain(filled), empty],
    }


@program
def embeddings(tf):
    table = tf.constant(np.random.RandomState(0).rand(6, 3).astype(np.float32))
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [3, 2]], [1, 3, 0, 5], [4, 3])
    weights = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [3, 2]], [0.5, 2.0, 1.0, 0.0], [4, 3])
    full = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 3, 0], [2, 3])
    heavy = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0.5, 2.0, 1.0], [2, 3])
    result = {}
    for combiner in ("sum", "mean", "sqrtn"):
        result[combiner] = [
            tf.nn.embedding_lookup_sparse(table, full, None, combiner=combiner),
            tf.nn.embedding_lookup_sparse(table, full, heavy, combiner=combiner),
            tf.nn.safe_embedding_lookup_sparse(table, ids, combiner=combiner),
            tf.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner=combiner),
            tf.nn.safe_embedding_lookup_sparse(table, ids, combiner=combiner, default_id=2),
        ]
    return result


@program
def traced(tf):
    @tf.function
    def f(x):
        return tf.sparse.to_dense(x), x * 2.0, tf.sparse.reduce_sum(x, 1)

    a, b = two(tf)
    dense, double, sums = f(a)
    with tf.GradientTape() as tape:
        matrix = tf.constant(np.arange(8.0).reshape(4, 2), tf.float32)
        tape.watch(matrix)
        y = tf.reduce_sum(tf.sparse.sparse_dense_matmul(b, matrix) ** 2)
    return [dense, plain(double), sums, f(b)[0], tf.convert_to_tensor(tape.gradient(y, matrix))]


@program
def examples(tf):
    def feature(**kinds):
        ((kind, values),) = kinds.items()
        if kind == "ints":
            return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        if kind == "floats":
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))

    rows = [
        {"tags": feature(bytes=[b"p", b"q"]), "at": feature(ints=[5, 2]), "v": feature(floats=[1.5, 2.5])},
        {"at": feature(ints=[0]), "v": feature(floats=[9.0])},
        {"tags": feature(bytes=[b"r"])},
    ]
    data = [tf.train.Example(features=tf.train.Features(feature=row)).SerializeToString() for row in rows]
    features = {
        "tags": tf.io.VarLenFeature(tf.string),
        "v": tf.io.VarLenFeature(tf.float32),
        "sparse": tf.io.SparseFeature("at", "v", tf.float32, 8),
    }
    ragged = {"words": tf.io.RaggedFeature(tf.string, value_key="tags"), "at": tf.io.RaggedFeature(tf.int64)}
    batch = tf.io.parse_example(data, features)
    single = [tf.io.parse_single_example(d, features) for d in data]
    mapped = tf.data.Dataset.from_tensor_slices(data).batch(2).map(lambda x: tf.io.parse_example(x, features))
    rows = [tf.io.parse_example(data, ragged), *[tf.io.parse_single_example(d, ragged) for d in data]]
    sparse = [{k: plain(v) for k, v in sorted(parsed.items())} for parsed in (batch, *single, *mapped)]
    return sparse + [dict(sorted(parsed.items())) for parsed in rows]


@program
def sequences_without_alignment(tf):
    generator = np.random.RandomState(1)
    logits = tf.constant(generator.standard_normal((7, 4, 5)).astype(np.float32))
    labels = tf.constant([[1, 2, 2, 0], [3, 0, 0, 0], [4, 4, 1, 2], [2, 1, 3, 0]])
    lengths, steps = tf.constant([3, 1, 4, 0]), tf.constant([7, 4, 7, 5])
    result = {}
    for name, options in {
        "first": {"blank_index": 0},
        "last": {"blank_index": -1},
        "inner": {"blank_index": 2},
    }.items():
        chosen = labels if name == "first" else tf.constant([[1, 0, 0, 0], [3, 0, 0, 0], [0, 3, 1, 3], [1, 1, 3, 0]])
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = tf.nn.ctc_loss(chosen, logits, lengths, steps, **options)
            weighted = tf.reduce_sum(loss * tf.constant([1.0, 2.0, 0.5, 1.0]))
        result[name] = [loss, tape.gradient(weighted, logits)]
    major = tf.nn.ctc_loss(labels, tf.transpose(logits, [1, 0, 2]), lengths, steps, logits_time_major=False)
    sparse = tf.sparse.from_dense(tf.constant([[1, 2, 2, 0], [3, 0, 0, 0], [4, 4, 1, 2], [2, 1, 3, 0]]))
    result["batch major"] = major
    result["sparse"] = tf.nn.ctc_loss(sparse, logits, None, steps, blank_index=0)
    for merged in (True, False):
        decoded, scores = tf.nn.ctc_greedy_decoder(logits, steps, merge_repeated=merged)
        result[f"decoded {merged}"] = [plain(decoded[0]), scores]
    decoded, _ = tf.nn.ctc_greedy_decoder(logits, steps, blank_index=0)
    return {**result, "decoded by the first": plain(decoded[0])}
