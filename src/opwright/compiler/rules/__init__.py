"""Rules of catalogue operators that have no twin among the builtins of files, and those not yet shared with them.

Lives here: the rules.  Not here: the table, the context (../lowering/).
"""
