"""Commands on models that run none: inspect, convert, check, resolver, search, view.

Lives here: their options.  Not here: their work (the other modules, imported when called).
"""

from __future__ import annotations

import sys
from typing import Any

import click

from .command_group import (
    EXIT_FAILED,
    custom_option,
    examples,
    executor_option,
    json_option,
    model_argument,
    run_time_version,
)


@click.command()
@model_argument
@json_option
@click.option("--short", is_flag=True, help="Show only inputs and outputs of a .tflite file's tensors.")
@click.option(
    "--width",
    type=click.IntRange(min=0),
    metavar="COLUMNS",
    help="Longest line of the tables of tensors, "
    "whose names are cut in the middle; the terminal's by default, 0 for whole names.",
)
@examples("opwright inspect model.tflite --short", "opwright inspect saved_model_folder --json")
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


@click.command()
@click.argument("saved", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), help="The .tflite file, replaced if it is there.")
@click.option("--signature", "signatures", multiple=True, metavar="KEY", help="Only these; all by default.")
@click.option(
    "--runtime", callback=run_time_version, metavar="V", help="The oldest run time that must read it, such as 2.8."
)
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
@json_option
@examples(
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


@click.command()
@model_argument
@click.option(
    "--runtime",
    callback=run_time_version,
    metavar="V",
    help="A run time's version, such as 2.8: does the model run there?",
)
@custom_option
@click.option("--strict", is_flag=True, help="Exit code 1 for warnings, too.")
@json_option
@examples("opwright check model.tflite --runtime 2.8", "opwright check model.tflite --custom my_operators.py --json")
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


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="The module to write, replaced if it is there; else stdout.")
@click.option("--measure", is_flag=True, help="Also measure its costs, and those of a resolver with all operators.")
@json_option
@examples("opwright resolver a.tflite b.tflite -o my_resolver.py", "opwright resolver model.tflite --measure --json")
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


@click.command()
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
@executor_option
@json_option
@examples(
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


@click.command()
@click.argument("model", type=click.Path())
@click.option("--vs", type=click.Path(), metavar="OTHER", help="Another model, drawn next to it, with paired nodes.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="The file to write; by default MODEL.html, here.")
@click.option(
    "--format",
    "kind",
    default="html",
    show_default=True,
    type=click.Choice(["html", "model-explorer", "netron"]),
    help="A page; graphs and figures of nodes as JSON for Model Explorer; or an ONNX file without weights that Netron "
    "opens.",
)
@click.option(
    "--runs",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Run a .tflite file so often; show time, share of peak and kernel of each node.",
)
@click.option(
    "--errors", is_flag=True, help="With --vs: run both, and show the errors of MODEL's results and operators."
)
@click.option("--weights", is_flag=True, help="Show distributions and elements of constants, too.")
@click.option(
    "--converted",
    is_flag=True,
    help="Draw the .tflite file that convert makes of MODEL, with the rules that made its nodes.",
)
@custom_option
@examples("opwright view model.tflite", "opwright view int8.tflite --vs float.tflite --errors -o page.html")
def view(
    model: str,
    vs: str | None,
    output: str | None,
    kind: str,
    runs: int,
    errors: bool,
    weights: bool,
    converted: bool,
    customs: tuple[str, ...],
) -> None:
    """Draw a model as one HTML page that opens from disk and needs no network.

    MODEL: a .tflite, .onnx, .pt2, .keras, .mlir or .stablehlo file, or the folder of a saved model. Scopes and
    sub-graphs open and close;
    a click shows an operator's attributes, types, versions and source. The page has no weights
    unless --weights asks for them.

    \b
    Exit codes:
      0  written
      1  a model has no graph to draw, or does not run for --runs and --errors
      2  wrong usage
      3  a file cannot be read or written
    """
    if errors and vs is None:
        raise click.UsageError("--errors goes with --vs")
    if converted and model.endswith(".tflite"):
        raise click.UsageError("--converted goes with a model of another kind than .tflite")
    from .model_view import view_model

    view_model(model, vs, output, kind, runs, errors, weights, customs, converted)
