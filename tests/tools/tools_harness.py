"""Running the command line in tests: `opwright` (one call, its exit code checked), `result_of` (its JSON)."""

import json

from click.testing import CliRunner, Result

from opwright.tools.cli import cli


def opwright(*arguments, exit_code=0, env=None) -> Result:
    """Run `opwright ARGUMENTS...` in this process. An error that is not ours is raised, not swallowed.

    exit_code: what it must be, None for any.
    """
    result = CliRunner().invoke(cli, [str(a) for a in arguments], env=env, prog_name="opwright")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert exit_code in (None, result.exit_code), result.output
    return result


def result_of(*arguments, exit_code=0):
    """Return the output of a call with --json: one document of strict JSON."""

    def refuse(text):
        raise ValueError(f"{text} is not JSON")

    return json.loads(opwright(*arguments, exit_code=exit_code).stdout, parse_constant=refuse)
