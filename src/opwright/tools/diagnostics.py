"""`opwright doctor`: check the installation's requirements and optional parts; `opwright explain`: explain error codes.

Lives here: the table of checks, the table of stable error codes.
Not here: repairs; the errors, which carry a code as `explain="OW101"`.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from ..core import flag_effects, flags
from ..core.private_files import fault_of_folder
from ..core.processors import usable_processors
from .report import notes, out, print_json, prose, write_file

Finding = tuple[str, str, bool]  # subject, value, whether it is as required

RUN_TIME = ("numpy", "llvmlite", "flatbuffers", "ml_dtypes", "safetensors", "click", "rich")
OPTIONAL = ("ai-edge-litert", "ziglang")


def _python() -> Iterator[Finding]:
    yield "Python", platform.python_version(), sys.version_info >= (3, 11)
    yield "system", f"{platform.system()} {platform.machine()}", True


def _packages() -> Iterator[Finding]:
    for name in RUN_TIME:
        try:
            yield name, importlib.metadata.version(name), True
        except importlib.metadata.PackageNotFoundError:
            yield name, "missing", False
    for name in OPTIONAL:
        try:
            yield f"{name} (optional)", importlib.metadata.version(name), True
        except importlib.metadata.PackageNotFoundError:
            yield f"{name} (optional)", "not installed", True


def _processor() -> Iterator[Finding]:
    try:
        from llvmlite import binding as llvm

        features = llvm.get_host_cpu_features()
        reported = ("avx2", "fma", "avx512f", "avx512vnni", "neon", "dotprod", "i8mm")
        yield "processor", llvm.get_host_cpu_name(), True
        yield "vector features", ", ".join(f for f in reported if features.get(f)) or "none known", True
    except Exception as error:
        yield "LLVM", f"does not load: {error}", False
    yield "cores", str(os.cpu_count()), True


def _kernel() -> Iterator[Finding]:
    import numpy as np

    try:
        from ..compiler.elementwise import compile_elementwise

        x = np.arange(5, dtype=np.float32)
        y = compile_elementwise(lambda v: v * v + 1.0, "doctor", [x.dtype], {}).over(x.shape, [x])
        is_correct = bool((y == x * x + 1).all())
        yield "compiling a kernel", "works" if is_correct else f"gives {y.tolist()}", is_correct
    except Exception as error:
        yield "compiling a kernel", f"{type(error).__name__}: {error}", False


def _compilers() -> Iterator[Finding]:
    compiler = shutil.which("cc") or shutil.which("clang")
    yield "C compiler (optional)", compiler or "none; pip install 'opwright[c]' brings one", True


def _devices() -> Iterator[Finding]:
    from ..devices.cuda import report

    yield "CPU threads", f"{flags.get('num_threads') or usable_processors()} for one operator", True
    yield "GPUs (optional)", report(), True


def _cache() -> Iterator[Finding]:
    folder = flags.get("cache_dir")
    if folder is None:
        yield "cache folder", "none: this user has no home directory, and OPWRIGHT_CACHE_DIR is not set", False
        return
    folder = Path(folder)
    nearest = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    fault = fault_of_folder(nearest, above=nearest != folder)
    if fault is not None:
        yield "cache folder", f"{folder} is not used: {fault.path} {fault.found}", False
    else:
        yield "cache folder", str(folder), os.access(nearest, os.W_OK)


def _switches() -> Iterator[Finding]:
    for row in flags.table():
        value = ",".join(sorted(row.value)) if isinstance(row.value, frozenset) else str(row.value)
        yield row.variable, f"{value or 'nothing'} ({row.source})", True
    for name in flags.unknown_variables():
        yield name, "is not a switch of Opwright", False


def _operators() -> Iterator[Finding]:
    """Yield the operators of installed packages; each is imported as a check."""
    from ..ops import registry  # `explain` needs no operators

    for name in registry.package_entries():
        loaded = registry.load_entries(name)
        sources = ", ".join(f"{f.entry.package} ({f.entry.value})" for f in loaded)
        yield f"operator {name}", registry.package_problems(name) or sources, not registry.package_problems(name)


def _numbers() -> Iterator[Finding]:
    """Yield the effects of the switches that change numbers, in force or not."""
    for change in flag_effects.FLAG_EFFECTS:
        value = change.on if flags.get(change.flag) else f"{change.off}; with the switch: {change.on}"
        yield f"{change.flag}: {change.what}", value, True


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python,
    _packages,
    _processor,
    _kernel,
    _compilers,
    _devices,
    _cache,
    _switches,
    _operators,
    _numbers,
)


def machine_facts() -> list[tuple[str, str]]:
    """Return what results of measurements depend on: versions, system, processor."""
    own = ("opwright", importlib.metadata.version("opwright"))
    return [own, *((what, value) for check in (_python, _processor, _packages) for what, value, _ in check())]


def run_doctor(as_json: bool, page: str | None = None) -> bool:
    """Print every finding, and write the page if requested; True if all requirements are met. Raises BadFile."""
    findings = [f for check in CHECKS for f in check()]
    if page is not None:
        _write_page(page, findings)
    if as_json:
        print_json([{"what": w, "found": f, "ok": ok} for w, f, ok in findings])
    else:
        table = Table("", "found", "")
        for subject, value, ok in findings:
            table.add_row(subject, value, Text("ok", "green") if ok else Text("not as it must be", "red"))
        out().print(table)
    return all(ok for _, _, ok in findings)


def _write_page(path: str, findings: Sequence[Finding]) -> None:
    from ..pages import markup, tables

    failed = sum(not ok for _, _, ok in findings)
    title = "opwright doctor"
    verdict = (
        f"{failed} of {len(findings)} findings are not as they must be." if failed else "All requirements are met."
    )
    rows = [((subject, value, "ok" if ok else "not as it must be"), None) for subject, value, ok in findings]
    columns = ("what", "value", "result")
    kind = "bad" if failed else "good"
    body = f'<main><h1>{title}</h1><p class="{kind}">{verdict}</p>{tables.table(columns, rows, columns)}</main>'
    write_file(path, markup.page(title, body).encode())
    notes().print(f"page: {path}")


class CodeExplanation(NamedTuple):
    """title: the error in one line; why: its cause; ways: remedies, best first."""

    title: str
    why: str
    ways: tuple[str, ...]


CODES: dict[str, CodeExplanation] = {
    "OW101": CodeExplanation(
        "Encountered unresolved custom op",
        "The model file names a custom operator, and the interpreter was not given one of that name. The file holds "
        "only the name, the version and the options; what the operator does has to come from you.",
        (
            "Define it with @ow.operator (or lite.Registration) and pass it: lite.Interpreter(..., custom_ops=[Atan])",
            "The catalogue may have it: custom_ops=[ow.ops.get('Atan')]; opwright op show Atan",
            "Write a package (opwright op new NAME) and install it: from then on the operator is found by its name",
            "It exists in C or C++: lite.load_custom_ops(library), lite.build_custom_ops(sources)",
            "Put several into a lite.MutableOpResolver with add_custom and pass op_resolver=",
            "See which ones a file needs: opwright check MODEL",
        ),
    ),
    "OW102": CodeExplanation(
        "Didn't find op for builtin opcode 'X' version 'N'",
        "The file was written for a run time that has this builtin operator, or this version of it, and here it is "
        "missing. An older version of a kernel may give wrong answers on a newer file, so the model is refused.",
        (
            "See what the file needs: opwright check MODEL",
            "Add the operator: MutableOpResolver.add_builtin(op, registration, min_version, max_version)",
            "Convert again for an older run time: converter.target_spec.runtime",
        ),
    ),
    "OW103": CodeExplanation(
        "A quantised or otherwise unsupported tensor type in a builtin operator",
        "The operator exists here, but not for tensors of this type.",
        ("Convert the model without quantisation", "Override the builtin with your own: MutableOpResolver.add_builtin"),
    ),
    "OW201": CodeExplanation(
        "'tf.X' op is neither a custom op nor a flex op",
        "The graph has an operator that the .tflite format has no builtin for, at least not with these dtypes and "
        "options.",
        (
            "Make it a custom operator: converter.allow_custom_ops = True, and give the interpreter its definition",
            "Write the same with operators that have a builtin; opwright op show X tells what X computes",
            "If only the dtype is in the way (float64 for instance), cast to float32 before it",
        ),
    ),
    "OW202": CodeExplanation(
        "A variable is written to in the graph, in a way that files have no form for",
        "Variables that are only read become constants. Those that some function writes become variables of the model, "
        "if they are set by assign, assign_add, assign_sub, scatter_update, _add, _sub, _max and _min or an "
        "optimizer, hold no strings, and converter.experimental_enable_resource_variables is not False.",
        ("Write the change as variable.assign(new value)", "Take the old value as an argument and return the new one"),
    ),
    "OW301": CodeExplanation(
        "An input has a dtype that the operator does not take, or two inputs differ in dtype",
        "Nothing is promoted silently: float32 and float64, or int32 and int64, do not mix. Only Python numbers and "
        "lists, and NumPy arrays where nothing is lost, take the dtype of the tensor beside them.",
        ("ow.cast(x, ow.float32)", "Give the dtype where the tensor is made: ow.constant(x, ow.float32)"),
    ),
    "OW401": CodeExplanation(
        "The model file is damaged or is not a .tflite file",
        "An offset, length, index or identifier in the file cannot be true. Nothing of it was used.",
        (
            "Check how it was copied: its bytes 4 to 7 must read TFL3",
            "The error names the structure that failed; convert the model again if it was not copied at all",
        ),
    ),
    "OW501": CodeExplanation(
        "The operator has no gradient",
        "A gradient was asked for through an operator whose definition has none.",
        (
            "Define gradient(op, dy) in it",
            "Put ow.stop_gradient around its result",
            "Wrap the stretch in @ow.custom_gradient",
        ),
    ),
    "OW601": CodeExplanation(
        "A symbolic tensor was used as a Python value",
        "Inside ow.function tensors have no values yet. AutoGraph makes Python's if, while and for on them part of "
        "the graph, in your functions and those they call; where it does not reach (autograph=False, do_not_convert, "
        "code of libraries, generators) Python asks the tensor itself, which cannot answer.",
        (
            "Write the condition in a function that is converted, or use ow.cond, ow.while_loop, ow.where",
            "Pass what decides as a Python value; each value gets its trace",
        ),
    ),
    "OW602": CodeExplanation(
        "A tensor is out of scope",
        "A tensor made while a function was traced was kept (in a list, a global, an attribute) and used after the "
        "trace ended. It stands for a place in that function's graph, not for a value.",
        ("Return it from the function", "Keep it in an ow.Variable"),
    ),
    "OW603": CodeExplanation(
        "A variable was made on a later call of a function",
        "A function is traced many times but its variables must be made once.",
        ("Make the variable outside", "Make it on the first call only: if self.v is None: self.v = ow.Variable(...)"),
    ),
}


def print_explanation(code: str | None, as_json: bool = False) -> bool:
    """Print one explanation, or the list. False for an unknown code."""
    if code is None:
        if as_json:
            print_json({key: entry._asdict() for key, entry in CODES.items()})
            return True
        table = Table("code", "error")
        for key, entry in CODES.items():
            table.add_row(key, entry.title)
        out().print(table)
        return True
    key = code.upper()
    explanation = CODES.get(key)
    if explanation is None:
        near = difflib.get_close_matches(key, CODES, 3, 0.4)
        hint = f"; did you mean {', '.join(near)}?" if near else "; `opwright explain` lists them"
        notes().print(f"opwright: no error has the code {code!r}{hint}")
        return False
    if as_json:
        print_json({key: explanation._asdict()})
        return True
    out().print(Text(key, "bold").append(f"  {explanation.title}", "not bold"))
    out().print()
    prose(explanation.why)
    out().print()
    for i, way in enumerate(explanation.ways, 1):
        prose(f"  {i}. {way}", indent="     ")
    return True
