"""Checkpoint: the variables below some objects, written to files and read back into objects of the same form.

Lives here: the class.  Not here: files (index.py), matching (restoring.py), keeping several (manager.py).
"""

from __future__ import annotations

import os
from typing import Any

from ..core.errors import NotFoundError
from ..eager.variable import Variable
from ..tracing.trace import init_scope
from . import index, manager, restoring
from .objects import FUNCTIONS, children, is_tracked


class Checkpoint:
    """Saves and restores the variables of objects, found by attribute.

    root: an object whose attributes are saved as the checkpoint's own. kwargs: more objects by name: variables,
    modules, layers, optimizers (with their slots), lists and dicts of such. They become attributes, and more may be
    set later. Values are matched by the path of attributes; names of variables do not count.

    >>> checkpoint = ow.train.Checkpoint(step=ow.Variable(1), model=model)
    >>> path = checkpoint.save("/tmp/training/ckpt")
    >>> checkpoint.restore(path).assert_consumed()

    raises ValueError for what has no variables to save
    """

    _is_trackable = True
    save_counter: Any

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._root = root
        if root is not None and not is_tracked(root):
            raise _untrackable("root", root)
        below = children(root) if root is not None else {}
        for key, value in kwargs.items():
            if not is_tracked(value, FUNCTIONS) and not (isinstance(value, (list, tuple, dict)) and not value):
                raise _untrackable(key, value)
            if key in below and below[key] is not value:
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {key} if root.{key} already exists."
                )
            setattr(self, key, value)

    def _trackable_children(self) -> dict[str, Any]:
        found = children(self._root) if self._root is not None else {}
        own = {k: v for k, v in vars(self).items() if k != "_root" and is_tracked(v)}
        return {**found, **own}

    def _counter(self) -> Variable:
        if "save_counter" not in vars(self):
            with init_scope():
                self.save_counter = Variable(0, trainable=False, dtype="int64", name="save_counter")
        return self.save_counter

    def __getattr__(self, name: str) -> Any:
        if name == "save_counter":
            return self._counter()
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")

    # ---- writing ----------------------------------------------------------------------------------------------------

    def write(self, file_prefix: Any, options: Any = None) -> str:
        """Write a checkpoint of exactly that name, which is given back. Nothing is counted, no state file written."""
        prefix = os.fspath(file_prefix)
        with init_scope():
            index.write(prefix, self)
        return prefix

    def save(self, file_prefix: Any, options: Any = None) -> str:
        """Write a checkpoint named `file_prefix`-N, where N counts the calls, and note it as the folder's latest.

        Gives its name. The counter, `save_counter`, is saved too.
        """
        with init_scope():
            counter = self._counter()
            counter.assign_add(1)
            prefix = self.write(f"{os.fspath(file_prefix)}-{int(counter.numpy())}")
            manager.write_state(os.path.dirname(prefix), prefix, [prefix])
        return prefix

    # ---- reading ----------------------------------------------------------------------------------------------------

    def read(self, save_path: Any, options: Any = None) -> restoring.CheckpointLoadStatus:
        """Read what `write` wrote. Gives a status; see `restore`."""
        with init_scope():
            return restoring.restore(open_reader(os.fspath(save_path)), self)

    def restore(self, save_path: Any, options: Any = None) -> restoring.CheckpointLoadStatus:
        """Give the checkpoint's values to the variables of the objects, and later to those that are made later.

        save_path: what `save` gave, the folder of a saved model, or None, which restores nothing. Gives a status with
        assert_consumed(), assert_existing_objects_matched(), assert_nontrivial_match() and expect_partial().
        raises NotFoundError where there is no such checkpoint, DataLossError where it is damaged, ValueError where a
        variable has another shape
        """
        if save_path is None:
            return restoring.InitializationOnlyStatus()
        try:
            status = self.read(save_path)
        except NotFoundError as error:
            raise NotFoundError(
                what=f"Error when restoring from checkpoint or SavedModel at {os.fspath(save_path)}: {error.message}\n"
                "Please double-check that the path is correct. You may be missing the checkpoint suffix (e.g. the '-1' "
                "in 'path/to/ckpt-1')."
            ) from None
        self._counter()  # made now, it gets its value as a later variable would
        with init_scope():
            self.save_counter.read_array()
        return status


def open_reader(path: str) -> index.CheckpointReader:
    """The reader of a checkpoint, or of a saved model's variables."""
    if os.path.isdir(path):
        from .manifest import SavedModelReader

        return SavedModelReader(path)
    return index.CheckpointReader(path)


def _untrackable(name: str, value: Any) -> ValueError:
    kind = type(value).__name__
    if isinstance(value, FUNCTIONS):
        kind = "function without variables of its own"
    return ValueError(
        f"`Checkpoint` was expecting {name} to be a trackable object (an object derived from `Trackable`), got "
        f"{value!r} ({kind}). Variables, modules, layers, optimizers, and lists and dicts of them are"
    )
