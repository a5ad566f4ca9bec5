"""Delegates that the tests share, and a small model."""

from __future__ import annotations

import numpy as np
from lite_kit import Build

import opwright.lite as lite
from opwright.lite.format import Model, objects

X = np.float32([1, 2, 3, 4, 5])
RUN = {
    "ADD": np.add,
    "MUL": np.multiply,
    "SUB": np.subtract,
    "SIN": np.sin,
    "NEG": np.negative,
    "Twice": lambda x: 2 * x,
}


class Formulas(lite.DelegateKernel):
    """Runs nodes whose formula is in RUN. calls: of all kernels of one delegate, in order."""

    def __init__(self, calls=None, fail="", report=False):
        self.calls, self.fail, self.report = [] if calls is None else calls, fail, report

    def at(self, phase, context):
        self.calls.append(phase)
        if phase == self.fail:
            context.report_error("no %s today", phase)
            raise ZeroDivisionError(f"{phase} went wrong")

    def init(self, context, params):
        self.at("init", context)
        self.params = params
        self.nodes = [context.get_node_and_registration(i) for i in params.nodes_to_replace]

    def prepare(self, context, node):
        self.at("prepare", context)
        shapes = {i: t.shape for i, t in zip(self.params.input_tensors, node.inputs)}
        for n, _ in self.nodes:
            shapes[n.outputs[0]] = np.broadcast_shapes(*(shapes[i] for i in n.inputs))
        for i, view in zip(self.params.output_tensors, node.outputs):
            context.resize_tensor(view, shapes[i])

    def invoke(self, context, node):
        self.at("invoke", context)
        values = {i: t.data for i, t in zip(self.params.input_tensors, node.inputs)}
        for n, registration in self.nodes:
            values[n.outputs[0]] = RUN[registration.name](*[values[i] for i in n.inputs])
            if self.report and context.is_profiling:
                context.add_profiling_event(n.number, 0.25)
        for i, t in zip(self.params.output_tensors, node.outputs):
            if t.is_dynamic:
                context.resize_tensor(t, values[i].shape)
            t.data[...] = values[i]

    def free(self, context):
        self.at("free", context)


class Takes(lite.SimpleDelegate):
    """Takes these operators in version 1. seen: what it was asked."""

    def __init__(self, *names, fail="", **options):
        super().__init__(**options)
        self.supported = dict.fromkeys(names, 1)
        self.calls, self.seen, self.fail = [], [], fail

    def is_node_supported(self, registration, node, context):
        self.seen.append((node.number, registration.name, registration.version))
        return super().is_node_supported(registration, node, context)

    def create_delegate_kernel(self):
        return Formulas(self.calls, self.fail)


class Nested(lite.DelegateKernel):
    """Runs its nodes in an interpreter of its own, on a model of those nodes."""

    def __init__(self, content):
        self.content = content

    def init(self, context, params):
        model = Model.read(self.content)
        main = model.subgraphs[context.subgraph_index]
        self.fed = [i for i in params.input_tensors if not context.tensors[i].is_constant]
        main.operators = [main.operators[i] for i in params.nodes_to_replace]
        main.inputs, main.outputs = self.fed, list(params.output_tensors)
        model.subgraphs = [main]
        model.signature_defs = []
        self.params = params
        self.inner = lite.Interpreter(model_content=model.to_bytes())

    def prepare(self, context, node):
        for i, t in zip(self.params.input_tensors, node.inputs):
            if i in self.fed:
                self.inner.resize_tensor_input(i, t.shape)
        self.inner.allocate_tensors()
        for i, t in zip(self.params.output_tensors, node.outputs):
            context.resize_tensor(t, self.inner.tensor(i)().shape)

    def invoke(self, context, node):
        for i, t in zip(self.params.input_tensors, node.inputs):
            if i in self.fed:
                self.inner.set_tensor(i, t.data)
        self.inner.invoke()
        for i, t in zip(self.params.output_tensors, node.outputs):
            t.data[...] = self.inner.get_tensor(i)

    def free(self, context):
        self.inner.close()


def four() -> bytes:
    """a = x + 1; b = a * a; s = sin(a); y = b + s"""
    b = Build()
    b.tensor("one", data=np.float32([1]))
    return b.op("ADD", "x one", "a").op("MUL", "a a", "b").op("SIN", "a", "s").op("ADD", "b s", "y").done()


def four_of(x):
    a = x + 1
    return a * a + np.sin(a)


def names(interpreter):
    return [d["op_name"] for d in interpreter._get_ops_details()]


def ready(content, *delegates, **options):
    options["model_path" if isinstance(content, str) else "model_content"] = content
    interpreter = lite.Interpreter(experimental_delegates=delegates, **options)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter, x=X):
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def tensor_map(name, index):
    return objects.TensorMap(name=name, tensor_index=index)
