"""Opwright's core from scratch: one description of an operator, and four interpreters of it, for three operators.

    python docs/from_scratch.py

Read it top to bottom. The names are those of the package, and the comments say where the real thing is. What is left
out here is most of the work: dtypes, shapes, broadcasting, errors, attributes, effects. When the package stops
resembling this file, one of the two is wrong.
"""

import ctypes
import math
from dataclasses import dataclass, field

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir

# ---- 1. An operator describes itself ---------------------------------------------------------- ops/definition.py
# `compute` is its meaning, in NumPy. `gradient` is written in operators, so whoever runs or records operators can run
# or record gradients, and gradients of gradients.


class Operator:
    def __init__(self, name, compute, gradient):
        self.name, self.compute, self.gradient = name, compute, gradient

    def __call__(self, *inputs):
        return call(self, inputs)


Add = Operator("Add", np.add, lambda op, dy: (dy, dy))
Mul = Operator("Mul", np.multiply, lambda op, dy: (dy * op.inputs[1], dy * op.inputs[0]))
Exp = Operator("Exp", np.exp, lambda op, dy: (dy * op.output,))


class Tensor:  # ops/tensor.py; Python's operators are put on it in ops/overloads.py
    __array_priority__ = 100  # NumPy arrays leave `array * tensor` to the tensor
    __add__ = __radd__ = lambda x, y: Add(x, y)
    __mul__ = __rmul__ = lambda x, y: Mul(x, y)


# ---- 2. A call goes to whoever interprets now -------------------------------------------------- ops/dispatch.py


@dataclass
class State:
    trace: object = None  # who records; None: run now
    tapes: list = field(default_factory=list)  # who wants to know what ran


state = State()


def call(op, inputs):
    interpret = execute if state.trace is None else state.trace.record
    tensors = [x if isinstance(x, Tensor) else (state.trace or eager).to_tensor(x) for x in inputs]
    output = interpret(op, tensors)
    for tape in state.tapes:
        tape.records.append(OpRecord(op, tensors, output))
    return output


# ---- 3. First interpreter: run it ------------------------------------------------------------- eager/execute.py


class EagerTensor(Tensor):
    def __init__(self, array):
        self.array = np.asarray(array, np.float64)

    def numpy(self):
        return self.array


class eager:
    to_tensor = EagerTensor


def execute(op, tensors):
    return EagerTensor(op.compute(*[t.array for t in tensors]))


# ---- 4. Second interpreter: write it down ------------------------------------- graph/ir.py, tracing/trace.py
# Values and nodes never change once made and are compared by identity. A symbolic tensor is the value it stands for.


class Value(Tensor):
    def __init__(self, name, constant=None):
        self.name, self.constant = name, constant


@dataclass(frozen=True, eq=False)
class Node:
    op: Operator
    inputs: tuple
    output: Value


@dataclass(frozen=True, eq=False)
class Graph:
    inputs: list
    nodes: list
    outputs: list

    def __str__(self):
        lines = [f"  {n.output.name} = {n.op.name}({', '.join(v.name for v in n.inputs)})" for n in self.nodes]
        head = f"graph ({', '.join(v.name for v in self.inputs)}) {{"
        return "\n".join([head, *lines, f"  return {', '.join(v.name for v in self.outputs)}", "}"])


class FuncTrace:
    def __init__(self):
        self.nodes = []

    def to_tensor(self, number):
        return Value(repr(float(number)), float(number))

    def record(self, op, tensors):
        output = Value(f"{op.name.lower()}_{len(self.nodes)}")
        self.nodes.append(Node(op, tuple(tensors), output))
        return output


def trace(function, n_inputs):
    """Run `function` once on symbolic tensors; what it called is the graph."""
    inputs = [Value(f"x{i}") for i in range(n_inputs)]
    saved, state.trace = state.trace, FuncTrace()
    try:
        outputs = function(*inputs)
        outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
        return Graph(inputs, state.trace.nodes, outputs)
    finally:
        state.trace = saved


def plan(graph):  # compiler/plan.py
    """A graph as one straight-line Python function over arrays: the work of looking things up is done once."""
    name = {v: f"v{i}" for i, v in enumerate([*graph.inputs, *[n.output for n in graph.nodes]])}

    def text(v):
        return repr(v.constant) if v.constant is not None else name[v]

    lines = [f"def run({', '.join(map(text, graph.inputs))}):"]
    lines += [f"    {text(n.output)} = {n.op.name}({', '.join(map(text, n.inputs))})" for n in graph.nodes]
    scope = {n.op.name: n.op.compute for n in graph.nodes}
    exec("\n".join([*lines, f"    return {', '.join(map(text, graph.outputs))}"]), scope)
    return scope["run"]


# ---- 5. Third interpreter: backwards ----------------------------------------- eager/tape.py, ops/autodiff.py


@dataclass
class OpRecord:
    op: Operator
    inputs: list
    output: Tensor


class GradientTape:
    def __enter__(self):
        self.records = []
        state.tapes.append(self)
        return self

    def __exit__(self, *_):
        state.tapes.remove(self)

    def gradient(self, target, sources):
        grads = {id(target): (state.trace or eager).to_tensor(1.0)}
        for record in reversed(self.records):
            dy = grads.get(id(record.output))
            if dy is None:
                continue
            for x, dx in zip(record.inputs, record.op.gradient(record, dy)):
                grads[id(x)] = grads[id(x)] + dx if id(x) in grads else dx
        return [grads.get(id(s)) for s in sources]


# ---- 6. Fourth interpreter: machine code -------------------- compiler/language/elements.py, compiler/elementwise.py
# The same calls become instructions, by a table. The graph is one loop over the elements of its inputs.


def exponential(builder, x):
    module = builder.module
    kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
    return builder.call(module.globals.get("exp") or ir.Function(module, kind, "exp"), [x])


LOWER = {"Add": ir.IRBuilder.fadd, "Mul": ir.IRBuilder.fmul, "Exp": exponential}


def emit_elements(graph):
    """void kernel(out, inputs..., n): out[i] = graph(inputs[i]...)"""
    f64, i64, pointer = ir.DoubleType(), ir.IntType(64), ir.PointerType()
    module = ir.Module()
    kind = ir.FunctionType(ir.VoidType(), [pointer] * (1 + len(graph.inputs)) + [i64])
    kernel = ir.Function(module, kind, "kernel")
    entry, body, done = (kernel.append_basic_block(name) for name in ("entry", "i.loop", "done"))
    b = ir.IRBuilder(entry)
    out, *xs, n = kernel.args
    b.cbranch(b.icmp_signed(">", n, i64(0)), body, done)
    b.position_at_end(body)
    i = b.phi(i64, "i")
    scalars = {}
    for value, x in zip(graph.inputs, xs):
        scalars[value] = b.load(b.gep(x, [i], source_etype=f64), f"{value.name}.i", typ=f64)
    for node in graph.nodes:
        operands = [scalars[v] if v in scalars else f64(v.constant) for v in node.inputs]
        scalars[node.output] = LOWER[node.op.name](b, *operands)
    b.store(scalars[graph.outputs[0]], b.gep(out, [i], source_etype=f64))
    following = b.add(i, i64(1), "i.next")
    i.add_incoming(i64(0), entry)
    i.add_incoming(following, body)
    b.cbranch(b.icmp_signed("<", following, n), body, done)
    b.position_at_end(done)
    b.ret_void()
    return module


def compile_elementwise(graph):
    """A function on arrays that runs the graph as machine code."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(emit_elements(graph))), machine)
    engine.finalize_object()
    arguments = [ctypes.c_void_p] * (1 + len(graph.inputs)) + [ctypes.c_int64]
    run = ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address("kernel"))

    def compiled(*arrays):
        out = np.empty_like(arrays[0])
        run(out.ctypes.data, *[a.ctypes.data for a in arrays], out.size)
        return out

    compiled.engine = engine  # the code lives as long as its engine
    return compiled


# ---- 7. All of it, on y = x * exp(x * w) + 1 --------------------------------------------------------------------


def f(x, w):
    return x * Exp(x * w) + 1.0


def df(x, w):
    """dy/dx and dy/dw: the tape and the rules run on whatever tensors they get, symbolic ones too."""
    with GradientTape() as tape:
        y = f(x, w)
    return tuple(tape.gradient(y, [x, w]))


def main():
    x, w = np.linspace(-1.0, 1.0, 5), np.full(5, 0.5)
    y = x * np.exp(x * w) + 1.0
    dx, dw = np.exp(x * w) * (1.0 + x * w), x * x * np.exp(x * w)

    assert np.allclose(f(EagerTensor(x), EagerTensor(w)).numpy(), y)
    assert all(np.allclose(g.numpy(), e) for g, e in zip(df(EagerTensor(x), EagerTensor(w)), (dx, dw)))

    graph, backward = trace(f, 2), trace(df, 2)
    print(graph)
    print(backward)
    assert np.allclose(plan(graph)(x, w), y)
    assert all(np.allclose(g, e) for g, e in zip(plan(backward)(x, w), (dx, dw)))
    assert np.allclose(compile_elementwise(graph)(x, w), y)
    assert np.allclose(compile_elementwise(backward)(x, w), dx)

    def second(x):  # a gradient of a gradient, traced and compiled: d2/dx2 exp(x * x) at 1 is 6e
        with GradientTape() as outer:
            with GradientTape() as inner:
                z = Exp(x * x)
            (dz,) = inner.gradient(z, [x])
        return outer.gradient(dz, [x])[0]

    assert np.allclose(compile_elementwise(trace(second, 1))(np.ones(3)), 6 * math.e)
    print("the four interpreters agree")


if __name__ == "__main__":
    main()
