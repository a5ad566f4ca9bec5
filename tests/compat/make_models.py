"""Write the models of old_models.py as this version saves them: `python tests/compat/make_models.py`.

Run once a version, before its release. Files of earlier versions are never written again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from old_models import MODELS

import opwright as ow

FOLDER = Path(__file__).parent / "models" / ow.__version__


def main() -> None:
    """A saved model, its graphs' text, and a .tflite file for each; a checkpoint."""
    if FOLDER.exists():
        sys.exit(f"{FOLDER} is there already: what a version wrote stays as it is; remove it if it was not released")
    for name, case in MODELS.items():
        module = case.make()
        ow.saved_model.save(module, str(FOLDER / name))
        if case.lite:
            converter = ow.lite.TFLiteConverter.from_concrete_functions([module.run.get_concrete_function()], module)
            converter.allow_custom_ops = True
            (FOLDER / f"{name}.tflite").write_bytes(converter.convert())
    checkpoint = ow.train.Checkpoint(w=ow.Variable(np.float32([1.5, -2.0])), step=ow.Variable(np.int64(7)))
    checkpoint.write(str(FOLDER / "checkpoint" / "all"))


if __name__ == "__main__":
    main()
