"""`python -m opwright`: the command line."""

from .tools.cli import main

if __name__ == "__main__":  # and not on ranks that `python -m mpi4py.futures -m opwright` starts as workers
    main()
