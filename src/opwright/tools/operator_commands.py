"""Commands on operators: `opwright op COMMAND`.

Lives here: their options.  Not here: their work (the other modules, imported when called).
"""

from __future__ import annotations

import sys
from typing import Any

import click

from .. import ops
from .command_group import EXIT_FAILED, CommandGroup, custom_option, examples, executor_option, json_option


@click.group(cls=CommandGroup)
def op() -> None:
    """List, explain and check the operators of the catalogue."""


@op.command("new")
@click.argument("name", required=False)
@click.option("-o", "--output", "folder", type=click.Path(), help="The folder to make; by default the package's name.")
@click.option(
    "--from",
    "model",
    type=click.Path(),
    metavar="MODEL",
    help="A .onnx, .pt2, .mlir or .stablehlo file with the operator NAME, which has no rule; or, without NAME, "
    "FRAMEWORK:OPERATOR that torch, onnx or jax knows: write only its class, with inputs and attributes, to the "
    "file -o.",
)
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="A module or Python file that registers operators of --from.",
)
@json_option
@examples(
    "opwright op new LeakyClip",
    "opwright op new LeakyClip -o ~/operators/leaky",
    "opwright op new my::op --from model.onnx -o my_op.py",
    "opwright op new --from torch:my::op --import my_package -o my_op.py",
)
def op_new(name: str | None, folder: str | None, model: str | None, modules: tuple[str, ...], as_json: bool) -> None:
    """Write a package with the operator NAME: definition, kernel, gradient, tests, README.

    It works as generated: after `pip install -e .` every model with a custom operator NAME runs. Then adapt it.

    Exit codes: 0 written; 2 an invalid name; 3 the folder exists already, or cannot be written.
    """
    if model is not None:
        from .skeletons import write_skeleton

        write_skeleton(name, model, modules, folder, as_json)
        return
    if name is None or modules:
        raise click.UsageError("wanted NAME" if name is None else "--import belongs to --from")
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
@json_option
@examples(
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
    from .operator_files import export_operator

    export_operator(name, folder, customs, api, attrs, as_json)


@op.command("list")
@click.argument("pattern", default="")
@json_option
@examples("opwright op list", "opwright op list Pool")
def op_list(pattern: str, as_json: bool) -> None:
    """List the operators whose name contains PATTERN, with their formula."""
    from .catalogue import list_operators

    list_operators(pattern, as_json)


@op.command("show")
@click.argument("name")
@click.option("--html", "page", type=click.Path(dir_okay=False), help="Also write the operator as a page.")
@json_option
@examples("opwright op show Atan", "opwright op show CONV_2D --json", "opwright op show Softmax --html softmax.html")
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
@custom_option
@json_option
@examples(
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
    from .operator_files import write_model

    write_model(name, output, as_json=as_json, **settings)


@op.command("spec")
@click.argument("names", nargs=-1)
@click.option("--file", "files", multiple=True, type=click.Path(), help="A Python file that defines operators.")
@examples("opwright op spec > catalogue.json", "opwright op spec --file my_operators.py > mine.json")
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
@json_option
@examples("opwright op compat catalogue.json", "opwright op compat old.json new.json --strict")
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
@executor_option
@json_option
@examples("opwright op test my_operators.py", "opwright op test Atan Conv2D")
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
