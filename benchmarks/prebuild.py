"""Kernels that a release ships: `python -m benchmarks.prebuild [--missing | model.tflite ...]`.

Lives here: the command: models are planned for the target of NAMED that serves this processor, with nothing in the
cache, and what is compiled, with its variants for other widths and image sizes (kernel_variants.py), is written to the
target's file (src/opwright/compiler/native/TARGET.kernels).
Not here: the format of that file, and who reads it (opwright/compiler/native/prebuilt.py), the networks' files
(models.py).

By default the models are the networks of the bench by each converter whose file is there. A machine makes the file of
its own target; a wheel takes all files that are there when it is built. `--missing`, for builds from sources
(hatch_build.py), makes a file of the mobile networks, in a minute, unless there is a valid one.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time

from benchmarks import measure, models

os.environ.update(measure.QUIET)

from benchmarks import kernel_variants
from opwright.compiler.native import prebuilt, store
from opwright.compiler.target import NAMED, processor
from opwright.core import flags
from opwright.lite import Interpreter


def target() -> str:
    """The name of the target that serves this processor. Raises LookupError if none does."""
    return next(name for name, one in NAMED.items() if one.serves(processor()))


def networks() -> list[str]:
    """The files of the bench's networks."""
    paths = {
        models.path_of(network, kind, converter)
        for network in models.NETWORKS
        for kind in models.KINDS
        for converter in ("", "ours")
    }
    return sorted(paths)


def mobile_networks(folder: str) -> list[str]:
    """Make files of the mobile networks in a folder by our converter; return their paths."""
    os.environ["OPWRIGHT_BENCH_MODELS"] = folder
    return [
        models.path_of(network, kind, "ours")
        for network in models.NETWORKS
        if network not in models.LARGE
        for kind in models.KINDS
    ]


def prebuild(paths: list[str]) -> str:
    """Compile the kernels of models that this process has not loaded yet; return the path of their file."""
    name = target()
    with tempfile.TemporaryDirectory() as empty:
        changed = {"cache_dir": empty, "target": name, "prebuilt": False, "background": False}
        with flags.override(**changed), store.recording() as kernels:
            for path in paths:
                interpreter = Interpreter(path, num_threads=1)
                interpreter.allocate_tensors()
                interpreter.invoke()
            kernel_variants.compile_variants()
    return prebuilt.write(name, kernels)


def prebuild_missing() -> str | None:
    """Compile the kernels of mobile networks; return the path of their file, None if this package has valid ones."""
    if prebuilt.is_available(processor()):
        return None
    with tempfile.TemporaryDirectory() as folder:
        return prebuild(mobile_networks(folder))


if __name__ == "__main__":
    start = time.perf_counter()
    path = prebuild_missing() if sys.argv[1:] == ["--missing"] else prebuild(sys.argv[1:] or networks())
    if path is not None:
        print(f"{path}: {os.path.getsize(path):,} bytes, {time.perf_counter() - start:.0f} s")
