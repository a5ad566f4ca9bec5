"""`function`: Python programs recorded as graphs.

Lives here: the interpreter that records.  Not here: the interpreter that computes (eager/), rewriting of Python
(autograph/).
"""
