"""Kernels on elements: a Python function of scalars, in a loop over arrays or inlined into other kernels.

Lives here: the loop, the staging of the function in it, inlining of functions; the policy `MASKS`, control flow on
scalars by if-conversion.
Not here: scalars (operators.py), ranges and conditions (control.py), the other policy (branches.py), running such
kernels on arrays (../elementwise.py), their functions as parts of expressions (../inlined_kernels.py).

The function runs on scalars that represent a vector of elements in the main loop and one element in the remainder loop,
so `ow.minimum(x, 1.0)` has the same meaning in a kernel as elsewhere.

In control flow on scalars both branches run, and masks select: each element has the results of its own branch. A loop
runs while it continues for any element; the variables of the other elements are unchanged. AutoGraph replaces `return`,
`break` and `continue` by variables. Values have no side effects, so computing unused ones is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir

from ...autograph.handlers import StatementOptions, StatementState, Thunk, Unbound, is_returned_value, register_handler
from ...core import dtypes
from ...core.dtypes import DType, of_numpy
from ...core.errors import SignatureError
from ..target import Target, host
from .control import ZERO_STEP, ControlFlow, InductionVariable, LoopRange, spend
from .element_trace import ElementTrace, KernelScalar, LaterNumber
from .functions import any as some
from .llvm_types import I64, KIND, POINTER, number, stored, typed
from .trace import current, define
from .values import Value, select

if TYPE_CHECKING:
    from ..inlined_kernels import InlinedKernel


def emit_elements(
    function: Callable[..., Any],
    name: str,
    inputs: Sequence[np.dtype],
    attrs: dict[str, Any],
    target: Target | None = None,
    fast: bool | None = None,
    polls: bool = False,
) -> tuple[ir.Module, DType]:
    """Return the module of one kernel, `void name(out, inputs..., n)` over contiguous arrays, and its result's dtype.

    target: defines the vector length; by default this processor. fast: by default the value of `fast_math`.
    polls: whether the function's own loops poll for signals through a function of this process.
    raises UnimplementedError or SignatureError naming kernel and operator for operations that kernels cannot express
    """
    module = ir.Module(name)
    kinds = [of_numpy(d) for d in inputs]
    names = [n for n in function.__code__.co_varnames if n not in attrs][: len(inputs)]
    b = define(module, name, ir.VoidType(), [*((n, POINTER) for n in ("out", *names)), ("n", I64)], noalias=True)
    out, *pointers, n = b.function.args

    def body(count: int, i: ir.Value) -> DType:
        """Emit the computation of `count` elements from i on; one element if count is 0."""
        trace = ElementTrace(b, name, count, fast)
        trace.polls = polls
        elements = [(_load(b, p, i, d, count, arg_name), d) for p, d, arg_name in zip(pointers, kinds, names)]
        y = stage_elements(trace, function, elements, attrs)
        element = b.zext(y.x, typed(dtypes.uint8, count)) if y.dtype.is_bool else y.x
        b.store(element, b.gep(out, [i], source_etype=KIND[stored(y.dtype)], name="out.i.ptr"), align=y.dtype.size)
        return y.dtype

    width = (target or host()).vector_bytes // 4
    vectors = b.and_(n, ir.Constant(I64, -width), "n.vectors")
    _loop(b, "i.loop", ir.Constant(I64, 0), vectors, width, lambda i: body(width, i))
    dtype = _loop(b, "i.rest", vectors, n, 1, lambda i: body(0, i))
    b.ret_void()
    return module, dtype


def _loop(
    b: ir.IRBuilder, name: str, start: ir.Value, end: ir.Value, step: int, body: Callable[[ir.Value], DType]
) -> DType:
    """Emit `for i in range(start, end, step): body(i)` with readable block names; return the body's result."""
    before = b.block
    loop, done = b.append_basic_block(name), b.append_basic_block(f"{name}.done")
    b.cbranch(b.icmp_signed("<", start, end), loop, done)
    b.position_at_end(loop)
    i = b.phi(I64, "i")
    i.add_incoming(start, before)
    result = body(i)
    following = b.add(i, ir.Constant(I64, step), "i.next")
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, end), loop, done)
    b.position_at_end(done)
    return result


def _load(b: ir.IRBuilder, pointer: ir.Value, i: ir.Value, dtype: DType, count: int, name: str) -> ir.Value:
    kind = KIND[stored(dtype)]
    address = b.gep(pointer, [i], source_etype=kind, name=f"{name}.i.ptr")
    x = b.load(address, f"{name}.i", align=dtype.size, typ=ir.VectorType(kind, count) if count else kind)
    return b.trunc(x, typed(dtype, count)) if dtype.is_bool else x


def call_arguments(function: Any, scalars: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments of a call. attrs: include omitted inputs, as None."""
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    if not any(n in attrs for n in names):
        return list(scalars), dict(attrs)
    remaining = iter(scalars)
    positional = [attrs[n] if n in attrs else next(remaining) for n in names]
    return positional, {k: v for k, v in attrs.items() if k not in names}


Elements = Sequence[tuple[ir.Value, DType]]


def stage_elements(
    trace: ElementTrace, function: Callable[..., Any], elements: Elements, attrs: Mapping[str, Any]
) -> KernelScalar:
    """Stage a kernel's function on these elements; return its result. Raises the errors of `Staging.stage`."""
    result: KernelScalar = trace.stage(
        function, lambda: call_arguments(function, [KernelScalar(x, d) for x, d in elements], attrs)
    )
    return result


class FunctionSummary(NamedTuple):
    """Properties of a scalar function: the dtype of its result, the text and number of its instructions, whether it has
    loops."""

    dtype: DType
    text: str
    num_instructions: int
    has_loops: bool


def summarize(function: InlinedKernel) -> FunctionSummary:
    """Stage a function once, on single elements, and return its properties."""
    module = ir.Module(function.name)
    b = define(module, function.name, ir.VoidType(), [("", KIND[d]) for d in function.inputs])
    llvm_function = b.function
    trace = ElementTrace(b, function.name, 0, function.fast)
    y = stage_elements(trace, function.function, list(zip(llvm_function.args, function.inputs)), function.attrs)
    b.comment(f"gives {y.x.get_reference()} {y.dtype.short}")
    b.ret_void()
    num_instructions = sum(len(block.instructions) for block in llvm_function.blocks)
    return FunctionSummary(y.dtype, str(module), num_instructions, len(llvm_function.blocks) > 1)


def inlined(function: InlinedKernel, xs: Sequence[Value]) -> Value:
    """Stage a function inline on values of the current kernel, broadcast to the longest vector."""
    outer, count = current(), max(x.count for x in xs)
    trace = ElementTrace(outer.builder, function.name, count, function.fast)
    trace.polls = outer.functions_poll
    y = stage_elements(trace, function.function, [(x.splat(count).x, x.dtype) for x in xs], function.attrs)
    return Value(y.x, y.dtype)


_NUMBERS = (int, float, LaterNumber)


class ElementRange(LoopRange):
    """A `range` with limits that are integer scalars of a kernel. step: a Python int other than 0."""

    def __init__(self, start: Any, stop: Any, step: Any = 1) -> None:
        if not isinstance(step, int):
            raise TypeError(f"the step of a kernel's range is a Python int, found {step!r}")
        if step == 0:
            raise ValueError(ZERO_STEP)
        for limit in (start, stop):
            if isinstance(limit, float) or (isinstance(limit, KernelScalar) and not limit.dtype.is_integer):
                raise TypeError(f"a range counts integers, found {limit!r}")
        self.start, self.stop, self.step = start, stop, step


def _trace() -> ElementTrace:
    trace = current()
    assert isinstance(trace, ElementTrace)
    return trace


class Masks(ControlFlow):
    """The policy of scalars: conditions are masks."""

    range_type = ElementRange

    def condition(self, x: Any) -> Value:
        value = _trace().to_tensor(x).value
        return value if value.dtype.is_bool else value != 0

    def of_condition(self, x: Value) -> KernelScalar:
        return KernelScalar.of(x)

    def if_stmt(
        self, test: Any, body: Thunk, orelse: Thunk | None, state: StatementState, options: StatementOptions
    ) -> None:
        mask = self.condition(test)
        before = state.get()
        body()
        after = state.get()
        state.set(before)
        if orelse is not None:
            orelse()
        other = state.get()
        state.set([_select(name, mask, a, b) for name, a, b in zip(state.names, after, other)])

    def if_exp(self, test: Any, body: Thunk, orelse: Thunk) -> Any:
        return _select("the conditional expression", self.condition(test), body(), orelse())

    def while_stmt(self, test: Thunk, body: Thunk, state: StatementState, options: StatementOptions) -> None:
        _MaskedLoop(lambda: self.condition(test()), body, state).run()

    def count(self, items: LoopRange, go_on: Thunk | None, body: Callable[[Any], Any], state: StatementState) -> None:
        start, stop = _scalars(items.start, items.stop)
        if start.dtype is not stop.dtype:
            kinds = f"{start.dtype.name} and {stop.dtype.name}"
            raise SignatureError(
                op=_trace().name, what="the limits of a range differ in dtype", found=kinds, do="ow.cast one of them"
            )
        steps = InductionVariable(ElementRange(start.value, stop.value, items.step))
        counter = _Counter(start)

        def test() -> Value:
            _trace().mark_line()
            inside = steps.inside(counter.value.value)
            return inside if go_on is None else inside & self.condition(go_on())

        def iteration() -> None:
            item = counter.value
            _trace().mark_line()
            counter.value = KernelScalar.of(steps.after(item.value))
            body(item)

        _MaskedLoop(test, iteration, state, counter).run()


class _Counter:
    """The induction variable of a `for`, which the loop carries."""

    def __init__(self, value: KernelScalar) -> None:
        self.value = value


def _scalars(a: Any, b: Any) -> tuple[KernelScalar, KernelScalar]:
    """Return two values as scalars; a Python number takes the dtype of the other one."""
    trace = _trace()
    if not isinstance(a, KernelScalar):
        b = trace.to_tensor(b)
        return trace.to_tensor(a, b.dtype if isinstance(a, _NUMBERS) and not isinstance(a, bool) else None), b
    return a, trace.to_tensor(b, a.dtype if isinstance(b, _NUMBERS) and not isinstance(b, bool) else None)


def _pair(name: str, a: Any, b: Any) -> tuple[KernelScalar, KernelScalar]:
    """Return two values as scalars of one dtype. Raises SignatureError naming the variable."""
    a, b = _scalars(a, b)
    if a.dtype is not b.dtype:
        what = f"{name} has another dtype after one branch or iteration than another"
        kinds = f"{a.dtype.name} and {b.dtype.name}"
        raise SignatureError(op=_trace().name, what=what, found=kinds, do="ow.cast one of them")
    return a, b


def _select(name: str, mask: Value, a: Any, b: Any) -> Any:
    """Select the value of a variable by a mask. It is unset if a branch leaves it unset, except a returned value."""
    if a is b:
        return a
    if isinstance(a, Unbound) or isinstance(b, Unbound):
        if is_returned_value(name):  # it is not read in elements that have not returned
            return b if isinstance(a, Unbound) else a
        return Unbound(name)
    if isinstance(a, LoopRange) or not isinstance(a, KernelScalar | int | float | LaterNumber):
        what = f"{name} depends on a scalar's value and is not a scalar"
        raise SignatureError(op=_trace().name, what=what, found=type(a).__name__)
    one, other = _pair(name, a, b)
    return KernelScalar.of(select(mask, one.value, other.value))


class _MaskedLoop:
    """A loop being staged: its test, its body and the variables that an iteration may change.

    counter: the induction variable of a `for`, carried with them.
    """

    def __init__(
        self, test: Callable[[], Value], body: Thunk, state: StatementState, counter: _Counter | None = None
    ) -> None:
        self.test, self.body, self.state, self.counter = test, body, state, counter
        self.trace = _trace()
        self.names = [*state.names, *(["the range's counter"] if counter is not None else [])]

    def get(self) -> list[Any]:
        """Return the values of the variables."""
        return [*self.state.get(), *([self.counter.value] if self.counter is not None else ())]

    def set(self, values: list[Any]) -> None:
        """Set the variables."""
        if self.counter is not None:
            *values, self.counter.value = values
        self.state.set(values)

    def changed(self, start: list[Any]) -> dict[int, DType]:
        """Return the dtypes of the variables that an iteration changes, by index, from iterations in dead blocks.

        A variable that starts as a Python number is a scalar in later iterations, in which it may affect others: the
        iterations are repeated until no more variables change.
        """
        dtypes_of: dict[int, DType] = {}
        while True:
            extended = {**dtypes_of, **self._probe(start, dtypes_of)}
            numbers = [i for i in extended.keys() - dtypes_of.keys() if not isinstance(start[i], KernelScalar)]
            dtypes_of = extended
            if not numbers:
                return dtypes_of

    def _first(self, x: Any, dtype: DType) -> KernelScalar:
        """Return the value of a variable before the first iteration; 0 if it is unset."""
        return self.trace.to_tensor(0 if isinstance(x, Unbound) else x, dtype)

    def _probe(self, start: list[Any], changing: dict[int, DType]) -> dict[int, DType]:
        """Return the dtypes of the variables that one iteration changes. changing: the result so far."""
        b, block = self.trace.builder, self.trace.builder.block
        b.position_at_end(b.append_basic_block("while.probe"))
        probed = [KernelScalar.of(v) if isinstance(v, KernelScalar) else v for v in start]
        for i, dtype in changing.items():
            if not isinstance(start[i], KernelScalar):
                probed[i] = self._first(start[i], dtype)
        self.set(probed)  # distinct objects, also for variables with one value
        self.test()
        self.body()
        after = self.get()
        b.unreachable()
        b.position_at_end(block)
        self.set(start)
        changed = {}
        for i, (was, now) in enumerate(zip(probed, after)):
            if was is now or (isinstance(now, Unbound) and isinstance(was, Unbound)):
                continue
            alike = isinstance(was, KernelScalar | int | float)
            changed[i] = (_pair(self.names[i], was, now)[0] if alike else self.trace.to_tensor(now)).dtype
        return changed

    def run(self) -> None:
        """Stage the loop: it runs while the test is true for any element, and changes only active elements."""
        trace, b, start = self.trace, self.trace.builder, self.get()
        kinds = self.changed(start)
        first = {i: self._first(start[i], dtype).splat(trace.count) for i, dtype in kinds.items()}
        entry, everywhere = b.block, number(dtypes.bool, True, trace.count)
        head, iteration, done = (b.append_basic_block(f"while.{part}") for part in ("head", "turn", "done"))
        b.branch(head)
        b.position_at_end(head)
        active = b.phi(everywhere.type, "active")
        phis = {i: b.phi(v.x.type, self.names[i].strip("_").replace(" ", ".")) for i, v in first.items()}
        scalars = {i: KernelScalar(phi, kinds[i]) for i, phi in phis.items()}
        now = [scalars.get(i, v) for i, v in enumerate(start)]
        self.set(now)
        mask = Value(active, dtypes.bool) & self.test()
        b.cbranch(some(mask).x, iteration, done)
        b.position_at_end(iteration)
        self.body()
        after = self.get()
        changed = {i: _select(self.names[i], mask, after[i], v) for i, v in scalars.items()}
        if trace.polls:
            spend(trace, ir.Constant(I64, 1))
        end = b.block
        b.branch(head)
        active.add_incoming(everywhere, entry)
        active.add_incoming(mask.x, end)
        for i, phi in phis.items():
            phi.add_incoming(first[i].x, entry)
            phi.add_incoming(changed[i].x, end)
        b.position_at_end(done)
        unset = [i for i, v in enumerate(start) if isinstance(v, Unbound) and not is_returned_value(self.names[i])]
        self.set([Unbound(self.names[i]) if i in unset else v for i, v in enumerate(now)])


MASKS = Masks()
for _kind in (KernelScalar, ElementRange, LaterNumber):
    register_handler(_kind, MASKS)
