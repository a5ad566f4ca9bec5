"""The tables of operators agree with the modules, and a model imports only the families of its operators."""

import concurrent.futures
import json
import os
import subprocess
import sys
import threading

import make_families
import pytest

import opwright.lite.ops as dialect
from opwright.compiler.kernels import FAMILIES
from opwright.core.dtypes import float32
from opwright.core.errors import NotFoundError
from opwright.lite.ops.definition import LiteOperator
from opwright.ops.slots import Input, Output


@pytest.mark.parametrize("package", make_families.PACKAGES)
def test_the_tables_are_those_that_the_modules_give(package: str) -> None:
    path, text, expected = make_families.written(package)
    assert text == expected, f"{path} is not current: make families"


def test_each_operator_stands_once_in_the_table():
    names = [name for row in dialect.FAMILIES.values() for name in row.split()]
    assert sorted(names) == dialect.list_names() == sorted(set(names))
    assert list(dialect.operators()) == dialect.list_names()
    assert all(op.name == name for name, op in dialect.operators().items())


def test_an_operator_is_derived_from_its_body_once_when_threads_first_read_it():
    for _ in range(20):

        class Body:
            x = Input((float32,))
            y = Output(like="x")
            moves = True

        operator = LiteOperator(Body, "LEAKY_RELU", None, {})
        assert operator.name == "LEAKY_RELU"
        assert operator.moves
        assert "inputs" not in vars(operator)
        barrier = threading.Barrier(4)

        def read(operator=operator, barrier=barrier):
            barrier.wait()
            return operator.profile, operator.attr_defs, operator.code

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            seen = [f.result() for f in [pool.submit(read) for _ in range(4)]]
        assert all(a is b for row in seen for a, b in zip(row, seen[0]))
        assert list(seen[0][1]) == ["alpha"]
        assert seen[0][2] == 98
        assert not hasattr(operator, "nothing")
        assert operator.__doc__ is None


@pytest.mark.parametrize("name", ["CONV_3D_NOT", "add", "", None, 3])
def test_what_is_no_operator(name):
    with pytest.raises(NotFoundError, match="no operator of this name"):
        dialect.get(name)
    with pytest.raises(NotFoundError, match="no operator of this name"):
        dialect.family_of(name)


TWO = """
import json, sys, opwright as ow
from opwright.lite.format import Model, objects, versions
from opwright.lite import BuiltinOpResolver, Interpreter
t = lambda n: objects.Tensor(name=n, shape=[2], type=0, has_rank=True)
model = Model(
    operator_codes=[versions.operator_code("ADD", 1), versions.operator_code("NEG", 1)],
    buffers=[objects.Buffer()],
    subgraphs=[objects.SubGraph(
        tensors=[t("a"), t("b"), t("c")], inputs=[0, 1], outputs=[2],
        operators=[objects.Operator(opcode_index=0, inputs=[0, 1], outputs=[2],
                                    builtin_options=objects.AddOptions())],
    )],
)
families = lambda: sorted(m.rpartition(".ops.")[2] for m in sys.modules if ".lite.ops." in m)
resolver = BuiltinOpResolver()
resolver.add_all(BuiltinOpResolver())
before = families()
Interpreter(model_content=model.to_bytes()).allocate_tensors()
print(json.dumps([before, families()]))
"""


def test_an_interpreter_imports_only_the_families_of_its_model(tmp_path):
    """With a plan of an earlier process it imports none."""
    env = {**os.environ, "OPWRIGHT_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", TWO], capture_output=True, text=True, env=env)
    assert ran.returncode == 0, ran.stderr
    before, after = json.loads(ran.stdout)
    assert not set(before) & set(dialect.FAMILIES)
    assert set(after) & set(dialect.FAMILIES) == {"elementwise"}


def test_makers_load_no_llvm():
    """A process that finds machine code in the cache stages nothing, so kernels are imported without the language."""
    modules = [f"opwright.compiler.kernels.{module}" for module in FAMILIES]
    code = f"import importlib, sys; [importlib.import_module(m) for m in {modules}]; print('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
