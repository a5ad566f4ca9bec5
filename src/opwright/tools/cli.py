"""The command line: `opwright COMMAND`.

Lives here: the group of all commands, demo, doctor, explain.
Not here: other commands (model_commands.py, run_commands.py, operator_commands.py), exit codes (command_group.py).

Exit codes: 0 success; 1 a check failed or a model does not run; 2 wrong usage; 3 a file cannot be read or written.
Results go to stdout, notes and progress to stderr.
"""

from __future__ import annotations

import sys

import click

from .command_group import AT_LEAST_1, EXIT_FAILED, CommandGroup, examples, json_option
from .model_commands import check, convert, inspect, resolver, search, view
from .operator_commands import op
from .run_commands import bench, build, diff, run


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="opwright", prog_name="opwright")
def cli() -> None:
    """Define, run, differentiate, trace, convert, interpret and compile machine-learning operators."""


@cli.command()
@click.option("--out", default="out", type=click.Path(file_okay=False), help="Folder for the files it makes.")
@click.option("--steps", default=1000, show_default=True, type=AT_LEAST_1, help="Training steps.")
@json_option
@examples("opwright demo", "opwright demo --out /tmp/demo")
def demo(out: str, steps: int, as_json: bool) -> None:
    """Train atan and sin, convert them, and run the files with a custom operator; checks every step."""
    from .demo import run_demo

    sys.exit(0 if run_demo(out, steps, as_json) else EXIT_FAILED)


@cli.command()
@click.option("--html", "page", type=click.Path(dir_okay=False), help="Also write the report as a page.")
@json_option
@examples("opwright doctor", "opwright doctor --json", "opwright doctor --html page.html")
def doctor(page: str | None, as_json: bool) -> None:
    """Report the installation: versions, processor, compiler, switches.

    Exit code 1 if a requirement is missing.
    """
    from .diagnostics import run_doctor

    sys.exit(0 if run_doctor(as_json, page) else EXIT_FAILED)


@cli.command()
@click.argument("code", required=False)
@json_option
@examples("opwright explain OW101", "opwright explain")
def explain(code: str | None, as_json: bool) -> None:
    """Explain an error's code: its meaning, causes and remedies. Without CODE: list all codes."""
    from .diagnostics import print_explanation

    sys.exit(0 if print_explanation(code, as_json) else EXIT_FAILED)


for _command in (inspect, convert, check, resolver, search, view, run, build, diff, bench, op):
    cli.add_command(_command)


def main() -> None:
    """Run the command line."""
    cli(prog_name="opwright")
