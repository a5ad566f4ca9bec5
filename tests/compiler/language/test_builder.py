"""The builder of kernels leaves out instructions that compute nothing new; the text of a module means what llvmlite's
does."""

import numpy as np
import pytest
from llvmlite import binding, ir

from opwright.compiler import language as kl
from opwright.compiler.language import f32, i64, ptr
from opwright.compiler.language.builder import InstructionBuilder, Names
from opwright.compiler.language.module_text import module_text
from opwright.compiler.target import host, optimised

I64 = ir.IntType(64)


def _function():
    module = ir.Module("m")
    function = ir.Function(module, ir.FunctionType(I64, [I64, I64, ir.PointerType()]), "f")
    function.scope = Names(4)
    return function, InstructionBuilder(function.append_basic_block("entry"))


def _number(n):
    return ir.Constant(I64, n)


def test_equal_instructions_of_a_block_are_one():
    function, b = _function()
    x, y, p = function.args
    assert b.add(x, y) is b.add(x, y)
    assert b.add(x, y) is not b.add(y, x)
    assert b.icmp_signed("<", x, y) is b.icmp_signed("<", x, y)
    assert b.icmp_signed("<", x, y) is not b.icmp_signed(">", x, y)
    assert b.icmp_signed("<", x, y) is not b.icmp_unsigned("<", x, y)
    assert b.element(p, x, I64) is b.element(p, x, I64)
    assert b.element(p, x, I64) is not b.element(p, x, ir.IntType(8))
    assert b.trunc(x, ir.IntType(8)) is not b.trunc(x, ir.IntType(16))
    assert b.load(p, typ=I64) is not b.load(p, typ=I64)  # memory may have changed
    assert b.add(x, y, flags=("nsw",)) is not b.add(x, y)  # which is undefined for fewer values


def test_another_block_computes_its_own():
    function, b = _function()
    x, y, _ = function.args
    first = b.add(x, y)
    other = b.append_basic_block("other")
    b.branch(other)
    b.position_at_end(other)
    assert b.add(x, y) is not first


@pytest.mark.parametrize(
    ("name", "second", "result"),
    [("add", 0, "x"), ("sub", 0, "x"), ("mul", 1, "x"), ("sdiv", 1, "x"), ("shl", 0, "x"), ("mul", 2, None)],
)
def test_neutral_operands(name, second, result):
    function, b = _function()
    x = function.args[0]
    assert (getattr(b, name)(x, _number(second)) is x) == (result == "x")


def test_numbers_are_computed_unless_they_wrap():
    function, b = _function()
    assert b.sub(_number(3), _number(5)).constant == -2
    assert b.mul(_number(0), _number(5)).constant == 0
    assert b.add(_number(0), function.args[0]) is function.args[0]
    assert b.sub(_number(0), function.args[0]) is not function.args[0]
    wrapped = b.add(_number(2**63 - 1), _number(1))
    assert isinstance(wrapped, ir.Instruction)


def test_a_variable_is_stored_as_its_block_is_left():
    function, b = _function()
    x, y, _ = function.args
    variable = b.allocate(I64)
    b.put(variable, x)
    assert b.get(variable, I64) is x
    b.put(variable, y)
    other = b.append_basic_block("other")
    b.branch(other)
    b.position_at_end(other)
    loaded = b.get(variable, I64)
    assert isinstance(loaded, ir.LoadInstr)
    assert b.get(variable, I64) is loaded
    b.ret(loaded)
    names = [type(i).__name__ for i in function.entry_basic_block.instructions]
    assert names == ["AllocaInstr", "StoreInstr", "Branch"]  # x was never stored
    assert function.entry_basic_block.instructions[1].operands[0] is y


@kl.family
def stepped(work: kl.Work, x: ptr[f32], out: ptr[f32], n: i64, *, rows: int, lanes: int) -> None:
    """Write the sums of `rows` parts of x, by vectors, in a tile of registers."""
    for _ in work.items():
        sums = kl.registers(f32, lanes, rows)
        for r in range(rows):
            sums[r] = kl.zeros(f32, lanes)
        for k in range(0, n, lanes):
            for r in range(rows):
                if (k + r) % 2 == 0:
                    sums[r] = sums[r] + x.load(r * n + k, lanes)
                else:
                    sums[r] = sums[r] - x.load(r * n + k, lanes) * x[r * n]
        for r in range(rows):
            out.store(sums[r], r * lanes)


def test_the_text_of_a_module_is_the_code_of_llvmlites():
    module = stepped.emit(host(), rows=2, lanes=4)
    target, machine = host(), host().machine()
    objects = [machine.emit_object(optimised(text, target, machine)) for text in (module_text(module), str(module))]
    assert objects[0] == objects[1]


def test_a_module_with_other_instructions_has_llvmlites_text():
    function, b = _function()
    x, _, p = function.args
    b.ret(b.atomic_rmw("add", p, x, "seq_cst"))
    assert module_text(function.module) == str(function.module)
    binding.parse_assembly(module_text(function.module)).verify()


def test_registers_over_branches_and_loops():
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    out = np.zeros((2, 4), np.float32)
    kl.call(stepped.code(rows=2, lanes=4), [x, out, 32], 1)
    want = np.zeros((2, 4), np.float32)
    for r in range(2):
        for k in range(0, 32, 4):
            part = x[r * 32 + k : r * 32 + k + 4]
            want[r] = want[r] + part if (k + r) % 2 == 0 else want[r] - part * x[r * 32]
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
