"""Registrations: the four methods by which the run time calls a kernel, and those of an operator's definition.

Lives here: `Registration`, `OperatorRegistration`, `registration_of`.
Not here: which registration serves which operator of a file (resolver.py), calls of the methods (runtime/), kernels of
quantized nodes (quantized_registration.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError, UnimplementedError
from ..core.forks import once
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..ops.call import Call, contract_violation
from ..ops.definition import Operator
from ..ops.dispatch import quietly
from .custom_options import bind_options, group_inputs
from .ops.definition import LiteOperator
from .ops.tiling import BLOCK, store_parts
from .quantized_registration import (
    another_number_of_outputs,
    as_real,
    divided,
    is_quantized,
    kernel_of,
    real_dtype,
    rule_of,
    run_quantized,
)
from .runtime.dynamic_shapes import RecordedOperand, ReusableStep, fold, is_folded, nothing
from .runtime.node import Context, Node, check_dynamic_outputs, check_return_value, check_status
from .runtime.string_steps import string_step, text_step
from .runtime.tensor import CONSTANT, DYNAMIC, OWN, Tensor
from .runtime.tensor_access import track_call, track_methods


class Registration:
    """A kernel as four methods, all optional except invoke.

    init(context, options) -> user_data: once for each node. options: a custom operator's bytes, a builtin's options
    object. free(context, user_data): once for each node whose init returned. prepare(context, node): when tensors are
    allocated, and again after a resize. It sets the outputs' shapes. invoke(context, node): each run. A method fails by
    raising, or by returning an int other than 0 (then with its messages to context.report_error). Results are written
    into the elements of `node.outputs`; invoke returns none. version: the greatest supported version of the operator,
    unless a resolver specifies another. raises TypeError for a method that is not callable, ValueError for a version
    below 1
    """

    __slots__ = ("free", "init", "invoke", "prepare", "version")

    init_at_creation = (
        False  # init runs when the interpreter is created, as in the official run time, not in allocation
    )
    follows_shapes = False  # whether the step from `bind` handles inputs whose shapes change between runs

    def __init__(
        self,
        init: Callable[[Context, Any], Any] | None = None,
        free: Callable[[Context, Any], Any] | None = None,
        prepare: Callable[[Context, Node], Any] | None = None,
        invoke: Callable[[Context, Node], Any] | None = None,
        version: int = 1,
    ) -> None:
        for name, method in (("init", init), ("free", free), ("prepare", prepare), ("invoke", invoke)):
            if method is not None and not callable(method):
                raise TypeError(f"Registration: {name} must be callable or None, found {method!r}")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ValueError(f"Registration: version is an integer of at least 1, found {version!r}")
        self.init, self.free, self.prepare, self.invoke, self.version = init, free, prepare, invoke, version

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        """Return one call of invoke as a function without arguments, bound when the node's tensors have memory."""
        invoke: Any = self.invoke  # not None: prepare refuses a node without it
        own = type(self) is Registration and type(node.options) is bytes
        dynamic = [t for t in node.tensors_out if t.kind == DYNAMIC] if own else []

        def step() -> None:
            context.begin(node)
            returned = invoke(context, node)
            check_status(returned, node.name, "invoke")
            if returned is not None and own:
                check_return_value(returned, node)
            check_dynamic_outputs(dynamic, node.name)

        return track_methods(node, step) if own else step

    def __repr__(self) -> str:
        methods = [name for name in ("init", "free", "prepare", "invoke") if getattr(self, name) is not None]
        return f"<Registration of {', '.join(methods) or 'nothing'}, version {self.version}>"


class OperatorRegistration(Registration):
    """The kernel of an operator's definition: `infer` in prepare, `compute` in invoke."""

    __slots__ = ("operator",)

    def __init__(self, operator: Operator) -> None:
        super().__init__(self._init, None, self._prepare, self._invoke, operator.version)
        self.operator = operator

    def _init(self, context: Context, options: Any) -> Any:
        """Return a builtin's options unchanged, a custom operator's as its bound attributes."""
        if isinstance(self.operator, LiteOperator):
            return options
        return bind_options(self.operator, options, context.node.version)

    def group(self, node: Node, items: Sequence[Any]) -> list[Any]:
        """Return items for the node's inputs by declared input; see `group_inputs`."""
        return group_inputs(self.operator, items, node)

    def dtype(self, node: Node) -> DType | None:
        """Return the type of the operator's first input, by which kernels are selected."""
        return next((t.dtype for t in node.tensors_in if t is not None), None)

    def _call(self, node: Node) -> Call:
        """Return the node's attributes. Attributes that depend on the output's type are known in prepare."""
        if isinstance(node.user_data, Call):
            return node.user_data
        operator: Any = self.operator
        outputs = [t.dtype for t in node.tensors_out] if operator.typed_by else ()
        node.user_data = operator.from_options(node.user_data, outputs)
        result: Call = node.user_data
        return result

    def infer(self, call: Call, node: Node, operands: Sequence[Any]) -> list[TensorSpec]:
        """Return the spec of each output tensor, after checking their number and dtypes."""
        specs: list[TensorSpec] = []
        outputs = self.operator.outputs
        for i, spec in enumerate(self.operator.infer(call, self.group(node, operands))):
            if len(specs) == len(node.tensors_out) and all(o.since > 1 for o in outputs[i:]):
                break  # an older file lacks outputs that later versions added for the gradient
            specs.extend(spec) if isinstance(spec, list) else specs.append(spec)
        if len(specs) != len(node.tensors_out):
            raise another_number_of_outputs(node.name, len(node.tensors_out), len(specs))
        for spec, t in zip(specs, node.tensors_out):
            if spec.dtype is not (t.dtype if node.kernel is None else real_dtype(t)):
                if isinstance(self.operator, LiteOperator) and self.operator.retypes:
                    t.set_dtype(spec.dtype)
                    continue
                raise InvalidArgumentError(
                    op=node.name,
                    what=f"output {t.name!r} has the wrong type",
                    found=t.dtype.name,
                    wanted=spec.dtype.name,
                )
        return specs

    def _prepare(self, context: Context, node: Node) -> None:
        call, was_read = self._call(node), [False]
        once = is_computed_once(self.operator, node)
        if once:
            for t in node.tensors_out:
                t.set_kind(OWN)
        resume = getattr(call, "resume", None)
        if resume is not None:  # state that persists between runs belongs to the interpreter
            resume(node)
        node.kernel = self.quantized_rule(node) if is_quantized(self.operator, node) else None

        def operand_of(t: Tensor) -> Tensor | ValueUseTracker:
            return t if t.constant is not None else ValueUseTracker(t, was_read)

        if node.kernel is not None:
            operands = as_real(self.operator, node, operand_of)
        else:
            operands = [None if t is None else operand_of(t) for t in node.tensors_in]
        specs = self.infer(call, node, operands)
        node.needs_values = was_read[0]
        if node.kernel is not None:
            node.kernel = self.quantized_kernel(call, node)
        for spec, t in zip(specs, node.tensors_out):
            if once and t.kind == OWN and spec.shape.is_fully_defined():
                sizes: Any = tuple(spec.shape.as_list())
                if t.shape != sizes:
                    t.set_shape(sizes)  # allocated later, if no delegate claims the node
            elif spec.shape.is_fully_defined():
                context.resize(t, spec.shape.as_list())
            else:
                context.set_tensor_to_dynamic(node.outputs[node.tensors_out.index(t)])
        fold(node, self.operator, call, self._bound)

    def quantized_rule(self, node: Node) -> Any:
        """Return the rule for the kernel of a quantized node; None if the integers need no special kernel."""
        return rule_of(self.operator, node)

    def quantized_kernel(self, call: Call, node: Node) -> Any:
        """Return that kernel. node.kernel: the rule."""
        return kernel_of(self.operator, node.kernel, call, node, group_inputs)

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        if is_folded(node):
            return nothing
        if is_computed_once(self.operator, node):
            quietly(self._step(context, node))
            return nothing
        step = self._step(context, node)
        if node.needs_values and all(t.kind != DYNAMIC for t in node.tensors_out):
            return functools.partial(self._run_with_values, node, step)
        return step

    def _run_with_values(self, node: Node, step: Callable[[], Any]) -> None:
        """Run a step after shape inference with values that are available only now, such as axes."""
        self.infer(self._call(node), node, self._known(node, ValueOperand))
        step()

    def _known(self, node: Node, operand_of: Callable[[Tensor], Any]) -> list[Any]:
        """Return the inputs for shape rules, with their elements."""
        if node.kernel is None:
            return [None if t is None else operand_of(t) for t in node.tensors_in]
        return as_real(self.operator, node, operand_of)

    def _step(self, context: Context, node: Node) -> Callable[[], Any]:
        if any(t.kind == DYNAMIC for t in node.tensors_out):
            return text_step(node, self.operator, self._call(node), super().bind(context, node))
        return string_step(node, self.operator, self._call(node), self._bound(node))

    def _elements(self, node: Node) -> list[Any]:
        """Return the inputs as arrays; one of which only the shape is read may have no elements yet."""
        if self.operator.shape_only:
            return [
                None if t is None else t.readonly if t.array is not None else np.broadcast_to(_NONE, t.shape)
                for t in node.tensors_in
            ]
        return [None if t is None else t.readonly for t in node.tensors_in]

    def _bound(self, node: Node) -> Callable[[], Any]:
        """Return one run of a node whose tensors all have their elements."""
        operator, call = self.operator, self._call(node)
        arrays = self.group(node, self._elements(node))
        outs: list[Any] = [t.array for t in node.tensors_out]
        if node.kernel is not None:
            return functools.partial(run_quantized, node.kernel, arrays, outs, operator.name, divided(operator))
        dtype = self.dtype(node)
        if len(outs) == 1 and arrays and not operator.cpu_kernels:
            ufunc = direct_ufunc(operator, call, dtype)
            if ufunc is not None and outs[0].dtype.kind != "O":
                if ufunc in _NAMED_OUT or ufunc.nin != len(arrays):
                    return functools.partial(ufunc, *arrays, out=outs[0])
                return functools.partial(ufunc, *arrays, outs[0])  # 0.15 us for a number; with out= it takes 0.47
        kernel = operator.kernel(call, dtype)
        if operator.profile.single and isinstance(operator, LiteOperator) and outs[0].dtype.kind != "O":
            write = getattr(call, "write", None)
            if write is not None and not operator.cpu_kernels:
                return functools.partial(write, outs[0], *arrays)
            parts = getattr(call, "parts", None)
            if parts is not None and not operator.cpu_kernels:
                return functools.partial(_run_parts, parts, arrays, outs[0])
            divide = divided(operator)
            if divide is not None and outs[0].size > BLOCK:
                return functools.partial(_run_parts, divide, (kernel, arrays, outs[0].shape), outs[0])
        if not (isinstance(operator, LiteOperator) or operator.trusted or operator.cpu_kernels):
            names = self.group(node, [None if t is None else t.name for t in node.tensors_in])

            def put(result: Any) -> None:
                store_results(_results_for(operator.flat_outputs(result), operator, outs), outs, operator)

            return functools.partial(track_call, node.name, kernel, names, arrays, put)
        if operator.profile.single:
            return functools.partial(_run_single, kernel, arrays, outs[0], operator)
        return functools.partial(_run_several, kernel, arrays, outs, operator)

    def _invoke(self, context: Context, node: Node) -> None:
        """Run a node with outputs whose shape depends on values: infer again, with the values.

        An output whose shape `infer` still cannot determine gets that of the result.
        """
        if node.repeat is not None and node.repeat.is_valid:
            node.repeat.step()
            return
        read: list[Tensor] = []
        call, node.repeat = self._call(node), None
        specs = self.infer(call, node, self._known(node, lambda t: RecordedOperand(t, read)))
        for spec, t in zip(specs, node.tensors_out):
            if spec.shape.is_fully_defined() or node.kernel is not None:
                context.resize(t, spec.shape.as_list())
        if node.kernel is not None or all(spec.shape.is_fully_defined() for spec in specs):
            step = self._bound(node)
            step()
            operator = self.operator
            if isinstance(operator, LiteOperator) and operator.effect is None and not hasattr(call, "resume"):
                node.repeat = ReusableStep.of(node, read, step)
            return
        arrays = self.group(node, [None if t is None else t.readonly for t in node.tensors_in])
        dtype = self.dtype(node)
        flat = self.operator.flat_outputs(self.operator.kernel(call, dtype)(*arrays))
        results = _results_for(flat, self.operator, node.tensors_out)
        for spec, t, result in zip(specs, node.tensors_out, results):
            if not spec.shape.is_fully_defined() and spec.shape.is_compatible_with(np.shape(result)):
                context.resize(t, np.shape(result))
        store_results(results, [t.array for t in node.tensors_out], self.operator)

    def __repr__(self) -> str:
        return f"<Registration of {self.operator.name}, version {self.version}>"


def is_computed_once(operator: Operator, node: Node) -> bool:
    """Return whether a node is computed once per allocation: its operator declares it, and its inputs are constants."""
    return (
        isinstance(operator, LiteOperator)
        and operator.once
        and all(t is None or t.kind == CONSTANT for t in node.tensors_in)
    )


_NONE = np.zeros((), np.int8)


class ValueOperand:
    """An operand of a shape rule whose elements are available."""

    __slots__ = ("constant", "spec")
    fixed = False

    def __init__(self, t: Tensor) -> None:
        self.spec, self.constant = t.spec, t.array

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def shape(self) -> TensorShape:
        return self.spec.shape


class ValueUseTracker(ValueOperand):
    """An operand of a shape rule without elements, which records whether the rule reads them."""

    __slots__ = ("asked",)

    def __init__(self, t: Tensor, asked: list[bool]) -> None:
        self.spec, self.asked = t.spec, asked

    @property
    def constant(self) -> None:  # type: ignore[override]
        self.asked[0] = True


def _run_single(kernel: Callable[..., Any], arrays: Sequence[Any], out: np.ndarray, operator: Operator) -> None:
    result = kernel(*arrays)
    if getattr(result, "shape", None) != out.shape or result.dtype != out.dtype:
        result = _fitting(result, out, operator)
    np.copyto(out, result)


def _run_parts(parts: Callable[..., Any], arguments: Sequence[Any], out: np.ndarray) -> None:
    store_parts(parts(*arguments), out)


def _run_several(kernel: Callable[..., Any], arrays: Sequence[Any], outs: Sequence[Any], operator: Operator) -> None:
    store_results(_results_for(operator.flat_outputs(kernel(*arrays)), operator, outs), outs, operator)


def _results_for(results: Sequence[Any], operator: Operator, outs: Sequence[Any]) -> Sequence[Any]:
    """Return the results for which the node has tensors: an older file lacks outputs that later versions appended."""
    return results[: len(outs)] if operator.outputs and operator.outputs[-1].since > 1 else results


def store_results(results: Sequence[Any], outs: Sequence[Any], operator: Operator) -> None:
    """Copy computed results to the outputs.

    raises DefinitionError if they differ from the result of `infer` (InternalError for an operator of this package)
    """
    if len(results) != len(outs):
        raise contract_violation(
            operator, "compute", "gave another number of results than infer", found=len(results), wanted=len(outs)
        )
    for result, out in zip(results, outs):
        np.copyto(out, _fitting(result, out, operator))


def _fitting(result: Any, out: np.ndarray, operator: Operator) -> np.ndarray:
    array = np.asarray(result, object if out.dtype.kind == "O" else None)
    if array.shape != out.shape or array.dtype != out.dtype:
        raise contract_violation(
            operator,
            "compute",
            "gave another dtype or shape than was inferred",
            found=f"{array.dtype} {list(array.shape)}",
            wanted=f"{out.dtype} {list(out.shape)}",
            do=f"y.astype({out.dtype.name!r}) in compute, or mend infer",
        )
    return array


_NAMED_OUT = (np.maximum, np.minimum)
"""Ufuncs for which NumPy deprecates a positional `out`."""


def direct_ufunc(operator: Operator, call: Call, dtype: DType | None) -> np.ufunc | None:
    """Return the ufunc that computes the call in place, if there is one."""
    if isinstance(operator.compute_rule, np.ufunc):
        return operator.compute_rule
    writes = getattr(call, "writes", None)
    return writes(dtype) if writes is not None and isinstance(operator, LiteOperator) else None


@once
def _of_operator(operator: Operator) -> Registration:
    if isinstance(operator, LiteOperator) and operator.registration is not None:
        return cast(Registration, operator.registration(operator))
    return OperatorRegistration(operator)


def registration_of(kernel: Any) -> Registration:
    """Return the Registration for an operator of `@ow.operator`, or a Registration itself. Raises TypeError."""
    if isinstance(kernel, Registration):
        return kernel
    if isinstance(kernel, Operator):
        own = isinstance(kernel, LiteOperator) and kernel.registration is not None
        if kernel.compute_rule is None and not kernel.kernels and not own:
            raise UnimplementedError(op=kernel.name, what="no `compute` rule is defined", do="define compute(op, ...)")
        return _of_operator(kernel)
    raise TypeError(
        f"a kernel is an @ow.operator or a lite.Registration; found {type(kernel).__name__}: {kernel!r}"[:300]
    )
