"""Element-wise kernels: a function on scalars, staged once into an LLVM loop over arrays.

Lives here: staging (`KernelTrace`, a trace whose calls become instructions), the table of lowerings, the loop.
Not here: loading code (engine.py), choosing kernels (ops/kernels.py).

The function runs once on `KernelScalar`s; each operator it calls is looked up in LOWER by name. So `ow.minimum(x, 1.0)`
means in a kernel what it means everywhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..core import dtypes, flags
from ..core.dtypes import DType, of_numpy
from ..core.errors import SignatureError, UnimplementedError
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..ops.arguments import natural_dtype, tensors
from ..ops.tensor import Tensor
from . import approximate
from .engine import compile_module, has_symbol

_LLVM_TYPES: dict[DType, ir.Type] = {
    dtypes.float32: ir.FloatType(), dtypes.float64: ir.DoubleType(),
    dtypes.int32: ir.IntType(32), dtypes.int64: ir.IntType(64), dtypes.bool: ir.IntType(1),
}  # fmt: skip
_BYTE, _I64, _POINTER = ir.IntType(8), ir.IntType(64), ir.PointerType()


# What `fast_math` leaves to LLVM: regrouping, x * y + z at once, reciprocals, the sign of zeros. Never that there are
# no NaN or infinities, nor anything about calls of the C library, pow among them. Users' list: core/numerics.py.
_FAST = ("reassoc", "contract", "arcp", "nsz")


class KernelScalar(Tensor):
    """One element in a kernel being staged: an LLVM value with a dtype."""

    __slots__ = ("_dtype", "llvm")

    def __init__(self, llvm: ir.Value, dtype: DType) -> None:
        self.llvm, self._dtype = llvm, dtype

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._dtype

    @property
    def shape(self) -> Any:
        """Always ()."""
        return self.spec.shape

    @property
    def spec(self) -> TensorSpec:
        """A scalar of this dtype."""
        return TensorSpec((), self._dtype)

    def __bool__(self) -> bool:
        raise TypeError("a kernel's scalar has no truth value while it is staged: use ow.where(condition, a, b)")


class KernelTrace:
    """The staging of one kernel: where operators become instructions."""

    def __init__(self, builder: ir.IRBuilder, name: str) -> None:
        self.builder, self.name = builder, name
        self.fast = bool(flags.fast_math)
        self.leave = _FAST if self.fast else ()  # on sums, products and quotients

    def record(self, op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
        """Lower one call. Raises UnimplementedError naming an operator that kernels do not have."""
        scalars = tensors(op, inputs, self.to_tensor, name)
        rule = LOWER.get(op.name)
        if rule is None:
            raise UnimplementedError(
                op=op.name,
                what=f"kernel {self.name!r} calls it, and kernels have no such operator",
                wanted=f"one of {', '.join(sorted(LOWER))}",
                do="leave out the kernel: the reference computes it",
            )
        op.check_dtypes([s.dtype for s in scalars])
        result = rule(self, bound, *scalars)
        if isinstance(result, KernelScalar):
            return result
        (spec,) = op.infer(bound, scalars)
        return KernelScalar(result, spec.dtype)

    def to_tensor(self, value: Any, dtype: Any = None, name: str | None = None) -> Any:
        """A scalar of a Python number."""
        if isinstance(value, KernelScalar):
            return value
        if isinstance(value, Tensor) or np.ndim(value) != 0:
            raise TypeError(f"a kernel works on scalars; found {value!r} in {self.name!r}")
        dtype = dtype or natural_dtype(value)
        if dtype not in _LLVM_TYPES:
            raise TypeError(f"a kernel has no scalars of dtype {dtype.name}")
        if isinstance(value, float) and not dtype.is_floating:
            raise TypeError(f"cannot use {value!r} as {dtype.name}")
        return KernelScalar(self.number(value, dtype), dtype)

    def number(self, value: Any, dtype: DType) -> ir.Constant:
        """A constant. Rounded to the dtype first: LLVM refuses float constants that are not exact."""
        exact = dtype.as_numpy_dtype(value)
        return ir.Constant(_LLVM_TYPES[dtype], float(exact) if dtype.is_floating else int(exact))


Rule = Callable[..., Any]


def _arithmetic(floating: str, integer: str) -> Rule:
    def lower(trace: KernelTrace, op: Any, x: KernelScalar, y: KernelScalar) -> Any:
        if x.dtype.is_floating:
            return getattr(trace.builder, floating)(x.llvm, y.llvm, flags=trace.leave)
        return getattr(trace.builder, integer)(x.llvm, y.llvm)

    return lower


def _compare(predicate: str) -> Rule:
    def lower(trace: KernelTrace, op: Any, x: KernelScalar, y: KernelScalar) -> Any:
        if x.dtype.is_floating:  # != is true for NaN, the others are false
            compare = trace.builder.fcmp_unordered if predicate == "!=" else trace.builder.fcmp_ordered
            return compare(predicate, x.llvm, y.llvm)
        return trace.builder.icmp_signed(predicate, x.llvm, y.llvm)

    return lower


def _extremum(predicate: str) -> Rule:
    def lower(trace: KernelTrace, op: Any, x: KernelScalar, y: KernelScalar) -> Any:
        b = trace.builder
        if not x.dtype.is_floating:
            return b.select(b.icmp_signed(predicate, x.llvm, y.llvm), x.llvm, y.llvm)
        chosen = b.select(b.fcmp_ordered(predicate, x.llvm, y.llvm), x.llvm, y.llvm)
        return b.select(
            b.fcmp_unordered("uno", x.llvm, x.llvm), x.llvm, chosen
        )  # a NaN in x; one in y is chosen already

    return lower


def _intrinsic(name: str) -> Rule:
    def lower(trace: KernelTrace, op: Any, x: KernelScalar) -> Any:
        function = trace.builder.module.declare_intrinsic(f"llvm.{name}", [x.llvm.type])
        return trace.builder.call(function, [x.llvm])

    return lower


def _libm(name: str) -> Rule:
    """A function of the C library, one element at a time."""

    def lower(trace: KernelTrace, op: Any, *xs: KernelScalar) -> Any:
        symbol = name + ("f" if xs[0].dtype is dtypes.float32 else "")
        if not has_symbol(symbol):
            raise UnimplementedError(op=op.operator.name, what=f"the C library has no {symbol}")
        kind = xs[0].llvm.type
        module = trace.builder.module
        function = module.globals.get(symbol) or ir.Function(module, ir.FunctionType(kind, [kind] * len(xs)), symbol)
        function.attributes.add("readnone")
        return trace.builder.call(function, [x.llvm for x in xs])

    return lower


def _approximated(name: str, exact: Rule) -> Rule:
    """For float32 under `fast_math` the instructions of approximate.py, else `exact`."""

    def lower(trace: KernelTrace, op: Any, x: KernelScalar) -> Any:
        if trace.fast and x.dtype is dtypes.float32:
            return getattr(approximate, name)(trace.builder, x.llvm)
        return exact(trace, op, x)

    return lower


def _cast(trace: KernelTrace, op: Any, x: KernelScalar) -> Any:
    b, source, wanted = trace.builder, x.dtype, op.dtype
    kind = _LLVM_TYPES.get(wanted)
    if kind is None:
        raise UnimplementedError(op="Cast", what=f"a kernel has no scalars of dtype {wanted.name}")
    if source is wanted:
        return x
    if wanted.is_bool:
        zero = trace.number(0, source)
        return b.fcmp_unordered("!=", x.llvm, zero) if source.is_floating else b.icmp_signed("!=", x.llvm, zero)
    if source.is_floating and wanted.is_floating:
        return b.fpext(x.llvm, kind) if wanted.size > source.size else b.fptrunc(x.llvm, kind)
    if source.is_floating:
        return b.fptosi(x.llvm, kind)
    if wanted.is_floating:
        return b.uitofp(x.llvm, kind) if source.is_bool else b.sitofp(x.llvm, kind)
    if source.is_bool:
        return b.zext(x.llvm, kind)
    return b.sext(x.llvm, kind) if wanted.size > source.size else b.trunc(x.llvm, kind)


def _negate(trace: KernelTrace, op: Any, x: KernelScalar) -> Any:
    return trace.builder.fneg(x.llvm) if x.dtype.is_floating else trace.builder.neg(x.llvm)


def _absolute(trace: KernelTrace, op: Any, x: KernelScalar) -> Any:
    if x.dtype.is_floating:
        return _intrinsic("fabs")(trace, op, x)
    b = trace.builder
    return b.select(b.icmp_signed("<", x.llvm, trace.number(0, x.dtype)), b.neg(x.llvm), x.llvm)


def _sigmoid(trace: KernelTrace, op: Any, x: KernelScalar) -> Any:
    """1 / (1 + e) or e / (1 + e) with e = exp(-|x|): far below 0 it is e itself, as the reference has it."""
    b, one = trace.builder, trace.number(1, x.dtype)
    size = _intrinsic("fabs")(trace, op, x)
    e = _libm("exp")(trace, op, KernelScalar(b.fneg(size), x.dtype))
    above = b.select(b.fcmp_ordered("<", x.llvm, trace.number(0, x.dtype)), e, one)
    return b.fdiv(above, b.fadd(one, e))


def _relu(trace: KernelTrace, op: Any, x: KernelScalar) -> Any:
    return _extremum(">")(trace, op, x, KernelScalar(trace.number(0, x.dtype), x.dtype))


LOWER: dict[str, Rule] = {
    # operator   instruction or function, by the kind of its first operand
    "Add": _arithmetic("fadd", "add"),
    "Sub": _arithmetic("fsub", "sub"),
    "Mul": _arithmetic("fmul", "mul"),
    "RealDiv": _arithmetic("fdiv", "sdiv"),
    "Neg": _negate,
    "Abs": _absolute,
    "Maximum": _extremum(">"),
    "Minimum": _extremum("<"),
    "Relu": _relu,
    "Square": lambda trace, op, x: _arithmetic("fmul", "mul")(trace, op, x, x),
    "Sqrt": _intrinsic("sqrt"),
    "Floor": _intrinsic("floor"),
    "Ceil": _intrinsic("ceil"),
    "Round": _intrinsic("rint"),
    "Rint": _intrinsic("rint"),
    **{name: _libm(name.lower()) for name in (
        "Log1p", "Expm1", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Atan2", "Sinh", "Cosh", "Asinh",
        "Acosh", "Atanh", "Erf", "Erfc", "Pow")},
    **{name: _approximated(name.lower(), _libm(name.lower())) for name in ("Exp", "Log", "Tanh")},
    "Sigmoid": _approximated("sigmoid", _sigmoid),
    "Equal": _compare("=="),
    "NotEqual": _compare("!="),
    "Less": _compare("<"),
    "LessEqual": _compare("<="),
    "Greater": _compare(">"),
    "GreaterEqual": _compare(">="),
    "LogicalAnd": lambda trace, op, x, y: trace.builder.and_(x.llvm, y.llvm),
    "LogicalOr": lambda trace, op, x, y: trace.builder.or_(x.llvm, y.llvm),
    "LogicalNot": lambda trace, op, x: trace.builder.not_(x.llvm),
    "Select": lambda trace, op, c, x, y: trace.builder.select(c.llvm, x.llvm, y.llvm),
    "Cast": _cast,
    "Identity": lambda trace, op, x: x,
}  # fmt: skip


def emit(function: Callable[..., Any], name: str, inputs: Sequence[np.dtype], attrs: dict[str, Any]
         ) -> tuple[ir.Module, DType]:  # fmt: skip
    """The module of one kernel, `void name(out, inputs..., n)` over contiguous arrays, and the dtype it gives.

    raises UnimplementedError or SignatureError naming kernel and operator for what kernels cannot express
    """
    module = ir.Module(name)
    found = [of_numpy(d) for d in inputs]
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [_POINTER] * (len(inputs) + 1) + [_I64]), name)
    names = function.__code__.co_varnames[: len(inputs)]
    for argument, arg_name in zip(loop.args, ("out", *names, "n")):
        argument.name = arg_name
        if argument.type == _POINTER:
            argument.attributes.add("noalias")
    entry, body, done = (loop.append_basic_block(n) for n in ("entry", "i.loop", "done"))
    b = ir.IRBuilder(entry)
    out, *pointers, n = loop.args
    b.cbranch(b.icmp_signed(">", n, ir.Constant(_I64, 0)), body, done)
    b.position_at_end(body)
    i = b.phi(_I64, "i")
    i.add_incoming(ir.Constant(_I64, 0), entry)
    scalars = []
    for pointer, dtype, arg_name in zip(pointers, found, names):
        stored = _BYTE if dtype.is_bool else _LLVM_TYPES[dtype]
        x = b.load(b.gep(pointer, [i], source_etype=stored, name=f"{arg_name}.i.ptr"), f"{arg_name}.i", typ=stored)
        scalars.append(KernelScalar(b.trunc(x, ir.IntType(1)) if dtype.is_bool else x, dtype))
    trace = KernelTrace(b, name)
    state = dispatch.state
    saved = state.trace, state.tapes
    state.trace, state.tapes = trace, ()
    try:
        result = trace.to_tensor(function(*scalars, **attrs))
    finally:
        state.trace, state.tapes = saved
    y, dtype = result.llvm, result.dtype
    if dtype not in _LLVM_TYPES:
        raise SignatureError(op=name, what="the kernel gives a dtype that kernels do not have", found=dtype.name)
    if dtype.is_bool:
        y = b.zext(y, _BYTE)
    b.store(y, b.gep(out, [i], source_etype=y.type, name="out.i.ptr"))
    following = b.add(i, ir.Constant(_I64, 1), "i.next")
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, n), body, done)
    b.position_at_end(done)
    b.ret_void()
    return module, dtype


class CompiledKernel:
    """Machine code of one kernel for one choice of dtypes and attributes. dtype: NumPy's, of the result."""

    __slots__ = ("dtype", "run")

    def __init__(self, address: int, arguments: int, dtype: np.dtype) -> None:
        self.dtype = dtype
        kinds = [ctypes.c_void_p] * arguments + [ctypes.c_int64]
        self.run = ctypes.CFUNCTYPE(None, *kinds)(address)


_serial = iter(range(1 << 62))


def compile_elementwise(function: Callable[..., Any], name: str, inputs: Sequence[np.dtype], attrs: dict[str, Any]
                        ) -> CompiledKernel:  # fmt: skip
    """Stage, optimise and load one kernel."""
    unique = f"{name}.{'_'.join(of_numpy(d).short for d in inputs)}.{next(_serial)}"  # one engine holds all functions
    module, dtype = emit(function, unique, inputs, attrs)
    return CompiledKernel(compile_module(module, unique), len(inputs) + 1, dtype.np)
