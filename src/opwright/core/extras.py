"""Optional Python packages, and the extra of this package that installs each.

Lives here: `EXTRAS`, `optional_module`.  Not here: their use.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from .errors import FailedPreconditionError

EXTRAS = {
    "PIL": "image",
    "dask": "dask",
    "distributed": "dask",
    "h5py": "keras",
    "jax": "jax",
    "loky": "loky",
    "matplotlib": "plot",
    "mpi4py": "mpi",
    "onnx": "onnx",
    "pyarrow": "arrow",
    "ray": "ray",
    "torch": "torch",
    "zarr": "zarr",
}
"""The extra of each module, as in `pip install 'opwright[dask]'`."""


def optional_module(name: str) -> ModuleType:
    """Import a module of an extra. Raises FailedPreconditionError that names the extra if it is not installed."""
    package = name.partition(".")[0]
    try:
        importlib.import_module(package)
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise FailedPreconditionError(
            what=f"the Python package {package!r} is not installed",
            found=str(error),
            do=f"pip install 'opwright[{EXTRAS[package]}]'",
        ) from error
