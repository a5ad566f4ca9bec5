"""The table of layers that are compared with Keras: how each is made, on what it is called, what is recorded.

Lives here: the cases, and `run`, which works on any module with TensorFlow's names.
Not here: the expected values (tests/data/layers.npz, made by tests/data/make_layers.py with TensorFlow).
"""

import zlib
from types import SimpleNamespace

import numpy as np

CASES = {}


def case(name, make, *inputs, call=None, **kwargs):
    """name: unique. make: of the layers' module. inputs: shapes, or functions of a random generator. call: of the layer
    and the inputs, by default the layer on the first input."""
    assert name not in CASES, name
    CASES[name] = SimpleNamespace(
        name=name, make=make, inputs=inputs, call=call or (lambda layer, x, **kw: layer(x, **kw)), kwargs=kwargs
    )


def generator(name):
    """Random numbers that depend on the case alone."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def inputs_of(c):
    """The arrays a case's layer is called on."""
    rng = generator(c.name)
    return [i(rng) if callable(i) else rng.standard_normal(i).astype(np.float32) for i in c.inputs]


def set_seeded(layer, name):
    """Weights that depend on the case and their shapes; those that are variances are positive."""
    rng = generator("weights of " + name)
    values = []
    for w, old in zip(layer.weights, layer.get_weights()):
        new = rng.standard_normal(old.shape) * 0.5
        if "variance" in w.name or "stddev" in w.name:
            new = np.abs(new) + 0.5
        values.append(old if old.dtype.kind != "f" else new.astype(old.dtype))
    layer.set_weights(values)


def flat(value):
    """The tensors in tuples and lists."""
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in flat(v)]
    return [value]


def loss_of(tf, outputs):
    """A scalar that depends on every element in a way of its own."""
    total = tf.constant(0.0)
    for y in outputs:
        size = int(np.prod(y.shape))
        weights = np.cos(np.arange(size) * 0.7 + 0.3).astype(np.float32).reshape(y.shape)
        total = total + tf.reduce_sum(tf.cast(y, tf.float32) * weights)
    return total


def run(tf, layers, c):
    """Call a case's layer; its outputs, gradients by inputs and by trainable weights, and the other weights after."""
    layer = c.make(layers)
    arrays = inputs_of(c)
    tensors = [tf.constant(a) for a in arrays]
    c.call(layer, *tensors, **c.kwargs)  # builds
    set_seeded(layer, c.name)
    sources = [t for t in tensors if t.dtype == tf.float32]
    weights = [w if isinstance(w, tf.Variable) else w.value for w in layer.trainable_weights]
    with tf.GradientTape() as tape:
        for t in sources:
            tape.watch(t)
        outputs = flat(c.call(layer, *tensors, **c.kwargs))
        loss = loss_of(tf, outputs)
    grads = tape.gradient(loss, [*sources, *weights])
    record = {f"out{i}": np.asarray(y) for i, y in enumerate(outputs)}
    for i, g in enumerate(grads):
        if g is not None:
            record[f"grad{i}"] = np.asarray(tf.convert_to_tensor(g))
    for i, w in enumerate(layer.non_trainable_weights):
        record[f"state{i}"] = np.asarray(w)
    record["shapes"] = np.array([str(tuple(w.shape)) for w in layer.weights])
    record["names"] = np.array([w.name.rpartition("/")[2].partition(":")[0] for w in layer.weights])
    return layer, record


def integers(high, *shape):
    return lambda rng: rng.integers(0, high, shape).astype(np.int32)


def positive(*shape):
    return lambda rng: (np.abs(rng.standard_normal(shape)) + 0.1).astype(np.float32)


def mask(*shape):
    """Ones, then zeros, of random lengths of at least 1."""

    def make(rng):
        lengths = rng.integers(1, shape[-1] + 1, shape[:-1])
        return np.arange(shape[-1]) < lengths[..., None]

    return make


# ---- core -----------------------------------------------------------------------------------------------------------

case("dense", lambda L: L.Dense(4), (3, 5))
case("dense_relu", lambda L: L.Dense(4, activation="relu"), (3, 5))
case("dense_no_bias_3d", lambda L: L.Dense(4, use_bias=False, activation="tanh"), (2, 3, 5))
case("dense_lora", lambda L: L.Dense(4, lora_rank=2), (3, 5))
case("einsum_dense", lambda L: L.EinsumDense("ab,bc->ac", 6, bias_axes="c"), (3, 5))
case("einsum_dense_left", lambda L: L.EinsumDense("...x,xyz->...yz", (4, 2), bias_axes="yz"), (2, 3, 5))
case("einsum_dense_right", lambda L: L.EinsumDense("ab...,bc->ac...", 4, bias_axes="c"), (2, 3, 5))
case(
    "einsum_dense_middle",
    lambda L: L.EinsumDense("abc,cde->abde", (None, 3, 4), bias_axes="de", activation="gelu"),
    (2, 3, 5),
)
case("embedding", lambda L: L.Embedding(7, 3), integers(7, 2, 4))
case("embedding_lora", lambda L: L.Embedding(7, 3, lora_rank=2), integers(7, 2, 4))
case("embedding_masked_lstm", lambda L: _chain(L.Embedding(5, 3, mask_zero=True), L.LSTM(2)), integers(3, 4, 5))
case(
    "masking_gru",
    lambda L: _chain(L.Masking(0.0), L.GRU(2, return_sequences=True)),
    lambda rng: rng.standard_normal((3, 5, 2)).astype(np.float32) * mask(3, 5)(rng)[..., None].astype(np.float32),
)
case("lambda", lambda L: L.Lambda(lambda x: x * 2.0 + 1.0), (2, 3))
case("identity", lambda L: L.Identity(), (2, 3))


class _Chain:
    """Layers one after the other, with the weights of all."""

    def __init__(self, *layers):
        self.layers = layers

    def __call__(self, x, **kwargs):
        for layer in self.layers:
            x = layer(x, **kwargs)
        return x

    weights = property(lambda self: [w for one in self.layers for w in one.weights])
    trainable_weights = property(lambda self: [w for one in self.layers for w in one.trainable_weights])
    non_trainable_weights = property(lambda self: [w for one in self.layers for w in one.non_trainable_weights])

    def get_weights(self):
        return [w for one in self.layers for w in one.get_weights()]

    def set_weights(self, values):
        for one in self.layers:
            count = len(one.weights)
            one.set_weights(values[:count])
            values = values[count:]


def _chain(*layers):
    return _Chain(*layers)


# ---- convolutions ---------------------------------------------------------------------------------------------------

case("conv1d", lambda L: L.Conv1D(3, 3), (2, 7, 2))
case("conv1d_same_stride", lambda L: L.Conv1D(3, 3, strides=2, padding="same", activation="relu"), (2, 7, 2))
case("conv1d_causal", lambda L: L.Conv1D(3, 3, padding="causal", dilation_rate=2), (2, 7, 2))
case("conv2d", lambda L: L.Conv2D(3, 3), (2, 6, 5, 2))
case("conv2d_same", lambda L: L.Conv2D(3, (3, 2), strides=(2, 1), padding="same", use_bias=False), (2, 6, 5, 2))
case("conv2d_dilated", lambda L: L.Conv2D(3, 3, dilation_rate=2, padding="same", activation="elu"), (1, 7, 7, 2))
case("conv2d_groups", lambda L: L.Conv2D(4, 3, groups=2), (2, 5, 5, 4))
case("conv3d", lambda L: L.Conv3D(2, 2), (1, 4, 4, 3, 2))
case("conv3d_same", lambda L: L.Conv3D(2, 3, strides=2, padding="same"), (1, 5, 4, 3, 2))
for kind in ("valid", "same"):
    case(f"conv1d_transpose_{kind}", lambda L, p=kind: L.Conv1DTranspose(3, 3, strides=2, padding=p), (2, 4, 2))
    case(f"conv2d_transpose_{kind}", lambda L, p=kind: L.Conv2DTranspose(3, 3, strides=2, padding=p), (1, 4, 3, 2))
    case(f"conv3d_transpose_{kind}", lambda L, p=kind: L.Conv3DTranspose(2, 2, strides=2, padding=p), (1, 3, 2, 2, 2))
    case(
        f"conv2d_transpose_pad_{kind}",
        lambda L, p=kind: L.Conv2DTranspose(2, 3, strides=(3, 2), padding=p, output_padding=(1, 1)),
        (1, 4, 3, 2),
    )
    case(f"depthwise1d_{kind}", lambda L, p=kind: L.DepthwiseConv1D(3, depth_multiplier=2, padding=p), (2, 6, 2))
    case(
        f"depthwise2d_{kind}",
        lambda L, p=kind: L.DepthwiseConv2D(3, strides=2, depth_multiplier=2, padding=p),
        (2, 6, 6, 2),
    )
    case(f"separable1d_{kind}", lambda L, p=kind: L.SeparableConv1D(4, 3, depth_multiplier=2, padding=p), (2, 6, 2))
    case(
        f"separable2d_{kind}",
        lambda L, p=kind: L.SeparableConv2D(4, 3, depth_multiplier=2, padding=p, activation="relu"),
        (2, 6, 6, 2),
    )
case("depthwise2d_dilated", lambda L: L.DepthwiseConv2D(2, dilation_rate=2), (1, 6, 6, 2))
case("depthwise2d_first", lambda L: L.DepthwiseConv2D(3, data_format="channels_first"), (1, 2, 6, 6))
case("separable2d_first", lambda L: L.SeparableConv2D(3, 3, data_format="channels_first"), (1, 2, 6, 6))

# ---- pooling --------------------------------------------------------------------------------------------------------

for n, shape in ((1, (2, 7, 3)), (2, (2, 7, 6, 3)), (3, (1, 5, 4, 4, 2))):
    for kind in ("Max", "Average"):
        for padding in ("valid", "same"):
            case(
                f"{kind}_pool{n}_{padding}",
                lambda L, k=kind, n=n, p=padding: getattr(L, f"{k}Pooling{n}D")(3, strides=2, padding=p),
                shape,
            )
        case(f"global_{kind}_pool{n}", lambda L, k=kind, n=n: getattr(L, f"Global{k}Pooling{n}D")(), shape)
        case(
            f"global_{kind}_pool{n}_first",
            lambda L, k=kind, n=n: getattr(L, f"Global{k}Pooling{n}D")(data_format="channels_first", keepdims=True),
            shape,
        )
        case(f"adaptive_{kind}_pool{n}", lambda L, k=kind, n=n: getattr(L, f"Adaptive{k}Pooling{n}D")(2), shape)
case(
    "global_average_masked",
    lambda L: L.GlobalAveragePooling1D(),
    (3, 5, 2),
    mask(3, 5),
    call=lambda layer, x, m: layer(x, mask=m),
)

# ---- normalisation --------------------------------------------------------------------------------------------------

for training in (False, True):
    case(f"batch_norm_{training}", lambda L: L.BatchNormalization(), (6, 4), training=training)
    case(
        f"batch_norm_4d_{training}",
        lambda L: L.BatchNormalization(axis=1, momentum=0.9),
        (3, 2, 4, 4),
        training=training,
    )
    case(
        f"batch_norm_plain_{training}",
        lambda L: L.BatchNormalization(center=False, scale=False),
        (2, 3, 3, 2),
        training=training,
    )
    case(
        f"batch_norm_renorm_{training}",
        lambda L: L.BatchNormalization(renorm=True, renorm_clipping={"rmax": 2.0, "rmin": 0.5, "dmax": 1.0}),
        (6, 3),
        training=training,
    )
    case(
        f"spectral_{training}",
        lambda L: L.SpectralNormalization(L.Dense(3), power_iterations=2),
        (4, 5),
        training=training,
    )
case(
    "batch_norm_mask",
    lambda L: L.BatchNormalization(),
    (3, 5, 2),
    mask(3, 5),
    call=lambda layer, x, m, **kw: layer(x, mask=m, **kw),
    training=True,
)
case("layer_norm", lambda L: L.LayerNormalization(), (3, 4, 5))
case("layer_norm_axes", lambda L: L.LayerNormalization(axis=[1, 2], epsilon=1e-5), (3, 4, 5))
case("layer_norm_axis1", lambda L: L.LayerNormalization(axis=1, center=False), (3, 4, 5))
case("rms_norm", lambda L: L.RMSNormalization(), (3, 4, 5))
case("group_norm", lambda L: L.GroupNormalization(groups=2), (2, 3, 3, 4))
case("group_norm_first", lambda L: L.GroupNormalization(groups=2, axis=1, scale=False), (2, 4, 3, 3))
case("group_norm_each", lambda L: L.GroupNormalization(groups=-1), (2, 3, 4))
case("unit_norm", lambda L: L.UnitNormalization(), (3, 4))
case("unit_norm_axes", lambda L: L.UnitNormalization(axis=[1, 2]), (3, 4, 2))

# ---- recurrent ------------------------------------------------------------------------------------------------------

for kind in ("SimpleRNN", "GRU", "LSTM"):
    case(f"{kind}", lambda L, k=kind: getattr(L, k)(3), (2, 4, 2))
    case(f"{kind}_sequences", lambda L, k=kind: getattr(L, k)(3, return_sequences=True, use_bias=False), (2, 4, 2))
    case(
        f"{kind}_state",
        lambda L, k=kind: getattr(L, k)(3, return_state=True, go_backwards=True, return_sequences=True),
        (2, 4, 2),
    )
    case(
        f"{kind}_mask",
        lambda L, k=kind: getattr(L, k)(3, return_state=True),
        (3, 5, 2),
        mask(3, 5),
        call=lambda layer, x, m: layer(x, mask=m),
    )
    case(
        f"{kind}_mask_sequences",
        lambda L, k=kind: getattr(L, k)(3, return_sequences=True),
        (3, 5, 2),
        lambda rng: rng.random((3, 5)) > 0.4,
        call=lambda layer, x, m: layer(x, mask=m),
    )
    case(
        f"{kind}_initial",
        lambda L, k=kind: getattr(L, k)(3, unroll=True),
        (2, 4, 2),
        (2, 3),
        (2, 3),
        call=lambda layer, x, h, c, k=kind: layer(x, initial_state=[h, c] if k == "LSTM" else [h]),
    )
    case(
        f"{kind}_cell",
        lambda L, k=kind: getattr(L, f"{k}Cell")(3),
        (2, 4),
        (2, 3),
        (2, 3),
        call=lambda layer, x, h, c, k=kind: layer(x, [h, c] if k == "LSTM" else [h]),
    )
    for mode in ("concat", "sum", "mul", "ave", None):
        case(
            f"bidirectional_{kind}_{mode}",
            lambda L, k=kind, m=mode: L.Bidirectional(getattr(L, k)(2, return_sequences=m != "sum"), merge_mode=m),
            (2, 3, 2),
        )
case("conv_lstm_1d", lambda L: L.ConvLSTM1D(3, 2, use_bias=False), (2, 3, 6, 2))
case("conv_lstm_2d", lambda L: L.ConvLSTM2D(3, 3, padding="same", return_sequences=True), (2, 3, 5, 4, 2))
case("conv_lstm_strides", lambda L: L.ConvLSTM2D(2, 2, strides=2, go_backwards=True), (2, 3, 5, 4, 2))
case("conv_lstm_dilated", lambda L: L.ConvLSTM2D(2, (2, 3), dilation_rate=2, return_state=True), (2, 3, 6, 7, 2))
case("conv_lstm_3d", lambda L: L.ConvLSTM3D(2, 2, activation="relu"), (2, 2, 3, 4, 3, 2))
case("GRU_reset_before", lambda L: L.GRU(3, reset_after=False, recurrent_activation="hard_sigmoid"), (2, 4, 2))
case("LSTM_activations", lambda L: L.LSTM(3, activation="relu", recurrent_activation="hard_sigmoid"), (2, 4, 2))
case(
    "bidirectional_mask",
    lambda L: L.Bidirectional(L.GRU(2, return_sequences=True)),
    (3, 5, 2),
    mask(3, 5),
    call=lambda layer, x, m: layer(x, mask=m),
)
case("bidirectional_state", lambda L: L.Bidirectional(L.LSTM(2, return_state=True)), (3, 4, 2))
case(
    "bidirectional_initial",
    lambda L: L.Bidirectional(L.GRU(2)),
    (3, 4, 2),
    (3, 2),
    (3, 2),
    call=lambda layer, x, a, b: layer(x, initial_state=[a, b]),
)
case("stacked_rnn", lambda L: L.RNN([L.LSTMCell(3), L.GRUCell(2)], return_sequences=True), (2, 4, 2))
case(
    "stacked_rnn_mask",
    lambda L: L.RNN([L.SimpleRNNCell(3), L.LSTMCell(2)]),
    (2, 4, 2),
    mask(2, 4),
    call=lambda layer, x, m: layer(x, mask=m),
)
case(
    "rnn_zero_output",
    lambda L: L.RNN(L.GRUCell(2), return_sequences=True, zero_output_for_mask=True),
    (3, 5, 2),
    mask(3, 5),
    call=lambda layer, x, m: layer(x, mask=m),
)
case("time_distributed", lambda L: L.TimeDistributed(L.Dense(3)), (2, 4, 5))
case("time_distributed_conv", lambda L: L.TimeDistributed(L.Conv2D(2, 2)), (2, 3, 4, 4, 2))

# ---- attention ------------------------------------------------------------------------------------------------------

case("mha", lambda L: L.MultiHeadAttention(2, 3), (2, 4, 5), call=lambda layer, x: layer(x, x))
case(
    "mha_key",
    lambda L: L.MultiHeadAttention(2, 3, value_dim=4, output_shape=6),
    (2, 4, 5),
    (2, 3, 2),
    (2, 3, 4),
    call=lambda layer, q, v, k: layer(q, v, k),
)
case(
    "mha_causal",
    lambda L: L.MultiHeadAttention(2, 3, use_bias=False),
    (2, 4, 5),
    call=lambda layer, x: layer(x, x, use_causal_mask=True),
)
case(
    "mha_scores",
    lambda L: L.MultiHeadAttention(2, 3),
    (2, 4, 5),
    (2, 3, 5),
    lambda rng: rng.random((2, 4, 3)) > 0.3,
    call=lambda layer, q, v, m: layer(q, v, attention_mask=m, return_attention_scores=True),
)
case(
    "mha_masks",
    lambda L: L.MultiHeadAttention(2, 3),
    (2, 4, 5),
    (2, 3, 5),
    mask(2, 3),
    call=lambda layer, q, v, m: layer(q, v, value_mask=m),
)
case(
    "mha_axes",
    lambda L: L.MultiHeadAttention(2, 3, attention_axes=(2,)),
    (2, 3, 4, 5),
    call=lambda layer, x: layer(x, x),
)
case(
    "mha_gate_window",
    lambda L: L.MultiHeadAttention(2, 3, use_gate=True, sliding_window=2),
    (2, 5, 4),
    call=lambda layer, x: layer(x, x, use_causal_mask=True),
)
case("gqa", lambda L: L.GroupQueryAttention(3, 4, 2), (2, 4, 5), (2, 3, 5), call=lambda layer, q, v: layer(q, v))
case(
    "gqa_scores",
    lambda L: L.GroupQueryAttention(3, 4, 2),
    (2, 4, 5),
    call=lambda layer, x: layer(x, x, return_attention_scores=True, use_causal_mask=True),
)
for mode in ("dot", "concat"):
    case(
        f"attention_{mode}",
        lambda L, m=mode: L.Attention(use_scale=True, score_mode=m),
        (2, 3, 4),
        (2, 5, 4),
        call=lambda layer, q, v: layer([q, v], return_attention_scores=True),
    )
case(
    "attention_masks",
    lambda L: L.Attention(),
    (2, 3, 4),
    (2, 3, 4),
    (2, 3, 4),
    mask(2, 3),
    mask(2, 3),
    call=lambda layer, q, v, k, a, b: layer([q, v, k], mask=[a, b], use_causal_mask=True),
)
case(
    "additive_attention", lambda L: L.AdditiveAttention(), (2, 3, 4), (2, 5, 4), call=lambda layer, q, v: layer([q, v])
)

# ---- shapes ---------------------------------------------------------------------------------------------------------

case("flatten", lambda L: L.Flatten(), (2, 3, 4))
case("flatten_first", lambda L: L.Flatten(data_format="channels_first"), (2, 3, 4, 2))
case("reshape", lambda L: L.Reshape((4, -1)), (2, 6, 2))
case("permute", lambda L: L.Permute((2, 1)), (2, 3, 4))
case("repeat_vector", lambda L: L.RepeatVector(3), (2, 4))
case("cropping1d", lambda L: L.Cropping1D((1, 2)), (2, 6, 2))
case("cropping2d", lambda L: L.Cropping2D(((1, 0), (0, 2))), (2, 5, 6, 2))
case("cropping2d_first", lambda L: L.Cropping2D(1, data_format="channels_first"), (2, 2, 5, 6))
case("cropping3d", lambda L: L.Cropping3D(), (1, 4, 5, 3, 2))
case("zero_padding1d", lambda L: L.ZeroPadding1D((1, 2)), (2, 3, 2))
case("zero_padding2d", lambda L: L.ZeroPadding2D(((1, 2), (0, 1)), data_format="channels_first"), (2, 2, 3, 3))
case("zero_padding3d", lambda L: L.ZeroPadding3D(1), (1, 2, 3, 2, 2))
case("upsampling1d", lambda L: L.UpSampling1D(3), (2, 3, 2))
case("upsampling2d", lambda L: L.UpSampling2D((2, 3)), (2, 3, 4, 2))
for method in ("bilinear", "bicubic", "lanczos3", "lanczos5"):
    case(f"upsampling2d_{method}", lambda L, m=method: L.UpSampling2D(2, interpolation=m), (1, 4, 5, 2))
    case(f"resizing_{method}", lambda L, m=method: L.Resizing(3, 7, interpolation=m), (1, 6, 5, 2))
case(
    "upsampling2d_first",
    lambda L: L.UpSampling2D(2, data_format="channels_first", interpolation="bilinear"),
    (1, 2, 3, 4),
)
case("upsampling3d", lambda L: L.UpSampling3D(2), (1, 2, 3, 2, 2))
case("resizing_nearest", lambda L: L.Resizing(3, 7, interpolation="nearest"), (1, 6, 5, 2))
case("resizing_antialias", lambda L: L.Resizing(3, 4, antialias=True), (1, 9, 8, 2))
case("resizing_crop", lambda L: L.Resizing(4, 4, crop_to_aspect_ratio=True), (1, 9, 6, 2))
case("resizing_pad", lambda L: L.Resizing(4, 4, pad_to_aspect_ratio=True, fill_value=2.0), (1, 9, 6, 2))

# ---- merging --------------------------------------------------------------------------------------------------------

for kind in ("Add", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"):
    case(
        f"{kind}",
        lambda L, k=kind: getattr(L, k)(),
        (2, 3, 4),
        (2, 3, 4),
        (2, 3, 4),
        call=lambda layer, a, b, c: layer([a, b, c]),
    )
for kind in ("Add", "Multiply", "Maximum"):
    case(
        f"{kind}_broadcast",
        lambda L, k=kind: getattr(L, k)(),
        (2, 3, 4),
        (2, 1, 4),
        call=lambda layer, a, b: layer([a, b]),
    )
    case(f"{kind}_ranks", lambda L, k=kind: getattr(L, k)(), (2, 3, 4), (2, 4), call=lambda layer, a, b: layer([a, b]))
case("Subtract", lambda L: L.Subtract(), (2, 3), (2, 3), call=lambda layer, a, b: layer([a, b]))
case("Concatenate_axis1", lambda L: L.Concatenate(axis=1), (2, 3, 4), (2, 1, 4), call=lambda layer, a, b: layer([a, b]))
case("Dot", lambda L: L.Dot(axes=1), (3, 4), (3, 4), call=lambda layer, a, b: layer([a, b]))
case("Dot_normalize", lambda L: L.Dot(axes=-1, normalize=True), (3, 4), (3, 4), call=lambda layer, a, b: layer([a, b]))
case("Dot_axes", lambda L: L.Dot(axes=(1, 2)), (2, 4, 3), (2, 5, 4), call=lambda layer, a, b: layer([a, b]))
case("Dot_rank4", lambda L: L.Dot(axes=(3, 1)), (2, 4, 3, 5), (2, 5), call=lambda layer, a, b: layer([a, b]))

# ---- activations ----------------------------------------------------------------------------------------------------

for kind in (
    "relu",
    "sigmoid",
    "softmax",
    "gelu",
    "silu",
    "mish",
    "hard_sigmoid",
    "hard_silu",
    "selu",
    "softplus",
    "softsign",
    "exponential",
    "log_softmax",
    "celu",
    "glu",
    "tanh_shrink",
    "hard_tanh",
    "hard_shrink",
    "soft_shrink",
    "squareplus",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "log_sigmoid",
    "leaky_relu",
    "relu6",
    "elu",
    "linear",
):
    case(
        f"activation_{kind}",
        lambda L, k=kind: L.Activation(k),
        lambda rng: (3 * rng.standard_normal((3, 4))).astype(np.float32),
    )
case(
    "relu_all",
    lambda L: L.ReLU(max_value=2.0, negative_slope=0.1, threshold=0.5),
    lambda rng: (3 * rng.standard_normal((3, 4))).astype(np.float32),
)
case(
    "relu_slope_max",
    lambda L: L.ReLU(max_value=6.0, negative_slope=0.1),
    lambda rng: (6 * rng.standard_normal((3, 4))).astype(np.float32),
)
case("leaky_relu", lambda L: L.LeakyReLU(0.3), (3, 4))
case("prelu", lambda L: L.PReLU(), (3, 4, 2))
case("prelu_shared", lambda L: L.PReLU(shared_axes=[1]), (3, 4, 2))
case("elu_alpha", lambda L: L.ELU(0.5), (3, 4))
case("softmax_axes", lambda L: L.Softmax(axis=(1, 2)), (2, 3, 4))
case("softmax_mask", lambda L: L.Softmax(), (3, 4), mask(3, 4), call=lambda layer, x, m: layer(x, mask=m))

# ---- regularisation outside training, preprocessing -----------------------------------------------------------------

for kind in ("Dropout", "SpatialDropout1D", "GaussianDropout", "GaussianNoise", "AlphaDropout"):
    case(f"{kind}_off", lambda L, k=kind: getattr(L, k)(0.5), (2, 3, 4), training=False)
case("activity_regularization", lambda L: L.ActivityRegularization(l1=0.1, l2=0.2), (2, 3))
case("rescaling", lambda L: L.Rescaling(2.0, offset=-1.0), (2, 3))
case("normalization", lambda L: L.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0]), (4, 3))
case("normalization_invert", lambda L: L.Normalization(mean=2.0, variance=4.0, axis=None, invert=True), (4, 3))
case("category_multi_hot", lambda L: L.CategoryEncoding(5), integers(5, 3, 4))
case("category_one_hot", lambda L: L.CategoryEncoding(5, output_mode="one_hot"), integers(5, 4))
case("category_count", lambda L: L.CategoryEncoding(5, output_mode="count"), integers(5, 3, 4))
