"""`Checkpoint` and `CheckpointManager`: variables of an object graph in files, restored into objects of that structure.

Lives here: the classes, rotation; the folder's state file, `latest_checkpoint`, `checkpoints_iterator`.
Not here: a checkpoint's own files, the assignment of their values to objects (checkpoint_files.py).

The state file is `checkpoint` in the folder: JSON with "model_checkpoint_path", "all_model_checkpoint_paths" (relative
to the folder if inside it), "all_model_checkpoint_timestamps" and "last_preserved_timestamp".
"""

from __future__ import annotations

import collections
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..core import replicas
from ..core.errors import DataLossError, NotFoundError
from ..eager.variable import Variable
from ..tracing.trace import init_scope
from . import checkpoint_files, json_files
from .object_graph import FUNCTIONS, children, is_tracked

STATE = "checkpoint"


class CheckpointState(NamedTuple):
    """The contents of a folder's state file. Paths are absolute or relative to the working directory."""

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]
    all_model_checkpoint_timestamps: list[float]
    last_preserved_timestamp: float


def write_state(
    folder: str,
    latest: str,
    paths: Sequence[str],
    timestamps: Sequence[float] | None = None,
    last_preserved: float | None = None,
    name: str | None = None,
) -> None:
    """Write a folder's state file."""

    def relative(path: str) -> str:
        inside = os.path.relpath(os.path.abspath(path), os.path.abspath(folder or "."))
        return os.path.abspath(path) if inside.startswith(os.pardir) else inside

    content = {
        "model_checkpoint_path": relative(latest),
        "all_model_checkpoint_paths": [relative(p) for p in paths],
        "all_model_checkpoint_timestamps": list(timestamps) if timestamps is not None else [time.time()] * len(paths),
        "last_preserved_timestamp": time.time() if last_preserved is None else last_preserved,
    }
    json_files.write_json(os.path.join(folder, name or STATE), content)


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> CheckpointState | None:
    """Return the contents of the folder's state file, or None if it is missing or unreadable."""
    folder = os.fspath(checkpoint_dir)
    path = os.path.join(folder, latest_filename or STATE)
    read = json_files.JsonReader(path)
    try:
        content = json_files.read_json(path, "the state of a folder of checkpoints")

        def full_path(name: Any) -> str:
            result: str = os.path.join(folder, read.of(name, str, "a path"))
            return result

        paths = read.each(content, "all_model_checkpoint_paths", full_path)
        latest = full_path(read.get(content, "model_checkpoint_path", str))
        times = [float(t) for t in content.get("all_model_checkpoint_timestamps", [])]
        return CheckpointState(latest, paths, times, float(content.get("last_preserved_timestamp", 0.0)))
    except NotFoundError:
        return None
    except (DataLossError, TypeError, ValueError, OverflowError) as error:
        logging.getLogger("opwright").warning("%s: %s; checkpoints ignored", path, error)
        return None


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """Return the name of the latest checkpoint in a folder, or None if there is none."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not state.model_checkpoint_path:
        return None
    return state.model_checkpoint_path if checkpoint_files.exists(state.model_checkpoint_path) else None


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """Yield the names of checkpoints as they appear in a folder, waiting for each next one.

    timeout: seconds to wait, unlimited by default; after it, timeout_fn decides whether to stop, or the iterator ends.
    """
    seen = None
    while True:
        path = _wait_for_new(checkpoint_dir, seen, timeout)
        if path is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        start = time.time()
        seen = path
        yield path
        remaining = start + min_interval_secs - time.time()
        if remaining > 0:
            time.sleep(remaining)


def _wait_for_new(folder: Any, seen: str | None, timeout: float | None) -> str | None:
    deadline = None if timeout is None else time.time() + timeout
    pause = 1.0 if timeout is None else min(1.0, max(timeout / 10, 0.01))
    while True:
        path = latest_checkpoint(folder)
        if path is not None and path != seen:
            return path
        if deadline is not None and time.time() + pause > deadline:
            return None
        time.sleep(pause)


class CheckpointManager:
    """Save checkpoints of one Checkpoint in a folder and delete old ones.

    max_to_keep: how many to keep; None: all. keep_checkpoint_every_n_hours: additionally keep one per interval of this
    length forever. checkpoint_name: the prefix of their names. step_counter, checkpoint_interval: save only if the
    counter has increased by the interval. init_fn: called by `restore_or_initialize` if there is nothing to restore.
    Checkpoints of an earlier manager in the folder are included. raises ValueError for a max_to_keep below 1, or an
    interval without a counter
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Variable | None = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint, self._directory = checkpoint, os.fspath(directory)
        self._max_to_keep, self._keep_every = max_to_keep, keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter, self._interval, self._init_fn = step_counter, checkpoint_interval, init_fn
        self._last_step = last_checkpoint_step
        self._managed: collections.OrderedDict[str, float] = collections.OrderedDict()
        state = get_checkpoint_state(self._directory)
        now = time.time()
        self._last_preserved = now
        if state is not None:
            self._last_preserved = state.last_preserved_timestamp or now
            times = state.all_model_checkpoint_timestamps
            if len(times) != len(state.all_model_checkpoint_paths):
                times = [now] * len(state.all_model_checkpoint_paths)
            self._managed.update(
                {p: t for p, t in zip(state.all_model_checkpoint_paths, times) if checkpoint_files.exists(p)}
            )

    @property
    def directory(self) -> str:
        """The folder."""
        result: str = self._directory
        return result

    @property
    def checkpoint(self) -> Checkpoint:
        """The Checkpoint."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The increase of the step counter between two checkpoints."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The names of the managed checkpoints, oldest first, without those kept forever."""
        return list(self._managed)

    @property
    def latest_checkpoint(self) -> str | None:
        """The name of the newest one, or None."""
        return next(reversed(self._managed), None)

    def save(self, checkpoint_number: Any = None, check_interval: bool = True, options: Any = None) -> str | None:
        """Write a checkpoint named by `checkpoint_number` (by default the Checkpoint's save_counter); delete old ones.

        Returns its name, or None if the step counter has not increased enough.
        """
        if self._interval is not None and check_interval and not self._is_due():
            return None
        if self._step_counter is not None:
            self._last_step = int(self._step_counter.numpy())
        counter = self._checkpoint.save_counter
        counter.assign_add(1)
        number = int(counter.numpy()) if checkpoint_number is None else _checkpoint_number(checkpoint_number)
        path = self._checkpoint.write(f"{self._prefix}-{number}")
        self._managed.pop(path, None)
        self._managed[path] = time.time()
        expired = self._rotate()

        def record() -> None:
            self._write_state(path)  # before they are deleted
            for old in expired:
                checkpoint_files.remove(old)

        replicas.written(record)
        result: str | None = path
        return result

    def _is_due(self) -> bool:
        if self._last_step is None or self._step_counter is None:
            return True
        return int(self._step_counter.numpy()) >= self._last_step + (self._interval or 0)

    def _write_state(self, latest: str) -> None:
        write_state(self._directory, latest, list(self._managed), list(self._managed.values()), self._last_preserved)

    def _rotate(self) -> list[str]:
        expired = []
        while self._max_to_keep is not None and len(self._managed) > self._max_to_keep:
            path, created = self._managed.popitem(last=False)
            if self._keep_every and created - self._keep_every * 3600 >= self._last_preserved:
                self._last_preserved = created
                continue
            expired.append(path)
        return expired

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint and return its name; without one, call init_fn and return None."""
        latest = self.latest_checkpoint
        if latest is not None:
            self._checkpoint.restore(latest)
            if self._step_counter is not None:
                self._last_step = int(self._step_counter.numpy())
            return latest
        if self._init_fn is not None:
            self._init_fn()
        return None


def _checkpoint_number(value: Any) -> str | int:
    """Return the number in a checkpoint's name."""
    if isinstance(value, str):
        if not re.fullmatch(r"[\w.-]+", value):
            raise ValueError(f"a checkpoint's number cannot be {value!r}")
        return value
    return int(value.numpy() if hasattr(value, "numpy") else value)


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
            replicas.written(lambda: checkpoint_files.write(prefix, self))
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
            replicas.written(lambda: write_state(os.path.dirname(prefix), prefix, [prefix]))
        return prefix

    # ---- reading ----------------------------------------------------------------------------------------------------

    def read(self, save_path: Any, options: Any = None) -> checkpoint_files.CheckpointLoadStatus:
        """Read a checkpoint written by `write`. Returns a status; see `restore`."""
        with init_scope():
            return checkpoint_files.restore(open_reader(os.fspath(save_path)), self)

    def restore(self, save_path: Any, options: Any = None) -> checkpoint_files.CheckpointLoadStatus:
        """Assign the checkpoint's values to the variables of the objects, including variables created later.

        save_path: a result of `save`, the folder of a saved model, or None, which restores nothing. Returns a status
        with assert_consumed(), assert_existing_objects_matched(), assert_nontrivial_match() and expect_partial().
        raises NotFoundError if there is no such checkpoint, DataLossError if it is damaged, ValueError if a variable
        has another shape
        """
        if save_path is None:
            return checkpoint_files.InitializationOnlyStatus()
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
