"""CheckpointManager: several checkpoints in one folder, the old ones deleted; and which one is the latest.

Lives here: the class, the folder's state file, `latest_checkpoint`, `checkpoints_iterator`.
Not here: a checkpoint's own files (index.py).

The state file is `checkpoint` in the folder: JSON with "model_checkpoint_path", "all_model_checkpoint_paths" (relative
to the folder where they lie in it), "all_model_checkpoint_timestamps" and "last_preserved_timestamp".
"""

from __future__ import annotations

import collections
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..core.errors import DataLossError, NotFoundError
from ..eager.variable import Variable
from . import files, index

STATE = "checkpoint"


class CheckpointState(NamedTuple):
    """What a folder's state file says. Paths are whole."""

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
    files.write_json(os.path.join(folder, name or STATE), content)


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> CheckpointState | None:
    """What the folder's state file says, or None where there is none or it cannot be read."""
    folder = os.fspath(checkpoint_dir)
    path = os.path.join(folder, latest_filename or STATE)
    read = files.Reader(path)
    try:
        content = files.read_json(path, "the state of a folder of checkpoints")

        def whole(name: Any) -> str:
            return os.path.join(folder, read.of(name, str, "a path"))

        paths = read.each(content, "all_model_checkpoint_paths", whole)
        latest = whole(read.get(content, "model_checkpoint_path", str))
        times = [float(t) for t in content.get("all_model_checkpoint_timestamps", [])]
        return CheckpointState(latest, paths, times, float(content.get("last_preserved_timestamp", 0.0)))
    except NotFoundError:
        return None
    except (DataLossError, TypeError, ValueError, OverflowError) as error:
        import logging

        logging.getLogger("opwright").warning("%s: %s; checkpoints ignored", path, error)
        return None


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The name of the latest checkpoint in a folder, or None where there is none."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not state.model_checkpoint_path:
        return None
    return state.model_checkpoint_path if index.exists(state.model_checkpoint_path) else None


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """Names of checkpoints as they appear in a folder; it waits for each next one.

    timeout: seconds to wait, without end by default; then timeout_fn is asked whether to stop, or the iterator ends.
    """
    seen = None
    while True:
        found = _wait_for_new(checkpoint_dir, seen, timeout)
        if found is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        start = time.time()
        seen = found
        yield found
        rest = start + min_interval_secs - time.time()
        if rest > 0:
            time.sleep(rest)


def _wait_for_new(folder: Any, seen: str | None, timeout: float | None) -> str | None:
    stop = None if timeout is None else time.time() + timeout
    pause = 1.0 if timeout is None else min(1.0, max(timeout / 10, 0.01))
    while True:
        found = latest_checkpoint(folder)
        if found is not None and found != seen:
            return found
        if stop is not None and time.time() + pause > stop:
            return None
        time.sleep(pause)


class CheckpointManager:
    """Saves checkpoints of one Checkpoint into one folder and deletes old ones.

    max_to_keep: how many stay; None: all. keep_checkpoint_every_n_hours: besides, one every so many hours is never
    deleted. checkpoint_name: what their names begin with. step_counter, checkpoint_interval: save only when the counter
    has risen by so much. init_fn: called by `restore_or_initialize` where there is nothing to restore.
    What an earlier manager left in the folder counts.
    raises ValueError for a max_to_keep below 1, or an interval without a counter
    """

    def __init__(
        self,
        checkpoint: Any,
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
        self._kept: collections.OrderedDict[str, float] = collections.OrderedDict()
        state = get_checkpoint_state(self._directory)
        now = time.time()
        self._last_preserved = now
        if state is not None:
            self._last_preserved = state.last_preserved_timestamp or now
            times = state.all_model_checkpoint_timestamps
            if len(times) != len(state.all_model_checkpoint_paths):
                times = [now] * len(state.all_model_checkpoint_paths)
            self._kept.update({p: t for p, t in zip(state.all_model_checkpoint_paths, times) if index.exists(p)})

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Any:
        """The Checkpoint."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """How much the step counter must rise between two checkpoints."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """Names of the checkpoints that are managed, oldest first; those kept for good are not among them."""
        return list(self._kept)

    @property
    def latest_checkpoint(self) -> str | None:
        """The newest one's name, or None."""
        return next(reversed(self._kept), None)

    def save(self, checkpoint_number: Any = None, check_interval: bool = True, options: Any = None) -> str | None:
        """Write a checkpoint named by `checkpoint_number` (by default the Checkpoint's save_counter); delete old ones.

        Gives its name, or None where the step counter has not risen enough.
        """
        if self._interval is not None and check_interval and not self._is_due():
            return None
        if self._step_counter is not None:
            self._last_step = int(self._step_counter.numpy())
        counter = self._checkpoint.save_counter
        counter.assign_add(1)
        number = int(counter.numpy()) if checkpoint_number is None else _number(checkpoint_number)
        path = self._checkpoint.write(f"{self._prefix}-{number}")
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        gone = self._sweep()
        self._write_state(path)  # says that they are gone before they are
        for old in gone:
            index.remove(old)
        return path

    def _is_due(self) -> bool:
        if self._last_step is None or self._step_counter is None:
            return True
        return int(self._step_counter.numpy()) >= self._last_step + (self._interval or 0)

    def _write_state(self, latest: str) -> None:
        write_state(self._directory, latest, list(self._kept), list(self._kept.values()), self._last_preserved)

    def _sweep(self) -> list[str]:
        gone = []
        while self._max_to_keep is not None and len(self._kept) > self._max_to_keep:
            path, made = self._kept.popitem(last=False)
            if self._keep_every and made - self._keep_every * 3600 >= self._last_preserved:
                self._last_preserved = made
                continue
            gone.append(path)
        return gone

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint and give its name; without any, call init_fn and give None."""
        latest = self.latest_checkpoint
        if latest is not None:
            self._checkpoint.restore(latest)
            if self._step_counter is not None:
                self._last_step = int(self._step_counter.numpy())
            return latest
        if self._init_fn is not None:
            self._init_fn()
        return None


def _number(value: Any) -> Any:
    """A number for a checkpoint's name."""
    if isinstance(value, str):
        if not re.fullmatch(r"[\w.-]+", value):
            raise ValueError(f"a checkpoint's number cannot be {value!r}")
        return value
    return int(value.numpy() if hasattr(value, "numpy") else value)
