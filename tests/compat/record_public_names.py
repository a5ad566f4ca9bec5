"""Record the public names of TensorFlow and Keras with the parameters of functions and classes.

With a Python that has TensorFlow: `python tests/compat/record_public_names.py` writes public_names/tensorflow.txt and
keras.txt: a line a name, then its parameters; names of modules end with a slash. Left out: `tf.keras`, which is Keras,
`tf.compat.v1` and `tf.compat.v2`, `tf.raw_ops` but for its own name.
"""

import inspect
import pathlib
import types

FOLDER = pathlib.Path(__file__).parent / "public_names"
LEFT_OUT = {"tf.keras", "tf.compat.v1", "tf.compat.v2", "tf.raw_ops", "keras.src", "keras.api"}


def is_public(module):
    return module.__name__.startswith(("keras", "tensorflow.experimental")) or "_api" in module.__name__


def parameters(thing):
    try:
        kinds = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return []
    return [("**" if p.kind is p.VAR_KEYWORD else "*" if p.kind is p.VAR_POSITIONAL else "") + p.name for p in kinds]


def lines(module, prefix, seen):
    if id(module) in seen:
        return
    seen.add(id(module))
    for name in sorted(set(dir(module))):
        full = f"{prefix}.{name}"
        value = getattr(module, name, None)
        if name.startswith("_") or value is None:
            continue
        if isinstance(value, types.ModuleType):
            if is_public(value):
                yield f"{full}/"
                if full not in LEFT_OUT:
                    yield from lines(value, full, seen)
        else:
            yield " ".join([full, *(parameters(value) if callable(value) else [])])


if __name__ == "__main__":
    import keras
    import tensorflow as tf

    for module, prefix, title in ((tf, "tf", "tensorflow"), (keras, "keras", "keras")):
        text = "\n".join([f"# {title} {module.__version__}", *lines(module, prefix, set())])
        (FOLDER / f"{title}.txt").write_text(text + "\n")
