"""Commands that run or compile models: run, build, diff, bench.

Lives here: their options.  Not here: their work (the other modules, imported when called).
"""

from __future__ import annotations

import sys
from typing import Any

import click

from .command_group import (
    AT_LEAST_1,
    EXIT_FAILED,
    converted_model,
    custom_option,
    examples,
    executor_option,
    json_option,
    model_argument,
)


@click.command()
@model_argument
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
@executor_option
@click.option("--batch", default=1, show_default=True, type=AT_LEAST_1, help="With --inputs: elements of one run.")
@click.option(
    "--retries",
    default=2,
    show_default=True,
    type=click.IntRange(min=0),
    help="With --inputs: how often a batch runs again because its worker died.",
)
@click.option("--shared-disk", is_flag=True, help="With --inputs: remote workers read the files themselves.")
@custom_option
@json_option
@examples(
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


@click.command()
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
    help="Bounds of a size that the model leaves open: of batch, the first axis of inputs, of INPUT:AXIS, of an "
    "INPUT[ELEMENT] that shapes follow from, or of counted rows, TENSOR:0.",
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
@custom_option
@json_option
@examples("opwright build model.tflite -o out", "opwright build model.tflite --target aarch64-dotprod -o out")
def build(model: str | None, list_targets: bool, as_json: bool, **settings: Any) -> None:
    """Write a .tflite file as a native library that needs no run time: object code and a C header."""
    from .library_build import build_library, print_targets

    if list_targets:
        print_targets(as_json)
    elif model is None:
        raise click.UsageError("a MODEL is needed, or --list-targets")
    else:
        build_library(model, as_json=as_json, **settings)


@click.command()
@click.argument("a", type=click.Path(), callback=converted_model)
@click.argument("b", type=click.Path(), required=False, callback=converted_model)
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
@custom_option
@json_option
@examples(
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


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(), callback=converted_model)
@click.option("--runs", default=200, show_default=True, type=AT_LEAST_1, help="Timed runs.")
@click.option("--warmup", type=click.IntRange(min=0), help="Runs before them; by default a twentieth, at least 3.")
@click.option("--threads", default=1, show_default=True, type=AT_LEAST_1, help="Threads to use.")
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
@custom_option
@executor_option
@json_option
@examples(
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
