"""`ow.train`: checkpoints, and the messages of records.

Lives here: the public names.
Not here: what they do (checkpoint.py, checkpoint_files.py, io/messages.py).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..compat.cluster import ClusterSpec, Coordinator
from ..io.messages import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from ..optimizers.moving_average import ExponentialMovingAverage
from .checkpoint import (
    Checkpoint,
    CheckpointManager,
    CheckpointState,
    checkpoints_iterator,
    get_checkpoint_state,
    latest_checkpoint,
    open_reader,
)
from .checkpoint_files import CheckpointReader

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "BytesList",
    "Checkpoint",
    "CheckpointManager",
    "CheckpointReader",
    "CheckpointState",
    "ClusterSpec",
    "Coordinator",
    "Example",
    "ExponentialMovingAverage",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
    "checkpoints_iterator",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """Return a reader of a checkpoint by its name, of the latest one in a folder, or of a saved model's variables.

    raises ValueError for a folder without checkpoints, NotFoundError if there is none of that name
    """
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path) and not os.path.isfile(os.path.join(path, "saved_model.json")):
        latest = latest_checkpoint(path)
        if latest is None:
            raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}")
        path = latest
    return open_reader(path)


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Return the names and shapes of a checkpoint's values, sorted by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: Any, name: str) -> np.ndarray:
    """Return one value of a checkpoint as an array. Raises NotFoundError if there is none of that name."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))
