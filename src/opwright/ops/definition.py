"""Definitions: a class body with inputs, outputs, attributes and rules becomes an `Operator`.

Lives here: `Input`, `Output`, `operator` and `Operator` with what follows from a definition (binding of attributes,
dtype checks, inference).  Not here: the catalogue's table (registry.py), running (eager/), recording (tracing/).
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import InternalError, InvalidArgumentError, SignatureError, UnimplementedError
from ..core.shapes import SCALAR, broadcast
from ..core.specs import TensorSpec
from . import dispatch, kernels, registry
from .attributes import Attr
from .call import Call, call_class

RULES = ("infer", "compute", "gradient", "kernel")
SETTINGS = {"inplace": {}, "no_need_buffer": (), "lod": "unchanged", "elementwise": False, "effect": None}
RESERVED = {"operator", "attrs", "with_inputs", "inferred", "reference", "name"}


class Input:
    """An input tensor of an operator.

    dtypes: the dtypes taken, as a tuple such as `ow.floating`, or one dtype. like: another input whose dtype this one
    must have; Python numbers given for either take the dtype of the tensor given for the other. optional: may be left
    out (None). repeated: any number of tensors, as a list. rank: the number of dimensions, or a tuple of allowed ones.
    """

    __slots__ = ("doc", "dtypes", "like", "name", "optional", "ranks", "repeated")

    def __init__(
        self,
        dtypes: Any = dtypes.any_dtype,
        *,
        like: str | None = None,
        optional: bool = False,
        repeated: bool = False,
        rank: int | Sequence[int] | None = None,
        doc: str = "",
    ) -> None:
        self.name = ""
        one = isinstance(dtypes, (DType, str, type, np.dtype))
        self.dtypes: tuple[DType, ...] = tuple(map(as_dtype, (dtypes,) if one else dtypes))
        self.like, self.optional, self.repeated, self.doc = like, optional, repeated, doc
        self.ranks = None if rank is None else (rank,) if isinstance(rank, int) else tuple(rank)

    if TYPE_CHECKING:  # in a rule `op.x` is not this declaration but what the call has there

        def __get__(self, instance: Any, owner: Any) -> Any: ...


class Output:
    """An output tensor of an operator.

    like: an input whose dtype (and, where there is no `infer`, shape) this output has. dtype: a fixed dtype instead.
    repeated: several tensors, as a list. intermediate: kept for the gradient, not given to the caller.
    """

    __slots__ = ("doc", "dtype", "intermediate", "like", "name", "repeated")

    def __init__(
        self,
        *,
        like: str | None = None,
        dtype: Any = None,
        repeated: bool = False,
        intermediate: bool = False,
        doc: str = "",
    ) -> None:
        self.name = ""
        self.like, self.repeated, self.intermediate, self.doc = like, repeated, intermediate, doc
        self.dtype = None if dtype is None else as_dtype(dtype)

    if TYPE_CHECKING:

        def __get__(self, instance: Any, owner: Any) -> Any: ...


as_dtype = dtypes.as_dtype


class Operator:
    """An operator: what it takes and gives, its rules, its kernels. Made by `@ow.operator`; called to run it.

    Calling takes the inputs, then the attributes, in the order of the definition, or by name; and `name=`.
    Eagerly it computes, under `function` it records.

    name, version, doc, formula; inputs, outputs: tuples of Input and Output; attr_defs: Attr by name;
    inplace, no_need_buffer, lod, elementwise, effect: as the class declared them.
    """

    def __init__(self, cls: type, name: str, version: int, catalogue: bool) -> None:
        self.name, self.version, self.catalogue = name, version, catalogue
        self.doc = inspect.cleandoc(cls.__doc__ or "")
        found = re.search(r"\.\. math::\s*(.+?)(?:\n\s*\n|\Z)", self.doc, re.DOTALL)
        self.formula = " ".join(found.group(1).split()) if found else ""
        parts = {k: v for k, v in vars(cls).items() if isinstance(v, (Input, Output, Attr))}
        for key, part in parts.items():
            part.name = key
        self.inputs = tuple(p for p in parts.values() if isinstance(p, Input))
        self.outputs = tuple(p for p in parts.values() if isinstance(p, Output))
        self.attr_defs: dict[str, Attr] = {k: p for k, p in parts.items() if isinstance(p, Attr)}
        body = {k: v for k, v in vars(cls).items() if k not in parts and not k.startswith("__")}
        self.inplace: Mapping[str, str] = body.pop("inplace", {})
        self.no_need_buffer: tuple[str, ...] = tuple(body.pop("no_need_buffer", ()))
        self.lod: str = body.pop("lod", "unchanged")
        self.elementwise: bool = body.pop("elementwise", False)
        self.effect: str | None = body.pop("effect", None)
        self.infer_rule: Callable[..., Any] | None = body.pop("infer", None)
        self.has_gradient_rule = "gradient" in body
        self.gradient_rule: Callable[..., Any] | None = body.pop("gradient", None)
        self.compute_rule: Any = body.pop("compute", None)
        self.kernel_rule: Any = body.pop("kernel", None)
        self.kernels: dict[kernels.KernelKey, Callable[..., Any]] = {}
        if self.kernel_rule is not None:
            self.kernels[kernels.KernelKey("cpu")] = self.kernel_rule
        self._check_definition(body)
        self.input_names = tuple(i.name for i in self.inputs)
        self.output_names = tuple(o.name for o in self.outputs)
        self._call_class = call_class(name, self.attr_defs, self.input_names, self.output_names, body)
        self._bound: dict[Any, Call] = {}
        # A user's computation need not mind NumPy's widening; the catalogue's minds it itself.
        self.narrows = (
            type(self) is Operator
            and not catalogue
            and any(o.like is not None and not o.repeated for o in self.outputs)
        )
        self.accepted: dict[Any, tuple[DType | None, ...]] = {}
        self.simple = not any(i.repeated or i.optional for i in self.inputs)
        self.quick = self.elementwise and self.simple and not any(i.ranks for i in self.inputs)
        self.single = len(self.outputs) == 1 and not self.outputs[0].repeated
        self.__name__ = self.__qualname__ = name
        self.__module__ = cls.__module__
        self.__doc__ = self.doc

    def _check_definition(self, body: Mapping[str, Any]) -> None:
        for rule in body:
            if not callable(body[rule]) and not rule.startswith("_"):
                wanted = f"Input, Output, Attr, {', '.join(SETTINGS)} or a method"
                raise TypeError(f"operator {self.name}: {rule} = {body[rule]!r} is not understood; wanted {wanted}")
        names = {i.name for i in self.inputs}
        for part in (*names, *(o.name for o in self.outputs), *self.attr_defs):
            if part in RESERVED:
                raise ValueError(
                    f"operator {self.name}: the name {part!r} is taken; name this input or attribute otherwise"
                )
        by_name = {i.name: i for i in self.inputs}
        item: Any
        for item in (*self.inputs, *self.outputs):
            seen = {item.name}
            while item.like is not None:  # like one that is like another: all are like the last
                if item.like not in names:
                    raise ValueError(f"operator {self.name}: {item.name} is like {item.like!r}, which is not an input")
                if item.like in seen:
                    raise ValueError(f"operator {self.name}: {item.name} is like {item.like!r}, in a circle")
                seen.add(item.like)
                if by_name[item.like].like is None:
                    break
                item.like = by_name[item.like].like
        for output in self.outputs:
            if self.infer_rule:
                continue
            if output.like is None and not (self.elementwise and output.dtype):
                raise ValueError(
                    f"operator {self.name}: output {output.name} needs `like=`, or the operator an `infer` rule"
                )
            leader = by_name.get(output.like or "")
            if output.repeated or (leader is not None and (leader.repeated or leader.optional)):
                what = "repeated" if output.repeated else f"like {output.like!r}, which is repeated or optional"
                raise ValueError(f"operator {self.name}: output {output.name} is {what}; that needs an `infer` rule")
        for out, inp in self.inplace.items():
            if inp not in names or all(o.name != out for o in self.outputs):
                raise ValueError(f"operator {self.name}: inplace {out!r}: {inp!r} must name an output and an input")
        for name in self.no_need_buffer:
            if name not in names:
                raise ValueError(f"operator {self.name}: no_need_buffer names {name!r}, which is not an input")
        if self.lod not in ("unchanged", "changed", "vanishes"):
            raise ValueError(f"operator {self.name}: lod is 'unchanged', 'changed' or 'vanishes', found {self.lod!r}")
        if self.effect not in (None, "read", "write", "random"):
            raise ValueError(
                f"operator {self.name}: effect is None, 'read', 'write' or 'random', found {self.effect!r}"
            )
        late = [a.name for a in self.attr_defs.values() if a.since > self.version]
        if late:
            raise ValueError(f"operator {self.name}: version {self.version} is below the `since` of {', '.join(late)}")

    # ---- calling ----------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> Any:
        names = (*self.input_names, *self.attr_defs)
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

    def bind(self, attrs: Mapping[str, Any]) -> Call:
        """The checked attributes as a Call; raises SignatureError for unknown, missing or ill-typed ones."""
        try:
            key = tuple(attrs.items())
            bound = self._bound.get(key)
            if bound is not None and all(_identical(a, getattr(bound, k)) for k, a in key):
                return bound
        except TypeError:
            key = None
        for unknown in attrs.keys() - self.attr_defs.keys():
            raise SignatureError(
                op=self.name,
                what=f"unknown argument {unknown!r}",
                found=f"{unknown}={_brief(attrs[unknown])}",
                wanted=f"among {', '.join((*self.input_names, *self.attr_defs)) or 'none'}",
            )
        call = self._call_class()
        call.operator, call.inferred = self, {}
        for name, attr in self.attr_defs.items():
            if name in attrs:
                try:
                    value = attr.convert(attrs[name])
                except TypeError as error:
                    raise SignatureError(op=self.name, what=f"attribute {name!r} has the wrong type",
                                         found=_brief(attrs[name]), wanted=str(error)) from None  # fmt: skip
                except ValueError as error:
                    raise InvalidArgumentError(op=self.name, what=f"attribute {name!r} is out of its range",
                                               found=_brief(attrs[name]), wanted=str(error)) from None  # fmt: skip
            elif attr.required:
                raise SignatureError(op=self.name, what=f"attribute {name!r} is missing", wanted=attr.type_name())
            else:
                value = attr.default
            setattr(call, name, value)
        rule = self.compute_rule
        call.reference = rule if isinstance(rule, np.ufunc) or rule is None else functools.partial(rule, call)
        if self.narrows and rule is not None:
            call.reference = self._narrowed(call.reference)
        if key is not None and len(self._bound) < 256:  # a program uses few combinations; a sweep must not leak
            self._bound[key] = call
        return call

    def _narrowed(self, reference: Callable[..., Any]) -> Callable[..., Any]:
        """A user's computation, its floating results in the dtype of the inputs they are `like`.

        NumPy widens bfloat16 and float16 beside Python numbers and other types; what is promised stays what it was.
        """
        several_in = {i.name for i in self.inputs if i.repeated}
        likes = [None if o.like is None or o.repeated or o.like in several_in else self.input_names.index(o.like)
                 for o in self.outputs]  # fmt: skip
        if all(i is None for i in likes):
            return reference

        def single(*arrays: Any) -> Any:
            result, source = reference(*arrays), arrays[likes[0]]
            return result if getattr(result, "dtype", None) is source.dtype else _as_float_of(source, result)

        def several(*arrays: Any) -> Any:
            results = reference(*arrays)
            if not isinstance(results, (tuple, list)) or len(results) != len(likes):
                return results  # whoever runs it says so
            return tuple(r if i is None else _as_float_of(arrays[i], r) for i, r in zip(likes, results))

        return single if len(likes) == 1 else several

    # ---- what inputs are taken ----------------------------------------------------------------------------------

    def accept(self, found: tuple[DType, ...]) -> tuple[DType | None, ...]:
        """For an operator with simple inputs: check their dtypes; the output dtypes that follow (None: by infer)."""
        known = self.accepted.get(found)
        if known is None:
            self.check_dtypes(found)
            by_name = dict(zip(self.input_names, found))
            known = tuple(o.dtype or (by_name[o.like] if o.like else None) for o in self.outputs)
            if self.elementwise and None in known:  # the dtype follows by `infer`, from dtypes alone: abs of a complex
                known = tuple(s.dtype for s in self.infer(self.bind({}), [TensorSpec(None, d) for d in found]))
            self.accepted[found] = known
        return known

    def check_dtypes(self, found: Sequence[Any], name: str | None = None) -> None:
        """Check the dtype of each input: a DType, None where absent, or a tuple of them where repeated.

        raises SignatureError naming operator, input, found and wanted
        """
        leaders: dict[str, tuple[str, DType]] = {}
        for declared, dtype in zip(self.inputs, found):
            if dtype is None:
                if not declared.optional:
                    raise SignatureError(op=self.name, node=name, what=f"input {declared.name!r} is missing")
                continue
            for one in dtype if isinstance(dtype, tuple) else (dtype,):
                if one not in declared.dtypes:
                    raise SignatureError(
                        op=self.name,
                        node=name,
                        what=f"input {declared.name!r} has a dtype it does not take",
                        found=one.name,
                        wanted=_dtype_names(declared.dtypes),
                        explain="OW301",
                    )
                group = declared.like or declared.name
                first, wanted = leaders.setdefault(group, (declared.name, one))
                if wanted is not one:
                    raise SignatureError(
                        op=self.name,
                        node=name,
                        what=f"inputs {first!r} and {declared.name!r} differ in dtype",
                        found={first: wanted.name, declared.name: one.name},
                        wanted="the same dtype",
                        do=f"ow.cast(..., ow.{wanted.name})",
                        explain="OW301",
                    )

    def infer(self, bound: Call, inputs: Sequence[Any], name: str | None = None) -> list[Any]:
        """The spec of each output (a list of specs for a repeated one).

        inputs: for each declared input something with `.spec` and `.constant` (a TensorSpec will do), None where
        absent, a tuple where repeated. Checks dtypes and ranks first.
        raises InvalidArgumentError naming operator, input, found and wanted
        """
        self.check_dtypes([_dtypes_of(i) for i in inputs], name)
        for declared, value in zip(self.inputs, inputs):
            if declared.ranks is not None and value is not None:
                for one in value if isinstance(value, (tuple, list)) else (value,):
                    if one.spec.shape.rank not in (None, *declared.ranks):
                        raise InvalidArgumentError(
                            op=self.name,
                            node=name,
                            what=f"input {declared.name!r} has the wrong rank",
                            found=f"{one.spec.short()}",
                            wanted=f"rank {' or '.join(map(str, declared.ranks))}",
                        )
        call = bound.with_inputs(inputs)
        try:
            specs = self.infer_rule(call) if self.infer_rule else self._infer_like(inputs)
        except InvalidArgumentError as error:
            if error.op is None:
                raise InvalidArgumentError(op=self.name, node=name, what=error.message) from None
            raise
        if not isinstance(specs, (tuple, list)) or (self.single is False and len(self.outputs) == 1):
            specs = [specs]
        if len(specs) != len(self.outputs):
            raise InternalError(
                op=self.name, what=f"infer gave {len(specs)} specs, the operator has {len(self.outputs)} outputs"
            )
        return [list(s) if isinstance(s, (tuple, list)) else _as_spec(s) for s in specs]

    def _infer_like(self, inputs: Sequence[Any]) -> list[TensorSpec]:
        by_name = {
            n: i.spec for n, i in zip(self.input_names, inputs) if i is not None and not isinstance(i, (tuple, list))
        }
        shape = None
        if self.elementwise:
            shape = functools.reduce(broadcast, (s.shape for s in by_name.values()), SCALAR)
        return [
            TensorSpec(by_name[o.like].shape if shape is None else shape, o.dtype or by_name[o.like].dtype)
            for o in self.outputs
        ]

    # ---- computing ----------------------------------------------------------------------------------------------

    def reference(self, bound: Call) -> Callable[..., Any]:
        """The reference computation with attributes filled in: arrays in, an array or tuple of arrays out.

        raises UnimplementedError for an operator that has none
        """
        if bound.reference is None:
            raise UnimplementedError(op=self.name, what="no `compute` rule is defined", do="define compute(op, ...)")
        return bound.reference

    def kernel(self, bound: Call, dtype: DType | None = None) -> Callable[..., Any]:
        """What computes a call whose first input has `dtype`: the best kernel registered, else the reference."""
        return kernels.bind(self, bound, dtype) if self.kernels else self.reference(bound)

    def evaluate(self, operands: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
        """Compute on the constants of graph operands; for constant folding."""
        arrays = [
            None if o is None else [v.constant for v in o] if isinstance(o, tuple) else o.constant for o in operands
        ]
        return self.compute(self.bind(dict(attrs)), arrays)

    def compute(self, bound: Call, arrays: Sequence[Any]) -> tuple[np.ndarray, ...]:
        """Run the reference computation; one flat tuple of arrays, whatever the outputs' structure.

        raises InvalidArgumentError naming the operator where NumPy refuses the arguments
        """
        result = dispatch.quietly(self.kernel(bound), *arrays)
        return self.flat_outputs(result)

    def flat_outputs(self, result: Any) -> tuple[Any, ...]:
        """What compute returned, as a flat tuple. Raises InternalError where it is not one result for each output."""
        if self.single:
            return (result,)
        if len(self.outputs) == 1:
            return tuple(result)
        if not self.outputs:
            return ()
        if not isinstance(result, (tuple, list)) or len(result) != len(self.outputs):
            found = f"{len(result)} results" if isinstance(result, (tuple, list)) else type(result).__name__
            raise InternalError(op=self.name, what="compute gave another number of results than there are outputs",
                                found=found, wanted=f"a tuple of {', '.join(self.output_names)}")  # fmt: skip
        if not any(o.repeated for o in self.outputs):
            return tuple(result)
        flat: list[Any] = []
        for output, value in zip(self.outputs, result):
            flat.extend(value) if output.repeated else flat.append(value)
        return tuple(flat)

    def pack_all(self, flat: Sequence[Any]) -> Sequence[Any]:
        """Flat tensors by declared output, intermediates too; a list for a repeated one."""
        if not any(o.repeated for o in self.outputs):
            return flat
        spare = len(flat) - sum(not o.repeated for o in self.outputs)
        packed: list[Any] = []
        at = 0
        for output in self.outputs:
            if output.repeated:
                packed.append(list(flat[at : at + spare]))
                at += spare
            else:
                packed.append(flat[at])
                at += 1
        return packed

    def pack_outputs(self, flat: Sequence[Any]) -> Any:
        """Flat tensors as the caller gets them: one, a tuple, a list for a repeated output; intermediates left out."""
        if self.single:
            return flat[0]
        packed = [p for p, o in zip(self.pack_all(flat), self.outputs) if not o.intermediate]
        return packed[0] if len(packed) == 1 else tuple(packed) if packed else None

    def const_operator(self) -> Operator:
        """The operator of constants, which folding makes."""
        return registry.get("Const")

    # ---- showing -------------------------------------------------------------------------------------------------

    def as_function(self, name: str) -> Callable[..., Any]:
        """The public function of this operator: the inputs, the attributes with their defaults, and `name=None`.

        Written out and compiled once, so that a call costs no argument juggling and help() shows the true signature.
        """
        required = [*self.input_names, *(k for k, a in self.attr_defs.items() if a.required)]
        optional = [k for k, a in self.attr_defs.items() if not a.required]
        if any(i.optional for i in self.inputs):
            required = [k for k in required if k not in {i.name for i in self.inputs if i.optional}]
            optional = [i.name for i in self.inputs if i.optional] + optional
        defaults = {k: self.attr_defs[k].default if k in self.attr_defs else None for k in optional}
        signature = ", ".join((*required, *(f"{k}=_defaults[{k!r}]" for k in optional), "name=None"))
        inputs = "".join(f"{n}, " for n in self.input_names)
        scope: dict[str, Any] = {"_op": self, "_call": dispatch.call, "_defaults": defaults}
        origin = f"{__file__}:{name}"  # traces take a frame of such a file name for ours, not the user's
        if not self.attr_defs and not optional and len(self.inputs) in _PLAIN:
            scope["_bound"] = self.bind({})
            code = _PLAIN[len(self.inputs)].__code__.replace(
                co_name=name, co_qualname=name, co_filename=origin, co_varnames=(*self.input_names, "name")
            )
            function: Any = types.FunctionType(code, scope, name, (None,))
        else:
            attrs = ", ".join(f"{n!r}: {n}" for n in self.attr_defs)
            scope["_bound"] = None if attrs else self.bind({})
            bound = f"_op.bind({{{attrs}}})" if attrs else "_bound"
            source = f"def {name}({signature}):\n    return _call(_op, ({inputs}), {bound}, name)\n"
            exec(compile(source, origin, "exec"), scope)
            function = scope[name]
        function.__doc__, function.__module__, function.operator = self.doc, self.__module__, self
        registry.name_function(name, self)
        return function

    def signature(self) -> str:
        """The call in words: LeakyClip(x, *, alpha: float = 0.0)."""
        parts = [i.name + ("=None" if i.optional else "") for i in self.inputs]
        if self.attr_defs:
            parts.append("*")
        parts += [
            f"{k}: {a.type_name()}" + ("" if a.required else f" = {a.default!r}") for k, a in self.attr_defs.items()
        ]
        return f"{self.name}({', '.join(parts)})"

    def __repr__(self) -> str:
        return f"<operator {self.signature()}, version {self.version}>"

    def __reduce__(self) -> Any:
        return registry.get, (self.name,)

    def __hash__(self) -> int:
        return id(self) >> 4


def _identical(given: Any, kept: Any) -> bool:
    """Whether an attribute given now is the one kept under an equal key: to a dict 1, 1.0 and True are the same."""
    if type(given) is not type(kept):
        return given is None
    if type(given) is tuple:
        return all(map(_identical, given, kept))
    return given is kept or type(given) is not float or given != 0.0 or repr(given) == repr(kept)


# The public functions of operators with nothing but inputs, under other names: compiling each from text would take
# 90 us, and there are more than a hundred.
_op: Any = None
_call: Any = None
_bound: Any = None


def _plain1(x: Any, name: Any = None) -> Any:
    return _call(_op, (x,), _bound, name)


def _plain2(x: Any, y: Any, name: Any = None) -> Any:
    return _call(_op, (x, y), _bound, name)


def _plain3(x: Any, y: Any, z: Any, name: Any = None) -> Any:
    return _call(_op, (x, y, z), _bound, name)


_PLAIN = {1: _plain1, 2: _plain2, 3: _plain3}


def _as_float_of(source: Any, result: Any) -> Any:
    """`result` in the dtype of array `source` (or of the first of several) where both are floating and differ."""
    if isinstance(source, (list, tuple)):
        source = source[0] if source else None
    found, wanted = getattr(result, "dtype", None), getattr(source, "dtype", None)
    if found is None or wanted is None or found == wanted:
        return result
    return result.astype(wanted) if _FLOATS.issuperset((found, wanted)) else result


_FLOATS = frozenset(d.np for d in dtypes.floating)


def _brief(value: Any) -> str:
    """A value in an error: its type, and itself where that is short."""
    if isinstance(value, np.ndarray):
        return f"array of {value.dtype} {list(value.shape)}"
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _dtype_names(found: Iterable[DType]) -> str:
    return "one of " + ", ".join(d.name for d in found)


def _dtypes_of(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        return tuple(v.spec.dtype for v in value)
    return value.spec.dtype


def _as_spec(spec: Any) -> TensorSpec:
    return spec if isinstance(spec, TensorSpec) else spec.spec


@overload
def operator(cls: type, /) -> Operator: ...
@overload
def operator(*, name: str | None = None, version: int = 1) -> Callable[[type], Operator]: ...
def operator(cls: type | None = None, /, *, name: str | None = None, version: int = 1) -> Any:
    """Make an operator of a class that declares it. Usable bare or with arguments.

    name: by default the class's; it is what files and graphs know the operator by. version: of the definition; it
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
        catalogue = cls.__module__.startswith(f"{__name__.partition('.')[0]}.ops.")
        made = Operator(cls, name or cls.__name__, version, catalogue)
        registry.add(made)
        return made

    return define if cls is None else define(cls)


NO_ATTRS: Mapping[str, Any] = MappingProxyType({})
