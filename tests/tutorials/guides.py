"""Programs of the guides' unusual calls: printed composites, broadcasting, masks, variables as targets."""

import numpy as np
from tutorial_programs import program


@program
def printed_composites(tf):
    sparse = tf.SparseTensor([[0, 3], [2, 4]], [10, 20], [3, 10])
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([3]), tf.constant([5, 2]))
    words = tf.ragged.constant([["Who", "is", "Dan", "Smith", "and", "why", "that"], ["Pause"], [], ["Will", "it"]])
    uniform = tf.RaggedTensor.from_uniform_row_length(tf.range(6), 2)
    nested = tf.ragged.constant([[[1.5, 2.0], [float("nan")]], []])
    spec = tf.RaggedTensorSpec([None, None], tf.int32)
    return [str(x) for x in (sparse, slices, words, uniform, nested, spec)] + [
        [tf.is_tensor(x) for x in (sparse, words, slices, 1.0)]
    ]


@program
def ragged_and_dense(tf):
    x = tf.ragged.constant([[[1, 2], [3, 4], [5, 6]], [[7, 8]]], ragged_rank=1)
    y = tf.ragged.constant([[[[1], [2]], [], [[3]], [[4]]], [[[5]], [[6]]]], ragged_rank=2)
    z = tf.ragged.constant([[1.0, 2.0], [], [3.0, -1.0, 4.0]])
    even = tf.RaggedTensor.from_row_lengths(tf.range(6), [3, 3])
    matrices = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1)
    factors = tf.reshape(tf.range(8.0), [2, 2, 2])
    add = tf.function(lambda a, b: a + b)
    return {
        "one": x + tf.constant([[10]]),
        "rows": [x + tf.constant([[[10, 20]], [[30, 40]]]), z * tf.constant([[2.0], [3.0], [4.0]])],
        "inner": y + tf.constant([10, 20, 30]),
        "columns": even - tf.constant([[1, 2, 3], [4, 5, 6]]),
        "traced": add(even, tf.constant([[10, 20, 30], [1, 2, 3]])),
        "reversed": [tf.reverse(z, [1]), tf.reverse(z, [0]), tf.reverse(x, [1, 2]), tf.reverse(y, [0, 2])],
        "softmax": tf.nn.softmax(z),
        "products": tf.matmul(matrices, factors),
    }


@program
def sums_of_ragged_rows(tf):
    @tf.function
    def total(rows):
        result = 0.0
        for row in rows:
            result += tf.reduce_sum(row) * 2.0
        return result

    return total(tf.ragged.constant([[1.0, 2.0], [], [3.5]]))


@program
def merged_sparse_tensors(tf):
    a = tf.SparseTensor([[0, 3], [2, 4]], [15.0, -25.0], [3, 10])
    merged = (tf.sparse.maximum(a, a), tf.sparse.minimum(a, a))
    counts = (tf.sparse.bincount([1, 1, 3]), tf.sparse.bincount(np.array([1, 1, 3]), binary_output=True))
    return [[x.indices, x.values] for x in (*merged, *counts)]


@program
def variables_as_targets(tf):
    first, second, x = tf.Variable(2.0), tf.Variable(2.0), tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        result = first if x > 0.0 else second**2
    with tf.GradientTape(watch_accessed_variables=False) as blind:
        pass
    with tf.GradientTape(persistent=True) as unwatched:
        y = x * 3.0
    itself = [unwatched.gradient(x, x), unwatched.gradient(y, [x, y])]
    return [*tape.gradient(result, [first, second, x]), blind.gradient(first, first), itself]


@program
def masks_of_layers(tf):
    class Halves(tf.keras.layers.Layer):
        def call(self, inputs):
            return tf.split(inputs, 2, axis=1)

        def compute_mask(self, inputs, mask=None):
            return None if mask is None else tf.split(mask, 2, axis=1)

    words = np.array([[5, 3, 2, 0], [7, 0, 0, 0]])
    embedded = tf.keras.layers.Embedding(9, 2, mask_zero=True)(words)
    halves = Halves()(embedded)
    return [embedded._keras_mask, [half._keras_mask for half in halves], hasattr(tf.constant(1.0), "_keras_mask")]


@program
def integers_of_generators(tf):
    generator = tf.random.Generator.from_seed(3)
    drawn = [generator.uniform_full_int([2]), generator.uniform_full_int([], tf.int32)]
    return [[x.dtype.name, list(x.shape)] for x in drawn]


@program
def distributed_iterators(tf):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    batches = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(9).batch(4)))
    factor = tf.Variable(3, dtype=tf.int64)

    @tf.function
    def step(iterator):
        return strategy.run(lambda x: tf.reduce_sum(x) * factor, args=(next(iterator),))

    return [strategy.reduce("SUM", step(batches), axis=None) for _ in range(3)]


@program
def sparse_inputs_of_models(tf):
    words = tf.SparseTensor([(0, 0), (0, 2), (4, 3), (5, 0), (5, 1)], [1.0, 1.0, 2.0, 1.0, 1.0], (6, 4))
    inputs = tf.keras.Input(shape=(4,), sparse=True)
    outputs = tf.keras.layers.Dense(2, kernel_initializer=tf.keras.initializers.Constant([[1.0, 2.0]] * 4))(inputs)
    model = tf.keras.Model(inputs, outputs)
    batches = tf.data.Dataset.from_tensor_slices((words, tf.ones([6, 2]))).batch(3)
    results = [model(words), model.predict(words, verbose=0), model.get_config()["layers"][0]["config"]["sparse"]]
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    model.fit(batches, verbose=0)
    return [*results, model.get_weights()]


@program
def gradients_of_complex_functions(tf):
    z, x = np.array([1 + 2j, 0.5 - 1j]), np.array([1.5, 2.0])
    functions = [lambda a: a * a, tf.math.conj, tf.abs, tf.math.real, lambda a: tf.linalg.qr(a[None])[1]]
    pairs = [tf.test.compute_gradient(f, [z], delta=1e-3) for f in functions]
    pairs.append(tf.test.compute_gradient(lambda a: tf.complex(a, a * 2), [x], delta=1e-3))
    return [[np.round(np.array(part), 5) + 0.0 for part in parts] for pair in pairs for parts in pair]
