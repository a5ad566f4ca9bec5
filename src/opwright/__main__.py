"""`python -m opwright`: the command line."""

from .tools.cli import main

main()
