"""Names and keys of TensorFlow's saved models, by which programs look at their folders, tags and signatures.

Not here: the format of this package's own folders (manifest.py), the key of a default signature (signatures.py).
"""

from __future__ import annotations

ASSETS_DIRECTORY, ASSETS_KEY = "assets", "saved_model_assets"
CLASSIFY_INPUTS, CLASSIFY_OUTPUT_CLASSES, CLASSIFY_OUTPUT_SCORES = "inputs", "classes", "scores"
PREDICT_INPUTS, PREDICT_OUTPUTS = "inputs", "outputs"
REGRESS_INPUTS, REGRESS_OUTPUTS = "inputs", "outputs"
CLASSIFY_METHOD_NAME, PREDICT_METHOD_NAME, REGRESS_METHOD_NAME = (
    f"tensorflow/serving/{method}" for method in ("classify", "predict", "regress")
)
DEBUG_DIRECTORY, DEBUG_INFO_FILENAME_PB = "debug", "saved_model_debug_info.pb"
SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT = "saved_model.pb", "saved_model.pbtxt"
SAVED_MODEL_SCHEMA_VERSION = 1
GPU, SERVING, TPU, TRAINING = "gpu", "serve", "tpu", "train"
VARIABLES_DIRECTORY = VARIABLES_FILENAME = "variables"
