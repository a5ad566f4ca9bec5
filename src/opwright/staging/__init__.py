"""Staging: what turns Python control flow into calls that decide by the value they meet.

Lives here: AutoGraph's front end, shared by `function` and the kernel language. It knows neither graphs nor kernels.
Today Python's own control flow runs at trace time; a condition on a tensor raises and names `ow.where`.
"""
