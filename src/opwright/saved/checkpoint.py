"""`Checkpoint`: the variables of an object graph, written to files and restored into objects of the same structure.

Lives here: the class.  Not here: files (checkpoint_files.py), matching (restoration.py), rotation
(checkpoint_manager.py).
"""

from __future__ import annotations

import os
from typing import Any

from ..core.errors import NotFoundError
from ..eager.variable import Variable
from ..tracing.trace import init_scope
from . import checkpoint_files, checkpoint_manager, restoration
from .object_graph import FUNCTIONS, children, is_tracked


class Checkpoint:
    """Save and restore the variables of objects, addressed by attribute.

    root: an object whose attributes are saved as the checkpoint's own. kwargs: further objects by name: variables,
    modules, layers, optimizers (with their slots), lists and dicts of such. They become attributes; more can be set
    later. Values are matched by attribute path; names of variables are ignored.

    >>> checkpoint = ow.train.Checkpoint(step=ow.Variable(1), model=model)
    >>> path = checkpoint.save("/tmp/training/ckpt")
    >>> checkpoint.restore(path).assert_consumed()

    raises ValueError for an object without variables
    """

    _is_trackable = True
    save_counter: Any

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._root = root
        if root is not None and not is_tracked(root):
            raise _untrackable("root", root)
        existing = children(root) if root is not None else {}
        for key, value in kwargs.items():
            if not is_tracked(value, FUNCTIONS) and not (isinstance(value, (list, tuple, dict)) and not value):
                raise _untrackable(key, value)
            if key in existing and existing[key] is not value:
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {key} if root.{key} already exists."
                )
            setattr(self, key, value)

    def _trackable_children(self) -> dict[str, Any]:
        of_root = children(self._root) if self._root is not None else {}
        own = {k: v for k, v in vars(self).items() if k != "_root" and is_tracked(v)}
        return {**of_root, **own}

    def _counter(self) -> Variable:
        if "save_counter" not in vars(self):
            with init_scope():
                self.save_counter = Variable(0, trainable=False, dtype="int64", name="save_counter")
        result: Variable = self.save_counter
        return result

    def __getattr__(self, name: str) -> Variable:
        if name == "save_counter":
            return self._counter()
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")

    # ---- writing ----------------------------------------------------------------------------------------------------

    def write(self, file_prefix: Any, options: Any = None) -> str:
        """Write a checkpoint of exactly this name and return the name; no counter, no state file."""
        prefix = os.fspath(file_prefix)
        with init_scope():
            checkpoint_files.write(prefix, self)
        result: str = prefix
        return result

    def save(self, file_prefix: Any, options: Any = None) -> str:
        """Write a checkpoint named `file_prefix`-N, where N counts the calls, and record it as the folder's latest.

        Returns its name. The counter, `save_counter`, is saved too.
        """
        with init_scope():
            counter = self._counter()
            counter.assign_add(1)
            prefix = self.write(f"{os.fspath(file_prefix)}-{int(counter.numpy())}")
            checkpoint_manager.write_state(os.path.dirname(prefix), prefix, [prefix])
        return prefix

    # ---- reading ----------------------------------------------------------------------------------------------------

    def read(self, save_path: Any, options: Any = None) -> restoration.CheckpointLoadStatus:
        """Read a checkpoint written by `write`. Returns a status; see `restore`."""
        with init_scope():
            return restoration.restore(open_reader(os.fspath(save_path)), self)

    def restore(self, save_path: Any, options: Any = None) -> restoration.CheckpointLoadStatus:
        """Assign the checkpoint's values to the variables of the objects, including variables created later.

        save_path: a result of `save`, the folder of a saved model, or None, which restores nothing. Returns a status
        with assert_consumed(), assert_existing_objects_matched(), assert_nontrivial_match() and expect_partial().
        raises NotFoundError if there is no such checkpoint, DataLossError if it is damaged, ValueError if a variable
        has another shape
        """
        if save_path is None:
            return restoration.InitializationOnlyStatus()
        try:
            status = self.read(save_path)
        except NotFoundError as error:
            raise NotFoundError(
                what=f"Error when restoring from checkpoint or SavedModel at {os.fspath(save_path)}: {error.message}\n"
                "Please double-check that the path is correct. You may be missing the checkpoint suffix (e.g. the '-1' "
                "in 'path/to/ckpt-1')."
            ) from None
        self._counter()  # created now, it is restored like any later variable
        with init_scope():
            self.save_counter.read_array()
        return status


def open_reader(path: str) -> checkpoint_files.CheckpointReader:
    """Return the reader of a checkpoint, or of a saved model's variables."""
    if os.path.isdir(path):
        from .manifest import SavedModelReader

        return SavedModelReader(path)
    return checkpoint_files.CheckpointReader(path)


def _untrackable(name: str, value: Any) -> ValueError:
    kind = type(value).__name__
    if isinstance(value, FUNCTIONS):
        kind = "function without variables of its own"
    return ValueError(
        f"`Checkpoint` was expecting {name} to be a trackable object (an object derived from `Trackable`), got "
        f"{value!r} ({kind}). Variables, modules, layers, optimizers, and lists and dicts of them are"
    )
