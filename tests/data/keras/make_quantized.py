"""Write quantized.zip: files of Keras with quantized layers, and outputs, for tests/nn/test_quantized_layers.py.

python tests/data/keras/make_quantized.py     in an environment with keras 3.15 and TensorFlow
"""

import io
import zipfile
from pathlib import Path

import keras
import numpy as np

layers, quantizers = keras.layers, keras.quantizers
X = np.arange(10).reshape(2, 5) % 11
CONFIGS = {
    "int8": quantizers.Int8QuantizationConfig(),
    "int4": quantizers.Int4QuantizationConfig(block_size=4),
    "channels": quantizers.Int4QuantizationConfig(block_size=None),
    "float8": quantizers.Float8QuantizationConfig(),
}


def network(name):
    """Return a model with all layers that `quantize` converts; of two modes with LoRA."""
    i = keras.Input((5,), dtype="int32")
    table = layers.ReversibleEmbedding(11, 6, tie_weights=False, name="r")
    x = layers.Embedding(11, 6, name="e")(i) + table(i)
    x = layers.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de", name="d")(x)
    x = layers.Dense(6, name="f")(layers.Reshape((5, 6))(x))
    model = keras.Model(i, table(x, reverse=True))
    if name in ("int8", "int4"):
        generator = np.random.default_rng(1)
        for layer in map(model.get_layer, "edf"):
            layer.enable_lora(2)
            last = layer.lora_embeddings_b if layer.name == "e" else layer.lora_kernel_b
            last.assign(generator.normal(size=last.shape) * 0.1)
    model.quantize(config=CONFIGS[name])
    return model


with zipfile.ZipFile(Path(__file__).parent / "quantized.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for name in CONFIGS:
        network(name).save("/tmp/quantized.keras")
        archive.write("/tmp/quantized.keras", f"{name}.keras")
        outputs = io.BytesIO()
        np.save(outputs, np.asarray(keras.models.load_model("/tmp/quantized.keras")(X)))
        archive.writestr(f"{name}.npy", outputs.getvalue())
