"""Record Keras's results of the calls in keras_ops_calls.py: `KERAS_BACKEND=jax python tests/nn/record_keras_ops.py`.

Runs where Keras 3 is, without this package.
"""

from __future__ import annotations

import json
import pathlib
import warnings

import numpy as np
from keras import ops
from keras_ops_calls import CALLS, arrays

PATH = pathlib.Path(__file__).parents[1] / "data" / "keras_ops.npz"


def leaves(result):
    """Return the arrays of a result, and what it is made of."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]


def main() -> None:
    """Write results as bytes with an index by calls: dtype, shape, place; and the calls that Keras refuses."""
    scope = {name: getattr(ops, name) for name in dir(ops)} | {k: ops.convert_to_tensor(v) for k, v in arrays().items()}
    index, data, refused = {}, bytearray(), {}
    for call in CALLS:
        try:
            arrays_of_call = leaves(eval(call, dict(scope)))
        except Exception as error:
            refused[call] = f"{type(error).__name__}: {error}"[:200]
            continue
        index[call] = [[a.dtype.name, a.shape, len(data := data + a.tobytes()) - a.nbytes] for a in arrays_of_call]
    words = json.dumps({"results": index, "refused": refused})
    np.savez_compressed(PATH, index=np.array(words), data=np.frombuffer(bytes(data), np.uint8))
    print(len(CALLS), "calls,", len(refused), "refused")
    for call, why in refused.items():
        print(call, "|", why[:120])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
