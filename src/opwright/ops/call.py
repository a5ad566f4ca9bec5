"""Calls of an operator's rules: the view of a call (`op`), the version that a call needs, errors.

Lives here: `Call`, with the attributes, inputs and outputs by name, and `call_class`, which derives a slotted subclass
of it for each operator; `CallProfile`, which each operator has once; `least_version`, the outputs added to a node read
from a file, and the error for an invalid node; `rule_failure`, `contract_violation`, `call_rule`, the comparison of
results with inferred types, and the name of a kernel in errors.
Not here: the definition itself (definition.py), execution of rules (definition.py, autodiff.py, eager/, scopes/,
lite/), added inputs and attributes, where text is read (graph/parser.py), allowed changes between versions
(spec_changes.py), the versions of builtin `.tflite` operators (lite/format/versions.py).

Every caller of a rule (`infer`, `compute`, a kernel, `gradient`, ...) passes its exceptions through `rule_failure`, so
that the error names the operator and the rule in every way of execution. A violated contract is a mistake in the
definition: DefinitionError for a user-defined operator, InternalError for one of this package.

The version follows from the declarations and is written nowhere else. A part with `since=2` requires version 2 if it is
used: an attribute other than its default, an input that is present, an output that is read. If it depends on types or
shapes, the definition has a method `version_needed(op)`. A version that neither a part nor that method explains changed
something undeclared, so every call needs it.

>>> def version_needed(op):
...     return 2 if op.x.dtype == ow.int8 else 1

An older node lacks the additions of later versions, which can only be optional: attributes get their default (the older
version's behaviour), optional inputs are absent, intermediate outputs are computed and not read. Additions come last,
so that the parts in the file keep their positions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..core.errors import (
    DefinitionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    SignatureError,
    also,
    status_class,
)
from ..graph import Graph, Node
from ..graph.ir import same_attr
from ..scalar.table import OF_OPERATOR

if TYPE_CHECKING:
    from ..core.dtypes import DType
    from .definition import Operator
    from .kernel_operands import KernelOperand
    from .operator_inference import OperatorInference


class Call:
    """One call of one operator, as seen by its rules.

    In `compute` it has the attributes; in `infer` also the inputs, each with `.spec`, `.dtype`, `.shape` and
    `.constant` (a NumPy array where the value is known, else None); in `gradient` inputs and outputs are tensors.
    """

    __slots__ = ("_recorder", "_short", "_unneeded", "chosen", "inferred", "operator", "reference", "remembered")
    operator: Any
    chosen: dict[Any, Any]  # what computes it, by dtype, with the kernels that it was made of (kernels.py)
    inferred: dict[Any, Any]  # output specs by dtypes and shapes of eager inputs
    reference: Any  # the reference computation with these attributes, or None where the operator has none
    remembered: dict[Any, Any]  # what runs on scopes remember, by dtypes and shapes of inputs (scopes/fast_path.py)
    _recorder: Any  # a function that records eager calls, False for none, their number until it is built
    _short: Any  # a function of eager tensors that may decline them, False for none, None until it is built
    _unneeded: Collection[str]  # inputs whose gradients have no use, in a gradient rule
    _attr_names: tuple[str, ...] = ()
    _input_names: tuple[str, ...] = ()
    _output_names: tuple[str, ...] = ()

    @property
    def attrs(self) -> dict[str, Any]:
        """All attributes by name."""
        return {name: getattr(self, name) for name in self._attr_names}

    def with_inputs(self, inputs: Iterable[Any], outputs: Iterable[Any] = ()) -> Call:
        """Return a copy with inputs and outputs."""
        new = self._copied()
        for name, value in zip(self._input_names, inputs):
            setattr(new, name, value)
        for name, value in zip(self._output_names, outputs):
            setattr(new, name, value)
        return new

    def with_all(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Call:
        """Return `with_inputs(inputs, outputs)` in a third of its time, for as many values as are declared."""
        cls: Any = type(self)
        if cls._fill is None:
            cls._fill = _filler(cls)
        new: Call = cls._fill(self, inputs, outputs)
        return new

    _fill: Any = None

    def _copied(self) -> Call:
        """Return a copy with the operator and the attributes alone."""
        new = type(self)()
        new.operator, new._unneeded = self.operator, ()
        for name in self._attr_names:
            setattr(new, name, getattr(self, name))
        return new

    def needs_gradient(self, name: str) -> bool:
        """Return whether the gradient of an input is used: a gradient rule may return None for one that is not."""
        return name not in self._unneeded

    def dtype_of(self, *slots: str, skip_empty: bool = False) -> DType:
        """Return the checked dtype of the tensors in the first of these inputs that has any, for `expected_kernel_key`.

        skip_empty: skip uninitialized members of a list; the kernel then receives the list without them.
        raises as `expected_kernel_key` does
        """
        op = self.operator
        for slot in slots:
            if slot not in op.input_names:
                raise contract_violation(
                    op,
                    "expected_kernel_key",
                    f"asks for the dtype of {slot!r}, which is not an input",
                    wanted=f"one of {', '.join(op.input_names)}",
                )
            declared = op.inputs[op.input_names.index(slot)]
            value = getattr(self, slot)
            operands = [one for one in members(value) if one.is_initialized or one.absent or not skip_empty]
            if value is None and not declared.optional:
                raise missing_input(op, declared)
            for one in operands:
                if not declared.mixed:
                    check_dtypes_agree(op, operands[0], one)
            if operands:
                return operands[0].dtype
        raise NotFoundError(
            op=op.name,
            what=f"no tensor in {', '.join(slots)}",
            found="nothing that is initialized",
            wanted="at least one, for its dtype",
        )

    def __repr__(self) -> str:
        attrs = ", ".join(f"{k}={v!r}" for k, v in self.attrs.items())
        return f"{self.operator.name}({attrs})"


def _filler(cls: type[Call]) -> Callable[..., Call]:
    """Return the function of `with_all`, without loops over names: they take 0.1 us each."""
    parts = (*cls._input_names, *cls._output_names)
    if not all(name.isidentifier() and not iskeyword(name) for name in (*cls._attr_names, *parts)):
        return cls.with_inputs
    copied = ["operator", *cls._attr_names]
    lines = [
        "def fill(call, inputs, outputs):",
        "    new = make(cls)",
        "    new._unneeded = ()",
        *(f"    new.{name} = call.{name}" for name in copied),
        *(f"    new.{name} = inputs[{i}]" for i, name in enumerate(cls._input_names)),
        *(f"    new.{name} = outputs[{i}]" for i, name in enumerate(cls._output_names)),
        "    return new",
    ]
    scope: dict[str, Any] = {"make": object.__new__, "cls": cls}
    exec(compile("\n".join(lines), f"<fill {cls.__name__}>", "exec"), scope)
    fill: Callable[..., Call] = scope["fill"]
    return staticmethod(fill)


def call_class(
    name: str, attrs: Iterable[str], inputs: Iterable[str], outputs: Iterable[str], methods: dict[str, Any]
) -> type[Call]:
    """Return the subclass of Call for one operator. methods: helper functions of the user's class, callable as
    op.helper().
    """
    attrs, inputs, outputs = tuple(attrs), tuple(inputs), tuple(outputs)
    body = {
        **methods,
        "__slots__": (*attrs, *inputs, *outputs),
        "_attr_names": attrs,
        "_input_names": inputs,
        "_output_names": outputs,
    }
    return type(name, (Call,), body)


def missing_input(op: Any, declared: Any) -> SignatureError:
    """Return the error for a required input without a tensor."""
    return SignatureError(
        op=op.name,
        what=f"input {declared.name!r} is missing",
        found="no variable",
        wanted=f"a tensor; the call is {op.signature()}",
    )


def check_dtypes_agree(op: Any, leader: KernelOperand, one: KernelOperand) -> None:
    """Raise InvalidArgumentError for operands of two dtypes that must agree."""
    if leader.dtype is one.dtype:
        return
    slots = leader.slot if leader.slot == one.slot else f"{leader.slot}, {one.slot}"
    shown = [f"{o.slot}{f' {o.name!r}' if o.name != o.slot else ''} {o.dtype.name}" for o in (leader, one)]
    raise InvalidArgumentError(
        op=op.name,
        what=f"tensors of different dtypes in {slots}, which must have one",
        found=", ".join(shown),
        wanted="one dtype",
        do="ow.cast one of them",
    )


def members(value: Any) -> tuple[KernelOperand, ...]:
    return () if value is None else value if isinstance(value, tuple) else (value,)


class CallProfile:
    """Properties of an operator's calls that follow from its definition, computed once for the paths of every call.

    positions: names of the inputs and attributes by position: the inputs, then the attributes, then the additions of
    later versions, so that older calls stay right. plain_count: number of inputs of a call by position without
    attributes, -1 where there is no such call.
    simple: no input is repeated or optional; listed: the only input is repeated. quick: element-wise, simple, of any
    ranks. alike: quick, with all inputs of one dtype; paired: with two of them. single: one output, not repeated.
    tensors_only: outputs whose dtype `infer` determines.
    narrows: results are cast to the dtype they are `like`; a user's computation need not mind NumPy's widening, the
    catalogue's minds it itself. writes_out: `compute` returns one array and can write it into a given one, `out=`.
    inplace_places: positions of the inputs whose memory the only output may take, best first.
    keeps_calls: bound attributes may be kept: none of them refers to a graph or an object.
    plain_gradient: simple, single, of this package, and its gradient a rule without restrictions.
    vector_cost: of a quick one of this package with one output, the cost of its row in scalar/table.py; 0 for others.
    index_places: positions of the inputs that are integers by declaration: axes, sizes, indices.
    """

    __slots__ = (
        "alike",
        "index_places",
        "inplace_places",
        "keeps_calls",
        "listed",
        "narrows",
        "paired",
        "plain_count",
        "plain_gradient",
        "positions",
        "quick",
        "simple",
        "single",
        "tensors_only",
        "vector_cost",
        "writes_out",
    )

    def __init__(self, op: Operator) -> None:
        inputs, outputs = op.inputs, op.outputs
        parts: tuple[Any, ...] = (*inputs, *op.attr_defs.values())
        newer = sorted(parts, key=lambda part: part.since)
        self.positions = tuple(part.name for part in newer)
        self.plain_count = -1 if any(i.since > 1 for i in inputs) else len(inputs)
        self.simple = not any(i.repeated or i.optional for i in inputs)
        self.listed = len(inputs) == 1 and inputs[0].repeated
        self.quick = op.elementwise and self.simple and not any(i.ranks for i in inputs)
        self.alike = self.quick and all(i.like == inputs[0].name for i in inputs[1:])
        self.paired = self.alike and len(inputs) == 2
        self.single = len(outputs) == 1 and not outputs[0].repeated
        self.tensors_only = tuple(
            k
            for k, o in enumerate(outputs)
            if o.dtype is None and o.like is None and o.kind is None and op.kinds_rule is None
        )
        self.narrows = not op.trusted and any(o.like is not None and not o.repeated for o in outputs)
        self.writes_out = self.single and _takes_out(op.compute_rule)
        declared = op.inplace.get(op.output_names[0], ()) if outputs else ()
        self.inplace_places = tuple(map(op.input_names.index, (declared,) if isinstance(declared, str) else declared))
        rule = op.gradient_rule is not None and not op.no_need_buffer
        self.plain_gradient = rule and self.simple and self.single and op.trusted
        self.index_places = tuple([j for j, i in enumerate(inputs) if i.dtypes and all(d.is_integer for d in i.dtypes)])
        row = OF_OPERATOR.get(op.name) if op.catalogue and self.quick and self.single else None
        self.vector_cost = 0 if row is None else row.cost
        self.keeps_calls = not any(a.type in (object, Graph, [object], [Graph]) for a in op.attr_defs.values())


def _takes_out(rule: Any) -> bool:
    """Return whether a computation can write its one result into an array: a keyword-only parameter `out`."""
    if isinstance(rule, np.ufunc):
        return rule.nout == 1
    code = getattr(rule, "__code__", None)
    if code is None:
        return False
    first = code.co_argcount
    return "out" in code.co_varnames[first : first + code.co_kwonlyargcount]


R = TypeVar("R")


def rule_failure(
    op: OperatorInference,
    rule: str,
    error: Exception,
    *,
    node: str | None = None,
    at: str | None = None,
    found: Any = None,
) -> OpError:
    """Return the error to raise for an exception raised by a rule of an operator; chain it with `failure_cause`.

    An OpError without an operator gets this one; one that names another operator, which the rule called, gets a line
    that names the rule. Any other exception becomes the OpError of its status, which is also an instance of the
    exception's builtin class: `except KeyError` still catches it.
    """
    if isinstance(error, OpError):
        if error.op is None:
            return type(error)(op=op.name, node=node, at=at, what=error.message).with_traceback(error.__traceback__)
        line = f"\n  in      {rule} of {op.name}"
        if error.op != op.name and not op.trusted and line not in error.message:
            error.args = (error.message + line, *error.args[1:])
        return error
    cls = status_class(error, InvalidArgumentError)
    base = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    if cls is not OutOfRangeError and base is not Exception:  # a StopIteration would end a caller's generator
        with contextlib.suppress(TypeError):  # incompatible layouts
            cls = also(cls, base)
    raised = f"{rule} raised {type(error).__name__}"
    what = f"{raised}: {error}" if str(error) else raised
    try:
        return cls(op=op.name, node=node, at=at, what=what, found=found)
    except TypeError:  # a builtin class with a constructor of its own, as UnicodeDecodeError
        return status_class(error, InvalidArgumentError)(op=op.name, node=node, at=at, what=what, found=found)


def failure_cause(error: Exception, raised: Exception) -> BaseException | None:
    """Return what `raise raised from ...` chains: the rule's own exception where another one is raised for it."""
    return error.__cause__ if raised is error or isinstance(error, OpError) else error


def contract_violation(
    op: OperatorInference,
    rule: str,
    what: str,
    *,
    node: str | None = None,
    found: Any = None,
    wanted: Any = None,
    do: str | None = None,
) -> OpError:
    """Return the error for a rule whose result violates the contract of the definition. what: after the rule's name."""
    cls = InternalError if op.trusted else DefinitionError
    return cls(op=op.name, node=node, what=f"{rule} {what}", found=found, wanted=wanted, do=do)


def call_rule(op: Operator, rule: str, function: Callable[..., R], *args: Any, node: str | None = None) -> R:
    """Call a rule of an operator; an exception that it raises names the operator and the rule."""
    try:
        return function(*args)
    except Exception as error:
        failure = rule_failure(op, rule, error, node=node)
        if failure is error:
            raise
        raise failure from failure_cause(error, failure)


def mismatch(results: Sequence[Any], promised: Sequence[Any]) -> dict[str, Any] | None:
    """Return the difference of flat results from the inferred types, as parts of an error; None if they agree.

    promised: for each result its TensorSpec, or its DType alone where the shape is not checked.
    """
    if len(results) != len(promised):
        return {"what": "gave another number of results than infer", "found": len(results), "wanted": len(promised)}
    for result, spec in zip(results, promised):
        dtype = getattr(spec, "dtype", spec)
        if result is None or result is NotImplemented:
            return {"what": "gave no result", "found": result, "wanted": spec, "do": "return an array"}
        got = getattr(result, "dtype", None)
        got = getattr(got, "np", got)  # of a tensor
        if got is not None and np.dtype(got) != dtype.np:
            return {
                "what": "gave another dtype than was inferred",
                "found": np.dtype(got).name,
                "wanted": dtype.name,
                "do": f"y.astype({dtype.np.name!r})",
            }
        if spec is not dtype and not spec.shape.is_compatible_with(tuple(np.shape(result))):
            return {"what": "gave another shape than was inferred", "found": np.shape(result), "wanted": spec.shape}
    return None


def kernel_name(op: Operator, key: Any, kernel: Any) -> str:
    """Return the name of a kernel in errors: its key, and its fallback if it may decline a call."""
    if kernel is op.kernel_rule:
        return "kernel"
    code = getattr(kernel, "__code__", None)
    declines = code is not None and "NotImplemented" in code.co_names
    return f"the kernel {key}" + (", or what serves where it declines," if declines else "")


def least_version(op: Any, attrs: Mapping[str, Any], operands: Sequence[Any], read: Sequence[bool] = ()) -> int:
    """Return the lowest version of `op` that has everything a call uses.

    operands: one for each declared input, None or () where it is left out. read: for each declared output whether
    it is read; by default intermediate ones are not.
    raises DefinitionError where the definition's version_needed gives what is not a version of it
    """
    needed = _unaccounted(op)
    for name, attr in op.attr_defs.items():
        if attr.since > needed and name in attrs and not same_attr(attrs[name], attr.default):
            needed = attr.since
    for declared, operand in zip(op.inputs, operands):
        if operand is not None and not (isinstance(operand, tuple) and not operand):
            needed = max(needed, declared.since)
    for declared, is_read in zip(op.outputs, read):
        if is_read:
            needed = max(needed, declared.since)
    if op.version_rule is None:
        return needed
    by_rule = call_rule(op, "version_needed", op.version_rule, op.bind(dict(attrs)).with_inputs(operands))
    if type(by_rule) is not int or not 1 <= by_rule <= op.version:
        raise contract_violation(
            op,
            "version_needed",
            "gave what is not a version of the operator",
            found=repr(by_rule),
            wanted=f"1..{op.version}",
        )
    return max(needed, by_rule)


def _unaccounted(op: Any) -> int:
    """Return the greatest version that no declaration explains; 1 if all are explained."""
    explained = {part.since for part in (*op.inputs, *op.outputs, *op.attr_defs.values())}
    version = 1 if op.version_rule is not None else op.version
    while version > 1 and version in explained:
        version -= 1
    return int(version)


def with_outputs(graph: Graph, node: Node, attrs: Mapping[str, Any], specs: Sequence[Any]) -> Node | None:
    """Return the node with these attributes and the intermediate outputs that it lacks at its end. None if it lacks
    others.

    specs: what inference gives, one entry for each declared output, a list for a repeated one
    """
    present = 0
    for i, (declared, spec) in enumerate(zip(node.op.outputs, specs)):
        if present == len(node.outputs) and all(o.since > 1 for o in node.op.outputs[i:]):
            break
        present += len(spec) if declared.repeated else 1
    else:
        return node.replaced(attrs=attrs) if present == len(node.outputs) else None
    if present != len(node.outputs):
        return None
    names_ = {v.name for v in graph.values()} | {n.name for n in graph.nodes}
    added = [s for entry in specs[i:] for s in (entry if isinstance(entry, list) else (entry,))]
    names = [v.name for v in node.outputs]
    for index in range(present, present + len(added)):
        name = f"{node.name}.{index}"
        while name in names_:
            name += "_"
        names_.add(name)
        names.append(name)
    return Node(
        node.op, node.inputs, attrs, [*(v.spec for v in node.outputs), *added], node.name, node.at, names, node.rules
    )


def node_error(node: Node, error: Exception, file_version: int | None) -> str:
    """Return why a node is invalid, naming both versions if they may be the reason."""
    text = str(error)[:500]
    if isinstance(error, SignatureError) and file_version is not None:
        text += (
            f"\n  the file was written with version {file_version} of {node.op.name}, here is version "
            f"{node.op.version}; load it with the definition that it was saved with, or a newer one"
        )
    return text
