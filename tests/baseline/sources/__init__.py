"""Rows of the tables, a module a table.

Each has `keys()`; and `models(key)`, for each of a key's rows what makes a file and its inputs, or
`entries(key, name)`, its rows run in ways of their own.
"""
