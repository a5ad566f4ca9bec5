"""Programs on ragged tensors."""

from tutorial_programs import program


def two(tf):
    return tf.ragged.constant([[3, 1, 4], [], [1, 5], [9]]), tf.ragged.constant([[2, 7, 1], [], [8, 2], [8]])


def deep(tf):
    return tf.ragged.constant([[[1], [2, 3]], [], [[], [4, 5, 6], [7]]])


@program
def construction(tf):
    R = tf.RaggedTensor
    values = tf.constant([3, 1, 4, 1, 5, 9, 2])
    pairs = tf.reshape(tf.range(12), [6, 2])
    return {
        "splits": R.from_row_splits(values, [0, 3, 3, 7]),
        "lengths": R.from_row_lengths(values, [4, 0, 3, 0]),
        "ids": R.from_value_rowids(values, [0, 0, 0, 0, 2, 2, 2]),
        "ids of more": R.from_value_rowids(values, [0, 0, 1, 1, 2, 2, 2], nrows=5),
        "starts": R.from_row_starts(values, [0, 4, 4, 7]),
        "limits": R.from_row_limits(values, [2, 5, 5, 7]),
        "uniform": R.from_uniform_row_length(pairs, 3),
        "inner": R.from_row_lengths(pairs, [1, 0, 5]),
        "nested": R.from_nested_row_splits(values, [[0, 2, 2, 4], [0, 1, 1, 4, 7]]),
        "nested lengths": R.from_nested_row_lengths(values, [[1, 2], [4, 0, 3]]),
        "nested ids": R.from_nested_value_rowids(values, [[0, 0, 2], [0, 0, 1, 1, 1, 2, 2]]),
        "padding": R.from_tensor([[1, 2, 0], [0, 0, 0], [3, 0, 4]], padding=0),
        "cut": R.from_tensor([[1, 2, 0], [0, 0, 0], [3, 0, 4]], lengths=[1, 3, 0]),
        "full": R.from_tensor(tf.reshape(tf.range(12), [2, 3, 2]), ragged_rank=2),
        "inside": R.from_tensor(tf.reshape(tf.range(12), [2, 3, 2]), ragged_rank=1),
        "constant": tf.ragged.constant([["a"], [], ["b", "c"]]),
        "floats": tf.ragged.constant([[1.5], [2]]),
        "shaped": tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1),
        "inner shape": tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], inner_shape=(2,)),
        "empty": tf.ragged.constant([[], []], dtype=tf.int32),
        "range": tf.ragged.range([0, 5, 8], [3, 3, 12]),
        "steps": tf.ragged.range([0, 5, 8], [3, 3, 12], 2),
        "down": tf.ragged.range([3.0, 1.0], [0.0, 2.0], [-1.0, 0.25]),
        "limits alone": tf.ragged.range([2, 0, 3]),
        "stack": tf.ragged.stack([tf.constant([1]), tf.constant([2, 3]), tf.constant([], tf.int32)]),
        "stacked": tf.ragged.stack([two(tf)[0], two(tf)[1]]),
        "stacked inside": tf.ragged.stack([two(tf)[0], two(tf)[1]], axis=1),
    }


@program
def parts(tf):
    result = {}
    for name, x in {"two": two(tf)[0], "deep": deep(tf)}.items():
        result[name] = {
            "shape": [None if d is None else int(d) for d in x.shape],
            "rank": x.ragged_rank,
            "flat": x.flat_values,
            "splits": list(x.nested_row_splits),
            "lengths": x.row_lengths(),
            "nested lengths": list(x.nested_row_lengths()),
            "ids": x.value_rowids(),
            "rows": x.nrows(),
            "bounds": x.bounding_shape(),
            "bound": x.bounding_shape(axis=1),
            "starts": x.row_starts(),
            "limits": x.row_limits(),
            "padded": x.to_tensor(),
            "default": x.to_tensor(-1),
            "sparse": [x.to_sparse().indices, x.to_sparse().values, x.to_sparse().dense_shape],
        }
    x = two(tf)[0]
    result["cut"] = x.to_tensor(7, shape=[3, 2])
    result["wide"] = x.to_tensor(7, shape=[None, 5])
    result["longer"] = x.to_tensor(shape=[6, None])
    result["deep cut"] = deep(tf).to_tensor(shape=[None, 2, 2])
    result["inner lengths"] = deep(tf).row_lengths(axis=2)
    result["merged"] = [deep(tf).merge_dims(0, 1), deep(tf).merge_dims(1, 2), deep(tf).merge_dims(0, 2)]
    result["from sparse"] = tf.RaggedTensor.from_sparse(x.to_sparse())
    return result


@program
def elements(tf):
    x, y = two(tf)
    f = tf.cast(x, tf.float32)
    return {
        "sum": x + y,
        "scalar": [x * 2, 10 - x, -x, abs(-x)],
        "compare": [x < y, x == y, tf.logical_and(x > 1, x < 5)],
        "rows": x + tf.constant([[10], [20], [30], [40]]),
        "row": x + tf.constant([[100]]),
        "float": [tf.sqrt(f), tf.math.exp(f), f / 2.0, tf.nn.relu(f - 3.0), tf.pow(f, 2.0)],
        "deep": deep(tf) * deep(tf),
        "where": tf.where(x > 2, x, y),
        "clipped": tf.clip_by_value(x, 2, 4),
        "like": [tf.zeros_like(x), tf.ones_like(f)],
        "mapped": tf.ragged.map_flat_values(lambda a, b: a * 2 + b, x, y),
        "text": tf.strings.as_string(x),
    }


@program
def reductions(tf):
    x = two(tf)[0]
    f, result = tf.cast(x, tf.float32), {}
    for name in ("sum", "prod", "max", "min"):
        reduce = getattr(tf, f"reduce_{name}")
        result[name] = [reduce(x), reduce(x, axis=0), reduce(x, axis=1), reduce(deep(tf), axis=2), reduce(x, axis=-1)]
    result["mean"] = [tf.reduce_mean(f), tf.reduce_mean(f, axis=0), tf.reduce_mean(f, axis=1)]
    result["truth"] = [tf.reduce_any(x > 4, axis=1), tf.reduce_all(x > 2, axis=1), tf.reduce_any(x > 4)]
    result["several"] = [tf.reduce_sum(deep(tf), axis=[1, 2]), tf.reduce_sum(x, axis=[0, 1])]
    result["kept"] = [tf.reduce_sum(x, axis=1, keepdims=True), tf.reduce_sum(deep(tf), axis=2, keepdims=True)]
    pairs = tf.RaggedTensor.from_row_lengths(tf.reshape(tf.range(10.0), [5, 2]), [2, 0, 3])
    result["inner"] = [tf.reduce_sum(pairs, axis=1), tf.reduce_sum(pairs, axis=2), tf.reduce_mean(pairs, axis=1)]
    return result


@program
def selections(tf):
    x, y = two(tf)
    z = deep(tf)
    result = {"row": [x[0], x[1], x[-1], z[2], z[2, 1]]}
    for a, b, c in [(None, 2, None), (1, None, None), (None, None, 2), (-2, None, None), (None, None, -1), (3, 1, -1)]:
        rows = slice(a, b, c)
        result[f"{a}:{b}:{c}"] = [x[rows], x[:, rows], z[rows], z[:, rows], z[:, :, rows], z[2, rows], x[1:, rows]]
    result["more"] = [z[..., :1], x[:, tf.newaxis], x[:, :, tf.newaxis], z[2:, 1:, 1:]]
    result["gather"] = [tf.gather(x, [3, 0, 0]), tf.gather(z, [2, 1]), tf.gather(x, [[0, 1], [3, 2]])]
    result["by rows"] = tf.gather(
        tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.ragged.constant([[2, 0], [], [1]])
    )
    result["masked"] = [tf.ragged.boolean_mask(x, x > 2), tf.ragged.boolean_mask(x, [True, False, True, False])]
    result["dense mask"] = tf.ragged.boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, True]])
    result["row mask"] = tf.ragged.boolean_mask(z, tf.ragged.constant([[True, False], [], [False, True, True]]))
    result["concat"] = [
        tf.concat([x, y], 0),
        tf.concat([x, y, x], 1),
        tf.concat([x, [[1, 2], [3, 4], [5, 6], [7, 8]]], 1),
    ]
    result["deep concat"] = [tf.concat([z, z], 0), tf.concat([z, z], 1), tf.concat([z, z], 2)]
    result["stack"] = [tf.stack([x, y]), tf.stack([x, y], axis=1), tf.stack([x, y], axis=2)]
    result["expand"] = [tf.expand_dims(x, 0), tf.expand_dims(x, 1), tf.expand_dims(x, 2), tf.expand_dims(z, -1)]
    result["one_hot"] = tf.one_hot(x, 10).to_tensor()
    result["segments"] = [
        tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5]),
        tf.ragged.segment_ids_to_row_splits([0, 0, 2, 2, 3]),
    ]
    return result


@program
def traced(tf):
    @tf.function
    def f(x, y):
        total = tf.reduce_sum(x * y, axis=1)
        return x + 1, total, x.to_tensor(), tf.concat([x, y], 1), x[:, :2], tf.gather(y, [1, 0])

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def g(x):
        return tf.reduce_max(x, axis=1), x.nrows(), x.with_flat_values(x.flat_values * 2)

    x, y = two(tf)
    loop = tf.function(
        lambda x: tf.reduce_sum(
            tf.map_fn(lambda i: tf.reduce_sum(x[i]), tf.range(x.nrows()), fn_output_signature=tf.int32)
        )
    )
    return [list(f(x, y)), list(f(x[:2], y[:2])), list(g(x)), list(g(y[2:])), loop(x)]


@program
def gradients(tf):
    values = tf.constant([1.0, 2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        x = tf.RaggedTensor.from_row_lengths(values, [2, 0, 2])
        y = (
            tf.reduce_sum(x.to_tensor() ** 2)
            + tf.reduce_sum(tf.reduce_max(x * 3.0, axis=1)[::2])
            + tf.reduce_sum(x[:, 1:])
        )
    return tape.gradient(y, values)
