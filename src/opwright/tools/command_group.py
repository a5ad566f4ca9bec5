"""Groups of commands, with exit codes of errors, and the options that several commands take.

Lives here: `CommandGroup`, help with examples, conversion of foreign files, options.
Not here: commands (cli.py tells where).
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable
from inspect import cleandoc
from typing import Any

import click

from ..core.errors import OpError
from .report import BadFile

EXIT_FAILED, EXIT_BAD_FILE = 1, 3
FOREIGN = (".keras", ".mlir", ".onnx", ".pt2", ".stablehlo")
"""Suffixes of files that commands convert first, as `READERS` in conversion.py, which is loaded only then."""


class CommandGroup(click.Group):
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


def examples(*lines: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Append examples to a command's help."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        text = cleandoc(command.__doc__ or "")
        command.__doc__ = text + "\n\n\b\nExamples:\n" + "\n".join(f"  {x}" for x in lines)
        return command

    return add


def converted_model(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
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


def run_time_version(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}", value):
        raise click.BadParameter(f"{value!r} is not a version such as 2.8 or 2.16.1")
    return value


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
model_argument = click.argument("model", type=click.Path(), callback=converted_model)
AT_LEAST_1 = click.IntRange(min=1)
custom_option = click.option(
    "--custom",
    "customs",
    multiple=True,
    metavar="FILE.py|MODULE[:NAME]|LIBRARY.so[:NAME=ENTRY]",
    help="Custom operators: @ow.operator classes, or a library in C. Those of installed packages are found by name.",
)


def _on_ranks(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Return the name of an executor; on ranks of MPI, first let rank 0 drive the others."""
    if name == "mpi":
        from .sweeps import drive_ranks

        drive_ranks()
    return name


executor_option = click.option(
    "--executor",
    metavar="NAME",
    callback=_on_ranks,
    help="Workers: threads:N, processes:N, loky:N, dask://HOST:PORT, ray://HOST:PORT, mpi; by default this process.",
)
