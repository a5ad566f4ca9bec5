"""The contract with users (data/public_contract.toml) holds; stubs and the package have the same signatures.

Lives here: names, signatures, commands. Not here: that documentation lists them (test_public_api.py), their behaviour.
"""

import ast
import functools
import importlib
import inspect
import tomllib
from pathlib import Path

import pytest

import opwright as ow
from opwright.lite import registration
from opwright.tools.cli import cli

CONTRACT = tomllib.loads((Path(__file__).parent / "data" / "public_contract.toml").read_text("utf-8"))


def public(path):
    """Return the object of a dotted path in `opwright`."""
    value = ow
    for name in path.split(".") if path != "opwright" else ():
        value = getattr(value, name)
    return value


def signature(parameters):
    """Return the signature of a list of parameters, as source."""
    return inspect.signature(eval(f"lambda {' '.join(parameters.split())}: None"))


def differences(expected, actual):
    """Return how a signature breaks one that users rely on."""
    parameters = list(actual.parameters.values())
    by_name = {p.name: p for p in parameters}
    accepts_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for i, p in enumerate(expected.parameters.values()):
        other = by_name.get(p.name)
        if p.kind is p.KEYWORD_ONLY and other is None and accepts_any:
            continue
        if other is None:
            yield f"no parameter {p.name}"
        elif p.kind is p.POSITIONAL_OR_KEYWORD and (parameters[i] is not other or other.kind is p.KEYWORD_ONLY):
            yield f"{p.name} is not the parameter at position {i}"
        elif p.kind is p.KEYWORD_ONLY and other.kind is p.POSITIONAL_ONLY:
            yield f"{p.name} cannot be passed by name"
        elif p.default is not p.empty and other.default is p.empty:
            yield f"{p.name} has no default"
        elif p.default not in (p.empty, ...) and other.default != p.default:
            yield f"{p.name} is {other.default!r} by default, not {p.default!r}"
    for p in parameters:
        variadic = p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        if p.name not in expected.parameters and p.default is p.empty and not variadic:
            yield f"{p.name} is another parameter that must be passed"


@pytest.mark.parametrize(
    ("expected", "actual", "difference"),
    [
        ("a, b=1", "a, b=1, c=2", []),
        ("a, b=1", "b, a=1", ["a is not the parameter at position 0", "b is not the parameter at position 1"]),
        ("a=1", "a=2", ["a is 2 by default, not 1"]),
        ("a=...", "a", ["a has no default"]),
        ("a, *, b=...", "a, **more", []),
        ("a", "a, b", ["b is another parameter that must be passed"]),
        ("*, a", "a, /", ["a cannot be passed by name"]),
        ("a", "", ["no parameter a"]),
    ],
)
def test_differences_of_signatures(expected, actual, difference):
    assert list(differences(signature(expected), signature(actual))) == difference


def test_names():
    missing = [
        f"{owner}.{name}"
        for owner, names in CONTRACT["names"].items()
        for name in names.split()
        if not hasattr(public(owner), name)
    ]
    assert not missing


def test_names_of_instances(tmp_path):
    @ow.function
    def f(x):
        return x + 1.0

    concrete = f.get_concrete_function(ow.TensorSpec([2], ow.float32))
    converter = ow.lite.TFLiteConverter.from_concrete_functions([concrete])
    instances = {
        "tensor": ow.constant([1.0]),
        "Function": f,
        "ConcreteFunction": concrete,
        "converter": converter,
        "converter.target_spec": converter.target_spec,
        "context": registration.Context,
        "node": registration.Node,
    }
    missing = [
        f"{owner}.{name}"
        for owner, names in CONTRACT["instances"].items()
        for name in names.split()
        if not hasattr(instances[owner], name)
    ]
    assert not missing


def test_errors_are_errors_of_operators():
    for name in CONTRACT["names"]["errors"].split():
        assert issubclass(getattr(ow.errors, name), ow.errors.OpError)


def test_signatures():
    broken = {
        path: breaks
        for path, parameters in CONTRACT["signatures"].items()
        if (breaks := list(differences(signature(parameters), inspect.signature(public(path)))))
    }
    assert not broken


def test_commands():
    missing = []
    for path, words in CONTRACT["commands"].items():
        command = cli
        for name in path.split():
            command = command.commands[name]
        offered = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
        offered |= {p.make_metavar(None).strip("[].") for p in command.params if p.param_type_name == "argument"}
        missing += [f"{path}: {word}" for word in words.split() if word not in offered]
        assert command.help, path
    assert not missing


# ---- stubs and the package -------------------------------------------------------------------------------------------


SOURCE = Path(ow.__file__).parent
STUBS = sorted(SOURCE.rglob("__init__.pyi"))


@functools.cache
def definitions(path):
    """Return the definitions of a module or stub by name: functions without their overloads, classes, annotations."""
    result = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            result[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            result[node.target.id] = node.annotation
    return result


def written_signature(node):
    """Return the signature of a function in source as type checkers read it; defaults are all `...`."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    optional = len(positional) - len(arguments.defaults)
    kinds = [inspect.Parameter.POSITIONAL_ONLY] * len(arguments.posonlyargs)
    kinds += [inspect.Parameter.POSITIONAL_OR_KEYWORD] * len(arguments.args)
    parameters = [
        inspect.Parameter(a.arg, kind, default=... if i >= optional else inspect.Parameter.empty)
        for i, (a, kind) in enumerate(zip(positional, kinds, strict=True))
    ]
    if arguments.vararg:
        parameters.append(inspect.Parameter(arguments.vararg.arg, inspect.Parameter.VAR_POSITIONAL))
    for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        mark = inspect.Parameter.empty if default is None else ...
        parameters.append(inspect.Parameter(a.arg, inspect.Parameter.KEYWORD_ONLY, default=mark))
    if arguments.kwarg:
        parameters.append(inspect.Parameter(arguments.kwarg.arg, inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def shape_of(sig, *, bound=False):
    """Return names, kinds and optionality of parameters. bound: without the first."""
    parameters = [(p.name, p.kind, p.default is not p.empty) for p in sig.parameters.values()]
    return parameters[1:] if bound else parameters


def exports(stub):
    """Yield each name of a stub, the definition that type checkers see, and whether its first parameter is bound."""
    protocols = definitions(SOURCE / "ops" / "signatures.pyi")
    for name, node in definitions(stub).items():
        if isinstance(node, ast.FunctionDef) and not name.startswith("_"):
            yield name, node, False
    package = "opwright." + ".".join(stub.parent.relative_to(SOURCE).parts)
    for statement in ast.parse(stub.read_text("utf-8")).body:
        if not isinstance(statement, ast.ImportFrom) or not statement.level or not statement.module:
            continue
        module = importlib.util.resolve_name("." * statement.level + statement.module, package.rstrip("."))
        path = SOURCE.joinpath(*module.split(".")[1:]).with_suffix(".py")
        for alias in (a for a in statement.names if a.asname) if path.exists() else ():
            node = definitions(path).get(alias.name)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "signatures":
                call = next(n for n in protocols[node.attr].body if isinstance(n, ast.FunctionDef))
                yield alias.asname, call, True
            elif isinstance(node, ast.FunctionDef):
                yield alias.asname, node, False


@pytest.mark.parametrize("stub", STUBS, ids=lambda p: ".".join(p.parent.relative_to(SOURCE).parts) or "opwright")
def test_stubs_have_the_signatures_of_the_package(stub):
    package = importlib.import_module(".".join(["opwright", *stub.parent.relative_to(SOURCE).parts]))
    different = {}
    for name, node, bound in exports(stub):
        read, run = shape_of(written_signature(node), bound=bound), shape_of(inspect.signature(getattr(package, name)))
        if read != run:
            different[name] = (read, run)
    assert not different


def test_stubs_name_functions_of_every_kind():
    names = {(stub.parent.name, name): bound for stub in STUBS for name, _, bound in exports(stub)}
    assert names["math", "add"]  # of a definition
    assert not names["opwright", "function"]
    assert not names["debugging", "enable_check_numerics"]
