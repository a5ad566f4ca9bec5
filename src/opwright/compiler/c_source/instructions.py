"""C expressions of LLVM instructions.

Lives here: the tables, `Instructions`.  Not here: statements (statements.py), the text of helpers (expressions.py).

Operands are expressions; functions.py and statements.py write instructions without a value: stores, branches, phis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llvmlite import ir
from llvmlite.ir import instructions as llvm

from ...core.errors import UnimplementedError
from ..language.values import DIVISIONS
from .expressions import (
    ADD,
    AND,
    CHOICE,
    COMPARE,
    EQUAL,
    MUL,
    OR,
    PRIMARY,
    SHIFT,
    UNARY,
    XOR,
    CExpression,
    c_type,
    is_flag,
    reads,
    short,
)

ARITHMETIC = {
    # name in LLVM: operator in C, precedence
    "fadd": ("+", ADD),
    "fsub": ("-", ADD),
    "fmul": ("*", MUL),
    "fdiv": ("/", MUL),
    "add": ("+", ADD),
    "sub": ("-", ADD),
    "mul": ("*", MUL),
    "and": ("&", AND),
    "or": ("|", OR),
    "xor": ("^", XOR),
}
COMPARISONS = {"<": COMPARE, "<=": COMPARE, ">": COMPARE, ">=": COMPARE, "==": EQUAL, "!=": EQUAL}
ORDERED = {"olt": "<", "ole": "<=", "ogt": ">", "oge": ">=", "oeq": "==", "une": "!="}
INTEGER = {
    "eq": "==",
    "ne": "!=",
    "slt": "<",
    "sle": "<=",
    "sgt": ">",
    "sge": ">=",
    "ult": "<",
    "ule": "<=",
    "ugt": ">",
    "uge": ">=",
}
MATH_FUNCTIONS = {  # intrinsics of floats that are exact functions of <math.h>
    "fabs": "fabs",
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "rint": "rint",
    "trunc": "trunc",
    "copysign": "copysign",
}


def function_name(name: str) -> str:
    """Return the C name of a function of the module."""
    return name.replace(".", "_")


class Instructions:
    """Expressions of the instructions of a function. helpers: names of those used so far.

    bounded: whether conversions never exceed the range of integers, and rounding applies only below 2^51.
    """

    def __init__(self, bounded: bool) -> None:
        self.bounded = bounded
        self.helpers: set[str] = set()

    def expression(self, x: ir.Instruction, operands: Sequence[CExpression]) -> CExpression:
        """Return the value of an instruction. Raises UnimplementedError if C has no equivalent."""
        c_type(x.type)  # refuses vectors
        if isinstance(x, llvm.ICMPInstr):
            return self._compared(x, operands)
        if isinstance(x, llvm.FCMPInstr):
            if x.op not in ORDERED:
                raise _unknown(f"fcmp {x.op}")
            return _binary(ORDERED[x.op], COMPARISONS[ORDERED[x.op]], operands[0], operands[1])
        if isinstance(x, llvm.SelectInstr):
            mask, *both = operands
            if not all(o.unsigned for o in both):
                both = [_as(o, x.type, False) for o in both]
            return self._chosen(mask, *both)
        if isinstance(x, llvm.CastInstr):
            return self._cast(x, operands[0])
        if isinstance(x, llvm.CallInstr):
            return self._called(x, operands)
        return self._arithmetic(x, operands)

    def _helper(self, name: str, *operands: CExpression, unsigned: bool = False) -> CExpression:
        self.helpers.add(name)
        return _call(name, operands, unsigned)

    # ---- arithmetic ---------------------------------------------------------------------------------------------

    def _arithmetic(self, x: ir.Instruction, operands: Sequence[CExpression]) -> CExpression:
        name, kind = x.opname, x.type
        if name == "fneg":
            return CExpression(f"-{operands[0].within(PRIMARY)}", UNARY, reads=reads(*operands))
        if name == "frem":
            return _call("fmodf" if c_type(kind) == "float" else "fmod", operands)
        if is_flag(kind):
            return self._flags(x, operands)
        if name in DIVISIONS:
            unsigned = name.startswith("u")
            helper = f"ow_{name[1:]}_{'u' if unsigned else 'i'}{kind.width}"
            return self._helper(helper, *(_as(o, kind, unsigned) for o in operands), unsigned=unsigned)
        if name in ("shl", "lshr", "ashr"):
            return self._shifted(name, kind, *operands)
        if name not in ARITHMETIC:
            raise _unknown(name)
        sign, precedence = ARITHMETIC[name]
        if name[0] == "f":
            return _binary(sign, precedence, operands[0], operands[1])
        if name == "sub" and operands[0].text == "0":
            return self._wrapped("-", kind, operands[1])
        if name == "xor" and operands[1].text == "-1":
            return CExpression(f"~{operands[0].within(PRIMARY)}", UNARY, operands[0].unsigned, operands[0].reads)
        if name in ("and", "or", "xor"):
            unsigned = any(o.unsigned for o in operands)
            a, b = _alike(operands, kind, unsigned)
            result = _binary(sign, precedence, a, b, tight=True)
            return replace(result, unsigned=unsigned and kind.width >= 32)
        return self._wrapped(sign, kind, *operands)

    @staticmethod
    def _wrapped(sign: str, kind: ir.Type, *operands: CExpression) -> CExpression:
        """Return arithmetic that wraps, on unsigned numbers; C promotes short ones to int, which holds every result."""
        if kind.width < 32:
            text = _signed_text(sign, *(_as(o, kind, False) for o in operands))
            return CExpression(f"({c_type(kind)})({text})", UNARY, reads=reads(*operands))
        parts = _alike(operands, kind, True)
        text = _signed_text(sign, *parts)
        return CExpression(text, UNARY if len(parts) == 1 else MUL if sign == "*" else ADD, True, reads(*operands))

    @staticmethod
    def _shifted(name: str, kind: ir.Type, x: CExpression, by: CExpression) -> CExpression:
        if name == "ashr":  # arithmetic in all C compilers
            a = _as(x, kind, False)
            return CExpression(f"{a.within(PRIMARY)} >> {by.within(PRIMARY)}", SHIFT, reads=reads(x, by))
        sign = "<<" if name == "shl" else ">>"
        a = _as(x, kind, True)
        text = f"{a.within(PRIMARY if a.precedence != UNARY else UNARY)} {sign} {by.within(PRIMARY)}"
        if kind.width < 32:
            return CExpression(f"({c_type(kind)})({text})", UNARY, reads=reads(x, by))
        return CExpression(text, SHIFT, True, reads(x, by))

    @staticmethod
    def _flags(x: ir.Instruction, operands: Sequence[CExpression]) -> CExpression:
        a, b = operands
        if x.opname == "xor" and b.text == "true":
            return CExpression(f"!{a.within(PRIMARY)}", UNARY, reads=a.reads)
        if x.opname == "xor":
            return _binary("!=", EQUAL, a, b, tight=True)
        if x.opname in ("and", "or"):
            return _binary(*ARITHMETIC[x.opname], a, b, tight=True)
        raise _unknown(f"{x.opname} of i1")

    # ---- choices ------------------------------------------------------------------------------------------------

    @staticmethod
    def _compared(x: llvm.ICMPInstr, operands: Sequence[CExpression]) -> CExpression:
        kind, sign = x.operands[0].type, INTEGER[x.op]
        if operands[0] == operands[1]:  # compilers warn of it
            return CExpression("true" if x.op in ("eq", "sle", "sge", "ule", "uge") else "false")
        if not isinstance(kind, ir.IntType) or is_flag(kind):
            return _binary(sign, COMPARISONS[sign], operands[0], operands[1], tight=True)
        unsigned = x.op.startswith("u") or (x.op in ("eq", "ne") and all(o.unsigned for o in operands))
        a, b = (_as(o, kind, unsigned) for o in operands)
        return _binary(sign, COMPARISONS[sign], a, b, tight=True)

    @staticmethod
    def _chosen(mask: CExpression, a: CExpression, b: CExpression) -> CExpression:
        text = f"{mask.within(EQUAL)} ? {a.within(OR)} : {b.within(CHOICE)}"
        return CExpression(text, CHOICE, a.unsigned, reads(mask, a, b))

    # ---- conversions --------------------------------------------------------------------------------------------

    def _cast(self, x: llvm.CastInstr, a: CExpression) -> CExpression:
        name, old, new = x.opname, x.operands[0].type, x.type
        if name == "bitcast":
            helpers = {
                ("float", "int32_t"): "ow_bits_f32",
                ("double", "int64_t"): "ow_bits_f64",
                ("int32_t", "float"): "ow_float_of",
                ("int64_t", "double"): "ow_double_of",
            }
            pair = (c_type(old), c_type(new))
            if pair not in helpers:
                raise _unknown(f"the bits of {pair[0]} as {pair[1]}")
            return self._helper(helpers[pair], a if pair[0] in ("float", "double") else _as(a, old, False))
        if name == "inttoptr":
            return CExpression(f"(ow_address)(uintptr_t){a.within(UNARY)}", UNARY, reads=a.reads)
        if name == "ptrtoint":
            return CExpression(f"(int64_t)(uintptr_t){a.within(UNARY)}", UNARY, reads=a.reads)
        if name in ("fptosi", "fptoui"):
            target = c_type(new, name == "fptoui")
            if not self.bounded:
                return self._helper(f"ow_{short(c_type(old))}_to_{short(target)}", a, unsigned=name == "fptoui")
            return _converted(target, a, name == "fptoui")
        if is_flag(old):  # true is 1 in C
            return _converted(c_type(new), a)
        if name in ("zext", "uitofp"):
            return _converted(c_type(new), _as(a, old, True))
        if name in ("sext", "sitofp", "fpext", "fptrunc"):
            return _converted(c_type(new), a if name.startswith("fp") else _as(a, old, False))
        if name == "trunc" and is_flag(new):
            return CExpression(f"({_as(a, old, False).within(PRIMARY)} & 1) != 0", EQUAL, reads=a.reads)
        if name == "trunc":
            return _converted(c_type(new), a)
        raise _unknown(name)

    # ---- calls --------------------------------------------------------------------------------------------------

    def _called(self, x: llvm.CallInstr, operands: Sequence[CExpression]) -> CExpression:
        name = x.callee.name if isinstance(x.callee, ir.Function) else ""
        if not name:
            raise _unknown(str(x.callee)[:60])
        if not name.startswith("llvm."):
            arguments = [
                _as(o, a.type, False) if isinstance(a.type, ir.IntType) and not is_flag(a.type) else o
                for o, a in zip(operands, x.args)
            ]
            return _call(function_name(name), arguments)
        stem = name.split(".")[1]
        single = c_type(x.type) == "float"
        if stem == "rint" and self.bounded and not single:
            return self._helper("ow_nearest", *operands)
        if stem in MATH_FUNCTIONS:
            return _call(MATH_FUNCTIONS[stem] + ("f" if single else ""), operands)
        if stem in ("fmuladd", "fma"):
            return self._helper("ow_fmaf" if single else "ow_fma", *operands)
        if name.startswith(("llvm.fptosi.sat.", "llvm.fptoui.sat.")):
            target = c_type(x.type, stem == "fptoui")
            source = short(c_type(x.args[0].type))
            return self._helper(f"ow_{source}_to_{short(target)}_sat", *operands, unsigned=stem == "fptoui")
        if stem in ("smin", "smax", "umin", "umax"):
            a, b = (_as(o, x.type, stem[0] == "u") for o in operands)
            return self._chosen(_binary("<" if stem.endswith("min") else ">", COMPARE, a, b, tight=True), a, b)
        if name.startswith("llvm.vector.reduce."):
            c_type(x.args[0].type)
        raise _unknown(name)


def _unknown(what: str) -> UnimplementedError:
    return UnimplementedError(
        what="the kernel does what has no form in C yet",
        found=what,
        do="write it with other operators, or load the compiled kernel instead",
    )


def _call(name: str, operands: Sequence[CExpression], unsigned: bool = False) -> CExpression:
    return CExpression(f"{name}({', '.join(o.text for o in operands)})", PRIMARY, unsigned, reads(*operands))


def _converted(target: str, a: CExpression, unsigned: bool = False) -> CExpression:
    return CExpression(f"({target}){a.within(UNARY)}", UNARY, unsigned, a.reads)


def _binary(sign: str, precedence: int, a: CExpression, b: CExpression, tight: bool = False) -> CExpression:
    """Return a sign b. tight: whether compound operands are in parentheses, as compilers recommend."""
    left, right = (UNARY, UNARY) if tight else (precedence, precedence - 1)
    return CExpression(f"{a.within(left)} {sign} {b.within(right)}", precedence, reads=reads(a, b))


def _signed_text(sign: str, *operands: CExpression) -> str:
    if len(operands) == 1:
        return f"{sign}{operands[0].within(PRIMARY)}"
    precedence = MUL if sign == "*" else ADD
    return f"{operands[0].within(precedence)} {sign} {operands[1].within(precedence - 1)}"


def _as(a: CExpression, kind: ir.Type, unsigned: bool) -> CExpression:
    """Convert an integer to signed or unsigned, with the same bits."""
    if a.unsigned == unsigned or is_flag(kind) or not isinstance(kind, ir.IntType):
        return a
    if a.text.isdigit() and unsigned and kind.width <= 32:
        return CExpression(f"{a.text}u", unsigned=True)
    return CExpression(f"({c_type(kind, unsigned)}){a.within(UNARY)}", UNARY, unsigned, a.reads)


def _alike(operands: Sequence[CExpression], kind: ir.Type, unsigned: bool) -> list[CExpression]:
    """Return operands converted to signed or unsigned; C converts a literal next to another operand implicitly."""
    numbers = [o.text.isdigit() for o in operands]
    if all(numbers):
        return [_as(o, kind, unsigned) for o in operands]
    return [o if number and kind.width == 64 else _as(o, kind, unsigned) for o, number in zip(operands, numbers)]


def signed(a: CExpression, kind: ir.Type) -> CExpression:
    """Convert an integer to signed, the type of variables."""
    return _as(a, kind, False)
