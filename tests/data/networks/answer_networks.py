"""Asks the official interpreter about every file of the corpus of networks: official.npz, paths.json.

    python tests/data/networks/answer_networks.py         where ai-edge-litert is installed; see make_networks.py

Answers are those of the reference kernels (BUILTIN_REF), or of the optimised ones where these lack an operator or are
known to be wrong; paths.json names such files. Keys are as in tests/data/tflite/make_official.py; signatures are called
in turn, twice, on one interpreter, sizes left open being 2 and then 3.

Lives here: inputs, answers.  Not here: the files.
"""

import json
import os
import pathlib
import zlib

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

HERE = pathlib.Path(__file__).parent
PATHS = {"reference": OpResolverType.BUILTIN_REF, "optimised": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES}
WRONG = {  # files of which the reference kernels give wrong answers
    "merges_int8": "SUM of int8 is wrong",
    "torch_language_blocks4": "FULLY_CONNECTED of int4 in blocks gives zeros",
}
WORDS = np.array([b"a", b"bc", b"", b"def"])


def draw(rng, shape, dtype):
    """Values of a dtype: all of a narrow integer's, wider ones below 20; floats in steps of 1/8 (they take no room)."""
    kind = np.dtype(dtype)
    if kind.kind in "iu" and kind.itemsize <= 2:
        return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
    if kind.kind in "iu":
        return rng.integers(0, 20, shape).astype(kind)
    return rng.choice(WORDS, shape) if kind.kind == "S" else (np.rint(rng.standard_normal(shape) * 8) / 8).astype(kind)


def answers(path, kernels):
    """Inputs and outputs of a file's calls, by key."""
    interpreter = Interpreter(str(path), num_threads=1, experimental_op_resolver_type=kernels)
    rng, kept, number = np.random.default_rng(zlib.crc32(path.stem.encode())), {}, 0
    for open_size in (2, 3):
        for signature in interpreter.get_signature_list():
            runner = interpreter.get_signature_runner(signature)
            inputs = {
                name: draw(rng, [open_size if d < 0 else d for d in detail["shape_signature"]], detail["dtype"])
                for name, detail in sorted(runner.get_input_details().items())
            }
            for side, values in (("in", inputs), ("out", runner(**inputs))):
                for name, value in values.items():
                    value = np.asarray(value)
                    value = value.astype("S") if value.dtype == object else value
                    kept[f"{path.stem}|{number}|{signature}|{side}|{name}"] = value
            number += 1
    return kept


def lasting(path, name):
    """`answers` from a process of its own, which the kernels may crash; None where they do, or lack an operator."""
    created = HERE / f"{path.stem}.npz"
    child = os.fork()
    if child == 0:
        try:
            np.savez(created, **answers(path, PATHS[name]))
        except Exception as error:
            print(f"{path.stem} {name}: {str(error)[:160]!r}", flush=True)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    result = dict(np.load(created)) if status == 0 else None
    created.unlink(missing_ok=True)
    return result


def main():
    """Ask about every file."""
    kept, optimised = {}, {}
    for path in sorted(HERE.glob("*.tflite")):
        result = None if path.stem in WRONG else lasting(path, "reference")
        if result is None:
            optimised[path.stem] = WRONG.get(path.stem, "the reference kernels lack an operator, or crash")
            result = lasting(path, "optimised")
        kept |= result or {}
    np.savez_compressed(HERE / "official.npz", **dict(sorted(kept.items())))
    (HERE / "paths.json").write_text(json.dumps(optimised, indent=1) + "\n", "utf-8")
    print(f"{len({key.split('|')[0] for key in kept})} files, {(HERE / 'official.npz').stat().st_size} bytes")


if __name__ == "__main__":
    main()
