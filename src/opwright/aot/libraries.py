"""Building libraries: a model's object file, header, description and what build systems take, in one folder.

Lives here: `build`, `Library`.
Not here: targets by name (targets.py), planning (model_plans.py), code (modules.py), C (c_files.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..compiler.target import Target, processor
from ..core import __version__
from ..core.errors import InvalidArgumentError, UnavailableError, UnimplementedError
from ..core.files import replacing
from ..core.terminal_progress import TerminalProgress
from . import c_files, web_files
from .archives import archive_of
from .build_cache import BuiltFiles, digest_of_build, find_build, keep_build, members_of
from .build_report import BuildReport, report_of
from .c_source import PORTABLE_C
from .cpu_levels import CpuLevel, combined, levels_of
from .example_program import example_of
from .identifiers import identifier
from .memory_layouts import MemoryLayout, layout_of
from .model_files import content_of
from .model_plans import ModelPlan, plan_model
from .modules import emit_object, functions_of
from .shared_libraries import shared_library_of, shared_name
from .size_bounds import Bounds, note_of
from .source_folders import SOURCE_FORMATS, source_files_of
from .step_times import step_times
from .targets import find_target
from .wasm_linker import link
from .weight_files import weight_file_of

if TYPE_CHECKING:
    from ..tracing.function import Function

FORMATS = ("lib", "object", "web", *SOURCE_FORMATS)
WEIGHTS = ("embedded", "file")
_ON_ONE_THREAD = ("web", "arduino")
_WITHOUT_FILES = {
    "web": "the module has its weights in its memory",
    "arduino": "a sketch has no files; weights are in its flash",
}


class Library(NamedTuple):
    """A built library. folder: its files; arena: bytes that a run needs; state: bytes that runs keep; code: bytes of
    the object file without weights, or of NAME.c; weights: bytes of constants; report: where bytes and time go, if
    requested; unlinked: why there is no shared library, if one was requested."""

    name: str
    folder: Path
    target: Target
    files: tuple[str, ...]
    arena: int
    state: int
    code: int
    weights: int
    report: BuildReport | None = None
    unlinked: str = ""


def build(
    model: str | os.PathLike[str] | bytes | Function[..., Any] | Mapping[str, Any] | Sequence[Any],
    target: str | Target = "host",
    out: str | os.PathLike[str] = "build",
    *,
    name: str | None = None,
    cpu: str = "",
    features: str = "",
    format: str | None = None,
    custom_ops: Iterable[Any] = (),
    bounds: Bounds = MappingProxyType({}),
    weights: str = "embedded",
    shared: bool = False,
    threads: bool = False,
    report: bool = False,
) -> Library:
    """Write a model as a native library that needs no run time.

    model: a .tflite file, its bytes, a function, which is converted, or several, by signature or in a sequence;
    those share their variables, as a step of training and the prediction do. target: "host", a short name of
    targets.py or an LLVM triple, with cpu and features in LLVM's terms; a cpu "v2,v3,v4" (x86-64) or
    "generic,dotprod,i8mm" (AArch64) is a library with several levels, which chooses among them when it runs. out:
    the folder, made if it is missing. name: prefix of files and C symbols, by default the model's. format: "lib",
    with a static library, C header, example, CMake and pkg-config files; "object", without these but for the
    header; "web", a WebAssembly module, an ES module that loads it, its types and a page, which is the default of
    targets of WebAssembly; "c", portable C11 instead of machine code, for any target, or "arduino", "esp-idf",
    "zephyr", the same as the folder that these build systems take. custom_ops: as of `lite.Interpreter`. bounds:
    least and most of sizes that the model leaves open, which the caller of the library states: of "batch", the
    first axis of inputs, or of "input:axis"; of elements of inputs that shapes follow from, "input[element]"; of
    rows that an operator counts, "tensor:0". Each size has a plan, with shared weights. Other open sizes of inputs
    are the file's. weights: "embedded" in the code, or "file": NAME.weights, which the caller maps or reads. shared:
    whether to write a shared library, too, where this machine has a linker for the target; otherwise the result's
    `unlinked` is the reason. threads: whether runs take a structure of two functions by which the caller provides
    threads. report: whether the result has a `BuildReport`, of machine code; for "host" with the
    time of each step.

    Files are replaced one by one, each whole; NAME.json is removed first and written last. raises NotFoundError for an
    unknown target, UnimplementedError for nodes without machine code, by name
    """
    _check_choices(format, weights, report)
    content, stem = content_of(model)
    prefix = identifier(name if name is not None else stem)
    levels = _levels(target, cpu, features, format) if "," in cpu else ()
    chosen = levels[0].target if levels else _target(target, cpu, features, format)
    if format is None:
        format = "web" if chosen.is_wasm else "lib"
    _check_combination(format, chosen, weights, shared, threads)
    settings = BuildSettings(prefix, chosen, levels, format, tuple(bounds.items()), weights == "file", threads)
    with TerminalProgress(f"building {prefix}") as progress:
        built, facts = _built(content, settings, tuple(custom_ops), report, progress)
        files, unlinked = dict(built.files), ""
        if shared:
            try:
                files[shared_name(prefix, chosen)] = shared_library_of(
                    prefix, chosen, files[f"{prefix}.o"], built.functions
                )
            except UnavailableError as error:
                unlinked = str(error)
        folder = Path(out)
        _write(folder, files, f"{prefix}.json")
    sizes = built.arena, built.state, built.code, built.weights
    return Library(prefix, folder, chosen, tuple(files), *sizes, facts, unlinked)


def _check_choices(format: str | None, weights: str, report: bool) -> None:
    """Raise InvalidArgumentError for settings that are wrong for any target."""
    if format is not None and format not in FORMATS:
        raise InvalidArgumentError(op="aot.build", what="no such format", found=format, wanted=", ".join(FORMATS))
    if weights not in WEIGHTS:
        raise InvalidArgumentError(
            op="aot.build", what="no such place of weights", found=weights, wanted=", ".join(WEIGHTS)
        )
    if report and format in SOURCE_FORMATS:
        raise InvalidArgumentError(
            op="aot.build", what="reports are of machine code", found=format, wanted="lib, object"
        )


def _check_combination(format: str, target: Target, weights: str, shared: bool, threads: bool) -> None:
    """Raise InvalidArgumentError or UnimplementedError for settings that exclude each other."""
    if format == "web" and not target.is_wasm:
        raise InvalidArgumentError(
            op="aot.build", what="a web page takes WebAssembly only", found=target.name, do="target='wasm32-simd128'"
        )
    if weights == "file" and format in _WITHOUT_FILES:
        raise UnimplementedError(
            op="aot.build", what=f"weights cannot be a file: {_WITHOUT_FILES[format]}", do='weights="embedded"'
        )
    if shared and format != "lib":
        raise InvalidArgumentError(
            op="aot.build", what="shared libraries are made with static ones", found=format, wanted='format="lib"'
        )
    if threads and (format in _ON_ONE_THREAD or target.is_wasm or (format in FORMATS[:2] and target.is_bare)):
        raise UnimplementedError(
            op="aot.build",
            what="web pages, sketches and machine code without an operating system run on one thread",
            found=f"{format} for {target.name}",
            do='threads=False, or format="c"',
        )


def _write(folder: Path, files: dict[str, bytes], description: str) -> None:
    """Write each file whole. The description, without which there is no library, is removed first and written last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / description).unlink(missing_ok=True)
    for file in sorted(files, key=lambda name: name == description):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        with replacing(folder / file) as stream:
            stream.write(files[file])


class BuildSettings(NamedTuple):
    """Settings that the files of a library depend on. prefix: of names; apart: whether weights are a file; the others
    as of `build`."""

    prefix: str
    target: Target
    levels: tuple[CpuLevel, ...]
    format: str
    bounds: tuple[tuple[str, tuple[int, int]], ...]
    apart: bool
    threads: bool


def _built(
    content: bytes, settings: BuildSettings, custom_ops: tuple[Any, ...], report: bool, progress: TerminalProgress
) -> tuple[BuiltFiles, BuildReport | None]:
    """Return the files of a library, from the cache if they are there, and the report, if requested."""
    key = digest_of_build(content, *settings)
    cached = find_build(key) if key is not None and not report else None
    if cached is not None:
        return cached, None
    progress.at(0, "planning")
    planned = _planned(content, settings, custom_ops)
    progress.at(PLANNED, "machine code")
    prefix, format = settings.prefix, settings.format
    layout = layout_of(planned, settings.apart, settings.threads)
    code, archive, functions = b"", "", functions_of(planned, prefix, layout)
    if format in SOURCE_FORMATS:
        files = source_files_of(planned, prefix, layout, format)
        size = next(len(text) for file, text in files.items() if file.endswith(f"{prefix}.c"))
    else:
        code = emit_object(
            planned, prefix, layout, progress=lambda part: progress.at(int(PLANNED + part * (WHOLE - PLANNED)))
        )
        linked = link(code, functions) if format == "web" else code
        files = _files(planned, prefix, layout, linked, format)
        size = len(linked) - (0 if layout.apart else layout.weights)
        archive = f"lib{prefix}.a" if format == "lib" else ""
    if layout.apart:
        files[f"{prefix}.weights"] = weight_file_of(layout)
    files |= _description(planned, prefix, layout, format, size)
    sizes = layout.arena, layout.state[-1], size, layout.weights
    built = BuiltFiles(files, functions, archive, f"{prefix}.o" if code else "", *sizes)
    if key is not None:
        keep_build(key, built)
    if not report:
        return built, None
    seconds = step_times(planned, prefix, layout) if settings.target == processor() else None
    return built, report_of(planned, prefix, layout, code, content, seconds)


PLANNED, WHOLE = 30, 100
"""Parts of the time of a build, in percent, at which its parts end."""


def _planned(content: bytes, settings: BuildSettings, custom_ops: tuple[Any, ...]) -> ModelPlan:
    """Return the plan of a model. Raises UnimplementedError for inputs and outputs without a form in C."""
    levels, bounds = settings.levels, dict(settings.bounds)
    if levels:
        plans = [plan_model(content, level.target, custom_ops, bounds) for level in levels]
        planned = combined(plans, levels)
    else:
        planned = plan_model(content, settings.target, custom_ops, bounds)
    tensors = [t for s in planned.signatures for t in (*s.inputs, *s.outputs)]
    refused = c_files.unsupported((*tensors, *planned.state))
    if refused:
        raise UnimplementedError(
            op="aot.build",
            what="C has no type for the elements of inputs or outputs",
            found=", ".join(f"{t.name}: {t.dtype}" for t in refused),
        )
    return planned


def _levels(target: str | Target, cpu: str, features: str, format: str | None) -> tuple[CpuLevel, ...]:
    """Return the levels of a library that has several."""
    if features or format not in (None, "lib", "object"):
        raise InvalidArgumentError(
            op="aot.build",
            what="several levels of a processor are machine code without other features",
            found=features or format,
            wanted='format="lib", "object"',
        )
    return levels_of(target if isinstance(target, Target) else find_target(target), cpu)


def _target(target: str | Target, cpu: str, features: str, format: str | None) -> Target:
    """Return the target of a build: C is planned for any processor."""
    if format not in SOURCE_FORMATS:
        return target if isinstance(target, Target) else find_target(target, cpu, features)
    if target != "host" or cpu or features:
        raise InvalidArgumentError(
            op="aot.build", what=f'format="{format}" is C for any processor', found=str(target), do="no target"
        )
    return PORTABLE_C


def _files(model: ModelPlan, name: str, layout: MemoryLayout, code: bytes, format: str) -> dict[str, bytes]:
    """Return the contents of a library's files but for the description."""
    if format == "web":
        return {f"{name}.wasm": code, **web_files.files_of(model, name, layout)}
    files = {f"{name}.o": code, f"{name}.h": c_files.header_of(model, name, layout).encode()}
    if format == "lib":
        files |= {
            f"lib{name}.a": archive_of(members_of(code, functions_of(model, name, layout))),
            "main.c": example_of(model, name, layout).encode(),
            "CMakeLists.txt": c_files.cmake_of(name, layout).encode(),
            f"{name}.pc": c_files.pkg_config_of(name, layout).encode(),
        }
    return files


def _description(model: ModelPlan, name: str, layout: MemoryLayout, format: str, size: int) -> dict[str, bytes]:
    """Return the description of a library. size: of code."""
    notes = {
        "name": name,
        "opwright": __version__,
        "model": {"sha256": model.digest},
        "target": {word: value for word, value in model.target._asdict().items() if word != "optimized"},
        "levels": [level.name for level in model.levels],
        "object": None if format in SOURCE_FORMATS else f"{name}.wasm" if format == "web" else f"{name}.o",
        "arena": max(layout.arena, 1),
        "state": layout.state[-1],
        "weights": layout.weights,
        "threads": {"base": layout.base, "scratch": layout.stride} if layout.stride else None,
        "weights_file": f"{name}.weights" if layout.apart else None,
        "code": size,
        "signatures": [
            {
                "key": s.key,
                "function": model.symbol(s, name),
                "inputs": [_note(t) for t in s.inputs],
                "outputs": [_note(t) | {"varies": i in s.varying} for i, t in enumerate(s.outputs)],
                "sizes": [note_of(p) for p in s.sizes],
            }
            for s in model.signatures
        ],
    }
    return {f"{name}.json": (json.dumps(notes, indent=1) + "\n").encode()}


def _note(tensor: Any) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "identifier": tensor.identifier,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "scale": tensor.scale,
        "zero_point": tensor.zero_point,
    }
