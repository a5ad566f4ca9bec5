"""A call as a model of one operator: what the file says, and every way to run it.

Lives here: the file (`File`), interpreted, compiled; options and versions of a custom operator's node.
Not here: making the file (lite/convert/single_operator.py), operators in C and the official run time (elsewhere.py),
calls without a file (running.py).

Numbers are compared with the eager call's, in float32 where the operator takes it, as models have it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core import flags
from ..core.errors import OpError
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor, make
from ..graph.ir import same_attr
from ..lite.convert.errors import ConverterError
from ..lite.convert.single_operator import single_operator
from ..lite.custom_options import bind_options
from ..lite.format import Model
from ..lite.format.flexbuffers import VERSION_KEY, decode_options, encode_options
from ..lite.interpreter import Interpreter, OpResolverType
from ..lite.resolver import default_resolver
from . import running
from .trial import NotTried, Trial, array, assert_same

UNKNOWN = "not_known_yet"  # an option that no definition has


class File(NamedTuple):
    """A call in a file. trial: the call it stands for; wanted: what that gives; custom: the index of its operator code,
    None where builtin operators stand for it."""

    trial: Trial
    content: bytes
    wanted: list[Any]
    custom: int | None

    @property
    def what(self) -> str:
        """The node's operator in words."""
        if self.custom is None:
            return "builtin operators"
        return f"custom operator, version {Model.read(self.content).operator_codes[self.custom].version}"


def file_of(trial: Trial, unknown: bool = False) -> File:
    """The model of one call, in float32 where it can be. unknown: whether its inputs have unknown sizes.

    raises NotTried for what files do not hold: effects, LoDs, sparse rows, handles
    """
    op = trial.op
    if op.effect is not None or op.control:
        raise NotTried(f"it has an effect: {op.effect}" if op.effect else "control flow is no operator of a file")
    with contextlib.suppress(NotTried):
        trial = running.in_dtype(trial, "float32")
    if not all(isinstance(t, EagerTensor) and not t.dtype.is_handle for t in trial.tensors()):
        raise NotTried("files hold neither LoDs nor sparse rows nor handles")
    if not trial.tensors():
        raise NotTried("no tensor is given: it would be a constant of the file")

    def spec(t: Any) -> TensorSpec:
        return TensorSpec([None] * t.shape.rank if unknown else t.shape, t.dtype)

    try:
        content = single_operator(op, trial.operands([spec(t) for t in trial.tensors()]), trial.attrs)
    except ConverterError as error:
        if op.catalogue:
            raise NotTried(f"it cannot be converted: {str(error).splitlines()[0]}") from None
        raise
    codes = Model.read(content).operator_codes
    custom = next((i for i, c in enumerate(codes) if c.custom_code == op.name), None)
    others = [c.custom_code for c in codes if c.custom_code and c.custom_code != op.name]
    if op.catalogue and any(default_resolver().find_custom(name) is None for name in others):
        raise NotTried(f"in a file it stands for another operator, {', '.join(others)}")
    return File(trial, content, trial.flat(), custom)


def run(
    file: File, custom_ops: Any = None, content: bytes | None = None, kind: Any = OpResolverType.BUILTIN_REF
) -> tuple[list[Any], Interpreter]:
    """What an interpreter gives for the call's inputs, and the interpreter. custom_ops: by default the definition."""
    if custom_ops is None:
        custom_ops = [file.trial.op] if file.custom is not None else []
    interpreter = Interpreter(
        model_content=content or file.content, custom_ops=custom_ops, experimental_op_resolver_type=kind
    )
    details, tensors = interpreter.get_input_details(), file.trial.tensors()
    assert len(details) == len(tensors), f"the file has {len(details)} inputs for {len(tensors)} tensors"
    for detail, t in zip(details, tensors):
        if tuple(detail["shape"]) != tuple(t.shape.as_list()):
            interpreter.resize_tensor_input(detail["index"], t.shape.as_list())
    interpreter.allocate_tensors()
    for detail, t in zip(details, tensors):
        interpreter.set_tensor(detail["index"], array(t))
    interpreter.invoke()
    return [make(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()], interpreter


def interpreted(trial: Trial) -> str:
    """Converted and interpreted it gives what it gives eagerly, sizes known and unknown."""
    known = file_of(trial)
    assert_same(run(known)[0], known.wanted, "converted and interpreted", bits=False)
    unknown = file_of(trial, unknown=True)
    assert_same(run(unknown)[0], unknown.wanted, "converted with unknown sizes and interpreted", bits=False)
    return known.what


def compiled(trial: Trial) -> str:
    """Run as machine code the file gives the same."""
    file = file_of(trial)
    with flags.override(compiled=True, background=False):
        found, interpreter = run(file, kind=OpResolverType.AUTO)
    assert_same(found, file.wanted, "compiled", bits=False)
    nodes = interpreter._subgraphs[0].execution_plan
    beside = [node.name for node in nodes if node.delegate is None]
    if len(beside) == len(nodes):
        raise NotTried("there is no machine code for it: compute runs")
    return f"as machine code, beside {', '.join(beside)}" if beside else "as machine code"


def same_again(trial: Trial) -> None:
    """The same call gives the same bits, eagerly and in a file."""
    if trial.op.effect is not None:
        raise NotTried(f"it has an effect: {trial.op.effect}")
    assert_same(trial.flat(), trial.flat(), "called again")
    if trial.op.control:
        return
    try:
        file = file_of(trial)
    except NotTried:
        return
    assert_same(run(file)[0], run(file)[0], "run again from a file")


# ---- options and versions --------------------------------------------------------------------------------------------


def versions(trial: Trial) -> str:
    """Attributes go into a file and come back; older files give defaults; newer ones are refused by name.

    The node is stamped with a version that has all it uses, and holds the attributes of that version and no others.
    """
    file = file_of(trial)
    if file.custom is None:
        raise NotTried("it is builtin operators in a file")
    op, model = trial.op, Model.read(file.content)
    (node,) = [n for n in model.subgraphs[0].operators if n.opcode_index == file.custom]
    version = int(model.operator_codes[file.custom].version)
    _stamped(file, version)
    raw = bytes(node.custom_options) if node.custom_options is not None else b""
    options = decode_options(raw)
    expected = {name for name, attr in op.attr_defs.items() if attr.since <= version}
    assert set(options) == expected, f"the file has options {sorted(options)}, wanted {sorted(expected)}"
    back, meant = bind_options(op, raw, version), op.bind(dict(file.trial.attrs))
    for name in op.attr_defs:
        a, b = getattr(back, name), getattr(meant, name)
        assert same_attr(a, b), f"attribute {name!r} comes back as {a!r}, written was {b!r}"
    older = sum(_as_older(file, options, v) for v in range(1, op.version))
    newer = op.version + 1
    _refused(file, f"version {newer}", str(newer), version=newer)
    _refused(file, f"{VERSION_KEY}={newer}", str(newer), version=1, options={**options, VERSION_KEY: newer})
    _refused(file, f"option {UNKNOWN!r}", UNKNOWN, options={**options, UNKNOWN: 1})
    return f"version {version} of {op.version}, {len(options)} options, {older} older files"


def _stamped(file: File, version: int) -> None:
    """The version is one that has what the call uses."""
    op, trial = file.trial.op, file.trial
    used = [
        op.attr_defs[n]
        for n, v in op.bind(dict(trial.attrs)).attrs.items()
        if not same_attr(v, op.attr_defs[n].default)
    ]
    used += [i for i, x in zip(op.inputs, trial.inputs) if x is not None and x != ()]
    needed = max((part.since for part in used), default=1)
    assert needed <= version <= op.version, f"stamped version {version}, the call needs {needed} of {op.version}"


def _as_older(file: File, options: Mapping[str, Any], version: int) -> bool:
    """A file as that version would have written it gives what defaults give. False where it could not have."""
    op, trial = file.trial.op, file.trial
    if any(i.since > version and x is not None for i, x in zip(op.inputs, trial.inputs)):
        return False
    kept = {n: v for n, v in op.bind(dict(trial.attrs)).attrs.items() if op.attr_defs[n].since <= version}
    wanted = Trial(op, trial.inputs, kept).flat()
    content = _changed(file, version, {n: v for n, v in options.items() if op.attr_defs[n].since <= version})
    assert_same(run(file, content=content)[0], wanted, f"a file of version {version}", bits=False)
    return True


def _changed(file: File, version: int | None = None, options: Mapping[str, Any] | None = None) -> bytes:
    """The file with another version in the operator code, other options in the node."""
    model = Model.read(file.content)
    if version is not None:
        model.operator_codes[file.custom or 0].version = version
    if options is not None:
        (node,) = [n for n in model.subgraphs[0].operators if n.opcode_index == file.custom]
        node.custom_options = np.frombuffer(encode_options(options), np.uint8)
    return model.to_bytes()


def _refused(file: File, what: str, word: str, **changes: Any) -> None:
    """A file with these changes is an error that names the operator and what is new."""
    said = None
    try:
        run(file, content=_changed(file, **changes))
    except (OpError, RuntimeError) as error:
        said = str(error)
    assert said is not None, f"a file with {what}, which the definition does not know, was run"
    for part in (file.trial.op.name, word):
        assert part in said, f"a file with {what} is refused without naming {part}: {said}"
