"""Module: an object that owns variables; Weighted: a module with the weights and losses of layers.

Lives here: the base classes, the traversal of variables and modules, the name scope; `add_weight`, `weights` and
related properties, `losses`.
Not here: calls of layers (layer.py), files (weights_io.py).

Weights are in the order of Keras: a layer's own trainable weights, its own other weights, then those of nested layers
in the order of the attributes (including lists, tuples and dicts).
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from ..core import nest
from ..core.dtypes import DType, as_dtype
from ..eager import variable_state
from ..eager.variable import Variable
from ..ops import dispatch, math
from ..tracing.name_scopes import name_scope
from . import constraints, initializers, regularizers
from .dtype_policies import AutocastVariable
from .random import SeedGenerator

M = TypeVar("M", bound="Module")
P = ParamSpec("P")
R = TypeVar("R")

_WORD = re.compile(r"(?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z])")


@contextlib.contextmanager
def root_scope() -> Iterator[None]:
    """Return a context manager outside of every name scope."""
    state = dispatch.state
    saved, state.names = state.names, ()
    try:
        yield
    finally:
        state.names = saved


class Module:
    """Base class of objects with variables: attributes that are variables, modules or structures of them are tracked.

    name: by default the class name in snake case.
    raises ValueError for a name that is not a Python identifier
    """

    _ignored: frozenset[str] = frozenset()  # attributes that the traversal skips

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _WORD.sub(r"_\g<0>", type(self).__name__).lower()
        elif not name.isidentifier():
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers "
                "(e.g. a valid class name)."
            )
        self._name = name
        self._scope = "".join(f"{scope}/" for scope in dispatch.state.names)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if variable_state.deferred_restores:  # a checkpoint may have values for the new attribute
            variable_state.restore_attached(value)

    @property
    def name(self) -> str:
        """Name of the module."""
        return getattr(self, "_name", type(self).__name__)

    @property
    def name_scope(self) -> name_scope:
        """Context manager that prefixes names of nodes and variables with `<name>/`."""
        return name_scope(f"{getattr(self, '_scope', '')}{self.name}/")

    @classmethod
    def with_name_scope(cls, method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
        """Decorate a method to run inside the module's name scope."""

        @functools.wraps(method)
        def scoped(self: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped

    def _flatten(
        self, predicate: Callable[[Any], bool], recursive: bool = True, seen: set[int] | None = None
    ) -> Iterator[Any]:
        """Yield the attributes that satisfy `predicate`, each once: by attribute name, then in submodules."""
        seen = {id(self)} if seen is None else seen
        inner: list[Module] = []
        for key in sorted(vars(self)):
            if key in self._ignored:
                continue
            try:
                leaves = nest.flatten(vars(self)[key])
            except (TypeError, ValueError):
                continue  # not a structure, such as a dict with keys of mixed types
            for leaf in leaves:
                if id(leaf) in seen:
                    continue
                if predicate(leaf):
                    seen.add(id(leaf))
                    yield leaf
                if isinstance(leaf, Module):
                    seen.add(id(leaf))
                    inner.append(leaf)
        if recursive:
            for module in inner:
                yield from module._flatten(predicate, True, seen)

    @property
    def variables(self) -> Sequence[Any]:
        """All variables of this module and its submodules."""
        return tuple(self._flatten(lambda leaf: isinstance(leaf, Variable)))

    @property
    def trainable_variables(self) -> Sequence[Any]:
        """Trainable variables of this module and its submodules."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self) -> Sequence[Any]:
        """Non-trainable variables of this module and its submodules."""
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All modules nested in this one."""
        return tuple(self._flatten(lambda leaf: isinstance(leaf, Module)))


if TYPE_CHECKING:
    from ..ops.tensor import Tensor


class OverwrittenVariable(Variable):
    """A weight whose gradient is its next value, which optimizers assign: a scale of float8."""

    __slots__ = ()
    overwrite_with_gradient = True


class Weighted(Module):
    """Module whose variables are weights. See `Layer`."""

    _ignored = frozenset(
        {
            "nodes",
            "_losses",
            "_loss_owners",
            "_own_weights",
            "_regularizers",
            "_compiled",
            "_trainer",
            "optimizer",
            "_parent",
            "history",
            "_initial_weights",
            "_network",
            "_constructor_arguments",
            "_dtype_policy",
            "_remat",
        }
    )
    built: bool
    _variable_dtype: DType
    _compute_dtype: DType

    def _init_weights(self, trainable: bool) -> None:
        self._trainable = trainable
        self._own_weights: list[Variable] = []
        self._regularizers: list[tuple[Any, Variable]] = []
        self._losses: list[Any] = []

    @property
    def path(self) -> str:
        """The name after those of the layers in which it was built: "model/dense"."""
        path: str | None = self.__dict__.get("_path")
        return path or str(self.name)

    # ---- creation ---------------------------------------------------------------------------------------------------

    def add_variable(
        self,
        shape: Any,
        initializer: Any,
        dtype: Any = None,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        name: str | None = None,
    ) -> Variable:
        """Create a weight of the layer; see `add_weight`."""
        return self.add_weight(name, shape, dtype, initializer, regularizer, trainable, constraint, autocast)

    def add_weight(
        self,
        name: Any = None,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool = True,
        constraint: Any = None,
        autocast: bool = True,
        aggregation: Any = "none",
        **kwargs: Any,
    ) -> Variable:
        """Create a weight of the layer.

        shape: fully known, () by default. initializer: a name, an initializer, or a function of shape and dtype; by
        default "glorot_uniform" for floats, else "zeros". regularizer: a loss of its value. constraint: applied by
        optimizers after updates. Inside `function` the value is computed once, outside the graph.
        raises ValueError for an unknown size
        """
        if not isinstance(name, (str, type(None))):  # add_weight(shape, initializer, dtype): Keras 3's order
            if shape is not None and not isinstance(shape, str) and not callable(shape):
                raise ValueError(f"`shape` was passed both positionally and as a keyword argument: {name}, {shape}")
            name, shape, initializer = None, name, initializer if shape is None else shape
        dims = tuple(() if shape is None else (shape,) if isinstance(shape, int) else shape)
        if any(d is None for d in dims):
            raise ValueError(f"Weight {name!r} of layer {self.name!r} needs known sizes; found shape {dims}")
        dims = tuple(int(d) for d in dims)
        weight_dtype = self._variable_dtype if dtype is None else as_dtype(dtype)
        if initializer is None:
            initializer = "glorot_uniform" if weight_dtype.is_floating else "zeros"
        make: Callable[..., Tensor] = initializers.get(initializer)

        def value() -> Tensor:
            try:
                return make(dims, dtype=weight_dtype)
            except TypeError as error:
                if "dtype" not in str(error):
                    raise
                return make(dims)

        mixed = weight_dtype.is_floating and autocast and self._compute_dtype is not weight_dtype
        with root_scope():  # the name does not depend on the scope of the call
            kind = OverwrittenVariable if kwargs.get("overwrite_with_gradient") else Variable
            variable = (AutocastVariable if mixed else kind)(
                value,
                bool(trainable and self._trainable),
                name=f"{self.name}/{name or 'variable'}",
                dtype=weight_dtype,
                constraint=constraints.get(constraint),
            )
        variable.scoped_name = f"{self.path}/{name or 'variable'}"
        if not trainable:
            self._non_trainable_ids.add(id(variable))
        self._own_weights.append(variable)
        if regularizer is not None:
            self._regularizers.append((regularizers.get(regularizer), variable))
        return variable

    @property
    def _non_trainable_ids(self) -> set[int]:
        """Ids of own variables created non-trainable, which `trainable = True` does not change."""
        ids: set[int] = self.__dict__.setdefault("_non_trainable", set())
        return ids

    # ---- traversal --------------------------------------------------------------------------------------------------

    def _tracked(self) -> Iterator[Any]:
        """Yield the variables and modules in the attributes, in the order of their assignment."""
        for key, value in vars(self).items():
            if key in self._ignored or value is None or isinstance(value, (str, int, float)):
                continue
            try:
                leaves = nest.flatten(value)
            except (RecursionError, TypeError, ValueError):  # such as a list that contains itself
                leaves = (
                    list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
                )
            for leaf in leaves:
                if isinstance(leaf, (Variable, Module)):
                    yield leaf

    def _own_variables(self) -> list[Variable]:
        """Return the layer's own variables: created by add_weight, or set as attributes."""
        variables = {id(v): v for v in self._own_weights}
        for leaf in self._tracked():
            if isinstance(leaf, Variable):
                variables.setdefault(id(leaf), leaf)
        return list(variables.values())

    def _sublayers(self) -> list[Any]:
        """Return the modules directly inside this one, each once."""
        modules = {id(leaf): leaf for leaf in self._tracked() if isinstance(leaf, Module) and not is_metric(leaf)}
        modules.pop(id(self), None)
        return list(modules.values())

    def _flatten_layers(self, recursive: bool = True, include_self: bool = True) -> list[Any]:
        """Return this layer and all nested layers, each once."""
        seen: dict[int, Any] = {id(self): self}
        todo = self._sublayers()[::-1]
        while todo:
            layer = todo.pop()
            if id(layer) not in seen:
                seen[id(layer)] = layer
                if recursive and isinstance(layer, Weighted):
                    todo.extend(layer._sublayers()[::-1])
        layers = list(seen.values())
        return layers if include_self else layers[1:]

    @property
    def weights(self) -> list[Variable]:
        """All weights, trainable or not."""
        own = self._own_variables()
        created = {id(v) for v in self._own_weights}  # frozen weights keep Keras's order
        weights = {
            id(v): v for v in own if id(v) not in self._non_trainable_ids and (id(v) in created or self._may_train(v))
        }
        for v in own:
            weights.setdefault(id(v), v)
        for layer in self._sublayers():
            for v in layer.weights if isinstance(layer, Weighted) else layer.variables:
                weights.setdefault(id(v), v)
        return list(weights.values())

    def _may_train(self, variable: Variable) -> bool:
        return id(variable) not in self._non_trainable_ids and (variable.trainable or not self._trainable)

    @property
    def trainable_weights(self) -> list[Variable]:
        """Weights updated by training; none if `trainable` is False."""
        return [v for v in self.weights if v.trainable] if self._trainable else []

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """Weights not updated by training."""
        return [v for v in self.weights if not v.trainable] if self._trainable else self.weights

    @property
    def variables(self) -> list[Variable]:
        """All weights, and the states of generators of seeds."""
        return [*self.weights, *self._seed_states()]

    def _seed_states(self) -> list[Variable]:
        """Return the states of the generators of seeds in the attributes of this layer and nested ones."""
        layers = [layer for layer in self._flatten_layers() if isinstance(layer, Weighted)]
        generators = {id(g): g for layer in layers for g in layer._generators()}
        return [generator.state for generator in generators.values()]

    def _generators(self) -> Iterator[SeedGenerator]:
        for key, value in vars(self).items():
            if key not in self._ignored:
                for leaf in value if isinstance(value, list | tuple) else [value]:
                    if isinstance(leaf, SeedGenerator):
                        yield leaf

    @property
    def trainable_variables(self) -> list[Variable]:
        """Same as `trainable_weights`."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """Weights not updated by training, and the states of generators of seeds."""
        return [*self.non_trainable_weights, *self._seed_states()]

    @property
    def metrics(self) -> list[Any]:
        """Metrics of this layer and of nested ones."""
        tracked = (leaf for layer in self._flatten_layers() if isinstance(layer, Weighted) for leaf in layer._tracked())
        return list({id(leaf): leaf for leaf in tracked if is_metric(leaf)}.values())

    @property
    def metrics_variables(self) -> list[Variable]:
        """Variables of `metrics`."""
        return [v for metric in self.metrics for v in metric.variables]

    @property
    def trainable(self) -> bool:
        """Whether training updates the weights; setting it applies to all nested layers."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        was, self._trainable = self._trainable, bool(value)
        for v in self._own_variables():
            if id(v) not in self._non_trainable_ids:
                if was and not v.trainable and not any(v is w for w in self._own_weights):
                    self._non_trainable_ids.add(id(v))  # an attribute created non-trainable stays non-trainable
                    continue
                v.trainable = bool(value)
        for layer in self._sublayers():
            if isinstance(layer, Weighted):
                layer.trainable = value

    # ---- values -----------------------------------------------------------------------------------------------------

    def get_weights(self) -> list[np.ndarray]:
        """Return the values of `weights`, in order."""
        return [np.array(v.read_array()) for v in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the weights from arrays, in order. Raises ValueError if their number or a shape differs."""
        variables = self.weights
        values = [np.asarray(w) for w in weights]
        if len(variables) != len(values):
            raise ValueError(
                f"You called `set_weights(weights)` on layer '{self.name}' with a weight list of length {len(values)}, "
                f"but the layer was expecting {len(variables)} weights."
            )
        for variable, value in zip(variables, values):
            if not variable.shape.is_compatible_with(value.shape):
                raise ValueError(
                    f"Layer {self.name} weight shape {tuple(variable.shape)} is not compatible with "
                    f"provided "
                    f"weight shape {value.shape}."
                )
        for variable, value in zip(variables, values):
            variable.assign(value.astype(variable.dtype.np))

    def count_params(self) -> int:
        """Return the number of parameters. Raises ValueError before the layer is built."""
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on layer '{self.name}', but the layer isn't built. "
                f"You can "
                "build it manually via: `layer.build(input_shape)`."
            )
        return sum(int(np.prod(v.read_array().shape, dtype=np.int64)) for v in self.weights)

    # ---- losses -----------------------------------------------------------------------------------------------------

    def add_loss(self, loss: Any) -> None:
        """Add scalars to the training loss; call it inside `call`."""
        for scalar in nest.flatten(loss):
            if scalar is not None:
                self._losses.append(scalar)

    def _clear_losses(self) -> None:
        for layer in self._flatten_layers():
            if isinstance(layer, Weighted) and layer._losses:
                layer._losses.clear()

    @property
    def losses(self) -> list[Any]:
        """Losses added by the latest call, then regularization losses; including nested layers."""
        layers = [layer for layer in self._flatten_layers() if isinstance(layer, Weighted)]
        added = [
            value() if callable(value) and not hasattr(value, "dtype") else value for x in layers for value in x._losses
        ]
        pairs: list[tuple[Callable[[Any], Any], Variable]] = [p for layer in layers for p in layer._regularizers]
        return added + [r(v) for r, v in pairs if v.trainable]


def is_metric(value: Any) -> bool:
    """Return whether a module is a metric, whose variables are not weights."""
    return bool(getattr(value, "is_metric", False))


def total(losses: Sequence[Tensor]) -> Tensor:
    """Return the sum of scalars."""
    return losses[0] if len(losses) == 1 else math.add_n(list(losses))
