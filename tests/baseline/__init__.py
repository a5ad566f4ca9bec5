"""A record of what a redesign must not change, and the comparison of a later tree with it.

    make record    keeps what this tree computes in build/baseline
    make compare   computes the same again and reports every difference; docs/baseline.md

Lives here: the kinds of a record (kinds.py): bits of results, loop graphs and plans, object code, bytes of converted
files, figures of benchmarks.
Not here: rows (tests/ops, tests/lite, tests/functions), whether they are right (their tests): a record says only
whether anything changed.

The package runs apart from the tree that it records: the process that you start imports neither opwright nor tests, and
the processes that compute import both from the tree, so that commits from before this package can be recorded too.
"""
