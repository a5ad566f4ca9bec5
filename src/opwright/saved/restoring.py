"""Giving a checkpoint's values to objects: those that are there, and later those that are still to be made.

Lives here: `Restoration` and the status objects that `Checkpoint.restore` gives.  Not here: files (index.py).

Objects are matched from the root down: a child of a matched object matches the checkpoint's child of the same name.
A value goes to the first variable that it matches, once. What is left waits (eager/waiting.py) as long as any of the
objects restored into lives.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from ..core.errors import InvalidArgumentError
from ..eager import waiting
from ..eager.variable import Variable
from .index import CheckpointReader
from .objects import children

_log = logging.getLogger("opwright")


class Restoration:
    """One call of `restore`, until all values are given out."""

    def __init__(self, reader: CheckpointReader, root: Any) -> None:
        self.expect_partial = False
        self.reader = reader
        self.values = {i for i, node in enumerate(reader.nodes) if node["value"] is not None}
        self.given: dict[int, Any] = {}  # by number of the node: the object it went to, weakly where that is possible
        self._root = _reference(root)
        self._tops = {key: _reference(child) for key, child in children(root).items()}

    def _top_objects(self) -> dict[str, Any]:
        root = self._root()
        if root is not None:
            return children(root)
        return {key: child for key, ref in self._tops.items() if (child := ref()) is not None}

    def hand_out(self) -> bool:
        """Match what is there now and give out values. False when none is left, or nobody can come to get them."""
        tops = self._top_objects()
        root = self._root()
        if root is None and not tops:
            return False
        if root is not None:
            self._match(0, root)
        todo: list[tuple[int, Any]] = []
        self._descend(0, tops, todo)
        seen = {0}
        for number, value in todo:
            if number in seen:
                continue
            seen.add(number)
            if self._match(number, value):
                self._descend(number, children(value), todo)
        return bool(self.values - self.given.keys())

    def _descend(self, number: int, found: dict[str, Any], todo: list[tuple[int, Any]]) -> None:
        names = self.reader.nodes[number]["children"]
        todo.extend((names[key], child) for key, child in found.items() if key in names)

    def _match(self, number: int, value: Any) -> bool:
        """Bind a node to an object; a variable gets its value. False where another object has it already."""
        if number in self.given:
            bound = self.given[number]()
            if bound is not None:
                return bound is value or not isinstance(value, Variable)
        key = self.reader.nodes[number]["value"]
        if key is not None and isinstance(value, Variable):
            self._give(key, value)
        self.given[number] = _reference(value)
        return True

    def _give(self, key: str, variable: Variable) -> None:
        spec = self.reader.spec(key)
        if not variable.shape.is_compatible_with(spec.shape):
            raise ValueError(
                f"Received incompatible tensor with shape {spec.shape} when attempting to restore variable with shape "
                f"{variable.shape} and name {variable.name}."
            )
        if spec.dtype is not variable.dtype:
            raise InvalidArgumentError(
                what=f"the checkpoint's value for variable {variable.name!r} ({key}) has another dtype",
                found=spec.dtype.name,
                wanted=variable.dtype.name,
            )
        variable.write_array(self.reader.read(key)[0])

    def python_objects(self) -> Iterator[tuple[str, Any]]:
        """Every object there is now below the root, with its name."""
        seen: set[int] = set()
        todo = list(self._top_objects().items())
        for name, value in todo:
            if id(value) not in seen:
                seen.add(id(value))
                yield name, value
                todo.extend((f"{name}.{key}", child) for key, child in children(value).items())

    def unmatched(self) -> list[tuple[str, Any]]:
        """Variables in the program that have no value in the checkpoint."""
        bound = {id(value) for ref in self.given.values() if (value := ref()) is not None}
        return [(n, v) for n, v in self.python_objects() if isinstance(v, Variable) and id(v) not in bound]

    def left(self) -> list[str]:
        """Names of values that no variable took."""
        return [self.reader.nodes[i]["value"] for i in sorted(self.values - self.given.keys())]

    def __del__(self) -> None:
        try:
            left = [] if self.expect_partial else self.left()
        except (AttributeError, TypeError):  # half made, or the interpreter is ending
            return
        if left and _log is not None:
            _log.warning(
                "A checkpoint was restored (e.g. tf.train.Checkpoint.restore or tf.keras.Model.load_weights) but not "
                "all checkpointed values were used. Use expect_partial() on the load status object to silence this. "
                "Not used: %s",
                _few(left),
            )


def _reference(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:  # lists and dicts take no weak references
        return lambda: value


def restore(reader: CheckpointReader, root: Any) -> CheckpointLoadStatus:
    """Give out what can be given out; the rest waits.

    raises ValueError where a shape differs, InvalidArgumentError where a dtype differs
    """
    restoration = Restoration(reader, root)
    if restoration.hand_out():
        waiting.waiting.append(restoration.hand_out)
    return CheckpointLoadStatus(restoration, root)


class CheckpointLoadStatus:
    """What came of restoring, and questions about it that raise AssertionError. All give the status itself.

    A warning names values that were never used when all is over, unless `expect_partial()` was called.
    """

    def __init__(self, restoration: Restoration, root: Any) -> None:
        self._restoration, self._root = restoration, root  # the root stays, so that questions have an answer

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Every value of the checkpoint has a variable, and every variable of the program a value."""
        self.assert_existing_objects_matched()
        left = self._restoration.left()
        if left:
            raise AssertionError(f"Unresolved object in checkpoint {self._restoration.reader.prefix}: {_few(left)}")
        return self

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Every variable of the program has a value; the checkpoint may have more."""
        waiting.settle()
        found = self._restoration.unmatched()
        if found:
            raise AssertionError(
                f"Found {len(found)} Python objects that were not bound to checkpointed values, likely due to changes "
                f"in the Python program: {_few([f'{name} {value.name!r}' for name, value in found])}"
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Something besides the root was found in the checkpoint."""
        waiting.settle()
        if len(self._restoration.given) <= 1:
            found = self._restoration.unmatched()
            if found:
                raise AssertionError(
                    "Nothing except the root object matched a checkpointed value. Typically this means that the "
                    "checkpoint does not match the Python program. The following objects have no matching "
                    f"checkpointed value: {_few([f'{name} {value.name!r}' for name, value in found])}"
                )
            raise AssertionError("Nothing to load. No dependencies have been added to the Checkpoint yet.")
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """It is meant that values stay unused: no warnings."""
        self._restoration.expect_partial = True
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing: values were given out already."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Nothing: values were given out already."""


class InitializationOnlyStatus(CheckpointLoadStatus):
    """What `restore(None)` gives: nothing was restored."""

    def __init__(self) -> None:
        pass

    def assert_consumed(self) -> Any:
        """Raises AssertionError."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def expect_partial(self) -> InitializationOnlyStatus:
        """Itself."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Raises AssertionError."""
        raise AssertionError(
            "No checkpoint specified, so no restore ops are available (save_path=None to Saver.restore)."
        )


def _few(items: list[str]) -> str:
    return ", ".join(items[:10]) + (f" and {len(items) - 10} more" if len(items) > 10 else "")
