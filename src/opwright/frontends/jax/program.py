"""`from_jax`: a JAX function, traced to a jaxpr, as an `ImportedFunction`.

Lives here: tracing by JAX, pytrees as nested structures, parameters as variables. Not here: equations (execution.py).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core import nest
from ...core.dtypes import as_dtype
from ...core.errors import InvalidArgumentError
from ...core.extras import optional_module
from ...core.lazy_imports import import_module
from ...core.specs import TensorSpec
from ...eager.variable import Variable
from ...ops import array
from ..importing import ImportedFunction, tensor_of
from .execution import JaxprContext, calls, is_key, load_rules
from .sizes import OpenSizes, is_open


def from_jax(
    function: Callable[..., Any],
    *specs: Any,
    variables: Any = None,
    custom: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> ImportedFunction:
    """Return a JAX function as a function of catalogue operators.

    JAX traces it once, for these types. Inner functions of `jit`, `remat` and `custom_jvp` are inlined, `scan`,
    `while_loop` and `cond` become control flow, `jax.random` computes the same bits. Arguments and results keep their
    nested structure; other classes of nodes become dictionaries of their fields, or tuples.

    specs: the types of the arguments: nested structures of ow.TensorSpec, jax.ShapeDtypeStruct or arrays. Sizes may be
    open: symbolic dimensions (jax.export.symbolic_shape), or None in a TensorSpec, where an unknown first size is one
    batch for all arguments and every other one is a size of its own. variables: a nested structure of arrays, such as
    the parameters of a Flax model or an Equinox module, which the function receives before the others: its arrays
    become `ow.Variable`s (floating ones trainable), the rest stays as it is. Without it, all arrays that the function
    refers to are constants that share JAX's memory. custom: by the name of a primitive, an `@ow.operator` or a function
    of its operands and, by keyword, its parameters.
    raises FailedPreconditionError without JAX, MissingOperators for all primitives without a rule,
    InvalidArgumentError for ranks that are unknown or dtypes that JAX would narrow, ValueError or TypeError of JAX for
    programs that need a size that is open
    """
    jax = optional_module("jax")
    rules = load_rules()
    leaves, tree = jax.tree_util.tree_flatten(specs)
    symbols = _Symbols()
    types = [_type(jax, leaf, symbols) for leaf in leaves]
    places = _places(types)
    weights, fields = ([], None) if variables is None else jax.tree_util.tree_flatten(variables)
    paths = [] if variables is None else [p for p, _ in jax.tree_util.tree_flatten_with_path(variables)[0]]
    traced = [i for i, w in enumerate(weights) if _is_array(jax, w)]

    def flat(*arguments: Any) -> Any:
        arguments, positional = arguments[: len(traced)], arguments[len(traced) :]
        members = list(weights)
        for i, argument in zip(traced, arguments):
            members[i] = argument
        first = () if fields is None else (jax.tree_util.tree_unflatten(fields, members),)
        return function(*first, *jax.tree_util.tree_unflatten(tree, positional))

    kinds = [jax.ShapeDtypeStruct(np.shape(weights[i]), weights[i].dtype) for i in traced]
    jaxpr, results = jax.make_jaxpr(flat, return_shape=True)(*kinds, *types)
    rules.check(calls(jaxpr), custom)
    created = [_variable(weights[i], _path_name(paths[i])) for i in traced]
    structure = _plain(jax, results)
    label = str(name or getattr(function, "__name__", type(function).__name__))

    def body(*arguments: Any) -> Any:
        flat = nest.flatten(list(arguments))
        open_sizes = OpenSizes({name: array.shape(flat[i])[axis] for name, (i, axis) in places.items()})
        context = JaxprContext(custom, sizes=open_sizes if places else None)
        values = [v.read_value() for v in created] + flat
        outputs = context.execute(jaxpr, values)
        return nest.map_structure(lambda i: None if i is None else tensor_of(outputs[i]), structure)

    signature = [nest.map_structure(lambda i: _spec(types[i]), argument) for argument in _plain(jax, specs)]
    return ImportedFunction(
        body,
        signature,
        name=label if label.isidentifier() else "jax_function",
        source=f"the JAX function {label}",
        parameters=_parameters(function, len(specs), fields is not None),
        variables=created,
        output_names=_output_names(jax, results),
    )


def _is_array(jax: Any, value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic, jax.Array)) and not is_key(value)


class _Symbols:
    """Symbolic dimensions for unknown sizes of specs, of one scope."""

    def __init__(self) -> None:
        self._scope: Any = None
        self._count = 0

    def shape(self, sizes: Sequence[int | None]) -> tuple[Any, ...]:
        """Return a shape: an unknown first size is `batch`, the same in all specs; each other one is of its own."""
        names = [str(d) if d is not None else "batch" if i == 0 else self._name() for i, d in enumerate(sizes)]
        export = import_module("jax.export")
        if self._scope is None:
            self._scope = export.SymbolicScope()
        return tuple(export.symbolic_shape(", ".join(names), scope=self._scope))

    def _name(self) -> str:
        self._count += 1
        return f"size_{self._count}"


def _places(types: Sequence[Any]) -> dict[str, tuple[int, int]]:
    """Return for each symbolic dimension an argument and axis whose size it is.

    raises InvalidArgumentError for one that is only part of expressions
    """
    places: dict[str, tuple[int, int]] = {}
    names: dict[str, Any] = {}
    for i, kind in enumerate(types):
        for axis, size in enumerate(kind.shape):
            if is_open([size]):
                names.update((n, size) for n in re.findall(r"[A-Za-z_]\w*", re.sub(r"\w+\(", "(", str(size))))
                places.setdefault(str(size), (i, axis))
    for name, size in names.items():
        if name not in places:
            raise InvalidArgumentError(
                op="from_jax",
                what=f"the symbolic dimension {name} does not follow from the arguments",
                found=str(size),
                wanted=f"an argument with a size {name}",
            )
    return {name: places[name] for name in names}


def _type(jax: Any, spec: Any, symbols: _Symbols) -> Any:
    """Return a spec as JAX's. Raises InvalidArgumentError for an unknown rank, and dtypes that JAX would narrow."""
    if isinstance(spec, TensorSpec):
        sizes = spec.shape.dims
        if sizes is None:
            raise InvalidArgumentError(
                op="from_jax",
                what="JAX traces a function for ranks that are known",
                found=spec,
                wanted="sizes, or None",
            )
        shape, dtype = (symbols.shape(sizes) if None in sizes else tuple(sizes)), spec.dtype.as_numpy_dtype
    elif hasattr(spec, "shape") and hasattr(spec, "dtype"):
        if is_key(spec):
            return jax.ShapeDtypeStruct(tuple(spec.shape), spec.dtype)
        shape, dtype = tuple(spec.shape), spec.dtype
    else:
        value = np.asarray(spec)
        shape, dtype = value.shape, jax.dtypes.canonicalize_dtype(value.dtype)
    if jax.dtypes.canonicalize_dtype(dtype) != np.dtype(dtype):
        raise InvalidArgumentError(
            op="from_jax",
            what="JAX would narrow 64-bit arguments to 32 bits",
            found=np.dtype(dtype).name,
            do='jax.config.update("jax_enable_x64", True), or 32-bit specs',
        )
    return jax.ShapeDtypeStruct(shape, dtype)


def _spec(kind: Any) -> TensorSpec:
    if is_key(kind):
        words = kind.dtype._impl.key_shape
        return TensorSpec([*kind.shape, *words], as_dtype(np.uint32))
    return TensorSpec([None if is_open([d]) else d for d in kind.shape], as_dtype(kind.dtype))


def _variable(value: Any, name: str) -> Variable:
    value = np.asarray(value)
    return Variable(value, trainable=as_dtype(value.dtype).is_floating, name=name)


def _path_name(path: Sequence[Any]) -> str:
    parts = [str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path]
    return "/".join(parts) or "variable"


def _plain(jax: Any, tree: Any) -> Any:
    """Return a pytree's structure with the positions of its leaves: dicts, lists and tuples, others by their fields."""
    numbered = jax.tree_util.tree_unflatten(
        jax.tree_util.tree_structure(tree), list(range(len(jax.tree_util.tree_leaves(tree))))
    )

    def walk(node: Any) -> Any:
        if node is None or isinstance(node, int):
            return node
        if isinstance(node, Mapping):
            return {k: walk(v) for k, v in node.items()}
        if isinstance(node, tuple) and hasattr(node, "_fields"):
            return type(node)(*map(walk, node))
        if type(node) in (list, tuple):
            return type(node)(map(walk, node))
        rows = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda child: child is not node)[0]
        if rows and all(hasattr(path[0], "name") for path, _ in rows):
            return {path[0].name: walk(child) for path, child in rows}
        return tuple(walk(child) for _, child in rows)

    return walk(numbered)


def _parameters(function: Callable[..., Any], count: int, skips: bool) -> list[str]:
    """Return the names of the arguments that specs describe; arguments without a name are numbered."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][int(skips) :]
    return [*names[:count], *(f"input_{i}" for i in range(min(len(names), count), count))]


def _output_names(jax: Any, results: Any) -> list[str]:
    rows = jax.tree_util.tree_flatten_with_path(results)[0]
    names = ["_".join(_path_name([k]) for k in path) for path, _ in rows]
    return [n if n.isidentifier() else f"output_{i}" for i, n in enumerate(names)]
