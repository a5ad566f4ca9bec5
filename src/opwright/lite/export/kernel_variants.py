"""Variants of an exported kernel: one C function for each choice of dtypes and of attributes with fixed values.

Lives here: `OperatorExport` and its parts, `scalar_export_of`; the reasons why an operator cannot be exported.
Not here: C (fragments.py, options.py, source.py; the kernel's own is in compiler/c_source).

Attributes are constants of a kernel. In C, floats and ints of any value are read from each node and passed to the
function; attributes with few values (bool, `one_of`, or a list in `attrs=`) select a function.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...compiler.c_source.expressions import c_type
from ...compiler.c_source.kernels import SYMBOLIC, AttributeNeeded, ScalarSource, scalar_source
from ...compiler.c_source.statements import KEYWORDS
from ...compiler.kernel import Kernel
from ...compiler.language.llvm_types import ELEMENT_DTYPES, KIND
from ...compiler.language.operators import LOWER
from ...core import dtypes as core_dtypes
from ...core.class_names import spaced_words
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError, OpError, SignatureError, UnimplementedError
from ...ops.attributes import Attr
from ...ops.definition import Operator

MOST_CHOICES = 64
_PLAIN = (float, int, bool, str)


@dataclass(frozen=True)
class AttributeOption:
    """An attribute in C.

    field: of the struct. choices: its values, if it has few; among them None for "not given", and `float` or `int` for
    any other number. later: the type of a number that nodes specify, `float` or `int`. passed: whether it is a
    parameter of the kernel.
    """

    attr: Attr[Any]
    field: str
    choices: tuple[Any, ...]
    later: type | None
    passed: bool

    @property
    def name(self) -> str:
        return self.attr.name


@dataclass(frozen=True)
class KernelVariant:
    """One function: the dtypes of its inputs, None for an omitted one; the attributes that are fixed in it; the index
    of that choice."""

    inputs: tuple[DType | None, ...]
    choice: int
    fixed: Mapping[str, Any]
    source: ScalarSource

    @property
    def present(self) -> list[tuple[int, DType]]:
        """The inputs that are present, with their positions."""
        return [(k, d) for k, d in enumerate(self.inputs) if d is not None]


@dataclass
class OperatorExport:
    """An operator as C.

    stem: prefix of the names of its C functions. choices: number of combinations of fixed attributes. refused: dtypes
    that it accepts in Python and not here, with the reason. narrow: attributes that become integers other than int64,
    with their dtype.
    """

    op: Operator
    name: str
    stem: str
    parameters: tuple[str, ...]
    options: tuple[AttributeOption, ...]
    cases: list[KernelVariant] = field(default_factory=list)
    choices: int = 1
    refused: dict[tuple[DType | None, ...], str] = field(default_factory=dict)
    narrow: dict[str, DType] = field(default_factory=dict)

    @property
    def optional(self) -> list[int]:
        """The positions of inputs that may be omitted."""
        return sorted({k for case in self.cases for k, d in enumerate(case.inputs) if d is None})

    def words(self) -> str:
        """Describe the dtypes of the inputs."""
        each = dict.fromkeys(" and ".join(d.name for _, d in c.present) for c in self.cases)
        return ", or ".join(each)


def c_name(text: str) -> str:
    """Return text as a C identifier."""
    word = re.sub(r"\W", "_", text, flags=re.ASCII)
    return f"op_{word}" if not word or word[0].isdigit() else word


def stem_of(name: str) -> str:
    """Return an operator's name as a prefix of function names: LeakyClip is leaky_clip."""
    return re.sub(r"_+", "_", spaced_words(c_name(name))).strip("_").lower() or "op"


def scalar_export_of(op: Operator, attrs: Mapping[str, Any]) -> OperatorExport:
    """Return the parts of the operator's C.

    attrs: by name, a value or a list of them, for which the C is generated. raises UnimplementedError naming operator,
    part and remedy for anything that C cannot express; InvalidArgumentError or SignatureError for invalid attrs
    """
    function, parameters, used = _kernel_of(op)
    _check_inputs(op, parameters)
    check_names(op, attrs)
    options = tuple(o for a in op.attr_defs.values() if (o := option_of(op, a, attrs, a.name in used)) is not None)
    export = OperatorExport(op, c_name(op.name), stem_of(op.name), parameters, options)
    chosen = [o for o in options if o.choices and o.passed]
    combinations = list(itertools.product(*(o.choices for o in chosen)))
    export.choices = len(combinations)
    if len(combinations) > MOST_CHOICES:
        raise UnimplementedError(
            op=op.name,
            what="its attributes have too many combinations, each a function of C",
            found=len(combinations),
            wanted=f"at most {MOST_CHOICES}",
            do="attrs={...} with the values that are needed",
        )
    for dtypes in _dtypes_of(op, getattr(op.kernel_rule, "optional", frozenset())):
        try:
            export.cases += _cases(export, function, dtypes, chosen, combinations)
        except AttributeNeeded as error:
            name = error.attribute
            raise UnimplementedError(
                op=op.name,
                what=f"its kernel asks Python for the value of attribute {name!r}, which C code reads from each node",
                do=f"export it for known values: attrs={{{name!r}: [...]}}",
            ) from error
        except (UnimplementedError, SignatureError, TypeError, ValueError) as error:
            export.refused[dtypes] = _reason(error)
    export.narrow = {name: core_dtypes.int32 for case in export.cases for name in case.source.narrow}
    if not export.cases:
        raise UnimplementedError(
            op=op.name,
            what="its kernel has no form in C for any of its dtypes",
            found={dtype_words(k): v for k, v in export.refused.items()}
            or ", ".join(d.name for i in op.inputs for d in i.dtypes),
            wanted=f"inputs among {', '.join(d.name for d in ELEMENT_DTYPES)}",
            do="write the kernel on these dtypes, element by element; where an attribute is in "
            "the way, attrs={...} with its values",
        )
    return export


def dtype_words(dtypes: Sequence[DType | None]) -> str:
    """Return the dtypes of inputs as text."""
    return ", ".join("left out" if d is None else d.name for d in dtypes)


def _reason(error: Exception) -> str:
    if isinstance(error, OpError):
        return " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {error}"[:200]


def _cases(
    export: OperatorExport,
    function: Callable[..., Any],
    dtypes: tuple[DType | None, ...],
    chosen: Sequence[AttributeOption],
    combinations: Sequence[tuple[Any, ...]],
) -> list[KernelVariant]:
    op = export.op
    later = {o.name: o.later for o in export.options if o.passed and not o.choices}
    variants = []
    present = [d for d in dtypes if d is not None]
    parameters = [n for n, d in zip(export.parameters, dtypes) if d is not None]
    left_out = dict.fromkeys(n for n in export.parameters if n not in parameters)
    kinds = ["none" if d is None else d.short for d in dtypes]
    for k, values in enumerate(combinations):
        fixed = {o.name: v for o, v in zip(chosen, values)}
        name = "_".join((export.stem, *kinds, *([str(k)] if len(combinations) > 1 else [])))
        source = scalar_source(function, op.name, name, present, {**later, **fixed, **left_out}, parameters)
        declared = op.outputs[0]
        gives = declared.dtype or (dtypes[_place(op, declared.like)] if declared.like else None)
        if gives is not None and gives is not source.dtype:
            raise SignatureError(
                op=op.name,
                what=f"its kernel returns another dtype than output {declared.name!r} has",
                found=source.dtype.name,
                wanted=gives.name,
            )
        variants.append(KernelVariant(dtypes, k, fixed, source))
    return variants


def _place(op: Operator, name: str) -> int:
    return op.input_names.index(name)


def check_names(op: Operator, attrs: Mapping[str, Any]) -> None:
    """Raise SignatureError for an attribute that the operator does not have."""
    unknown = [n for n in attrs if n not in op.attr_defs]
    if unknown:
        raise SignatureError(
            op=op.name, what=f"it has no attribute {unknown[0]!r}", wanted=f"among {', '.join(op.attr_defs) or 'none'}"
        )


# ---- restrictions -----------------------------------------------------------------------------------------------


def _kernel_of(op: Operator) -> tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...]]:
    """Return the function on scalars, the names of its inputs, and its attributes."""
    kernel = op.kernel_rule
    if isinstance(kernel, Kernel):
        return kernel.function, kernel.inputs, kernel.attrs
    if kernel is None and op.catalogue and op.name in LOWER and op.profile.single:
        return op, op.input_names, tuple(op.attr_defs)  # the catalogue's element-wise operators are kernels themselves
    if kernel is None:
        raise UnimplementedError(
            op=op.name,
            what="it has no kernel: NumPy's code cannot be carried to C",
            do="give the class `@ow.kernel def kernel(x, *, ...)` on scalars",
        )
    raise UnimplementedError(
        op=op.name,
        what="its kernel cannot be translated to C",
        found=repr(kernel)[:80],
        do="give the class `@ow.kernel def kernel(...)`",
    )


def _check_inputs(op: Operator, parameters: tuple[str, ...]) -> None:
    """Raise SignatureError for a kernel that lacks inputs. (Definitions ensure one result and single inputs.)"""
    if len(parameters) != len(op.inputs) or not parameters:
        raise SignatureError(
            op=op.name,
            what="its kernel does not take its inputs",
            wanted=", ".join(op.input_names),
            found=", ".join(parameters) or "none",
        )


def _dtypes_of(op: Operator, optional: frozenset[str]) -> list[tuple[DType | None, ...]]:
    """Return the choices of the inputs' dtypes that the operator declares and kernels support; each of `optional`, the
    kernel's parameters that may be None, is also omitted."""
    leaders = [i.name for i in op.inputs if i.like is None]
    allowed = {i.name: [d for d in ELEMENT_DTYPES if d in i.dtypes] for i in op.inputs}
    choices: list[tuple[DType | None, ...]] = []
    for values in itertools.product(*(allowed[n] for n in leaders)):
        by_name = dict(zip(leaders, values))
        dtypes = tuple(by_name[i.like or i.name] for i in op.inputs)
        if all(d in i.dtypes for d, i in zip(dtypes, op.inputs)):
            ways = [(d, None) if i.optional and i.name in optional else (d,) for d, i in zip(dtypes, op.inputs)]
            choices += list(itertools.product(*ways))
    return list(dict.fromkeys(choices))


# ---- attributes -------------------------------------------------------------------------------------------------


def option_of(op: Operator, attr: Attr[Any], attrs: Mapping[str, Any], passed: bool) -> AttributeOption | None:
    """Return an attribute in C; None for one that the kernel does not use and C cannot read."""
    kind: Any = attr.type
    word = _field(attr.name)
    if attr.name in attrs:
        return AttributeOption(attr, word, _listed_values(op, attr, attrs[attr.name]), None, passed)
    if kind is bool:
        choices: tuple[Any, ...] = (False, True)
    elif attr.check is not None and attr.check.form[:1] == ("one_of",) and kind in _PLAIN:
        choices = tuple(attr.convert(c) for c in attr.check.form[1:])
    elif kind is float or kind is int:
        _check_is_c(op, attr)
        return AttributeOption(attr, word, (None, kind) if attr.default is None else (), kind, passed)
    elif not passed:
        return None
    else:
        way_out = (
            f"attrs={{{attr.name!r}: [...]}} with the values that are needed"
            if kind in _PLAIN
            else ("an attribute that is a float, int, bool or str")
        )
        raise UnimplementedError(
            op=op.name,
            what=f"attribute {attr.name!r} may have any value of a type that C code does not read from a node",
            found=attr.type_name(),
            do=way_out,
        )
    return AttributeOption(attr, word, (None, *choices) if attr.default is None else choices, None, passed)


_RESERVED = KEYWORDS | {"state", "error", "inputs", "steps", "output", "n", "i", "out", "one", "how", "number", "text"}


def _field(name: str) -> str:
    """Return an attribute's name in C, made unique."""
    word = c_name(name)
    other = word in _RESERVED or re.search(r"^in\d|^ow_|^OW_|^TfLite|^kTfLite|(_choice|_given|_attr)$", word)
    return f"{word}_attr" if other else word


def _listed_values(op: Operator, attr: Attr[Any], values: Any) -> tuple[Any, ...]:
    """Return the values that the user lists. Raises InvalidArgumentError for invalid ones."""
    if attr.type not in _PLAIN:
        raise UnimplementedError(
            op=op.name,
            what=f"attribute {attr.name!r} cannot be read from a node in C",
            found=attr.type_name(),
            wanted="float, int, bool, str",
            do="leave it out of the kernel",
        )
    result: list[Any] = []
    for value in values if isinstance(values, list) else [values]:
        try:
            converted = attr.convert(value)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                op=op.name, what=f"attribute {attr.name!r} cannot be that", wanted=str(error), found=repr(value)[:80]
            ) from None
        if converted not in result:
            result.append(converted)
    if not result:
        raise InvalidArgumentError(op=op.name, what=f"attribute {attr.name!r} has no values", wanted="one at least")
    return tuple(result)


def _check_is_c(op: Operator, attr: Attr[Any]) -> None:
    """Raise UnimplementedError for a check that is a Python function."""
    forms = [attr.check.canonical_form] if attr.check is not None else []
    while forms:
        name, *rest = forms.pop()
        if name == "all":
            forms += rest
        elif name not in CONDITIONS:
            raise UnimplementedError(
                op=op.name,
                what=f"attribute {attr.name!r} has a check that C code cannot make",
                found=attr.check.wanted if attr.check else "",
                wanted=", ".join(CONDITIONS),
                do=f"one of these checks, or attrs={{{attr.name!r}: [...]}}",
            )


CONDITIONS = {
    "at_least": "{v} >= {0}",
    "greater_than": "{v} > {0}",
    "at_most": "{v} <= {0}",
    "less_than": "{v} < {0}",
    "between": "{0} <= {v} && {v} <= {1}",
    "finite": "isfinite((double){v})",
}
"""Checks of attributes as C conditions."""


def condition(form: tuple[Any, ...], v: str) -> list[str]:
    """Return a check as C conditions that must all hold."""
    name, *bounds = form
    if name == "all":
        return [c for part in bounds for c in condition(part, v)]
    return [CONDITIONS[name].format(*map(c_number, bounds), v=v)]


def c_number(x: Any) -> str:
    """Return a bound in C."""
    if isinstance(x, int):
        return str(x) if abs(x) < 2**31 else f"INT64_C({x})" if abs(x) < 2**63 else f"{float(x)!r}"
    if math.isinf(x):
        return "INFINITY" if x > 0 else "-INFINITY"
    return "NAN" if math.isnan(x) else repr(float(x))


def later_type(option: AttributeOption) -> str:
    """Return the C type of a number that nodes specify."""
    assert option.later is not None
    return c_type(KIND[SYMBOLIC[option.later]])
