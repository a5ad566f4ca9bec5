"""GradientTape, custom_gradient: recording of operators for gradients.

Lives here: tapes and their functions.  Not here: the reverse pass itself (ops/autodiff.py).
"""

from __future__ import annotations

import contextlib
import enum
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import nest, replicas
from ..core.dtypes import DType
from ..core.introspection import signature_of
from ..ops import array, dispatch
from ..ops.autodiff import CustomRecord, OpRecord, accumulate, flowing_ids, is_trainable
from ..ops.indexed_slices import IndexedSlices
from ..ops.lod_tensor import LoDTensor, rows_of
from ..ops.tensor import TensorLike, identity_key, tensor_identity
from . import reverse_plans
from .tensor import EagerTensor, tensor_of
from .variable import Variable

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


def _warn(text: str, *values: Any) -> None:
    """Log a warning to `opwright`, as TensorFlow does: these are hints, unlike warnings of the program."""
    import logging  # 4 ms of `import opwright`

    logging.getLogger("opwright").warning(text, *values)


class UnconnectedGradients(enum.Enum):
    """The result of `gradient` for a source that the target does not depend on: None, or zeros."""

    NONE = "none"
    ZERO = "zero"


_UNREFERENCED = next(sys.getrefcount(it) for it in (object(),))
"""Reference count of an active tape that no program can stop. If a signal's exception occurs between the end of a
`with` block and the first line of `__exit__`, the next tape discards it."""


class GradientTape:
    """Records operators executed within its context, for `gradient`, `jacobian` and `batch_jacobian`.

    persistent: whether gradients can be computed more than once. watch_accessed_variables: whether trainable variables
    are watched when they are read. Tapes nest; a gradient computed inside another tape can be differentiated again.

    >>> x = ow.constant(3.0)
    >>> with ow.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self.persistent, self.watches_variables = persistent, watch_accessed_variables
        self._records: list[Any] = []
        self._watched: dict[int, Any] = {}
        self._live: set[int] = set()
        self._recording = False
        self._used = False
        self._trace: Any = None  # in which it was opened, and to which the tensors of its records belong

    # ---- recording ----------------------------------------------------------------------------------------------

    def __enter__(self) -> GradientTape:
        self._start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording:
            self._stop()

    def _start(self) -> None:
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an already-active tape.")
        state = dispatch.state
        trace = self._trace = state.trace
        if trace is not None:
            trace.opened.add(self)
        self._recording = True
        if outer := state.tapes:
            outer = tuple(tape for tape in outer if sys.getrefcount(tape) > _UNREFERENCED)
        state.tapes = (*outer, self)

    def _stop(self) -> None:
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._recording = False
        state = dispatch.state
        tapes = state.tapes
        state.tapes = tapes[:-1] if tapes and tapes[-1] is self else tuple([t for t in tapes if t is not self])

    def record(self, record: Any) -> None:
        """Record a call if one of its inputs depends on a watched tensor, unless its operator ends differentiation."""
        if type(record) is OpRecord and record.op.gradient_rule is None and record.op.has_gradient_rule:
            return
        if self.follows([id(x) for x in record.inputs]):
            self.keep(record)

    def follows(self, keys: Sequence[int]) -> bool:
        """Return whether one of these identities depends on a watched tensor."""
        return not self._live.isdisjoint(keys)

    def keep(self, record: Any) -> None:
        """Record a call that `follows` accepted."""
        self._live.update(record.flowing or flowing_ids(record))
        self._records.append(record)

    def follow(self, outputs: Sequence[Any], added: Any) -> None:
        """Follow an output added to a recorded call if its other outputs depend on a watched tensor."""
        if is_trainable(added.dtype) and any(identity_key(y) in self._live for y in outputs):
            self._live.add(id(tensor_identity(added)))

    def watch(self, tensor: Any) -> None:
        """Watch `tensor`: a tensor, a variable, a composite or a nesting of them."""
        if type(tensor) is EagerTensor and tensor._dtype.is_floating and self._trace is None:
            identity: Any = tensor_identity(tensor)
            self._watched[id(identity)] = identity
            self._live.add(id(identity))
            return
        for part in _parts(tensor):
            if not isinstance(part, TensorLike):
                raise ValueError(
                    f"Passed in object {part!r} of type {type(part).__name__!r}, not tf.Tensor or tf.Variable."
                )
            if not (part.dtype.is_floating or part.dtype.is_complex):
                if all(part is not x for x in nest.flatten(tensor)):
                    continue  # such as the indices of a composite
                _warn("The dtype of the watched tensor must be floating (e.g. tf.float32), got %r", part.dtype)
            identity = tensor_identity(part)  # not the tensor itself: watching keeps nothing alive
            self._watched[id(identity)] = identity
            self._live.add(id(identity))
            if self._trace is not None:
                self._live.add(id(tensor_identity(self._local(part, capture=True))))

    def _local(self, tensor: Any, capture: bool = False) -> Any:
        """Return a tensor as the records of this tape refer to it: in a function, an outer tensor has a local one."""
        return tensor if self._trace is None else self._trace.local_tensor(tensor, capture)

    def watch_variable(self, variable: Variable) -> None:
        """Watch a variable that was read."""
        key = id(variable)
        if key not in self._watched:
            self._watched[key] = variable
            self._live.add(key)

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the watched variables, in order of the first read."""
        return tuple(v for v in self._watched.values() if isinstance(v, Variable))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Return a context in which nothing is recorded. Raises ValueError if the tape is not recording."""
        self._stop()
        try:
            yield
        finally:
            self._start()

    def reset(self) -> None:
        """Clear the tape, as if its context were entered again."""
        self._records.clear()
        self._watched.clear()
        self._live.clear()
        self._used = False

    # ---- differentiation ------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._used and not self.persistent:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
            )
        self._used = True
        if self._recording:
            if not self.persistent:
                self._stop()
            else:
                _warn(
                    "Calling GradientTape.gradient on a persistent tape inside its context is slower and uses more "
                    "memory: the gradient itself is recorded. Only do so to differentiate it again."
                )

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Compute d target / d sources, in the structure of `sources`; several targets are summed.

        output_gradients: initial gradients of the targets instead of ones. unconnected_gradients: NONE returns None for
        a source that the target does not depend on, ZERO returns zeros. The gradient of `gather` is an IndexedSlices.
        raises RuntimeError at a second call on a non-persistent tape, LookupError through an operator without gradient
        """
        unconnected: Any = unconnected_gradients
        if type(unconnected) is not UnconnectedGradients:
            unconnected = UnconnectedGradients(unconnected)
        flat_sources = _parts(sources)
        for source in flat_sources:
            if not isinstance(source, TensorLike):
                raise TypeError(f"a source of gradient() is a tensor or variable, found {source!r}")
        self._begin()
        if output_gradients is None and type(target) is EagerTensor and target._dtype.has_gradient:
            flat_targets, flat_dys = [target], [None]
        else:
            flat_targets, flat_dys = _targets(target, output_gradients)
        result = self._gradients(flat_targets, flat_dys, flat_sources, unconnected, not self.persistent)
        return (
            result[0]
            if type(sources) is EagerTensor
            else nest.pack_sequence_as(sources, result, expand_composites=True)
        )

    def _gradients(
        self,
        targets: Sequence[Any],
        dys: Sequence[Any],
        sources: Sequence[Any],
        unconnected: UnconnectedGradients,
        consume: bool = False,
    ) -> list[Any]:
        start: dict[int, Any] = {}
        originals = sources
        if self._trace is not None:
            sources, targets = map(self._local, sources), list(map(self._local, targets))  # type: ignore[assignment]
        sources = list(map(tensor_identity, sources))
        for t, dy in zip(targets, dys):
            if not is_trainable(t.dtype):
                continue
            if dy is None:
                dy = _ones_like(t)
            else:
                dy = dispatch.to_tensor(dy, t.dtype, None)
            key = id(tensor_identity(t))
            start[key] = accumulate(start[key], dy) if key in start else dy
        records, live = self._records, self._live
        if consume:
            self._records, self._live = [], set()
        replica = replicas.current()
        if replica is not None and consume and replica.stages_gradients:
            reached = [s for s in sources if id(s) in live or id(s) in start]
            by_source = dict(zip(map(id, reached), replica.staged_gradients(records, start, reached)))
            grads = [by_source.get(id(s)) for s in sources]
        else:
            grads = reverse_plans.gradients(
                records, start, [key if key in live or key in start else 0 for key in map(id, sources)], consume
            )
        if unconnected is UnconnectedGradients.ZERO:
            return [array.zeros_like(x) if grad is None else grad for x, grad in zip(originals, grads)]
        return grads

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Compute the derivative of each element of `target` by each element of each source: shape target.shape +
        source.shape.

        For a LoDTensor, the packed rows are differentiated; the jacobian is an ordinary tensor.

        raises ValueError if the target's shape is not fully known
        """
        unconnected = UnconnectedGradients(unconnected_gradients)
        self._begin()
        target, shape = rows_of(target), _known_shape(target, "jacobian")
        flat_sources = list(map(rows_of, nest.flatten(sources)))
        rows = []
        for i in range(int(np.prod(shape))):
            seed = _one_hot(shape, i, target.dtype)
            rows.append(self._gradients([target], [seed], flat_sources, unconnected))
        result: list[Tensor | None] = []
        for k, source in enumerate(flat_sources):
            column = [_dense(row[k]) for row in rows]
            if not column:  # a target without elements
                result.append(array.zeros((*shape, *_known_shape(source, "jacobian")), target.dtype))
            elif any(g is None for g in column):
                result.append(None)
            else:
                stacked = array.stack(column)
                result.append(array.reshape(stacked, (*shape, *stacked.shape[1:])))
        if not self.persistent:
            self._records, self._live = [], set()
        return nest.pack_sequence_as(sources, result)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor:
        """Compute the jacobian of each batch entry: target [b, ...t], source [b, ...s] -> [b, ...t, ...s].

        Correct only if entry i of the target depends on entry i of the source alone. If the target does not depend on
        the source, the jacobian is zero.
        raises ValueError for ranks below 1 or batch sizes that differ
        """
        unconnected = UnconnectedGradients(unconnected_gradients)
        target, source = rows_of(target), rows_of(source)
        shape, source_shape = _known_shape(target, "batch_jacobian"), _known_shape(source, "batch_jacobian")
        if not shape or not source_shape or shape[0] != source_shape[0]:
            raise ValueError(
                "Need first dimension of target shape and source shape to match, found "
                f"{target.shape} and {source.shape}"
            )
        self._begin()
        batch, inner = shape[0], shape[1:]
        rows = []
        for i in range(int(np.prod(inner))):
            seed = np.zeros((batch, int(np.prod(inner))), target.dtype.np)
            seed[:, i] = 1
            (grad,) = self._gradients(
                [target], [dispatch.to_tensor(seed.reshape(shape), target.dtype, None)], [source], unconnected
            )
            rows.append(_dense(grad))
        if not self.persistent:
            self._records, self._live = [], set()
        if not rows or any(g is None for g in rows):  # zeros whatever `unconnected_gradients` says, as in TensorFlow
            return array.zeros((*shape, *source_shape[1:]), target.dtype)
        return array.reshape(array.stack(rows, axis=1), (batch, *inner, *source_shape[1:]))


def _parts(structure: Any) -> list[Any]:
    """Return the tensors and variables of a nesting, with composites flattened."""
    return [structure] if type(structure) is EagerTensor else nest.flatten(structure, expand_composites=True)


def _targets(target: Any, output_gradients: Any) -> tuple[list[Any], list[Any]]:
    """Return the parts of a target that gradients flow from, and the initial gradient of each, None for ones.

    raises TypeError for a target of None, ValueError for another number of gradients
    """
    flat_targets, flat_dys = [], []
    targets = _parts(target)
    dys = [None] * len(targets) if output_gradients is None else _initial_gradients(target, output_gradients)
    if len(dys) != len(targets):
        raise ValueError(f"output_gradients has {len(dys)} entries, target has {len(targets)}")
    for t, dy in zip(targets, dys):
        if t is None:
            raise TypeError("Argument `target` should be a list or nested structure of Tensors, found None")
        if not isinstance(t, TensorLike) or not is_trainable(t.dtype):
            if all(t is not x for x in nest.flatten(target)):
                continue  # a part of a composite
            _warn(
                "The dtype of the target tensor must be floating (e.g. tf.float32) when calling "
                "GradientTape.gradient, got %r",
                getattr(t, "dtype", type(t)),
            )
            if not isinstance(t, TensorLike):
                continue
        flat_targets.append(t)
        flat_dys.append(dy)
    return flat_targets, flat_dys


def _ones_like(target: Any) -> Tensor:
    """Return `array.ones_like(target)`, without its general case for a computed tensor of numbers."""
    if type(target) is not EagerTensor or dispatch.state.trace is not None or target._dtype.is_handle:
        return array.ones_like(target)
    key = target._array.shape, target._dtype
    ones = _ones.get(key)
    if ones is not None:
        return tensor_of(ones.copy(), target._dtype)
    ones = np.ones(key[0], target._dtype.np)
    if ones.size <= 4096 and len(_ones) < 64:
        _ones[key] = ones.copy()
    return tensor_of(ones, target._dtype)


_ones: dict[tuple[tuple[int, ...], DType], np.ndarray] = {}  # small ones: a copy takes a third of the time of np.ones


def _initial_gradients(target: Any, dys: Any) -> list[Any]:
    """Return output_gradients, one per part of the target; for rows with a LoD, the gradient of the rows."""
    targets, gradients = nest.flatten(target), nest.flatten(dys)
    if len(targets) != len(gradients) or not any(isinstance(x, LoDTensor) for x in (*targets, *gradients)):
        return _parts(dys)
    starts = []
    for t, dy in zip(targets, gradients):
        starts.append(dy.values if isinstance(dy, LoDTensor) else dy)
        starts += [None] * (len(t.levels) if isinstance(t, LoDTensor) else 0)
    return starts


def _dense(grad: Any) -> Tensor | None:
    return grad.to_dense() if isinstance(grad, IndexedSlices) else grad


def _known_shape(tensor: Any, use: str) -> tuple[int, ...]:
    if not tensor.shape.is_fully_defined():
        raise ValueError(f"{use} needs a fully known shape; found {tensor.shape}")
    return tuple(tensor.shape)


def _one_hot(shape: tuple[int, ...], i: int, dtype: DType) -> Tensor:
    seed = np.zeros(int(np.prod(shape)), dtype.np)
    seed[i] = 1
    return dispatch.to_tensor(seed.reshape(shape), dtype, None)


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Define a function's gradient: `f(*args)` returns `(result, grad_fn)`.

    grad_fn maps gradients of the results to gradients of the arguments. If `f` reads trainable variables, grad_fn must
    accept `variables=` and return `(argument gradients, variable gradients)`.

    >>> @ow.custom_gradient
    ... def log1pexp(x):
    ...     e = ow.exp(x)
    ...     return ow.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    raises TypeError if variables are read and grad_fn does not accept them
    """

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> object:
        tensors = nest.map_structure(lambda a: dispatch.to_tensor(a, None, None), list(args))
        outer = dispatch.state.tapes
        with GradientTape() as watcher:  # f itself is recorded, too: gradients of grad_fn may flow into it
            result, grad_fn = f(*tensors, **kwargs)
        variables = list(watcher.watched_variables())
        flat = [array.identity_without_record(y) for y in nest.flatten(result)]
        outputs = list(map(rows_of, flat))
        identities = list(map(tensor_identity, outputs))  # the references that `backward` keeps
        levels = [y.levels if isinstance(y, LoDTensor) else () for y in flat]
        inputs = [rows_of(t) for t in nest.flatten(tensors) if isinstance(t, TensorLike)]
        n_inputs = len(inputs)

        def backward(dys: Sequence[Any]) -> list[Any]:
            dys = [array.zeros_like(y) if dy is None else dy for dy, y in zip(dys, identities)]
            dys = [LoDTensor.of(dy, lod) if lod else dy for dy, lod in zip(dys, levels)]
            if variables:
                if "variables" not in signature_of(grad_fn).parameters and not any(
                    p.kind is p.VAR_KEYWORD for p in signature_of(grad_fn).parameters.values()
                ):
                    raise TypeError(
                        "If using @custom_gradient with a function that uses variables, then grad_fn must accept a "
                        f"'variables' keyword argument; {f.__name__} reads {', '.join(v.name for v in variables)}"
                    )
                input_grads, variable_grads = grad_fn(*dys, variables=variables)
                return list(map(rows_of, [*nest.flatten(input_grads), *nest.flatten(variable_grads)]))
            grads = list(map(rows_of, nest.flatten(grad_fn(*dys))))
            if len(grads) != n_inputs:
                raise ValueError(
                    f"custom_gradient function {f.__name__} expected to return {n_inputs} gradients, "
                    f"but returned {len(grads)} instead."
                )
            return grads

        if outer:
            record = CustomRecord([*inputs, *variables], outputs, backward)
            for tape in outer:
                for variable in variables:
                    if getattr(tape, "watches_variables", False):
                        tape.watch_variable(variable)
                tape.record(record)
        return nest.pack_sequence_as(result, flat)

    return wrapped
