"""Definitions of operators: a class body with inputs, outputs, attributes and rules becomes an `Operator`.

Lives here: `operator` and `Operator` with the consequences of a definition (binding of attributes, computation, the
structure of results).
Not here: declarations (slots.py, attributes.py), dtype checks and inference (operator_inference.py), validity of a
definition (definition_checks.py), the catalogue's table (registry.py), execution (eager/), recording (tracing/).
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

import numpy as np

from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError, SignatureError, UnimplementedError
from ..core.forks import cached_property
from ..core.lazy_imports import later
from ..core.notebook_reprs import shown_as
from . import dispatch, kernels, registry
from .attributes import Attr
from .call import Call, CallProfile, call_class, contract_violation
from .operator_inference import OperatorInference, brief
from .registry import public_function
from .slots import QUANTIZED, Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from . import compute_wrappers, definition_checks, gradient_makers
else:  # not needed by the first answer of a model
    compute_wrappers = later(".compute_wrappers", __package__)
    definition_checks = later(".definition_checks", __package__)
    gradient_makers = later(".gradient_makers", __package__)

PACKAGE = f"{__name__.partition('.')[0]}."
MOST_CALLS = 256
"""Maximum number of combinations of attributes that an operator keeps a Call for; the oldest is forgotten."""


class Operator(OperatorInference):
    """An operator: its inputs, outputs, attributes, rules and kernels; created by `@ow.operator`.

    A call takes the inputs, then the attributes, in the order of the definition, or by name; and `name=`. By position,
    parts that a later version added (`since=`) follow all older ones.
    It computes eagerly, and records under `function`.

    name, version, doc, formula; inputs, outputs: tuples of Input and Output; attr_defs: Attr by name;
    inplace, views, no_need_buffer, shape_only, lod, elementwise, effect, control: as the class declared them.
    inplace: by output, the input (or inputs, in order of preference) whose memory the planner may reuse for the output
    when the input dies. views: by output, the inputs of which `compute` may return a view. All other results own their
    memory. A `compute` with a keyword `out=None` writes into that array, which may be the input's.
    no_need_buffer: inputs of which the gradient reads only the shape; shape_only: of which `compute` does.
    profile: properties that calls use, derived once (call.py).
    control: the operator executes the graphs among its attributes; it has no kernel, plans inline it.
    effect_rule, lod_rule: functions of the call, if its effect or the LoD of its results depends on it.
    kinds_rule, rows_rule: the definition's own `infer_kinds`, and `on_rows`, its computation on sparse rows
    (var_types.py).
    version_rule: the definition's own `version_needed` (call.py).
    quantized_rule: the definition's `quantized`: its treatment of quantized tensors
    (lite/ops/quantized/quantization.py); says_quantized: whether the definition has it.
    key_rule, input_key_rule: the definition's own `expected_kernel_key` and `input_kernel_key` (kernel_selection.py).
    """

    def __init__(self, cls: type, name: str, version: int, catalogue: bool) -> None:
        self.name, self.version, self.catalogue = name, version, catalogue
        members = _members_of(cls)
        parts = {k: v for k, v in members.items() if isinstance(v, (Input, Output, Attr))}
        for key, part in parts.items():
            part.name = key
        self.inputs = tuple(p for p in parts.values() if isinstance(p, Input))
        self.outputs = tuple(p for p in parts.values() if isinstance(p, Output))
        self.attr_defs: dict[str, Attr[Any]] = {k: p for k, p in parts.items() if isinstance(p, Attr)}
        body = {k: v for k, v in members.items() if k not in parts and not k.startswith("__")}
        self.inplace: Mapping[str, str | tuple[str, ...]] = body.pop("inplace", {})
        self.views: Mapping[str, str | tuple[str, ...]] = body.pop("views", {})
        self.no_need_buffer: tuple[str, ...] = tuple(body.pop("no_need_buffer", ()))
        self.shape_only: tuple[str, ...] = tuple(body.pop("shape_only", ()))
        lod = body.pop("lod", "unchanged")
        self.lod: str = lod if isinstance(lod, str) else "changed"
        self.lod_rule: Callable[[Any], str] | None = None if isinstance(lod, str) else lod
        self.key_rule: Callable[..., Any] | None = body.pop("expected_kernel_key", None)
        self.input_key_rule: Callable[..., Any] | None = body.pop("input_kernel_key", None)
        self.elementwise: bool = body.pop("elementwise", None)
        self.effect: str | None = body.pop("effect", None)
        self.effect_rule: Callable[[Mapping[str, Any]], str | None] | None = body.pop("effect_rule", None)
        self.version_rule: Callable[[Any], int] | None = body.pop("version_needed", None)
        self.says_quantized = "quantized" in body
        self.quantized_rule: Any = body.pop("quantized", QUANTIZED[0])
        self.control: bool = body.pop("control", False)
        self.infer_rule: Callable[..., Any] | None = body.pop("infer", None)
        self.kinds_rule: Callable[..., Any] | None = body.pop("infer_kinds", None)
        self.rows_rule: Callable[..., Any] | None = body.pop("on_rows", None)
        self.has_gradient_rule = "gradient" in body
        self._gradient = gradient = body.pop("gradient", None)
        self.gradient_rule: Callable[..., Any] | None = (
            gradient
            if gradient is None
            or isinstance(gradient, types.FunctionType)
            or not isinstance(gradient, gradient_makers.GradientMaker)
            else gradient.rule(self)
        )
        self.compute_rule: Any = body.pop("compute", None)
        self.kernel_rule: Any = body.pop("kernel", None)
        if hasattr(self.kernel_rule, "of_operator"):  # a kernel on arrays, which depends on the declarations
            self.kernel_rule = self.kernel_rule.of_operator(self)
        if self.elementwise is None:  # a kernel on scalars broadcasts; without `infer`, shapes follow
            on_scalars = getattr(self.kernel_rule, "on_scalars", False)
            self.elementwise = on_scalars and self.infer_rule is None and len(self.outputs) == 1
        self.kernels: dict[kernels.KernelKey, Callable[..., Any]] = {}
        if self.kernel_rule is not None:
            self.kernels[kernels.KernelKey("cpu", library="compiled")] = self.kernel_rule
        self.cpu_kernels = bool(self.kernels)  # whether any is for the CPU: eager calls use no others
        self.impure_kernels: set[kernels.KernelKey] = set()  # options of `register_kernel`
        self.irreproducible: set[kernels.KernelKey] = set()
        self.tolerances: dict[kernels.KernelKey, float] = {}
        self.kernel_cache: dict[Any, tuple[Any, ...]] = {}  # kernels by full key, and for the CPU by dtype
        self.refused: dict[kernels.KernelKey, str] = {}  # the reason by key, where the reference cannot run
        self.trusted = catalogue or type(self) is not Operator  # other computations receive read-only inputs
        if not cls.__module__.startswith(PACKAGE):  # tests check this package's own, to keep imports fast
            definition_checks.check(self, body)
        by_name = {i.name: i for i in self.inputs}
        slot: Any
        for slot in (*self.inputs, *self.outputs):  # resolve chains of `like`
            while slot.like is not None and by_name[slot.like].like is not None:
                slot.like = by_name[slot.like].like
        self.input_names = tuple(i.name for i in self.inputs)
        self.output_names = tuple(o.name for o in self.outputs)
        self._input_set = frozenset(self.input_names)
        self._call_class = call_class(name, self.attr_defs, self.input_names, self.output_names, body)
        self._helpers = body
        self._bound: dict[Any, Call] = {}
        self._default: Call | None = None  # the Call of all defaults
        self.accepted: dict[Any, tuple[DType | None, ...]] = {}
        self.profile = CallProfile(self)
        self.__name__ = self.__qualname__ = name
        self.__module__ = cls.__module__
        self.__doc__ = cls.__doc__

    @cached_property
    def doc(self) -> str:
        """Return the class's docstring, without its indentation."""
        return inspect.cleandoc(self.__doc__ or "")

    @cached_property
    def formula(self) -> str:
        """Return the text after `.. math::` in the docstring, on one line; empty without one."""
        match = re.search(r"\.\. math::\s*(.+?)(?:\n\s*\n|\Z)", self.doc, re.DOTALL)
        return " ".join(match.group(1).split()) if match else ""

    @cached_property
    def gradient_maker(self) -> gradient_makers.GradientMaker:
        """Return what makes the gradient's nodes."""
        return gradient_makers.maker_of(self.has_gradient_rule, self._gradient)

    @cached_property
    def gradient_needs(self) -> gradient_makers.GradientNeeds:
        """Return the inputs and outputs that the gradient reads: by value, by shape, or not at all."""
        return gradient_makers.needs_of(self, self._helpers)

    # ---- calling ----------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> Any:
        if not kwargs and len(args) == self.profile.plain_count:  # the common call: inputs only, default attributes
            return dispatch.call(self, args, self._default or self.default_call(), name)
        if len(args) == self.profile.plain_count and self._input_set.isdisjoint(kwargs):
            return dispatch.call(self, args, self.bind(kwargs), name)
        names = self.profile.positions
        if len(args) > len(names):
            raise SignatureError(
                op=self.name,
                node=name,
                what="too many arguments",
                found=f"{len(args)} positional",
                wanted=f"at most {len(names)}: {', '.join(names)}",
            )
        for key, value in zip(names, args):
            if key in kwargs:
                raise SignatureError(op=self.name, node=name, what=f"argument {key!r} is given twice")
            kwargs[key] = value
        inputs = [kwargs.pop(n, None) for n in self.input_names]
        return dispatch.call(self, inputs, self.bind(kwargs), name)

    def default_call(self) -> Call:
        """Return the Call of all defaults: the same one at each call, and of `bind` with defaults as arguments."""
        if self._default is None:
            call = self._default = self.bind({})
            with contextlib.suppress(TypeError):  # an attribute that is not a key
                if self.profile.keeps_calls:
                    self._bound.setdefault(tuple(call.attrs.items()), call)
        return self._default

    def on(self, inputs: Any = None, outputs: Any = None, /, **attrs: Any) -> Any:
        """Return an `OpInstance`: this operator on named variables, to run on a scope and a place.

        inputs, outputs: by slot, the name of a variable, or a list of names where it is repeated.

        >>> ow.ops.get("Add").on({"x": "a", "y": "b"}, {"z": "c"}).run(scope, ow.CPUPlace())

        raises SignatureError as `OpInstance`
        """
        return dispatch.new_instance(self, inputs, outputs, attrs)

    def bind(self, attrs: Mapping[str, Any]) -> Call:
        """Return a Call with checked attributes; raises SignatureError for unknown, missing or ill-typed ones."""
        try:
            key = tuple(attrs.items())
            bound = self._bound.get(key)
            if bound is not None and _has_attributes(bound, key):
                return bound
        except TypeError:
            key = None
        for unknown in attrs.keys() - self.attr_defs.keys():
            raise SignatureError(
                op=self.name,
                what=f"unknown argument {unknown!r}",
                found=f"{unknown}={brief(attrs[unknown])}",
                wanted=f"among {', '.join((*self.input_names, *self.attr_defs)) or 'none'}",
            )
        call = self._call_class()
        call.operator, call.inferred, call.remembered, call.chosen = self, {}, {}, {}
        call._short, call._recorder = None, 0
        for name, attr in self.attr_defs.items():
            if name in attrs:
                try:
                    value = attr.convert(attrs[name])
                except TypeError as error:
                    raise SignatureError(
                        op=self.name,
                        what=f"attribute {name!r} has the wrong type",
                        found=brief(attrs[name]),
                        wanted=str(error),
                    ) from None
                except ValueError as error:
                    raise InvalidArgumentError(
                        op=self.name,
                        what=f"attribute {name!r} is out of its range",
                        found=brief(attrs[name]),
                        wanted=str(error),
                    ) from None
            elif attr.required:
                raise SignatureError(op=self.name, what=f"attribute {name!r} is missing", wanted=attr.type_name())
            else:
                value = attr.default
            setattr(call, name, value)
        rule = self.compute_rule
        call.reference = rule if isinstance(rule, np.ufunc) or rule is None else functools.partial(rule, call)
        if self.profile.narrows and rule is not None:
            call.reference = compute_wrappers.narrowed(self, call.reference)
        if not self.trusted and rule is not None and not isinstance(rule, np.ufunc):
            call.reference = compute_wrappers.guarded(self, call.reference)
        if key is not None and self.profile.keeps_calls:  # graphs and objects are not retained
            if len(self._bound) >= MOST_CALLS:  # plans and specs refer to a call: new combinations are kept, too
                oldest = next((k for k, kept in list(self._bound.items()) if kept is not self._default), None)
                self._bound.pop(oldest, None)
            self._bound[key] = call
        return call

    def infer_kinds(
        self,
        input_kinds: Sequence[Any],
        attrs: Mapping[str, Any] | None = None,
        specs: Sequence[Any] | None = None,
        name: str | None = None,
    ) -> list[Any]:
        """Return the kind of variable of each output for the kinds of the inputs; see ops/var_types.py, `infer`."""
        from . import var_types

        return var_types.infer(self, input_kinds, attrs, specs, name)

    # ---- computing ----------------------------------------------------------------------------------------------

    def reference(self, bound: Call) -> Callable[..., Any]:
        """Return the reference computation with attributes bound: arrays in, an array or tuple of arrays out.

        raises UnimplementedError for an operator that has none
        """
        if bound.reference is None and self.control:
            raise UnimplementedError(
                op=self.name,
                what="control flow has no kernel: it runs within a graph",
                do="call it in a function, or use ow.cond, ow.case, ow.while_loop",
            )
        if bound.reference is None:
            raise UnimplementedError(
                op=self.name,
                what="no `compute` rule is defined, and no kernel serves the call",
                found=", ".join(map(str, self.kernels)) or "no kernels",
                do="define compute(op, ...)",
            )
        result: Callable[..., Any] = bound.reference
        return result

    def kernel(self, bound: Call, dtype: DType | None = None) -> Callable[..., Any]:
        """Return the computation of a call whose first input has `dtype`: the best kernel registered, else the
        reference.
        """
        return kernels.bind(self, bound, dtype) if self.cpu_kernels else self.reference(bound)

    def evaluate(self, operands: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
        """Compute on the constants of graph operands; for constant folding."""
        arrays = [
            None if o is None else [v.constant for v in o] if isinstance(o, tuple) else o.constant for o in operands
        ]
        return self.compute(self.bind(dict(attrs)), arrays)

    def compute(self, bound: Call, arrays: Sequence[Any]) -> tuple[np.ndarray, ...]:
        """Run the reference computation; return a flat tuple of arrays.

        raises InvalidArgumentError naming the operator where NumPy refuses the arguments
        """
        result = dispatch.quietly(self.kernel(bound), *arrays)
        return self.flat_outputs(result)

    def flat_outputs(self, result: Any) -> tuple[Any, ...]:
        """Return the result of compute as a flat tuple. Raises DefinitionError unless it has one result per output."""
        if self.profile.single:
            return (result,)
        if len(self.outputs) == 1:
            return tuple(result)
        if not self.outputs:
            return ()
        if not isinstance(result, (tuple, list)) or len(result) != len(self.outputs):
            description = f"{len(result)} results" if isinstance(result, (tuple, list)) else type(result).__name__
            raise contract_violation(
                self,
                "compute",
                "gave another number of results than there are outputs",
                found=description,
                wanted=f"a tuple of {', '.join(self.output_names)}",
            )
        if not any(o.repeated for o in self.outputs):
            return tuple(result)
        flat: list[Any] = []
        for output, value in zip(self.outputs, result):
            flat.extend(value) if output.repeated else flat.append(value)
        return tuple(flat)

    def pack_all(self, flat: Sequence[Any]) -> Sequence[Any]:
        """Return flat tensors by declared output, intermediates included; a list for a repeated one."""
        if not any(o.repeated for o in self.outputs):
            return flat
        spare = len(flat) - sum(not o.repeated for o in self.outputs)
        packed: list[Any] = []
        offset = 0
        for output in self.outputs:
            if output.repeated:
                packed.append(list(flat[offset : offset + spare]))
                offset += spare
            else:
                packed.append(flat[offset])
                offset += 1
        return packed

    def pack_outputs(self, flat: Sequence[Any]) -> Any:
        """Return flat tensors in the structure of results: one, a tuple, a list if repeated; intermediates left out."""
        if self.profile.single:
            return flat[0]
        packed = [p for p, o in zip(self.pack_all(flat), self.outputs) if not o.intermediate]
        return packed[0] if len(packed) == 1 else tuple(packed) if packed else None

    def const_operator(self) -> Operator:
        """Return the operator of constants, which folding creates."""
        result: Operator = registry.get("Const")
        return result

    # ---- showing -------------------------------------------------------------------------------------------------

    def as_function(self, name: str) -> Callable[..., Any]:
        """Return the public function of this operator: inputs, attributes with their defaults, and `name=None`."""
        return public_function(self, name)

    def signature(self) -> str:
        """Return the call as text: LeakyClip(x, *, alpha: float = 0.0)."""
        parts = [i.name + ("=None" if i.optional else "") for i in self.inputs]
        if self.attr_defs:
            parts.append("*")
        parts += [
            f"{k}: {a.type_name()}" + ("" if a.required else f" = {a.default!r}") for k, a in self.attr_defs.items()
        ]
        return f"{self.name}({', '.join(parts)})"

    _repr_html_ = shown_as("operator")

    def __repr__(self) -> str:
        return f"<operator {self.signature()}, version {self.version}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return registry.get, (self.name,)

    def __hash__(self) -> int:
        return id(self) >> 4


def _members_of(cls: type) -> dict[str, Any]:
    """Return what a definition declares, after what its base classes do, as the fields of dataclasses are ordered.

    Inherited inputs, outputs and attributes are copies: an operator names and resolves its own.
    """
    members: dict[str, Any] = {}
    for base in cls.__mro__[-2:0:-1]:  # without `object`
        if base is not OperatorDefinition:
            members |= {k: copy.copy(v) if isinstance(v, (Input, Output, Attr)) else v for k, v in vars(base).items()}
    return members | vars(cls)


def _has_attributes(bound: Call, attrs: Iterable[tuple[str, Any]]) -> bool:
    """Return whether a Call has exactly these attributes; usually they are the same objects."""
    for name, value in attrs:
        bound_value = getattr(bound, name)
        if value is not bound_value and not _identical(value, bound_value):
            return False
    return True


def _identical(value: Any, bound_value: Any) -> bool:
    """Return whether an attribute equals the bound one in type as well: as keys, 1, 1.0 and True are the same."""
    if type(value) is not type(bound_value):
        return value is None
    if type(value) is tuple:
        return all(map(_identical, value, bound_value))
    return value is bound_value or type(value) is not float or value != 0.0 or repr(value) == repr(bound_value)


C = TypeVar("C", bound="type[OperatorDefinition[Any]]")


class _OperatorDecorator(Protocol):
    """`operator` with its options. A class with the base keeps its type, which calls follow."""

    @overload
    def __call__(self, cls: C, /) -> C: ...
    @overload
    def __call__(self, cls: type[object], /) -> Operator: ...


@overload
def operator(cls: C, /) -> C: ...
@overload
def operator(cls: type[object], /) -> Operator: ...
@overload
def operator(*, name: str | None = None, version: int = 1) -> _OperatorDecorator: ...
def operator(cls: type | None = None, /, *, name: str | None = None, version: int = 1) -> object:
    """Create an operator from the class that declares it. Usable bare or with arguments.

    name: by default the class's; files and graphs refer to the operator by it. version: of the definition; it
    rises when an attribute with `since=` is added.

    >>> @ow.operator
    ... class Cube:
    ...     '''Third power.   .. math:: y = x^3'''
    ...     x = ow.Input(dtypes=ow.floating)
    ...     y = ow.Output(like="x")
    ...     def compute(op, x): return x * x * x
    ...     def gradient(op, dy): return 3.0 * op.x * op.x * dy

    raises TypeError or ValueError where the definition contradicts itself
    """

    def define(cls: type) -> Operator:
        if not isinstance(version, int) or version < 1:
            raise ValueError(f"operator {name or cls.__name__}: version is an integer of at least 1, found {version!r}")
        catalogue = cls.__module__.startswith(f"{PACKAGE}ops.")
        op = Operator(cls, name or cls.__name__, version, catalogue)
        registry.add(op)
        return op

    return define if cls is None else define(cls)
