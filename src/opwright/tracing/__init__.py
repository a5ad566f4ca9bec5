"""`function`: Python programs recorded as graphs.

Lives here: the interpreter that records.  Not here: the one that computes (eager/), rewriting Python (autograph/).
"""
