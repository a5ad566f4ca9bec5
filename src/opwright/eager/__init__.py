"""Eager execution: tensors with values, variables, dispatch, the gradient tape.

Lives here: the interpreter that computes.  Not here: the interpreter that records (tracing/), the operators (ops/).
"""
