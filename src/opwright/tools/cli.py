"""The command line: `opwright COMMAND`.

Lives here: commands, their options, exit codes.  Not here: their work (the other modules, imported when called).

Exit codes: 0 success; 1 a check failed or a model does not run; 2 wrong usage; 3 a file cannot be read or written.
Results go to stdout, notes and progress to stderr.
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable
from inspect import cleandoc
from typing import Any

import click

from .. import ops
from ..core.errors import OpError
from .report import BadFile

EXIT_FAILED, EXIT_BAD_FILE = 1, 3
FOREIGN = (".keras", ".mlir", ".onnx", ".pt2", ".stablehlo")
"""Suffixes of files that commands convert first, as `READERS` in conversion.py, which is loaded only then."""


class _Group(click.Group):
    """A group whose commands report this package's errors as one message, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BadFile as error:
            click.echo(f"opwright: {error}", err=True)
            ctx.exit(EXIT_BAD_FILE)
        except OpError as error:
            click.echo(f"opwright: {error}", err=True)
            ctx.exit(EXIT_FAILED)
        except OSError as error:
            if error.errno != errno.ENOSPC or error.filename is not None:
                raise
            click.echo(f"opwright: the result cannot be written: {error.strerror}", err=True)
            sys.stdout = None  # its buffer cannot be flushed at exit either
            ctx.exit(EXIT_BAD_FILE)


def _examples(*lines: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Append examples to a command's help."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        text = cleandoc(command.__doc__ or "")
        command.__doc__ = text + "\n\n\b\nExamples:\n" + "\n".join(f"  {x}" for x in lines)
        return command

    return add


def _converted(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    """Return models as .tflite files: files of other frameworks are converted, in a folder that the command removes."""
    paths = value if isinstance(value, tuple) else (value,)
    if not any(str(path).endswith(FOREIGN) for path in paths):
        return value
    from tempfile import TemporaryDirectory

    from .conversion import tflite_file

    def converted(path: Any) -> Any:
        foreign = str(path).endswith(FOREIGN)
        return tflite_file(path, ctx.with_resource(TemporaryDirectory())) if foreign else path

    return tuple(map(converted, value)) if isinstance(value, tuple) else converted(value)


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
_model = click.argument("model", type=click.Path(), callback=_converted)
_at_least_1 = click.IntRange(min=1)


def _runtime(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}", value):
        raise click.BadParameter(f"{value!r} is no version such as 2.8 or 2.16.1")
    return value


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="opwright", prog_name="opwright")
def cli() -> None:
    """Define, run, differentiate, trace, convert, interpret and compile machine-learning operators."""


@cli.command()
@click.option("--out", default="out", type=click.Path(file_okay=False), help="Folder for the files it makes.")
@click.option("--steps", default=1000, show_default=True, type=_at_least_1, help="Training steps.")
@_json
@_examples("opwright demo", "opwright demo --out /tmp/demo")
def demo(out: str, steps: int, as_json: bool) -> None:
    """Train atan and sin, convert them, and run the files with a custom operator; checks every step."""
    from .demo import run_demo

    sys.exit(0 if run_demo(out, steps, as_json) else EXIT_FAILED)


@cli.command()
@_model
@_json
@click.option("--short", is_flag=True, help="Show only inputs and outputs of a .tflite file's tensors.")
@click.option(
    "--width",
    type=click.IntRange(min=0),
    metavar="COLUMNS",
    help="Longest line of the tables of tensors, "
    "whose names are cut in the middle; the terminal's by default, 0 for whole names.",
)
@_examples("opwright inspect model.tflite --short", "opwright inspect saved_model_folder --json")
def inspect(model: str, as_json: bool, short: bool, width: int | None) -> None:
    """Show the contents of a file: .tflite (signatures, operators, tensors, metadata), saved model, checkpoint.

    For a saved model, which is a folder, signatures, functions and variables are shown.
    """
    from .inspection import inspect_saved, is_saved

    if is_saved(model):
        inspect_saved(model, as_json)
        return
    from .inspection import inspect_model

    inspect_model(model, as_json, short, width)


@cli.command()
@click.argument("saved", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), help="The .tflite file, replaced if it is there.")
@click.option("--signature", "signatures", multiple=True, metavar="KEY", help="Only these; all by default.")
@click.option("--runtime", callback=_runtime, metavar="V", help="The oldest run time that must read it, such as 2.8.")
@click.option("--custom", "customs", is_flag=True, help="Allow custom operators.")
@click.option("--flex", is_flag=True, help="Allow Flex operators (SELECT_TF_OPS).")
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    metavar="FILE.py|MODULE[:NAME]",
    help="Patterns (@lite.pattern) to look for, in this order: what is found becomes their operator.",
)
@click.option(
    "--quantize",
    type=click.Choice(["float16", "dynamic", "int8", "int8-only", "int16x8"]),
    help="Weights in float16; in int8 (dynamic range); integers where there are kernels; integers alone; "
    "16-bit activations.",
)
@click.option(
    "--data",
    type=click.Path(),
    metavar="FILE.npz|FOLDER",
    help="Samples for int8 and int16x8: for each input, by name, an array of them along the first axis; or a folder "
    "of such files, and of .npy files for a model of one input.",
)
@click.option(
    "--io",
    default="float32",
    show_default=True,
    type=click.Choice(["float32", "int8", "uint8", "int16"]),
    help="Type of inputs and outputs that were float32.",
)
@_json
@_examples(
    "opwright convert saved_model_folder -o model.tflite --runtime 2.8",
    "opwright convert saved_model_folder -o model.tflite --pattern my_operators.py",
    "opwright convert saved_model_folder -o model.tflite --quantize int8 --data samples.npz",
)
def convert(saved: str, output: str, quantize: str | None, data: str | None, **settings: Any) -> None:
    """Convert the signatures of a saved model (its folder) to a .tflite file.

    Files of other frameworks are taken, too: .onnx, .pt2, .keras, .mlir and .stablehlo.

    \b
    Exit codes:
      0  written
      1  the model cannot be converted: each unsupported operator is named, with its lines
      2  wrong usage
      3  a file cannot be read or written
    """
    if (data is not None) != (quantize in ("int8", "int8-only", "int16x8")):
        raise click.UsageError("--data goes with --quantize int8, int8-only and int16x8, and they with it")
    from .conversion import convert_saved

    convert_saved(saved, output, quantize=quantize, data=data, **settings)


_custom = click.option(
    "--custom",
    "customs",
    multiple=True,
    metavar="FILE.py|MODULE[:NAME]|LIBRARY.so[:NAME=ENTRY]",
    help="Custom operators: @ow.operator classes, or a library in C. Those of installed packages are found by name.",
)


@cli.command()
@_model
@click.option(
    "--runtime", callback=_runtime, metavar="V", help="A run time's version, such as 2.8: does the model run there?"
)
@_custom
@click.option("--strict", is_flag=True, help="Exit code 1 for warnings, too.")
@_json
@_examples("opwright check model.tflite --runtime 2.8", "opwright check model.tflite --custom my_operators.py --json")
def check(model: str, runtime: str | None, customs: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Verify a .tflite file and report the operators and versions that it needs, and which run times have them.

    With --runtime every unsupported node is named, one line per cause, by the node's needs and not only by the version
    in the file. Warnings are about versions in the file that differ from the needs of its nodes, and about its
    metadata.

    \b
    Exit codes:
      0  it runs here, and on the run time of --runtime
      1  a builtin operator or version is missing here or there; with --runtime, a custom operator that neither this
         run time nor --custom has; with --custom, one that it does not have
      2  wrong usage
      3  the file, or that of --custom, cannot be read or is damaged
    """
    from .compatibility import check_model

    sys.exit(0 if check_model(model, runtime, customs, strict, as_json) else EXIT_FAILED)


@cli.command()
@click.argument("models", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="The module to write, replaced if it is there; else stdout.")
@click.option("--measure", is_flag=True, help="Also measure its costs, and those of a resolver with all operators.")
@_json
@_examples("opwright resolver a.tflite b.tflite -o my_resolver.py", "opwright resolver model.tflite --measure --json")
def resolver(models: tuple[str, ...], output: str | None, measure: bool, as_json: bool) -> None:
    """Write a Python module whose Resolver holds only the operators that MODELS use, in their versions.

    Passed to lite.Interpreter as op_resolver it imports only those kernels, and resolves no other operators. Custom
    operators are arguments of Resolver; those of installed packages are looked up.

    \b
    Exit codes:
      0  written
      1  a model uses a builtin operator or version that is not here; nothing is written
      2  wrong usage
      3  a model cannot be read or is damaged, or the module cannot be written
    """
    from .selective_build import write_resolver

    sys.exit(0 if write_resolver(models, output, measure, as_json) else EXIT_FAILED)


def _on_ranks(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Return the name of an executor; on ranks of MPI, first let rank 0 drive the others."""
    if name == "mpi":
        from .sweeps import drive_ranks

        drive_ranks()
    return name


_executor = click.option(
    "--executor",
    metavar="NAME",
    callback=_on_ranks,
    help="Workers: threads:N, processes:N, loky:N, dask://HOST:PORT, ray://HOST:PORT, mpi; by default this process.",
)


@cli.command()
@_model
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE.npy",
    help="An input, in order or by name; random where left out.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(file_okay=False),
    help="Folder to save the outputs in: 0.npy, 1.npy ...; with --inputs a file for each, or NAME.parquet, NAME.zarr.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of random inputs.")
@click.option(
    "--inputs",
    "patterns",
    multiple=True,
    metavar="'GLOB'",
    help="Run over many files, in order of their names: .npy, or .npz with arrays by input.",
)
@_executor
@click.option("--batch", default=1, show_default=True, type=_at_least_1, help="With --inputs: elements of one run.")
@click.option(
    "--retries",
    default=2,
    show_default=True,
    type=click.IntRange(min=0),
    help="With --inputs: how often a batch runs again because its worker died.",
)
@click.option("--shared-disk", is_flag=True, help="With --inputs: remote workers read the files themselves.")
@_custom
@_json
@_examples(
    "opwright run model.tflite --input x=x.npy --custom my_operators.py",
    "opwright run model.tflite --inputs 'data/*.npy' --executor processes:4 --batch 8 -o out",
)
def run(
    model: str,
    inputs: tuple[str, ...],
    outputs: str | None,
    seed: int,
    patterns: tuple[str, ...],
    customs: tuple[str, ...],
    as_json: bool,
    **settings: Any,
) -> None:
    """Run a .tflite file once and print its outputs; or with --inputs over many files, on many workers.

    A .onnx, .pt2, .keras, .mlir or .stablehlo file is converted first, as for check, inspect, bench and diff.

    With --inputs, files that fail are reported and do not end the job, and the same command continues a job that was
    interrupted or killed.

    \b
    Exit codes:
      0  it ran, for --inputs on every file
      1  the model does not run, or with --inputs not on every file
      2  wrong usage
      3  a file cannot be read or written
    """
    if patterns:
        if inputs:
            raise click.UsageError("--input is for one run, --inputs for many")
        from .batch_runner import run_batches

        done = run_batches(model, patterns, outputs, customs=customs, as_json=as_json, **settings)
        sys.exit(0 if done else EXIT_FAILED)
    if settings["executor"]:
        raise click.UsageError("--executor goes with --inputs")
    from .model_runner import run_model

    run_model(model, inputs, outputs, seed, customs, as_json)


@cli.command()
@click.argument("model", type=click.Path(), required=False)
@click.option("--target", default="host", show_default=True, help="A name of --list-targets, or an LLVM triple.")
@click.option("--cpu", default="", help="The processor, in LLVM's terms: cortex-a76; or levels: v2,v3,v4.")
@click.option("--features", default="", help="Features in addition to the processor's: +dotprod,+i8mm.")
@click.option("-o", "--output", default="build", show_default=True, type=click.Path(file_okay=False), help="Folder.")
@click.option("--name", help="Prefix of files and C symbols; by default the model's name.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["lib", "object", "web", "c", "arduino", "esp-idf", "zephyr"]),
    help="Files: machine code (lib; web for wasm32), or C source in a folder of a build system.",
)
@click.option(
    "--bound",
    "bounds",
    multiple=True,
    metavar="NAME=1..8",
    help="Bounds of a size that the model leaves open: of batch, the first axis of inputs, or of INPUT:AXIS.",
)
@click.option(
    "--weights",
    type=click.Choice(["embedded", "file"]),
    default="embedded",
    show_default=True,
    help="Weights in the code, or as a file to be mapped, NAME.weights.",
)
@click.option(
    "--shared", is_flag=True, help="Also write a shared library, if this machine has a linker for the target."
)
@click.option("--threads", is_flag=True, help="Runs take threads of the caller, by two functions.")
@click.option("--report", is_flag=True, help="Also print where the bytes and, for the host, the time go.")
@click.option("--html", "page", type=click.Path(dir_okay=False), help="Write that report as a page.")
@click.option("--list-targets", is_flag=True, help="Print the short names of targets.")
@_custom
@_json
@_examples("opwright build model.tflite -o out", "opwright build model.tflite --target aarch64-dotprod -o out")
def build(model: str | None, list_targets: bool, as_json: bool, **settings: Any) -> None:
    """Write a .tflite file as a native library that needs no run time: object code and a C header."""
    from .library_build import build_library, print_targets

    if list_targets:
        print_targets(as_json)
    elif model is None:
        raise click.UsageError("a MODEL is needed, or --list-targets")
    else:
        build_library(model, as_json=as_json, **settings)


@cli.command()
@click.argument("model", type=click.Path())
@click.option("--vs", type=click.Path(), metavar="OTHER", help="Another model, drawn next to it, with paired nodes.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="The file to write; by default MODEL.html, here.")
@click.option(
    "--format",
    "kind",
    default="html",
    show_default=True,
    type=click.Choice(["html", "model-explorer"]),
    help="A page, or graphs and figures of nodes as JSON for Model Explorer.",
)
@click.option(
    "--runs",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Run a .tflite file so often, and show the time of each node and who computes it.",
)
@click.option("--errors", is_flag=True, help="With --vs: run both files, and show the errors of MODEL's results.")
@_custom
@_examples("opwright view model.tflite", "opwright view int8.tflite --vs float.tflite --errors -o page.html")
def view(
    model: str, vs: str | None, output: str | None, kind: str, runs: int, errors: bool, customs: tuple[str, ...]
) -> None:
    """Draw a model as one HTML page that opens from disk and needs no network.

    MODEL: a .tflite, .onnx, .pt2, .keras, .mlir or .stablehlo file, or the folder of a saved model. Scopes and
    sub-graphs open and close;
    a click shows an operator's attributes, types, versions and source. The page has no weights.

    \b
    Exit codes:
      0  written
      1  a model has no graph to draw, or does not run for --runs and --errors
      2  wrong usage
      3  a file cannot be read or written
    """
    if errors and vs is None:
        raise click.UsageError("--errors goes with --vs")
    from .model_view import view_model

    view_model(model, vs, output, kind, runs, errors, customs)


@cli.command()
@click.argument("a", type=click.Path(), callback=_converted)
@click.argument("b", type=click.Path(), required=False, callback=_converted)
@click.option(
    "--a-runtime",
    default="interpreter",
    show_default=True,
    metavar="NAME",
    help="interpreter, reference (its kernels in NumPy), litert (the official interpreter), litert-builtin (without "
    "its default delegate) or library:FOLDER (built from A).",
)
@click.option("--b-runtime", default="interpreter", show_default=True, metavar="NAME", help="The same for B.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE.npy|FILE.npz",
    help="An input, in order or by name, or all in one file; random where left out.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of random inputs.")
@click.option("--atol", type=click.FloatRange(min=0), help="Tolerance of |a - b|; by default by the elements' types.")
@click.option("--rtol", type=click.FloatRange(min=0), help="Tolerance relative to |b|.")
@click.option("--html", "page", type=click.Path(dir_okay=False), help="Write a page: errors along the network.")
@click.option("--outputs-only", is_flag=True, help="Do not search the first operator that differs.")
@_custom
@_json
@_examples(
    "opwright diff model.tflite --b-runtime litert",
    "opwright diff model_int8.tflite model.tflite --atol 0.05 --html page.html",
    "opwright diff model.tflite out --input x.npy --json",
)
def diff(a: str, b: str | None, as_json: bool, **settings: Any) -> None:
    """Compare two models, two run times of one model, or a model and its built library, on the same inputs.

    A and B are .tflite files or folders of `opwright build`; without B, A is compared on two run times. Prints the
    largest errors of each output and inner tensor, and the first operator whose results differ beyond the tolerance.
    Without --atol and --rtol, integers of equal types must be equal, a model and its quantized form may differ by one
    step, and floating-point numbers by 1e-5 of the largest element (float16: 1e-2, float64: 1e-9).

    --html writes charts of the errors along the network; of a quantized and a float model also those of each operator,
    distributions, the worst samples and what to leave in float.

    \b
    Exit codes:
      0  the outputs agree
      1  they differ, or a run time does not run the model
      2  wrong usage
      3  a file cannot be read
    """
    from .model_diff import diff_models

    sys.exit(0 if diff_models(a, b, as_json=as_json, **settings) else EXIT_FAILED)


@cli.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(), callback=_converted)
@click.option("--runs", default=200, show_default=True, type=_at_least_1, help="Timed runs.")
@click.option("--warmup", type=click.IntRange(min=0), help="Runs before them; by default a twentieth, at least 3.")
@click.option("--threads", default=1, show_default=True, type=_at_least_1, help="Threads to use.")
@click.option("--ops", "by_operator", is_flag=True, help="Also time and memory of each node and operator.")
@click.option("--vs", "baseline", type=click.Choice(["litert"]), help="Another interpreter to time on the same inputs.")
@click.option(
    "--html", "page", type=click.Path(dir_okay=False), help="Write a page: run times, nodes, timeline, memory."
)
@click.option(
    "--trace", type=click.Path(dir_okay=False), help="Write a run as a trace for Perfetto or chrome://tracing."
)
@click.option("--input", "inputs", multiple=True, metavar="[NAME=]FILE.npy", help="An input; random where left out.")
@click.option("--shape", "shapes", multiple=True, metavar="[NAME=]SIZES", help="Another shape: x=1,224,224,3.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of random inputs.")
@_custom
@_executor
@_json
@_examples(
    "opwright bench model.tflite --ops",
    "opwright bench model.tflite --vs litert --shape x=8,224,224,3",
    "opwright bench model.tflite --vs litert --html page.html --trace trace.json",
)
def bench(models: tuple[str, ...], executor: str | None, as_json: bool, **settings: Any) -> None:
    """Time a .tflite file: load, allocate, invoke; and its nodes and operators.

    Several files are timed one after the other, or on the workers of --executor, and have one table; --ops, --vs,
    --html and --trace are for one file.
    """
    from .benchmark import Settings, bench_model

    if len(models) == 1 and executor is None:
        bench_model(models[0], Settings(**settings), as_json)
        return
    if any(settings[name] for name in ("by_operator", "baseline", "page", "trace")):
        raise click.UsageError("--ops, --vs, --html and --trace are for one model on this machine")
    from .sweeps import bench_models

    sys.exit(0 if bench_models(models, Settings(**settings), executor, as_json) else EXIT_FAILED)


@cli.command()
@click.argument("saved", type=click.Path())
@click.option(
    "--data",
    required=True,
    type=click.Path(),
    metavar="FILE.npz",
    help="Samples: for each input, by name, an array of them along the first axis.",
)
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="Folder of the .tflite files.")
@click.option(
    "--quantize",
    "modes",
    multiple=True,
    type=click.Choice(["float16", "dynamic", "int8", "int8-only", "int16x8"]),
    help="Only these quantizations; all by default.",
)
@_executor
@_json
@_examples(
    "opwright search saved_model_folder --data samples.npz -o models",
    "opwright search saved_model_folder --data samples.npz -o models --quantize int8 --executor processes:4",
)
def search(saved: str, data: str, output: str, modes: tuple[str, ...], executor: str | None, as_json: bool) -> None:
    """Convert a saved model with every quantization; report sizes, errors on the samples, and times in one table.

    Errors are the largest differences from the float32 model over all samples and outputs.

    \b
    Exit codes:
      0  all converted
      1  a conversion failed
      2  wrong usage
      3  a file cannot be read or written
    """
    from .sweeps import search as run_search

    sys.exit(0 if run_search(saved, data, output, modes, executor, as_json) else EXIT_FAILED)


@cli.group(cls=_Group)
def op() -> None:
    """List, explain and check the operators of the catalogue."""


@op.command("new")
@click.argument("name")
@click.option("-o", "--output", "folder", type=click.Path(), help="The folder to make; by default the package's name.")
@click.option(
    "--from",
    "model",
    type=click.Path(),
    metavar="MODEL",
    help="A .onnx, .pt2, .mlir or .stablehlo file with the operator NAME, which has no rule: write only its class, "
    "with inputs and attributes, to the file -o.",
)
@_json
@_examples(
    "opwright op new LeakyClip",
    "opwright op new LeakyClip -o ~/operators/leaky",
    "opwright op new my::op --from model.onnx -o my_op.py",
)
def op_new(name: str, folder: str | None, model: str | None, as_json: bool) -> None:
    """Write a package with the operator NAME: definition, kernel, gradient, tests, README.

    It works as generated: after `pip install -e .` every model with a custom operator NAME runs. Then adapt it.

    Exit codes: 0 written; 2 an invalid name; 3 the folder exists already, or cannot be written.
    """
    if model is not None:
        from .conversion import write_skeleton

        write_skeleton(name, model, folder, as_json)
        return
    from .catalogue import new_package

    new_package(name, folder, as_json)


@op.command("export")
@click.argument("name")
@click.option("-o", "--output", "folder", default=".", show_default=True, type=click.Path(), help="Folder to write to.")
@click.option("--custom", "customs", multiple=True, metavar="FILE.py", help="A Python file, or module, with it.")
@click.option(
    "--api",
    type=click.Choice(["opaque", "external", "struct"]),
    default="opaque",
    show_default=True,
    help="The C API: TfLiteOperator, its older names, or TfLiteRegistration.",
)
@click.option("--attr", "attrs", multiple=True, metavar="NAME=VALUE", help="A value that the C is made for alone.")
@_json
@_examples(
    "opwright op export LeakyClip --custom my_operators.py -o leaky_clip",
    "opwright op export Atan -o atan --api struct",
)
def op_export(
    name: str, folder: str, customs: tuple[str, ...], api: str, attrs: tuple[str, ...], as_json: bool
) -> None:
    """Write the operator NAME as C, with its registration for the TensorFlow Lite C API: NAME.c, NAME.h, README.md.

    NAME has a kernel (`@ow.kernel`), or is one of the catalogue's element-wise operators.

    Exit codes: 0 written; 1 it cannot be expressed in C; 2 wrong usage; 3 there is no such operator or file, or the
    folder cannot be written.
    """
    from .conversion import export_operator

    export_operator(name, folder, customs, api, attrs, as_json)


@op.command("list")
@click.argument("pattern", default="")
@_json
@_examples("opwright op list", "opwright op list Pool")
def op_list(pattern: str, as_json: bool) -> None:
    """List the operators whose name contains PATTERN, with their formula."""
    from .catalogue import list_operators

    list_operators(pattern, as_json)


@op.command("show")
@click.argument("name")
@click.option("--html", "page", type=click.Path(dir_okay=False), help="Also write the operator as a page.")
@_json
@_examples("opwright op show Atan", "opwright op show CONV_2D --json", "opwright op show Softmax --html softmax.html")
def op_show(name: str, page: str | None, as_json: bool) -> None:
    """Show one operator: signature, dtypes, attributes, formula, gradient.

    Or a builtin operator of .tflite files, such as CONV_2D: options, versions, and the purpose of each version.
    """
    from .catalogue import is_builtin, show_builtin, show_operator

    builtin = name not in ops.list() and is_builtin(name)
    if page is not None and (builtin or name in ops.list()):
        from .operator_page import write_operator_page

        write_operator_page(name, page, builtin)
    if builtin:
        show_builtin(name, as_json)
        return
    sys.exit(0 if show_operator(name, as_json) else EXIT_FAILED)


@op.command("model")
@click.argument("name")
@click.option("-o", "--output", required=True, type=click.Path(), help="The .tflite file, replaced if it is there.")
@click.option("--shape", "shapes", multiple=True, metavar="[NAME=]SIZES", help="An input of the model: 1,224,224,3.")
@click.option("--dtype", "types", multiple=True, metavar="[NAME=]DTYPE", help="Of all inputs, or one; else float32.")
@click.option("--attr", "attrs", multiple=True, metavar="NAME=VALUE", help="An attribute: strides=1,2,2,1.")
@click.option(
    "--constant",
    "constants",
    multiple=True,
    metavar="[NAME=]SIZES",
    help="An input that the file holds: random numbers of this shape, such as weights.",
)
@click.option("--value", "values", multiple=True, metavar="[NAME=]JSON", help="An input that the file holds: axis=[1].")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of random constants.")
@_custom
@_json
@_examples(
    "opwright op model LeakyClip --shape 1,224,224,3 --attr limit=4 -o one.tflite",
    "opwright op model CONV_2D --shape 1,56,56,64 --constant 64,3,3,64 --attr stride_w=1 --attr stride_h=1 "
    "-o conv.tflite",
)
def op_model(name: str, output: str, as_json: bool, **settings: Any) -> None:
    """Write a model with the single operator NAME, for `opwright bench` and `opwright check`.

    NAME: of the catalogue (Conv2D), of a .tflite file (CONV_2D), of an installed package or of --custom.

    Exit codes: 0 written; 1 the operator refuses these inputs or attributes; 2 wrong usage; 3 there is no such
    operator, or a file cannot be read or written.
    """
    from .conversion import write_model

    write_model(name, output, as_json=as_json, **settings)


@op.command("spec")
@click.argument("names", nargs=-1)
@click.option("--file", "files", multiple=True, type=click.Path(), help="A Python file that defines operators.")
@_examples("opwright op spec > catalogue.json", "opwright op spec --file my_operators.py > mine.json")
def op_spec(names: tuple[str, ...], files: tuple[str, ...]) -> None:
    """Print the catalogue as JSON, for `op compat`; or only the operators NAMES, or those of your own files.

    Exit code 3 if a file fails or there is no operator of a name.
    """
    from .catalogue import print_spec

    print_spec(names, files)


@op.command("compat")
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path(), required=False)
@click.option("--strict", is_flag=True, help="Exit code 1 for any change, allowed or not.")
@_json
@_examples("opwright op compat catalogue.json", "opwright op compat old.json new.json --strict")
def op_compat(old: str, new: str | None, strict: bool, as_json: bool) -> None:
    """Report the changes from OLD to NEW (by default this installation), both written by `op spec`.

    By operator, then inputs, outputs, attributes; `!` marks changes that break programs or files of OLD.

    Exit codes: 0 nothing changed or every change is allowed; 1 a change is not allowed; 2 wrong usage; 3 a file is
    missing, or is not a specification in JSON.
    """
    from .catalogue import print_compatibility

    sys.exit(0 if print_compatibility(old, new, strict, as_json) else EXIT_FAILED)


@op.command("test")
@click.argument("targets", nargs=-1, required=True)
@_executor
@_json
@_examples("opwright op test my_operators.py", "opwright op test Atan Conv2D")
def op_test(targets: tuple[str, ...], executor: str | None, as_json: bool) -> None:
    """Check operators: the catalogue's by name, or all that a Python file defines.

    The lint (`ow.ops.lint`), then all of `ow.testing.CHECKS` on small generated inputs: inference agrees with compute
    in each dtype, the kernel with compute, the gradient with differences, eagerly and on graphs; inputs are unchanged;
    results are the same on scopes on each place, in reused memory and with LoDs; it can be pickled, traced and printed.
    Checks without suitable inputs are reported as not tried.

    Exit codes: 0 success; 1 a check failed; 2 wrong usage; 3 no such file or operator.
    """
    from .catalogue import test_operators

    results = None
    if executor is not None:
        from .sweeps import outcomes_on

        results = outcomes_on(targets, executor)
    sys.exit(0 if test_operators(targets, as_json, results) else EXIT_FAILED)


@cli.command()
@click.option("--html", "page", type=click.Path(dir_okay=False), help="Also write the report as a page.")
@_json
@_examples("opwright doctor", "opwright doctor --json", "opwright doctor --html page.html")
def doctor(page: str | None, as_json: bool) -> None:
    """Report the installation: versions, processor, compiler, switches.

    Exit code 1 if a requirement is missing.
    """
    from .diagnostics import run_doctor

    sys.exit(0 if run_doctor(as_json, page) else EXIT_FAILED)


@cli.command()
@click.argument("code", required=False)
@_json
@_examples("opwright explain OW101", "opwright explain")
def explain(code: str | None, as_json: bool) -> None:
    """Explain an error's code: its meaning, causes and remedies. Without CODE: list all codes."""
    from .diagnostics import print_explanation

    sys.exit(0 if print_explanation(code, as_json) else EXIT_FAILED)


def main() -> None:
    """Run the command line."""
    cli(prog_name="opwright")
