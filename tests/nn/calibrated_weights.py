"""A small transformer whose blocks GPTQ and AWQ quantize, for both libraries; writes calibrated_weights.json by Keras.

`KERAS_BACKEND=tensorflow python tests/nn/calibrated_weights.py`, with a Python that has Keras. Keras 3.15.1 attaches
its observers to `call`, while quantized layers run `quantized_call`, so that it sees no data; the file is written with
observers where they receive inputs.
"""

import contextlib
import json
import pathlib

import numpy as np

RESULTS = pathlib.Path(__file__).with_suffix(".json")
CONFIGS = {
    "gptq": ("GPTQConfig", {"group_size": 12}),
    "gptq_8_bits": ("GPTQConfig", {"group_size": -1, "weight_bits": 8, "symmetric": True, "activation_order": True}),
    "awq": ("AWQConfig", {"group_size": 12}),
}
NAMES = ("query", "output", "up", "down")


class Letters:
    """A tokenizer."""

    def tokenize(self, text):
        return np.array([ord(letter) % 32 for letter in text])


def transformer(keras, width=24, hidden=32):
    """Return a model, the layers before its blocks, and the blocks."""
    layers = keras.layers
    blocks = []
    for i in range(2):
        x = keras.Input((None, width))
        y = layers.LayerNormalization()(x)
        y = layers.EinsumDense("abc,cde->abde", (None, 2, 12), bias_axes="de", name=f"query{i}")(y)
        y = layers.Add()([x, layers.EinsumDense("abcd,cde->abe", (None, width), name=f"output{i}")(y)])
        y = layers.Dense(hidden, activation="relu", name=f"up{i}")(y)
        blocks.append(keras.Model(x, layers.Dense(width, name=f"down{i}")(y)))
    table = layers.Embedding(32, width)
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, layers.Dense(5, name="head")(blocks[1](blocks[0](table(inputs)))))
    rng = np.random.default_rng(3)
    for weight in model.weights:  # of both signs in each group
        values = rng.uniform(0.05, 0.5, tuple(weight.shape)).astype("float32")
        weight.assign(values * np.where(np.arange(values.size) % 5 < 2, -1, 1).reshape(values.shape))
    return model, [table], blocks


def config_of(keras, name, before, blocks):
    kind, options = CONFIGS[name]
    text = "".join(chr(65 + i) for i in np.random.default_rng(4).integers(0, 31, 160))
    return getattr(keras.quantizers, kind)(
        [text],
        Letters(),
        num_samples=1,
        sequence_length=160,
        quantization_layer_structure={"pre_block_layers": before, "sequential_blocks": blocks},
        **options,
    )


def codes(block, number):
    """Return the bytes of a block's weights, in hexadecimal."""
    kernels = [np.asarray(block.get_layer(f"{name}{number}").quantized_kernel) for name in NAMES]
    return {name: kernel.tobytes().hex() for name, kernel in zip(NAMES, kernels)}


@contextlib.contextmanager
def observed(layers, observers):
    """Stand for Keras's observers, at the method that quantized layers run."""

    def hooked(layer, observer):
        run = layer.quantized_call

        def call(x, *args, **kwargs):
            rows = np.asarray(x).reshape(-1, observer.rows)
            getattr(observer, "update_hessian_with_batch", getattr(observer, "update_activation_magnitudes", None))(
                rows
            )
            return run(x, *args, **kwargs)

        return call

    for name, layer in layers.items():
        object.__setattr__(layer, "quantized_call", hooked(layer, observers[name]))
    yield
    for layer in layers.values():
        object.__delattr__(layer, "quantized_call")


if __name__ == "__main__":
    import keras
    from keras.src.quantizers import awq_core, gptq_core

    gptq_core.stream_hessians = awq_core.stream_activations = observed
    results = {"made_with": f"keras {keras.__version__}"}
    tokens = np.arange(18).reshape(2, 9)
    for name in CONFIGS:
        model, before, blocks = transformer(keras)
        config = config_of(keras, name, before, blocks)
        model.quantize(config.mode, config=config)
        outputs = np.asarray(model(tokens)).ravel()[::6]
        results[name] = {
            "codes": [codes(block, i) for i, block in enumerate(blocks)],
            "outputs": [float(f"{v:.7g}") for v in outputs],
        }
    RESULTS.write_text(json.dumps(results, indent=0) + "\n")
