"""Write saved_layouts.json: how Keras stores the models of keras_saved_cases.py that Opwright saved, after it opened
them, and the arguments of its classes.

KERAS_BACKEND=jax PYTHONPATH=src:tests/frontends python tests/data/keras/make_layouts.py     with keras 3, h5py and jax
"""

import inspect
import json
import tempfile
from pathlib import Path

import keras
import keras_saved_cases as rows
from keras_peer import opened


def arguments(cls):
    """Return the names of the arguments of a class and its bases."""
    names = set()
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if inspect.isfunction(init):
            names |= {n for n, p in inspect.signature(init).parameters.items() if p.kind not in (2, 4)}
    return sorted(names - {"self"})


families = ("layers", "initializers", "regularizers", "constraints")
classes = {
    f"keras.{family}.{name}": arguments(cls)
    for family in families
    for name, cls in vars(getattr(keras, family)).items()
    if inspect.isclass(cls)
}
layouts = {}
with tempfile.TemporaryDirectory() as folder:
    for name in rows.CASES:
        rows.filled(name)[0].save(f"{folder}/a.keras", keras_format=True)
        opened(f"{folder}/a.keras").save(f"{folder}/b.keras")
        layouts[name] = rows.layout(f"{folder}/b.keras")
record = {"keras": keras.__version__, "classes": classes, "layouts": layouts}
Path(__file__).with_name("saved_layouts.json").write_text(json.dumps(record, separators=(",", ":")) + "\n")
