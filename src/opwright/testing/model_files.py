"""A call as a model of one operator: the contents of the file, and every way to run it.

Lives here: the file (`ModelFile`), interpreted, compiled, exported as C source, in the official run time; options and
versions of a custom operator's node.
Not here: writing the file (lite/convert/converter.py), calls without a file (value_checks.py).

Numbers are compared with the eager call's, in float32 if the operator takes it, as models do.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core import flags
from ..core.errors import OpError, UnavailableError, UnimplementedError
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor, make
from ..graph.ir import same_attr
from ..lite.convert.converter import single_operator
from ..lite.convert.errors import ConverterError
from ..lite.custom_options import bind_options
from ..lite.export.c_export import export_c
from ..lite.format import Model
from ..lite.format.flexbuffers import VERSION_KEY, decode_options, encode_options
from ..lite.interpreter import Interpreter, OpResolverType
from ..lite.native.custom_ops import build_custom_ops
from ..lite.resolver import default_resolver
from . import value_checks
from .operator_call import CheckedCall, NotApplicable, array, assert_same

UNKNOWN = "not_known_yet"  # an option in no definition


class ModelFile(NamedTuple):
    """A call in a file. call: the original call; expected: its results; custom: the index of its operator code, None if
    builtin operators represent it.
    """

    call: CheckedCall
    content: bytes
    expected: list[Any]
    custom: int | None

    @property
    def what(self) -> str:
        """A description of the node's operator."""
        if self.custom is None:
            return "builtin operators"
        return f"custom operator, version {Model.read(self.content).operator_codes[self.custom].version}"


def file_of(call: CheckedCall, unknown: bool = False) -> ModelFile:
    """Return the model of one call, in float32 if possible. unknown: its inputs have unknown sizes.

    raises NotApplicable for features without a file format: effects, LoDs, sparse rows, handles
    """
    op = call.op
    if op.effect is not None or op.control:
        raise NotApplicable(
            f"it has an effect: {op.effect}" if op.effect else "control flow is not an operator of a file"
        )
    with contextlib.suppress(NotApplicable):
        call = value_checks.converted_call(call, "float32")
    if not all(isinstance(t, EagerTensor) and not t.dtype.is_handle for t in call.tensors()):
        raise NotApplicable("files hold neither LoDs nor sparse rows nor handles")
    if not call.tensors():
        raise NotApplicable("no tensor is given: it would be a constant of the file")

    def spec(t: Any) -> TensorSpec:
        return TensorSpec([None] * t.shape.rank if unknown else t.shape, t.dtype)

    try:
        content = single_operator(op, call.operands([spec(t) for t in call.tensors()]), call.attrs)
    except ConverterError as error:
        if op.catalogue:
            raise NotApplicable(f"it cannot be converted: {str(error).splitlines()[0]}") from None
        raise
    codes = Model.read(content).operator_codes
    custom = next((i for i, c in enumerate(codes) if c.custom_code == op.name), None)
    others = [c.custom_code for c in codes if c.custom_code and c.custom_code != op.name]
    if op.catalogue and any(default_resolver().find_custom(name) is None for name in others):
        raise NotApplicable(f"in a file it stands for another operator, {', '.join(others)}")
    return ModelFile(call, content, call.flat(), custom)


def run(
    file: ModelFile, custom_ops: Any = None, content: bytes | None = None, kind: Any = OpResolverType.BUILTIN_REF
) -> tuple[list[Any], Interpreter]:
    """Return an interpreter's results for the call's inputs, and the interpreter. custom_ops: by default the
    definition.
    """
    if custom_ops is None:
        custom_ops = [file.call.op] if file.custom is not None else []
    interpreter = Interpreter(
        model_content=content or file.content, custom_ops=custom_ops, experimental_op_resolver_type=kind
    )
    details, tensors = interpreter.get_input_details(), file.call.tensors()
    if len(details) != len(tensors):
        raise AssertionError(f"the file has {len(details)} inputs for {len(tensors)} tensors")
    for detail, t in zip(details, tensors):
        if tuple(detail["shape"]) != tuple(t.shape.as_list()):
            interpreter.resize_tensor_input(detail["index"], t.shape.as_list())
    interpreter.allocate_tensors()
    for detail, t in zip(details, tensors):
        interpreter.set_tensor(detail["index"], array(t))
    interpreter.invoke()
    return [make(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()], interpreter


def interpreted(call: CheckedCall) -> str:
    """Check that the converted model computes the eager results when interpreted, with sizes known and unknown."""
    static = file_of(call)
    assert_same(run(static)[0], static.expected, "converted and interpreted", bits=False)
    dynamic = file_of(call, unknown=True)
    assert_same(run(dynamic)[0], dynamic.expected, "converted with unknown sizes and interpreted", bits=False)
    return static.what


def compiled(call: CheckedCall) -> str:
    """Check that the file computes the same compiled to machine code."""
    file = file_of(call)
    with flags.override(compiled=True, background=False):
        results, interpreter = run(file, kind=OpResolverType.AUTO)
    assert_same(results, file.expected, "compiled", bits=False)
    nodes = interpreter._subgraphs[0].execution_plan
    interpreted_nodes = [node.name for node in nodes if node.delegate is None]
    if len(interpreted_nodes) == len(nodes):
        raise NotApplicable("there is no machine code for it: compute runs")
    return f"as machine code, beside {', '.join(interpreted_nodes)}" if interpreted_nodes else "as machine code"


def same_again(call: CheckedCall) -> None:
    """Check that repeated calls compute the same bits, eagerly and in a file."""
    if call.op.effect is not None:
        raise NotApplicable(f"it has an effect: {call.op.effect}")
    assert_same(call.flat(), call.flat(), "called again")
    if call.op.control:
        return
    try:
        file = file_of(call)
    except NotApplicable:
        return
    assert_same(run(file)[0], run(file)[0], "run again from a file")


# ---- options and versions --------------------------------------------------------------------------------------------


def versions(call: CheckedCall) -> str:
    """Check that attributes survive a file; that older files use defaults; newer ones are refused by name.

    The node is stamped with a version that has everything it uses, and holds exactly the attributes of that version.
    """
    file = file_of(call)
    if file.custom is None:
        raise NotApplicable("it is builtin operators in a file")
    op, model = call.op, Model.read(file.content)
    (node,) = [n for n in model.subgraphs[0].operators if n.opcode_index == file.custom]
    version = int(model.operator_codes[file.custom].version)
    _check_stamp(file, version)
    raw = bytes(node.custom_options) if node.custom_options is not None else b""
    options = decode_options(raw)
    expected = {name for name, attr in op.attr_defs.items() if attr.since <= version}
    if set(options) != expected:
        raise AssertionError(f"the file has options {sorted(options)}, wanted {sorted(expected)}")
    read, original = bind_options(op, raw, version), op.bind(dict(file.call.attrs))
    for name in op.attr_defs:
        a, b = getattr(read, name), getattr(original, name)
        if not same_attr(a, b):
            raise AssertionError(f"attribute {name!r} comes back as {a!r}, written was {b!r}")
    older = sum(_runs_as_older(file, options, v) for v in range(1, op.version))
    newer = op.version + 1
    _check_refused(file, f"version {newer}", str(newer), version=newer)
    _check_refused(file, f"{VERSION_KEY}={newer}", str(newer), version=1, options={**options, VERSION_KEY: newer})
    _check_refused(file, f"option {UNKNOWN!r}", UNKNOWN, options={**options, UNKNOWN: 1})
    return f"version {version} of {op.version}, {len(options)} options, {older} older files"


def _check_stamp(file: ModelFile, version: int) -> None:
    """Check that the stamped version has everything the call uses."""
    op, call = file.call.op, file.call
    used = [
        op.attr_defs[n] for n, v in op.bind(dict(call.attrs)).attrs.items() if not same_attr(v, op.attr_defs[n].default)
    ]
    used += [i for i, x in zip(op.inputs, call.inputs) if x is not None and x != ()]
    needed = max((part.since for part in used), default=1)
    if not (needed <= version <= op.version):
        raise AssertionError(f"stamped version {version}, the call needs {needed} of {op.version}")


def _runs_as_older(file: ModelFile, options: Mapping[str, Any], version: int) -> bool:
    """Check that a file of an older version computes the results of default attributes. False if it could not exist."""
    op, call = file.call.op, file.call
    if any(i.since > version and x is not None for i, x in zip(op.inputs, call.inputs)):
        return False
    older_attrs = {n: v for n, v in op.bind(dict(call.attrs)).attrs.items() if op.attr_defs[n].since <= version}
    expected = CheckedCall(op, call.inputs, older_attrs).flat()
    content = _modified(file, version, {n: v for n, v in options.items() if op.attr_defs[n].since <= version})
    assert_same(run(file, content=content)[0], expected, f"a file of version {version}", bits=False)
    return True


def _modified(file: ModelFile, version: int | None = None, options: Mapping[str, Any] | None = None) -> bytes:
    """Return the file with another version in the operator code, other options in the node."""
    model = Model.read(file.content)
    if version is not None:
        model.operator_codes[file.custom or 0].version = version
    if options is not None:
        (node,) = [n for n in model.subgraphs[0].operators if n.opcode_index == file.custom]
        node.custom_options = np.frombuffer(encode_options(options), np.uint8)
    return model.to_bytes()


def _check_refused(file: ModelFile, what: str, word: str, **changes: Any) -> None:
    """Check that a file with these changes is refused, naming the operator and the new part."""
    message = None
    try:
        run(file, content=_modified(file, **changes))
    except (OpError, RuntimeError) as error:
        message = str(error)
    if message is None:
        raise AssertionError(f"a file with {what}, which the definition does not know, was run")
    for part in (file.call.op.name, word):
        if part not in message:
            raise AssertionError(f"a file with {what} is refused without naming {part}: {message}")


def _with_custom(call: CheckedCall) -> ModelFile:
    file = file_of(call)
    if file.custom is None:
        raise NotApplicable("it is builtin operators in a file")
    return file


def exported(call: CheckedCall) -> str:
    """Check that it computes the same when exported as C source, compiled and loaded."""
    file = _with_custom(call)
    with tempfile.TemporaryDirectory(prefix="opwright-") as folder:
        try:
            paths = export_c(call.op, folder)
        except UnimplementedError as error:
            raise NotApplicable(f"it has no form in C: {str(error).splitlines()[0]}") from None
        try:
            library = build_custom_ops([p for p in paths if Path(p).suffix == ".c"])
        except UnavailableError as error:
            raise NotApplicable(str(error).splitlines()[0]) from None
        if call.op.name not in library:
            raise AssertionError(f"the library has {', '.join(library) or 'nothing'}, and no {call.op.name}")
        assert_same(run(file, library)[0], file.expected, "exported to C", bits=False)
    return "as C"


def official(call: CheckedCall) -> str:
    """Check that the official run time, with the operator registered, computes the same."""
    file = _with_custom(call)
    from ..lite.litert import CompiledModel  # needs the official wheel

    try:
        with CompiledModel(file.content, custom_ops=[call.op], num_threads=1) as model:
            results = model.run([array(t) for t in file.call.tensors()])
            native = all(model.native_nodes.values())
    except (ImportError, UnimplementedError) as error:  # no wheel, or tensors that it passes to no operator
        raise NotApplicable(str(error).splitlines()[0]) from None
    assert_same([make(y) for y in results], file.expected, "in the official run time", bits=False)
    return "as machine code" if native else "by calls into Python"
